"""String tensors: arrays of Python ``bytes`` (NumPy dtype object).

>>> tf.string_join(["a", names], separator="/")
>>> tf.string_split(["a b"]).values
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, shape_fns, shapes
from headrace.core.build import apply, apply_many, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.dispatch import dispatched
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, OpDef, add_traits, define
from headrace.core.scopes import name_scope
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import const, invalid, one_number, one_of
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.ops.strings.regex import compile_pattern, needs_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import Array, ArrayNamespace, AxisLike, TensorLike

__all__ = [
    "reduce_join",
    "reduce_join_v2",
    "regex_full_match",
    "regex_replace",
    "string_join",
    "string_length",
    "string_lower",
    "string_split",
    "string_split_v2",
    "string_strip",
    "string_upper",
    "substr",
    "substr_v2",
]


def object_array(values: list[Any], dims: TensorLike) -> Array:
    """Python objects as an array (NumPy would look into them)."""
    out = np.empty(len(values), object)
    out[:] = values
    return out.reshape(dims)


def mapped(function: Callable[[Any], Any], x: Array) -> Array:
    """A function of bytes applied to every string."""
    return object_array([function(s) for s in x.reshape(-1).tolist()], x.shape)


def define_string_op(
    name: str,
    signature: str,
    kernel: Callable[..., Any],
    shape: Callable[..., Any] = shape_fns.unchanged,
    **traits: Any,
) -> OpDef:
    return define(
        name,
        signature,
        shape=shape,
        kernel=kernel,
        grad=NOT_DIFFERENTIABLE,
        host_only=True,
        **traits,
    )


# joining and splitting --------------------------------------------------------------------------


def _join_shape(c: Inference) -> list[Shape]:
    out: Shape = None if None in c.shapes() else ()
    for s in c.shapes():
        if s:
            out = s if not out else shapes.merge(out, s)
    return [out]


def _join_kernel(xp: ArrayNamespace, *inputs: Array, separator: str) -> Array:
    sep = separator.encode()
    dims = next((x.shape for x in inputs if x.ndim), ())
    count = int(np.prod(dims))
    columns = []
    for x in inputs:
        if x.ndim and x.shape != dims:
            raise invalid(
                f"Input shapes do not match: {shapes.show(dims)} vs. {shapes.show(x.shape)}"
            )
        columns.append(x.reshape(-1).tolist() if x.ndim else [x.item()] * count)
    return object_array([sep.join(row) for row in zip(*columns)], dims)


STRING_JOIN = define_string_op(
    "StringJoin", "inputs: N*string -> output: string; separator: str=''", _join_kernel, _join_shape
)


@dispatched("string_join")
def string_join(
    inputs: Sequence[TensorLike], separator: str = "", name: str | None = None
) -> Tensor:
    """The strings of several tensors joined, element by element."""
    return apply(STRING_JOIN, list(inputs), separator=separator, name=name)


def _sparse_rows(rows: list[list[bytes]]) -> tuple[Array, Array, Array]:
    indices = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    values = [v for row in rows for v in row]
    size = [len(rows), max((len(r) for r in rows), default=0)]
    return (
        np.array(indices, np.int64).reshape(-1, 2),
        object_array(values, len(values)),
        np.array(size, np.int64),
    )


def _split_v1_kernel(
    xp: ArrayNamespace, x: Array, delimiter: Array, *, skip_empty: bool
) -> tuple[Array, Array, Array]:
    """Every byte of the delimiter separates; an empty one separates all bytes."""
    _check_split(x, delimiter, "delimiter")
    marks: bytes = delimiter.item()
    pattern = re.compile(b"[" + re.escape(marks) + b"]") if marks else None
    rows = []
    for s in x.tolist():
        if not s or pattern is None:
            parts = [s[i : i + 1] for i in range(len(s))]
        else:
            parts = pattern.split(s)
        rows.append([p for p in parts if p] if skip_empty else parts)
    return _sparse_rows(rows)


def _split_v2_kernel(
    xp: ArrayNamespace, x: Array, sep: Array, *, maxsplit: int
) -> tuple[Array, Array, Array]:
    _check_split(x, sep, "sep")
    by: bytes = sep.item()
    if maxsplit == 0:
        return _sparse_rows([[s] for s in x.tolist()])
    if by:
        return _sparse_rows([s.split(by, maxsplit) for s in x.tolist()])
    return _sparse_rows([_split_at_whitespace(s, maxsplit) for s in x.tolist()])


def _split_at_whitespace(s: bytes, maxsplit: int) -> list[bytes]:
    """After ``maxsplit`` words TensorFlow adds what is left, also when that is empty."""
    parts = s.split(None, maxsplit)
    return [*parts, b""] if len(parts) == maxsplit else parts


def _check_split(x: Array, mark: Array, name: str) -> None:
    for value, what, rank, kind in ((x, "input", 1, "vector"), (mark, name, 0, "scalar")):
        if value.ndim != rank:
            shape = ",".join(map(str, value.shape))
            raise invalid(f"{what} must be a {kind}, got shape: [{shape}]")


def _split_shape(c: Inference) -> list[Shape]:
    c.require_rank(0, 1)
    c.require_rank(1, 0)
    return [(None, 2), (None,), (2,)]


_SPLIT_OUT = "indices: int64, values: string, shape: int64"
STRING_SPLIT = define_string_op(
    "StringSplit",
    f"input: string, delimiter: string -> {_SPLIT_OUT}; skip_empty: bool=True",
    _split_v1_kernel,
    _split_shape,
)
STRING_SPLIT_V2 = define_string_op(
    "StringSplitV2",
    f"input: string, sep: string -> {_SPLIT_OUT}; maxsplit: int=-1",
    _split_v2_kernel,
    _split_shape,
)


def string_split(
    source: object = None,
    sep: object = None,
    skip_empty: bool = True,
    delimiter: TensorLike | None = None,
    result_type: str = "SparseTensor",
    name: str | None = None,
    input: object = None,
) -> Any:
    """Each string of a vector cut into parts, as a SparseTensor with a row for each string.

    ``sep`` is a set of characters, each of which separates (``delimiter`` is its older name; ""
    cuts into bytes); ``skip_empty`` drops empty parts. ``result_type="RaggedTensor"`` gives a
    ragged tensor. ``input`` is another name of ``source``.
    """
    delimiter = one_of("sep", sep, "delimiter", delimiter)
    source = one_of("source", source, "input", input)
    if result_type not in ("SparseTensor", "RaggedTensor"):
        raise ValueError("result_type must be 'RaggedTensor' or 'SparseTensor'.")
    with name_scope(name, "StringSplit", [source]):
        delimiter = convert_to_tensor(" " if delimiter is None else delimiter, dtypes.string)
        source = convert_to_tensor(source, dtypes.string)
        sparse = SparseTensor(*apply_many(STRING_SPLIT, source, delimiter, skip_empty=skip_empty))
        if result_type == "SparseTensor":
            return sparse
        from headrace.ops.ragged.ragged_strings import rows_of_sparse

        return rows_of_sparse(sparse)


def string_split_v2(
    input: TensorLike, sep: TensorLike | None = None, maxsplit: int = -1, name: str | None = None
) -> SparseTensor:
    """Python's ``str.split``; the result is sparse."""
    return SparseTensor(
        *apply_many(
            STRING_SPLIT_V2, input, "" if sep is None else sep, maxsplit=maxsplit, name=name
        )
    )


