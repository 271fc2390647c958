"""MonitoredTrainingSession with hooks of the library and one of the user's own."""

from __future__ import annotations

import tempfile

import headrace as tf


class Recorder(tf.train.SessionRunHook):
    def __init__(self, tensor: tf.Tensor) -> None:
        self.tensor = tensor
        self.values: list[float] = []

    def before_run(self, run_context: tf.train.SessionRunContext) -> tf.train.SessionRunArgs:
        return tf.train.SessionRunArgs(self.tensor)

    def after_run(
        self, run_context: tf.train.SessionRunContext, run_values: tf.train.SessionRunValues
    ) -> None:
        self.values.append(float(run_values.results))
        if len(self.values) > 10:
            run_context.request_stop()


def main(steps: int = 4) -> list[float]:
    tf.reset_default_graph()
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", initializer=tf.constant([1.0, 2.0]))
        loss = tf.reduce_sum(tf.square(w), name="loss")
        train = tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=step)
        recorder = Recorder(loss)
        hooks: list[tf.train.SessionRunHook] = [
            tf.train.StopAtStepHook(last_step=steps),
            tf.train.LoggingTensorHook({"loss": loss}, every_n_iter=100),
            tf.train.NanTensorHook(loss),
            recorder,
        ]
        scaffold = tf.train.Scaffold(saver=tf.train.Saver())
        with (
            tempfile.TemporaryDirectory() as folder,
            tf.train.MonitoredTrainingSession(
                checkpoint_dir=folder, hooks=hooks, scaffold=scaffold, save_checkpoint_secs=600
            ) as sess,
        ):
            while not sess.should_stop():
                sess.run(train)
    return recorder.values


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.ERROR)
    print(main())
