"""TF 2's learning-rate schedules (``tf.optimizers.schedules``).

Functions of the step, over TF 1's formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core.convert import convert_to_tensor
from headrace.train import schedules

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike


__all__ = [
    "CosineDecay",
    "CosineDecayRestarts",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LearningRateSchedule",
    "PiecewiseConstantDecay",
    "PolynomialDecay",
]


class LearningRateSchedule:
    """``schedule(step)`` is the learning rate of that step."""

    def __call__(self, step: TensorLike) -> Any:
        raise NotImplementedError("Learning rate schedule must override __call__")

    def get_config(self) -> dict[str, Any]:
        raise NotImplementedError("Learning rate schedule must override get_config")

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> LearningRateSchedule:
        return cls(**config)


def _formula(schedule: Callable[..., Any]) -> Callable[..., Any]:
    """A schedule of TF 1 as a plain function of its arguments, eagerly too."""
    plain: Callable[..., Any] = vars(schedule)["__wrapped__"]
    return plain


class _Decay(LearningRateSchedule):
    """A schedule that keeps its parameters as they were given."""

    _parameters: tuple[str, ...] = ()

    def get_config(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in (*self._parameters, "name")}


class ExponentialDecay(_Decay):
    """``initial_learning_rate * decay_rate ** (step / decay_steps)``.

    A function of the step, for ``learning_rate`` of an optimizer. ``staircase`` rounds ``step /
    decay_steps`` down.
    """

    _parameters = ("initial_learning_rate", "decay_steps", "decay_rate", "staircase")

    def __init__(
        self,
        initial_learning_rate: object,
        decay_steps: object,
        decay_rate: object,
        staircase: bool = False,
        name: str | None = "ExponentialDecay",
    ) -> None:
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = decay_steps
        self.decay_rate = decay_rate
        self.staircase = staircase
        self.name = name

    def __call__(self, step: TensorLike) -> Any:
        return _formula(schedules.exponential_decay)(
            self.initial_learning_rate,
            step,
            self.decay_steps,
            self.decay_rate,
            self.staircase,
            self.name,
        )


class InverseTimeDecay(_Decay):
    """``initial_learning_rate / (1 + decay_rate * step / decay_steps)``.

    A function of the step, for ``learning_rate`` of an optimizer. ``staircase`` rounds ``step /
    decay_steps`` down.
    """

    _parameters = ("initial_learning_rate", "decay_steps", "decay_rate", "staircase")

    def __init__(
        self,
        initial_learning_rate: object,
        decay_steps: object,
        decay_rate: object,
        staircase: bool = False,
        name: str | None = "InverseTimeDecay",
    ) -> None:
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = decay_steps
        self.decay_rate = decay_rate
        self.staircase = staircase
        self.name = name

    def __call__(self, step: TensorLike) -> Any:
        return _formula(schedules.inverse_time_decay)(
            self.initial_learning_rate,
            step,
            self.decay_steps,
            self.decay_rate,
            self.staircase,
            self.name,
        )


class PiecewiseConstantDecay(_Decay):
    """``values[i]`` between ``boundaries[i - 1]`` and ``boundaries[i]``."""

    _parameters = ("boundaries", "values")

    def __init__(
        self,
        boundaries: Sequence[Any],
        values: Sequence[Any],
        name: str | None = "PiecewiseConstant",
    ) -> None:
        if len(boundaries) != len(values) - 1:
            raise ValueError("The length of boundaries should be 1 less than the length of values")
        self.boundaries = boundaries
        self.values = values
        self.name = name

    def __call__(self, step: TensorLike) -> Any:
        step = convert_to_tensor(step)
        limits = [convert_to_tensor(b, step.dtype) for b in self.boundaries]
        return _formula(schedules.piecewise_constant)(step, limits, list(self.values), self.name)


class PolynomialDecay(_Decay):
    """From the initial to the end rate, along a power of the remaining steps.

    ``power`` 1 is a straight line. After ``decay_steps`` the rate stays, or, with ``cycle``, the
    period is lengthened to the next multiple of ``decay_steps``.
    """

    _parameters = ("initial_learning_rate", "decay_steps", "end_learning_rate", "power", "cycle")

    def __init__(
        self,
        initial_learning_rate: object,
        decay_steps: object,
        end_learning_rate: object = 0.0001,
        power: object = 1.0,
        cycle: bool = False,
        name: str | None = "PolynomialDecay",
    ) -> None:
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = decay_steps
        self.end_learning_rate = end_learning_rate
        self.power = power
        self.cycle = cycle
        self.name = name

    def __call__(self, step: TensorLike) -> Any:
        return _formula(schedules.polynomial_decay)(
            self.initial_learning_rate,
            step,
            self.decay_steps,
            self.end_learning_rate,
            self.power,
            self.cycle,
            self.name,
        )


class CosineDecay(_Decay):
    """Along half a cosine, down to ``alpha`` times the initial rate.

    A function of the step, for ``learning_rate`` of an optimizer: at ``decay_steps`` it has
    arrived.
    """

    _parameters = ("initial_learning_rate", "decay_steps", "alpha")

    def __init__(
        self,
        initial_learning_rate: object,
        decay_steps: object,
        alpha: TensorLike = 0.0,
        name: str | None = "CosineDecay",
    ) -> None:
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = decay_steps
        self.alpha = alpha
        self.name = name

    def __call__(self, step: TensorLike) -> Any:
        return _formula(schedules.cosine_decay)(
            self.initial_learning_rate, step, self.decay_steps, self.alpha, self.name
        )


class CosineDecayRestarts(_Decay):
    """A cosine decay that starts again, each time for longer (https://arxiv.org/abs/1608.03983).

    The first period has ``first_decay_steps`` steps; each further one is ``t_mul`` times as long
    and begins at ``m_mul`` times the rate. ``alpha`` is the least rate, as a part of the initial
    one.
    """

    _parameters = ("initial_learning_rate", "first_decay_steps", "t_mul", "m_mul", "alpha")

    def __init__(
        self,
        initial_learning_rate: object,
        first_decay_steps: object,
        t_mul: object = 2.0,
        m_mul: object = 1.0,
        alpha: object = 0.0,
        name: str | None = "SGDRDecay",
    ) -> None:
        self.initial_learning_rate = initial_learning_rate
        self.first_decay_steps = first_decay_steps
        self.t_mul = t_mul
        self.m_mul = m_mul
        self.alpha = alpha
        self.name = name

    def __call__(self, step: TensorLike) -> Any:
        return _formula(schedules.cosine_decay_restarts)(
            self.initial_learning_rate,
            step,
            self.first_decay_steps,
            self.t_mul,
            self.m_mul,
            self.alpha,
            self.name,
        )
