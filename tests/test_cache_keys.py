"""Every cache of the tree: the key is the same, or as good as the same, and the answer is not.

The table of all caches is ``tests/cache_table.py``; a new one without a line there fails here.
Structures of graphs are tested in ``tests/test_structures.py``.
"""

from __future__ import annotations

import ast
import functools
import gc
import importlib
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.api import v2 as tf2
from headrace.core import op_limits
from headrace.core.build import apply_any
from headrace.core.opdef import ALL_OPS, _keyword_params
from headrace.eager import execute
from headrace.kernels.native import llvm_library
from headrace.program.nodes import Program
from headrace.rewrite.rewrite_state import RewriteState
from tests import cache_table
from tests.test_structures import FAMILIES, answer, fresh

ROOT = Path(__file__).parent.parent
needs_llvm = pytest.mark.skipif(
    llvm_library.available() is None, reason=f"no LLVM: {llvm_library.status()}"
)


def test_descriptions_of_equal_sizes() -> None:
    """Products of equal sizes whose sides lie otherwise have descriptions of their own."""
    rng = np.random.RandomState(0)
    a, b = rng.rand(96, 96).astype(np.float32), rng.rand(96, 96).astype(np.float32)
    for left, right in itertools.product((False, True), repeat=2):
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float32, (96, 96))
            w = tf.Variable(b)
            session.run(w.initializer)
            y = tf.matmul(x, w, transpose_a=left, transpose_b=right)
            wanted = (a.T if left else a) @ (b.T if right else b)
            for _ in range(2):
                np.testing.assert_allclose(session.run(y, {x: a}), wanted, rtol=1e-4)


# the table ----------------------------------------------------------------------------------------


def _is_of_one_call(name: str) -> bool:
    owner = re.search(r":(\w+)\.", name)
    return owner is not None and owner[1] in cache_table.ONE_CALL


def test_every_cache_is_in_the_table() -> None:
    tables = [cache_table.CACHES, cache_table.PURE, cache_table.REGISTRIES, cache_table.STATE]
    known = {name for table in tables for name in table}
    assert sum(map(len, tables)) == len(known), "a name is in two tables"
    have = set(cache_table.found())
    new = sorted(n for n in have - known if not _is_of_one_call(n))
    assert not new, f"no line in tests/cache_table.py: {new}"
    assert not sorted(known - have), "lines for what is not there any more"
    assert cache_table.one_call_classes() >= cache_table.ONE_CALL


def test_the_tests_of_caches_exist() -> None:
    for name, test in cache_table.CACHES.items():
        path, _, function = test.partition("::")
        tree = ast.parse((ROOT / path).read_text())
        assert function in {f.name for f in tree.body if isinstance(f, ast.FunctionDef)}, name


# functions of their arguments ---------------------------------------------------------------------


def _same(a: Any, b: Any) -> bool:
    """Equal arrays, numbers and structures of them; other objects cannot be compared."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes() and a.shape == b.shape
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, (bool, int, str, bytes, type(None), np.generic)):
        return type(a) is type(b) and (a == b or a != a)
    return True


@pytest.fixture
def computed_again(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Kept results of all functions of the tree are compared with what the functions give now."""
    counts: dict[str, int] = {}

    def checked(kept: Any) -> Callable[..., Any]:
        @functools.wraps(kept)
        def call(*args: Any, **kwargs: Any) -> Any:
            found, now = kept(*args, **kwargs), kept.__wrapped__(*args, **kwargs)
            assert _same(found, now), (kept, args, kwargs, found, now)
            counts[kept.__name__] = counts.get(kept.__name__, 0) + 1
            return found

        call.cache_clear = kept.cache_clear  # type: ignore[attr-defined]
        return call

    made: dict[int, Any] = {}
    for module in [m for n, m in list(sys.modules.items()) if n.startswith("headrace")]:
        for name, value in list(vars(module).items()):
            if hasattr(value, "cache_info") and str(value.__module__).startswith("headrace"):
                call = made.setdefault(id(value), checked(value))
                monkeypatch.setattr(module, name, call)
    return counts


