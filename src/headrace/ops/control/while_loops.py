"""``tf.while_loop``: loop variables, shape invariants and the results of the body."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.core import dtypes, nest, shapes, specs
from headrace.core.build import apply, apply_many, apply_op
from headrace.core.contexts import Context
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import Graph, get_default_graph
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.scopes import name_scope
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.basic import constant, identity
from headrace.ops.control.context_messages import note_contexts
from headrace.ops.control.control_contexts import WhileContext, in_context
from headrace.ops.control.control_flow import _open_regions, _pending
from headrace.ops.control.control_flow_eager import eager_while
from headrace.ops.control.control_flow_ops import EXIT, LOOP_COND, MERGE, NEXT_ITERATION, SWITCH

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.shapes import TensorShape
    from headrace.core.specs import TypeSpec
    from headrace.ops.control.tensor_array import TensorArray

__all__ = ["while_loop"]


# while ------------------------------------------------------------------------------------------


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Repeat ``body`` while ``cond`` is true; gives the last values of ``loop_vars``.

    Both take the loop variables as arguments; ``body`` returns their next values, in the same
    structure. A shape that changes from round to round needs ``shape_invariants``.

    ``maximum_iterations`` ends the loop after so many rounds. ``back_prop=False`` takes no gradient
    through it. ``return_same_structure`` gives a list of one loop variable as a list, not as the
    tensor.

        i, total = tf.while_loop(lambda i, s: i < 10, lambda i, s: (i + 1, s + i), [0, 0])

    Rounds run one after the other: ``parallel_iterations`` and ``swap_memory`` change nothing.
    """
    _check_loop(cond, body, loop_vars, parallel_iterations)
    if get_default_graph()._is_eager:
        return eager_while(cond, body, loop_vars, maximum_iterations, return_same_structure)
    with name_scope(name, "while"):
        single = not isinstance(loop_vars, (list, tuple)) or hasattr(loop_vars, "_fields")
        variables = [loop_vars] if single else list(loop_vars)
        if shape_invariants is not None and single:
            shape_invariants = [shape_invariants]
        returned: list[Any] = []  # what the body gave: the loop's result has its structure
        noted = _keep_results(body, returned)
        if maximum_iterations is not None:
            limit = _iteration_limit(maximum_iterations)
            if not single:
                whole = len(variables) > 1 or return_same_structure
                noted = _of_type(noted, loop_vars if whole else loop_vars[0])
            cond, noted = _limited(cond, noted, limit)
            variables = [constant(0, limit.dtype, name="iteration_counter"), *variables]
            if shape_invariants is not None:
                shape_invariants = [shapes.TensorShape([]), *shape_invariants]
        graph = get_default_graph()
        context = WhileContext(
            graph.unique_name("while_context"), graph._context, parallel_iterations
        )
        context.back_prop, context.swap_memory = back_prop, swap_memory
        results = _build_loop(context, cond, noted, variables, shape_invariants)
        note_contexts(graph, context)
        if maximum_iterations is not None:
            context.maximum_iterations = limit
            results = results[1:]
    flat = results if maximum_iterations is not None else nest.flatten(results, True)
    if single or (not return_same_structure and len(flat) == 1):
        return results[0]
    return _like_sequence(returned[-1], results)


def _check_loop(cond: object, body: object, loop_vars: object, parallel_iterations: int) -> None:
    if not callable(cond):
        raise TypeError("cond must be callable.")
    if not callable(body):
        raise TypeError("body must be callable.")
    plain = isinstance(loop_vars, (list, tuple, int, float))
    if (plain and not loop_vars) or loop_vars is None:
        raise ValueError("No loop variables provided")
    if parallel_iterations < 1:
        raise TypeError("parallel_iterations must be a positive integer.")
    if not isinstance(parallel_iterations, int):
        raise ValueError(f"`parallel_iterations` must be a positive integer: {parallel_iterations}")


def _keep_results(function: Callable[..., Any], results: list[Any]) -> Callable[..., Any]:
    def noted(*values: object) -> Any:
        results.append(function(*values))
        return results[-1]

    return noted


