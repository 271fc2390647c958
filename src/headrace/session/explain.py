"""``sess.explain(fetches, feeds)``: what a run does, as data and as text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.core import shapes, trace
from headrace.kernels import accel
from headrace.kernels.numpy import philox
from headrace.kernels.packed_weights import WeightsForm
from headrace.lower.bound_runs import BoundRuns
from headrace.lower.executable import Executable
from headrace.lower.fusion import Fused, PlanBlock, PlanIf, PlanWhile
from headrace.lower.group_reasons import why_alone
from headrace.lower.listing_text import Times, shortened, text_of_listing
from headrace.lower.native_groups import CountedStep, compiler_status, reason_alone, reason_fused
from headrace.lower.native_kernels import Warming, reason_compiled
from headrace.lower.native_segments import NativeSegment
from headrace.lower.passes import decisions
from headrace.lower.plan import Plan
from headrace.lower.plan import steps as steps_of
from headrace.lower.select_updates import Grouped
from headrace.lower.session_state import State
from headrace.program.nodes import Node, Program, walk
from headrace.session.step_times import WIDTH, StepTimes, with_line

if TYPE_CHECKING:
    from headrace.core.tensor import Tensor
    from headrace.session.session import Session

__all__ = ["Binding", "Explanation", "Step", "explain"]


@dataclass(frozen=True)
class Step:
    """One step of the plan."""

    kind: str  # "op", "fused", "if", "while"
    name: str
    op_type: str
    shape: str
    line: str
    depth: int = 0
    by: str = ""  # "native", "library", "NumPy"; "NumPy or library" where a kernel decides
    why_not_native: str = ""
    apart: str = ""  # why it is in no group with others, if such operations may be


@dataclass(frozen=True)
class Binding:
    """A plan bound to the shapes of its feeds (lower/bound_runs.py)."""

    shapes: list[tuple[int, ...]]
    primitives: int  # calls of the kernel library
    other_lines: int  # NumPy functions, other kernels, copies


@dataclass(frozen=True)
class Explanation:
    """A plan in words and numbers. ``str()`` gives the text."""

    fetches: list[str]
    feeds: list[str]
    executor: str
    not_asked_for: str | None  # why it is another executor than the session's
    ops_in_graph: int
    ops_needed: int
    pruned: int
    rewrites: dict[str, int]
    firings: list[tuple[str, str]]  # (rule, operation at which its pattern ends)
    near_misses: list[tuple[str, str, str]]  # (rule, operation, why it was not applied there)
    folded: int
    shared: int
    fused: list[list[str]]
    steps: list[Step]
    variables_read: list[str]
    variables_written: list[str]
    constants: int
    constant_bytes: int
    buffers_reused: int
    kept: list[
        str
    ]  # operations that run again only when a variable that they depend on was written
    may_be_bound: bool  # whether runs are bound to the shapes of their feeds
    unbound: str | None  # why they are not
    passes: dict[str, int]  # how many decisions each pass of lowering made
    planned_again: list[str]  # for which shapes of feeds; why not for others
    bound: list[Binding]  # what this session has bound so far
    refused: list[tuple[list[tuple[int, ...]], str]]  # shapes that it could not bind, and why
    kernel_library: str
    native: str  # the compiler of fused steps, or why there is none
    weights: WeightsForm | None  # how weights of another type than float32 are used, and why
    source: str = field(repr=False, default="")
    listing: str = field(repr=False, default="")  # what runs while shapes are not known, as text
    bound_listings: list[str] = field(repr=False, default_factory=list)  # and what is bound
    times: StepTimes | None = None  # how long each step took, if that was asked for

    def as_dict(self) -> dict[str, Any]:
        import dataclasses

        return dataclasses.asdict(self)

    def __str__(self) -> str:
        lines = [line for text in _text(self) for line in text.split("\n")]
        return "\n".join([part for line in lines for part in _wrapped(line)])


def explain(
    session: Any, executable: Executable, elements: list[Any], times: StepTimes | None = None
) -> Explanation:
    again = executable.planned_again(session._state)
    found = executable.details.specialised
    notes_on_shapes = (
        [f"no: {executable.details.not_specialised or 'this executor does not'}"]
        if found is None
        else found.notes(session._state)
    )
    if again:  # what runs now
        executable = again[-1][1]
    run = executable.details.general_run or executable.run
    plan = executable.plan
    program = plan.program
    fused = [s for s in steps_of(plan.block) if isinstance(s, Fused)]
    steps: list[Step] = []
    segments = {id(s): g for g in executable.details.segments for s in g.steps}
    compiled = _Compiled(plan, session._state, segments, *_when_bound(session, run))
    _steps(executable.plan.block, program, steps, 0, compiled)
    notes = program.notes
    listing = executable.details.listing
    measured = None if times is None else (times.by_step, times.seconds)
    return Explanation(
        fetches=[_label(e) for e in elements],
        feeds=[_feed_label(program, f) for f in program.feeds[: len(program.feeds) - plan.kept]],
        executor=executable.details.executor,
        not_asked_for=executable.details.why,
        ops_in_graph=program.total_ops,
        ops_needed=program.needed_ops,
        pruned=max(0, program.total_ops - program.needed_ops),
        rewrites=dict(notes),
        firings=[(f.rule, f.op) for f in program.firings],
        near_misses=[(m.rule, m.op, m.why_not) for m in program.near_misses],
        folded=notes.get("constant folding", 0) + notes.get("known shape", 0),
        shared=notes.get("common subexpression", 0),
        fused=[[n.op.name for n in f.nodes] for f in fused],
        steps=steps,
        variables_read=_variables_read(program, executable.details.kept),
        variables_written=[v.name for v in program.variables if v.written],
        constants=len(program.constants),
        constant_bytes=sum(int(c.nbytes) for c in program.constants.values()),
        buffers_reused=0 if listing is None else listing.n_reused,
        kept=_kept(executable.details.kept),
        may_be_bound=isinstance(run, BoundRuns),
        unbound=executable.details.unbound,
        passes=decisions(plan),
        planned_again=notes_on_shapes,
        bound=_bound(session, run),
        refused=_refused(session, run),
        kernel_library=accel.status(),
        native=compiler_status(),
        weights=program.weights_form,
        source="" if listing is None else "\n".join(listing.lines),
        listing="" if listing is None else text_of_listing(listing, measured),
        bound_listings=_bound_listings(session, run, measured),
        times=times,
    )


def _bound_listings(
    session: Session, run: BoundRuns | Callable[..., Any], times: Times | None
) -> list[str]:
    if not isinstance(run, BoundRuns):
        return []
    return [text_of_listing(found, times) for _, found in run.listings(session._state)]


def _kept(part: Executable | None) -> list[str]:
    return [] if part is None else [n.op.name for n in walk(part.plan.program.body)]


def _bound(session: Session, run: Callable[..., Any] | BoundRuns) -> list[Binding]:
    if not isinstance(run, BoundRuns):
        return []
    found = []
    for shapes_of_feeds, notes in run.bound(session._state):
        others = notes["lines"] - notes["primitives"]
        found.append(Binding(shapes_of_feeds, notes["primitives"], others))
    return found


def _refused(
    session: Session, run: BoundRuns | Callable[..., Any]
) -> list[tuple[list[tuple[int, ...]], str]]:
    return run.refused(session._state) if isinstance(run, BoundRuns) else []


def _variables_read(program: Program, kept: Executable | None) -> list[str]:
    """Variables whose value some operation or fetch takes.

    One that is only assigned to is not among them.
    """
    used = {f for f in program.fetches if f is not None}
    nodes = list(walk(program.body))
    if kept is not None:
        nodes += walk(kept.plan.program.body)
    for node in nodes:
        plain_write = node.opdef.traits.uninit_ok
        skipped = node.opdef.traits.writes if plain_write else ()
        used.update(v for i, v in enumerate(node.inputs) if i not in skipped)
    return [v.name for v in program.variables if v.start in used or v.current in used]


def _label(element: Tensor) -> str:
    return element.name if hasattr(element, "name") else element.op.name


def _feed_label(program: Program, value: int) -> str:
    tensor = program.values[value].tensor
    return "?" if tensor is None else tensor.name


class _Compiled(NamedTuple):
    """What is known of who computes a plan's steps.

    ``segments``: by a step's id, the one that it belongs to. ``otherwise``: who computes a value if
    compiled code does not, where that has been decided. ``warming``: by value, bound steps that are
    compiled once they are hot.
    """

    plan: Plan
    state: State
    segments: dict[int, NativeSegment]
    otherwise: dict[int, str]
    bound_segments: dict[int, NativeSegment]  # by value
    bound_groups: dict[int, CountedStep]  # by value
    warming: dict[int, Warming]

    def by(self, outputs: tuple[int, ...], why_not_native: str) -> str:
        if not why_not_native:
            return "native"
        return next((self.otherwise[o] for o in outputs if o in self.otherwise), OTHERWISE)

    def alone(self, node: Node, program: Program) -> str:
        """Why an op that is a step of its own is not native; empty if it is."""
        for o in node.outputs:
            if o in self.warming:
                return self.warming[o].reason
            if (by := self.otherwise.get(o)) in _WHY:
                return _WHY[by]
        return _why_not_native(node, program, self.state)

    def reason(self, segment: NativeSegment, outputs: tuple[int, ...]) -> str:
        """Why a segment's step is not native; empty if it is."""
        for o in outputs:
            if o in self.bound_segments:
                return self.bound_segments[o].reason(self.state.hot)
        if any(o in self.otherwise for o in outputs):
            return "where shapes are bound it is a step of its own, not part of a native function"
        return segment.reason(self.state.hot)


