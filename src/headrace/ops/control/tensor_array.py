"""``tf.TensorArray``: write-once arrays of tensors for loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.core import dtypes, shapes
from headrace.core.build import apply, apply_many, apply_op, apply_operation
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.infer import static_value
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_more
from headrace.core.tensor import Tensor
from headrace.ops.array.basic import constant, identity
from headrace.ops.control import tensor_array_ops as ops

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["TensorArray"]


class TensorArray:
    """A list of tensors that loops write and read: ``write(i, value)``, ``read(i)``, ``stack()``.

    Every change returns a new object, which is to be used instead of the old one: it carries
    ``flow``, the order of what was done. ``size`` is the number of elements, ``dynamic_size`` lets
    writes go beyond it. An element is read once unless ``clear_after_read`` is False.
    ``element_shape`` and ``infer_shape`` check that all elements have one shape.

        array = tf.TensorArray(tf.float32, size=n)
        body = lambda i, array: (i + 1, array.write(i, x[i] * 2))
        _, array = tf.while_loop(lambda i, _: i < n, body, [0, array])
        array.stack()
    """

    def __new__(cls, *args: object, **kwargs: object) -> TensorArray:
        if cls is TensorArray and get_default_graph()._is_eager:
            from headrace.ops.control.tensor_array_eager import EagerTensorArray

            return object.__new__(EagerTensorArray)
        return object.__new__(cls)

    def __init__(
        self,
        dtype: object,
        size: object = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Tensor | None = None,
        flow: Tensor | None = None,
        infer_shape: bool = True,
        element_shape: object = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        if handle is not None and size is not None:
            raise ValueError("Cannot provide both a handle and size at the same time")
        self._dtype = dtypes.as_dtype(dtype).base_dtype
        self._dynamic_size = bool(dynamic_size)
        self._infer_shape = infer_shape
        self._element_shape: list[Any] = [shapes.to_plain(element_shape)]
        self._size = None if isinstance(size, Tensor) and static_value(size) is None else size
        if handle is not None:
            if flow is None:
                raise ValueError("A TensorArray from a handle needs its flow too")
            self._handle, self._flow = handle, flow
            return
        if size is None:
            raise ValueError("Size must be provided to create a TensorArray")
        with name_scope(name, "TensorArray", [size]) as scope:
            self._handle, self._flow = apply_many(
                ops.MAKE,
                size,
                dtype=self._dtype,
                element_shape=self._element_shape[0],
                dynamic_size=self._dynamic_size,
                clear_after_read=clear_after_read is not False,
                identical_element_shapes=infer_shape,
                tensor_array_name=tensor_array_name or "",
                name=scope,
            )

    # what it is -----------------------------------------------------------------------------------
    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def handle(self) -> Tensor:
        return self._handle

    @property
    def flow(self) -> Tensor:
        return self._flow

    @property
    def dynamic_size(self) -> bool:
        return self._dynamic_size

    @property
    def element_shape(self) -> shapes.TensorShape:
        return shapes.from_plain(self._element_shape[0])

    @property
    def _type_spec(self) -> Any:
        """How it travels in a dataset."""
        from headrace.ops.control.tensor_array_spec import TensorArraySpec

        return TensorArraySpec(
            self.element_shape, self._dtype, self._dynamic_size, self._infer_shape
        )

    @property
    def _graph_anchor(self) -> Tensor:
        return self._flow

    def _as_tensor_for_control_flow(self) -> Tensor:
        return self._flow

    def _from_tensor_for_control_flow(self, flow: Tensor) -> TensorArray:
        return self._with_flow(flow)

    def _with_flow(self, flow: Tensor) -> TensorArray:
        other: TensorArray = object.__new__(TensorArray)
        other.__dict__.update(self.__dict__)
        other._flow = flow
        return other

    def _note_shape(self, shape: shapes.Shape) -> None:
        """What a written value says of the element shape; shared by all objects for this array."""
        known = self._element_shape[0]
        if not shapes.compatible(known, shape):
            raise ValueError(
                f"Inconsistent shapes: saw {shapes.from_plain(shape)} but expected "
                f"{shapes.from_plain(known)} "
                f"(and infer_shape={self._infer_shape})"
            )
        if self._infer_shape:
            self._element_shape[0] = shapes.merge(known, shape)

    def mark_used(self) -> None:
        """Say that the array is dropped on purpose.

        TensorFlow warns of a written array that nothing reads unless this was called; Headrace
        does not warn.
        """

    # using it
    # ---------------------------------------------------------------------------------------
    def identity(self) -> TensorArray:
        return self._with_flow(identity(self._flow))

    def grad(self, source: str, flow: Tensor | None = None, name: str | None = None) -> TensorArray:
        handle, new_flow = apply_many(
            ops.GRAD, self._handle, self._flow if flow is None else flow, source=source, name=name
        )
        other = self._with_flow(new_flow)
        other._handle = handle
        return other

    def read(self, index: TensorLike, name: str | None = None) -> Tensor:
        value: Tensor = apply(
            ops.READ, self._handle, index, self._flow, dtype=self._dtype, name=name
        )
        if self._element_shape[0] is not None:
            value.set_shape(self._element_shape[0])
        return value

    def write(self, index: TensorLike, value: object, name: str | None = None) -> TensorArray:
        value = convert_to_tensor(value, preferred_dtype=self._dtype, name="value")
        self._check_dtype(value)
        self._note_shape(value._shape)
        return self._with_flow(apply(ops.WRITE, self._handle, index, value, self._flow, name=name))

    def _check_dtype(self, value: Tensor) -> None:
        if value._dtype._base is not self._dtype:
            raise errors.InvalidArgumentError(
                None,
                value._op,
                f"TensorArray dtype is {self._dtype.name} but Op is trying to write dtype "
                f"{value._dtype.name}. Cast the value.",
            )

    def stack(self, name: str | None = None) -> Tensor:
        with name_scope(name, "TensorArrayStack", [self._flow]):
            size = self.size()
            with name_scope("range") as scope:
                start, delta = constant(0, name="start"), constant(1, name="delta")
                indices = apply_op("Range", start, size, delta, name=scope)
            return self.gather(indices)

    def gather(self, indices: TensorLike, name: str | None = None) -> Tensor:
        value: Tensor = apply(
            ops.GATHER,
            self._handle,
            indices,
            self._flow,
            dtype=self._dtype,
            element_shape=self._element_shape[0],
            name=name,
        )
        return value

    def concat(self, name: str | None = None) -> Tensor:
        shape = self._element_shape[0]
        value, _ = apply_many(
            ops.CONCAT,
            self._handle,
            self._flow,
            dtype=self._dtype,
            element_shape_except0=None if shape is None else shape[1:],
            name=name,
        )
        return value

    def unstack(self, value: TensorLike, name: str | None = None) -> TensorArray:
        with name_scope(name, "TensorArrayUnstack", [value]):
            value = convert_to_tensor(value, preferred_dtype=self._dtype)
            self._check_dtype(value)
            if value._shape is not None:
                self._note_shape(value._shape[1:])
            count_more(value._op.graph, 1)  # TF slices the shape with three constants
            rows = apply_op("GatherV2", apply_op("Shape", value, out_type=dtypes.int32), 0, 0)
            return self.scatter(apply_op("Range", 0, rows, 1), value)

    def scatter(
        self, indices: TensorLike, value: TensorLike, name: str | None = None
    ) -> TensorArray:
        value = convert_to_tensor(value, preferred_dtype=self._dtype)
        self._check_dtype(value)
        if value._shape is not None:
            self._note_shape(value._shape[1:])
        return self._with_flow(
            apply(ops.SCATTER, self._handle, indices, value, self._flow, name=name)
        )

    def split(self, value: TensorLike, lengths: TensorLike, name: str | None = None) -> TensorArray:
        value = convert_to_tensor(value, preferred_dtype=self._dtype)
        lengths = apply_op("Cast", lengths, DstT=dtypes.int64)
        known = static_value(lengths)
        if known is not None and known.ndim == 1 and known.size and value._shape:
            size = int(known[0])
            if (known == size).all():
                self._note_shape((size, *value._shape[1:]))
        return self._with_flow(
            apply(ops.SPLIT, self._handle, value, lengths, self._flow, name=name)
        )

    def size(self, name: str | None = None) -> Tensor:
        if not self._dynamic_size and self._size is not None:
            if isinstance(self._size, Tensor):
                count_more(self._size._op.graph, 1)  # TF asks the array
            return convert_to_tensor(self._size, dtypes.int32, name or "TensorArraySizeV3")
        return apply(ops.SIZE, self._handle, self._flow, name=name)

    def close(self, name: str | None = None) -> Any:
        return apply_operation(ops.CLOSE, self._handle, name=name)
