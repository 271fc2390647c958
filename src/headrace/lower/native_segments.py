"""Consecutive small steps of a plan as one native function.

A program of small arrays spends its time between operations, not in them. So a run of consecutive
pure steps (element-wise ops, reductions, small products, softmax, gathers, concatenations, and what
computes shapes) becomes one compiled function for the shapes that come in: one call from Python, no
allocations but for results that later steps read.

The generated code of a plan (emit.py) has both ways:

    r0 = g0(S, f0, v1, v2)          # None: not compiled (yet), or not for these values
    if r0 is None:
        t0 = f0 @ v1                # the steps, one by one
        ...
    else:
        t7, t9 = r0

A segment is compiled when a session has run it often enough with inputs of the same shapes; no
clock is asked. Compiling takes half a second for a hundred steps, so another thread does it while
the session goes on with the steps; the function is taken after as many runs as take about twice
that (and waited for if it is not there yet, as on a busy machine).

Steps are cut into segments by static facts (segment_cuts.py): which ops they are, and that arrays
are small. If an op cannot be compiled for the shapes that come in, its segment
stays with NumPy for them, and ``why_not`` says which op it was.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.shapes import num_elements
from headrace.env import native_setting
from headrace.lower import segment_rules
from headrace.lower.fusion import Fused
from headrace.lower.native_groups import MAX_COUNTED, native_state, strided
from headrace.lower.segment_cuts import ShapeFacts, Step, nodes_of
from headrace.lower.segment_rules import Refused
from headrace.program.node_kernels import bound_kernel
from headrace.program.nodes import Node
from headrace.runtime.builds import Build

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.kernels.native.segment_code import Ref

__all__ = ["NativeSegment", "SegmentBinder"]

#: Elements of an array of a segment, once shapes are known.
MAX_BOUND = 1 << 20
#: Work before a session looks at shapes, and then with the same shapes before it compiles: runs of
#: ops, an op of larger arrays counting for more (``_weight``). Together about 40 ms of NumPy.
HOT_STEPS = 20_000
#: Elements of an array whose op takes as long again as the call of NumPy does.
ELEMENTS = 4096
#: Work (ops, as above) in the time in which another thread compiles an op, with room to spare.
WORK_OF_COMPILING = 2_000
#: Shapes that a session has kernels for, or counts, at once.
MAX_SHAPES = 32
#: In a run that is bound to shapes there is nothing to find out about them, and its steps take
#: longer than a call of NumPy: so much work is enough.
HOT_BOUND = 5_000
#: Multiplications of a library that take as long as an op of a segment.
PRODUCTS = 1 << 19

_numbers = itertools.count()


# binding ------------------------------------------------------------------------------------------


class SegmentBinder:
    """A segment for arrays of known shapes, under construction: what rules ask."""

    def __init__(self, segment: NativeSegment, given: Sequence[Any]) -> None:
        from headrace.kernels.native.segment_code import SegmentCode
        from headrace.kernels.native.segment_rows import compare

        self.code = SegmentCode()
        self.segment = segment
        self.env: dict[int, Any] = dict(zip(segment.inputs, map(np.asarray, given)))
        self.refs: dict[int, Ref] = {}
        self.constants: list[Array] = []
        self.is_known: set[int] = set()
        for k, value in enumerate(segment.inputs):
            array = self.env[value]
            self.refs[value] = self.code.operand("input", self._element_of(array), array.shape)
            if k in segment.of_shape:
                self.is_known.add(value)
                if array.size:
                    compare(self.code, self.refs[value], self._constant(array))

    @staticmethod
    def _element_of(array: Array) -> str:
        from headrace.kernels.native.ir_values import ELEMENT_OF_DTYPE

        found = ELEMENT_OF_DTYPE.get(array.dtype.name)
        if found is None:
            raise Refused(f"{array.dtype.name} has no native code")
        return found

    def _array(self, value: int) -> Any:
        found = self.env.get(value)
        if found is None:
            found = self.env[value] = self.segment.constants[value]
            self.is_known.add(value)
        return found

    def known(self, value: int) -> Any:
        """A value that shapes determine."""
        array = self._array(value)
        if value not in self.is_known:
            raise Refused("a shape or an axis that is not known")
        return array

    def shape(self, value: int) -> tuple[int, ...]:
        return tuple(self._array(value).shape)

    def element(self, value: int) -> str:
        return self._element_of(self._array(value))

    def ref(self, value: int) -> Ref:
        """Where a value lies."""
        found = self.refs.get(value)
        if found is None:
            found = self.refs[value] = self._constant(self._array(value))
        return found

    def number(self, value: float, element: str) -> Ref:
        """A constant of rank 0."""
        return self._constant(np.asarray(value, np.float64 if element == "f64" else np.float32))

    def zero(self, element: str) -> Ref:
        """The number 0 of a type."""
        from headrace.kernels.native.ir_values import ELEMENT_OF_DTYPE

        dtype = next(d for d, e in ELEMENT_OF_DTYPE.items() if e == element)
        return self._constant(np.zeros((), dtype))

    def _constant(self, array: Any) -> Ref:
        array = np.ascontiguousarray(array).reshape(array.shape).copy()
        self.constants.append(array)
        return self.code.operand("constant", self._element_of(array), array.shape)

    # steps --------------------------------------------------------------------------------------
    def step(self, node: Node) -> None:
        if node.outputs and self.refs.keys() >= set(node.outputs):
            return  # several groups compute it (fusion.py)
        inputs = [self._array(i) for i in node.inputs]
        made = self._computed(node, inputs)
        for value, array in zip(node.outputs, made):
            self.env[value] = array
        if node.opdef.traits.of_shape or all(i in self.is_known for i in node.inputs):
            self.is_known.update(node.outputs)
            return
        data = [a for a, i in zip(inputs, node.inputs) if i not in self.is_known]
        if any(a.size == 0 for a in (*data, *made)):
            raise Refused("an array without elements")
        if any(a.size > MAX_BOUND for a in made):
            raise Refused("a large array")
        for k in node.opdef.traits.known_inputs:
            if -len(node.inputs) <= k < len(node.inputs):
                self.known(node.inputs[k])
        try:
            refs = self._refs(node, inputs, made)
        except ValueError as error:
            raise Refused(str(error)) from None
        self.refs.update(zip(node.outputs, refs))

    def _computed(self, node: Node, inputs: Sequence[Any]) -> list[Any]:
        made = bound_kernel(node)(*inputs)
        return [np.asarray(a) for a in (made if len(node.outputs) > 1 else (made,))]

    def _refs(self, node: Node, inputs: Sequence[Any], made: Sequence[Any]) -> list[Ref]:
        name = node.opdef.name
        if node.opdef.traits.rearranges:
            return self._rearranged(node, inputs, made)
        rule = segment_rules.RULES.get(name)
        if rule is not None:
            return rule(self, node)
        from headrace.kernels.native.element_rules import refusal

        refs = [self.ref(i) for i in node.inputs]
        attributes = segment_rules.native_attributes(node)
        why = refusal(name, [r.element for r in refs], dict(attributes))
        if why:
            raise Refused(why)
        element, shape = self._element_of(made[0]), made[0].shape
        return [self.code.elements(name, refs, element, shape, attributes)]

    def _rearranged(self, node: Node, inputs: Sequence[Any], made: Sequence[Any]) -> list[Ref]:
        """The places of the elements of an op that moves them: its kernel, run on their numbers."""
        data = [k for k, i in enumerate(node.inputs) if i not in self.is_known]
        if len(data) != 1:
            raise Refused("a shape that is not known")
        source = self.code.contiguous(self.ref(node.inputs[data[0]]))
        numbered = list(inputs)
        numbered[data[0]] = np.arange(source.size).reshape(source.shape)
        moved = self._computed(node, numbered)
        return [_affine(source, m, a) for m, a in zip(moved, made)]

    # the function -------------------------------------------------------------------------------
    def finish(self) -> Callable[..., Any]:
        from headrace.kernels.native.array_calls import Argument, ArrayCall
        from headrace.kernels.native.llvm_library import load

        outputs, parts, names = [], [], []
        kept: dict[str, Any] = {"empty": np.empty}
        for n, value in enumerate(self.segment.outputs):
            array = self.env[value]
            if value in self.is_known:
                kept[f"k{n}"] = np.array(array)
                parts.append(f"k{n}.copy()" if array.ndim else f"k{n}[()]")
                continue
            self.code.give(self.ref(value))
            kept[f"d{n}"] = array.dtype
            outputs.append(f"o{n} = empty({array.shape}, d{n})")
            names.append(f"o{n}")
            parts.append(f"o{n}" if array.ndim else f"o{n}[()]")
        text, scratch = self.code.source()
        memory = np.empty(scratch + 64, np.uint8)
        start = -memory.__array_interface__["data"][0] % 64
        given = [self.env[v] for v in self.segment.inputs]
        given += [self.env[v] for v in self.segment.outputs if v not in self.is_known]
        call = ArrayCall(
            load().compile(text),
            "segment",
            [Argument(a.shape, a.dtype) for a in given],
            [*self.constants, memory[start:]],
        )
        kept |= {"call": call.function, "owner": call}
        arguments = ", ".join(f"i{n}" for n in range(len(self.segment.inputs)))
        passed = ", ".join([f"i{n}" for n in range(len(self.segment.inputs))] + names)
        lines = [
            *outputs,
            f"if call({passed}): return None",
            f"return ({''.join(p + ', ' for p in parts)})",
        ]
        body = "\n".join(f"  {line}" for line in lines)
        source = f"def make({', '.join(kept)}):\n def run({arguments}):\n{body}\n return run\n"
        namespace: dict[str, Any] = {}
        exec(compile(source, "<headrace segment>", "exec"), namespace)
        made: Callable[..., Any] = namespace["make"](*kept.values())
        vars(made)["owner"] = call
        return made


def _affine(source: Ref, moved: Any, made: Any) -> Ref:
    """The array that has these numbers of elements of a contiguous array."""
    if moved.shape != made.shape or not moved.size:
        raise Refused("elements that cannot be followed")
    start = int(moved.flat[0])
    strides = []
    for axis, d in enumerate(moved.shape):
        at = [0] * moved.ndim
        at[axis] = 1
        strides.append(int(moved[tuple(at)]) - start if d > 1 else 0)
    expected = np.full(moved.shape, start)
    for axis, (d, s) in enumerate(zip(moved.shape, strides)):
        expected += (np.arange(d) * s).reshape((d,) + (1,) * (moved.ndim - axis - 1))
    if not np.array_equal(expected, moved):
        raise Refused("elements that lie irregularly")
    found = source._replace(shape=moved.shape, offset=source.offset + start, strides=tuple(strides))
    return found._replace(strides=None) if found.is_contiguous else found


# runs ---------------------------------------------------------------------------------------------


def _nothing(*inputs: object) -> None:
    return None


def _with_copies(bound: Callable[..., Any], inputs: Sequence[Any]) -> Callable[..., Any]:
    """The function for inputs that lie as these do: views of others' memory (of a Split, a Slice)
    are copied, which costs less than the steps one by one.
    """
    views = strided(inputs)
    if not views:
        return bound

    def run(*given: Any) -> Any:
        copies = list(given)
        for k in views:
            copies[k] = np.asarray(copies[k], order="C")
        return bound(*copies)

    return run


class _Bindings:
    """What a session has compiled of a segment: by the inputs' shapes, a function or a count."""

    __slots__ = ("current", "table")

    def __init__(self) -> None:
        self.current: Callable[..., Any] = _nothing
        self.table: dict[Any, Any] = {}


