"""Where the names of tf.data are, and that they are the ones that programs use."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import headrace as tf


def python(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_headrace_does_not_import_datasets() -> None:
    python("""
        import sys, headrace
        assert not [m for m in sys.modules if m.startswith("headrace.data")]
        assert "rich" not in sys.modules
        headrace.data.Dataset
        assert "rich" not in sys.modules
    """)


def test_the_package_is_the_namespace_in_any_order() -> None:
    for first in ("import headrace.data.api.dataset", "import headrace; headrace.data"):
        python(f"""
            {first}
            import headrace as tf
            import headrace.data.api.progress as p
            assert tf.data.Dataset.__name__ == "DatasetV1" and p.progress
            assert tf.compat.v1.data.Dataset is tf.data.Dataset
            assert tf.data.experimental.AUTOTUNE == tf.data.AUTOTUNE == -1
        """)


def test_versions() -> None:
    v2 = tf.compat.v2
    assert issubclass(tf.data.Dataset, v2.data.Dataset)
    assert not hasattr(v2.data.Dataset, "make_one_shot_iterator")
    assert v2.data.experimental.Counter(5).take(0) is not None


def test_missing_names_are_explained() -> None:
    _ = tf.data.Dataset
    import headrace.api.v1 as v1

    for module, name in ((v1.data, "nothing"), (v1.data.experimental, "SqlDataset")):
        with pytest.raises(AttributeError, match=f"tf.data.*{name}"):
            getattr(module, name)


def test_contrib() -> None:
    data = tf.contrib.data
    with tf.Graph().as_default(), tf.Session() as session:
        ds = data.Dataset.range(10).apply(data.shuffle_and_repeat(10, 2, seed=1))
        ds = ds.apply(
            data.map_and_batch(
                map_func=lambda x: x + 1, batch_size=4, num_parallel_batches=2, drop_remainder=True
            )
        )
        ds = ds.apply(data.ignore_errors()).apply(data.prefetch_to_device("/gpu:0"))
        element = ds.make_one_shot_iterator().get_next()
        assert element.shape.as_list() == [4]
        assert sum(int(session.run(element).sum()) for _ in range(5)) == 2 * 55
        grouped = data.Dataset.range(6).apply(
            data.group_by_window(lambda x: x % 2, lambda k, g: g.batch(3), 3)
        )
        assert session.run(grouped.make_one_shot_iterator().get_next()).tolist() == [0, 2, 4]
        dropped = data.Dataset.range(5).apply(data.batch_and_drop_remainder(2))
        assert dropped.output_shapes.as_list() == [2]


def test_a_program_that_says_tensorflow() -> None:
    text = python("""
        from headrace import dropin
        dropin.install() if hasattr(dropin, "install") else None
        import headrace as tf
        import numpy as np

        features, labels = np.arange(12.0, dtype=np.float32).reshape(6, 2), np.arange(6)

        def parse(x, y):
            return {"x": x * 2}, y

        def input_fn():
            dataset = tf.data.Dataset.from_tensor_slices((features, labels))
            dataset = dataset.map(parse, num_parallel_calls=2).shuffle(buffer_size=6, seed=0)
            dataset = dataset.repeat(2).batch(4).prefetch(1)
            return dataset.make_one_shot_iterator().get_next()

        x, y = input_fn()
        with tf.Session() as sess:
            seen = []
            while True:
                try:
                    a, b = sess.run([x, y])
                except tf.errors.OutOfRangeError:
                    break
                assert (a["x"][:, 0] == 4 * b).all()
                seen += b.tolist()
        print(sorted(seen))
    """)
    assert text.strip() == str(sorted([*range(6), *range(6)]))


def test_ignore_errors_logs_what_it_ignores(caplog: pytest.LogCaptureFixture) -> None:
    def failing(x: tf.Tensor) -> tf.Tensor:
        return tf.debugging.check_numerics(1.0 / x, "a quotient")

    ds = tf.data.Dataset.from_tensor_slices([1.0, 0.0, 4.0]).map(failing)
    for given, texts in ((False, 0), (True, 1)):
        caplog.clear()
        with caplog.at_level("WARNING", "tensorflow"):
            ignored = ds.apply(tf.data.experimental.ignore_errors(log_warning=given))
            element = tf.data.make_one_shot_iterator(ignored).get_next()
            with tf.Session() as session:
                assert [session.run(element), session.run(element)] == [1.0, 0.25]
        assert caplog.text.count("Error raised with error message") == texts
        assert caplog.text.count("a quotient : Tensor had Inf") == texts
