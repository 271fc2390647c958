"""What TensorFlow gives for summary_programs.py: run with TF 1.15's Python, which writes
summaries.json, and with TF 2.21's, which writes summaries_v2.json.
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

if __name__ == "__main__" and tf.__version__.startswith("2"):
    with open(os.path.join(HERE, "summaries_v2.json"), "w") as f:
        json.dump(summary_programs.writers(tf, tempfile.mkdtemp()), f, indent=1)
        f.write("\n")
elif __name__ == "__main__":
    folder = tempfile.mkdtemp()
    found = summary_programs.run(tf, folder)
    found.update(summary_programs.media(tf))
    found.update(summary_programs.old_audio(tf))
    found.update(summary_programs.contrib(tf, tempfile.mkdtemp()))
    found["events"] = summary_programs.events(tf, folder)
    with open(os.path.join(HERE, "summaries.json"), "w") as f:
        json.dump(found, f, indent=1)
        f.write("\n")
