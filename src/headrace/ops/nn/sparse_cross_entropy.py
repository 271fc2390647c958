"""Cross entropy whose labels are class numbers: sparse_softmax_cross_entropy_with_logits."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, infer, shapes
from headrace.core.build import apply_many
from headrace.core.convert import convert_to_tensor
from headrace.core.opdef import define
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_as, count_more, ops_counted
from headrace.core.tensor import Operation, Tensor
from headrace.kernels.accel import ask
from headrace.kernels.numpy.gemm import ones
from headrace.kernels.numpy.two_class_cross_entropy import cross_entropy_of_two
from headrace.ops.nn.activations import shifted
from headrace.ops.nn.cross_entropy import (
    _LIBRARY_FROM,
    Grads,
    as_matrix,
    ensure_named,
    exp_sums,
    through_softmax,
)
from headrace.ops.nn.nn_common import (
    add,
    cast,
    expand_last,
    mul,
    reshape,
    shape_of,
)

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike

__all__ = [
    "SPARSE_XENT",
    "picked_loss",
    "row_starts",
    "sparse_softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits_v2",
]


def _check_labels(features: Array, labels: Array) -> None:
    if features.ndim != 2 or labels.ndim != 1:
        what, x, rank = ("logits", features, 2) if features.ndim != 2 else ("labels", labels, 1)
        raise errors.InvalidArgumentError(
            None, None, f"{what} must be {rank}-D, but got shape {shapes.show(x.shape)}"
        )
    if features.shape[0] != labels.shape[0]:
        raise errors.InvalidArgumentError(
            None,
            None,
            "logits and labels must have the same first dimension, got logits shape "
            f"{shapes.show(features.shape)} and labels shape {shapes.show(labels.shape)}",
        )
    if not features.shape[1]:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"Must have at least one class, but got logits shape {shapes.show(features.shape)}",
        )


def _sparse_xent_kernel(xp: ArrayNamespace, features: Array, labels: Array) -> tuple[Any, Any]:
    if labels.shape != features.shape[:1] or features.ndim != 2 or not features.shape[1]:
        _check_labels(features, labels)
    if xp.name != "numpy":
        d, e, total = exp_sums(xp, features)
        picked = labels[:, None] == xp.arange(features.shape[1])
        loss = xp.log(total[:, 0]) - xp.where(picked, d, 0).sum(-1)
        return loss.astype(features.dtype), (e / total - picked).astype(features.dtype)
    rows, classes = features.shape
    if (
        0 < classes <= _MAX_TRANSPOSED_CLASSES
        and features.dtype.itemsize >= 4
        and labels.dtype.itemsize == 4
    ):
        return _sparse_xent_of_few(features, labels, rows, classes)
    # as unsigned numbers negative labels are too large as well: one look instead of two
    if rows and np.maximum.reduce(labels.view(_UNSIGNED[labels.dtype.itemsize])) >= classes:
        raise _label_error(labels, classes)
    at = row_starts(rows, classes) + labels
    if features.size >= _LIBRARY_FROM:
        e = ask("softmax", features)
        if e is not None:
            return picked_loss(features, e, at), e
    d = shifted(xp, features)
    log_total = np.log(np.exp(d) @ ones(classes, d.dtype))
    loss = log_total - d.reshape(-1).take(at)
    d -= log_total.reshape(rows, 1)
    e = np.exp(d, out=d)
    e.reshape(-1)[at] -= 1
    if features.dtype.itemsize >= 4:
        return loss, e
    return loss.astype(features.dtype, copy=False), e.astype(features.dtype, copy=False)


def picked_loss(features: Array, e: Array, at: Array) -> Array:
    """The loss of given probabilities, from which 1 is taken away at the labels."""
    flat = e.reshape(-1)
    picked = flat.take(at)
    flat[at] -= 1
    small = picked < 1e-30
    np.log(picked, out=picked)
    np.negative(picked, out=picked)
    if small.any():  # probabilities that underflow still have a logarithm
        rows = features[small]
        d = rows - rows.max(-1, keepdims=True)
        own = d.reshape(-1).take(at[small] % features.shape[1] + row_starts(*d.shape))
        picked[small] = np.log(np.exp(d).sum(-1)) - own
    return picked


#: Up to so many classes it pays to work on the transposed matrix: NumPy's loops then run over the
#: rows.
_MAX_TRANSPOSED_CLASSES = 16


#: Rows up to which two classes have a way of their own: from about here on BLAS would use threads
#: for it.
_FEW_ROWS = 4096


def _sparse_xent_of_few(features: Array, labels: Array, rows: int, classes: int) -> tuple[Any, Any]:
    try:
        if classes == 2 and rows <= _FEW_ROWS:
            found = cross_entropy_of_two(features, labels)
            if found is not None:
                return found
        # as unsigned numbers wrong labels, negative ones too, lie behind the end of the table
        at = row_starts(classes, rows).take(labels.view(np.uint32))
    except IndexError:
        raise _label_error(labels, classes) from None
    at += row_starts(rows, 1)
    d = features.T.copy()
    d -= np.maximum.reduce(d, 0)
    e = np.exp(d)
    total = np.dot(ones(classes, d.dtype), e)
    picked = d.take(at)
    e /= total
    e.reshape(-1)[at] -= 1
    return np.log(total) - picked, e.T


_UNSIGNED = {4: np.uint32, 8: np.uint64}


@functools.lru_cache(64)
def row_starts(rows: int, classes: int) -> Array:
    """Where each row of a matrix begins in its flat form."""
    starts = np.arange(0, rows * classes, classes) if classes else np.zeros(rows, np.int64)
    starts.flags.writeable = False
    return starts


def _label_error(labels: Array, classes: int) -> errors.InvalidArgumentError:
    wrong = labels[(labels < 0) | (labels >= classes)][0]
    values = " ".join(str(v) for v in labels.tolist())
    return errors.InvalidArgumentError(
        None,
        None,
        f"Received a label value of {wrong} which is outside the valid range of [0, "
        f"{classes}).  Label values: {values}",
    )


def _sparse_xent_shape(c: infer.Inference) -> list[shapes.Shape]:
    logits, labels = c.require_rank(0, 2), c.require_rank(1, 1)
    assert logits is not None and labels is not None
    if None not in (logits[0], labels[0]) and logits[0] != labels[0]:
        raise ValueError(f"Dimensions must be equal, but are {logits[0]} and {labels[0]}")
    rows = labels[0] if logits[0] is None else logits[0]
    return [(rows,), (rows, logits[1])]


def _sparse_xent_grad(op: Operation, g: Tensor, g_backprop: Tensor | None) -> Grads:
    result = None if g is None else mul(expand_last(g), op._outputs[1])
    if g_backprop is not None:
        curved = through_softmax(op._inputs[0], g_backprop)
        result = curved if result is None else add(result, curved)
    return [result, None]


SPARSE_XENT = define(
    "SparseSoftmaxCrossEntropyWithLogits",
    "features: T, labels: Tlabels -> loss: T, backprop: T; T: type(float), Tlabels: "
    "type(index)=int64",
    shape=_sparse_xent_shape,
    kernel=_sparse_xent_kernel,
    grad=_sparse_xent_grad,
    dense=True,
    role="cross entropy",
)


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: object = None,
    labels: object = None,
    logits: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The cross entropy with class numbers for labels; any outer shape.

    ``labels`` is int32 or int64 [...], ``logits`` [..., classes]; the result is [...]. Both are
    given by name, as ``_sentinel`` enforces. A label outside of the classes is an error.

        labels, logits = [1], [[0.0, 0.0]]
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)  # [0.69315]
    """
    ensure_named("sparse_softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "SparseSoftmaxCrossEntropyWithLogits", [labels, logits]):
        labels, logits = convert_to_tensor(labels), convert_to_tensor(logits)
        half = logits._dtype._base is dtypes.float16
        precise = cast(logits, dtypes.float32) if half else logits
        _check_sparse_shapes(labels, logits)
        if logits._shape is not None and len(logits._shape) == 2:
            count_more(logits._op.graph, 1)  # the labels' shape
            cost = apply_many(SPARSE_XENT, precise, labels, name=name)[0]
        else:
            before = ops_counted(logits._op.graph)
            cost = _flat_sparse_xent(precise, labels, name)
            known = None not in (
                shapes.known(labels._shape),
                shapes.known((logits._shape or (None,))[:-1]),
            )
            count_as(logits._op.graph, before, 18 if known else 34)  # TF compares the shapes
        return cast(cost, dtypes.float16) if half else cost


def _check_sparse_shapes(labels: Tensor, logits: Tensor) -> None:
    have, want = labels._shape, logits._shape
    if want is not None and not want:
        raise ValueError(f"Logits cannot be scalars - received shape {logits.shape}.")
    if have is None or want is None:
        return
    if len(have) != len(want) - 1:
        raise ValueError(
            f"Rank mismatch: Rank of labels (received {len(have)}) should equal rank of "
            "logits minus 1 "
            f"(received {len(want)})."
        )
    if None not in have and None not in want[:-1] and have != want[:-1]:
        raise ValueError(
            f"Shape mismatch: The shape of labels (received {labels.shape}) should equal "
            "the shape of logits except "
            f"for the last dimension (received {logits.shape})."
        )


def _flat_sparse_xent(logits: Tensor, labels: Tensor, name: str | None) -> Tensor:
    shape = shape_of(labels)
    cost = apply_many(SPARSE_XENT, as_matrix(logits), reshape(labels, [-1]), name=name)[0]
    result = reshape(cost, shape)
    result.set_shape(labels._shape)
    return result


def sparse_softmax_cross_entropy_with_logits_v2(
    labels: TensorLike, logits: TensorLike, name: str | None = None
) -> Tensor:
    """The loss of class numbers; arguments may be given by position.

    See ``tf.nn.sparse_softmax_cross_entropy_with_logits``.
    """
    return sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=name)
