"""Flags that a program defines although absl has one of the name."""

import subprocess
import sys

_PROGRAM = """
import headrace as tf
tf.flags.DEFINE_string("log_dir", "/default", "where summaries go")
try:
    tf.flags.DEFINE_string("log_dir", "/second", "again")
except tf.flags.DuplicateFlagError as e:
    print("First from __main__" in str(e).replace(sys.argv[0], "__main__"))
def main(_):
    print(tf.flags.FLAGS.log_dir)
tf.app.run(main)
"""


def test_log_dir_is_the_programs_own() -> None:
    """absl.logging defines `log_dir` too, and absl refuses a second one: many programs have it."""
    for arguments, value in ((["--log_dir=/given"], "/given"), ([], "/default")):
        command = [sys.executable, "-c", "import sys\n" + _PROGRAM, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.stdout.split() == ["True", value], done.stdout + done.stderr
