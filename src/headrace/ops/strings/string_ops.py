"""String tensors: arrays of Python ``bytes`` (NumPy dtype object).

>>> tf.string_join(["a", names], separator="/")
>>> tf.string_split(["a b"]).values
>>> tf.as_string(3.5, precision=2)
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, shape_fns, shapes
from headrace.core.build import apply, apply_many, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, OpDef, add_traits, define
from headrace.core.scopes import name_scope
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import const, invalid, one_of
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.ops.strings.regex import compile_pattern, needs_groups
from headrace.ops.strings.string_hash import fingerprint64, hash64, sip_hash

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import Array, ArrayNamespace, AxisLike, DTypeLike, TensorLike
    from headrace.core.dtypes import DType

__all__ = [
    "as_string",
    "bytes_split",
    "decode_base64",
    "decode_raw",
    "encode_base64",
    "reduce_join",
    "reduce_join_v2",
    "regex_full_match",
    "regex_replace",
    "string_join",
    "string_length",
    "string_lower",
    "string_split",
    "string_split_dense",
    "string_split_v2",
    "string_strip",
    "string_to_hash_bucket",
    "string_to_hash_bucket_fast",
    "string_to_hash_bucket_strong",
    "string_to_hash_bucket_v1",
    "string_to_number",
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


def _define(
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


STRING_JOIN = _define(
    "StringJoin", "inputs: N*string -> output: string; separator: str=''", _join_kernel, _join_shape
)


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
STRING_SPLIT = _define(
    "StringSplit",
    f"input: string, delimiter: string -> {_SPLIT_OUT}; skip_empty: bool=True",
    _split_v1_kernel,
    _split_shape,
)
STRING_SPLIT_V2 = _define(
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
) -> SparseTensor:
    """Split each string of a vector; the result is sparse, a row for each string."""
    delimiter = one_of("sep", sep, "delimiter", delimiter)
    source = one_of("source", source, "input", input)
    if result_type != "SparseTensor":
        raise NotImplementedError(
            "tf.string_split makes SparseTensors only; RaggedTensor is not there"
        )
    with name_scope(name, "StringSplit", [source]):
        parts = apply_many(
            STRING_SPLIT, source, " " if delimiter is None else delimiter, skip_empty=skip_empty
        )
        return SparseTensor(*parts)


def string_split_v2(
    input: TensorLike, sep: TensorLike | None = None, maxsplit: int = -1, name: str | None = None
) -> SparseTensor:
    """Python's ``str.split``; the result is sparse."""
    return SparseTensor(
        *apply_many(
            STRING_SPLIT_V2, input, "" if sep is None else sep, maxsplit=maxsplit, name=name
        )
    )


def string_split_dense(
    input: TensorLike, sep: TensorLike | None = None, maxsplit: int = -1, name: str | None = None
) -> Tensor:
    """TF 2's ``tf.strings.split`` of one string. (Of several it is ragged, which is not there.)"""
    return _of_one(input, "tf.strings.split", lambda x: string_split_v2(x, sep, maxsplit, name))


def bytes_split(input: TensorLike, name: str | None = None) -> Tensor:
    """The bytes of one string."""
    return _of_one(input, "tf.strings.bytes_split", lambda x: string_split(x, "", name=name))


def _of_one(input: TensorLike, what: str, split: Callable[[Any], SparseTensor]) -> Tensor:
    tensor = convert_to_tensor(input, dtypes.string)
    if tensor._shape != ():
        raise NotImplementedError(
            f"{what} of more than one string gives a RaggedTensor, which Headrace does not have. "
            "tf.compat.v1.string_split gives a SparseTensor"
        )
    return split(apply_op("Reshape", tensor, [1])).values


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


REDUCE_JOIN = _define(
    "ReduceJoin",
    "inputs: string, reduction_indices: int32 -> output: string; keep_dims: bool=False, "
    "separator: str=''",
    _reduce_join_kernel,
    shape_fns.reduction,
)


def reduce_join(
    inputs: TensorLike,
    axis: AxisLike | None = None,
    keep_dims: object = None,
    separator: str = "",
    name: str | None = None,
    reduction_indices: AxisLike | None = None,
    keepdims: object = None,
) -> Tensor:
    """Join the strings along dimensions, by default all."""
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


def reduce_join_v2(
    inputs: TensorLike,
    axis: AxisLike | None = None,
    keepdims: bool = False,
    separator: str = "",
    name: str | None = None,
) -> Tensor:
    """The strings along ``axis`` (None: all) joined with ``separator``; see ``tf.reduce_join``."""
    return reduce_join(inputs, axis, None, separator, name, None, keepdims)


# numbers ----------------------------------------------------------------------------------------


