"""From a graph, fetches and feeds to a Program.

Pruning, scheduling and the meaning of variable reads are settled here. A read means the value from
before the run unless the reading operation depends, by data or control, on a write of that variable
in this run; then it means the value at that point. A TF-1 reference read (``v/read``) is looked
through: what counts is the operation that uses it. Only across an ``Assign`` that may change the
variable's size the read counts: TensorFlow then allocates a new array and the read keeps the old
one (if the size stays, the new value goes into the array that the read shares). A variable that
is itself fetched gives its value at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from headrace.core import dtypes, op_limits
from headrace.core.contexts import CondBase, guards_of
from headrace.core.opdef import OpDef, lookup
from headrace.core.schedule import Loop, Unit, guard_of, needed_ops, schedule
from headrace.core.tensor import Operation, Tensor
from headrace.errors import InvalidArgumentError, OpError, UnimplementedError
from headrace.program.nodes import (
    Block,
    If,
    LoopValue,
    Node,
    Program,
    Statement,
    VariableInfo,
    While,
)
from headrace.program.variable_reads import (
    FORWARD_ROLES,
    VARIABLE_ROLES,
    VariableInRun,
    VariableReads,
    variable_key,
)

__all__ = ["FinalValue", "snapshot"]


class FinalValue:
    """A fetch of a variable itself: its value at the end of the run."""

    __slots__ = ("op",)

    def __init__(self, op: Operation) -> None:
        self.op = op

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FinalValue) and other.op is self.op

    def __hash__(self) -> int:
        return hash((FinalValue, self.op))


Fetch: TypeAlias = Tensor | Operation | FinalValue


def snapshot(
    fetches: Sequence[Fetch],
    feeds: Sequence[Tensor],
    total_ops: int = 0,
    done: frozenset[Operation] = frozenset(),
) -> Program:
    """The program that computes ``fetches`` given ``feeds``.

    Operations in ``done`` need not be waited for.
    """
    return _Builder(fetches, feeds, total_ops, done).build()


def _known_empty(op: Operation) -> bool:
    """An operation that has nothing to compute does not miss its kernel."""
    return any(t._shape is not None and 0 in t._shape for t in op._outputs)


def _check_kernels(ops: Iterable[Operation]) -> None:
    """TensorFlow registers some types without a kernel; such an operation fails when it is to
    run.
    """
    if not op_limits.are_enforced():
        return
    for op in ops:
        check_attrs = op._opdef.traits.check_attrs
        if check_attrs is not None:
            try:
                check_attrs(op._attrs)
            except OpError as error:
                raise type(error)(None, op, error.message) from None
        for attr in op._opdef.without_kernel:
            dtype = op._attrs[attr.name]
            if op.graph._has_later_types:
                continue
            if dtype in attr.unimplemented and not _known_empty(op):
                raise UnimplementedError(
                    None,
                    op,
                    f"The kernel of Op '{op.type}' used by node {op.name} does not "
                    f"support {attr.name}={dtype.name}. "
                    "TensorFlow's does not either; convert the inputs with tf.cast.",
                )
            if dtype in attr.missing:
                raise InvalidArgumentError(
                    None,
                    op,
                    f"No OpKernel was registered to support Op '{op.type}' used by node "
                    f"{op.name} with these attrs: "
                    f"[{attr.name}={dtype.name}]. TensorFlow has none either; convert the "
                    "inputs with tf.cast.",
                )


class _Builder(VariableReads):
    def __init__(
        self,
        fetches: Sequence[Fetch],
        feeds: Sequence[Tensor],
        total_ops: int,
        done: frozenset[Operation],
    ) -> None:
        super().__init__()
        self.fetches = fetches
        self.done = done
        self.feeds = feeds
        self.total_ops = total_ops
        self.constants: dict[int, Any] = {}
        self.fetched = {f for f in fetches if isinstance(f, Tensor)}
        #: The frame of what comes from an Enter that belongs to no loop.
        self.loose_frames: dict[Operation, str] = {}

    # the whole ----------------------------------------------------------------------------------
    def build(self) -> Program:
        feed_ids = tuple(self._feed(t) for t in self.feeds)
        fed = set(self.feeds)
        roots: dict[Operation, None] = {}
        for f in self.fetches:
            if isinstance(f, Tensor):
                if f not in fed:
                    roots[f._op] = None
            else:
                roots[f.op if isinstance(f, FinalValue) else f] = None
        needed = needed_ops(roots, fed, self.done)
        _check_kernels(needed)
        units = schedule(needed)
        self.preds = _predicates(needed)
        self._find_writes(units)
        body = self._block(units)
        fetch_ids = tuple(self._fetch(f) for f in self.fetches)
        effects = tuple(
            self.value_of[t]
            for f in self.fetches
            if isinstance(f, Operation)
            for t in f._outputs
            if t in self.value_of
        )
        variables = tuple(
            VariableInfo(
                variable_key(v.op),
                v.op.name,
                v.op._attrs["dtype"],
                v.op,
                v.start,
                v.current,
                v.write_mask != 0,
            )
            for v in self.variables.values()
        )
        return Program(
            feed_ids,
            fetch_ids,
            body,
            self.values,
            self.constants,
            variables,
            self.total_ops,
            len(needed),
            effects=effects,
        )

    def _feed(self, tensor: Tensor) -> int:
        value = self._new(tensor._dtype._base, tensor._shape, tensor)
        self.value_of[tensor] = value
        return value

    def _fetch(self, fetch: Fetch) -> int | None:
        if isinstance(fetch, FinalValue):
            return self._variable(fetch.op).current
        if isinstance(fetch, Operation):
            return None
        value = self.value_of.get(fetch)
        if value is not None:
            return value
        variable = self.refs.get(fetch)
        if variable is None:
            raise AssertionError(f"no value for fetched tensor {fetch.name}")
        if fetch._op._opdef.role in VARIABLE_ROLES:
            return variable.current
        return self._version(fetch._op, variable)

    # statements ---------------------------------------------------------------------------------
    def _block(self, units: Sequence[Unit]) -> Block:
        """Units in order; those under branches go into nested If statements."""
        top: list[Statement] = []
        open_guards: list[tuple[CondBase, list[Statement]]] = []

        def close_to(depth: int) -> None:
            while len(open_guards) > depth:
                guard, statements = open_guards.pop()
                if statements:
                    target = open_guards[-1][1] if open_guards else top
                    target.append(
                        If(self.value_of[guard.pred], bool(guard.branch), tuple(statements))
                    )

        for unit in units:
            if not open_guards and isinstance(unit, Operation) and unit._context is None:
                self._operation(unit, top)
                continue
            guards = guard_of(unit)
            common = 0
            while (
                common < min(len(guards), len(open_guards))
                and guards[common].pred is open_guards[common][0].pred
                and guards[common].branch == open_guards[common][0].branch
            ):
                common += 1
            close_to(common)
            for guard in guards[common:]:
                open_guards.append((guard, []))
            target = open_guards[-1][1] if open_guards else top
            if isinstance(unit, Loop):
                target.append(self._loop(unit))
            else:
                self._operation(unit, target)
        close_to(0)
        return tuple(top)

    def _operation(self, op: Operation, target: list[Statement]) -> None:
        if self.write_bits:
            self._note_mask(op)
        role = op._opdef.role
        if self.loose_frames or (role == "enter" and op._context is None):
            self._check_frames(op)
        if role == "constant":
            out = op._outputs[0]
            if out not in self.value_of:
                value = self.value_of[out] = self._new(out._dtype, op._attrs["value"].shape, out)
                self.constants[value] = op._attrs["value"]
        elif role in VARIABLE_ROLES or role == "nothing":
            return
        elif role in FORWARD_ROLES:
            self._forward(op, target)
        elif role == "merge":
            self._merge(op, target)
        else:
            self._node(op, target)

    def _check_frames(self, op: Operation) -> None:
        """An operation takes its inputs from one frame.

        An Enter outside of every loop opens one, too.
        """
        found = {
            frame: t._op.name
            for t in op._inputs
            if (frame := self.loose_frames.get(t._op)) is not None
        }
        if len(found) > 1:
            (a, of_a), (b, of_b) = list(found.items())[:2]
            raise InvalidArgumentError(
                None,
                op,
                f"{{{{node {op.name}}}}} has inputs from different frames. The input "
                f"{{{{node {of_a}}}}} is in frame '{a}'. The input {{{{node {of_b}}}}} is in frame "
                f"'{b}'.",
            )
        if op._opdef.role == "enter" and op._context is None:
            self.loose_frames[op] = op._attrs["frame_name"]
        elif found and op._opdef.role != "exit":
            self.loose_frames[op] = next(iter(found))

    def _forward(self, op: Operation, target: list[Statement]) -> None:
        """Operations that only pass a value on."""
        source = op._inputs[0]
        variable = self.refs.get(op._outputs[0])
        if variable is not None:
            if variable.resize_mask:
                self._forward_read(op, variable, target)
            return
        if source in self.refs:  # an ordered read of a reference
            self._node(op, target)
            return
        if op._opdef.role == "next":
            return
        value = self.value_of.get(source)
        if value is None:
            raise ValueError(
                f"'{op.name}' ({op.type}) uses {source.name}, which has no value there"
            )
        for out in op._outputs:
            self.value_of.setdefault(out, value)

    def _forward_read(
        self, op: Operation, variable: VariableInRun, target: list[Statement]
    ) -> None:
        """A read of a variable whose size may change, or what passes such a read on."""
        if self.read_of.get(op._outputs[0]) is op._outputs[0]:
            self._keep_read(op, variable, target)
            return
        across = self._read_across(op, 0, target)
        if across is not None:
            self.value_of.update(dict.fromkeys(op._outputs, across))

    def _merge(self, op: Operation, target: list[Statement]) -> None:
        pred = op._cond_pred
        if op._outputs[0] in self.refs or op._outputs[0] in self.value_of:
            # a loop variable (given by the loop) or a reference
            if pred is not None and self._is_used(op._outputs[1]):
                self._merge_index(op, self.value_of[pred], target)
            return
        if pred is None:
            raise ValueError(f"Merge '{op.name}' does not belong to a tf.cond")
        order = (1, 0) if op._merge_swapped else (0, 1)  # the value for false comes first
        inputs = (self.value_of[pred], *(self._input(op, i, target) for i in order))
        outputs = tuple(self._new(t._dtype._base, t._shape, t) for t in op._outputs)
        for t, value in zip(op._outputs, outputs):
            self.value_of[t] = value
        target.append(Node(op._opdef, inputs, outputs, op._attrs, op))
        if order == (1, 0) and self._is_used(op._outputs[1]):
            self._merge_index(op, inputs[0], target)

    def _is_used(self, tensor: Tensor) -> bool:
        return tensor in self.fetched or bool(tensor._op.graph._consumers_of(tensor))

    def _merge_index(self, op: Operation, pred: int, target: list[Statement]) -> None:
        """Which of a Merge's inputs was there, by the predicate: the second one if that is true, or
        the first one where the inputs are swapped.
        """
        out = op._outputs[1]
        if op._merge_swapped:
            flipped = self._new(dtypes.bool, (), None)
            target.append(Node(lookup("LogicalNot"), (pred,), (flipped,), {}, op))
            pred = flipped
        value = self.value_of[out] = self._new(dtypes.int32, (), out)
        attrs = {"SrcT": dtypes.bool, "DstT": dtypes.int32, "Truncate": False}
        target.append(Node(lookup("Cast"), (pred,), (value,), attrs, op))

    def _input(self, op: Operation, i: int, target: list[Statement] | None = None) -> int:
        tensor = op._inputs[i]
        value = self.value_of.get(tensor)
        if value is not None:
            return value
        variable = self.refs.get(tensor)
        if variable is None:
            raise ValueError(
                f"'{op.name}' ({op.type}) uses {tensor.name}, which has no value there; "
                "was it made inside another branch or loop?"
            )
        if variable.resize_mask and target is not None:
            across = self._read_across(op, i, target)
            if across is not None:
                return across
        return self._version(op, variable)

    def _node(self, op: Operation, target: list[Statement]) -> None:
        opdef: OpDef = op._opdef
        value_of = self.value_of
        inputs = tuple(
            [
                value_of[t] if t in value_of else self._input(op, i, target)
                for i, t in enumerate(op._inputs)
            ]
        )
        outputs = []
        for t in op._outputs:
            if t in value_of:  # fed, though another output of the operation is needed
                outputs.append(self._new(t._dtype._base, t._shape, t))
                continue
            value = self._new(t._dtype._base, t._shape, t)
            outputs.append(value)
            value_of[t] = value
        writes: tuple[int, ...] = ()
        bit = self.write_bits.get(op) if self.write_bits else None
        if bit is not None:
            self.masks[op] = self.masks.get(op, 0) | bit
            writes = tuple(self.refs[op._inputs[i]].index for i in opdef.traits.writes)
            for t in op._outputs:
                # readers of a reference mean the variable; only a fetch means this very value
                if t._dtype._is_ref and t not in self.fetched:
                    del value_of[t]
        target.append(Node(opdef, inputs, tuple(outputs), op._attrs, op, writes))

    # loops --------------------------------------------------------------------------------------
    def _loop(self, loop: Loop) -> While:
        ops = [u for u in [*loop.test, *loop.body] if isinstance(u, Operation)]
        enters = [o for o in ops if o._opdef.role == "enter"]
        merges = [
            o for o in ops if o._opdef.role == "merge" and o._inputs[0]._op._opdef.role == "enter"
        ]
        before = 0
        for enter in enters:
            mask = 0
            for source in (enter._inputs[0]._op, *enter._control_inputs):
                mask |= self.masks.get(source, 0)
            self.masks[enter] = mask
            before |= mask
            if enter._outputs[0] not in self.refs:
                self.value_of[enter._outputs[0]] = self._input(enter, 0)
        started: list[tuple[int, int, Operation]] = []
        for merge in merges:
            if merge._outputs[0] in self.refs:
                continue
            out = merge._outputs[0]
            value = self._new(out._dtype._base, out._shape, out)
            self.value_of[out] = value
            started.append((value, self.value_of[merge._inputs[0]], merge))
            self.masks[merge] = before
        self.frames.append(loop.context)
        outer, self.before_loop = self.before_loop, self.before_loop | before
        skip = {*enters, *merges}
        test = self._block([u for u in loop.test if u not in skip])
        cond_op = next(o for o in ops if o._opdef.role == "loop condition")
        cond = self.value_of[cond_op._outputs[0]]
        body = self._block([u for u in loop.body if u not in skip])
        self.frames.pop()
        self.before_loop = outer
        values = []
        after = before
        for o in _all_ops(loop):
            after |= self.masks.get(o, 0)
        for value, init, merge in started:
            values.append(LoopValue(value, init, self._input(merge._inputs[1]._op, 0)))
        for o in ops:
            if o._opdef.role == "switch" and after:
                self.masks[o] = after
        return While(tuple(values), test, cond, body, cond_op)


def _predicates(needed: set[Operation]) -> set[Tensor]:
    contexts = {op._context for op in needed}
    found = {guard.pred for context in contexts for guard in guards_of(context)}
    found.update(op._cond_pred for op in needed if op._cond_pred is not None)
    return found


def _all_ops(loop: Loop) -> list[Operation]:
    out: list[Operation] = []
    stack: list[Unit] = [loop]
    while stack:
        unit = stack.pop()
        if isinstance(unit, Loop):
            stack.extend([*unit.test, *unit.body])
        else:
            out.append(unit)
    return out
