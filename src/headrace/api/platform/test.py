"""``tf.test``: a TestCase with a session, assertions about arrays, and numerical gradients.

class SquareTest(tf.test.TestCase):
    def testSquare(self):
        with self.session():
            self.assertAllEqual(tf.square([2, 3]).eval(), [4, 9])
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
from absl.testing import absltest

from headrace import errors
from headrace.api.platform.benchmark import (
    Benchmark,
    benchmark_config,
    run_benchmarks,
    take_pattern,
)
from headrace.api.platform.gradient_checks import compute_gradient, compute_gradient_error
from headrace.api.platform.ragged_assertions import (
    any_is_ragged,
    assert_rows_close,
    assert_rows_equal,
)
from headrace.api.version import GRAPH_DEF_VERSION, GRAPH_DEF_VERSION_MIN_CONSUMER
from headrace.core import nest
from headrace.core.device_spec import DeviceSpec
from headrace.core.dtypes import as_dtype
from headrace.core.graph import get_default_graph, reset_default_graph
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.stacks import default_graphs, default_sessions
from headrace.core.tensor import Tensor
from headrace.session.session import Session
from headrace.train.cluster import create_local_cluster

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headrace.core.annotations import Array, TensorLike
    from headrace.core.graph import Graph

__all__ = [
    "Benchmark", "TestCase", "assert_equal_graph_def", "benchmark_config",
    "compute_gradient", "compute_gradient_error",
    "create_local_cluster",
    "get_temp_dir", "gpu_device_name", "is_built_with_cuda", "is_built_with_gpu_support",
    "is_built_with_rocm", "is_gpu_available", "main", "mock", "test_src_dir_path",
]  # fmt: skip


def is_built_with_cuda() -> bool:
    """False: Headrace computes on the CPU."""
    return False


def is_built_with_rocm() -> bool:
    """False: Headrace computes on the CPU."""
    return False


def is_built_with_gpu_support() -> bool:
    """False: Headrace computes on the CPU."""
    return False


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: object = None) -> bool:
    """False whatever is asked for: Headrace computes on the CPU."""
    return False


def gpu_device_name() -> str:
    """The name of a GPU, or "" because there is none."""
    return ""


def main(argv: list[str] | None = None) -> None:
    """Run the tests of the program's first module; with ``--benchmarks=PATTERN`` its benchmarks."""
    pattern = take_pattern(sys.argv if argv is None else argv)
    if pattern is None:
        absltest.main(argv=argv)
    else:
        run_benchmarks(pattern)


def get_temp_dir() -> str:
    """A directory for the files of this test run; it is removed at its end."""
    return _TEMP.name


_TEMP = tempfile.TemporaryDirectory(prefix="headrace_test_")


def test_src_dir_path(relative_path: str) -> str:
    """A path relative to the directory in which the tests were started."""
    return os.path.join(os.getcwd(), relative_path)


def assert_equal_graph_def(actual: Any, expected: Any, checkpoint_v2: bool = False) -> None:
    """AssertionError unless two GraphDefs have the same nodes, in whatever order.

    The message names the nodes that differ or are on one side only. ``checkpoint_v2`` makes no
    difference: Headrace's Saver makes the same names for both formats.
    """
    theirs, ours = ({n.name: n for n in g.node} for g in (expected, actual))
    differing = [name for name in theirs.keys() | ours.keys() if theirs.get(name) != ours.get(name)]
    if differing:
        raise AssertionError(f"graphs differ in the nodes {sorted(differing)}")