def _number_format(
    kind: str, precision: int, scientific: bool, shortest: bool, width: int, fill: str
) -> str:
    spec = "%" + fill + (str(width) if width > -1 else "")
    if kind in "iu":
        return spec + "d"
    if precision > -1:
        spec += f".{precision}"
    return spec + ("e" if scientific else "g" if shortest else "f")


def _as_string_kernel(
    xp: ArrayNamespace,
    x: Array,
    *,
    precision: int,
    scientific: bool,
    shortest: bool,
    width: int,
    fill: str,
) -> Array:
    kind = x.dtype.kind
    if kind not in "fc":
        for given, what in (
            (precision > -1, "precision"),
            (scientific or shortest, "scientific and shortest format"),
        ):
            if given:
                raise invalid(f"{what} not supported for datatype {x.dtype.name}")
    values = x.reshape(-1).tolist()
    if kind == "b":
        spec = f"%{fill}{width if width > -1 else ''}s"
        return object_array([(spec % ("true" if v else "false")).encode() for v in values], x.shape)
    spec = _number_format(kind, precision, scientific, shortest, width, fill)
    if kind == "c":
        return object_array(
            [f"({spec % v.real},{spec % v.imag})".encode() for v in values], x.shape
        )
    return object_array([(spec % v).encode() for v in values], x.shape)


def _check_as_string(attrs: dict[str, Any]) -> None:
    if attrs["scientific"] and attrs["shortest"]:
        raise invalid("Cannot select both scientific and shortest notation")
    if len(attrs["fill"]) > 1:
        raise invalid("Fill string must be one or fewer characters")


AS_STRING = _define(
    "AsString",
    "input: T -> output: string; precision: int=-1, scientific: bool=False, shortest: "
    "bool=False, width: int=-1, fill: str=''",
    _as_string_kernel,
    check_attrs=_check_as_string,
)


def as_string(
    input: TensorLike,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Tensor:
    """Numbers as strings, in the formats of C's printf."""
    return apply(
        AS_STRING,
        input,
        precision=precision,
        scientific=scientific,
        shortest=shortest,
        width=width,
        fill=fill,
        name=name,
    )


def _to_number_kernel(xp: ArrayNamespace, x: Array, *, out_type: DType) -> Array:
    convert = _integer_of if out_type.is_integer else _float_of
    low, high = out_type.limits if out_type.is_integer else (-math.inf, math.inf)
    out = []
    for s in x.reshape(-1).tolist():
        value = convert(s.strip())
        if value is None or value < low or value > high:
            raise invalid(
                f"StringToNumberOp could not correctly convert string: {s.decode(errors='replace')}"
            )
        out.append(value)
    with np.errstate(over="ignore"):
        return np.array(out, out_type.np_dtype).reshape(x.shape)


_INTEGER = re.compile(rb"-?[0-9]+")
_HEX = re.compile(rb"([+-]?)(0[xX][0-9a-fA-F]+)")
_FLOAT = re.compile(rb"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf|nan)", re.IGNORECASE)


def _integer_of(text: bytes) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) else None


def _float_of(text: bytes) -> float | None:
    """Decimal numbers, inf and nan in any case, and whole hexadecimal numbers."""
    if _FLOAT.fullmatch(text):
        return float(text)
    whole = _HEX.fullmatch(text)
    if whole is None:
        return None
    return float(int(whole[2], 16)) * (-1.0 if whole[1] == b"-" else 1.0)


STRING_TO_NUMBER = _define(
    "StringToNumber",
    "string_tensor: string -> output: out_type; out_type: type(number)=float32",
    _to_number_kernel,
)


def string_to_number(
    string_tensor: TensorLike | None = None,
    out_type: DTypeLike = dtypes.float32,
    name: str | None = None,
    input: object = None,
) -> Tensor:
    """The numbers that strings spell, as ``out_type``; text that is no number is an error."""
    source = one_of("input", input, "string_tensor", string_tensor)
    return apply(STRING_TO_NUMBER, source, out_type=out_type, name=name)


