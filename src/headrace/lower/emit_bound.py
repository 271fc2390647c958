"""Lowering with known shapes: a run over memory that stays where it is (see bound_runs.py).

It is the lowering of emit_general.py with the shapes of the feeds. A step whose results are
known before the run (stage_split.py) needs no line: stages BUILD and SHAPE are computed here,
once, stage WRITE when the version stamp of a variable has changed. A value of stage RUN is

- ``fixed``: it lies in memory that was set aside for it, and each run writes it there, or
- ``moving``: an array that may be another one in each run: a variable that the program goes on to
  write, or a large result of a kernel that has no way to write where it is told.

A step that makes a fixed value becomes the execution of a primitive (select_primitives.py), a NumPy
function with ``out=``, or, for all other ops, their kernel and a copy of what it gives. Views of
fixed memory need no line. Memory is used again once nobody reads it any more.

What comes after the first write, and what has an effect, is lowered as if no shape were known: its
instructions follow in the same function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import shapes
from headrace.core.opdef import KernelNode, bind_kernel
from headrace.kernels.accel import library
from headrace.kernels.numpy import numpy_xp
from headrace.kernels.numpy.openblas import hold_blas
from headrace.lower.emit_general import Lowering
from headrace.lower.emit_lines import Compiled
from headrace.lower.fused_code import make_fused
from headrace.lower.fusion import Fused, PlanStatement
from headrace.lower.listing import CALLERS, MEMORY, NEW, VIEW, Instr, Stage
from headrace.lower.listing import MOVING as MOVED
from headrace.lower.native_groups import native_step
from headrace.lower.plan import Plan
from headrace.lower.select_bindable import OF_KNOWN
from headrace.lower.session_state import State
from headrace.lower.stage_split import before_writes, step_stage
from headrace.lower.storage_lifetimes import lifetimes
from headrace.lower.write_stage import WriteStage
from headrace.program.binding_times import first_stages
from headrace.program.nodes import Node, VariableInfo

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.kernels.onednn.primitive import Call
    from headrace.kernels.packed_weights import Held

__all__ = [
    "FIXED",
    "KNOWN",
    "MOVING",
    "STEADY",
    "Binding",
    "BoundLowering",
    "NotBound",
    "bind_plan",
]

KNOWN, STEADY, FIXED, MOVING = "known", "steady", "fixed", "moving"

#: Gradients of activations that the kernel library has primitives for (select_primitives.py).
GRADIENTS = frozenset(["ReluGrad", "TanhGrad", "SigmoidGrad"])
#: Multiplications from which binding a training step pays.
MIN_WORK = 1 << 20
#: Results of fewer elements are copied for the caller, which takes less time than to say where they
#: are to lie.
COPIED = 1024
#: Bytes from which a kernel's result is left where it is instead of being copied.
LEFT = 1 << 16
#: Memory that one binding may take.
MAX_BYTES = 256 << 20


class NotBound(Exception):
    """This plan, with these shapes, is left to the general way."""


class Binding:
    """``run(state, values, *feeds)`` for feeds of these shapes."""

    __slots__ = ("__weakref__", "compiled", "notes", "renewal", "rest_line", "run")

    def __init__(
        self, compiled: Compiled, renewal: _Renewal, notes: dict[str, int], rest_line: int
    ) -> None:
        self.compiled = compiled
        self.renewal = renewal  # holds the primitives and their memory
        self.run = compiled.run
        self.notes = notes  # how many lines are primitives, and how many others there are
        self.rest_line = rest_line  # from this line on a run has effects

    def had_effects(self, error: BaseException) -> bool:
        """Whether a run that raised had begun with what must not be done twice."""
        traceback = error.__traceback__
        while traceback is not None:
            if traceback.tb_frame.f_code is self.run.__code__:
                return traceback.tb_lineno >= self.rest_line
            traceback = traceback.tb_next
        return False


def bind_plan(
    plan: Plan, state: State, values: dict[str, Any], feeds: Sequence[Any], kept: WriteStage | None
) -> Binding:
    """Bind a plan to the shapes of these feeds."""
    count = len(plan.block)
    block = tuple([_primitive_of(s) or s for s in plan.block])
    if block != plan.block:
        plan = plan._replace(block=block, lives=lifetimes(block, plan.program))
    if any(v.written for v in plan.program.variables):
        first, rest = before_writes(plan.block, plan.program)
        block = (*first, *rest)
        count = len(first)
        plan = plan._replace(block=block, lives=lifetimes(block, plan.program))
    variables = used_variables(plan, count, kept)
    # (before the values: a write in between shows)
    stamps = state.stamps(v.key for v in variables if not v.written)
    held = [state.need(v.key, v.op) for v in variables]
    kept_values = () if kept is None else kept(state, values)
    lowering = BoundLowering(plan, count, variables, held, kept_values, feeds)
    try:
        return lowering.bind(stamps, kept)
    except BaseException:
        # they refer to it: its memory would stay until the collector of cycles comes
        lowering.renewals.clear()
        raise


def _primitive_of(step: PlanStatement) -> Node | None:
    """The op of a group of one that the kernel library has a primitive for."""
    if not isinstance(step, Fused) or len(step.nodes) != 1:
        return None
    return step.nodes[0] if step.nodes[0].opdef.name in GRADIENTS else None


def _outermost(step: Node | Fused) -> Node:
    return step.nodes[-1] if isinstance(step, Fused) else step


def used_variables(plan: Plan, count: int, kept: WriteStage | None) -> tuple[VariableInfo, ...]:
    """Those that the first ``count`` steps, kept values or results take.

    First the ones that the program does not write.
    """
    used = {i for step in plan.block[:count] for i in step.inputs}  # type: ignore[union-attr]
    used.update(f for f in plan.program.fetches if f is not None)
    keys = () if kept is None else kept.keys
    found = [
        v
        for v in plan.program.variables
        if v.start in used or (v.current in used and not v.written) or v.key in keys
    ]
    return tuple(sorted(found, key=lambda v: v.written))


class BoundLowering(Lowering):
    """The state of the work, for those who bind steps (select_primitives.py)."""

    def __init__(
        self,
        plan: Plan,
        count: int,
        variables: tuple[VariableInfo, ...],
        held: Sequence[Any],
        kept: Sequence[Any],
        feeds: Sequence[Any],
    ) -> None:
        super().__init__(plan, None)
        self.count = count  # so many steps, the first ones, are bound
        self.trains = count < len(plan.block)
        self.in_rest = False  # the steps that are bound are done
        kernels = library()
        if kernels is None:
            raise NotBound("no kernel library")
        self.accelerator, self.library = kernels, kernels.fixed
        self.variables = variables
        self.stages = first_stages(self.program, len(kept))
        self.env: dict[int, Any] = {}
        self.kinds: dict[int, str] = {}  # of values of stage RUN
        self.params.update(
            empty=np.empty, float32=np.float32, fail=_fail, fail_for_nan=_fail_for_nan
        )
        self.dying: dict[int, list[Any]] = {}  # memory by the step after which it is free
        self.passing: dict[int, list[str]] = {}  # names of moving results, likewise
        self.blocks: list[Any] = []  # free memory
        self.nbytes = 0
        self.steady: list[tuple[Callable[..., Any], Node | Fused]] = []
        self.renewals: list[Callable[[], None]] = []
        self.wanted: list[int] = []  # steady values that lines take
        # of steady values: whether they lie in a variable's memory
        self.of_variable: dict[int, bool] = {}
        self.calls: list[Any] = []
        self.work = 0  # multiplications in products
        self.fresh: dict[int, str] = {}  # results that are written where the caller gets them
        self.sums: dict[int, int] = {}  # sums that a product has made already
        #: Values that are NaN where a relu of minus infinity should be 0, with those that they were
        #: made of.
        self.doubtful: dict[int, frozenset[int]] = {}
        self.uses = _uses(plan)
        # packed weights and the like, by the step that they belong to
        self.alive: dict[Any, Any] = {}
        self.keep_starts()
        self._take(held, kept, feeds)

    def _take(self, held: Sequence[Any], kept: Sequence[Any], feeds: Sequence[Any]) -> None:
        """The first instruction: variables as they are expected, feeds into their places."""
        given = len(self.program.feeds) - len(kept)
        self.begin("feeds", self.program.feeds[:given]).implementation = "copy"
        if self.trains:
            # a training step changes what the processor and BLAS are set to, as every large run
            # does (kernels/numpy/openblas.py)
            self.emit(f"{self.param('hold', hold_blas)}()")
        self.n_steady = sum(not v.written for v in self.variables)
        self.variable_shapes = [_look(v) for v in held[: self.n_steady]]
        for v, array in zip(self.variables, held):
            for value in (v.start,) if v.written else (v.start, v.current):
                self.env[value] = array
                self.of_variable[value] = True
                if v.written:
                    self.kinds[value] = MOVING
                    self.emit(f"if {self.name(value)}.shape != {array.shape}: fail()")
                else:
                    self.checked[0].add(value)  # by the stamps, before anything else
        for value, array in zip(self.program.feeds[given:], kept):
            self.env[value], self.of_variable[value] = array, False
        self.kept_values = self.program.feeds[given:]
        self.kept_shapes = [_look(v) for v in kept]
        for n, (value, array) in enumerate(zip(self.program.feeds[:given], feeds)):
            if array.dtype.kind not in "fiub":
                raise NotBound("a feed of another type")
            if array.nbytes >= LEFT:
                self._take_feed(value, f"f{n}", array)
                continue
            room = self.room([value], array.shape, array.dtype)
            room[...] = array
            self.place(value, room)
            self.emit(f"{self.param('copyto', np.copyto)}({self.name(value)}, f{n})")
        self.n_feeds = given

    def _take_feed(self, value: int, name: str, array: Array) -> None:
        """A large feed is read where the caller has it."""
        contiguous = self.param("contiguous", np.ascontiguousarray)
        self.emit(f"if not {name}.flags.c_contiguous: {name} = {contiguous}({name})")
        self.env[value], self.kinds[value] = np.ascontiguousarray(array), MOVING
        self.names[value] = name

    # memory -------------------------------------------------------------------------------------
    def room(
        self, values: Sequence[int], shape: tuple[int, ...], dtype: np.dtype[Any] | type[Any]
    ) -> Any:
        """Memory that stays until the last use of these values (none: until this step is done)."""
        dtype = np.dtype(dtype)
        size = max(64, dtype.itemsize * int(np.prod(shape, dtype=np.int64)))
        block = self._block(size)
        last = max([self.last_use(v) for v in values], default=self.position)
        self.dying.setdefault(max(last, self.position), []).append(block)
        count = size // dtype.itemsize if shape == () or 0 in shape else int(np.prod(shape))
        flat = block[: count * dtype.itemsize].view(dtype)
        out = flat[: int(np.prod(shape, dtype=np.int64))].reshape(shape)
        out[...] = 0
        return out

    def last_use(self, value: int) -> int:
        return self.lives.group_last.get(self.lives.root(value), self.position)

    def _block(self, size: int) -> Any:
        """Free memory of about this size, or new."""
        fitting = [b for b in self.blocks if size <= b.size <= 4 * size]
        if fitting:
            best = min(fitting, key=lambda b: int(b.size))
            self.blocks = [b for b in self.blocks if b is not best]
            return best
        self.nbytes += size
        if self.nbytes > MAX_BYTES:
            raise NotBound("too large")
        return self.library.aligned(size)

    def free_memory(self) -> None:
        """After a bound step: memory and names that nobody reads any more."""
        self.blocks += self.dying.pop(self.position, [])
        gone = self.passing.pop(self.position, [])
        if gone:
            self.emit(" = ".join([*gone, "None"]))

    # values -------------------------------------------------------------------------------------
    def kind(self, value: int) -> str:
        """KNOWN, STEADY, FIXED or MOVING."""
        stage = self.stages.get(value, Stage.RUN)
        if stage <= Stage.SHAPE:
            if value not in self.env:
                self.env[value] = self.program.constants[value]
            return KNOWN
        found = STEADY if stage is Stage.WRITE else self.kinds.get(value)
        if found is None:
            raise NotBound(f"value {value} is not there")
        return found

    def array(self, value: int) -> Any:
        """The value as it is now; a fixed one has its place and any contents."""
        self.kind(value)
        return self.env[value]

    def place(self, value: int, array: Any) -> None:
        self.env[value], self.kinds[value] = array, FIXED

    def is_fixed(self, value: int) -> bool:
        return self.kind(value) == FIXED

    def is_data(self, value: int) -> bool:
        """Fixed, or an array that may be another one in each run."""
        return self.kind(value) in (FIXED, MOVING)

    def param(self, name: str, value: Any) -> str:
        self.params[name] = value
        return name

    def param_list(self, name: str) -> list[Any]:
        """A list that is a parameter, if lines use it."""
        found: list[Any] = self.params.setdefault(name, [])
        return found

    def new_param(self, value: Any) -> str:
        return self.param(f"p{len(self.params)}", value)

    def temporary(self) -> str:
        self.n_temps += 1
        return f"t{self.n_temps - 1}"

    def name(self, value: int) -> str:
        """How lines call a value."""
        found = self.names.get(value)
        if self._is_general(value):
            return super().name(value)
        if found is None:
            kind = self.kind(value)
            if kind in (KNOWN, FIXED):
                found = self.new_param(self.env[value])
            else:
                found = self._steady_name(value)
            self.names[value] = found
        return found

    def _is_general(self, value: int) -> bool:
        """Whether a value has the name that it has where no shape is known."""
        if self.is_variable(value):
            return True
        if self.in_rest:
            return value not in self.env or value in self.program.constants
        return False

    def _steady_name(self, value: int) -> str:
        if not self.of_variable[value]:
            self.wanted.append(value)
            self.param_list("W")
            return f"W[{len(self.wanted) - 1}]"
        # a view of a variable is made in each run: it must not be held in between
        function, step = next((f, s) for f, s in self.steady if value in _outputs(s))
        args = ", ".join(self.name(i) for i in step.inputs)  # (these may be lines as well)
        name = self.temporary()
        at = _outputs(step).index(value)
        call = f"{self.new_param(function)}({args})"
        self.emit(f"{name} = {call}" + (f"[{at}]" if len(_outputs(step)) > 1 else ""))
        return name

    # primitives ---------------------------------------------------------------------------------
    def target(self, value: int, shape: tuple[int, ...], *also: int) -> tuple[Any, str]:
        """Where a primitive writes a float32 value (and what else is found there), and what lines
        call it.
        """
        if self._is_only_result(value) and not also and math.prod(shape) >= COPIED:
            name = self.fresh[value] = f"r{len(self.lines)}"
            self.emit(f"{name} = empty({shape}, float32)")
            array = np.zeros(shape, np.float32)
            self.place(value, array)
            return array, name
        array = self.room([value, *also], shape, np.float32)
        self.place(value, array)
        return array, self.name(value)

    def _is_only_result(self, value: int) -> bool:
        users = self.uses.get(value, [])
        return len(users) == 1 and users[0] is None

    def call(self, call: Call, places: Sequence[int | None], out: tuple[int, Any, str]) -> None:
        """A line that executes a call.

        ``places`` are values (None: aimed otherwise), ``out`` is (place, array, name).
        """
        for place, value in enumerate(places):
            if value is not None:
                self.aim(call, place, value)
        place, array, name = out
        if name[:1] == "r":
            self.aim_at(call, place, name)
        else:
            call.aim(place, array)
        self.execute(call)

    def aim_at(self, call: Call, place: int, name: str) -> None:
        """A line that says where an argument lies in this run."""
        self.params.update(aim=self.library.set_handle, buffer=self.library.buffer)
        self.emit(f"aim({self.new_param(call.memory[place])}, buffer({name}))")

    def execute(self, call: object) -> None:
        self.calls.append(call)
        primitive, stream, count, arguments = self.library.instruction(call)
        self.params.update(execute=self.library.execute, stream=stream)
        names = self.new_param(primitive), self.new_param(arguments)
        self.emit(f"if execute({names[0]}, stream, {count}, {names[1]}): fail()")

    def aim(self, call: Call, place: int, value: int) -> None:
        """An argument of a call that is a value of any kind."""
        lies = _lies(self.array(value))
        if self.kind(value) == MOVING:
            self.aim_at(call, place, self.name(value))
        elif self.kind(value) == STEADY:
            self.renew(lambda: call.aim(place, _alike(self.env[value], lies)))
        else:
            call.aim(place, self.env[value])

    def renew(self, function: Callable[[], None]) -> None:
        """To be done now and whenever a variable has changed."""
        function()
        self.renewals.append(function)

    # steps --------------------------------------------------------------------------------------
    def bind(self, stamps: list[int], kept: WriteStage | None) -> Binding:
        """The function; ``stamps`` are those of the unwritten variables' values."""
        from headrace.lower.select_primitives import bind_step

        for step in self.plan.block[: self.count]:
            assert isinstance(step, (Node, Fused))
            try:
                self._step(step, bind_step)
            except NotBound as reason:
                raise NotBound(f"{_outermost(step).op.name}: {reason}") from None
            self.free_memory()
            self.position += 1
        if not self.calls:
            raise NotBound("nothing for the kernel library")
        if self.trains and self.work < MIN_WORK:
            raise NotBound("too little work")
        scratch = self.library.give_scratch(self.calls)
        rest_line = len(self.lines) + 1
        self._rest()
        self.give_results()
        renewal = _Renewal(self, scratch, stamps, kept)
        prologue = self.bound_prologue(renewal, kept)
        compiled = self.assemble(
            prologue, self.n_feeds, self.function_name, True, renewal.keys, len(self.kept_values)
        )
        notes = {
            "primitives": len(self.calls),
            "lines": len(self.lines),
            "bytes": self.nbytes + scratch.nbytes,
        }
        # (the parameters refer to what refers to them: memory goes with the function)
        self.params = {}
        return Binding(compiled._replace(params={}), renewal, notes, rest_line + len(prologue) + 2)

    def bound_prologue(self, renewal: _Renewal, kept: WriteStage | None) -> list[str]:
        """Variables are loaded, then their stamps compared: a stamp changes before its variable
        does.
        """
        out = self.loads()
        if renewal.keys:
            steady = [i for i in sorted(self.loaded) if not self.program.variables[i].written]
            renewal.loaded = [self.program.variables[i] for i in steady]
            left = "".join(f"v{i}, " for i in steady)
            left = f"{left}= " if left else ""
            keys, again = self.param("K", renewal.keys), self.param("B", renewal)
            out.append(f"  if S.stamps({keys}) != {again}.stamps: {left}{again}(S, V)")
            if kept is not None:
                out.append(f"  else: {self.param('counts', kept.counts)}.hits += 1")
        return [*out, *self.guards()]

    def _rest(self) -> None:
        """What has effects, as it is lowered where no shape is known.

        It reads what was bound as it reads feeds: nobody's to overwrite or to give away.
        """
        lives = self.lives
        if not self.trains:
            return
        for step in self.plan.block[: self.count]:
            for value in _outputs(step):  # type: ignore[arg-type]
                lives.fresh.discard(value)
                lives.whole.discard(value)
                lives.shared.add(lives.root(value))
        for value in [v for v in self.names if v in self.program.constants]:
            del self.names[value]
        self.in_rest = True
        self.outermost(self.plan.block[self.count :])

    def _step(self, step: Node | Fused, bind_step: Callable[[BoundLowering, Any], str]) -> None:
        outputs = _outputs(step)
        op = step.opdef.name if isinstance(step, Node) else "fused"
        instr = self.begin(op, step.inputs, outputs, step)
        instr.stage = stage = step_stage(step, self.stages, True)
        self.stages.update(dict.fromkeys(outputs, stage))
        if stage <= Stage.SHAPE:
            instr.implementation = "when bound"
            self._compute(step, self.function(step))
        elif isinstance(step, Node) and self._is_of_values(step):
            raise NotBound("a shape that is not known")
        elif stage is Stage.WRITE:
            instr.implementation = "when written"
            instr.storage = VIEW if _is_view(step) else NEW
            self.steady.append((self.function(step), step))
            self._compute(step, self.steady[-1][0])
            for value in outputs:
                self.of_variable[value] = _is_view(step) and self._lies_in_variable(value, step)
        elif self._view(step) or self._moving_view(step):
            instr.implementation, instr.storage = "view", VIEW
        else:
            self._select(step, instr, bind_step)

    def _select(
        self, step: Node | Fused, instr: Instr, bind_step: Callable[[BoundLowering, Any], str]
    ) -> None:
        """The first implementation that takes the step."""
        primitives, summed = len(self.calls), _outputs(step)[0] in self.sums
        why_not = bind_step(self, step)
        if not why_not:
            instr.implementation = "primitive" if len(self.calls) > primitives else "NumPy out="
            if summed:
                instr.implementation = "in a product"
            instr.storage = VIEW if summed else MEMORY
            if any(o in self.fresh for o in _outputs(step)):
                instr.storage = CALLERS
                self.given.extend(_outputs(step))
            return
        for value in step.inputs:
            if value in self.doubtful:
                self.leave_nan(self.name(value), self.doubtful[value] | {value})
        instr.storage, instr.reason = MEMORY, why_not
        self.by_kernel(step)
        if self.kinds.get(_outputs(step)[0]) == MOVING:
            instr.storage = MOVED

    def leave_nan(self, name: str, made_of: frozenset[int] = frozenset()) -> None:
        """A line that leaves an array with NaN to the general way.

        Without NaN, what it was made of is right, too.
        """
        vdot = self.param("vdot", np.vdot)
        self.emit(f"d = {vdot}({name}, {name})")
        self.emit("if d != d: fail_for_nan()")
        for value in made_of:
            self.doubtful.pop(value, None)

    def _is_of_values(self, step: Node) -> bool:
        """Whether the shape of a result may be another one in the next run, with feeds of the same
        shapes.
        """
        if step.opdef.name in OF_KNOWN:
            return True
        shaping = step.opdef.traits.known_inputs
        if all(self.kind(step.inputs[k]) == KNOWN for k in shaping if k < len(step.inputs)):
            return False
        return any(shapes.num_elements(self.program.values[o].shape) is None for o in step.outputs)

    def _lies_in_variable(self, value: int, step: Node | Fused) -> bool:
        """Whether what may be a view of a variable is one: a copy has to be held between runs."""
        sources = [self.env[i] for i in step.inputs if self.of_variable.get(i)]
        return any(np.may_share_memory(self.env[value], source) for source in sources)

    def _compute(self, step: Node | Fused, function: Callable[..., Any]) -> None:
        self.env.update(zip(_outputs(step), self._results(function, step)))

    def _results(self, function: Callable[..., Any], step: Node | Fused) -> tuple[Any, ...]:
        found = function(*[self.array(i) for i in step.inputs])
        return found if len(_outputs(step)) > 1 else (found,)

    def function(self, step: Node | Fused) -> Callable[..., Any]:
        """A step as a function of its inputs."""
        if isinstance(step, Fused):
            plain = make_fused(step, self.program, None)
            return native_step(step, self.program, None, plain).alone()
        node = KernelNode(step.op.name, step.op.type, step.attrs, step.op)
        return bind_kernel(step.opdef, node, numpy_xp)

    def _view(self, step: Node | Fused) -> bool:
        """A view of memory that does not move is made once; whether this is one."""
        if not _is_view(step):
            return False
        source = [i for i in step.inputs if self.kind(i) != KNOWN]
        if len(source) != 1 or not self.is_fixed(source[0]):
            return False
        memory = self.array(source[0])
        found = self._results(self.function(step), step)
        if not all(isinstance(a, np.ndarray) and np.may_share_memory(a, memory) for a in found):
            return False
        for value, array in zip(_outputs(step), found):
            self.place(value, array)
        return True

    def _moving_view(self, step: Node | Fused) -> bool:
        """A view of an array that may be another one each time is made each time."""
        if not _is_view(step) or not any(self.kind(i) == MOVING for i in step.inputs):
            return False
        if len(_outputs(step)) != 1 or any(self.is_fixed(i) for i in step.inputs):
            return False
        function = self.function(step)
        self._let_move(step, function, self._results(function, step)[0])
        return True

    def _let_move(self, step: Node | Fused, function: Callable[..., Any], array: Array) -> None:
        """A line that gives a result its name; it is let go after its last use."""
        (value,) = _outputs(step)
        call = f"{self.new_param(function)}({', '.join(self.name(i) for i in step.inputs)})"
        name = self.temporary()
        self.emit(f"{name} = {call}")
        self.env[value], self.kinds[value], self.names[value] = array, MOVING, name
        last = self.lives.last.get(value, self.position)  # (views of it hold it themselves)
        self.passing.setdefault(max(last, self.position), []).append(name)

    def by_kernel(self, step: Node | Fused) -> None:
        """The kernel, and its results put where they belong."""
        function = self.function(step)
        outputs = _outputs(step)
        arrays = [np.asarray(a) for a in self._results(function, step)]
        if any(a.dtype.kind not in "fiubcV" for a in arrays):
            raise NotBound("a value of another type")
        large = any(a.nbytes >= LEFT for a in arrays)
        if large and self.trains:
            raise NotBound("a training step whose work is in other kernels")
        if len(outputs) == 1 and not _is_view(step) and large:
            self._let_move(step, function, arrays[0])
            return
        call = f"{self.new_param(function)}({', '.join(self.name(i) for i in step.inputs)})"
        copyto = self.param("copyto", np.copyto)
        if len(outputs) > 1:
            call_name = self.temporary()
            self.emit(f"{call_name} = {call}")
        for n, (value, array) in enumerate(zip(outputs, arrays)):
            if not self.uses.get(value):
                continue
            place = self.room([value], array.shape, array.dtype)
            self.place(value, place)
            what = call if len(outputs) == 1 else f"{call_name}[{n}]"
            self.emit(f"{copyto}({self.name(value)}, {what})")
        if len(outputs) == 1 and not self.uses.get(outputs[0]):
            self.place(outputs[0], arrays[0])

    def result(self, value: int, alone: bool) -> str:
        """A fetched value as the caller's own."""
        fresh = self.fresh.get(value)
        if fresh is not None:
            return fresh
        if value not in self.env or (self.trains and self.is_variable(value)):
            return super().result(value, alone)
        array = self.array(value)
        if isinstance(array, np.ndarray) and array.dtype.kind == "O":
            raise NotBound("a result of another type")
        if not self.program.values[value].shape and getattr(array, "ndim", 0) == 0:
            return f"{self.name(value)}[()]"
        if self.kind(value) == FIXED:
            return f"{self.name(value)}.copy()"
        return f"np.array({self.name(value)})"

    def is_variable(self, value: int) -> bool:
        return value in self.by_start or value in self.by_current