def _when_bound(
    session: Session, run: BoundRuns | Callable[..., Any]
) -> tuple[dict[int, str], dict[int, NativeSegment], dict[int, CountedStep], dict[int, Warming]]:
    """Who computes a value, the library or NumPy, as the newest bound plan has it; and by value the
    segments, the fused steps and the others on their way to compiled code that it has.
    """
    found: dict[int, str] = {}
    segments: dict[int, NativeSegment] = {}
    groups: dict[int, CountedStep] = {}
    warming: dict[int, Warming] = {}
    if not isinstance(run, BoundRuns):
        return found, segments, groups, warming
    for _, listing in run.listings(session._state)[-1:]:
        if listing.bound is not None:
            counted = [p for p in listing.bound.params.values() if isinstance(p, CountedStep)]
            groups.update((c.output, c) for c in counted)
        for instr in listing.instrs:
            by = _IMPLEMENTATIONS.get(instr.implementation)
            if by is not None:
                found.update(dict.fromkeys(instr.outputs, by))
            if isinstance(instr.detail, NativeSegment):
                segments.update(dict.fromkeys(instr.outputs, instr.detail))
            if isinstance(instr.detail, Warming):
                warming.update(dict.fromkeys(instr.outputs, instr.detail))
    return found, segments, groups, warming