def _reduce_join_kernel(
    xp: ArrayNamespace, x: Array, axes: Array, *, keep_dims: bool, separator: str
) -> Array:
    """Joining over [a, b] joins over a first: a runs fastest in the result."""
    gone = []
    for a in axes.reshape(-1).tolist():
        if not -x.ndim <= a < x.ndim:
            raise errors.OutOfRangeError(
                None,
                None,
                f"Invalid reduction dimension {a} for input with {x.ndim} dimension(s)",
            )
        gone.append(a % x.ndim)
    if len(set(gone)) != len(gone):
        repeated = next(a for i, a in enumerate(gone) if a in gone[:i])
        raise invalid(f"Duplicate reduction dimension {repeated}")
    kept = [i for i in range(x.ndim) if i not in gone]
    dims = [x.shape[i] for i in kept]
    moved = (
        x.transpose(kept + gone[::-1]).reshape(int(np.prod(dims)), -1)
        if x.size
        else np.empty((int(np.prod(dims)), 0), object)
    )
    sep = separator.encode()
    out = [sep.join(row) for row in moved.tolist()]
    return object_array(
        out, [1 if i in gone else d for i, d in enumerate(x.shape)] if keep_dims else dims
    )


def _reduce_join_shape(c: Inference) -> list[Shape]:
    axes = c.shape(1)
    if axes is not None and len(axes) > 1:
        raise ValueError(f"Shape must be at most rank 1 but is rank {len(axes)}")
    return shape_fns.reduction(c)


