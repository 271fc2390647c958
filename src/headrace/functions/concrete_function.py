"""A function for one kind of arguments: a graph, and the way from tensors through it to tensors.

    concrete = f.get_concrete_function(tf.TensorSpec([None], tf.float32))
    concrete(tf.constant([1.0, 2.0]))

Called while another graph is being built, its operations are copied there (core/inline.py). Called
eagerly, the plan made for it runs on the arrays; under a tape it also keeps what the backward pass
will need (functions/function_gradients.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.core import nest, specs
from headrace.core.build import apply_list, apply_operation
from headrace.core.call_records import (
    CalledFunction,
    CallRecord,
    function_arguments,
    note_call,
)
from headrace.core.convert import convert_to_tensor
from headrace.core.func_graph import FuncGraph, is_function_graph
from headrace.core.graph import Graph, get_default_graph
from headrace.core.inline import Copies, handle_in, inline
from headrace.core.opdef import lookup
from headrace.core.specs import TensorSpec
from headrace.core.tapes import ACTIVE, TAPES, variable_accessed
from headrace.core.tensor import Operation, Tensor
from headrace.eager.eager_context import STATE
from headrace.eager.eager_tensor import EagerTensor
from headrace.eager.execute import _wrapped
from headrace.functions import retracing
from headrace.functions.function_signature import (
    Signature,
    SignatureMismatch,
    as_tensor,
    cast_structure,
    encode,
    shown_leaf,
)
from headrace.functions.tracing import TracedFunction, input_name
from headrace.session.graph_function import GraphFunction

if TYPE_CHECKING:
    from headrace.core.specs import TypeSpec
    from headrace.session.explain import Explanation

__all__ = ["ConcreteFunction", "inline_call"]

_new = EagerTensor.__new__
_numbers = itertools.count()


class ConcreteFunction:
    """A traced function with the arguments that it was traced for."""

    def __init__(
        self,
        traced: TracedFunction,
        signature: Signature,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self.traced = traced
        traced.borrowed = True
        self.signature = signature
        self.call_args = args
        self.call_kwargs = kwargs
        self.flat_call = nest.flatten((args, kwargs))
        self.name = f"__inference_{traced.graph.name}_{next(_numbers)}"
        self._captured = tuple(
            [c._static if c._op.graph._is_eager else None for c in traced.graph.external_captures]
        )
        self._dtypes = [t._dtype._base for t in traced.outputs]
        self._single = (
            self._dtypes[0]
            if isinstance(traced.output_specs, TensorSpec) and self._dtypes[0]._kind not in "srv"
            else None
        )
        self._gradients: Any = None

    # what it is ---------------------------------------------------------------------------------
    @property
    def graph(self) -> FuncGraph:
        return self.traced.graph

    @property
    def inputs(self) -> list[Tensor]:
        """The placeholders: of the arguments, then of what comes from outside."""
        return [*self.graph.inputs, *self.graph.internal_captures]

    @property
    def outputs(self) -> list[Tensor]:
        return list(self.graph.outputs)

    @property
    def captured_inputs(self) -> list[Any]:
        """What is used from outside: variables' handles and tensors."""
        return [*self.graph.outer_handles.values(), *self.graph.external_captures]

    @property
    def structured_input_signature(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, with specs that are named as the placeholders are."""
        pair = (self.call_args, self.call_kwargs)
        named = [
            TensorSpec(leaf.shape, leaf.dtype, leaf.name or input_name(path, self.signature.names))
            if isinstance(leaf, TensorSpec)
            else leaf
            for path, leaf in nest.flatten_with_tuple_paths(pair)
        ]
        signature: tuple[tuple[Any, ...], dict[str, Any]] = nest.pack_sequence_as(pair, named)
        return signature

    @property
    def structured_outputs(self) -> Any:
        return self.traced.structured_outputs

    @property
    def output_types(self) -> Any:
        return nest.map_structure(lambda s: getattr(s, "dtype", None), self.traced.output_specs)

    output_dtypes = output_types

    @property
    def output_shapes(self) -> Any:
        return nest.map_structure(lambda s: getattr(s, "shape", None), self.traced.output_specs)

    @property
    def variables(self) -> tuple[Any, ...]:
        """The variables that the function uses and that are still there."""
        return self.graph.variables

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        return self.graph.trainable_variables

    @property
    def function_def(self) -> Any:
        return self.graph.as_graph_def()

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self._signature_text()} at 0x{id(self):X}>"

    def _signature_text(self) -> str:
        named = self.signature.named(self.call_args, self.call_kwargs)
        parts = ", ".join(f"{name}: {shown_leaf(value)}" for name, _, value in named)
        return f"({parts}) -> {shown_output(self.traced.output_specs)}"

    def __str__(self) -> str:
        return f"ConcreteFunction {self.pretty_printed_signature()}"

    def pretty_printed_signature(self, verbose: bool = True) -> str:
        named = self.signature.named(self.call_args, self.call_kwargs)
        lines = ["Input Parameters:"]
        lines += [f"  {name} ({kind}): {shown_leaf(value)}" for name, kind, value in named]
        lines += ["Output Type:", f"  {shown_output(self.traced.output_specs)}", "Captures:"]
        captured = [
            f"  {id(c)}: {TensorSpec(c.shape, c.dtype.base_dtype)!r}" for c in self.captured_inputs
        ]
        return "\n".join([*lines, *(captured or ["  None"])])

    # calling ------------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call with the arguments of the Python function, or with tensors alone, by position or by
        their names.
        """
        return self.call_tensors(self._tensors(args, kwargs))

    def _tensors(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        try:
            return self._structured(args, kwargs)
        except TypeError as error:
            flat = self._flat(args, kwargs)
            if isinstance(flat, str):
                why = str(error).replace(
                    f"signature: {self.signature}", f"signature: {self._signature_text()}"
                )
                raise SignatureMismatch(
                    f"{why}\nFallback to flat signature also failed due to: {flat}\nAll inputs to "
                    "`ConcreteFunction`s must be Tensors; Python values must be those that it was "
                    "traced with."
                ) from None
            return flat

    def _structured(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        signature = self.signature
        given, keywords = signature.bind(args, kwargs)
        key: list[Any] = []
        tensors: list[Any] = []
        wanted = (self.call_args, self.call_kwargs)
        try:
            nest.assert_same_structure(
                nest.map_structure(_leaf, wanted),
                _shallow(wanted, (given, keywords)),
                check_types=False,
            )
            cast = [
                cast_structure(w, v) if isinstance(w, specs.TypeSpec) else _literal(w, v)
                for w, v in zip(
                    nest.flatten(wanted),
                    nest.flatten_up_to(wanted, (given, keywords), check_types=False),
                )
            ]
        except (TypeError, ValueError) as error:
            raise signature.misfit(error, args, kwargs) from None
        for w, v in zip(nest.flatten(wanted), cast):
            if isinstance(w, specs.TypeSpec):
                encode(v, key, tensors)
        return tensors

    def _flat(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | str:
        """The tensors by position and by name; a string says why that is not possible."""
        names = [t._op.name for t in self.graph.inputs]
        call = f"{self.graph.name}({', '.join(names)})"
        if len(args) > len(names):
            return f"{call} takes {len(names)} positional arguments, got {len(args)}."
        rest = dict(kwargs)
        out = list(args)
        numbered = self._numbered_names()
        if len(numbered) == len(names) and rest.keys() == set(numbered[len(args) :]):
            names = numbered
        missing = [n for n in names[len(args) :] if n not in rest]
        if missing:
            return f"{call} missing required arguments: {', '.join(missing)}."
        out += [rest.pop(n) for n in names[len(args) :]]
        if rest:
            return f"{call} got unexpected keyword arguments: {', '.join(rest)}."
        for i, (value, want) in enumerate(zip(out, self.graph.inputs)):
            if not isinstance(value, Tensor) and not hasattr(value, "_as_graph_element"):
                return (
                    f"{call}: expected argument #{i}(zero-based) to be a Tensor; got "
                    f"{type(value).__name__} ({value})."
                )
            out[i] = as_tensor(value, TensorSpec(want.shape, want.dtype))
        return out

    def _numbered_names(self) -> list[str]:
        """TF 1.15's names of the tensors: of their parameters, ``x``, ``x_1``, ``x_2`` for a
        tuple.
        """
        out: list[str] = []
        for path, leaf in nest.flatten_with_tuple_paths((self.call_args, self.call_kwargs)):
            if isinstance(leaf, specs.TypeSpec):
                base = getattr(leaf, "name", None) or input_name(path[:2], self.signature.names)
                count = sum(n == base or n.startswith(f"{base}_") for n in out)
                out.append(f"{base}_{count}" if count else base)
        return out

    def call_tensors(self, tensors: Sequence[Any]) -> Any:
        """Call with the flat tensors of the arguments."""
        graph = get_default_graph()
        if not graph._is_eager:
            return inline_call(self, graph, tensors)
        for i, (t, want) in enumerate(zip(tensors, self.graph.inputs)):
            if not isinstance(t, EagerTensor):
                t = convert_to_tensor(t)
            self._check(i, t, want)
        if ACTIVE[0] and TAPES.items:
            return self.call_recorded(tensors)
        return self.call_arrays([t._static for t in tensors])

    def _check(self, i: int, given: Tensor, want: Tensor) -> None:
        if given._dtype._base is not want._dtype._base:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"cannot compute {self.name} as input #{i}(zero-based) was expected to be "
                f"a {want._dtype._base.name} "
                f"tensor but is a {given._dtype._base.name} tensor",
            )
        if not want.shape.is_compatible_with(given.shape):
            raise errors.InvalidArgumentError(
                None,
                None,
                f"cannot compute {self.name} as input #{i}(zero-based) was expected to be "
                f"of shape {want.shape} but is "
                f"of shape {given.shape}",
            )

    def call_arrays(self, feeds: Sequence[Any]) -> Any:
        """The eager call without a tape: arrays of the arguments in, tensors out."""
        compiled = self.traced.compiled
        result = compiled(STATE, *feeds, *self._captured)
        dtype = self._single
        if dtype is not None:
            out = _new(EagerTensor)
            out._static = result[0]
            out._dtype = dtype
            return out
        return self.packed([_wrapped(r, d) for r, d in zip(result, self._dtypes)])

    def packed(self, tensors: Sequence[Any]) -> Any:
        """The function's result from its flat tensors."""
        return self.traced.pack_outputs(tensors)

    def call_recorded(self, tensors: Sequence[Any]) -> Any:
        """The eager call under tapes."""
        if self._gradients is None:
            from headrace.functions.function_gradients import FunctionGradients

            self._gradients = FunctionGradients(self)
        return self._gradients.call(list(tensors))

    @property
    def compiled(self) -> GraphFunction:
        return self.traced.compiled

    def explain(self) -> Explanation:
        """The plan in words and numbers, as ``Session.explain`` gives it."""
        from headrace.session.explain import explain

        return explain(None, self.compiled.executable, [*self.outputs, *self.graph.control_outputs])


def _leaf(_: float | TypeSpec | Tensor) -> int:
    return 0


def _shallow(
    wanted: Sequence[Sequence[float | TypeSpec] | Mapping[str, Any]],
    given: Sequence[Sequence[float | Tensor] | Mapping[str, Any]],
) -> Any:
    """``given`` with everything below the leaves of ``wanted`` left out."""
    return nest.map_structure_up_to(wanted, _leaf, given, check_types=False)


def _literal(wanted: float, given: float) -> float:
    if not retracing.same(wanted, given):
        raise TypeError(f"Can not cast {given!r} to Literal[{wanted!r}]")
    return given


def shown_output(output_specs: object) -> str:
    return "None" if output_specs is None else shown_leaf(output_specs)


# in another graph -------------------------------------------------------------------------------


def inline_call(concrete: ConcreteFunction, target: Graph, tensors: Sequence[Any]) -> Any:
    """Copy the function's operations into the graph that is being built; returns its result
    there.
    """
    graph = concrete.graph
    if ACTIVE[0]:
        for variable in graph.trainable_variables:
            variable_accessed(variable)
    with target.as_default():
        known = {inner: convert_to_tensor(t) for inner, t in zip(graph.inputs, tensors)}
        for outer, inner in graph.captures:
            known[inner] = convert_to_tensor(outer)
    if is_function_graph(target):
        known = {inner: target.capture(t) for inner, t in known.items()}
    whole = not target._is_function and all(t._dtype._kind not in "rv" for t in graph.outputs)
    kind = "StatefulPartitionedCall" if _has_state(graph) else "PartitionedCall"
    name = f"{target.unique_name(kind)}/" if whole else graph.name
    before = len(target._ops)
    with target.control_dependencies(graph.control_captures):
        copied = inline(graph, target, known, name=name)
    if not whole:
        return concrete.packed([copied[t] for t in graph.outputs])
    function = CalledFunction(concrete.name, graph, tuple(graph.inputs), tuple(graph.outputs))
    results = called_operation(function, target, copied, target._ops[before:], name)
    return results if isinstance(results, Operation) else concrete.packed(results)


def called_operation(
    function: CalledFunction,
    target: Graph,
    copied: Copies,
    new: Sequence[Operation],
    name: str,
) -> list[Tensor] | Operation:
    """The operation that has the name and the results of a call, after its effects.

    In a plain graph nothing runs by itself: results wait for the effects. ``new``: the operations
    that the call made below the scope ``name`` (which ends with "/").
    """
    graph = function.graph
    effects = [copied.ops[op] for op in graph.control_outputs]
    outputs = [copied[t] for t in function.outputs]
    with target.as_default(), target.control_dependencies(effects):
        if outputs:
            results = apply_list(lookup("IdentityN"), outputs, name=name)
            result = results[0]._op
        else:
            results, result = [], apply_operation(lookup("NoOp"), name=name)
    if target._context is None:
        note_expanded(function, target, copied, new, result)
    return list(results) if outputs else result


def note_expanded(
    function: CalledFunction,
    target: Graph,
    copied: Copies,
    new: Sequence[Operation],
    result: Operation,
) -> None:
    """Remember the call that ``new`` is the body of."""
    body = frozenset(op for op in new if op._role != "handle")
    arguments = function_arguments(function.graph)
    inputs = tuple([copied[t] if t in copied else handle_in(target, t._op) for t in arguments])
    whole = function._replace(arguments=arguments)
    note_call(target, CallRecord(result, inputs, len(function.outputs), body, whole))


def _has_state(graph: FuncGraph) -> bool:
    given = {t._op for t in function_arguments(graph)}
    kinds = (op._opdef.traits for op in graph._ops if op not in given)
    return any(t.stateful or t.reads or t.writes or t.random for t in kinds)
