"""Select and storage where the shapes of the feeds are known, a step at a time.

A step whose results are known before the run needs no line: stages BUILD and SHAPE are computed
here, once, stage WRITE when the version stamp of a variable has changed. A view of memory that
stays where it is is made once. A step that makes a fixed value becomes the execution of a primitive
(select_primitives.py), a NumPy function with ``out=``, or, for all other ops, their kernel and a
copy of what it gives.

How an array lies decides which primitive takes it, so a step's results are placed in memory before
the next step is selected. The instructions that come out are complete, their lines refer to values
by number; the emitter (emit.py) names the values and writes the function.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import shapes
from headrace.kernels.numpy.openblas import hold_blas
from headrace.lower.bound_draws import Draw
from headrace.lower.bound_segments import parts_of, wrap
from headrace.lower.bound_values import (
    FIXED,
    KNOWN,
    MOVING,
    REFERENCE,
    STEADY,
    BoundValues,
    is_view,
    look_of,
    outputs_of,
)
from headrace.lower.fused_code import make_fused
from headrace.lower.fusion import Fused
from headrace.lower.listing import CALLERS, MEMORY, NEW, VIEW, Bound, Instr, Stage
from headrace.lower.listing import MOVING as MOVED
from headrace.lower.native_groups import CountedStep, native_step
from headrace.lower.plan import Plan
from headrace.lower.stage_split import step_stage
from headrace.lower.storage_arena import NotBound
from headrace.lower.storage_results import Result
from headrace.program.binding_times import is_draw
from headrace.program.node_kernels import bound_kernel
from headrace.program.nodes import Node, VariableInfo
from headrace.runtime import core_contention

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.kernels.onednn.primitive import Call
    from headrace.lower.native_kernels import Warming
    from headrace.lower.renewal import Renewal

__all__ = ["FLOAT32", "TAKEN", "Binder", "bind_steps", "is_plain"]

#: Results of fewer elements are copied for the caller, which takes less time than to say where they
#: are to lie.
MAX_COPIED_ELEMENTS = 1024
#: Multiplications from which binding a training step pays.
MIN_WORK = 1 << 20
#: Multiplications in products, to each element of a large result that a kernel makes in memory of
#: its own, from which binding a training step pays.
PRODUCTS_PER_ELEMENT = 128
#: Bytes from which a kernel's result is left where it is instead of being copied.
MIN_BYTES_LEFT_IN_PLACE = 1 << 16

FLOAT32 = np.dtype(np.float32)
#: What a binder answers when it has bound a step; every other text says why it has not.
TAKEN = ""

BindStep = Callable[["Binder", "Node | Fused"], str]


class Binder(BoundValues):
    """The state of the work, for those who bind steps (select_primitives.py)."""

    def __init__(
        self,
        plan: Plan,
        count: int,
        variables: tuple[VariableInfo, ...],
        arrays: Sequence[Any],
        kept: Sequence[Any],
        feeds: Sequence[Any],
    ) -> None:
        super().__init__(plan, count, len(kept))
        self.variables = variables
        #: The values of all variables: lines have names for them.
        self.of_variables = {v for i in self.program.variables for v in (i.start, i.current)}
        self.params.update(
            empty=np.empty, float32=np.float32, fail=_fail, fail_for_nan=_fail_for_nan
        )
        self.steady: list[tuple[Callable[..., Any], Node | Fused]] = []
        self.renewals: list[Callable[[], None]] = []
        self.calls: list[Any] = []
        self.work = 0  # multiplications in products
        self.elsewhere = 0  # elements of large results that kernels make
        self.warming: Warming | None = None  # of the step that is being bound, if that is compiled
        self.fresh: dict[int, str] = {}  # results that are written where the caller gets them
        #: By value, how many steps read it in an order of their own (packed weights), which is made
        #: while no write can come between.
        self.packs: Counter[int] = Counter()
        self.given: list[int] = []  # results that are not copied for the caller
        self.sums: dict[int, int] = {}  # sums that a product has made already
        #: Values that are NaN where a relu of minus infinity should be 0, with those that they were
        #: made of.
        self.doubtful: dict[int, frozenset[int]] = {}
        # packed weights and the like, by the step that they belong to
        self.alive: dict[Any, Any] = {}
        self._take(arrays, kept, feeds)

    def _take(self, arrays: Sequence[Any], kept: Sequence[Any], feeds: Sequence[Any]) -> None:
        """The first instruction: variables as they are expected, feeds into their places."""
        given = len(self.program.feeds) - len(kept)
        self.begin("feeds", self.program.feeds[:given]).implementation = "copy"
        if self.trains:
            # a training step changes what the processor and BLAS are set to, as every large run
            # does (kernels/numpy/openblas.py)
            self.emit(f"{self.param('hold', hold_blas)}()")
        else:
            # what holds BLAS looks at the machine when it lets go: other runs do it themselves, or
            # the library's threads would spin beside a neighbour forever
            self.emit(f"{self.param('tick', core_contention.tick)}()")
        self.n_steady = sum(not v.written for v in self.variables)
        self.watched = tuple(v.key for v in self.variables[: self.n_steady])
        self.variable_shapes = [look_of(v) for v in arrays[: self.n_steady]]
        for v, array in zip(self.variables, arrays):
            for value in (v.start,) if v.written else (v.start, v.current):
                self.env[value] = array
                self.of_variable[value] = True
                if v.written:
                    self.kinds[value] = MOVING
                    self.emit(f"if {self.name(value)}.shape != {array.shape}: fail()")
        for value, array in zip(self.program.feeds[given:], kept):
            self.env[value], self.of_variable[value] = array, False
        self.kept_values = self.program.feeds[given:]
        self.kept_shapes = [look_of(v) for v in kept]
        for n, (value, array) in enumerate(zip(self.program.feeds[:given], feeds)):
            if array.dtype.kind not in "fiub":
                raise NotBound("a feed of another type")
            if array.nbytes >= MIN_BYTES_LEFT_IN_PLACE:
                self._take_feed(value, f"f{n}", array)
                continue
            room = self.reserve([value], array.shape, array.dtype)
            room[...] = array
            self.place(value, room)
            self.emit(f"{self.param('copyto', np.copyto)}({self.name(value)}, f{n})")
        self.n_feeds = given

    def _take_feed(self, value: int, name: str, array: Array) -> None:
        """A large feed is read where the caller has it."""
        contiguous = self.param("contiguous", np.ascontiguousarray)
        self.emit(f"if not {name}.flags.c_contiguous: {name} = {contiguous}({name})")
        self.env[value], self.kinds[value] = np.ascontiguousarray(array), MOVING

    # primitives ---------------------------------------------------------------------------------
    def target(self, value: int, shape: tuple[int, ...], *also: int) -> tuple[Any, str]:
        """Where a primitive writes a float32 value (and what else is found there), and what lines
        call it.
        """
        if self._is_only_result(value) and not also and math.prod(shape) >= MAX_COPIED_ELEMENTS:
            name = self.fresh[value] = f"r{len(self.fresh)}"
            self.emit(f"{name} = empty({shape}, float32)")
            array = np.zeros(shape, np.float32)
            self.place(value, array)
            return array, name
        array = self.reserve([value, *also], shape, np.float32)
        self.place(value, array)
        return array, self.name(value)

    def _is_only_result(self, value: int) -> bool:
        users = self.uses.get(value, [])
        return len(users) == 1 and users[0] is None

    def call(self, call: Call, places: Sequence[int | None], out: tuple[int, Any, str]) -> None:
        """A line that executes a call; its arguments as in ``aim_all``."""
        self.aim_all(call, places, out)
        self.execute(call)

    def aim_all(self, call: Call, places: Sequence[int | None], out: tuple[int, Any, str]) -> None:
        """``places`` are values (None: aimed otherwise), ``out`` is (place, array, name)."""
        for place, value in enumerate(places):
            if value is not None:
                self.aim(call, place, value)
        place, array, name = out
        if name[:1] == "r":
            self.aim_at(call, place, name)
        else:
            call.aim(place, array)

    def aim_at(self, call: Call, place: int, name: str) -> None:
        """A line that says where an argument lies in this run."""
        self.params.update(aim=self.library.set_handle, buffer=self.library.buffer)
        self.emit(f"aim({self.new_param(call.memory[place])}, buffer({name}))")

    def execute(self, call: object, unless: str = "") -> None:
        """A line that executes a call, but where ``unless`` is true."""
        self.calls.append(call)
        primitive, stream, count, arguments = self.library.instruction(call)
        self.params.update(execute=self.library.execute, stream=stream)
        names = self.new_param(primitive), self.new_param(arguments)
        condition = f"not {unless} and " if unless else ""
        self.emit(f"if {condition}execute({names[0]}, stream, {count}, {names[1]}): fail()")

    def copy_line(self, way: Call, source: Array, target: Array) -> None:
        """A line that copies in the way of a primitive."""
        way.aim(0, source)
        way.aim(1, target)
        self.execute(way)

    def aim(self, call: Call, place: int, value: int) -> None:
        """An argument of a call that is a value of any kind."""
        lies = _layout_of(self.array(value))
        if self.kind(value) == MOVING:
            self.aim_at(call, place, self.name(value))
        elif self.kind(value) == STEADY:
            self.renew(lambda: call.aim(place, _array_like(self.env[value], lies)))
        else:
            call.aim(place, self.env[value])

    def renew(self, function: Callable[[], None]) -> None:
        """To be done now and whenever a variable has changed."""
        function()
        self.renewals.append(function)

    def leave_nan(self, name: str, made_of: frozenset[int] = frozenset()) -> None:
        """A line that leaves an array with NaN to the generic run.

        Without NaN, what it was made of is right, too.
        """
        vdot = self.param("vdot", np.vdot)
        self.emit(f"d = {vdot}({name}, {name})")
        self.emit("if d != d: fail_for_nan()")
        for value in made_of:
            self.doubtful.pop(value, None)

    # steps --------------------------------------------------------------------------------------
    def step(self, step: Node | Fused, bind_step: BindStep) -> None:
        """Decide when, where and by what a step is computed."""
        outputs = outputs_of(step)
        op = step.opdef.name if isinstance(step, Node) else "fused"
        instr = self.begin(op, step.inputs, outputs, step)
        instr.stage = stage = step_stage(step, self.stages, True)
        self.stages.update(dict.fromkeys(outputs, stage))
        if isinstance(step, Node) and is_draw(step):
            self._draw(step, instr)
        elif stage <= Stage.SHAPE:
            instr.implementation = "when bound"
            self._compute(step, self.function(step))
        elif isinstance(step, Node) and self._is_of_values(step):
            raise NotBound("a shape that is not known")
        elif stage is Stage.WRITE:
            instr.implementation = "when written"
            instr.storage = VIEW if is_view(step) else NEW
            self.steady.append((self.function(step), step))
            self._compute(step, self.steady[-1][0])
            for value in outputs:
                self.of_variable[value] = is_view(step) and self._lies_in_variable(value, step)
        elif self._view(step) or self._moving_view(step):
            instr.implementation, instr.storage = "view", VIEW
        else:
            self._select(step, instr, bind_step)
        self.end_of_step()

    def _draw(self, node: Node, instr: Instr) -> None:
        """Random numbers: new ones in each run, none now."""
        shape = node.inputs[node.opdef.traits.shape_input or 0]
        if self.kind(shape) != KNOWN:
            raise NotBound("a shape that is not known")
        dtype = self.program.values[node.outputs[0]].dtype.np_dtype
        like = np.zeros(tuple(self.array(shape).tolist()), dtype)
        instr.implementation, instr.storage, instr.wants_rt = "draw", MOVED, True
        self.let_move(node, Draw(node), like, "rt")

    def _select(self, step: Node | Fused, instr: Instr, bind_step: BindStep) -> None:
        """The first implementation that takes the step."""
        primitives, summed = len(self.calls), outputs_of(step)[0] in self.sums
        self.warming = None
        why_not = bind_step(self, step)
        if not why_not:
            by = "primitive" if len(self.calls) > primitives else "NumPy out="
            instr.implementation, instr.detail = by, self.warming
            if self.warming is not None:
                instr.implementation = "compiled if hot"
            if summed:
                instr.implementation = "in a product"
            instr.storage = VIEW if summed else MEMORY
            if any(o in self.fresh for o in outputs_of(step)):
                instr.storage = CALLERS
                self.given.extend(outputs_of(step))
            return
        for value in step.inputs:
            if value in self.doubtful:
                self.leave_nan(self.name(value), self.doubtful[value] | {value})
        instr.storage, instr.reason = MEMORY, why_not
        self._by_kernel(step)
        if self.kinds.get(outputs_of(step)[0]) == MOVING:
            instr.storage = MOVED

    def _is_of_values(self, step: Node) -> bool:
        """Whether the shape of a result may be another one in the next run, with feeds of the same
        shapes.
        """
        if step.opdef.traits.computes_shapes:
            return True
        shaping = step.opdef.traits.known_inputs
        if all(self.kind(step.inputs[k]) == KNOWN for k in shaping if k < len(step.inputs)):
            return False
        return any(shapes.num_elements(self.program.values[o].shape) is None for o in step.outputs)

    def _lies_in_variable(self, value: int, step: Node | Fused) -> bool:
        """Whether what may be a view of a variable is one: a copy has to stay between runs."""
        sources = [self.env[i] for i in step.inputs if self.of_variable.get(i)]
        return any(np.may_share_memory(self.env[value], source) for source in sources)

    def _compute(self, step: Node | Fused, function: Callable[..., Any]) -> None:
        self.env.update(zip(outputs_of(step), self.results(function, step)))

    def function(self, step: Node | Fused) -> Callable[..., Any]:
        """A step as a function of its inputs."""
        if isinstance(step, Fused):
            plain = make_fused(step, self.program, None)
            return CountedStep(native_step(step, self.program, None, plain), step.output)
        return bound_kernel(step)

    def _view(self, step: Node | Fused) -> bool:
        """A view of memory that does not move is made once; whether this is one."""
        if not is_view(step):
            return False
        source = [i for i in step.inputs if self.kind(i) != KNOWN]
        if len(source) != 1 or not self.is_fixed(source[0]):
            return False
        memory = self.array(source[0])
        found = self.results(self.function(step), step)
        if not all(isinstance(a, np.ndarray) and np.may_share_memory(a, memory) for a in found):
            return False
        for value, array in zip(outputs_of(step), found):
            self.place(value, array)
        return True

    def _moving_view(self, step: Node | Fused) -> bool:
        """A view of an array that may be another one each time is made each time."""
        if not is_view(step) or not any(self.kind(i) == MOVING for i in step.inputs):
            return False
        if len(outputs_of(step)) != 1 or any(self.is_fixed(i) for i in step.inputs):
            return False
        function = self.function(step)
        self.let_move(step, function, self.results(function, step)[0])
        return True

    def _by_kernel(self, step: Node | Fused) -> None:
        """The kernel, and its results put where they belong."""
        function = self.function(step)
        outputs = outputs_of(step)
        arrays = [np.asarray(a) for a in self.results(function, step)]
        if any(a.dtype.kind not in "fiubcV" for a in arrays):
            raise NotBound("a value of another type")
        large = any(a.nbytes >= MIN_BYTES_LEFT_IN_PLACE for a in arrays)
        if large:
            self.elsewhere += sum(a.size for a in arrays)
        if len(outputs) == 1 and not is_view(step) and large:
            self.let_move(step, function, arrays[0])
            return
        what = self.call_text(step, function)
        if len(outputs) == 1 and not self.uses.get(outputs[0]):
            self.place(outputs[0], arrays[0])
            return
        if len(outputs) > 1:
            self.emit(f"made = {what}")
        for n, (value, array) in enumerate(zip(outputs, arrays)):
            if not self.uses.get(value):
                continue
            self.place(value, self.reserve([value], array.shape, array.dtype))
            one = what if len(outputs) == 1 else f"made[{n}]"
            self.emit(f"{self.param('copyto', np.copyto)}({self.name(value)}, {one})")

    # results ------------------------------------------------------------------------------------
    def result(self, result: Result) -> Result:
        """A fetched value as the caller's own: a copy of what lies in memory that stays."""
        value = result.value
        if value is None:
            return result
        if value in self.fresh:
            return Result(value, self.fresh[value])
        if value not in self.env or (self.trains and value in self.of_variables):
            return result
        array = self.array(value)
        if isinstance(array, np.ndarray) and array.dtype.kind == "O":
            raise NotBound("a result of another type")
        if not self.program.values[value].shape and getattr(array, "ndim", 0) == 0:
            return Result(value, "{}[()]")
        return Result(value, "{}.copy()" if self.kind(value) == FIXED else "np.array({})")

    # the end ------------------------------------------------------------------------------------
    def bound(self, rest: Sequence[Instr], renewal: Renewal) -> Bound:
        """What lines refer to: objects, and values that ``renewal`` makes again.

        A view of a variable is made in each run: it must not be kept in between.
        """
        objects: dict[int, Any] = {}
        steady: dict[int, None] = {}
        found = [int(v) for i in self.instrs for line in i.code for v in REFERENCE.findall(line)]
        found += [v for i in rest for v in i.inputs if v not in self.program.constants]
        for value in found:  # (which grows)
            if value in self.of_variables or value not in self.env:
                continue
            kind = self.kind(value)
            if kind in (KNOWN, FIXED):
                objects[value] = self.env[value]
            elif kind == STEADY and not self.of_variable[value]:
                steady[value] = None
            elif kind == STEADY:
                found += self._view_line(value)
        params = {**self.params, "W": renewal.kept_alive} if steady else self.params
        return Bound(len(self.instrs), params, objects, [*steady], self._held_variables(), renewal)

    def _held_variables(self) -> list[int]:
        """Variables that primitives may read where they lie."""
        places = {v.key: n for n, v in enumerate(self.program.variables)}
        return [
            places[v.key]
            for v in self.variables[: self.n_steady]
            if any(len(self.uses.get(i, ())) > self.packs[i] for i in {v.start, v.current})
        ]

    def _view_line(self, value: int) -> tuple[int, ...]:
        """The line that makes a view of a variable, once; what it reads."""
        instr = next(i for i in self.instrs if value in i.outputs)
        mine = f"{self.name(value)} = "
        if any(line.startswith(mine) for line in instr.code):
            return ()
        function, step = next((f, s) for f, s in self.steady if s is instr.source)
        outputs = outputs_of(step)
        place = f"[{outputs.index(value)}]" if len(outputs) > 1 else ""
        instr.implementation = "view"
        instr.code = [*instr.code, f"{mine}{self.call_text(step, function)}{place}"]
        return step.inputs


