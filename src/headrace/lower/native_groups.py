"""From fused steps of a plan to native kernels: structure, hotness, and how shapes are bound.

A fused step is run by NumPy until it has proved hot: the work of its runs, counted in elements and
operations for each session and structure, has passed ``HOT_WORK``. Then its kernel is compiled, or
taken from those that another plan, or another process, has compiled
(kernels/native/group_kernels.py). Which run switches is a function of the program: no clock is
asked, and another session begins to count anew.

From then on a run takes a kernel for the shapes of its inputs: the step's inputs have the result's
shape, or are numbers, rows or columns of it. Other shapes, arrays that are not contiguous, and
everything else that is unusual stay with NumPy; ``why_not`` says so.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.core.dtypes import DType
from headrace.core.shapes import num_elements
from headrace.env import native_setting
from headrace.lower.fusion import Fused
from headrace.program.constants import ExactFloat
from headrace.program.nodes import Program
from headrace.runtime import buffers

if TYPE_CHECKING:
    from headrace.core.annotations import Array


__all__ = [
    "HOT_WORK",
    "NativeStep",
    "compiler_status",
    "extents_of",
    "group_of",
    "native_state",
]
__all__ += ["native_expected", "native_step", "reason_alone", "reason_fused", "strided"]

#: Work after which a step is compiled: elementary operations on elements, about 25 ms of NumPy.
HOT_WORK = 50_000_000
#: What a transcendental function costs NumPy, in elementary operations.
HEAVY_COST = 8
#: What an operation costs beside its elements.
COST_OF_CALL = 1000
#: Shapes that a step is bound to at once.
MAX_SHAPES = 64
#: Steps that a session counts the work of.
MAX_COUNTED = 4096
#: Elementary operations that a thread does at least.
GRAIN_WORK = 1 << 19

#: Structures that have a number.
MAX_KNOWN = 1 << 16
#: Elements of a view with gaps that is copied for a kernel.
MAX_COPIED = 1 << 20

_BITS = np.dtype(np.uint16)
_numbers = itertools.count()


def native_state() -> str:
    """Why no step is native; empty if steps may be."""
    if native_setting() == "off":
        return "switched off by HEADRACE_NATIVE"
    from headrace.kernels.native.llvm_library import why_not

    return why_not()


@functools.cache
def _is_installed() -> bool:
    try:
        return find_spec("llvmlite") is not None and find_spec("cffi") is not None
    except (ImportError, ValueError):
        return False


def native_expected() -> bool:
    """Whether hot steps will probably be compiled; loads nothing."""
    return native_setting() != "off" and _is_installed()


def compiler_status() -> str:
    """The compiler's name, or why there is none."""
    if native_setting() == "off":
        return "switched off by HEADRACE_NATIVE"
    from headrace.kernels.native.llvm_library import status

    return status()


def reason_alone(op: str) -> str:
    """Why an op that is a step of its own is not native."""
    from headrace.kernels.native.element_rules import RULES

    if op in RULES:
        return "it is not in a group"
    return f"{op} has no native code"


def reason_fused(step: Fused, program: Program, counts: dict[int, Any]) -> str:
    """Why a session with these counts does not run a step natively; empty if it does."""
    described = describe(step, program)
    return _reason(described, counts.get(_number_of(described), 0))


def _reason(described: Description, done: int | bool) -> str:
    """Why a step is not native after work of ``done``; empty if it is (True)."""
    if done is True:
        return ""
    group = native_state() or group_of(described)
    if isinstance(group, str):
        return group
    return not_hot_yet(done)


def not_hot_yet(done: int) -> str:
    """The reason of a step that has done so much work."""
    return f"it has not proved hot yet ({min(99, 100 * done // HOT_WORK)} %)"


class Description(NamedTuple):
    """A fused step without its graph: what its code depends on, and nothing else.

    ``members`` are (op, places of its inputs, dtype, attributes), places as in ``Group``.
    """

    inputs: tuple[str, ...]
    members: tuple[tuple[str, tuple[int, ...], str, tuple[tuple[str, Any], ...]], ...]
    rank: int
    reduction: tuple[str, bool, bool] | None = None  # op, over everything, keep_dims
    whole: tuple[tuple[int, bool], ...] = ()  # inputs that may not broadcast; whether numbers may


