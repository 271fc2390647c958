"""Bases of objects that checkpoints of objects save.

class Table(tf.train.experimental.PythonState):
    def serialize(self): return json.dumps(self.rows).encode()
    def deserialize(self, string_value): self.rows = json.loads(string_value)

tf.train.Checkpoint(table=Table(), model=model)
"""

from __future__ import annotations

import abc
from typing import Any

from headrace.eager.module import Module

__all__ = ["PythonState", "Tracking"]


class _Free:
    """A name that a module uses and that is the program's here."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        raise AttributeError(
            f"'{owner.__name__}' object has no attribute '{self._name}'", name=self._name
        )


class Tracking(Module):
    """An object whose attributes are saved: variables, modules, optimizers, lists and dicts."""

    # TensorFlow's has no attributes of its own
    variables = trainable_variables = non_trainable_variables = submodules = _Free()


class PythonState(Tracking, metaclass=abc.ABCMeta):
    """An object that says itself, as a string, what a checkpoint keeps of it."""

    @abc.abstractmethod
    def serialize(self) -> bytes | str:
        """What a checkpoint keeps."""

    @abc.abstractmethod
    def deserialize(self, string_value: bytes) -> object:
        """Take on what ``serialize`` gave; called when a checkpoint is restored, at once."""
