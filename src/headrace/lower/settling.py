"""From a plan and the shapes of its feeds to a run over memory that stays where it is (see
settled.py).

Steps are looked at in their order. A value is one of four kinds:

- ``known``: a constant, or something that depends on shapes alone. Computed here, once.
- ``steady``: depends on variables (and constants) alone. Computed when a variable was written.
- ``fixed``: depends on feeds. It lies in memory that was set aside for it, and each run writes it
  there.
- ``moving``: an array that may be another one in each run: a variable that the program goes on to
  write, or a large result of a kernel that has no way to write where it is told.

A step that makes a fixed value becomes a line of the generated function: the execution of a
primitive (settled_steps.py), a NumPy function with ``out=``, or, for all other ops, their kernel
and a copy of what it gives. Views of fixed memory need no line. Memory is used again once nobody
reads it any more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.opdef import KernelNode, bind_kernel
from headrace.kernels.accel import library
from headrace.kernels.numpy import numpy_xp
from headrace.kernels.numpy.openblas import hold_blas
from headrace.lower.fused_code import make_fused
from headrace.lower.fusion import Fused
from headrace.lower.kept_part import KeptPart
from headrace.lower.native_groups import native_step
from headrace.lower.plan import Plan
from headrace.lower.session_state import State
from headrace.program.nodes import Node, Program, VariableInfo

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
    "Settling",
    "Unsettled",
    "settle",
    "why_unbound",
]

KNOWN, STEADY, FIXED, MOVING = "known", "steady", "fixed", "moving"

#: Weights from which a plain product is reason enough to bind a plan.
PRODUCT = 1 << 12
#: Multiplications from which binding a training step pays.
MIN_WORK = 1 << 20
#: Results of fewer elements are copied for the caller, which takes less time than to say where they
#: are to lie.
COPIED = 1024
#: Bytes from which a kernel's result is left where it is instead of being copied.
LEFT = 1 << 16
#: Memory that one binding may take.
MAX_BYTES = 256 << 20
#: Ops for whose sake a plan is bound.
_WORTH = frozenset(
    [
        "_HeldMatMul",
        "_HeldConv2D",
        "_HeldLSTMLayer",
        "_Attention",
        "_LayerNorm",
        "Conv2D",
        "_FusedConv2D",
    ]
)
#: Ops whose result depends on the shape of their input alone.
_OF_SHAPE = frozenset(["Shape", "ShapeN", "Size", "Rank", "_InverseSize"])
_VIEWS = frozenset(["ReadVariableOp"])
#: Ops whose result's shape depends on values, which are shapes: they must be known.
_OF_KNOWN = frozenset(["BroadcastGradientArgs"])
#: What training steps of dense layers consist of, beside element-wise ops and views.
_DENSE = frozenset(
    [
        "MatMul",
        "_FusedMatMul",
        "ReluGrad",
        "TanhGrad",
        "SigmoidGrad",
        "EluGrad",
        "Sum",
        "Mean",
        "Max",
        "BiasAdd",
        "BiasAddGrad",
        "SoftmaxCrossEntropyWithLogits",
        "SparseSoftmaxCrossEntropyWithLogits",
        "L2Loss",
        "AddN",
        "ConcatV2",
        "Pack",
        "Fill",
        "Softmax",
        "LogSoftmax",
        "OneHot",
        "ZerosLike",
        "Tile",
        "BroadcastTo",
        "BroadcastGradientArgs",
        "ReadVariableOp",
        "_InverseSize",
        "Prod",
        "ArgMax",
        "Range",
        "Select",
    ]
)


class Unsettled(Exception):
    """This plan, with these shapes, is left to the general way."""


def why_unbound(plan: Plan, training: bool = False) -> str | None:
    """Why a plan cannot be bound to shapes, or gains nothing by it; None if it can.

    It takes pure steps one after the other, with something among them that is the kernel library's.
    """
    found = False
    for step in plan.block:
        if isinstance(step, Fused):
            continue
        if not isinstance(step, Node):
            return "it has branches, loops or grouped writes"
        why_not = _why_not_plain(step, plan)
        if why_not is not None:
            return f"{step.op.name} ({step.opdef.name}) {why_not}"
        if training and not _is_dense(step):
            return f"{step.op.name} ({step.opdef.name}) is not of a dense layer: nothing is gained"
        found = found or step.opdef.name in _WORTH or _is_product(step, plan.program)
    if not found:
        return "no product, convolution or layer in it is large enough for the kernel library"
    if plan.program.effects or None in plan.program.fetches:
        return "it has effects beside its results"
    return None


def _is_dense(node: Node) -> bool:
    """Whether a training step with this op is one of dense layers.

    Others gain nothing, their work is in kernels.
    """
    traits, name = node.opdef.traits, node.opdef.name
    return traits.elementwise or traits.view or name in _DENSE or name in _OF_SHAPE


def _is_product(node: Node, program: Program) -> bool:
    if node.opdef.name not in ("MatMul", "_FusedMatMul"):
        return False
    size = shapes.num_elements(program.values[node.inputs[1]].shape)
    return size is not None and size >= PRODUCT


def _why_not_plain(node: Node, plan: Plan) -> str | None:
    traits = node.opdef.traits
    if node.writes:
        return "writes a variable"
    if traits.random:
        return "draws random numbers"
    if traits.host_only:
        return "has no way to write where it is told"
    if traits.data_dependent_shape and node.opdef.name not in _OF_KNOWN:
        return "has a result whose shape depends on values"
    if traits.stateful and node.opdef.name != "ReadVariableOp":
        return "has a state"
    if "rt" in node.opdef.kernel_params or node.opdef.name in ("Merge", "RefMerge"):
        return "needs the session"
    if any(plan.program.values[o].dtype is dtypes.string for o in node.outputs):
        return "makes strings"
    return None


class Binding(NamedTuple):
    """``run(arrays of the variables, *feeds)``, after ``renew(arrays, kept values)`` whenever one
    of them has changed.
    """

    run: Callable[..., tuple[Any, ...]]
    renew: Callable[[Sequence[Any], Sequence[Any]], None]
    variables: tuple[VariableInfo, ...]
    keys: tuple[str, ...]
    n_steady: int  # so many of them, the first ones, are not written by the program
    notes: dict[str, int]  # how many lines are primitives, and how many others there are
    lines: dict[int, Node | Fused]  # line number -> step

    def current(self, state: State) -> list[Any]:
        return [state.need(v.key, v.op) for v in self.variables]


def settle(
    plan: Plan,
    state: State,
    values: dict[str, Any],
    feeds: Sequence[Any],
    kept: KeptPart | None,
    lends: bool = False,
) -> Binding:
    """``lends``: results are read until the next run only, so they may lie in the settled
    memory.
    """
    variables = used_variables(plan, kept)
    held = [state.need(v.key, v.op) for v in variables]
    kept_values = () if kept is None else kept(state, values)
    settling = Settling(plan, variables, held, kept_values, feeds, lends)
    try:
        return settling.bind()
    except BaseException:
        # they refer to it: its memory would stay until the collector of cycles comes
        settling.renewals.clear()
        raise


def _outermost(step: Node | Fused) -> Node:
    return step.nodes[-1] if isinstance(step, Fused) else step


def used_variables(plan: Plan, kept: KeptPart | None) -> tuple[VariableInfo, ...]:
    """Those that steps, kept values or results take.

    First the ones that the program does not write.
    """
    used = {i for step in plan.block for i in step.inputs}  # type: ignore[union-attr]
    used.update(f for f in plan.program.fetches if f is not None)
    keys = () if kept is None else kept.keys
    variables = plan.program.variables
    found = [v for v in variables if v.start in used or v.current in used or v.key in keys]
    return tuple(sorted(found, key=lambda v: v.written))


class Settling:
    """The state of the work, for those who bind steps (settled_steps.py)."""

    def __init__(
        self,
        plan: Plan,
        variables: tuple[VariableInfo, ...],
        held: Sequence[Any],
        kept: Sequence[Any],
        feeds: Sequence[Any],
        lends: bool,
    ) -> None:
        self.lends = lends
        kernels = library()
        if kernels is None:
            raise Unsettled("no kernel library")
        self.kernels, self.library = kernels, kernels.fixed
        self.plan, self.program, self.lives = plan, plan.program, plan.lives
        self.variables = variables
        self.env: dict[int, Any] = {}
        self.kinds: dict[int, str] = {}
        self.lines: list[str] = []
        self.params: dict[str, Any] = {
            "np": np,
            "empty": np.empty,
            "float32": np.float32,
            "fail": _fail,
            "fail_for_nan": _fail_for_nan,
        }
        self.names: dict[int, str] = {}  # of values in lines
        self.position = 0
        self.dying: dict[int, list[Any]] = {}  # memory by the step after which it is free
        self.passing: dict[int, list[str]] = {}  # names of moving results, likewise
        self.free: list[Any] = []
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
        self.held_at: dict[int, int] = {}
        self._hold()
        self._take(held, kept, feeds)

    def _hold(self) -> None:
        """A training step changes what the processor and BLAS are set to, as every large run does
        (kernels/numpy/openblas.py).
        """
        if self.lends:
            self.emit(f"{self.param('hold', hold_blas)}()")

    def _take(self, held: Sequence[Any], kept: Sequence[Any], feeds: Sequence[Any]) -> None:
        self.n_steady = sum(not v.written for v in self.variables)
        self.variable_shapes = [_look(v) for v in held[: self.n_steady]]
        for i, v in enumerate(self.variables):
            for value in (v.start, v.current):
                self.env[value], self.kinds[value] = held[i], MOVING if v.written else STEADY
                self.of_variable[value] = True
                self.held_at[value] = i
            if v.written:
                self.emit(f"if H[{i}].shape != {held[i].shape}: fail()")
        given = len(self.program.feeds) - len(kept)
        for value, array in zip(self.program.feeds[given:], kept):
            self.env[value], self.kinds[value], self.of_variable[value] = array, STEADY, False
        self.kept_values = self.program.feeds[given:]
        self.kept_shapes = [_look(v) for v in kept]
        for n, (value, array) in enumerate(zip(self.program.feeds[:given], feeds)):
            if array.dtype.kind not in "fiub":
                raise Unsettled("a feed of another type")
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
        fitting = [b for b in self.free if size <= b.size <= 4 * size]
        if fitting:
            best = min(fitting, key=lambda b: int(b.size))
            self.free = [b for b in self.free if b is not best]
            return best
        self.nbytes += size
        if self.nbytes > MAX_BYTES:
            raise Unsettled("too large")
        return self.library.aligned(size)

    def release(self) -> None:
        self.free += self.dying.pop(self.position, [])
        gone = self.passing.pop(self.position, [])
        if gone:
            self.emit(" = ".join([*gone, "None"]))

    # values -------------------------------------------------------------------------------------
    def kind(self, value: int) -> str:
        found = self.kinds.get(value)
        if found is None:
            array = self.program.constants.get(value)
            if array is None:
                raise Unsettled(f"value {value} is not there")
            self.env[value], found = array, KNOWN
            self.kinds[value] = KNOWN
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

    def new_param(self, value: Any) -> str:
        return self.param(f"p{len(self.params)}", value)

    def emit(self, text: str) -> None:
        self.lines.append(text)

    def name(self, value: int) -> str:
        """How lines call a value."""
        found = self.names.get(value)
        if found is None:
            kind = self.kind(value)
            if kind in (KNOWN, FIXED):
                found = self.new_param(self.env[value])
            else:
                found = self._steady_name(value)
            self.names[value] = found
        return found

    def _steady_name(self, value: int) -> str:
        if value in self.held_at:
            return f"H[{self.held_at[value]}]"
        if not self.of_variable[value]:
            self.wanted.append(value)
            return f"W[{len(self.wanted) - 1}]"
        # a view of a variable is made in each run: it must not be held in between
        function, step = next((f, s) for f, s in self.steady if value in _outputs(s))
        args = ", ".join(self.name(i) for i in step.inputs)  # (these may be lines as well)
        name = f"t{len(self.lines)}"
        at = _outputs(step).index(value)
        call = f"{self.new_param(function)}({args})"
        self.emit(f"{name} = {call}" + (f"[{at}]" if len(_outputs(step)) > 1 else ""))
        return name

    # primitives ---------------------------------------------------------------------------------
    def target(self, value: int, shape: tuple[int, ...], *also: int) -> tuple[Any, str]:
        """Where a primitive writes a float32 value (and what else is found there), and what lines
        call it.
        """
        if (
            self._is_only_result(value)
            and not also
            and not self.lends
            and math.prod(shape) >= COPIED
        ):
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
    def bind(self) -> Binding:
        from headrace.lower.settled_steps import bind_step

        steps: dict[int, Node | Fused] = {}
        for step in self.plan.block:
            assert isinstance(step, (Node, Fused))
            first = len(self.lines)
            try:
                self._step(step, bind_step)
            except Unsettled as reason:
                raise Unsettled(f"{_outermost(step).op.name}: {reason}") from None
            # (two lines of definitions come before the first)
            steps.update({n + 3: step for n in range(first, len(self.lines))})
            self.release()
            self.position += 1
        if not self.calls:
            raise Unsettled("nothing for the kernel library")
        if self.lends and self.work < MIN_WORK:
            raise Unsettled("too little work")
        results = ", ".join(self._result(f) for f in self.program.fetches if f is not None)
        scratch = self.library.give_scratch(self.calls)
        self.emit(f"return ({results},)")
        feeds = "".join(f", f{n}" for n in range(self.n_feeds))
        body = "\n".join(f"  {line}" for line in self.lines)
        source = (
            f"def make(W, {', '.join(self.params)}):\n def run(H{feeds}):\n{body}\n return run\n"
        )
        namespace: dict[str, Any] = {}
        exec(compile(source, "<headrace settled>", "exec"), namespace)
        kept_alive: list[Any] = []
        run = namespace["make"](kept_alive, *self.params.values())
        renew = _Renewal(self, kept_alive, scratch)
        notes = {
            "primitives": len(self.calls),
            "lines": len(self.lines),
            "bytes": self.nbytes + scratch.nbytes,
        }
        keys = tuple(v.key for v in self.variables)
        return Binding(run, renew, self.variables, keys, self.n_steady, notes, steps)

    def _step(self, step: Node | Fused, bind_step: Callable[[Settling, Any], bool]) -> None:
        kinds = {self.kind(i) for i in step.inputs}
        of_shape = isinstance(step, Node) and step.opdef.name in _OF_SHAPE
        if of_shape or kinds <= {KNOWN}:
            self._compute(step, KNOWN)
        elif isinstance(step, Node) and self._is_of_values(step):
            raise Unsettled("a shape that is not known")
        elif kinds <= {KNOWN, STEADY}:
            self.steady.append((self.function(step), step))
            self._compute(step, STEADY)
            for value in _outputs(step):
                self.of_variable[value] = _is_view(step) and self._lies_in_variable(value, step)
        elif not self._view(step) and not self._moving_view(step) and not bind_step(self, step):
            for value in step.inputs:
                if value in self.doubtful:
                    self.leave_nan(self.name(value), self.doubtful[value] | {value})
            self.general(step)

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
        if step.opdef.name in _OF_KNOWN:
            return True
        shaping = step.opdef.traits.known_inputs
        if all(self.kind(step.inputs[k]) == KNOWN for k in shaping if k < len(step.inputs)):
            return False
        return any(shapes.num_elements(self.program.values[o].shape) is None for o in step.outputs)

    def _lies_in_variable(self, value: int, step: Node | Fused) -> bool:
        """Whether what may be a view of a variable is one: a copy has to be held between runs."""
        sources = [self.env[i] for i in step.inputs if self.of_variable.get(i)]
        return any(np.may_share_memory(self.env[value], source) for source in sources)

    def _compute(self, step: Node | Fused, kind: str) -> None:
        function = self.steady[-1][0] if kind == STEADY else self.function(step)
        for value, array in zip(_outputs(step), self._results(function, step)):
            self.env[value], self.kinds[value] = array, kind

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
        name = f"t{len(self.lines)}"
        self.emit(f"{name} = {call}")
        self.env[value], self.kinds[value], self.names[value] = array, MOVING, name
        self.passing.setdefault(max(self.last_use(value), self.position), []).append(name)

    def general(self, step: Node | Fused) -> None:
        """The kernel, and its results put where they belong."""
        function = self.function(step)
        outputs = _outputs(step)
        arrays = [np.asarray(a) for a in self._results(function, step)]
        if any(a.dtype.kind not in "fiubcV" for a in arrays):
            raise Unsettled("a value of another type")
        large = any(a.nbytes >= LEFT for a in arrays)
        if large and self.lends:
            raise Unsettled("a training step whose work is in other kernels")
        if len(outputs) == 1 and not _is_view(step) and large:
            self._let_move(step, function, arrays[0])
            return
        call = f"{self.new_param(function)}({', '.join(self.name(i) for i in step.inputs)})"
        copyto = self.param("copyto", np.copyto)
        if len(outputs) > 1:
            call_name = f"t{len(self.lines)}"
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

    def _result(self, value: int) -> str:
        """A fetched value as the caller's own."""
        fresh = self.fresh.get(value)
        if fresh is not None:
            return fresh
        if self.lends and self.kind(value) in (FIXED, MOVING):
            return self.name(value)
        array = self.array(value)
        if isinstance(array, np.ndarray) and array.dtype.kind == "O":
            raise Unsettled("a result of another type")
        if not self.program.values[value].shape and getattr(array, "ndim", 0) == 0:
            return f"{self.name(value)}[()]"
        if self.kind(value) == FIXED:
            return f"{self.name(value)}.copy()"
        return f"np.array({self.name(value)})"