class _Awaited:
    """A function that another thread compiles, and the runs until it is taken."""

    __slots__ = ("build", "runs")

    def __init__(self, build: Build[Any], runs: int) -> None:
        self.build, self.runs = build, runs


class NativeSegment:
    """Steps of a plan as ``segment(state, *inputs)``: the outputs, or None to run the steps."""

    __slots__ = (
        "beside",
        "constants",
        "hot",
        "inputs",
        "number",
        "of_shape",
        "outputs",
        "steps",
        "unsized",
        "why_not",
        "work",
    )

    def __init__(
        self,
        steps: Sequence[Step],
        facts: ShapeFacts,
        is_read_later: Callable[[int], bool],
        products: int | None = None,
    ) -> None:
        """``products``: the multiplications of a run that is bound to shapes, beside the steps."""
        self.steps = tuple(steps)
        self.hot = HOT_STEPS if products is None else HOT_BOUND
        self.beside = None if products is None else products // PRODUCTS
        self.constants: dict[int, Any] = {}
        made: dict[int, None] = {}
        wanted: dict[int, None] = {}
        structural = facts.structural
        for s in self.steps:
            nodes, given, results = (
                (s.nodes, s.inputs, (s.output,))
                if isinstance(s, Fused)
                else ((s,), s.inputs, s.outputs)
            )
            for node in nodes:
                for i in node.inputs:
                    if i in made or i in wanted:
                        continue
                    if i in structural:
                        self.constants[i] = facts.program.constants[i]
                    elif i in given:
                        wanted[i] = None
            for o in results:
                made[o] = None
        self.inputs = tuple(wanted)
        #: Inputs that follow from shapes: their values are part of the code.
        self.of_shape = tuple(k for k, v in enumerate(self.inputs) if v in facts.of_shape)
        self.outputs = tuple(v for v in made if is_read_later(v))
        values = facts.program.values
        sizes = [
            num_elements(values[v].shape)
            for s in self.steps
            for n in nodes_of(s)
            for v in n.outputs[:1]
        ]
        known = [n for n in sizes if n is not None]
        #: Ops whose results have sizes that are known only when they run, and the work of the rest.
        self.unsized = len(sizes) - len(known)
        self.work = sum(1 + n // ELEMENTS for n in known)
        self.number = ("segment", next(_numbers))
        self.why_not = "it has not run often enough"

    def reason(self, counts: dict[Any, Any]) -> str:
        """Why a session with these counts does not run it natively; empty if it does."""
        found = counts.get(self.number, 0)
        if type(found) is _Bindings and found.current is not _nothing:
            return ""
        return native_state() or self.why_not

    def __call__(self, state: Any, *inputs: Any) -> Any:
        found = state.hot.get(self.number)
        if type(found) is _Bindings:
            made = found.current(*inputs)
            return made if made is not None else self._bind_again(found, inputs)
        return self._count(state.hot, found or 0, inputs)

    def _weight(self, inputs: Sequence[Any]) -> int:
        """The work of a run: a function of its ops and their sizes."""
        if not self.unsized:
            return self.work
        largest = max([getattr(x, "size", 1) for x in inputs], default=1)
        return self.work + self.unsized * (1 + largest // ELEMENTS)

    def _runs_to_compile(self, inputs: Sequence[Any]) -> int:
        """Runs that take as long as compiling in another thread does."""
        ops = sum(len(nodes_of(s)) for s in self.steps)
        return -(-WORK_OF_COMPILING * ops // (self._weight(inputs) + (self.beside or 0)))

    def _count(self, counts: dict[Any, Any], done: int, inputs: Sequence[Any]) -> Any:
        setting = native_setting()
        if len(counts) >= MAX_COUNTED:
            counts.clear()
        if setting == "always" or (self.beside is not None and setting != "off"):
            counts[self.number] = found = _Bindings()
            return self._bind_again(found, inputs)
        done += self._weight(inputs)
        hot = done >= HOT_STEPS and setting != "off"
        counts[self.number] = _Bindings() if hot else done
        return None

    def _bind_again(self, found: _Bindings, inputs: Sequence[Any]) -> Any:
        """Inputs that the last function is not for."""
        try:
            signature = tuple([x.shape for x in inputs])
            if self.of_shape:
                signature += tuple([inputs[k].tobytes() for k in self.of_shape])
        except AttributeError:
            return None
        bound = found.table.get(signature, 0)
        if type(bound) is int:
            if len(found.table) >= MAX_SHAPES and signature not in found.table:
                found.table.clear()
            if native_setting() == "always":
                bound = found.table[signature] = self._bind(inputs)
            else:
                bound = found.table[signature] = bound + self._weight(inputs)
                if bound >= self.hot:
                    copies = [np.array(x) for x in inputs]  # (buffers are used again)
                    build = Build(lambda: self._bind(copies))
                    found.table[signature] = _Awaited(build, self._runs_to_compile(inputs))
                return None
        if type(bound) is _Awaited:
            bound.runs -= 1
            if bound.runs > 0:
                return None
            bound = found.table[signature] = bound.build.result()
        if bound is None:
            return None
        found.current = _with_copies(bound, inputs)
        return found.current(*inputs)

    def _bind(self, inputs: Sequence[Any]) -> Callable[..., Any] | None:
        self.why_not = native_state()
        if self.why_not:
            return None
        where = ""
        try:
            binder = SegmentBinder(self, inputs)
            for s in self.steps:
                for node in nodes_of(s):
                    where = f"{node.op.name} ({node.opdef.name}): "
                    binder.step(node)
            where = ""
            return binder.finish()
        except Refused as reason:
            self.why_not = f"{where}{reason}"
        except RuntimeError as error:
            self.why_not = f"LLVM refused it: {error}"
        except Exception as error:  # a kernel that fails for these inputs says so when it runs
            self.why_not = f"{where}{type(error).__name__}: {error}"
        return None
