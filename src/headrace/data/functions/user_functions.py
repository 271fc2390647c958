"""The user's functions: traced when a dataset is made, bound to a state when it runs.

    function = traced(lambda x, y: x + y, dataset.element_spec, "Dataset.map()")
    function.output_spec          # structure of what it returns
    function.captured             # tensors from outside: the op's ``other_arguments``

``bound(function, rt, captured)`` is what a kernel makes of it: arrays in, tuple of arrays out. It
holds the state weakly: a dropped session ends its iterators, whatever threads they have.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.core import dtypes
from headrace.core.func_graph import FuncGraph
from headrace.core.graph import Graph, get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.opdef import KernelNode
from headrace.core.seeds import random_ops_numbered
from headrace.core.specs import TensorSpec
from headrace.core.tensor import Operation, Tensor
from headrace.data.api import structure
from headrace.data.functions.direct import python_function
from headrace.data.functions.vectorized import OverBatches, over_batches
from headrace.data.runtime.block_functions import BlockFunction
from headrace.data.runtime.file_stages import text_scalar
from headrace.data.runtime.parallel import Learned
from headrace.data.runtime.stages import Stage
from headrace.functions.tracing import TracedFunction, converted, trace_into
from headrace.session.graph_function import GraphFunction

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.formats.attr_values import FunctionName
    from headrace.lower.session_state import RunContext

__all__ = [
    "DataFunction",
    "bound",
    "bound_batches",
    "call_with",
    "imported_function",
    "traced",
]


class DataGraph(FuncGraph):
    """The graph of such a function.

    TF 1's variables are read anew in every call, as resource variables are.
    """

    def __init__(self, name: str, outer: Graph | None) -> None:
        super().__init__(name, outer)
        self._reads: dict[str, Tensor] = {}

    def capture(self, outside: Tensor, name: str | None = None) -> Tensor:
        op = outside._op
        if op.graph is self or op.graph._is_eager:
            return super().capture(outside, name)
        if op.type == "VariableV2":
            return self._variable_like(op)
        if op.type == "Identity" and op._inputs[0]._op.type == "VariableV2":
            return self._read(op)
        return super().capture(outside, name)

    def _variable_like(self, op: Operation) -> Tensor:
        known = self._reads.get(op.name)
        if known is None:
            attrs = {**op._attrs, "shared_name": op._attrs.get("shared_name") or op.name}
            attrs.pop("_class", None)
            known = self._reads[op.name] = self._outside_loops(op, (), attrs)
        return known

    def _read(self, op: Operation) -> Tensor:
        known = self._reads.get(op.name)
        if known is None:
            variable = self._variable_like(op._inputs[0]._op)
            known = self._reads[op.name] = self._outside_loops(
                op, (variable,), {"T": op._attrs["T"]}
            )
        return known

    def _outside_loops(
        self, op: Operation, inputs: tuple[Tensor, ...], attrs: dict[str, Any]
    ) -> Tensor:
        context, self._context = self._context, None
        controls, self._control_ops = self._control_ops, ()
        try:
            return self._add_op(op._opdef, inputs, attrs, self._unique(op.name))._outputs[0]
        finally:
            self._context, self._control_ops = context, controls


_UNKNOWN: Any = object()


class DataFunction:
    """A traced function between elements."""

    __slots__ = (
        "__weakref__",
        "_batched",
        "imported",
        "learned",
        "output_spec",
        "output_value",
        "traced",
    )
    __hash__ = None  # type: ignore[assignment]  # nothing that looks ops up by attributes may keep it

    def __init__(self, function: TracedFunction, output_spec: Any, output_value: object) -> None:
        self.traced = function
        self.output_spec = output_spec
        self.output_value = output_value
        self._batched: OverBatches | None = _UNKNOWN
        self.learned = Learned()  # about its calls
        #: What names it in the library of the GraphDef that it came from.
        self.imported: Any = None

    @property
    def batched(self) -> OverBatches | None:
        """The function on a batch of elements, if that is the same (vectorized.py)."""
        if self._batched is _UNKNOWN:
            self._batched = over_batches(self.traced.graph, self.traced.outputs)
        return self._batched

    @property
    def runs_python(self) -> bool:
        """Whether it calls code of the user's."""
        return any(
            op._opdef.traits.calls_user or op.type == "GeneratorDataset"
            for op in self.traced.graph._ops
        )

    @property
    def live(self) -> bool:
        """Whether datasets that it makes may have elements of the user's code, or of a dataset
        from outside.
        """
        graph = self.traced.graph
        inner = [v for op in graph._ops for v in op._attrs.values() if isinstance(v, DataFunction)]
        outside = any(t._dtype is dtypes.variant for t in graph.internal_captures)
        return outside or self.runs_python or any(f.live for f in inner)

    @property
    def name(self) -> str:
        return self.traced.name

    @property
    def captured(self) -> list[Any]:
        return [outside for outside, _ in self.traced.captures]


def call_with(fn: Callable[..., Any], element: object) -> Any:
    """A tuple is several arguments, anything else is one."""
    return fn(*element) if type(element) is tuple else fn(element)