def _of_type(body: Callable[..., Any], loop_vars: object) -> Callable[..., Any]:
    """With a limit, the loop variables are one structure beside the counter: TF 1.15 compares the
    types of its lists and tuples. (Loops in functions are other loops, which do not.)
    """
    if get_default_graph()._is_function:
        return body

    def checked(*values: object) -> Any:
        found = body(*values)
        nest.assert_same_structure([loop_vars], [found], expand_composites=True)
        return found

    return checked


def _like_sequence(given: Sequence[Any], values: list[Any]) -> Any:
    if isinstance(given, tuple) and len(given) == len(values):
        return type(given)(*values) if hasattr(given, "_fields") else tuple(values)
    return values


def _iteration_limit(limit: TensorLike) -> Tensor:
    limit = convert_to_tensor(limit, name="maximum_iterations")
    if limit._shape != ():
        raise ValueError(f"maximum_iterations must be a scalar, saw shape: {limit.shape}")
    return limit


def _limited(cond: Callable[..., Any], body: Callable[..., Any], limit: Tensor) -> tuple[Any, Any]:
    """Condition and body with a counter in front that stops the loop after ``limit`` iterations."""

    def limited_cond(i: Tensor, *values: object) -> Tensor:
        return apply_op("LogicalAnd", apply_op("Less", i, limit), cond(*values))

    def limited_body(i: Tensor, *values: object) -> list[Any]:
        with name_scope(
            "add"
        ) as scope:  # TF counts before it builds the body, which random seeds follow from
            one = constant(1, limit.dtype, name="y")
            following = apply_op("AddV2", i, one, name=scope)
        new = body(*values)
        if not isinstance(new, (list, tuple)) or (len(values) == 1 and not _is_one_list(new)):
            new = [new]
        return [following, *new]

    return limited_cond, limited_body


def _is_one_list(value: Sequence[Tensor]) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 1 and not hasattr(value, "_fields")


def _build_loop(
    context: WhileContext,
    cond: Callable[..., Any],
    body: Callable[..., Any],
    variables: list[Any],
    invariants: object,
) -> list[Any]:
    graph = get_default_graph()
    flat = nest.flatten(variables, expand_composites=True)
    tensors = [_loop_tensor(v) for v in flat]
    wanted = _invariant_shapes(tensors, invariants, variables)
    enters = [context.enter(t, is_constant=False) for t in tensors]
    for e, shape in zip(enters, wanted):
        e._shape = shape
    graph_controls = graph._control_ops
    graph._control_ops = ()
    _open_regions(graph, context)
    context.Enter()
    try:
        merges = [apply_many(MERGE, [e, e], name="Merge")[0] for e in enters]
        context.pivot = merges[0]._op
        merged = _repack(variables, flat, merges)
        test = cond(*merged)
        if isinstance(test, Tensor) and test._dtype._base is not dtypes.bool:
            raise TypeError(
                f"Input 'input' of 'LoopCond' Op has type {test._dtype.name} that does not match "
                "expected type of bool: cond of tf.while_loop gives a bool."
            )
        test = convert_to_tensor(test, dtypes.bool)
        test = _waiting(graph, context, [test])[0]
        if test._shape not in (None, ()):
            raise ValueError(
                f"The condition of tf.while_loop must be a scalar, not of shape {test.shape}"
            )
        loop_cond = apply(LOOP_COND, test, name="LoopCond")
        switches = [apply_many(SWITCH, m, loop_cond, name="Switch") for m in merges]
        inside = [identity(s[1]) for s in switches]
        context.pivot = inside[0]._op
        packed = _repack(variables, flat, inside)
        results = body(*packed)
        next_values = _waiting(graph, context, _body_results(results, packed))
        nexts = [apply(NEXT_ITERATION, v, name="NextIteration") for v in next_values]
    finally:
        context.Exit()
        graph._control_ops = graph_controls
    for m, e, n in zip(merges, enters, nexts):
        _check_invariant(m, n)
        graph._close_loop(m._op, e, n)
    with in_context(graph, context.outer_context):
        graph._control_ops = ()  # Enter waits; TensorFlow refuses an Exit with inputs from outside
        exits = [apply(EXIT, s[0], name="Exit") for s in switches]
    if graph._effects is not None:
        starts = [e._op for e in enters]
        graph._effects.close([context], context.outer_context, starts, exits[0]._op)
    context.loop_variables = [
        _LoopVariable(e, m, s[1], n, x)
        for e, m, s, n, x in zip(enters, merges, switches, nexts, exits)
    ]
    return _repack(variables, flat, exits)


