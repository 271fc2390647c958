"""Errors of eager operations: TensorFlow's classes and words, with the op in brackets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import errors
from headrace.core.dtypes import DType
from headrace.core.opdef import Attr, OpDef
from headrace.core.shapes import show
from headrace.eager.tape_record import Record
from headrace.lower.executable import _shape_message

__all__ = ["located", "not_allowed", "wrong_type"]

#: TensorFlow's own names, where a message has them.
_NAMES = {"float32": "float", "float64": "double", "float16": "half"}


def located(
    error: Exception,
    opdef: OpDef,
    inputs: Sequence[Any],
    values: Sequence[Any],
    name: str | None,
    attrs: dict[str, Any] | None = None,
) -> Exception:
    """The error of a kernel as a user is to see it."""
    if isinstance(error, errors.OpError):
        made = type(error).__new__(type(error))
        errors.OpError.__init__(made, None, None, _with_op(error.message, opdef, name), error.code)
        return made
    found = errors.as_op_error(error)
    if found is None:
        return error
    text = found.message
    if isinstance(found, errors.InvalidArgumentError):
        text = _message(error, opdef, inputs, values, attrs or {})
    return type(found)(None, None, _with_op(text, opdef, name))


def _message(
    error: Exception,
    opdef: OpDef,
    inputs: Sequence[Any],
    values: Sequence[Any],
    attrs: dict[str, Any],
) -> str:
    """TensorFlow's words for the commonest mistakes, else what the shape rule says, else
    NumPy's.
    """
    found = _shape_message(Record(opdef, attrs, inputs, ()), list(values))
    if found is not None:
        return found
    shapes = ", ".join(show(getattr(v, "shape", ())) for v in values)
    return f"{error} (input shapes: {shapes})"


def _with_op(text: str, opdef: OpDef, name: str | None) -> str:
    if "[Op:" in text:
        return text
    return f"{text} [Op:{opdef.name}]" + (f" name: {name}" if name else "")


def wrong_type(opdef: OpDef, i: int, have: DType, want: DType, name: str | None) -> Exception:
    return errors.InvalidArgumentError(
        None,
        None,
        f"cannot compute {opdef.name} as input #{i}(zero-based) was expected to be a "
        f"{_called(want)} tensor but is a "
        f"{_called(have)} tensor [Op:{opdef.name}] name: {name or ''}",
    )


def not_allowed(opdef: OpDef, attr: Attr, have: DType) -> Exception:
    names = ", ".join(sorted(_called(d) for d in attr.allowed or ()))
    return errors.InvalidArgumentError(
        None,
        None,
        f"Value for attr '{attr.name}' of {_called(have)} is not in the list of allowed "
        f"values: {names} "
        f"[Op:{opdef.name}]",
    )


def _called(dtype: DType) -> str:
    return _NAMES.get(dtype.name, dtype.name)
