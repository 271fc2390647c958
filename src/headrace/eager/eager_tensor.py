"""Eager tensors: values at hand that compute at once.

An :class:`EagerTensor` is a :class:`Tensor` whose value is its ``_static`` array (or NumPy scalar,
for rank 0), so code that asks for a tensor's static value, shape or type finds them without a case
of its own. No code may write to the array: a user gets copies (``numpy()``) or read-only views
(``np.asarray``).

    >>> x = tf.constant([1.0, 2.0])
    >>> x * 2.0
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 4.], dtype=float32)>
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from headrace.core import convert, dtypes, shapes
from headrace.core.dtypes import DType
from headrace.core.func_graph import is_function_graph
from headrace.core.graph import Graph
from headrace.core.shapes import Dims, Shape, TensorShape
from headrace.core.tensor import Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array, FeedDict, TensorLike

__all__ = ["EagerTensor", "Handle", "Place", "array_of", "wrap"]

_DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


class Place:
    """Stands where a symbolic tensor has its operation: an eager tensor was made by none."""

    type = "EagerTensor"
    _role = ""
    name = ""
    device = ""
    _device = ""
    _id = -1
    _context: Any = None
    _inputs: tuple[Any, ...] = ()
    _outputs: tuple[Any, ...] = ()
    _control_inputs: tuple[Any, ...] = ()
    _frames: tuple[Any, ...] = ()

    def __init__(self) -> None:
        self._attrs: dict[str, Any] = {}
        self.graph: Any = None


PLACE = Place()


def _undefined(what: str) -> property:
    def get(self: EagerTensor) -> NoReturn:
        raise AttributeError(f"Tensor.{what} is undefined when eager execution is enabled.")

    return property(get)


class EagerTensor(Tensor):
    """A tensor with its value."""

    __slots__ = ()

    _is_eager = True
    _op: Any = PLACE
    _value_index = 0
    _name = None

    op = _undefined("op")
    graph = _undefined("graph")
    name = _undefined("name")
    value_index = _undefined("value_index")

    _static: Array  # or a NumPy scalar

    def __init__(self, value: Any, dtype: DType) -> None:
        self._static = value
        self._dtype = dtype

    # what is known ------------------------------------------------------------------------------
    @property
    def _shape(self) -> Shape:
        dims: Dims = self._static.shape
        return dims

    @_shape.setter
    def _shape(self, shape: Shape) -> None:
        """Static knowledge that graph code adds: there is none to add here."""

    @property
    def shape(self) -> TensorShape:
        return shapes.from_plain(self._static.shape)

    def get_shape(self) -> TensorShape:
        return shapes.from_plain(self._static.shape)

    def set_shape(self, shape: object) -> None:
        if not self.shape.is_compatible_with(shape):
            raise ValueError(
                f"Tensor's shape {self.shape} is not compatible with supplied shape "
                f"{shapes.as_shape(shape)}."
            )

    @property
    def ndim(self) -> int:
        return self._static.ndim

    @property
    def device(self) -> str:
        return _DEVICE

    backing_device = device

    @property
    def is_packed(self) -> bool:
        return False

    def _num_elements(self) -> int:
        return int(self._static.size)

    def _rank(self) -> int:
        return self._static.ndim

    # the value ----------------------------------------------------------------------------------
    def numpy(self) -> Any:
        """The value: an array of the caller's own, or a NumPy scalar."""
        value = self._static
        if type(value) is np.ndarray:
            return value.copy() if value.ndim else value[()]
        return value

    def _numpy(self) -> Any:
        return _printable(self._static)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = np.asarray(self._static)
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        if copy:
            return array.copy()
        view = array.view()
        view.flags.writeable = False
        return view

    def __dlpack__(self, **options: Any) -> Any:
        # consumers do not take read-only memory, and must not write to this tensor's
        return np.array(self._static).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return np.asarray(self._static).__dlpack_device__()

    def cpu(self) -> Tensor:
        """A tensor of its own with the same value."""
        from headrace.core.build import apply_op

        return apply_op("Identity", self)

    def gpu(self, gpu_index: int = 0) -> NoReturn:
        raise RuntimeError("There is no GPU that eager tensors could be copied to")

    def __bool__(self) -> bool:
        return bool(self._static)

    def __int__(self) -> int:
        return int(self._static)

    def __float__(self) -> float:
        return float(self._static)

    def __complex__(self) -> complex:
        return complex(self._static)

    def __index__(self) -> int:
        return self._static.__index__()

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.numpy(), digits)

    def __len__(self) -> int:
        if not self._static.ndim:
            raise TypeError("Scalar tensor has no `len()`")
        return len(self._static)

    def __iter__(self) -> Iterator[Any]:
        if not self._static.ndim:
            raise TypeError("Cannot iterate over a scalar tensor.")
        return (self[i] for i in range(len(self._static)))

    def __format__(self, spec: str) -> str:
        return format(self._numpy(), spec)

    def __repr__(self) -> str:
        text = _text(self._static, repr_of=True)
        return f"<tf.Tensor: shape={self.shape}, dtype={self._dtype.name}, numpy={text}>"

    def __str__(self) -> str:
        text = _text(self._static, repr_of=False)
        return f"tf.Tensor({text}, shape={self.shape}, dtype={self._dtype.name})"

    # copies -------------------------------------------------------------------------------------
    def __copy__(self) -> EagerTensor:
        return self

    def __deepcopy__(self, memo: object) -> EagerTensor:
        return type(self)(np.array(self._static)[()], self._dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.numpy(), self._dtype.name)

    # graphs -------------------------------------------------------------------------------------
    def _converted(self, dtype: DType | None, graph: Graph) -> Tensor:
        """This tensor for a graph.

        Itself where there is none, a capture of a function, a constant of a plain graph.
        """
        if dtype is not None and dtype._base is not self._dtype:
            raise ValueError(
                f"Tensor conversion requested dtype {dtype.name} for Tensor with dtype "
                f"{self._dtype.name}: {self!r}"
            )
        if graph._is_eager:
            return self
        if is_function_graph(graph):
            return graph.capture(self)
        return self._as_constant(graph)

    def _as_constant(self, graph: Graph) -> Tensor:
        return convert.make_const(
            graph, np.asarray(self._static), self._dtype, graph._full_name("Const")
        )

    def consumers(self) -> NoReturn:
        raise NotImplementedError("Tensor.consumers is undefined when eager execution is enabled.")

    def eval(self, feed_dict: FeedDict | None = None, session: object = None) -> NoReturn:
        raise NotImplementedError(
            "eval is not supported when eager execution is enabled, is .numpy() what "
            "you're looking for?"
        )


