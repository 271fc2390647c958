"""Tensors as text: ``tf.Print``, ``tf.print``, ``tf.strings.format`` and the summaries in messages
of ``tf.Assert``.

TensorFlow has two ways of writing a tensor: the old one, ``[1 2][3 4]``, for Print and Assert, and
NumPy's for tf.print.
"""

from __future__ import annotations

import pprint
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes, shape_fns
from headrace.core.build import apply, apply_operation
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import invalid

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.opdef import KernelNode
    from headrace.lower.session_state import RunContext

__all__ = ["Print", "print_v2", "string_format", "summarize_value", "timestamp"]


def _text(value: Any, quoted: bool) -> str:
    if isinstance(value, bytes):
        body = value.decode("latin-1")
        escaped = "".join(
            _ESCAPES.get(ch, ch) if 32 <= ord(ch) < 127 or ch in _ESCAPES else f"\\{ord(ch):03o}"
            for ch in body
        )
        return f'"{escaped}"' if quoted else escaped
    if isinstance(value, (bool, np.bool_)):
        return "1" if value else "0"
    if isinstance(value, (np.floating, float)):
        return _float_text(value)
    if isinstance(value, (complex, np.complexfloating)):
        return f"({_float_text(value.real)},{_float_text(value.imag)})"
    if type(value).__name__ == "bfloat16":
        return _float_text(np.float32(value))
    return str(value)


_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "'": "\\'", "\\": "\\\\"}


def _float_text(value: Any) -> str:
    """As many digits as are always right, or two to three more where they are needed to tell the
    number.
    """
    if not np.isfinite(value):
        return "nan" if np.isnan(value) else "inf" if value > 0 else "-inf"
    kind = type(value)
    if kind is np.float16:
        value = np.float32(value)
        kind = np.float32
    short, long = (15, 17) if kind in (np.float64, float) else (6, 9)
    text = f"{float(value):.{short}g}"
    return text if kind(text) == value else f"{float(value):.{long}g}"


def summarize_value(x: TensorLike, limit: int) -> str:
    """The old way: at most ``limit`` elements, inner dimensions in brackets."""
    x = np.asarray(x)
    count = x.size if limit < 0 else min(limit, x.size)
    flat = x.reshape(-1)
    more = "..." if x.size > count else ""
    if x.ndim < 2:
        return " ".join(_text(v, False) for v in flat[:count]) + more
    out: list[str] = []
    _old_rows(x, 0, count, 0, out)
    return "".join(out) + more


def _old_rows(x: Array, depth: int, limit: int, printed: int, out: list[str]) -> int:
    if printed >= limit:
        return printed
    if x.ndim == 1:
        for i, v in enumerate(x):
            if printed >= limit:
                out.append("...")
                return printed
            out.append((" " if i else "") + _text(v, False))
            printed += 1
        return printed
    for row in x:
        if printed >= limit:
            break
        out.append("[")
        printed = _old_rows(row, depth + 1, limit, printed, out)
        out.append("]")
    return printed


def format_value(x: TensorLike, ends: int) -> str:
    """NumPy's way: the first and last ``ends`` entries of each dimension."""
    x = np.asarray(x)
    return _new_rows(x, 0, x.ndim, ends if ends >= 0 else max(x.shape, default=0))


def _new_rows(x: Array, depth: int, rank: int, ends: int) -> str:
    if depth == rank:
        return _text(x[()] if isinstance(x, np.ndarray) else x, True)
    gap = " " if depth == rank - 1 else "\n" * (rank - depth - 1) + " " * (depth + 1)
    count = len(x)
    parts = [_new_rows(x[i], depth + 1, rank, ends) for i in range(min(ends, count))]
    if count > 2 * ends:
        parts.append("...")
    parts += [_new_rows(x[i], depth + 1, rank, ends) for i in range(max(ends, count - ends), count)]
    return "[" + gap.join(parts) + "]"


# Print ------------------------------------------------------------------------------------------


def _print_kernel(
    xp: ArrayNamespace,
    x: Array,
    *data: Array,
    message: str,
    first_n: int,
    summarize: int,
    rt: RunContext,
    node: KernelNode,
) -> Array:
    if first_n >= 0:
        seen = rt.session_resource(("Print", node.key), lambda: [0])
        if seen[0] >= first_n:
            return x
        seen[0] += 1
    parts = "".join(f"[{summarize_value(d, summarize)}]" for d in data)
    print(message + parts, file=sys.stderr, flush=True)
    return x


PRINT = define(
    "Print",
    "input: T, data: *U -> output: T; message: str='', first_n: int=-1, summarize: int=3",
    shape=shape_fns.unchanged,
    kernel=_print_kernel,
    grad=lambda op, g: [g, *[None] * (len(op.inputs) - 1)],
    view=True,
    stateful=True,
    host_only=True,
)