def _waiting(graph: Graph, context: Context, tensors: list[Tensor]) -> list[Tensor]:
    """The tensors after the effects of the loop so far."""
    after = _pending(graph, context)
    if not after:
        return tensors
    with graph.control_dependencies(after):
        return [identity(t) for t in tensors]


_LoopVariable = collections.namedtuple(
    "_LoopVariable", ["enter", "merge", "inside", "next", "exit"]
)


def _loop_tensor(value: float | Tensor | TensorArray) -> Tensor:
    if hasattr(value, "_as_tensor_for_control_flow"):
        return value._as_tensor_for_control_flow()
    return convert_to_tensor(value)


def _rebuilt(given: list[Any], tensors: list[Tensor]) -> list[Any]:
    """TensorArrays travel as their flow."""
    return [
        g._from_tensor_for_control_flow(t) if hasattr(g, "_from_tensor_for_control_flow") else t
        for g, t in zip(given, tensors)
    ]


def _repack(variables: list[Any], flat: list[Any], tensors: list[Tensor]) -> list[Any]:
    rebuilt = _rebuilt(flat, tensors)
    packed: list[Any] = nest.pack_sequence_as(variables, rebuilt, expand_composites=True)
    return packed


def _body_results(results: Tensor | Sequence[Any] | None, variables: list[Any]) -> list[Tensor]:
    if (
        (isinstance(results, (list, tuple)) and len(variables) == 1 and not _is_one_list(results))
        or not isinstance(results, (list, tuple))
        or (hasattr(results, "_fields") and len(variables) == 1)
    ):
        packed = [results]
    else:
        packed = list(results)
    nest.assert_same_structure(list(variables), packed, expand_composites=True)
    flat = nest.flatten(packed, expand_composites=True)
    want = nest.flatten(variables, expand_composites=True)
    out = []
    for given, start in zip(flat, want):
        if given is None:
            raise ValueError("The body of tf.while_loop returned None for a loop variable")
        if isinstance(given, Operation):
            raise TypeError("The body of tf.while_loop returned an operation; return tensors")
        if hasattr(given, "_as_tensor_for_control_flow"):
            out.append(given._as_tensor_for_control_flow())
        else:
            like = getattr(start, "dtype", None)
            try:
                out.append(convert_to_tensor(given, preferred_dtype=like))
            except (TypeError, ValueError):
                out.append(convert_to_tensor(given))
    return out


def _invariant_shapes(tensors: list[Tensor], invariants: object, variables: list[Any]) -> list[Any]:
    values = nest.flatten(variables)
    if invariants is None:
        given: list[Any] = [None] * len(values)
        if len(values) == len(tensors):
            return [t._shape for t in tensors]
    else:
        given = [leaf.value for leaf in nest.flatten(_as_leaves(invariants))]
        if len(given) != len(values):
            raise ValueError(
                f"{len(given)} shape invariants are given for {len(values)} loop variables"
            )
    wanted = [
        shape for v, g in zip(values, given) for shape in _part_shapes(v, g, invariants is None)
    ]
    out = []
    for t, want in zip(tensors, wanted):
        if want is _OWN:
            want = t._shape
        if not _is_generalisation(want, t._shape):
            raise ValueError(
                f"The shape invariant specified for {t.name} is not compatible with the "
                "initial shape of the loop "
                f"variable. It enters the loop with shape {t.shape}, but the specified "
                "shape invariant is "
                f"{shapes.from_plain(want)}."
            )
        out.append(want)
    return out


_OWN: Any = object()  # the shape that a variable enters the loop with


