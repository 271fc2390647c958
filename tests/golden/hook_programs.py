"""Hooks that write files: run with TensorFlow 1.15's Python, this writes hook_programs.json.

Python 3.7 syntax. Each program returns what is in the folder afterwards and what the hooks said.
The step waits for a moment, so that a hook's read of the global step comes before its update.
"""

import glob
import json
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def _wait(x):
    time.sleep(0.02)
    return x


def _model(tf):
    step = tf.train.get_or_create_global_step()
    loss = tf.cast(tf.py_func(_wait, [tf.constant(3.0)], tf.float32), tf.float32)
    loss.set_shape([])
    with tf.control_dependencies([loss]):
        train = tf.assign_add(step, 1)
    tf.summary.scalar("loss", loss)
    return step, train, loss


def _value(value):
    if value.WhichOneof("value") == "simple_value" and value.tag != "global_step/sec":
        return [value.tag, round(value.simple_value, 4)]
    return [value.tag, value.WhichOneof("value")]


def _events(tf, folder):
    """Step, kind and contents of the events, file by file."""
    out = []
    for path in sorted(glob.glob(os.path.join(folder, "events.out.tfevents.*"))):
        for event in tf.train.summary_iterator(path):
            kind = event.WhichOneof("what")
            row = [event.step, kind]
            if kind == "summary":
                row.append([_value(v) for v in event.summary.value])
            elif kind == "session_log":
                log = event.session_log
                row += [log.status, os.path.basename(log.checkpoint_path)]
            elif kind == "tagged_run_metadata":
                row.append(event.tagged_run_metadata.tag)
            out.append(row)
    return out


def _files(folder):
    names = sorted(os.listdir(folder))
    return ["events" if n.startswith("events") else n for n in names]


def _state(tf, folder):
    state = tf.train.get_checkpoint_state(folder)
    return [os.path.basename(p) for p in state.all_model_checkpoint_paths] if state else None


def _described(tf, folder):
    tf.summary.FileWriterCache.clear()
    return [_files(folder), _state(tf, folder), _events(tf, folder)]


def checkpoint_saver(tf):
    said = []

    class Listener(tf.train.CheckpointSaverListener):
        def begin(self):
            said.append("begin")

        def before_save(self, session, global_step_value):
            said.append(["before", int(global_step_value)])

        def after_save(self, session, global_step_value):
            said.append(["after", int(global_step_value)])
            return int(global_step_value) == 5

        def end(self, session, global_step_value):
            said.append(["end", int(global_step_value)])

    folder = tempfile.mkdtemp()
    _, train, _ = _model(tf)
    hook = tf.train.CheckpointSaverHook(
        folder, save_steps=2, listeners=[Listener()], checkpoint_basename="m.ckpt"
    )
    ran = 0
    with tf.train.SingularMonitoredSession(hooks=[hook]) as session:
        while not session.should_stop() and ran < 9:
            session.run(train)
            ran += 1
    return [ran, said, _described(tf, folder)]


def summary_saver(tf):
    folder = tempfile.mkdtemp()
    _, train, _ = _model(tf)
    hook = tf.train.SummarySaverHook(
        save_steps=3, output_dir=folder, summary_op=tf.summary.merge_all()
    )
    with tf.train.SingularMonitoredSession(hooks=[hook]) as session:
        for _ in range(8):
            session.run(train)
    return _described(tf, folder)


def step_counter(tf):
    folder = tempfile.mkdtemp()
    _, train, _ = _model(tf)
    hook = tf.train.StepCounterHook(every_n_steps=2, output_dir=folder)
    with tf.train.SingularMonitoredSession(hooks=[hook]) as session:
        for _ in range(7):
            session.run(train)
    return _described(tf, folder)


def training_session(tf):
    """Two runs into one folder."""
    folder, out = tempfile.mkdtemp(), []
    for steps in (7, 11):
        with tf.Graph().as_default():
            _, train, _ = _model(tf)
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=folder,
                hooks=[tf.train.StopAtStepHook(last_step=steps)],
                save_checkpoint_steps=3,
                save_summaries_steps=2,
                log_step_count_steps=2,
            ) as session:
                seen = []
                while not session.should_stop():
                    seen.append(int(session.run(train)))
            out.append(seen)
            time.sleep(1.1)  # event files are named by seconds
    return [out, _described(tf, folder)]