def traced(
    fn: Callable[..., Any],
    specs: object,
    what: str,
    convert: Callable[[Any], Any] | None = None,
    several: bool = False,
) -> DataFunction:
    """Trace ``fn`` on elements of ``specs`` (``several``.

    A tuple of structures, one for each argument).
    """
    if not callable(fn):
        raise TypeError(f"The function passed to {what} must be callable, not {type(fn).__name__}")
    function = converted(fn)
    parts = structure.components_of(specs)
    seen: list[Any] = []

    def flat(*tensors: object) -> list[Any]:
        element = structure.from_components(specs, tensors)
        result = function(*element) if several else call_with(function, element)
        value, spec = _result(result if convert is None else convert(result), what)
        seen[:] = [spec, value]
        return structure.to_components(spec, value)

    names = [TensorSpec(p.shape, p.dtype, f"args_{i}") for i, p in enumerate(parts)]
    around = get_default_graph()
    graph = DataGraph(
        f"{what.split('.')[-1].rstrip('()')}_fn", None if around._is_eager else around
    )
    tables = _tables_of(around), _tables_of(graph)
    made = trace_into(graph, flat, tuple(names), {}, autograph=False)
    if (_tables_of(around), _tables_of(graph)) != tables:
        warnings.warn(
            f"Creating resources inside a function passed to {what} is not supported. Create each "
            "resource outside the function, and capture it inside the function to use it.",
            stacklevel=4,
        )
    if random_ops_numbered(graph) and around.seed is not None and not around._is_eager:
        warnings.warn(
            f"Seed {around.seed} from outer graph might be getting used by function {graph.name}, "
            "if the random op has not been provided any seed. Explicitly set the seed in the "
            "function if this is not the intended behavior.",
            stacklevel=4,
        )
    return DataFunction(made, *seen)


def imported_function(graph: FuncGraph, captures: int, imported: FunctionName) -> DataFunction:
    """A function of an imported GraphDef, whose last ``captures`` arguments come from outside."""
    parts = tuple(TensorSpec(t._shape, t._dtype) for t in graph.outputs)
    made = DataFunction(TracedFunction(graph, ((), {}), tuple(graph.outputs)), parts, None)
    if captures:
        made._batched = None  # only elements have a batched form, not what is captured
    made.imported = imported
    return made


def _tables_of(graph: Graph) -> int:
    return len(graph._collections.get(GraphKeys.TABLE_INITIALIZERS, ()))


def _result(result: object, what: str) -> tuple[Any, Any]:
    if isinstance(result, list):
        result = tuple(result)
    try:
        value = structure.normalize(result)
        spec = structure.spec_of(value)
        if not structure.component_shapes(spec):
            raise TypeError("an element has at least one component")
        return value, spec
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"Unsupported return value from function passed to {what}: {result}."
        ) from error


def bound(
    function: DataFunction, rt: RunContext, captured: Sequence[Any]
) -> Callable[..., tuple[Any, ...]]:
    """The function over the state of ``rt``."""
    python = python_function(function.traced.graph, function.traced.outputs)
    if python is not None:
        return python
    _restart_random_ops(function, rt.state.resources)
    call = _over_state(function.traced.compiled, weakref.ref(rt.state), captured)
    texts = [
        i
        for i, t in enumerate(function.traced.outputs)
        if t._dtype is dtypes.string and not t._shape
    ]
    made = _with_texts(call, texts) if texts else call
    state = weakref.ref(rt.state)

    def restart() -> None:
        held = state()
        if held is not None:
            _restart_random_ops(function, held.resources)

    vars(made)["restart"] = restart
    return made


def restart_random_ops(stage: Stage) -> None:
    """The functions of a dataset begin their random numbers anew, for a new iterator."""
    waiting, seen = [stage], {id(stage)}
    while waiting:
        at = waiting.pop()
        for value in vars(at).values():
            restart = getattr(value, "restart", None)
            if restart is not None and callable(value):
                restart()
        for source in at.inputs:
            if id(source) not in seen:
                seen.add(id(source))
                waiting.append(source)


def _restart_random_ops(function: DataFunction, resources: dict[Any, Any]) -> None:
    """A function begins its random numbers anew with every initialization of an iterator, as
    TensorFlow's new instances do.
    """
    graph = function.traced.graph
    for op in graph._ops:
        resources.pop(("random", KernelNode(op.name, op.type, op._attrs, op).key), None)


def _over_state(
    compiled: GraphFunction, state_of: Callable[[], Any], captured: Sequence[Any]
) -> Callable[..., tuple[Any, ...]]:
    extra = tuple(captured)

    def call(*arrays: Any) -> tuple[Any, ...]:
        state = state_of()
        if state is None:
            raise errors.CancelledError(None, None, "The session of this iterator was closed.")
        return compiled(state, *arrays, *extra)

    return call


def bound_batches(
    function: DataFunction, rt: RunContext, captured: Sequence[Any]
) -> Callable[[], BlockFunction | None]:
    """What gives the function on batches, for a pass that wants it.

    None if the function has no such form.
    """
    state_of, extra = weakref.ref(rt.state), tuple(captured)

    def make() -> BlockFunction | None:
        found = function.batched
        if found is None:
            return None
        attempt = found.function.attempt

        def call(*arrays: Array) -> tuple[Any, ...] | None:
            state = state_of()
            return None if state is None else attempt(state, *arrays, *extra)

        return BlockFunction(call, found.sure)

    return make


def _with_texts(call: Callable[..., Any], texts: list[int]) -> Callable[..., tuple[Any, ...]]:
    """A run gives a string of rank 0 as bytes; as an element it is an array of rank 0."""

    def call_with_texts(*arrays: object) -> tuple[Any, ...]:
        results = list(call(*arrays))
        for i in texts:
            if type(results[i]) is bytes:
                results[i] = text_scalar(results[i])
        return tuple(results)

    return call_with_texts