def describe(step: Fused, program: Program) -> Description:
    """The description of a step; types are NumPy's names."""
    if step.reduces:
        last = step.nodes[-1]
        inner = describe(Fused(step.nodes[:-1], step.inputs), program)
        axes = {int(a) % inner.rank for a in program.constants[last.inputs[1]].reshape(-1)}
        everything = len(axes) == inner.rank
        kind = (last.opdef.traits.reduces, everything, bool(last.attrs["keep_dims"]))
        return inner._replace(reduction=kind)
    places = {value: n for n, value in enumerate(step.inputs)}
    members = []
    whole: dict[tuple[int, bool], None] = {}
    for node in step.nodes:
        name = node.opdef.name
        attributes = [(a, _described(node.attrs[a])) for a in node.opdef.traits.native_attrs]
        inputs = tuple(places[i] for i in node.inputs)
        if node.opdef.traits.same_shapes:
            given = (k for k in inputs if k < len(step.inputs))
            whole.update({(k, node.opdef.traits.takes_numbers): None for k in given})
        dtype = program.values[node.outputs[0]].dtype.name
        members.append((name, inputs, dtype, tuple(attributes)))
        places[node.outputs[0]] = len(places)
    rank = len(program.values[step.output].shape or ())
    types = tuple(program.values[i].dtype.name for i in step.inputs)
    return Description(types, tuple(members), rank, whole=tuple(whole))


def _described(attribute: object) -> Any:
    """An attribute as part of a key: attributes that compare equal may be compiled differently."""
    if isinstance(attribute, DType):
        return attribute.name
    return ExactFloat(attribute) if isinstance(attribute, float) else attribute


def group_of(described: Description) -> Any:
    """The structure of a step (a Group), or why it cannot be compiled (a str)."""
    from headrace.kernels.native.group_kernels import Group, Member, refuses
    from headrace.kernels.native.ir_values import ELEMENT_OF_DTYPE

    types = [*described.inputs, *(dtype for _, _, dtype, _ in described.members)]
    for dtype in types:
        if dtype not in ELEMENT_OF_DTYPE:
            return f"{dtype} has no native code"
    members = []
    for op, inputs, dtype, attributes in described.members:
        named = tuple((n, ELEMENT_OF_DTYPE.get(v, v)) for n, v in attributes)
        members.append(Member(op, inputs, ELEMENT_OF_DTYPE[dtype], named))
    group = Group(tuple(ELEMENT_OF_DTYPE[t] for t in described.inputs), tuple(members))
    return refuses(group) or group


_known: dict[Description, int] = {}


def _number_of(described: Description) -> int:
    """The same small number for the same structure."""
    if len(_known) >= MAX_KNOWN:
        _known.clear()
    return _known.setdefault(described, next(_numbers))


# shapes -----------------------------------------------------------------------------------------


class Extents(NamedTuple):
    """How inputs lie in the result: ``names`` as in element_loops.py."""

    shape: tuple[int, ...]
    names: tuple[str, ...]
    rows: int
    columns: int  # 0: elements are not cut into rows