def _steps(
    block: PlanBlock,
    program: Program,
    out: list[Step],
    depth: int,
    compiled: _Compiled,
) -> None:
    state, segments = compiled.state, compiled.segments
    for s in block:
        if isinstance(s, PlanIf):
            tensor = program.values[s.pred].tensor
            name = tensor.name if tensor is not None else "a constant"
            out.append(Step("if", name if s.branch else f"not {name}", "If", "", "", depth))
            _steps(s.body, program, out, depth + 1, compiled)
        elif isinstance(s, PlanWhile):
            out.append(
                Step(
                    "while", s.loop.op.name, "While", "", trace.user_line(s.loop.op._frames), depth
                )
            )
            _steps(s.test, program, out, depth + 1, compiled)
            _steps(s.body, program, out, depth + 1, compiled)
        elif isinstance(s, Grouped):
            kind = f"{s.nodes[0].opdef.name} x {len(s.nodes)}"
            names = ", ".join(n.op.name for n in s.nodes)
            out.append(Step("grouped", names, kind, "", _line(s.nodes[0]), depth))
        elif isinstance(s, Fused):
            last = s.nodes[-1]
            kinds = " + ".join(n.opdef.name for n in s.nodes)
            segment = segments.get(id(s))
            of_segment = "no segment" if segment is None else compiled.reason(segment, (s.output,))
            counted = compiled.bound_groups.get(s.output)
            why = of_segment and (
                reason_fused(s, program, state.hot) if counted is None else counted.reason()
            )
            by = compiled.by((s.output,), why)
            shape = _shape(program, s.output)
            reasons = [compiled.plan.apart.get(n.op, "") for n in s.nodes]
            apart, line = next(filter(None, reasons), ""), _line(last)
            out.append(Step("fused", last.op.name, kinds, shape, line, depth, by, why, apart))
        else:
            shape = _shape(program, s.outputs[0]) if s.outputs else ""
            segment = segments.get(id(s))
            why = (
                compiled.alone(s, program)
                if segment is None
                else compiled.reason(segment, s.outputs)
            )
            by = compiled.by(s.outputs, why)
            apart, line = why_alone(s, compiled.plan), _line(s)
            out.append(Step("op", s.op.name, s.opdef.name, shape, line, depth, by, why, apart))


