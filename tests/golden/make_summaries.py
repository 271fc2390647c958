"""What TensorFlow 1.15 gives for summary_programs.py: run with its Python, writes
summaries.json.
"""

import json
import os
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import summary_programs  # noqa: E402
import tensorflow as tf  # noqa: E402

if __name__ == "__main__":
    folder = tempfile.mkdtemp()
    found = summary_programs.run(tf, folder)
    found.update(summary_programs.media(tf))
    found.update(summary_programs.old_audio(tf))
    found["events"] = summary_programs.events(tf, folder)
    with open(os.path.join(HERE, "summaries.json"), "w") as f:
        json.dump(found, f, indent=1)
        f.write("\n")