def extents_of(given: Sequence[tuple[int, ...]]) -> Extents | None:
    """How inputs of these shapes broadcast; None if not as numbers, rows and columns."""
    try:
        shape = np.broadcast_shapes(*given)
    except ValueError:
        return None
    size = int(np.prod(shape, dtype=np.int64))
    if not size:
        return None
    rank = len(shape)
    full = [(1,) * (rank - len(s)) + tuple(s) for s in given]
    if all(s == shape or max(s, default=1) == 1 for s in full):
        names = ["full" if s == shape else "scalar" for s in full]
        return Extents(shape, tuple(names), size, 0)
    for cut in range(1, rank):
        names = [_extent(s, shape, cut) for s in full]
        if "" not in names:
            rows = int(np.prod(shape[:cut], dtype=np.int64))
            return Extents(shape, tuple(names), rows, size // rows)
    return None


def _extent(given: tuple[int, ...], shape: tuple[int, ...], cut: int) -> str:
    if given == shape:
        return "full"
    above, below = given[:cut], given[cut:]
    if max(given) == 1:
        return "scalar"
    if max(above) == 1 and below == shape[cut:]:
        return "row"
    if max(below) == 1 and above == shape[:cut]:
        return "column"
    return ""


# runs -------------------------------------------------------------------------------------------


class _Bound(NamedTuple):
    """A kernel for arrays of known shapes."""

    kernel: Any
    shape: tuple[int, ...]
    sizes: Any
    items: int
    grain: int
    threaded: bool


#: For shapes that are left to NumPy.
REFUSED = _Bound(None, (), None, 0, 0, False)


class NativeStep:
    """A fused step of a plan. ``numpy(*inputs)`` computes it otherwise.

    Called with the session's state and the inputs. ``own`` is the input whose buffer may be
    overwritten.
    """

    __slots__ = (
        "_bound",
        "_dtypes",
        "_group",
        "_setting",
        "_views",
        "cost",
        "described",
        "dtype",
        "number",
        "numpy",
        "own",
        "size",
        "why_not",
    )

    def __init__(
        self, step: Fused, program: Program, own: int | None, numpy: Callable[..., Any]
    ) -> None:
        self.described = describe(step, program)
        self.number = _number_of(self.described)
        self.own, self.numpy = own, numpy
        self.cost = sum(HEAVY_COST if n.opdef.traits.heavy else 1 for n in step.nodes)
        # what the members make, if that is known: inputs may all be broadcast
        made = step.nodes[-2] if step.reduces else step.nodes[-1]
        self.size = num_elements(program.values[made.outputs[0]].shape) or 0
        self.dtype = program.values[step.output].dtype.np_dtype
        self._dtypes = [program.values[i].dtype.np_dtype for i in step.inputs]
        views = [d.kind == "V" for d in (*self._dtypes, self.dtype)]
        self._views = views if True in views else []
        self._group: Any = None
        self._bound: dict[Any, _Bound] = {}
        self._setting = native_setting()
        self.why_not = "it has not proved hot yet"

    def __call__(self, state: Any, *inputs: Any) -> Any:
        if self.is_hot(state.hot, inputs):
            found = self.run(inputs, self.own)
            if found is not None:
                return found
        return self.numpy(*inputs)

    def is_hot(self, counts: dict[int, Any], inputs: tuple[Any, ...]) -> bool:
        """Whether this run is native; a run before that is counted in ``counts``."""
        hot = counts.get(self.number, 0)
        return hot if type(hot) is bool else self._count(counts, inputs)

    def _count(self, counts: dict[int, Any], inputs: tuple[Any, ...]) -> bool:
        """Count a run; True if it is the one from which on the kernel is used."""
        elements = max((getattr(x, "size", 1) for x in inputs), default=1)
        elements = max(elements, self.size)
        done = counts.get(self.number, 0) + self.cost * (elements + COST_OF_CALL)
        setting = self._setting
        if setting == "hot" and done < HOT_WORK:
            if len(counts) >= MAX_COUNTED:
                counts.clear()
            counts[self.number] = done
            return False
        is_native = setting != "off" and self.group() is not None
        counts[self.number] = is_native
        return is_native

    def group(self) -> Any:
        """The step's structure, looked up once; None if it stays with NumPy."""
        if self._group is None:
            self.why_not = native_state()
            found: Any = self.why_not or group_of(self.described)
            if isinstance(found, str):
                self.why_not, self._group = found, False
            else:
                self.why_not, self._group = "", found
        return self._group or None

    def run(self, inputs: Sequence[Any], own: int | None = None, out: Any = None) -> Any:
        """The native result, in ``out`` if that is given; None if this run is NumPy's."""
        signature = tuple([getattr(x, "shape", ()) for x in inputs])
        bound = self._bound.get(signature)
        if bound is None:
            bound = self._bind(signature)
        if bound is REFUSED:
            return None
        for x, dtype in zip(inputs, self._dtypes):
            if x.dtype != dtype:
                return None
        is_given = out is not None
        if not is_given:
            out = None if own is None else inputs[own]
            if out is None or out.shape != bound.shape or not out.flags.writeable:
                out = buffers.empty(bound.shape, self.dtype)
        if bound.threaded:
            _hold()
        arrays = [*inputs, out]
        if self._views:  # bfloat16 has no buffers
            arrays = [np.asarray(x).view(_BITS) if v else x for x, v in zip(arrays, self._views)]
        try:
            operands = bound.kernel.operands(arrays)
        except ValueError:  # an array that is not contiguous
            is_usable = out.flags.c_contiguous
            if not strided(inputs) or (is_given and not is_usable):
                return None
            return self.run(_copied(inputs), None, out if is_usable else None)
        bound.kernel.run_bound(operands, bound.sizes, bound.items, bound.grain)
        return out

    def _bind(self, signature: tuple[tuple[int, ...], ...]) -> _Bound:
        """The kernel for inputs of these shapes."""
        if len(self._bound) >= MAX_SHAPES:
            self._bound.clear()
        made = self._bound[signature] = self._kernel(extents_of(signature), signature)
        return made

    def _kernel(self, extents: Extents | None, given: Sequence[tuple[int, ...]]) -> _Bound:
        from headrace.kernels.native.group_kernels import body_cost, group_kernel

        group = self.group()
        if group is None or extents is None or not self._fits(extents, given):
            if group is not None:
                self.why_not = f"inputs of shapes {', '.join(map(str, given))}"
            return REFUSED
        try:
            kernel = group_kernel(group, extents.names)
        except RuntimeError as error:
            self.why_not = f"LLVM refused it: {error}"
            return REFUSED
        columns = extents.columns or 1
        grain = max(1, GRAIN_WORK // (body_cost(group) * columns))
        grain = -(-grain // 64) * 64 if not extents.columns else grain
        threaded = extents.rows >= 2 * grain
        return _Bound(kernel, extents.shape, kernel.sizes([columns]), extents.rows, grain, threaded)

    def _fits(self, extents: Extents, given: Sequence[tuple[int, ...]]) -> bool:
        """The result has the rank that the plan expects, and no op that does not broadcast does."""
        if len(extents.shape) != self.described.rank:
            return False
        return all(
            extents.names[k] == "full" or (may_be_number and given[k] == ())
            for k, may_be_number in self.described.whole
        )


class CountedStep:
    """A step of a bound run, as a function of its inputs: it counts its runs itself."""

    __slots__ = ("counts", "native", "output")

    def __init__(self, native: NativeStep, output: int) -> None:
        self.native, self.output = native, output
        self.counts: dict[int, Any] = {}

    def __call__(self, *inputs: Any) -> Any:
        native = self.native
        if native.is_hot(self.counts, inputs):
            found = native.run(inputs)
            if found is not None:
                return found
        return native.numpy(*inputs)

    def reason(self) -> str:
        """Why it is not native; empty if it is."""
        return _reason(self.native.described, self.counts.get(self.native.number, 0))


class StepInto(CountedStep):
    """The same as a function of its inputs and of the array for its result, the last one."""

    __slots__ = ()

    def __call__(self, *arrays: Any) -> None:
        native = self.native
        if (
            native.is_hot(self.counts, arrays)
            and native.run(arrays[:-1], None, arrays[-1]) is not None
        ):
            return
        native.numpy(*arrays)


class NativeReduction(NativeStep):
    """A fused step that ends in a reduction."""

    __slots__ = ()

    def run(self, inputs: Sequence[Any], own: int | None = None, out: Array | None = None) -> Any:
        signature = tuple([getattr(x, "shape", ()) for x in inputs])
        bound = self._bound.get(signature)
        if bound is None:
            bound = self._bind(signature)
        if bound is REFUSED or any(x.dtype != d for x, d in zip(inputs, self._dtypes)):
            return None
        assert self.described.reduction is not None
        name, everything, keep = self.described.reduction
        parts = np.empty(bound.items if everything else bound.shape[:-1], self.dtype)
        try:
            operands = bound.kernel.operands([*inputs, parts])
        except ValueError:  # an array that is not contiguous
            return self.run(_copied(inputs)) if strided(inputs) else None
        if bound.threaded:
            _hold()
        bound.kernel.run_bound(operands, bound.sizes, bound.items, bound.grain)
        if not everything:
            if name == "mean":
                parts /= bound.shape[-1]
            return parts[..., None] if keep else parts
        total = np.add.reduce(parts)
        if name == "mean":
            total = total / math.prod(bound.shape)
        return np.full((1,) * len(bound.shape), total, self.dtype) if keep else total

    def _kernel(self, extents: Extents | None, given: Sequence[tuple[int, ...]]) -> _Bound:
        from headrace.kernels.native.group_kernels import body_cost
        from headrace.kernels.native.group_reductions import BLOCK, reduction_kernel

        group, reduction = self.group(), self.described.reduction
        assert reduction is not None
        if group is None or extents is None or not self._fits(extents, given):
            return REFUSED
        shape, length = extents.shape, extents.columns or extents.shape[-1]
        flat = reduction[1] and not extents.columns
        if not reduction[1] and length != shape[-1]:
            return REFUSED
        try:
            kernel = reduction_kernel(group, extents.names, reduction[0], flat)
        except RuntimeError as error:
            self.why_not = f"LLVM refused it: {error}"
            return REFUSED
        size = math.prod(shape)
        items = -(-size // BLOCK) if flat else size // length
        work = body_cost(group) * (BLOCK if flat else length)
        grain = max(1, GRAIN_WORK // work)
        sizes = kernel.sizes([size if flat else length])
        return _Bound(kernel, shape, sizes, items, grain, items >= 2 * grain)


def strided(inputs: Sequence[Any]) -> list[int]:
    """The places of inputs that are views with gaps; empty if one is too large to be copied."""
    found = [k for k, x in enumerate(inputs) if not x.flags.c_contiguous]
    return found if all(inputs[k].size <= MAX_COPIED for k in found) else []


def _copied(inputs: Sequence[Any]) -> list[Any]:
    return [np.asarray(x, order="C") for x in inputs]


def native_step(
    step: Fused, program: Program, own: int | None, numpy: Callable[..., Any]
) -> NativeStep:
    """The native form of a fused step, of either kind."""
    kind = NativeReduction if step.reduces else NativeStep
    return kind(step, program, own, numpy)


def _hold() -> None:
    """A run with large arrays takes denormals for zero, on this thread as on the others."""
    from headrace.kernels.numpy.openblas import hold_blas

    hold_blas()