def _why_not_native(node: Node, program: Program, state: State) -> str:
    """Of a step of one op; empty if compiled code computes it."""
    opdef = node.opdef
    if opdef.native is not None:
        variable = program.variables[node.writes[0]]
        size = shapes.num_elements(program.values[variable.start].shape) or 0
        dtype = np.dtype(variable.dtype.as_numpy_dtype)
        return str(opdef.native.why_not(dtype, state.versions[variable.key], size))
    if opdef.traits.compiled:
        return reason_compiled(node, state.hot)
    if opdef.traits.random:
        return "" if philox.NATIVE.reason == "native" else philox.NATIVE.reason
    return reason_alone(opdef.name)


def _shape(program: Program, value: int) -> str:
    info = program.values[value]
    return f"{info.dtype.name}{shapes.show(info.shape)}"


def _line(node: Node) -> str:
    return trace.user_line(node.op._frames)


def _wrapped(line: str) -> list[str]:
    """A line in parts of at most ``WIDTH`` columns, the further ones below the first one's text."""
    if len(line) <= WIDTH:
        return [line]
    indent = " " * min(13, len(line) - len(line.lstrip()) + 5)
    return textwrap.wrap(
        line,
        WIDTH,
        subsequent_indent=indent,
        replace_whitespace=False,
        drop_whitespace=True,
        break_on_hyphens=False,
    )


def _bound_text(e: Explanation) -> str:
    if not e.may_be_bound:
        return f"no: {e.unbound or 'this executor does not bind runs to shapes'}"
    bound = [
        f"{' '.join(map(shapes.show, b.shapes)) or 'no feeds'} ({b.primitives} "
        f"primitives, {b.other_lines} other lines)"
        for b in e.bound
    ]
    return f"bound to the shapes of its feeds: {', '.join(bound) or 'none yet'}"