def _decode_raw_kernel(
    xp: ArrayNamespace, x: Array, *, out_type: DType, little_endian: bool
) -> Array:
    strings = x.reshape(-1).tolist()
    dtype = out_type.np_dtype
    width = len(strings[0]) if strings else 0
    for i, s in enumerate(strings):
        if len(s) != width:
            raise invalid(
                "DecodeRaw requires input strings to all be the same size, but element "
                f"{i} has size {width} != {len(s)}"
            )
    if width % dtype.itemsize:
        raise invalid(
            f"Input to DecodeRaw has length {width} that is not a multiple of "
            f"{dtype.itemsize}, the size of {out_type.name}"
        )
    flat = np.frombuffer(b"".join(strings), dtype if little_endian else dtype.newbyteorder(">"))
    return flat.astype(dtype).reshape((*x.shape, width // dtype.itemsize))


DECODE_RAW = _define(
    "DecodeRaw",
    "bytes: string -> output: out_type; out_type: type, little_endian: bool=True",
    _decode_raw_kernel,
    lambda c: [None if c.shape(0) is None else (*c.shape(0), None)],
)


def decode_raw(
    input_bytes: TensorLike | None = None,
    out_type: DTypeLike | None = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: object = None,
) -> Tensor:
    """The bytes of each string as a vector of numbers."""
    source = one_of("input_bytes", input_bytes, "bytes", bytes)
    if out_type is None:
        raise ValueError("decode_raw needs out_type")
    return apply(DECODE_RAW, source, out_type=out_type, little_endian=little_endian, name=name)


# pieces -----------------------------------------------------------------------------------------


def _substr_shape(c: Inference) -> list[Shape]:
    if c.shape(1) is not None and c.shape(2) is None:
        raise ValueError("The shape of 'len' must be known where that of 'pos' is: use set_shape.")
    if c.shape(1) is not None:
        shapes.merge(c.shape(1), c.shape(2))
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


SUBSTR = _define(
    "Substr",
    "input: string, pos: T, len: T -> output: string; T: type(index), unit: str='BYTE'",
    _substr_kernel,
    _substr_shape,
)


def substr(
    input: TensorLike, pos: TensorLike, len: TensorLike, name: str | None = None, unit: str = "BYTE"
) -> Tensor:
    """``len`` bytes or characters from ``pos`` on."""
    return apply(SUBSTR, input, pos, len, unit=unit, name=name)


def substr_v2(
    input: TensorLike, pos: TensorLike, len: TensorLike, unit: str = "BYTE", name: str | None = None
) -> Tensor:
    """Parts of strings from ``pos`` on, ``len`` long; ``unit`` is "BYTE" or "UTF8_CHAR"."""
    return substr(input, pos, len, name, unit)


def _length_kernel(xp: ArrayNamespace, x: Array, *, unit: str) -> Array:
    if unit == "BYTE":
        sizes = [len(s) for s in x.reshape(-1).tolist()]
    else:  # bytes that do not continue a character
        sizes = [sum((b & 0xC0) != 0x80 for b in s) for s in x.reshape(-1).tolist()]
    return np.array(sizes, np.int32).reshape(x.shape)


STRING_LENGTH = _define(
    "StringLength", "input: string -> output: int32; unit: str='BYTE'", _length_kernel
)


def string_length(input: TensorLike, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """The length of each string, in bytes or, with ``unit="UTF8_CHAR"``, in characters."""
    return apply(STRING_LENGTH, input, unit=unit, name=name)


def _case_kernel(method: str) -> Callable[..., Any]:
    def kernel(xp: ArrayNamespace, x: Array, *, encoding: str) -> Any:
        if encoding == "utf-8":
            return mapped(lambda s: getattr(s.decode(), method)().encode(), x)
        return mapped(lambda s: getattr(s, method)(), x)

    return kernel


STRING_LOWER = _define(
    "StringLower", "input: string -> output: string; encoding: str=''", _case_kernel("lower")
)
STRING_UPPER = _define(
    "StringUpper", "input: string -> output: string; encoding: str=''", _case_kernel("upper")
)
STRING_STRIP = _define(
    "StringStrip", "input: string -> output: string", lambda xp, x: mapped(bytes.strip, x)
)


def string_lower(input: TensorLike, encoding: str = "", name: str | None = None) -> Tensor:
    """Strings in lower case; ASCII letters only, unless ``encoding="utf-8"``."""
    return apply(STRING_LOWER, input, encoding=encoding, name=name)


def string_upper(input: TensorLike, encoding: str = "", name: str | None = None) -> Tensor:
    """Strings in upper case; ASCII letters only, unless ``encoding="utf-8"``."""
    return apply(STRING_UPPER, input, encoding=encoding, name=name)


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


REGEX_REPLACE = _define(
    "RegexReplace",
    "input: string, pattern: string, rewrite: string -> output: string; replace_global: bool=True",
    lambda xp, x, pattern, rewrite, *, replace_global: _replaced(
        x, pattern.item(), rewrite.item(), replace_global
    ),
)
STATIC_REGEX_REPLACE = _define(
    "StaticRegexReplace",
    "input: string -> output: string; pattern: str, rewrite: str, replace_global: bool=True",
    lambda xp, x, *, pattern, rewrite, replace_global: _replaced(
        x, pattern.encode(), rewrite.encode(), replace_global
    ),
)
REGEX_FULL_MATCH = _define(
    "RegexFullMatch",
    "input: string, pattern: string -> output: bool",
    lambda xp, x, pattern: _matches(x, pattern.item()),
)
STATIC_REGEX_FULL_MATCH = _define(
    "StaticRegexFullMatch",
    "input: string -> output: bool; pattern: str",
    lambda xp, x, *, pattern: _matches(x, pattern.encode()),
)


def regex_replace(
    input: TensorLike,
    pattern: TensorLike,
    rewrite: TensorLike,
    replace_global: bool = True,
    name: str | None = None,
) -> Tensor:
    """Replace what matches a pattern; the rewrite may say \\1 for a group."""
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


def regex_full_match(input: TensorLike, pattern: TensorLike, name: str | None = None) -> Tensor:
    """True where the whole string matches an RE2 pattern."""
    if isinstance(pattern, (str, bytes)):
        return apply(STATIC_REGEX_FULL_MATCH, input, pattern=pattern, name=name)
    return apply(REGEX_FULL_MATCH, input, pattern, name=name)


# hashes and base64 ------------------------------------------------------------------------------


def _bucketed(function: Callable[[bytes], int], x: Array, count: int) -> Array:
    return np.array([function(s) % count for s in x.reshape(-1).tolist()], np.int64).reshape(
        x.shape
    )


STRING_TO_HASH_BUCKET_FAST = _define(
    "StringToHashBucketFast",
    "input: string -> output: int64; num_buckets: int",
    lambda xp, x, *, num_buckets: _bucketed(fingerprint64, x, num_buckets),
)
STRING_TO_HASH_BUCKET = _define(
    "StringToHashBucket",
    "string_tensor: string -> output: int64; num_buckets: int",
    lambda xp, x, *, num_buckets: _bucketed(hash64, x, num_buckets),
)
STRING_TO_HASH_BUCKET_STRONG = _define(
    "StringToHashBucketStrong",
    "input: string -> output: int64; num_buckets: int, key: list(int)",
    lambda xp, x, *, num_buckets, key: _bucketed(lambda s: sip_hash(s, key), x, num_buckets),
)


def string_to_hash_bucket_fast(
    input: TensorLike, num_buckets: int, name: str | None = None
) -> Tensor:
    """A bucket from 0 to ``num_buckets - 1`` for each string (FarmHash; the same everywhere)."""
    return apply(STRING_TO_HASH_BUCKET_FAST, input, num_buckets=num_buckets, name=name)


def string_to_hash_bucket_strong(
    input: TensorLike, num_buckets: int, key: TensorLike, name: str | None = None
) -> Tensor:
    """As ``string_to_hash_bucket_fast`` with a secret key of two integers (SipHash).

    Nobody without the key can choose strings that fall into one bucket.
    """
    return apply(STRING_TO_HASH_BUCKET_STRONG, input, num_buckets=num_buckets, key=key, name=name)


def string_to_hash_bucket(input: TensorLike, num_buckets: int, name: str | None = None) -> Tensor:
    """A bucket from 0 to ``num_buckets - 1`` for each string, equal for equal strings."""
    return apply(STRING_TO_HASH_BUCKET, input, num_buckets=num_buckets, name=name)


def string_to_hash_bucket_v1(
    string_tensor: TensorLike | None = None,
    num_buckets: int | None = None,
    name: str | None = None,
    input: object = None,
) -> Tensor:
    """A bucket from 0 to ``num_buckets - 1`` for each string, equal for equal strings.

    ``input`` is the newer name of ``string_tensor``.
    """
    source = one_of("input", input, "string_tensor", string_tensor)
    return apply(STRING_TO_HASH_BUCKET, source, num_buckets=num_buckets, name=name)


def _encode(s: bytes, pad: bool) -> bytes:
    text = base64.urlsafe_b64encode(s)
    return text if pad else text.rstrip(b"=")


def _decode(s: bytes) -> bytes:
    body = s.rstrip(b"=")
    if re.fullmatch(rb"[A-Za-z0-9_-]*", body) is None or len(body) % 4 == 1:
        raise invalid("Invalid character found in base64.")
    return base64.urlsafe_b64decode(body + b"=" * (-len(body) % 4))


ENCODE_BASE64 = _define(
    "EncodeBase64",
    "input: string -> output: string; pad: bool=False",
    lambda xp, x, *, pad: mapped(lambda s: _encode(s, pad), x),
)
DECODE_BASE64 = _define(
    "DecodeBase64", "input: string -> output: string", lambda xp, x: mapped(_decode, x)
)


def encode_base64(input: TensorLike, pad: bool = False, name: str | None = None) -> Tensor:
    """Web-safe base64."""
    return apply(ENCODE_BASE64, input, pad=pad, name=name)


def decode_base64(input: TensorLike, name: str | None = None) -> Tensor:
    """The bytes that web-safe base64 encodes (``-`` and ``_``), padded or not."""
    return apply(DECODE_BASE64, input, name=name)


# traits ------------------------------------------------------------------------------------------

add_traits(
    "AsString DecodeRaw StringLength StringLower StringStrip StringToHashBucketFast "
    "StringToNumber StringUpper",
    batching="same",
)