REDUCE_JOIN = define_string_op(
    "ReduceJoin",
    "inputs: string, reduction_indices: int32 -> output: string; keep_dims: bool=False, "
    "separator: str=''",
    _reduce_join_kernel,
    _reduce_join_shape,
)


@dispatched("reduce_join")
def reduce_join(
    inputs: TensorLike,
    axis: AxisLike | None = None,
    keep_dims: object = None,
    separator: str = "",
    name: str | None = None,
    reduction_indices: AxisLike | None = None,
    keepdims: object = None,
) -> Tensor:
    """Strings joined along the dimensions ``axis``, one after the other; by default along all.

    ``separator`` stands between them; ``keepdims`` keeps joined dimensions with length 1.
    ``reduction_indices`` and ``keep_dims`` are old names.

        tf.reduce_join([["a", "b"], ["c", "d"]], 1)              # [b"ab", b"cd"]
    """
    keep = bool(one_of("keepdims", keepdims, "keep_dims", keep_dims))
    axes = one_of("axis", axis, "reduction_indices", reduction_indices)
    with name_scope(name, "ReduceJoin", [inputs]):
        tensor = convert_to_tensor(inputs)
        if axes is None:
            axes = _all_axes_reversed(tensor)
        return apply(REDUCE_JOIN, tensor, axes, keep_dims=keep, separator=separator)


def _all_axes_reversed(tensor: Tensor) -> Tensor:
    rank = tensor._rank()
    if rank is not None:
        return const(range(rank - 1, -1, -1))
    n = apply_op("Rank", tensor)
    return apply_op("Range", n - 1, const(-1), const(-1))


@dispatched("reduce_join")
def reduce_join_v2(
    inputs: TensorLike,
    axis: AxisLike | None = None,
    keepdims: bool = False,
    separator: str = "",
    name: str | None = None,
) -> Tensor:
    """The strings along ``axis`` (None: all) joined with ``separator``; see ``tf.reduce_join``.

    ``keepdims`` keeps reduced dimensions with size 1. TF 1 has the older names of arguments, and
    ``axis`` is needed there.
    """
    return reduce_join(inputs, axis, None, separator, name, None, keepdims)


# pieces -----------------------------------------------------------------------------------------


def _substr_shape(c: Inference) -> list[Shape]:
    pos, length = c.shape(1), c.shape(2)
    if pos is not None and length is None:
        raise ValueError("The shape of 'len' must be known where that of 'pos' is: use set_shape.")
    if pos is not None and length is not None:
        if len(pos) != len(length):
            raise ValueError(f"Shape must be rank {len(length)} but is rank {len(pos)}")
        if pos != length:  # TensorFlow takes an unknown dimension for another one
            raise ValueError(
                f"pos and len shapes must match: {shapes.show(pos)} vs. {shapes.show(length)}"
            )
    return [shapes.broadcast(c.shape(0), c.shape(1))]