class Handle(EagerTensor):
    """A reference to something that is not an array: a variable, a table, an iterator."""

    _static: Any  # the key or the object that it refers to

    __slots__ = ("_op",)

    def __init__(self, value: object, op: object = PLACE, dtype: DType = dtypes.resource) -> None:
        self._static = value
        self._dtype = dtype
        self._op = op

    @property
    def _shape(self) -> Shape:
        return ()

    @_shape.setter
    def _shape(self, shape: Shape) -> None:
        """As above."""

    @property
    def shape(self) -> TensorShape:
        return shapes.from_plain(())

    def get_shape(self) -> TensorShape:
        return shapes.from_plain(())

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape=(), dtype={self._dtype.name}, value={self._static!r}>"

    __str__ = __repr__

    def numpy(self) -> NoReturn:
        raise ValueError(f"Cannot convert a Tensor of dtype {self._dtype.name} to a NumPy array.")

    def __deepcopy__(self, memo: object) -> Handle:
        return self

    def _as_constant(self, graph: Graph) -> NoReturn:
        raise RuntimeError("Attempting to capture an EagerTensor without building a function.")


convert.EAGER_KINDS.update((EagerTensor, Handle))

_new = EagerTensor.__new__


def wrap(value: Any, dtype: DType) -> EagerTensor:
    """A tensor around an array that nothing else writes to."""
    tensor = _new(EagerTensor)
    tensor._static = value
    tensor._dtype = dtype
    return tensor


def array_of(tensor: EagerTensor) -> Array:
    """The value, not to be written to."""
    return tensor._static


def _restored(value: TensorLike, name: str) -> EagerTensor:
    dtype = dtypes.as_dtype(name)
    return wrap(convert.make_ndarray(value, dtype), dtype)


def _printable(value: Array) -> bytes | Array | np.generic:
    return value[()] if type(value) is np.ndarray and not value.ndim else value


def _text(value: Any, repr_of: bool) -> str:
    plain = _printable(value)
    if not isinstance(plain, np.ndarray):
        return repr(plain) if isinstance(plain, bytes) else str(plain)
    text = repr(plain) if repr_of else str(plain)
    return "\n" + text if "\n" in text else text