def profiler(tf):
    folder = tempfile.mkdtemp()
    _, train, _ = _model(tf)
    hook = tf.train.ProfilerHook(save_steps=2, output_dir=folder)
    with tf.train.SingularMonitoredSession(hooks=[hook]) as session:
        for _ in range(5):
            session.run(train)
    return _described(tf, folder)


def logging_tensor(tf):
    said = []

    def formatter(values):
        said.append(sorted([k, float(v)] for k, v in values.items()))
        return "said"

    _, train, loss = _model(tf)
    twice = tf.multiply(loss, 2.0, name="twice")
    hooks = [
        tf.train.LoggingTensorHook({"a": loss, "b": twice}, every_n_iter=3, formatter=formatter),
        tf.train.LoggingTensorHook(["twice:0"], at_end=True, formatter=formatter),
    ]
    with tf.train.SingularMonitoredSession(hooks=hooks) as session:
        for _ in range(5):
            session.run(train)
    return said


def others(tf):
    out = []
    _, train, loss = _model(tf)
    nan = tf.placeholder_with_default(float("nan"), [])
    for fail in (True, False):
        hook = tf.train.NanTensorHook(nan, fail_on_nan_loss=fail)
        ran = 0
        try:
            with tf.train.SingularMonitoredSession(hooks=[hook]) as session:
                while not session.should_stop() and ran < 3:
                    session.run(train)
                    ran += 1
            out.append(["stopped", ran])
        except tf.train.NanLossDuringTrainingError as error:
            out.append([type(error).__name__, ran])
    fed = tf.placeholder(tf.float32, [])
    final = tf.train.FinalOpsHook({"f": fed * 2.0}, {fed: 4.0})
    hooks = [final, tf.train.FeedFnHook(lambda: {fed: 5.0}), tf.train.StopAtStepHook(num_steps=2)]
    with tf.train.SingularMonitoredSession(hooks=hooks) as session:
        while not session.should_stop():
            out.append([float(v) for v in session.run([train, fed])])
    out.append(float(final.final_ops_values["f"]))
    for wrong in (
        lambda: tf.train.StopAtStepHook(),
        lambda: tf.train.StopAtStepHook(1, 2),
        lambda: tf.train.CheckpointSaverHook("d", save_secs=1, save_steps=1),
        lambda: tf.train.CheckpointSaverHook("d"),
        lambda: tf.train.LoggingTensorHook(["a"]),
        lambda: tf.train.LoggingTensorHook(["a"], every_n_iter=1, every_n_secs=1),
        lambda: tf.train.LoggingTensorHook(["a"], every_n_iter=0),
        lambda: tf.train.SummarySaverHook(save_steps=1),
        lambda: tf.train.SummarySaverHook(save_steps=1, save_secs=1, summary_op=loss),
        lambda: tf.train.StepCounterHook(every_n_steps=1, every_n_secs=1),
        lambda: tf.train.ProfilerHook(save_steps=1, save_secs=1),
    ):
        try:
            wrong()
            out.append("taken")
        except ValueError as error:
            out.append(str(error))
    return out


PROGRAMS = {
    f.__name__: f
    for f in (
        checkpoint_saver,
        summary_saver,
        step_counter,
        training_session,
        profiler,
        logging_tensor,
        others,
    )
}


def main():
    import tensorflow as tf

    tf.logging.set_verbosity(tf.logging.ERROR)
    out = {}
    for name, program in PROGRAMS.items():
        with tf.Graph().as_default():
            out[name] = json.loads(json.dumps(program(tf)))
    with open(os.path.join(HERE, "hook_programs.json"), "w") as file:
        json.dump(out, file, indent=0)
        file.write("\n")


if __name__ == "__main__":
    sys.exit(main())