def Print(
    input_: TensorLike,
    data: TensorLike,
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """``input_`` itself; each time it is computed, ``message`` and ``data`` are written to stderr.

    ``first_n`` writes only so often; ``summarize`` elements of each tensor are shown (3). Use the
    result, or nothing is printed.
    """
    if isinstance(data, (Tensor, str, bytes)) or not isinstance(data, (list, tuple)):
        data = [data]
    attrs = {
        "message": message or "",
        "first_n": -1 if first_n is None else first_n,
        "summarize": 3 if summarize is None else summarize,
    }
    return apply(PRINT, input_, list(data), name=name, **attrs)


def _print_v2_kernel(xp: ArrayNamespace, text: Array, *, output_stream: str, end: str) -> None:
    line = text.item().decode(errors="replace")
    if output_stream.startswith("file://"):
        with open(output_stream[7:], "a") as file:
            file.write(line + end)
        return
    stream = sys.stdout if output_stream == "stdout" else sys.stderr
    print(line, file=stream, end=end, flush=True)


def _print_v2_shape(c: Inference) -> list[Shape]:
    if c.rank(0):
        raise ValueError(f"input must be a scalar, but has rank: {c.rank(0)}")
    return []


PRINT_V2 = define(
    "PrintV2",
    "input: string ->; output_stream: str='stderr', end: str='\\n'",
    shape=_print_v2_shape,
    kernel=_print_v2_kernel,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    host_only=True,
)


def _format_shape(c: Inference) -> list[Shape]:
    places, given = c.attr("template").count(c.attr("placeholder")), len(c.shapes())
    if places != given:
        raise ValueError(
            f"num placeholders in template and num inputs must match: {places} vs. {given}"
        )
    return [()]


def _format_kernel(
    xp: ArrayNamespace, *inputs: Array, template: str, placeholder: str, summarize: int
) -> Array:
    pieces = template.split(placeholder)
    if len(pieces) - 1 != len(inputs):
        raise invalid(
            f"num placeholders in template and num inputs must match: {len(pieces) - 1} "
            f"vs. {len(inputs)}"
        )
    out = [pieces[0]]
    for x, piece in zip(inputs, pieces[1:]):
        out += [format_value(x, summarize), piece]
    array = np.empty((), object)
    array[()] = "".join(out).encode()
    return array


STRING_FORMAT = define(
    "StringFormat",
    "inputs: *T -> output: string; template: str='%s', placeholder: str='%s', summarize: int=3",
    shape=_format_shape,
    kernel=_format_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    attrs_vary=True,
)


def string_format(
    template: str,
    inputs: TensorLike,
    placeholder: str = "{}",
    summarize: int = 3,
    name: str | None = None,
) -> Tensor:
    """The template with each placeholder replaced by a tensor.

    ``inputs`` is a tensor or a list of as many tensors as the template has placeholders; of each
    dimension at most ``summarize`` elements at both ends are shown (-1: all).

        tf.strings.format("x is {}", tf.constant([1, 2]))  # "x is [1 2]"
    """
    items = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    if template.count(placeholder) != len(items):
        raise ValueError(
            f"{template.count(placeholder)} placeholder(s) in template does not match "
            f"{len(items)} tensor(s) provided "
            "as input"
        )
    return apply(
        STRING_FORMAT,
        items,
        template=template,
        placeholder=placeholder,
        summarize=summarize,
        name=name,
    )


#: Stands for a tensor in the text of tf.print; nothing writes it by accident.
_MARK = "\x00{}\x00"
_STREAMS = {"stdout": "stdout", "stderr": "stderr"}


class _Mark:
    """Prints as the placeholder, inside any nested structure."""

    def __repr__(self) -> str:
        return _MARK


def _marked(value: object, found: list[Tensor]) -> Any:
    if isinstance(value, Tensor) or getattr(value, "_as_graph_element", None) is not None:
        found.append(convert_to_tensor(value))
        return _Mark()
    if isinstance(value, dict):
        return {k: _marked(v, found) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_marked(v, found) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_marked(v, found) for v in value)
    return value


def print_v2(*inputs: object, **kwargs: Any) -> Operation:
    """``tf.print``: an operation that writes its arguments when it runs."""
    stream, end = kwargs.pop("output_stream", sys.stderr), kwargs.pop("end", "\n")
    summarize, sep, name = (
        kwargs.pop("summarize", 3),
        kwargs.pop("sep", " "),
        kwargs.pop("name", None),
    )
    if kwargs:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {kwargs}")
    target = _stream_name(stream)
    if (
        len(inputs) == 1
        and isinstance(inputs[0], Tensor)
        and inputs[0]._dtype._base is dtypes.string
        and inputs[0]._shape == ()
    ):
        text: Any = inputs[0]
    else:
        found: list[Tensor] = []
        marked = [_marked(v, found) for v in inputs]
        template = sep.join(v if isinstance(v, str) else pprint.pformat(v) for v in marked)
        text = string_format(template, found, _MARK, -1 if summarize is None else summarize)
    return apply_operation(PRINT_V2, text, output_stream=target, end=end, name=name)


def _stream_name(stream: object) -> str:
    if stream is sys.stdout or stream is sys.__stdout__:
        return "stdout"
    if stream is sys.stderr or stream is sys.__stderr__:
        return "stderr"
    if isinstance(stream, str) and (stream in _STREAMS or stream.startswith("file://")):
        return stream
    raise ValueError(
        f"Unsupported output stream, logging level, or file: {stream}. Supported streams "
        "are sys.stdout, sys.stderr and 'file://...'"
    )


TIMESTAMP = define(
    "Timestamp",
    "-> ts: float64",
    shape=shape_fns.scalar,
    kernel=lambda xp: np.float64(time.time()),
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    host_only=True,
)


def timestamp(name: str | None = None) -> Tensor:
    """Seconds since 1970, at the moment when the operation runs."""
    return apply(TIMESTAMP, name=name)