def test_kept_results_are_what_is_computed(computed_again: dict[str, int]) -> None:
    """Also after users wrote into everything that they were given."""
    for make, members, fed in [*FAMILIES.values(), *_PICTURES]:
        for member in members * 2:
            fresh()
            got = answer(make, member, fed, fed.shape)
            if isinstance(got, np.ndarray) and got.dtype != object:
                got[...] = 0
    assert len(computed_again) > 15, computed_again


_IMAGE = np.random.RandomState(0).uniform(0, 1, (2, 9, 7, 3)).astype(np.float32)
_SIZES = [(5, 4), (18, 14), (9, 7), (4, 5)]
_PICTURES: list[tuple[Any, list[Any], Any]] = [
    *[
        (lambda x, a, m=m, c=c: tf.image.resize_images(x, a, m, align_corners=c), _SIZES, _IMAGE)
        for m in range(4)
        for c in (False, True)
    ],
    (
        lambda x, a: tf.gradients(tf.image.resize_bilinear(x, a), x)[0],
        _SIZES,
        _IMAGE,
    ),
    (
        lambda x, a: tf.gradients(tf.nn.avg_pool(x, [1, *a, 1], [1, *a, 1], "SAME"), x)[0],
        [(1, 2), (2, 1), (3, 3)],
        _IMAGE,
    ),
    (
        lambda x, a: tf.nn.conv2d(x, tf.ones([*a, 3, 2]), [1, 1, 2, 1], "SAME"),
        [(1, 2), (2, 1), (3, 3)],
        _IMAGE,
    ),
    (
        lambda x, a: tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.zeros([x.shape[0] * a], tf.int32), logits=tf.reshape(x, [2 * a, -1])
        ),
        [1, 3, 9],
        _IMAGE,
    ),
    (lambda x, a: tf.strings.regex_replace(tf.as_string(x), "(.)0", a), ["", r"\1", r"\0"], _IMAGE),
    (lambda x, a: x + tf.random.stateless_normal([2, 9, 7, 3], a), [(1, 2), (2, 1)], _IMAGE),
]


def test_kept_arrays_cannot_be_written() -> None:
    from headrace.kernels.numpy import gemm

    for array in (gemm.ones(5, np.dtype(np.float32)), gemm._few_ones(5, np.dtype(np.float64))):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 2
    x = np.random.RandomState(0).uniform(-1, 1, (6, 5)).astype(np.float32)
    for _ in range(2):
        np.testing.assert_allclose(gemm.column_sums(x), x.sum(0), 1e-5)


# eager calls --------------------------------------------------------------------------------------


@pytest.fixture
def eager() -> Any:
    from headrace.api.v1.context import disable_v2_behavior, enable_v2_behavior

    enable_v2_behavior()
    yield
    disable_v2_behavior()


_SIGNS = np.array([-1.0, 2.0, -3.0], np.float32)
_EQUAL: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
    "leaky": (lambda a: tf2.nn.leaky_relu(tf2.constant(_SIGNS), a), [0.0, -0.0, 0.5]),
    "axis": (lambda a: tf2.stack([_SIGNS, _SIGNS], a), [0, 1, True, False, 1.0]),
    "flag": (lambda a: tf2.reduce_sum(tf2.constant([_SIGNS]), 0, a), [True, 1, False, 0, 1.0, 0.0]),
    "type": (lambda a: tf2.cast(tf2.constant(_SIGNS), a), ["int32", "int64", "float64", tf2.int32]),
    "text": (lambda a: tf2.strings.length("aé", unit=a), ["BYTE", "UTF8_CHAR"]),
    "one hot": (lambda a: tf2.one_hot([0, 1, 1], 2, axis=a), [0, 1, True, -1]),
    "number": (lambda a: tf2.constant(_SIGNS) * a, [0.0, -0.0, 1, 1.0, True]),
}


def _outcome(call: Callable[[Any], Any], member: Any) -> Any:
    try:
        got = np.asarray(call(member))
    except Exception as error:
        return type(error)
    return got.dtype, got.shape, got.tobytes()