class _Renewal:
    """Brings what depends on unwritten variables up to date, when one of their stamps has changed.

    ``renewal(S, V)`` gives the variables that lines read.
    """

    __slots__ = ("kept", "kept_alive", "keys", "loaded", "lowering", "scratch", "stamps")

    def __init__(
        self, lowering: BoundLowering, scratch: object, stamps: list[int], kept: WriteStage | None
    ) -> None:
        self.lowering, self.scratch, self.stamps, self.kept = lowering, scratch, stamps, kept
        self.keys = tuple(v.key for v in lowering.variables[: lowering.n_steady])
        self.loaded: list[VariableInfo] = []
        self.kept_alive: list[Any] = lowering.param_list("W")
        self.kept_alive[:] = [lowering.env[v] for v in lowering.wanted]
        self.let_go()

    def __del__(self) -> None:
        self.lowering.renewals.clear()  # they refer to it: its memory goes at once

    def __call__(self, state: State, values: dict[str, Any]) -> list[Any]:
        with state.lock:  # no write may come between what is remembered and what is computed
            stamps = state.stamps(self.keys)
            if stamps != self.stamps:
                held = [state.need(v.key, v.op) for v in self.lowering.variables]
                kept = () if self.kept is None else self.kept(state, values)
                self._renew(held[: self.lowering.n_steady], kept)
                self.stamps = stamps
            return [state.need(v.key, v.op) for v in self.loaded]

    def _renew(self, held: Sequence[Any], kept: Sequence[Any]) -> None:
        s = self.lowering
        if [_look(v) for v in held] != s.variable_shapes:
            raise NotBound("a variable has another shape")
        if [_look(v) for v in kept] != s.kept_shapes:
            raise NotBound("a kept value has another shape")
        for v, array in zip(s.variables, held):
            s.env[v.start] = s.env[v.current] = array
        s.env.update(zip(s.kept_values, kept))
        for function, step in s.steady:
            s.env.update(zip(_outputs(step), s._results(function, step)))
        for renew in s.renewals:
            renew()
        self.kept_alive[:] = [s.env[v] for v in s.wanted]
        self.let_go()

    def let_go(self) -> None:
        """Variables, and views of them, are not held between runs."""
        s = self.lowering
        for value, lies in s.of_variable.items():
            if lies:
                s.env[value] = None
        for value, kind in s.kinds.items():
            if kind == MOVING:
                s.env[value] = None