def bind_steps(s: Binder, bind_step: BindStep) -> list[Instr]:
    """The instructions of the steps that are bound."""
    for facts, part in parts_of(s):
        first = len(s.instrs)
        for step in part:
            try:
                s.step(step, bind_step)
            except NotBound as reason:
                last = step.nodes[-1] if isinstance(step, Fused) else step
                raise NotBound(f"{last.op.name}: {reason}") from None
        if facts is not None:
            wrap(s, facts, part, s.instrs[first:])
    if not s.calls:
        raise NotBound("nothing for the kernel library")
    if s.trains and s.work < MIN_WORK:
        raise NotBound("too little work")
    if s.trains and s.work < PRODUCTS_PER_ELEMENT * s.elsewhere:
        raise NotBound("a training step whose work is in other kernels")
    for given in s.plan.block[: s.count * s.trains]:  # nobody's to overwrite or to give away
        for value in outputs_of(given):  # type: ignore[arg-type]
            s.lives.fresh.discard(value)
            s.lives.whole.discard(value)
            s.lives.shared.add(s.lives.root(value))
    return s.instrs


def is_plain(array: object) -> bool:
    """Whether a primitive can read an array where it lies."""
    return (
        isinstance(array, np.ndarray)
        and array.dtype == FLOAT32
        and array.flags.c_contiguous
        and array.size > 0
    )


def _fail_for_nan() -> None:
    raise NotBound("a relu's input is NaN or minus infinity: the generic run tells them apart")


def _fail() -> None:
    raise NotBound("the kernel library refused a call")


def _layout_of(array: Array) -> tuple[Any, ...]:
    return array.shape, array.strides, array.dtype


def _array_like(array: Array, layout: tuple[Any, ...]) -> Array:
    if _layout_of(array) != layout:
        raise NotBound("an array has another shape, stride or type than the one bound")
    return array
