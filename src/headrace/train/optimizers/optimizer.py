"""The optimizers' base class: gradients of a loss, and the op that applies them.

``minimize`` is ``compute_gradients`` followed by ``apply_gradients``. A subclass says which slots
it needs (``_create_slots``), makes tensors of its hyperparameters (``_prepare``), adds the update
of one variable (``_apply_dense``, ``_apply_sparse`` and their ``_resource_`` forms) and may add
what comes after all updates (``_finish``).

    train_op = SomeOptimizer(0.1).minimize(loss, global_step=step)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.autodiff.gradients import gradients
from headrace.core import dtypes, nest
from headrace.core.build import apply_many, apply_op, apply_operation
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.opdef import lookup
from headrace.core.scopes import (
    colocate_with,
    control_dependencies,
    get_collection,
    get_collection_ref,
    init_scope,
    name_scope,
)
from headrace.core.tensor import Operation, Tensor
from headrace.eager.module import restore_later
from headrace.ops.control import dependencies as control
from headrace.ops.state.ref_state import assign_add
from headrace.train.optimizers import slots
from headrace.train.tensor_helpers import op_of, state_graph
from headrace.variables.variable import Variable

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.graph import Graph
    from headrace.core.shapes import TensorShape

__all__ = ["Optimizer"]

_VALID = frozenset([dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64])


class Optimizer:
    """Base of all optimizers (``tf.train.Optimizer``)."""

    # A slot of its own makes this class's layout larger than a mixin's: see rule_optimizer.
    __slots__ = ("__dict__", "__weakref__", "_use_locking")

    #: gate_gradients: nothing is ordered / an op's gradients are all there before one is used / all
    #: gradients are.
    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._use_locking = use_locking
        self._name = name
        self._slots: dict[str, dict[Any, Any]] = {}  # slot name -> variable's key -> slot
        self._non_slot_dict: dict[Any, Any] = {}  # (name, graph) -> variable

    def get_name(self) -> str:
        return self._name

    # gradients ----------------------------------------------------------------------------------

    def minimize(
        self,
        loss: Tensor,
        global_step: TensorLike | None = None,
        var_list: Sequence[Variable] | None = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: object = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: object = None,
    ) -> Any:
        """The op that takes one step down ``loss`` (and adds one to ``global_step``)."""
        pairs = self.compute_gradients(
            loss,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        if all(g is None for g, _ in pairs):
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops that do "
                "not support gradients, "
                f"between variables {[str(v) for _, v in pairs]} and loss {loss}."
            )
        return self.apply_gradients(pairs, global_step=global_step, name=name)

    def compute_gradients(
        self,
        loss: object,
        var_list: object = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: object = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: object = None,
    ) -> list[tuple[Any, Any]]:
        """(gradient, variable) pairs.

        The gradient is None where the loss does not depend on the variable.
        """
        if callable(loss):
            return self._taped_gradients(loss, var_list, grad_loss)
        if get_default_graph()._is_eager:
            raise RuntimeError(
                "`loss` passed to Optimizer.compute_gradients should be a function when "
                "eager execution is enabled."
            )
        if gate_gradients not in (Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH):
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, "
                "Optimizer.GATE_GRAPH.  "
                f"Not {gate_gradients}"
            )
        self._assert_valid_dtypes([loss] if grad_loss is None else [loss, grad_loss])
        variables = _trainable() if var_list is None else nest.flatten(var_list)
        targets = [_target(v) for v in variables]
        if not variables:
            raise ValueError("No variables to optimize.")
        grads = gradients(
            loss,
            targets,
            grad_ys=grad_loss,
            gate_gradients=gate_gradients == Optimizer.GATE_OP,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        if gate_gradients == Optimizer.GATE_GRAPH:
            grads = control.tuple(grads)
        pairs = list(zip(grads, variables))
        self._assert_valid_dtypes(
            [v for g, v in pairs if g is not None and v.dtype != dtypes.resource]
        )
        return pairs

    def _taped_gradients(
        self, loss: Callable[[], Any], var_list: object, grad_loss: object
    ) -> list[tuple[Any, Any]]:
        """The same for a function that computes the loss: eagerly, or in the body of a function."""
        if not (get_default_graph()._is_eager or get_default_graph()._is_function):
            return self.compute_gradients(loss(), var_list, grad_loss=grad_loss)
        from headrace.eager.tape import GradientTape

        with GradientTape() as tape:
            if var_list is not None:
                tape.watch(nest.flatten(var_list))
            value = loss()
        variables = list(tape.watched_variables()) if var_list is None else nest.flatten(var_list)
        grads = tape.gradient(value, variables, grad_loss)
        return list(zip(grads, variables))

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: Any = None,
        name: str | None = None,
    ) -> Any:
        """The op that applies gradients to variables (pairs without gradient are passed over)."""
        pairs = [(_as_gradient(g), v) for g, v in grads_and_vars]
        if not pairs:
            raise ValueError("No variables provided.")
        updates = [(g, v, _update_function(v)) for g, v in pairs]
        used = [v for g, v in pairs if g is not None]
        if not used:
            raise ValueError(
                f"No gradients provided for any variable: {[str(v) for _, v in pairs]}."
            )
        with init_scope():
            self._create_slots(used)
            restore_later(self)
        with name_scope(name, self._name) as scope:
            self._prepare()
            update_ops = []
            for grad, var, update in updates:
                if grad is None:
                    continue
                with name_scope("update_" + op_of(var).name), colocate_with(op_of(var)):
                    update_ops.append(update(self, grad, var))
            if global_step is None:
                train_op = self._finish(update_ops, scope)
            else:
                with control_dependencies([self._finish(update_ops, "update")]):
                    train_op = _increment(global_step, scope)
        if get_default_graph()._is_eager:
            return None
        if isinstance(train_op, Tensor):
            train_op = train_op.op
        collected = get_collection_ref(GraphKeys.TRAIN_OP)
        if train_op not in collected:
            collected.append(train_op)
        return train_op

    # state --------------------------------------------------------------------------------------

    def get_slot(self, var: TensorLike, name: str) -> Any:
        """The slot of a variable, or None."""
        return self._slots.get(name, {}).get(_var_key(var))

    def get_slot_names(self) -> list[str]:
        return sorted(self._slots)

    def variables(self) -> list[Any]:
        """All state of this optimizer in the default graph.

        Slots and what belongs to no single variable.
        """
        graph = state_graph()
        found = [v for v in self._non_slot_variables() if op_of(v).graph is graph]
        for named in self._slots.values():
            found += [v for v in named.values() if op_of(v).graph is graph]
        return sorted(found, key=lambda v: str(v.name))

    def _create_non_slot_variable(
        self, initial_value: object, name: str, colocate_with: Variable
    ) -> Any:
        """A variable that is no slot (once per graph)."""
        graph = op_of(colocate_with).graph
        variable = self._non_slot_dict.get((name, graph))
        if variable is None:
            make: Any = Variable  # a factory in the form of a class
            with graph.colocate_with(op_of(colocate_with)):
                variable = make(
                    initial_value,
                    name=name,
                    trainable=False,
                    use_resource=_is_resource(colocate_with),
                )
            self._non_slot_dict[name, graph] = variable
        return variable

    def _get_non_slot_variable(self, name: str, graph: Graph | None = None) -> Any:
        return self._non_slot_dict.get((name, graph))

    def _non_slot_variables(self) -> Any:
        return self._non_slot_dict.values()

    def _slot_dict(self, slot_name: str) -> dict[Any, Any]:
        return self._slots.setdefault(slot_name, {})

    def _get_or_make_slot(self, var: TensorLike, val: Tensor, slot_name: str, op_name: str) -> Any:
        """A slot that starts with the value of a tensor."""
        return self._slot(var, slot_name, lambda: slots.create_slot(var, val, op_name))

    def _get_or_make_slot_with_initializer(
        self,
        var: Variable,
        initializer: object,
        shape: TensorShape,
        dtype: DType,
        slot_name: str,
        op_name: str,
    ) -> Any:
        make = lambda: slots.create_slot_with_initializer(var, initializer, shape, dtype, op_name)
        return self._slot(var, slot_name, make)

    def _zeros_slot(self, var: Variable, slot_name: str, op_name: str) -> Any:
        return self._slot(var, slot_name, lambda: slots.create_zeros_slot(var, op_name))

    def _slot(self, var: TensorLike, slot_name: str, make: Callable[[], Any]) -> Any:
        named = self._slot_dict(slot_name)
        key = _var_key(var)
        if key not in named:
            named[key] = make()
        return named[key]

    # what subclasses override -------------------------------------------------------------------

    def _valid_dtypes(self) -> Any:
        """Types of loss, variables and gradients that this optimizer takes."""
        return set(_VALID)

    def _assert_valid_dtypes(self, tensors: Iterable[Any]) -> None:
        valid = self._valid_dtypes()
        for t in tensors:
            if t.dtype.base_dtype not in valid:
                raise ValueError(
                    f"Invalid type {t.dtype.base_dtype!r} for {t.name}, expected: {list(valid)}."
                )

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        """Make the slots that the variables need."""

    def _prepare(self) -> None:
        """Make tensors of the hyperparameters; called in the name scope of the train op."""

    def _apply_dense(self, grad: Tensor, var: Variable) -> Any:
        raise NotImplementedError()

    def _resource_apply_dense(self, grad: Tensor, handle: object) -> Tensor:
        """``handle`` is the resource variable."""
        raise NotImplementedError()

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Tensor:
        """``grad`` are IndexedSlices in which no index repeats."""
        raise NotImplementedError()

    def _resource_apply_sparse(self, grad: Tensor, handle: object, indices: Tensor) -> Tensor:
        """``indices`` are those of the rows in ``grad``; none repeats."""
        raise NotImplementedError()

    def _apply_sparse_duplicate_indices(
        self, grad: IndexedSlices, var: Variable
    ) -> Operation | Tensor:
        """Sums rows of the same index first, as most rules are not additive in the gradient."""
        values, indices = _deduplicate_indexed_slices(grad.values, grad.indices)
        return self._apply_sparse(IndexedSlices(values, indices, grad.dense_shape), var)

    def _resource_apply_sparse_duplicate_indices(
        self, grad: Tensor, handle: Variable, indices: Tensor
    ) -> Any:
        values, unique = _deduplicate_indexed_slices(grad, indices)
        return self._resource_apply_sparse(values, handle, unique)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        """The op that stands for all updates."""
        return control.group(*update_ops, name=name_scope)

    def _call_if_callable(self, param: TensorLike) -> Any:
        return param() if callable(param) else param


# parts ------------------------------------------------------------------------------------------


def _trainable() -> list[Any]:
    return get_collection(GraphKeys.TRAINABLE_VARIABLES) + get_collection(
        "trainable_resource_variables"
    )


def _var_key(var: Any) -> tuple[Graph, str]:
    op = op_of(var)
    return op.graph, var._unique_id if op.graph._is_eager else op.name


def _is_resource(var: TensorLike) -> bool:
    return bool(op_of(var)._role == "handle")


def _target(var: Any) -> Any:
    """What a gradient is taken with respect to."""
    if isinstance(var, Tensor):
        return var
    if _is_resource(var):
        return var.handle
    if hasattr(var, "_ref"):
        return var._ref()
    raise NotImplementedError("Trying to optimize unsupported type ", var)


def _as_gradient(grad: IndexedSlices | Tensor | None) -> IndexedSlices | Tensor | None:
    if grad is None or isinstance(grad, (Tensor, IndexedSlices)):
        return grad
    try:
        return convert_to_tensor(grad)
    except TypeError as error:
        raise TypeError(
            f"Gradient must be convertible to a Tensor or IndexedSlices, or None: {grad}"
        ) from error


def _update_function(var: Tensor | Variable) -> Callable[[Optimizer, Any, Any], Any]:
    if isinstance(var, Tensor):
        return _refuse_tensor
    if _is_resource(var):
        return _update_resource
    if hasattr(var, "_ref"):
        return _update_ref
    raise NotImplementedError("Trying to optimize unsupported type ", var)


def _refuse_tensor(optimizer: Optimizer, grad: Tensor, var: Tensor) -> Any:
    raise NotImplementedError("Trying to update a Tensor ", var)


def _update_ref(optimizer: Optimizer, grad: IndexedSlices | Tensor, var: Variable) -> Any:
    if isinstance(grad, IndexedSlices):
        _refuse_constraint(var)
        return optimizer._apply_sparse_duplicate_indices(grad, var)
    return _constrained(var, optimizer._apply_dense(grad, var))


def _update_resource(optimizer: Optimizer, grad: IndexedSlices | Tensor, var: Variable) -> Any:
    if isinstance(grad, IndexedSlices):
        _refuse_constraint(var)
        return optimizer._resource_apply_sparse_duplicate_indices(grad.values, var, grad.indices)
    return _constrained(var, optimizer._resource_apply_dense(grad, var))


def _refuse_constraint(var: Variable) -> None:
    if var.constraint is not None:
        raise RuntimeError("Cannot use a constraint function on a sparse variable.")


def _constrained(var: Any, update: object) -> Any:
    """After the update the variable is projected by its constraint, if it has one."""
    if var.constraint is None:
        return update
    with control_dependencies([update]):
        return var.assign(var.constraint(var))


def _increment(global_step: Any, scope: str) -> Operation | Tensor:
    """One is added to the step; the op that does it carries the name of the train op."""
    step_op = op_of(global_step)
    with colocate_with(step_op):
        if step_op._role == "handle":
            one = convert_to_tensor(1, dtype=global_step.dtype.base_dtype)
            return apply_operation(
                lookup("AssignAddVariableOp"), global_step.handle, one, name=scope
            )
        added: Tensor = assign_add(global_step, 1, name=scope)
        return added


def _deduplicate_indexed_slices(values: Tensor, indices: Tensor) -> tuple[Any, Any]:
    """Rows of the same index summed: (sums, the indices that occur)."""
    unique, positions = apply_many(lookup("Unique"), indices)
    return apply_op("UnsortedSegmentSum", values, positions, apply_op("Shape", unique)[0]), unique
