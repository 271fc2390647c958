"""Changes to a pipeline before it runs.

TensorFlow 1.15 turns ``shuffle`` followed by ``repeat`` into one step, which gives another order
from the second round on (and, for seeds that are given, in the first); TensorFlow 2 does not.
Programs written for either get its order.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from headrace.data.runtime.shuffle import ShuffleAndRepeatStage, ShuffleStage
from headrace.data.runtime.simple_stages import RepeatStage
from headrace.data.runtime.stages import Context, Pass, Stage

__all__ = ["OptionsStage", "optimized"]


def optimized(stage: Stage, optimizations: Sequence[str]) -> Stage:
    """The pipeline with the named changes."""
    if "shuffle_and_repeat_fusion" in optimizations:
        stage = _fused(stage)
    return OptionsStage(stage, deterministic=False) if "make_sloppy" in optimizations else stage


def _fused(stage: Stage) -> Stage:
    source = stage.inputs[0] if len(stage.inputs) == 1 else None
    if isinstance(stage, RepeatStage) and isinstance(source, ShuffleStage) and source.reshuffle:
        inner = _fused(source.inputs[0])
        return ShuffleAndRepeatStage(inner, source.buffer_size, *source.seeds, stage.count)
    inputs = tuple(_fused(s) for s in stage.inputs)
    if all(a is b for a, b in zip(inputs, stage.inputs)):
        return stage
    changed = copy.copy(stage)
    changed.inputs = inputs
    return changed


class OptionsStage(Stage):
    """Settings for the whole pipeline."""

    def __init__(self, source: Stage, **settings: object) -> None:
        self.inputs = (source,)
        self.settings = settings

    def start(self, ctx: Context) -> Pass:
        for name, value in self.settings.items():
            setattr(ctx, name, value)
        return ctx.start(self.inputs[0])

    def cardinality(self) -> int:
        return self.inputs[0].cardinality()

    def rows(self) -> Any:
        return self.inputs[0].rows()