@pytest.mark.parametrize("name", _EQUAL)
@pytest.mark.usefixtures("eager")
def test_eager_calls_whose_attributes_compare_equal(name: str) -> None:
    call, members = _EQUAL[name]
    first = []
    for member in members:
        execute._plans.clear()
        first.append(_outcome(call, member))
    execute._plans.clear()
    order = list(range(len(members))) * 3
    np.random.RandomState(3).shuffle(order)
    for i in order:
        assert _outcome(call, members[i]) == first[i], members[i]
    assert len(set(map(str, first))) > 1


# attributes of operations -------------------------------------------------------------------------


def test_operations_that_share_their_attributes() -> None:
    a, b = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    first, second = tf.add(a, b), tf.add(a, b)
    first.op._set_attr("_mine", 1)
    with tf.get_default_graph().gradient_override_map({"Add": "Another"}):
        third = tf.add(a, b)
    with tf.get_default_graph().colocate_with(a.op):
        fourth = tf.add(a, b)
    fifth = tf.add(tf.placeholder(tf.int32), tf.placeholder(tf.int32))
    assert [sorted(t.op.node_def.attr) for t in (first, second, third, fourth, fifth)] == [
        ["T", "_mine"],
        ["T"],
        ["T", "_gradient_op_type"],
        ["T", "_class"],
        ["T"],
    ]
    assert fifth.op.get_attr("T") == tf.int32


def test_types_that_were_checked_while_limits_were_off() -> None:
    opdef = ALL_OPS["Floor"]
    x = tf.placeholder(tf.complex64)
    op_limits.enforce(False)
    try:
        assert apply_any(opdef, x).dtype == tf.complex64
    finally:
        op_limits.enforce(True)
    with pytest.raises(TypeError, match="not in list of allowed values"):
        apply_any(opdef, x)


def test_keys_of_attributes_that_are_gone() -> None:
    """Dictionaries that die may give their identity to others."""
    state = RewriteState(Program((), (), (), [], {}, ()))
    keys = [state.attributes_key({"value": n}) for n in range(100)]
    assert len(set(keys)) == 100


# native code --------------------------------------------------------------------------------------

_LARGE = np.linspace(-3, 3, 130 * 129).astype(np.float32).reshape(130, 129)
_NATIVE: dict[str, tuple[Callable[[Any, Any], Any], list[Any]]] = {
    "leaky": (lambda x, a: tf.minimum(tf.nn.leaky_relu(x * 1.0, a), 9.0), [0.0, -0.0, 0.5]),
    "constant": (lambda x, a: tf.abs(x) * a + a, [0.0, -0.0, 1.0]),
    "cast": (
        lambda x, a: tf.cast(tf.cast(x * 3.0, a), tf.float32) + x,
        [tf.int32, tf.int64, tf.float64, tf.bool],
    ),
    "reduction": (lambda x, a: tf.reduce_sum(tf.square(x) + x, a), [0, 1, None, (0, 1)]),
    "kept axes": (lambda x, a: tf.reduce_max(x * 2.0 + 1.0, 1, keepdims=a), [True, False]),
}