def _part_shapes(value: object, given: TensorShape | TypeSpec | None, default: bool) -> list[Any]:
    """The invariant shapes of the tensors that a loop variable consists of.

    One, or those of its parts.
    """
    if not nest.is_sequence_or_composite(value) or nest.is_nested(value):
        return [_OWN if default else _tensor_shape(value, given)]
    spec = specs.type_spec_from_value(value)
    if isinstance(given, specs.TypeSpec):
        if not given.is_compatible_with(spec):
            raise TypeError(f"TypeSpec {given!r} is not compatible with {value!r}")
        spec = given
    elif not default:
        spec = _spec_of_shape(value, spec, shapes.as_shape(given))
    return [part.shape._plain for part in spec.component_specs]


def _tensor_shape(value: object, given: object) -> tuple[int | None, ...] | None:
    if not isinstance(given, specs.TypeSpec):
        return shapes.to_plain(given)
    dtype = getattr(value, "dtype", None)
    if not isinstance(given, specs.TensorSpec) or (
        dtype is not None and dtypes.as_dtype(dtype).base_dtype is not given.dtype
    ):
        raise TypeError(f"TypeSpec {given!r} is not compatible with {value!r}")
    return given.shape._plain


def _spec_of_shape(value: object, spec: object, shape: shapes.TensorShape) -> TypeSpec:
    """What a plain shape says of a composite.

    The rank of a SparseTensor, the values' shape of IndexedSlices.
    """
    if isinstance(value, IndexedSlices):
        dense = shapes.TensorShape([None]).concatenate(shape[1:])
        dense_type = None if value.dense_shape is None else value.dense_shape.dtype
        return specs.IndexedSlicesSpec(
            dense, value.dtype.base_dtype, value.indices.dtype, dense_type, shape[:1]
        )
    if isinstance(spec, specs.SparseTensorSpec):
        if shape.rank not in (None, 1):
            raise ValueError("Expected a shape with 1 dimension")
        rank = None if shape.rank is None else shape.as_list()[0]
        return specs.SparseTensorSpec(None if rank is None else [None] * rank, spec.dtype)
    if isinstance(spec, specs.Shaped) and hasattr(spec, "ragged_rank"):
        ragged: TypeSpec = spec._like(shape)
        return ragged
    raise TypeError(
        f"To describe or constrain a {type(value).__name__}, use a {type(spec).__name__} "
        "instead of a TensorShape."
    )


class _Leaf:
    def __init__(self, value: object) -> None:
        self.value = value


def _as_leaves(invariants: object) -> Any:
    if invariants is None or isinstance(invariants, (shapes.TensorShape, specs.TypeSpec)):
        return _Leaf(invariants)
    if isinstance(invariants, (list, tuple)) and hasattr(invariants, "_fields"):
        return type(invariants)(*[_as_leaves(i) for i in invariants])
    if isinstance(invariants, (list, tuple)):
        return [_as_leaves(i) for i in invariants]
    if isinstance(invariants, dict):
        return {k: _as_leaves(v) for k, v in invariants.items()}
    return _Leaf(invariants)


def _is_generalisation(
    general: Sequence[int | None] | None, special: Sequence[int | None] | None
) -> bool:
    if general is None:
        return True
    if special is None or len(general) != len(special):
        return False
    return all(g is None or g == s for g, s in zip(general, special))


def _check_invariant(merge_out: Tensor, next_value: Tensor) -> None:
    if not _is_generalisation(merge_out._shape, next_value._shape):
        start = merge_out._op._inputs[0]._op._inputs[0]
        raise ValueError(
            f"Input tensor '{start.name}' enters the loop with shape {start.shape}, but "
            f"has shape {next_value.shape} "
            "after one iteration. To allow the shape to vary across iterations, use the "
            "`shape_invariants` argument of "
            "tf.while_loop to specify a less-specific shape."
        )
    if next_value._dtype._base is not merge_out._dtype._base:
        raise errors.InvalidArgumentError(
            None,
            merge_out._op,
            f"The loop variable {merge_out.name} enters the loop with type "
            f"{merge_out._dtype.name}, but has type {next_value._dtype.name} after one iteration. "
            "Cast it in the body.",
        )