def _substr_kernel(xp: ArrayNamespace, x: Array, pos: Array, length: Array, *, unit: str) -> Array:
    x, pos, length = np.broadcast_arrays(x, pos, length)
    out = []
    for s, p, n in zip(
        x.reshape(-1).tolist(), pos.reshape(-1).tolist(), length.reshape(-1).tolist()
    ):
        text = s.decode() if unit == "UTF8_CHAR" else s
        if not -len(text) <= p <= len(text):
            raise invalid(f"pos {p} out of range for string {s!r}")
        p = p + len(text) if p < 0 else p
        piece = text[
            p : p + n if n >= 0 else None
        ]  # TensorFlow takes a negative length for a huge one
        out.append(piece.encode() if unit == "UTF8_CHAR" else piece)
    return object_array(out, x.shape)


SUBSTR = define_string_op(
    "Substr",
    "input: string, pos: T, len: T -> output: string; T: type(index), unit: str='BYTE'",
    _substr_kernel,
    _substr_shape,
)


@dispatched("unary")
def substr(
    input: TensorLike, pos: TensorLike, len: TensorLike, name: str | None = None, unit: str = "BYTE"
) -> Tensor:
    """``len`` bytes or characters from ``pos`` on.

    ``pos`` and ``len`` are scalars or have the shape of ``input``. ``unit`` is "BYTE" or
    "UTF8_CHAR". A negative ``pos`` counts from the end; one outside of its string is an error.

        tf.strings.substr(["hello"], 1, 3)  # ["ell"]
    """
    return apply(SUBSTR, input, pos, len, unit=unit, name=name)


def substr_v2(
    input: TensorLike, pos: TensorLike, len: TensorLike, unit: str = "BYTE", name: str | None = None
) -> Tensor:
    """Parts of strings from ``pos`` on, ``len`` long; ``unit`` is "BYTE" or "UTF8_CHAR".

    ``pos`` and ``len`` are scalars or have the shape of ``input``. A negative ``pos`` counts from
    the end; one outside of its string is an error. TF 1 has ``name`` before ``unit``.
    """
    return substr(input, pos, len, name, unit)


def _length_kernel(xp: ArrayNamespace, x: Array, *, unit: str) -> Array:
    if unit == "BYTE":
        sizes = [len(s) for s in x.reshape(-1).tolist()]
    else:  # bytes that do not continue a character
        sizes = [sum((b & 0xC0) != 0x80 for b in s) for s in x.reshape(-1).tolist()]
    return np.array(sizes, np.int32).reshape(x.shape)


STRING_LENGTH = define_string_op(
    "StringLength", "input: string -> output: int32; unit: str='BYTE'", _length_kernel
)