class TestCase(absltest.TestCase):
    """A test with an empty default graph and fixed seeds.

    A subclass may define ``setUp`` without calling this one: sessions and folders still work.
    """

    _cached: Any = None
    _temp_dir: str | None = None

    def setUp(self) -> None:
        super().setUp()
        random.seed(87654321)
        np.random.seed(87654321)
        default_graphs.items.clear()  # a test may run inside of another graph
        reset_default_graph()
        get_default_graph().seed = 87654321

    def tearDown(self) -> None:
        if self._cached is not None:
            self._cached.close()
            self._cached = None
        super().tearDown()

    def get_temp_dir(self) -> str:
        """A directory that this test has for itself."""
        if self._temp_dir is None:
            self._temp_dir = tempfile.mkdtemp(dir=get_temp_dir())
        return self._temp_dir

    # sessions
    @contextlib.contextmanager
    def session(
        self,
        graph: Graph | None = None,
        config: object = None,
        use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> Iterator[Any]:
        """A new session, closed at the end."""
        with Session(graph=graph or get_default_graph(), config=config) as sess:
            yield sess

    @contextlib.contextmanager
    def cached_session(
        self,
        graph: Graph | None = None,
        config: object = None,
        use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> Iterator[Any]:
        """The same session each time within one test."""
        if self._cached is None:
            self._cached = Session(graph=graph or get_default_graph(), config=config)
        with self._cached.graph.as_default(), self._cached.as_default():
            yield self._cached

    def test_session(
        self,
        graph: Graph | None = None,
        config: Any = None,
        use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> contextlib.AbstractContextManager[Any]:
        """:meth:`cached_session`. The loader takes the name for a test's: that one is skipped."""
        if self.id().endswith(".test_session"):
            self.skipTest("Not a test.")
        return self.cached_session(graph, config, use_gpu, force_gpu)

    def evaluate(self, tensors: object) -> Any:
        """The tensors' values: at once where execution is eager, else by the test's session."""
        if get_default_graph()._is_eager:
            return nest.map_structure(_value, tensors)
        sess = default_sessions.get() or self._cached or Session()
        return sess.run(tensors)

    def _array(self, value: Any) -> Array:
        if isinstance(value, (Tensor, IndexedSlices)):
            value = self.evaluate(value)
        return np.asarray(value)

    # arrays
    def assertAllEqual(self, a: TensorLike, b: Any, msg: str | None = None) -> None:
        """Arrays, tensors, ragged tensors or lists with the same shape and the same elements."""
        if any_is_ragged(a, b):
            assert_rows_equal(self, a, b, msg)
            return
        a, b = self._array(a), self._array(b)
        self.assertEqual(
            a.shape, b.shape, f"Shape mismatch: expected {a.shape}, got {b.shape}. {msg or ''}"
        )
        np.testing.assert_array_equal(a, b, err_msg=msg or "")

    def assertNotAllEqual(self, a: object, b: object, msg: object = None) -> None:
        self._assert_fails(
            self.assertAllEqual, a, b, "The two values are equal at all elements.", msg
        )

    def assertAllClose(
        self, a: TensorLike, b: TensorLike, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None
    ) -> None:
        """Arrays, or structures of them, equal within the tolerances."""
        if any_is_ragged(a, b):
            assert_rows_close(self, a, b, rtol, atol, msg)
            return
        if isinstance(a, dict) or isinstance(b, dict):
            self.assertEqual(sorted(a), sorted(b), msg)
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, f"at key {key!r}. {msg or ''}")
            return
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and _ragged(a, b):
            self.assertEqual(len(a), len(b), msg)
            for i, (x, y) in enumerate(zip(a, b)):
                self.assertAllClose(x, y, rtol, atol, f"at index {i}. {msg or ''}")
            return
        a, b = self._array(a), self._array(b)
        self.assertEqual(
            a.shape, b.shape, f"Shape mismatch: expected {a.shape}, got {b.shape}. {msg or ''}"
        )
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=msg or "")

    def assertNotAllClose(self, a: object, b: object, **kwargs: Any) -> None:
        msg = kwargs.pop("msg", None)
        close = lambda x, y: self.assertAllClose(x, y, **kwargs)
        self._assert_fails(close, a, b, "The two values are close at all elements.", msg)

    def _assert_fails(
        self, check: Callable[[Any, Any], None], a: object, b: object, text: str, msg: object
    ) -> None:
        try:
            check(a, b)
        except AssertionError:
            return
        raise AssertionError(f"{text} {msg or ''}")

    def assertAllCloseAccordingToType(
        self,
        a: Array,
        b: Array,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: object = None,
    ) -> None:
        """As assertAllClose, with wider tolerances for narrower types."""
        a, b = self._array(a), self._array(b)
        for name, wider_rtol, wider_atol in (
            ("float32", float_rtol, float_atol),
            ("complex64", float_rtol, float_atol),
            ("float16", half_rtol, half_atol),
            ("bfloat16", bfloat16_rtol, bfloat16_atol),
        ):
            if name in (a.dtype.name, b.dtype.name):
                rtol, atol = max(rtol, wider_rtol), max(atol, wider_atol)
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertNear(self, f1: float, f2: float, err: float, msg: object = None) -> None:
        self.assertTrue(f1 == f2 or abs(f1 - f2) <= err, f"{f1} != {f2} +/- {err}. {msg or ''}")

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: Any = None) -> None:
        self.assertEqual(len(farray1), len(farray2), msg)
        for f1, f2 in zip(farray1, farray2):
            self.assertNear(float(f1), float(f2), err, msg)

    def assertNDArrayNear(
        self, ndarray1: object, ndarray2: object, err: float, msg: object = None
    ) -> None:
        distance = float(np.linalg.norm(self._array(ndarray1) - self._array(ndarray2)))
        self.assertTrue(
            distance < err, f"arrays are {distance} apart, more than {err}. {msg or ''}"
        )

    def assertAllGreater(self, a: object, comparison_target: object) -> None:
        self.assertGreater(np.min(self._array(a)), comparison_target)

    def assertAllLess(self, a: object, comparison_target: object) -> None:
        self.assertLess(np.max(self._array(a)), comparison_target)

    def assertAllGreaterEqual(self, a: object, comparison_target: object) -> None:
        self.assertGreaterEqual(np.min(self._array(a)), comparison_target)

    def assertAllLessEqual(self, a: object, comparison_target: object) -> None:
        self.assertLessEqual(np.max(self._array(a)), comparison_target)

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        beyond = sorted(set(self._array(target).reshape(-1).tolist()) - set(expected_set))
        self.assertFalse(beyond, f"{beyond} are not in the set {expected_set}")

    def assertAllInRange(
        self,
        target: object,
        lower_bound: object,
        upper_bound: object,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        array = self._array(target)
        low = array > lower_bound if open_lower_bound else array >= lower_bound
        high = array < upper_bound if open_upper_bound else array <= upper_bound
        outside = array[~(low & high)]
        self.assertEqual(
            outside.size, 0, f"outside of the range {lower_bound}..{upper_bound}: {outside[:10]}"
        )

    def assertShapeEqual(self, np_array: Array, tf_tensor: Tensor, msg: str | None = None) -> None:
        self.assertAllEqual(np_array.shape, tf_tensor.get_shape().as_list(), msg)

    # errors and others
    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(  # type: ignore[override]
        self, exception_type: type[Any], expected_err_re_or_predicate: Any
    ) -> Iterator[None]:
        """The block raises an error whose message (with its op's name) the predicate or pattern
        accepts.
        """
        try:
            yield
        except exception_type as e:
            if callable(expected_err_re_or_predicate):
                self.assertTrue(
                    expected_err_re_or_predicate(e), f"Exception of type {type(e)}: {e}"
                )
                return
            message = e.message if isinstance(e, errors.OpError) else str(e)
            op = e.op if isinstance(e, errors.OpError) else None
            if op is not None:
                message += f"\nCaused by op: {op.name}"
            self.assertTrue(
                re.search(expected_err_re_or_predicate, message), f"{message!r} does not match"
            )
            return
        self.fail(f"{getattr(exception_type, '__name__', exception_type)} not raised")

    def assertRaisesOpError(self, expected_err_re_or_predicate: object) -> Any:
        return self.assertRaisesWithPredicateMatch(errors.OpError, expected_err_re_or_predicate)

    def assertItemsEqual(self, expected_seq: Any, actual_seq: Any, msg: str | None = None) -> None:
        self.assertCountEqual(expected_seq, actual_seq, msg)

    def assertStartsWith(self, actual: str, expected_start: str, msg: object = None) -> None:
        self.assertTrue(
            actual.startswith(expected_start),
            f"{actual!r} does not start with {expected_start!r}. {msg or ''}",
        )

    def assertProtoEquals(
        self, expected_message_maybe_ascii: object, message: Any, msg: object = None
    ) -> None:
        expected = expected_message_maybe_ascii
        if isinstance(expected, (str, bytes)):
            from google.protobuf import text_format

            expected = text_format.Merge(expected, type(message)())
        self.assertEqual(expected, message, msg)

    def assertDTypeEqual(self, target: TensorLike, expected_dtype: type[Any]) -> None:
        """Fail unless ``target`` (a tensor or an array, or a list of them) has the dtype."""
        for part in nest.flatten(target):
            have = as_dtype(getattr(part, "dtype", None) or np.asarray(part).dtype).base_dtype
            self.assertEqual(have, as_dtype(expected_dtype).base_dtype)

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: object = None) -> None:
        """Fail unless both name the same device, however they are written."""
        first, second = (
            DeviceSpec.from_string(d).to_string() if d else "" for d in (device1, device2)
        )
        self.assertEqual(first, second, msg)

    def assertProtoEqualsVersion(
        self,
        expected: object,
        actual: object,
        producer: int = GRAPH_DEF_VERSION,
        min_consumer: int = GRAPH_DEF_VERSION_MIN_CONSUMER,
        msg: str | None = None,
    ) -> None:
        """``assertProtoEquals`` for a GraphDef whose text leaves its versions out."""
        text = f"versions {{ producer: {producer} min_consumer: {min_consumer} }};\n{expected}"
        self.assertProtoEquals(text, actual, msg)

    @contextlib.contextmanager
    def captureWritesToStream(self, stream: Any) -> Iterator[CapturedWrites]:
        """What is written to ``stream`` inside, C code included: ``captured.contents()``."""
        number = stream.fileno()
        kept = os.dup(number)
        with tempfile.TemporaryFile() as file:
            stream.flush()
            os.dup2(file.fileno(), number)
            captured = CapturedWrites(file)
            try:
                yield captured
            finally:
                stream.flush()
                captured.finish()
                os.dup2(kept, number)
                os.close(kept)

    def checkedThread(
        self,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> CheckedThread:
        """A thread whose exception fails the test when it is joined."""
        return CheckedThread(self, target, args or (), kwargs or {})


def _value(tensor: TensorLike) -> Any:
    return tensor.numpy() if hasattr(tensor, "numpy") else tensor


class CapturedWrites:
    """What ``captureWritesToStream`` caught."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._text: str | None = None

    def finish(self) -> None:
        """Read what was written; the file closes next."""
        self._file.seek(0)
        self._text = self._file.read().decode("utf-8", "replace")

    def contents(self) -> str:
        """The text that was written."""
        if self._text is None:
            raise RuntimeError("contents() is known after the with block")
        return self._text


class CheckedThread:
    """A thread of a test; ``join`` fails the test if the thread raised."""

    def __init__(
        self,
        case: TestCase,
        target: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> None:
        self._case, self._target, self._args, self._kwargs = case, target, args, kwargs
        self._thread = threading.Thread(target=self._run)
        self._error: BaseException | None = None
        self._joined = False

    def _run(self) -> None:
        try:
            self._target(*self._args, **self._kwargs)
        except BaseException as error:
            self._error = error

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the end of the thread; the test fails if it raised."""
        self._joined = True
        self._thread.join()
        if self._error is not None:
            self._case.fail(f"Error in checkedThread: {self._error}")

    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def check_termination(self) -> None:
        """The test fails if the thread was never joined."""
        if not self._joined:
            self._case.fail("A checked thread was not joined.")


def _ragged(a: Sequence[TensorLike], b: Sequence[TensorLike]) -> bool:
    """Structures that are no single array: leaves of different shapes, or structures below."""
    leaves = [*nest.flatten(a), *nest.flatten(b)]
    shapes = {np.shape(x) for x in leaves if not isinstance(x, Tensor)}
    return len(shapes) > 1 or any(isinstance(x, (dict, Tensor)) for x in (*a, *b))
