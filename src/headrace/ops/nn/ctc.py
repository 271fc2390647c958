"""CTC: ``tf.nn.ctc_loss`` and the decoders. The arithmetic is in
:mod:`headrace.kernels.numpy.ctc_kernels`.

>>> loss = ctc_loss(labels=sparse_labels, inputs=logits, sequence_length=lengths)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import infer, shapes
from headrace.core.build import apply_any, apply_many, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.tensor import Operation, Tensor
from headrace.kernels.numpy import ctc_kernels as ctc
from headrace.ops.nn.nn_common import deprecated, expand_last, mul, transpose

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, SparseLike, TensorLike

__all__ = [
    "ctc_beam_search_decoder",
    "ctc_beam_search_decoder_v2",
    "ctc_greedy_decoder",
    "ctc_loss",
]

# kernels ----------------------------------------------------------------------------------------


def _check_lengths(inputs: Array, lengths: Array, error: type[errors.OpError]) -> None:
    if inputs.ndim != 3:
        raise errors.InvalidArgumentError(None, None, "inputs is not a 3-Tensor")
    if not inputs.shape[0]:
        raise errors.InvalidArgumentError(None, None, "max_time is 0")
    if lengths.ndim != 1:
        raise errors.InvalidArgumentError(None, None, "sequence_length is not a vector")
    if len(lengths) != inputs.shape[1]:
        raise error(
            None,
            None,
            f"len(sequence_length) != batch_size.  len(sequence_length):  {len(lengths)} "
            f"batch_size: {inputs.shape[1]}",
        )
    for i, length in enumerate(lengths.tolist()):
        if length > inputs.shape[0]:
            raise error(None, None, f"sequence_length({i}) <= {inputs.shape[0]}")


def _targets(inputs: Array, indices: Array, values: Array, collapse: bool) -> list[list[int]]:
    """The label sequence of each item; it ends at the first label that is no class."""
    if indices.ndim != 2 or len(indices) != len(values):
        raise errors.InvalidArgumentError(
            None,
            None,
            "labels_indices and labels_values must contain the same number of rows, but saw "
            f"shapes: {shapes.show(indices.shape)} vs. {shapes.show(values.shape)}",
        )
    found: list[list[int]] = [[] for _ in range(inputs.shape[1])]
    ended = [False] * len(found)
    for item, label in zip(indices[:, 0].tolist(), values.tolist()):
        if not 0 <= item < len(found):
            raise errors.InvalidArgumentError(
                None, None, f"label batch {item} is not in [0, {len(found)})"
            )
        if label < 0 and collapse:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"All labels must be nonnegative integers, batch: {item} labels: "
                f"{','.join(map(str, [*found[item], label]))}",
            )
        if label < 0 or label >= inputs.shape[2] - 1:
            ended[item] = True
        elif ended[item]:
            raise errors.InvalidArgumentError(
                None,
                None,
                "Saw a non-null label (index >= num_classes - 1) following a null label, "
                f"batch: {item} num_classes: {inputs.shape[2]} labels: {found[item]}",
            )
        else:
            found[item].append(label)
    present = set(indices[:, 0].tolist())
    for item in range(len(found)):
        if item not in present:
            raise errors.InvalidArgumentError(None, None, f"Labels length is zero in batch {item}")
    return [ctc.collapse(t) for t in found] if collapse else found


def _loss_kernel(
    xp: ArrayNamespace,
    inputs: Array,
    indices: Array,
    values: Array,
    lengths: Array,
    *,
    preprocess_collapse_repeated: bool,
    ctc_merge_repeated: bool,
    ignore_longer_outputs_than_inputs: bool,
) -> tuple[Array, Array]:
    _check_lengths(inputs, lengths, errors.InvalidArgumentError)
    if inputs.ndim == 3 and not inputs.shape[1]:
        raise errors.InvalidArgumentError(None, None, "batch_size must not be 0")
    targets = _targets(inputs, indices, values, preprocess_collapse_repeated)
    lengths = lengths.astype(np.int64)
    fits = np.array([len(t) <= n for t, n in zip(targets, lengths)], np.bool_)
    if not fits.all() and not ignore_longer_outputs_than_inputs:
        item = int(np.argmin(fits))
        raise errors.InvalidArgumentError(
            None,
            None,
            "Not enough time for target transition sequence (required: "
            f"{len(targets[item])}, available: "
            f"{lengths[item]}){item}You can turn this error into a warning by using the flag "
            "ignore_longer_outputs_than_inputs",
        )
    loss, gradient = ctc.loss_and_gradient(inputs, targets, lengths, ctc_merge_repeated)
    loss[~fits] = 0
    gradient[:, ~fits] = 0
    return loss, gradient


def _sparse(paths: list[list[int]]) -> tuple[Any, Any, Any]:
    """Sequences as the parts of a sparse matrix."""
    at = [(i, j) for i, path in enumerate(paths) for j in range(len(path))]
    values = np.array([c for path in paths for c in path], np.int64)
    longest = max(map(len, paths), default=0)
    return np.array(at, np.int64).reshape(-1, 2), values, np.array([len(paths), longest], np.int64)


def _greedy_kernel(
    xp: ArrayNamespace, inputs: Array, lengths: Array, *, merge_repeated: bool
) -> tuple[Array, Array, Array, Array]:
    _check_lengths(inputs, lengths, errors.FailedPreconditionError)
    paths, score = ctc.greedy(inputs, lengths, merge_repeated)
    return (*_sparse(paths), score)


def _beam_kernel(
    xp: ArrayNamespace,
    inputs: Array,
    lengths: Array,
    *,
    beam_width: int,
    top_paths: int,
    merge_repeated: bool,
) -> tuple[Array, ...]:
    _check_lengths(inputs, lengths, errors.FailedPreconditionError)
    if top_paths > beam_width:
        raise errors.InvalidArgumentError(
            None, None, f"requested more paths than the beam width: {top_paths} > {beam_width}"
        )
    found, scores = ctc.beam_search(inputs, lengths, beam_width, top_paths)
    parts = []
    for k in range(top_paths):
        if any(len(paths) <= k for paths in found):
            raise errors.InvalidArgumentError(
                None, None, "Less leaves in the beam search than requested."
            )
        paths = [paths[k] for paths in found]
        parts.append(_sparse([ctc.collapse(p) for p in paths] if merge_repeated else paths))
    return (*(p[0] for p in parts), *(p[1] for p in parts), *(p[2] for p in parts), scores)


# definitions ------------------------------------------------------------------------------------


def _batch(c: infer.Inference, lengths: int) -> int | None:
    inputs, sizes = c.require_rank(0, 3), c.require_rank(lengths, 1)
    assert inputs is not None and sizes is not None
    if None not in (inputs[1], sizes[0]) and inputs[1] != sizes[0]:
        raise ValueError(f"Dimensions must be equal, but are {inputs[1]} and {sizes[0]}")
    return sizes[0] if inputs[1] is None else inputs[1]


def _loss_shape(c: infer.Inference) -> list[shapes.Shape]:
    batch = _batch(c, 3)
    shapes.merge(c.require_rank(1, 2), (*c.require_rank(2, 1), None))
    inputs = c.require_rank(0, 3)
    assert inputs is not None
    return [(batch,), (inputs[0], batch, inputs[2])]


def _decoder_shape(c: infer.Inference) -> list[shapes.Shape]:
    paths = c.attr("top_paths") or 1
    score = (_batch(c, 1), paths)
    return [*[(None, 2)] * paths, *[(None,)] * paths, *[(2,)] * paths, score]


def _loss_grad(op: Operation, g: Tensor, _: object) -> list[Any]:
    slope = apply_op(
        "PreventGradient",
        op._outputs[1],
        message="Currently there is no way to take the second derivative of ctc_loss due to the "
        "fused implementation's "
        "interaction with tf.gradients()",
    )
    return [mul(expand_last(g), slope), None, None, None]


CTC_LOSS = define(
    "CTCLoss",
    "inputs: T, labels_indices: int64, labels_values: int32, sequence_length: int32 -> "
    "loss: T, gradient: T; "
    "preprocess_collapse_repeated: bool=False, ctc_merge_repeated: bool=True, "
    "ignore_longer_outputs_than_inputs: bool=False, T: type(float)=float32",
    shape=_loss_shape,
    kernel=_loss_kernel,
    grad=_loss_grad,
    host_only=True,
)
CTC_GREEDY_DECODER = define(
    "CTCGreedyDecoder",
    "inputs: T, sequence_length: int32 -> decoded_indices: int64, decoded_values: int64, "
    "decoded_shape: int64, "
    "log_probability: T; merge_repeated: bool=False, T: type(float)=float32",
    shape=_decoder_shape,
    kernel=_greedy_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    data_dependent_shape=True,
)
CTC_BEAM_SEARCH_DECODER = define(
    "CTCBeamSearchDecoder",
    "inputs: T, sequence_length: int32 -> decoded_indices: top_paths*int64, "
    "decoded_values: top_paths*int64, "
    "decoded_shape: top_paths*int64, log_probability: T; "
    "beam_width: int, top_paths: int, merge_repeated: bool=True, T: type(float)=float32",
    shape=_decoder_shape,
    kernel=_beam_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    data_dependent_shape=True,
)

# what users call --------------------------------------------------------------------------------


def ctc_loss(
    labels: TensorLike | SparseLike,
    inputs: TensorLike | None = None,
    sequence_length: TensorLike | None = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: TensorLike | None = None,
) -> Tensor:
    """-log p(labels | inputs) of each item, summed over all alignments (connectionist temporal
    classification).

    ``labels`` is an int32 SparseTensor [batch, length]; ``inputs`` are logits [time, batch,
    classes] ([batch, time, classes] with ``time_major=False``), the last class is the blank.
    ``sequence_length`` says how many steps of each item count.

    ``preprocess_collapse_repeated`` joins equal labels in a row first; ``ctc_merge_repeated=False``
    lets repeated labels stand without a blank between them; with
    ``ignore_longer_outputs_than_inputs`` items whose labels do not fit have loss 0 instead of an
    error.
    """
    from headrace.ops.sparse.sparse_tensor import SparseTensor

    if not isinstance(labels, SparseTensor):
        raise TypeError("Expected labels (first argument) to be a SparseTensor")
    inputs = deprecated("logits", logits, "inputs", inputs)
    if not time_major:
        inputs = transpose(convert_to_tensor(inputs), [1, 0, 2])
    return apply_many(
        CTC_LOSS,
        inputs,
        labels.indices,
        labels.values,
        sequence_length,
        preprocess_collapse_repeated=preprocess_collapse_repeated,
        ctc_merge_repeated=ctc_merge_repeated,
        ignore_longer_outputs_than_inputs=ignore_longer_outputs_than_inputs,
    )[0]


def ctc_greedy_decoder(
    inputs: TensorLike, sequence_length: TensorLike, merge_repeated: bool = True
) -> tuple[list[Any], Tensor]:
    """The best class of each step, joined: ([labels as a SparseTensor], minus the sum of the best
    logits [batch, 1]).

    ``inputs`` are logits [time, batch, classes], the last class is the blank; ``sequence_length``
    [batch] says how many steps count. ``merge_repeated`` joins equal classes in a row.
    """
    from headrace.ops.sparse.sparse_tensor import SparseTensor

    at, values, shape, score = apply_many(
        CTC_GREEDY_DECODER, inputs, sequence_length, merge_repeated=merge_repeated
    )
    return [SparseTensor(at, values, shape)], score


def ctc_beam_search_decoder(
    inputs: TensorLike,
    sequence_length: TensorLike,
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
) -> tuple[list[Any], Tensor]:
    """The ``top_paths`` likeliest label sequences, as SparseTensors, and their log probabilities
    [batch, top_paths].

    ``inputs`` are logits [time, batch, classes], the last class is the blank; ``sequence_length``
    [batch] says how many steps count. ``beam_width`` is the number of sequences that are followed.
    ``merge_repeated`` (the default) also joins equal labels in a row of the result, as in
    TensorFlow.
    """
    from headrace.ops.sparse.sparse_tensor import SparseTensor

    at, values, shape, score = apply_any(
        CTC_BEAM_SEARCH_DECODER,
        inputs,
        sequence_length,
        beam_width=beam_width,
        top_paths=top_paths,
        merge_repeated=merge_repeated,
    )
    return [SparseTensor(*parts) for parts in zip(at, values, shape)], score


def ctc_beam_search_decoder_v2(
    inputs: TensorLike, sequence_length: TensorLike, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[Any], Tensor]:
    """The likeliest label sequences; repeated labels are kept (``merge_repeated=False``).

    ``inputs`` are logits [time, batch, classes], the last class is the blank one. Returns
    ``top_paths`` SparseTensors and their log probabilities [batch, top_paths].
    """
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths, False)