def _fail_for_nan() -> None:
    raise NotBound("a relu's input is NaN or minus infinity: the general way tells them apart")


def _fail() -> None:
    raise NotBound("the kernel library refused a call")


def _look(value: Array | np.generic | Held) -> tuple[tuple[int, ...] | None, np.dtype[Any] | None]:
    return getattr(value, "shape", None), getattr(value, "dtype", None)


def _lies(array: Any) -> tuple[Any, ...]:
    return array.shape, array.strides, array.dtype


def _alike(array: Array, lies: tuple[Any, ...]) -> Array:
    if _lies(array) != lies:
        raise NotBound("an array lies in another way")
    return array


def _outputs(step: Node | Fused) -> tuple[int, ...]:
    return (step.output,) if isinstance(step, Fused) else step.outputs


def _is_view(step: Node | Fused) -> bool:
    return isinstance(step, Node) and step.opdef.traits.view


def _uses(plan: Plan) -> dict[int, list[Any]]:
    """The steps that read each value; None stands for the caller."""
    found: dict[int, list[Any]] = {}
    for step in plan.block:
        for i in step.inputs:  # type: ignore[union-attr]
            found.setdefault(i, []).append(step)
    for f in plan.program.fetches:
        if f is not None:
            found.setdefault(f, []).append(None)
    return found