def _text(e: Explanation) -> list[str]:
    lines = [
        f"run({', '.join(e.fetches) or 'nothing'}) fed with {', '.join(e.feeds) or 'nothing'}",
        f"  executor   {e.executor}; large products and updates: {e.kernel_library}",
        *([f"             not the session's: {e.not_asked_for}"] if e.not_asked_for else []),
        f"  native     {sum(s.by == 'native' for s in e.steps)} step(s); {e.native}",
        f"  graph      {e.ops_in_graph} operations, {e.ops_needed} needed, {e.pruned} pruned",
        f"  rewrites   folded {e.folded}, shared {e.shared}"
        + "".join(f", {k} {v}" for k, v in e.rewrites.items() if k not in _NAMED),
        f"  fused      {len(e.fused)} group(s) of {sum(map(len, e.fused))} operations",
        f"  buffers    {e.buffers_reused} step(s) write into a buffer that is no longer needed",
        f"  kept       {len(e.kept)} operation(s) depend on variables alone and run when "
        "one was written" + (f": {', '.join(e.kept[:8])}" if e.kept else ""),
        f"  shapes     planned again for the feeds: {'; '.join(e.planned_again)}",
        f"  passes     {', '.join(f'{k} {n}' for k, n in e.passes.items() if n) or 'none'}",
        f"  bound      {_bound_text(e)}",
        *[
            f"             not for {' '.join(map(shapes.show, given)) or 'no feeds'}: {why}"
            for given, why in e.refused
        ],
        f"  constants  {e.constants} ({e.constant_bytes} bytes)",
        f"  variables  reads {', '.join(e.variables_read) or 'none'}; writes "
        f"{', '.join(e.variables_written) or 'none'}",
        f"  steps      {len(e.steps)}",
    ]
    if e.weights is not None:
        w = e.weights
        lines[2:2] = [
            f"  weights    {w.asked} was asked for: {w.way} ({w.reason})",
            f"             error of a result: up to {w.error_bound}",
        ]
    if e.times is not None:
        lines += e.times.lines()
    lines += _step_lines(e.steps)
    if e.near_misses:
        shown = f", the first {_MISSES_SHOWN}" if len(e.near_misses) > _MISSES_SHOWN else ""
        lines.append(f"  near misses {len(e.near_misses)}{shown}")
    for rule, op, why_not in e.near_misses[:_MISSES_SHOWN]:
        lines.append(f"       {rule} at {op}: {why_not}")
    # (the one that runs: bound, if there is one)
    for text in e.bound_listings or [e.listing]:
        lines += [f"  {line}" for line in text.splitlines()]
    return lines


def _step_lines(steps: list[Step]) -> list[str]:
    """A line for each step; below it the user's line and why it is not native."""
    lines = []
    width = min(max([len(s.op_type) for s in steps] or [0]), 24)
    for i, s in enumerate(steps):
        pad = "  " * s.depth
        text = f"  {i:4d} {pad}{s.op_type:<{width}}  "
        room = WIDTH - len(text) - len(s.shape) - len("     [native]")
        text = f"{text}{shortened(s.name, max(8, room))}  {s.shape}".rstrip()
        if s.by == "native":
            text += "   [native]"
        below = f"       {pad}    "
        lines.append(with_line(text, s.line, below))
        if s.kind in ("op", "fused") and s.why_not_native:
            by = s.by if s.kind == "op" else "not native"
            lines.append(f"{below}[{by}: {s.why_not_native}]")
        if s.apart:
            lines.append(f"{below}[{NOT_GROUPED[s.kind]}: {s.apart}]")
    return lines


#: How the line of a step with a reason for that begins.
NOT_GROUPED = {"op": "not in a group", "fused": "not in a larger group"}
_MISSES_SHOWN = 10
OTHERWISE = "NumPy or library"
#: By the implementation of a bound instruction; the kernels of other ops decide when they run.
_IMPLEMENTATIONS = {
    "primitive": "library",
    "in a product": "library",
    "compiled if hot": "library",
    "NumPy out=": "NumPy",
    "view": "nothing to compute",
    "when bound": "computed before",
    "when written": "computed before",
}
#: Why a step of these is not native.
_WHY = {
    "nothing to compute": "a view of its input",
    "computed before": "its value is kept from run to run",
}
_NAMED = frozenset(["constant folding", "known shape", "common subexpression"])