@needs_llvm
@pytest.mark.parametrize("name", _NATIVE)
def test_native_code_of_attributes_that_compare_equal(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels of groups by their structure: an attribute is part of it, with its sign and type."""
    monkeypatch.setenv("HEADRACE_NATIVE", "always")
    make, members = _NATIVE[name]
    for i in [0, 1, 0, -1, 1, 0]:
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, _LARGE.shape)
            y = make(x, members[i])
            got = tf.Session().run(y, {x: _LARGE})
            want = tf.Session(executor="reference").run(y, {x: _LARGE})
        np.testing.assert_allclose(got, want, 2e-6, 1e-4)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


_ON_DISK = """
import sys
import numpy as np, headrace as tf
x = tf.placeholder(tf.float32, [130, 129])
value = np.linspace(-3, 3, 130 * 129).astype(np.float32).reshape(130, 129)
y = tf.minimum(tf.nn.leaky_relu(x * 1.0, float(sys.argv[1])), float(sys.argv[2]))
got = tf.Session().run(y, {x: value})
print(np.signbit(got).sum(), got.max(), sys.argv[3] == "" or got.dtype)
"""


@needs_llvm
def test_native_code_on_disk(tmp_path: Path) -> None:
    """Processes that share a folder of machine code, with programs that differ in one number."""
    environment = {"HEADRACE_CACHE_DIR": str(tmp_path), "HEADRACE_NATIVE": "always"}
    members = [("0.0", "9.0"), ("-0.0", "9.0"), ("0.0", "2.0"), ("-0.0", "9.0")]
    got = []
    for member in members:
        done = subprocess.run(
            [sys.executable, "-c", _ON_DISK, *member, ""],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        got.append(done.stdout.split()[:2])
    negative = str(130 * 129 // 2)
    wants = [[negative, "3.0"], ["0", "3.0"], [negative, "2.0"], ["0", "3.0"]]
    assert got == wants


def test_updates_that_differ_in_one_attribute() -> None:
    """Large variables are updated by compiled code, once by each of two rules."""
    start = np.linspace(-1, 1, 200_000).astype(np.float32)
    for nesterov in [False, True, False, True]:
        with tf.Graph().as_default():
            v = tf.Variable(start)
            opt = tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=nesterov)
            step = opt.minimize(tf.reduce_sum(tf.square(v)))
            with tf.Session() as fast, tf.Session(executor="reference") as slow:
                for s in (fast, slow):
                    s.run(tf.global_variables_initializer())
                    for _ in range(6):
                        s.run(step)
                np.testing.assert_allclose(fast.run(v), slow.run(v), 1e-5, 1e-6)


# runs ---------------------------------------------------------------------------------------------


def test_bound_runs_see_what_changed_in_place() -> None:
    """The same array object, fed again with other contents; results that users wrote into."""
    x = tf.placeholder(tf.float32, [4, 8])
    w = tf.Variable(np.eye(8, 5, dtype=np.float32))
    y = tf.nn.relu(tf.matmul(x, w) + 1.0)
    fed, held = np.zeros((4, 8), np.float32), np.eye(8, 5, dtype=np.float32)
    s = tf.Session()
    s.run(w.initializer)
    for i in range(40):
        fed[:] = np.random.RandomState(i).uniform(-1, 1, fed.shape)
        if i % 7 == 3:
            held = np.random.RandomState(i).uniform(-1, 1, held.shape).astype(np.float32)
            w.load(held, s)
            s.run(w)[...] = 99.0
        got = s.run(y, {x: fed})
        np.testing.assert_allclose(got, np.maximum(fed @ held + 1.0, 0), 1e-5, 1e-5)
        got[...] = -7.0


def test_plans_for_fed_shapes_by_every_dimension() -> None:
    """Shapes of one size and one rank, far beyond the runs after which a plan is made for them."""
    x = tf.placeholder(tf.float32, [None, None])
    b = tf.placeholder(tf.float32, None)
    y = tf.nn.softmax(tf.tanh(x * 2.0 + b) - tf.reduce_mean(x, 0)) * tf.cast(
        tf.shape(x)[1], "float"
    )
    shapes = [((2, 6), (6,)), ((6, 2), (2,)), ((3, 4), ()), ((4, 3), (4, 1)), ((2, 6), (2, 1))]
    fast, slow = [tf.Session(), tf.Session()], tf.Session(executor="reference")
    rng = np.random.RandomState(0)
    for i in range(200):
        shape, other = shapes[i % 5 if i > 100 else i // 30]
        feeds = {x: rng.uniform(-1, 1, shape), b: rng.uniform(-1, 1, other)}
        got = fast[i % 2].run(y, feeds)
        if i % 10 > 7:
            np.testing.assert_allclose(got, slow.run(y, feeds), 1e-5, 1e-6)


def test_calls_by_a_list_that_changes() -> None:
    """A session knows its calls: the same list and dictionary may ask for something else."""
    a, b = tf.constant(1.0), tf.constant(2.0)
    x = tf.placeholder(tf.float32, [])
    fetches: list[Any] = [a, x]
    feeds: dict[Any, Any] = {x: 5.0}
    s = tf.Session()
    assert s.run(fetches, feeds) == [1.0, 5.0]
    fetches[0] = b
    feeds[x] = 6.0
    assert s.run(fetches, feeds) == [2.0, 6.0]
    fetches[1] = (x, a)
    feeds[a] = 9.0
    assert s.run(fetches, feeds) == [2.0, (6.0, 9.0)]
    del feeds[a]
    assert s.run(fetches, feeds) == [2.0, (6.0, 1.0)]


# autograph ----------------------------------------------------------------------------------------


def test_a_module_that_is_edited_and_loaded_again_is_converted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a notebook: edit, ``importlib.reload``, call. The text has the same lines."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file, loaded = tmp_path / "edited_and_loaded.py", None
    for i, factor in enumerate([2, 33, 7, 8]):
        file.write_text(
            "def f(x):\n    if x > 0:\n        return x * FACTOR\n    return x\n"
            "g = lambda x: x * FACTOR\n".replace("FACTOR", str(factor))
        )
        os.utime(file, (i, i))
        importlib.invalidate_caches()
        loaded = importlib.reload(loaded) if loaded else importlib.import_module(file.stem)
        convert = tf.autograph.to_graph
        with tf.Graph().as_default(), tf.Session() as s:
            x = tf.constant(1.0)
            assert s.run([convert(loaded.f)(x), convert(loaded.g)(x)]) == [factor, factor]


def test_converted_code_is_not_that_of_a_dead_function(tmp_path: Path) -> None:
    """Code is known by its address: another function may get the address of one that is gone."""
    seen = set()
    for i in range(20):
        file = tmp_path / f"made_{i}.py"
        file.write_text(f"def f(x):\n    if x > 0:\n        x = x + {i}.0\n    return x\n")
        namespace: dict[str, Any] = {}
        exec(compile(file.read_text(), str(file), "exec"), namespace)
        seen.add(id(namespace["f"].__code__))
        with tf.Graph().as_default(), tf.Session() as s:
            assert s.run(tf.autograph.to_graph(namespace["f"])(tf.constant(1.0))) == 1.0 + i
        del namespace
        gc.collect()


def test_one_function_of_two_closures() -> None:
    def make(k: float) -> Any:
        def f(x: Any, more: float = k * 10) -> Any:
            if x > 0:
                x = x * k + more
            return x

        return f

    with tf.Session() as s:
        got = [s.run(tf.autograph.to_graph(make(k))(tf.constant(1.0))) for k in (1.0, 2.0, 1.0)]
    assert got == [11.0, 22.0, 11.0]


# the rest -----------------------------------------------------------------------------------------


def test_patterns_with_and_without_groups() -> None:
    """A pattern is compiled with groups or without them, as the rewrite needs them."""
    x = tf.placeholder(tf.string, [])
    calls = [("(a+)(b)", r"<\2\1>"), ("(a+)(b)", "-"), ("(a+)(b)", r"\0\0"), ("(?i)(a+)(b)", "-")]
    wants = [b"x<baa>Ab", b"x-Ab", b"xaabaabAb", b"x--"]
    with tf.Session() as s:
        for i in [0, 1, 2, 3, 1, 0, 3, 2, 0]:
            pattern, rewrite = calls[i]
            got = s.run(tf.strings.regex_replace(x, pattern, rewrite), {x: b"xaabAb"})
            assert got == wants[i]
            assert not s.run(tf.strings.regex_full_match(x, pattern), {x: b"xaabAb"})


def test_a_conversion_that_is_registered_later() -> None:
    class Own(list[Any]):
        pass

    value = Own([1.0, 2.0])
    assert tf.Session().run(tf.convert_to_tensor(value)).tolist() == [1.0, 2.0]

    def convert(value: Any, dtype: Any = None, name: Any = None, as_ref: bool = False) -> Any:
        return tf.constant([7.0], dtype, name=name)

    tf.register_tensor_conversion_function(Own, convert, priority=1)
    assert tf.Session().run(tf.convert_to_tensor(value)).tolist() == [7.0]


def test_cells_that_differ_in_their_forget_bias() -> None:
    """The numbers that are added to the gates are kept by the sizes and the bias."""
    x = np.random.RandomState(0).uniform(-1, 1, (4, 3, 2)).astype(np.float32)
    for bias, width in [(1.0, 5), (0.0, 5), (2.0, 5), (1.0, 6), (0.0, 5), (1.0, 5)]:
        with tf.Graph().as_default(), tf.variable_scope("", initializer=tf.ones_initializer()):
            cell = tf.nn.rnn_cell.BasicLSTMCell(width, forget_bias=bias)
            y, _ = tf.nn.dynamic_rnn(cell, tf.constant(x), dtype=tf.float32)
            fast, slow = tf.Session(), tf.Session(executor="reference")
            for s in (fast, slow):
                s.run(tf.global_variables_initializer())
            for _ in range(3):
                np.testing.assert_allclose(fast.run(y), slow.run(y), 1e-5, 1e-6)


def test_a_defun_of_several_types() -> None:
    from headrace.functions.defined_function import Defun

    @Defun()
    def twice(x: Any) -> Any:
        return x + x

    with tf.Session() as s:
        for value in [1.5, 2, 1.5, [1.5, 2.0], 3]:
            kind = np.asarray(value).dtype.type
            got = s.run(twice(tf.constant(value)))
            assert np.asarray(got).tolist() == (np.asarray(value, kind) * 2).tolist()


def test_large_variables_under_the_same_name(tmp_path: Path) -> None:
    """Left in their file until they are assigned: the file is the one that was checked."""
    path = str(tmp_path / "m")
    with tf.Graph().as_default(), tf.Session() as s:
        v = tf.get_variable("v", [200, 200])
        new, saver = tf.placeholder(tf.float32, [200, 200]), tf.train.Saver()
        for value in (1.0, 2.0, 3.0):
            s.run(v.assign(new), {new: np.full((200, 200), value)})
            saver.save(s, path)
            s.run(v.assign(new), {new: np.zeros((200, 200))})
            saver.restore(s, path)
            assert (s.run(v) == value).all()


def test_a_checkpoint_under_the_same_name(tmp_path: Path) -> None:
    """Written again with another value, another shape, in both formats."""
    for version in (tf.train.SaverDef.V2, tf.train.SaverDef.V1):
        path = str(tmp_path / f"m{version}")
        for value in ([1.0, 2.0], [3.0, 4.0], [5.0, 6.0, 7.0]):
            with tf.Graph().as_default(), tf.Session() as s:
                v = tf.Variable(value, name="v")
                s.run(v.initializer)
                saver = tf.train.Saver(write_version=version)
                saver.save(s, path)
                s.run(v.assign([0.0] * len(value)))
                saver.restore(s, path)
                assert s.run(v).tolist() == value
                assert tf.train.load_variable(path, "v").tolist() == value


def test_what_keys_leave_out_is_nothing_that_a_kernel_reads() -> None:
    """Keys of operations leave out attributes whose names begin with "_": no op declares such a
    one, and no kernel takes one.
    """
    assert len(ALL_OPS) > 500
    for opdef in ALL_OPS.values():
        assert not [name for name in opdef.attrs if name.startswith("_")], opdef.name
        assert not [name for name in _keyword_params(opdef.kernel) if name.startswith("_")]


def test_notes_of_operations_do_not_change_answers_of_shared_code() -> None:
    """Operations that differ in colocation or in the name of their gradient alone."""
    x = tf.placeholder(tf.float32, [3])

    @tf.RegisterGradient("TenTimesInCacheKeys")
    def ten_times(op: tf.Operation, grad: tf.Tensor) -> tf.Tensor:
        return 10 * grad

    with tf.Session() as s:
        for name in ("Tanh", "TenTimesInCacheKeys", "Tanh", "TenTimesInCacheKeys"):
            with tf.get_default_graph().gradient_override_map({"Tanh": name}):
                y = tf.tanh(x)
            (slope,) = tf.gradients(y, x)
            value, found = s.run([y, slope], {x: [0.0, 1.0, -2.0]})
            np.testing.assert_allclose(value, np.tanh([0.0, 1.0, -2.0]), rtol=1e-5)
            wanted = [10.0] * 3 if name != "Tanh" else 1 - value**2
            np.testing.assert_allclose(found, wanted, rtol=1e-5)
