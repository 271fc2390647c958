"""Data types: TensorFlow's names and numbers over NumPy's types.

There is exactly one :class:`DType` object per type, so code inside Headrace compares with ``is``. A
variable of the TF-1 kind has a *reference* type (``float32_ref``); ``base_dtype`` strips it.

    >>> as_dtype(np.float32) is float32
    True
    >>> float32.as_numpy_dtype
    <class 'numpy.float32'>
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "DType",
    "QUANTIZED_DTYPES",
    "as_dtype",
    "bfloat16",
    "bool",
    "complex128",
    "complex64",
    "double",
    "float16",
    "float32",
    "float64",
    "half",
    "int16",
    "int32",
    "int64",
    "int8",
    "qint16",
    "qint32",
    "qint8",
    "quint16",
    "quint8",
    "resource",
    "string",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "variant",
]

_REF_OFFSET = 100
_bool = bool


class DType:
    """A data type such as ``tf.float32``: ``name``, ``as_numpy_dtype``, ``size``, ``min``, ``max``.

    ``tf.as_dtype`` finds one by name, NumPy type or number.
    """

    __slots__ = (
        "_base",
        "_enum",
        "_is_ref",
        "_kind",
        "_name",
        "_np",
        "_ref",
        "limits_",
        "np_dtype",
    )

    def __init__(
        self, enum: int, name: str, np_type: object, kind: str, base: DType | None = None
    ) -> None:
        self._enum = enum
        self._name = name
        # b bool, i signed, u unsigned, f float, c complex, q quantized, s string, r handle
        self._kind = kind
        self._base: DType = base if base is not None else self
        self._is_ref = base is not None
        self._ref: DType | None = None
        if np_type is not None:
            self._set_numpy(np_type)

    def _set_numpy(self, np_type: Any) -> None:
        self._np = np_type
        self.np_dtype: np.dtype[Any] = np.dtype(np_type)

    # identity -----------------------------------------------------------------------------------
    @property
    def name(self) -> str:
        return self._name

    @property
    def as_datatype_enum(self) -> int:
        return self._enum

    @property
    def as_numpy_dtype(self) -> Any:
        return self._np

    @property
    def base_dtype(self) -> DType:
        return self._base

    @property
    def real_dtype(self) -> DType:
        if self._base is complex64:
            return float32
        if self._base is complex128:
            return float64
        return self

    @property
    def _as_ref(self) -> DType:
        if self._is_ref:
            return self
        assert self._ref is not None
        return self._ref

    @property
    def _is_ref_dtype(self) -> _bool:
        return self._is_ref

    # kinds --------------------------------------------------------------------------------------
    @property
    def is_floating(self) -> _bool:
        return self._kind == "f"

    @property
    def is_complex(self) -> _bool:
        return self._kind == "c"

    @property
    def is_integer(self) -> _bool:
        return self._kind in "iu"

    @property
    def is_quantized(self) -> _bool:
        return self._kind == "q"

    @property
    def is_unsigned(self) -> _bool:
        return self._kind == "u"

    @property
    def is_bool(self) -> _bool:
        return self._kind == "b"

    @property
    def is_numpy_compatible(self) -> _bool:
        return self._kind != "r"

    @property
    def size(self) -> int:
        return 1 if self._kind in "sr" else self.np_dtype.itemsize

    @property
    def min(self) -> Any:
        return self._limit("min")

    @property
    def max(self) -> Any:
        return self._limit("max")

    @property
    def limits(self) -> tuple[Any, Any]:
        return self.min, self.max

    def _limit(self, which: str) -> Any:
        if self._kind == "b":
            return which == "max"
        if self._kind in "iu":
            return getattr(np.iinfo(self._np), which)
        if self._base is bfloat16:
            import ml_dtypes

            return getattr(ml_dtypes.finfo(ml_dtypes.bfloat16), which)  # type: ignore[no-untyped-call]
        if self._kind == "f":
            return getattr(np.finfo(self._np), which)
        raise TypeError(f"Cannot find {which}imum value of {self}.")

    def is_compatible_with(self, other: object) -> _bool:
        return as_dtype(other)._base is self._base

    # Python -------------------------------------------------------------------------------------
    def __eq__(self, other: object) -> _bool:
        if self is other:
            return True
        if other is None:
            return False
        try:
            return as_dtype(other) is self
        except TypeError:
            return False

    def __ne__(self, other: object) -> _bool:
        return not self == other

    __hash__ = object.__hash__  # there is one object per type; attributes of ops are hashed often

    def __int__(self) -> int:
        return self._enum

    def __str__(self) -> str:
        return f"<dtype: '{self._name}'>"

    def __repr__(self) -> str:
        return f"tf.{self._name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self._name,)


class _LateDType(DType):
    """The one type that NumPy itself does not have, until its NumPy type is asked for.

    (A ``__getattr__`` of all types would make all their fields slower.)
    """

    __slots__ = ()

    def __getattr__(self, attribute: str) -> Any:
        if attribute not in ("_np", "np_dtype"):
            raise AttributeError(attribute)
        _load_bfloat16()
        return getattr(self, attribute)


_ALL: list[DType] = []


def _make(enum: int, name: str, np_type: object, kind: str) -> DType:
    new = DType if np_type is not None else _LateDType
    dtype = new(enum, name, np_type, kind)
    dtype._ref = new(enum + _REF_OFFSET, name + "_ref", np_type, kind, dtype)
    _ALL.append(dtype)
    _ALL.append(dtype._ref)
    return dtype


float32 = _make(1, "float32", np.float32, "f")
float64 = double = _make(2, "float64", np.float64, "f")
int32 = _make(3, "int32", np.int32, "i")
uint8 = _make(4, "uint8", np.uint8, "u")
int16 = _make(5, "int16", np.int16, "i")
int8 = _make(6, "int8", np.int8, "i")
string = _make(7, "string", np.object_, "s")
complex64 = _make(8, "complex64", np.complex64, "c")
int64 = _make(9, "int64", np.int64, "i")
bool = _make(10, "bool", np.bool_, "b")
qint8 = _make(11, "qint8", np.dtype([("qint8", np.int8)]), "q")
quint8 = _make(12, "quint8", np.dtype([("quint8", np.uint8)]), "q")
qint32 = _make(13, "qint32", np.dtype([("qint32", np.int32)]), "q")
bfloat16 = _make(14, "bfloat16", None, "f")
qint16 = _make(15, "qint16", np.dtype([("qint16", np.int16)]), "q")
quint16 = _make(16, "quint16", np.dtype([("quint16", np.uint16)]), "q")
uint16 = _make(17, "uint16", np.uint16, "u")
complex128 = _make(18, "complex128", np.complex128, "c")
float16 = half = _make(19, "float16", np.float16, "f")
resource = _make(20, "resource", np.object_, "r")
variant = _make(21, "variant", np.object_, "r")
uint32 = _make(22, "uint32", np.uint32, "u")
uint64 = _make(23, "uint64", np.uint64, "u")

QUANTIZED_DTYPES = frozenset([qint8, quint8, qint16, quint16, qint32])

_LOOKUP: dict[Any, DType] = {}
for _t in _ALL:
    _LOOKUP[_t.name] = _t
    _LOOKUP[_t.as_datatype_enum] = _t
for _t in _ALL[::2]:
    if _t._kind != "r" and _t is not bfloat16:
        _LOOKUP[_t.np_dtype] = _t
        _LOOKUP[_t.as_numpy_dtype] = _t
_LOOKUP.update(
    {
        "half": float16,
        "float": float32,
        "double": float64,
        float: float32,
        int: int64,
        _bool: bool,
        str: string,
        bytes: string,
        object: string,
        np.str_: string,
        np.bytes_: string,
        np.dtype(np.longlong): int64,
        np.dtype(np.ulonglong): uint64,
        np.intc: int32,
        np.uintc: uint32,
        np.longlong: int64,
        np.ulonglong: uint64,
        complex: complex128,
    }
)


class _FromNumpy(dict[np.dtype[Any], DType]):
    def __missing__(self, dtype: np.dtype[Any]) -> DType:
        if dtype.name != "bfloat16" or dtype in self:
            raise KeyError(dtype)
        _load_bfloat16()
        return self[dtype]


#: For the hot paths: NumPy dtype object to DType, native byte order.
FROM_NUMPY = _FromNumpy((k, v) for k, v in _LOOKUP.items() if isinstance(k, np.dtype))


def _load_bfloat16() -> None:
    """ml_dtypes adds bfloat16 to NumPy.

    Few programs need it, so it is imported by the first that does.
    """
    import ml_dtypes

    assert bfloat16._ref is not None
    for dtype in (bfloat16, bfloat16._ref):
        dtype.__class__ = DType
        dtype._set_numpy(ml_dtypes.bfloat16)
    for key in (bfloat16.np_dtype, ml_dtypes.bfloat16):
        _LOOKUP[key] = bfloat16
    FROM_NUMPY[bfloat16.np_dtype] = bfloat16


#: Names that TensorFlow's kernels have for types, where they are not those of Python.
_KERNEL_NAMES = {"float16": "half", "float32": "float", "float64": "double"}


def kernel_name(dtype: DType) -> str:
    """The name of a type in messages of TensorFlow's kernels: ``float`` for float32."""
    return _KERNEL_NAMES.get(dtype._base.name, dtype._base.name)


def as_dtype(value: Any) -> DType:
    """Convert a name, an enum number, a NumPy type or a DType to a DType."""
    if type(value) is DType or type(value) is _LateDType:
        return value
    try:
        found = _LOOKUP.get(value)
    except TypeError:
        found = None
    if found is not None:
        return found
    if value is None:  # NumPy takes it for float64
        raise TypeError("Cannot convert value None to a TensorFlow DType.")
    try:
        dtype = np.dtype(value)
    except (TypeError, ValueError, SyntaxError):  # NumPy parses text such as "2i4, f8"
        raise TypeError(f"Cannot convert value {value!r} to a TensorFlow DType.") from None
    if dtype.kind in "SU":
        return string
    found = _LOOKUP.get(dtype.newbyteorder("="))
    if found is None and dtype.name == "bfloat16":
        return FROM_NUMPY[dtype]
    if found is None:
        raise TypeError(f"Cannot convert value {value!r} to a TensorFlow DType.")
    return found