class _Renewal:
    """Brings what depends on variables up to date."""

    __slots__ = ("kept_alive", "scratch", "settling")

    def __init__(self, settling: Settling, kept_alive: list[Any], scratch: object) -> None:
        self.settling, self.kept_alive, self.scratch = settling, kept_alive, scratch
        self.let_go()

    def __del__(self) -> None:
        self.settling.renewals.clear()  # they refer to it: its memory goes at once

    def __call__(self, held: Sequence[Any], kept: Sequence[Any]) -> None:
        s = self.settling
        if [_look(v) for v in held[: s.n_steady]] != s.variable_shapes:
            raise Unsettled("a variable has another shape")
        if [_look(v) for v in kept] != s.kept_shapes:
            raise Unsettled("a kept value has another shape")
        for i, v in enumerate(s.variables[: s.n_steady]):
            s.env[v.start] = s.env[v.current] = held[i]
        s.env.update(zip(s.kept_values, kept))
        for function, step in s.steady:
            s.env.update(zip(_outputs(step), s._results(function, step)))
        for renew in s.renewals:
            renew()
        self.kept_alive[:] = [s.env[v] for v in s.wanted]
        self.let_go()

    def let_go(self) -> None:
        """Variables, and views of them, are not held between runs."""
        s = self.settling
        for value, lies in s.of_variable.items():
            if lies:
                s.env[value] = None
        for value, kind in s.kinds.items():
            if kind == MOVING:
                s.env[value] = None


def _fail_for_nan() -> None:
    raise Unsettled("a relu's input is NaN or minus infinity: the general way tells them apart")


def _fail() -> None:
    raise Unsettled("the kernel library refused a call")


def _look(value: Array | np.generic | Held) -> tuple[tuple[int, ...] | None, np.dtype[Any] | None]:
    return getattr(value, "shape", None), getattr(value, "dtype", None)


def _lies(array: Any) -> tuple[Any, ...]:
    return array.shape, array.strides, array.dtype


def _alike(array: Array, lies: tuple[Any, ...]) -> Array:
    if _lies(array) != lies:
        raise Unsettled("an array lies in another way")
    return array


def _outputs(step: Node | Fused) -> tuple[int, ...]:
    return (step.output,) if isinstance(step, Fused) else step.outputs


def _is_view(step: Node | Fused) -> bool:
    return isinstance(step, Node) and (step.opdef.traits.view or step.opdef.name in _VIEWS)


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
