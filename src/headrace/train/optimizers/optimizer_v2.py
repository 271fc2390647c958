"""The base of TF 2's optimizers (``tf.optimizers.Optimizer``), eagerly, in functions and in graphs.

An optimizer has *hyperparameters* (numbers that become variables, schedules, or functions), slots
per variable and a count of its steps (``iterations``). A subclass names its slots and adds the
update of one variable.

    opt = tf.optimizers.Adam(0.01)
    opt.minimize(lambda: loss(w), [w])
    opt.apply_gradients(zip(tape.gradient(y, [w]), [w]))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from headrace.core import dtypes, nest
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.scopes import control_dependencies, init_scope, name_scope
from headrace.eager.module import restore_later
from headrace.ops.array.casting import cast
from headrace.ops.control import dependencies as control
from headrace.ops.math import clip
from headrace.ops.training import resource_apply  # noqa: F401  (defines the ops)
from headrace.train.optimizers.optimizer import _deduplicate_indexed_slices
from headrace.train.schedules_v2 import LearningRateSchedule
from headrace.variables.variable import create_variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import DTypeLike, InitializerLike, TensorLike
    from headrace.core.tensor import Operation, Tensor
    from headrace.variables.variable import Variable

__all__ = ["OptimizerV2"]


class OptimizerV2:
    """Base of TF 2's optimizers."""

    #: Hyperparameters beside the learning rate, in the order of ``get_config``.
    _hyper_names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, name: str, **kwargs: Any) -> None:
        for key in kwargs:
            if key not in ("clipnorm", "clipvalue", "global_clipnorm", "lr", "decay"):
                raise TypeError(f"Unexpected keyword argument passed to optimizer: {key}")
            if kwargs[key] is not None and kwargs[key] < 0:
                raise ValueError(f"Expected {key} >= 0, received: {kwargs[key]}")
        self._name = name
        self.clipnorm = kwargs.pop("clipnorm", None)
        self.clipvalue = kwargs.pop("clipvalue", None)
        self.global_clipnorm = kwargs.pop("global_clipnorm", None)
        self._hyper: dict[str, Any] = {}
        self._slots: dict[Any, dict[str, Any]] = {}
        self._slot_list: list[Any] = []
        self._iterations: Any = None
        self._step: dict[Any, Any] | None = (
            None  # what all variables of a type share in the step that is being taken
        )
        self._initial_decay = kwargs.pop("decay", 0.0) or 0.0

    # hyperparameters ----------------------------------------------------------------------------
    def _set_hyper(self, name: str, value: object) -> None:
        old = self._hyper.get(name)
        if old is None or callable(value) or callable(old) or not hasattr(old, "assign"):
            self._hyper[name] = value
        else:
            old.assign(value)

    def _get_hyper(self, name: str, dtype: DTypeLike | None = None) -> Any:
        """A hyperparameter.

        A schedule as it is, a function's value, or the variable that holds the number.
        """
        value = self._hyper[name]
        if isinstance(value, LearningRateSchedule):
            return value
        if callable(value):
            value = value()
        elif not hasattr(value, "handle") and not hasattr(value, "_static"):
            with init_scope():
                value = self._hyper[name] = create_variable(
                    convert_to_tensor(value, dtypes.float32),
                    trainable=False,
                    name=name,
                    use_resource=True,
                )
        return value if dtype is None else self._once((name, dtype), lambda: cast(value, dtype))

    def _once(self, key: Sequence[Any], make: Callable[[], Any]) -> Any:
        """Computed once in a step."""
        if self._step is None:
            return make()
        if key not in self._step:
            self._step[key] = make()
        return self._step[key]

    def __getattribute__(self, name: str) -> Any:
        try:
            return super().__getattribute__(name)
        except AttributeError:
            if name == "_hyper":
                raise
            key = "learning_rate" if name == "lr" else name
            if key in self._hyper:
                return self._get_hyper(key)
            raise

    def __setattr__(self, name: str, value: object) -> None:
        key = "learning_rate" if name == "lr" else name
        if key in self.__dict__.get("_hyper", ()):
            self._set_hyper(key, value)
        else:
            super().__setattr__(name, value)

    def _rate(self, dtype: DTypeLike) -> Any:
        """The learning rate of this step."""
        return self._once(("rate", dtype), lambda: self._current_rate(dtype))

    def _current_rate(self, dtype: Any) -> Any:
        rate = self._get_hyper("learning_rate")
        if isinstance(rate, LearningRateSchedule):
            rate = rate(cast(self.iterations, dtype))
        rate = cast(rate, dtype)
        if self._initial_decay > 0.0:
            rate = rate / (1.0 + self._initial_decay * cast(self.iterations, dtype))
        return rate

    @property
    def iterations(self) -> Any:
        """How many steps were taken (an int64 variable)."""
        if self._iterations is None:
            with init_scope():
                self._iterations = create_variable(
                    convert_to_tensor(0, dtypes.int64),
                    trainable=False,
                    name="iter",
                    use_resource=True,
                )
        return self._iterations

    @iterations.setter
    def iterations(self, variable: object) -> None:
        if self._iterations is not None:
            raise RuntimeError(
                "Cannot set `iterations` to a new Variable after the Optimizer weights "
                "have been created"
            )
        self._iterations = variable

    # gradients ----------------------------------------------------------------------------------
    def minimize(
        self,
        loss: Tensor,
        var_list: object,
        grad_loss: object = None,
        name: str | None = None,
        tape: object = None,
    ) -> Any:
        """One step down ``loss``, a function without arguments (or a tensor, with the tape that
        recorded it).
        """
        pairs = self._compute_gradients(loss, var_list, grad_loss, tape)
        return self.apply_gradients(pairs, name=name)

    def _compute_gradients(
        self, loss: TensorLike, var_list: object, grad_loss: object = None, tape: Any = None
    ) -> list[tuple[Any, Any]]:
        from headrace.eager.tape import GradientTape

        if not callable(loss) and tape is None:
            raise ValueError("`tape` is required when a `Tensor` loss is passed.")
        tape = GradientTape() if tape is None else tape
        if callable(loss):
            with tape:
                if not callable(var_list):
                    tape.watch(nest.flatten(var_list))
                loss = loss()
        variables = nest.flatten(var_list() if callable(var_list) else var_list)
        with name_scope(self._name + "/gradients"):
            grads = tape.gradient(loss, variables, grad_loss)
        return list(zip(grads, variables))

    def get_gradients(self, loss: TensorLike, params: TensorLike) -> list[Any]:
        """In a graph: the gradients of ``loss``."""
        from headrace.autodiff.gradients import gradients

        return self._clipped(gradients(loss, nest.flatten(params)))

    def _clipped(self, grads: list[Any]) -> list[Any]:
        if self.clipnorm is not None:
            grads = [None if g is None else clip.clip_by_norm(g, self.clipnorm) for g in grads]
        if self.global_clipnorm is not None:
            grads = clip.clip_by_global_norm(grads, self.global_clipnorm)[0]
        if self.clipvalue is not None:
            grads = [
                None if g is None else clip.clip_by_value(g, -self.clipvalue, self.clipvalue)
                for g in grads
            ]
        return grads

    # applying -----------------------------------------------------------------------------------
    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        name: str | None = None,
        experimental_aggregate_gradients: bool = True,
    ) -> Any:
        """Update the variables; pairs without a gradient are passed over."""
        pairs = list(grads_and_vars)
        used = [(g, v) for g, v in pairs if g is not None]
        if not used:
            names = [v.name for _, v in pairs]
            raise ValueError(f"No gradients provided for any variable: {names}.")
        variables = [v for _, v in used]
        grads = self._clipped([g for g, _ in used])
        with init_scope():
            self.iterations  # noqa: B018  (made outside of what is being built)
            self._create_slots(variables)
        self._step = {}
        try:
            return self._applied(grads, variables, name)
        finally:
            self._step = None

    def _applied(self, grads: list[Any], variables: list[Any], name: str | None) -> Any:
        with name_scope(name or self._name):
            self._prepare({v.dtype.base_dtype: None for v in variables})
            updates = [self._update(g, v) for g, v in zip(grads, variables)]
            with control_dependencies([u for u in updates if u is not None]):
                return self._count()

    def _count(self) -> Any:
        done = self.iterations.assign_add(1, read_value=False)
        return self.iterations if get_default_graph()._is_eager else done

    def _update(self, grad: Tensor, var: Any) -> Any:
        if isinstance(grad, IndexedSlices):
            if var.constraint is not None:
                raise RuntimeError("Cannot use a constraint function on a sparse variable.")
            values, indices = _deduplicate_indexed_slices(grad.values, grad.indices)
            return self._apply_sparse(values, indices, var)
        done = self._apply_dense(convert_to_tensor(grad), var)
        if var.constraint is None:
            return done
        with control_dependencies([] if done is None else [done]):
            return var.assign(var.constraint(var), read_value=False)

    def _create_slots(self, var_list: list[Any]) -> None:
        """Make the slots that the variables need."""

    def _prepare(self, types: dict[Any, None]) -> None:
        """What is the same for all variables of a type in this step."""

    def _apply_dense(self, grad: Tensor, var: Variable) -> Any:
        raise NotImplementedError("Must be implemented in subclasses.")

    def _apply_sparse(self, grad: Tensor, indices: Tensor, var: Variable) -> Tensor:
        raise NotImplementedError("Must be implemented in subclasses.")

    # slots --------------------------------------------------------------------------------------
    def add_slot(self, var: Any, slot_name: str, initializer: InitializerLike = "zeros") -> Any:
        """The slot of a variable, made if it is not there."""
        named = self._slots.setdefault(var._unique_id, {})
        found = named.get(slot_name)
        if found is None:
            start = self._slot_start(var, initializer)
            with init_scope():
                found = create_variable(
                    start,
                    trainable=False,
                    name=f"{self._name}/{var._shared_name}/{slot_name}",
                    dtype=var.dtype,
                    use_resource=True,
                )
            named[slot_name] = found
            self._slot_list.append(found)
            restore_later(self)
        return found

    @staticmethod
    def _slot_start(var: Variable, initializer: Any) -> Callable[[], Any]:
        shape, dtype = var.shape, var.dtype.base_dtype
        if callable(initializer):
            return lambda: initializer(shape, dtype=dtype)
        value = {"zeros": 0, "ones": 1}.get(initializer, initializer)
        return lambda: apply_op("Fill", shape.as_list(), convert_to_tensor(value, dtype))

    def get_slot(self, var: Any, slot_name: str) -> Any:
        return self._slots[var._unique_id][slot_name]

    def get_slot_names(self) -> list[str]:
        return list(dict.fromkeys(n for named in self._slots.values() for n in named))

    @property
    def weights(self) -> list[Any]:
        """The state: the count of steps, then the slots in the order in which they were made."""
        return [self.iterations, *self._slot_list]

    def variables(self) -> list[Any]:
        return self.weights

    def get_weights(self) -> list[Any]:
        return [w.numpy() for w in self.weights]

    def set_weights(self, weights: Sequence[TensorLike]) -> None:
        mine = self.weights
        if len(mine) != len(weights):
            raise ValueError(
                f"You called `set_weights(weights)` on optimizer {self._name} with a  "
                "weight list of length "
                f"{len(weights)}, but the optimizer was expecting {len(mine)} weights."
            )
        for variable, value in zip(mine, weights):
            variable.assign(value)

    # configuration ------------------------------------------------------------------------------
    def get_config(self) -> dict[str, Any]:
        config: dict[str, Any] = {"name": self._name}
        for key in ("clipnorm", "clipvalue", "global_clipnorm"):
            if getattr(self, key) is not None:
                config[key] = getattr(self, key)
        for key in ("learning_rate", *self._hyper_names):
            config[key] = self._serialized(key)
        config["decay"] = self._initial_decay
        return config

    def _serialized(self, name: str) -> Any:
        value = self._hyper[name]
        if isinstance(value, LearningRateSchedule):
            return {"class_name": type(value).__name__, "config": value.get_config()}
        if callable(value):
            return value()
        return float(str(value.numpy())) if hasattr(value, "numpy") else value

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: object = None) -> Any:
        config = dict(config)
        rate = config.get("learning_rate")
        if isinstance(rate, dict):
            from headrace.train import schedules_v2

            config["learning_rate"] = getattr(schedules_v2, rate["class_name"])(**rate["config"])
        return cls(**config)


def grouped(*updates: object) -> Operation | None:
    """One operation for several updates; eagerly nothing is left to do."""
    return (
        control.group(*[u for u in updates if u is not None])
        if any(u is not None for u in updates)
        else None
    )