@dispatched("unary")
def string_length(input: TensorLike, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """The length of each string, in bytes or, with ``unit="UTF8_CHAR"``, in characters."""
    return apply(STRING_LENGTH, input, unit=unit, name=name)


def _case_kernel(method: str) -> Callable[..., Any]:
    def kernel(xp: ArrayNamespace, x: Array, *, encoding: str) -> Array:
        if encoding == "utf-8":
            return mapped(lambda s: getattr(s.decode(), method)().encode(), x)
        return mapped(lambda s: getattr(s, method)(), x)

    return kernel


STRING_LOWER = define_string_op(
    "StringLower", "input: string -> output: string; encoding: str=''", _case_kernel("lower")
)
STRING_UPPER = define_string_op(
    "StringUpper", "input: string -> output: string; encoding: str=''", _case_kernel("upper")
)
STRING_STRIP = define_string_op(
    "StringStrip", "input: string -> output: string", lambda xp, x: mapped(bytes.strip, x)
)


def string_lower(input: TensorLike, encoding: str = "", name: str | None = None) -> Tensor:
    """Strings in lower case; ASCII letters only, unless ``encoding="utf-8"``."""
    return apply(STRING_LOWER, input, encoding=encoding, name=name)


def string_upper(input: TensorLike, encoding: str = "", name: str | None = None) -> Tensor:
    """Strings in upper case; ASCII letters only, unless ``encoding="utf-8"``."""
    return apply(STRING_UPPER, input, encoding=encoding, name=name)


@dispatched("unary")
def string_strip(input: TensorLike, name: str | None = None) -> Tensor:
    """Strings without whitespace at both ends."""
    return apply(STRING_STRIP, input, name=name)


# regular expressions ----------------------------------------------------------------------------


def _replaced(x: Array, pattern: bytes, rewrite: bytes, everywhere: bool) -> Array:
    compiled = compile_pattern(pattern, needs_groups(rewrite))
    return mapped(lambda s: compiled.replace(s, rewrite, everywhere), x)


def _matches(x: Array, pattern: bytes) -> Array:
    matches = compile_pattern(pattern, groups=False).matches
    found = [matches(s) for s in x.reshape(-1).tolist()]
    return np.array(found, bool).reshape(x.shape)


def _regex_shape(c: Inference) -> list[Shape]:
    """That of the strings; the pattern (and what replaces it) is one string."""
    for i in range(1, c.n_inputs):
        c.require_rank(i, 0)
    return [c.shape(0)]


REGEX_REPLACE = define_string_op(
    "RegexReplace",
    "input: string, pattern: string, rewrite: string -> output: string; replace_global: bool=True",
    lambda xp, x, pattern, rewrite, *, replace_global: _replaced(
        x,
        one_number(pattern, "Pattern must be scalar, but received {shape}"),
        one_number(rewrite, "Rewrite must be scalar, but received {shape}"),
        replace_global,
    ),
    shape=_regex_shape,
)
STATIC_REGEX_REPLACE = define_string_op(
    "StaticRegexReplace",
    "input: string -> output: string; pattern: str, rewrite: str, replace_global: bool=True",
    lambda xp, x, *, pattern, rewrite, replace_global: _replaced(
        x, pattern.encode(), rewrite.encode(), replace_global
    ),
)
REGEX_FULL_MATCH = define_string_op(
    "RegexFullMatch",
    "input: string, pattern: string -> output: bool",
    lambda xp, x, pattern: _matches(
        x, one_number(pattern, "Pattern must be scalar, but received {shape}")
    ),
    shape=_regex_shape,
)
STATIC_REGEX_FULL_MATCH = define_string_op(
    "StaticRegexFullMatch",
    "input: string -> output: bool; pattern: str",
    lambda xp, x, *, pattern: _matches(x, pattern.encode()),
)


@dispatched("unary")
def regex_replace(
    input: TensorLike,
    pattern: TensorLike,
    rewrite: TensorLike,
    replace_global: bool = True,
    name: str | None = None,
) -> Tensor:
    """Replace what matches a pattern; the rewrite may say \\1 for a group.

    ``pattern`` is a regular expression of the RE2 library; ``replace_global=False`` replaces the
    first match of each string only.

        tf.strings.regex_replace("a-b-c", "-", "+")  # "a+b+c"
    """
    if isinstance(pattern, (str, bytes)) and isinstance(rewrite, (str, bytes)):
        return apply(
            STATIC_REGEX_REPLACE,
            input,
            pattern=pattern,
            rewrite=rewrite,
            replace_global=replace_global,
            name=name,
        )
    return apply(REGEX_REPLACE, input, pattern, rewrite, replace_global=replace_global, name=name)


@dispatched("unary")
def regex_full_match(input: TensorLike, pattern: TensorLike, name: str | None = None) -> Tensor:
    """True where the whole string matches an RE2 pattern."""
    if isinstance(pattern, (str, bytes)):
        return apply(STATIC_REGEX_FULL_MATCH, input, pattern=pattern, name=name)
    return apply(REGEX_FULL_MATCH, input, pattern, name=name)


# traits ------------------------------------------------------------------------------------------

add_traits(
    "StringLength StringLower StringStrip StringUpper",
    batching="same",
)
