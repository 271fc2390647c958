"""ParseSingleSequenceExample and ParseSequenceExample: serialized ``tf.train.SequenceExample``
messages to tensors.

A SequenceExample has a *context* (features, as in an Example) and *feature lists*, each a sequence
of features: frames of a video, words of a sentence. Feature lists of a batch are padded to the
longest.

    >>> context, sequence = parse_single_sequence_example(
    ...     record,
    ...     {"length": FixedLenFeature([], tf.int64)},
    ...     {"words": FixedLenSequenceFeature([], tf.string)})
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.core import dtypes
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape, show
from headrace.ops.array.array_shape import invalid, one_number
from headrace.ops.io.parsing import (
    NUMPY_TYPES,
    TYPE_NAMES,
    VALUE_NAMES,
    Dense,
    Sparse,
    could_not_parse,
    dense_feature,
    outputs,
    own,
    require_equal_lengths,
    strings,
)
from headrace.wire.example_reader import BYTES, WireError, entries, feature_span, fields, read_list

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.core.dtypes import DType

__all__ = ["PARSE_SEQUENCE_EXAMPLE", "PARSE_SINGLE_SEQUENCE_EXAMPLE"]

#: (kind, values) of a feature, None if it has no list.
Found = Any


class Wanted(NamedTuple):
    """What a node looks for."""

    context_sparse: tuple[Sparse, ...]
    context_dense: tuple[Dense, ...]
    list_sparse: tuple[Sparse, ...]
    list_dense: tuple[Dense, ...]


@functools.lru_cache(maxsize=256)
def _wanted(
    keys: tuple[tuple[Any, ...], ...], types: Any, context_shapes: Any, list_shapes: Any
) -> Wanted:
    """Keys and types of context sparse, context dense, list sparse, list dense features."""
    texts = [[k if isinstance(k, str) else k.decode() for k in group] for group in keys]
    kind = {dtypes.string: 1, dtypes.float32: 2, dtypes.int64: 3}
    return Wanted(
        tuple(Sparse(k, kind[t]) for k, t in zip(texts[0], types[0])),
        tuple(dense_feature(k, t, s) for k, t, s in zip(texts[1], types[1], context_shapes)),
        tuple(Sparse(k, kind[t]) for k, t in zip(texts[2], types[2])),
        tuple(dense_feature(k, t, s) for k, t, s in zip(texts[3], types[3], list_shapes)),
    )


class Sequences:
    """One message: where its features are. Values are read when they are asked for."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data = data
        self.name = name
        self._context: dict[bytes, tuple[int, int]] = {}
        self._lists: dict[bytes, tuple[int, int]] = {}
        for number, lo, hi in fields(data, 0, len(data)):
            if number == 1:
                self._context.update(entries(data, lo, hi))
            elif number == 2:
                self._lists.update(entries(data, lo, hi))

    def context(self, key: str) -> Found:
        place = self._context.get(key.encode())
        return None if place is None else self._feature(*place)

    def features(self, key: str) -> list[Found] | None:
        """The features of a list; None if there is no such list."""
        place = self._lists.get(key.encode())
        if place is None:
            return None
        return [
            self._feature(lo, hi) for number, lo, hi in fields(self.data, *place) if number == 1
        ]

    def _feature(self, at: int, end: int) -> Found:
        kind, start, stop = feature_span(self.data, at, end)
        return (kind, read_list(self.data, kind, start, stop)) if kind else None


def _read(data: bytes, name: str) -> Sequences:
    try:
        return Sequences(data, name)
    except WireError:
        raise could_not_parse(data) from None


def _wrong_kind(where: str, key: str, want: int, have: int, name: str) -> Exception:
    return invalid(
        f"Name: {name}, {where}: {key}.  Data types don't match. Expected type: "
        f"{TYPE_NAMES[want]}, "
        f"Actual type: {TYPE_NAMES[have]}"
    )


def _context_values(example: Sequences, feature: Sparse | Dense) -> Any:
    """Values of a context feature, None if it is not there."""
    found = example.context(feature.key)
    if found is None:
        return None
    if found[0] != feature.kind:
        raise _wrong_kind("Context feature", feature.key, feature.kind, found[0], example.name)
    return own(*found)


def _context_dense(example: Sequences, feature: Dense, default: Any) -> Any:
    values = _context_values(example, feature)
    if values is None:
        if default.size == 0 and feature.size:
            raise invalid(
                f"Name: {example.name}, Context feature '{feature.key}' is required but "
                "could not be found."
            )
        return default.reshape(feature.shape)
    if len(values) != feature.size:
        raise invalid(
            f"Name: {example.name}, Key: {feature.key}, Index: 0.  Number of "
            f"{VALUE_NAMES[feature.kind]} values != "
            f"expected.  values size: {len(values)} but output shape: {feature.shown}"
        )
    return values.reshape(feature.shape)


def _list_steps(example: Sequences, feature: Sparse | Dense) -> list[Any] | None:
    """The values at each step of a feature list."""
    steps = example.features(feature.key)
    if steps is None:
        return None
    for i, found in enumerate(steps):
        if found is not None and found[0] != feature.kind:
            key = f"{feature.key}, Index: {i}"
            raise _wrong_kind("Feature list", key, feature.kind, found[0], example.name)
    empty: list[bytes] = []
    return [empty if found is None else found[1] for found in steps]


def _list_dense(example: Sequences, feature: Dense, optional: frozenset[str]) -> Array:
    """Steps x shape."""
    steps = _list_steps(example, feature)
    if steps is None:
        if feature.key not in optional:
            raise invalid(
                f"Name: {example.name}, Feature list '{feature.key}' is required but "
                "could not be found.  Did you mean "
                "to include it in feature_list_dense_missing_assumed_empty or "
                "feature_list_dense_defaults?"
            )
        steps = []
    out = np.empty((len(steps), feature.size), NUMPY_TYPES[feature.kind])
    for i, values in enumerate(steps):
        if len(values) != feature.size:
            raise invalid(
                f"Name: {example.name}, Key: {feature.key}, Index: {i}.  Number of "
                f"{VALUE_NAMES[feature.kind]} values "
                f"!= expected.  values size: {len(values)} but output shape: {feature.shown}"
            )
        out[i] = values
    return out.reshape((len(steps), *feature.shape))


def _joined(kind: int, parts: Sequence[Any]) -> np.ndarray[Any, Any]:
    if kind == BYTES:
        return strings([v for part in parts for v in part])
    parts = [p for p in parts if len(p)]
    return np.concatenate(parts) if parts else np.empty(0, NUMPY_TYPES[kind])


def _within(counts: Array) -> Any:
    """0, 1, .. for each of the counts."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


# one example --------------------------------------------------------------------------------------


_KEYS = (
    "context_sparse_keys",
    "context_dense_keys",
    "feature_list_sparse_keys",
    "feature_list_dense_keys",
)


def _single_kernel(
    xp: ArrayNamespace,
    serialized: Array,
    optional: Array,
    *rest: Array,
    Ncontext_sparse: int,
    Ncontext_dense: int,
    Nfeature_list_sparse: int,
    Nfeature_list_dense: int,
    context_sparse_types: Sequence[DType],
    Tcontext_dense: Sequence[DType],
    feature_list_sparse_types: Sequence[DType],
    feature_list_dense_types: Sequence[DType],
    context_dense_shapes: Sequence[Sequence[int]],
    feature_list_dense_shapes: Sequence[Sequence[int]],
) -> Any:
    keys: list[tuple[Any, ...]] = []
    at = 0
    for n in (Ncontext_sparse, Ncontext_dense, Nfeature_list_sparse, Nfeature_list_dense):
        for i, key in enumerate(rest[at : at + n]):
            if key.ndim:
                name = _KEYS[len(keys)]
                given = f"{name}[{i}] to be a scalar, got shape: {show(key.shape)}"
                raise invalid(f"Expected {given}")
        keys.append(tuple(k.item() for k in rest[at : at + n]))
        at += n
    types = (
        context_sparse_types,
        Tcontext_dense,
        feature_list_sparse_types,
        feature_list_dense_types,
    )
    wanted = _wanted(tuple(keys), types, context_dense_shapes, feature_list_dense_shapes)
    name = rest[-1].item().decode() if rest[-1].size else ""
    text = one_number(serialized, "Expected serialized to be a scalar, got shape: {shape}")
    example = _read(text, name)
    allowed = frozenset(k.decode() for k in optional.reshape(-1).tolist())
    columns = [_context_sparse(example, f) for f in wanted.context_sparse]
    lists = [_list_sparse(example, f) for f in wanted.list_sparse]
    dense = [_context_dense(example, f, d) for f, d in zip(wanted.context_dense, rest[at:])]
    dense_lists = [_list_dense(example, f, allowed) for f in wanted.list_dense]
    return outputs([*_by_part(columns), *dense, *_by_part(lists), *dense_lists])


def _by_part(triples: Sequence[tuple[Any, Any, Any]]) -> list[Any]:
    """All indices, then all values, then all shapes."""
    return [t[i] for i in range(3) for t in triples]


def _context_sparse(example: Sequences, feature: Sparse) -> tuple[Any, Any, Any]:
    values = _context_values(example, feature)
    if values is None:
        values = np.empty(0, NUMPY_TYPES[feature.kind])
    indices = np.arange(len(values), dtype=np.int64).reshape(-1, 1)
    return indices, values, np.array([len(values)], np.int64)


def _list_sparse(example: Sequences, feature: Sparse) -> tuple[Any, Any, Any]:
    steps = _list_steps(example, feature) or []
    counts = np.array([len(s) for s in steps], np.int64)
    values = _joined(feature.kind, steps)
    indices = np.empty((len(values), 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(len(steps)), counts)
    indices[:, 1] = _within(counts)
    return indices, values, np.array([len(steps), counts.max(initial=0)], np.int64)


_LENGTHS = (
    "Ncontext_sparse context_sparse_types",
    "Tcontext_dense context_dense_shapes",
    "Nfeature_list_sparse feature_list_sparse_types",
    "Nfeature_list_dense feature_list_dense_types feature_list_dense_shapes",
)


def _single_shape(c: Inference) -> list[Shape]:
    c.require_rank(0, 0)
    c.require_rank(1, 1)
    require_equal_lengths(c, *_LENGTHS, "Ncontext_dense Tcontext_dense")
    n, m = c.attr("Ncontext_sparse"), c.attr("Nfeature_list_sparse")
    context: list[Shape] = list(c.attr("context_dense_shapes"))
    lists: list[Shape] = [
        None if s is None else (None, *s) for s in c.attr("feature_list_dense_shapes")
    ]
    sparse = [(None, 1)] * n + [(None,)] * n + [(1,)] * n
    return sparse + context + [(None, 2)] * m + [(None,)] * m + [(2,)] * m + lists


_OUTPUTS = (
    "context_sparse_indices: Ncontext_sparse*int64, context_sparse_values: *context_sparse_types, "
    "context_sparse_shapes: Ncontext_sparse*int64, context_dense_values: *Tcontext_dense, "
    "feature_list_sparse_indices: Nfeature_list_sparse*int64, feature_list_sparse_values: "
    "*feature_list_sparse_types, "
    "feature_list_sparse_shapes: Nfeature_list_sparse*int64, feature_list_dense_values: "
    "*feature_list_dense_types"
)
_ATTRS = (
    "Ncontext_sparse: int=0, Ncontext_dense: int=0, Nfeature_list_sparse: int=0, "
    "Nfeature_list_dense: int=0, "
    "context_sparse_types: list(type)=[], Tcontext_dense: list(type)=[], "
    "feature_list_dense_types: list(type)=[], "
    "context_dense_shapes: list(shape)=[], feature_list_sparse_types: list(type)=[], "
    "feature_list_dense_shapes: list(shape)=[]"
)

PARSE_SINGLE_SEQUENCE_EXAMPLE = define(
    "ParseSingleSequenceExample",
    "serialized: string, feature_list_dense_missing_assumed_empty: string, "
    "context_sparse_keys: Ncontext_sparse*string, context_dense_keys: Ncontext_dense*string, "
    "feature_list_sparse_keys: Nfeature_list_sparse*string, feature_list_dense_keys: "
    "Nfeature_list_dense*string, "
    f"context_dense_defaults: *Tcontext_dense, debug_name: string -> {_OUTPUTS}; {_ATTRS}",
    shape=_single_shape,
    kernel=_single_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)


# a batch ----------------------------------------------------------------------------------------


def _batch_kernel(
    xp: ArrayNamespace,
    serialized: Array,
    names: Array,
    *defaults: Array,
    context_sparse_keys: Sequence[str],
    context_dense_keys: Sequence[str],
    feature_list_sparse_keys: Sequence[str],
    feature_list_dense_keys: Sequence[str],
    context_sparse_types: Sequence[DType],
    Tcontext_dense: Sequence[DType],
    feature_list_sparse_types: Sequence[DType],
    feature_list_dense_types: Sequence[DType],
    context_dense_shapes: Sequence[Sequence[Any]],
    feature_list_dense_shapes: Sequence[Sequence[int]],
    feature_list_dense_missing_assumed_empty: Sequence[str],
) -> Any:
    keys = (
        context_sparse_keys,
        context_dense_keys,
        feature_list_sparse_keys,
        feature_list_dense_keys,
    )
    types = (
        context_sparse_types,
        Tcontext_dense,
        feature_list_sparse_types,
        feature_list_dense_types,
    )
    wanted = _wanted(keys, types, context_dense_shapes, feature_list_dense_shapes)
    called = [n.decode() for n in names.reshape(-1).tolist()]
    records = serialized.reshape(-1).tolist()
    called += ["<unknown>"] * (len(records) - len(called))
    examples = [_read(r, n) for r, n in zip(records, called)]
    optional = frozenset(feature_list_dense_missing_assumed_empty)
    columns = [_batch_context_sparse(examples, f) for f in wanted.context_sparse]
    dense = [_batch_context_dense(examples, f, d) for f, d in zip(wanted.context_dense, defaults)]
    lists = [_batch_list_sparse(examples, f) for f in wanted.list_sparse]
    padded = [_batch_list_dense(examples, f, optional) for f in wanted.list_dense]
    values, lengths = [p[0] for p in padded], [p[1] for p in padded]
    return outputs([*_by_part(columns), *dense, *_by_part(lists), *values, *lengths])


def _batch_context_sparse(examples: list[Sequences], feature: Sparse) -> tuple[Any, Any, Any]:
    parts = [_context_values(e, feature) for e in examples]
    parts = [() if p is None else p for p in parts]
    counts = np.array([len(p) for p in parts], np.int64)
    values = _joined(feature.kind, parts)
    indices = np.empty((len(values), 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(len(parts)), counts)
    indices[:, 1] = _within(counts)
    return indices, values, np.array([len(parts), counts.max(initial=0)], np.int64)


def _batch_context_dense(examples: list[Sequences], feature: Dense, default: object) -> Array:
    out = np.empty((len(examples), *feature.shape), NUMPY_TYPES[feature.kind])
    for i, example in enumerate(examples):
        out[i] = _context_dense(example, feature, default)
    return out


def _batch_list_sparse(examples: list[Sequences], feature: Sparse) -> tuple[Any, Any, Any]:
    steps = [_list_steps(e, feature) or [] for e in examples]
    lengths = np.array([len(s) for s in steps], np.int64)
    flat = [values for s in steps for values in s]
    counts = np.array([len(v) for v in flat], np.int64)
    values = _joined(feature.kind, flat)
    indices = np.empty((len(values), 3), np.int64)
    indices[:, 0] = np.repeat(np.repeat(np.arange(len(steps)), lengths), counts)
    indices[:, 1] = np.repeat(_within(lengths), counts)
    indices[:, 2] = _within(counts)
    size = [len(examples), lengths.max(initial=0), counts.max(initial=0)]
    return indices, values, np.array(size, np.int64)


def _batch_list_dense(
    examples: list[Sequences], feature: Dense, optional: frozenset[str]
) -> tuple[Any, Any]:
    rows = [_list_dense(e, feature, optional) for e in examples]
    lengths = np.array([len(r) for r in rows], np.int64)
    longest = int(lengths.max(initial=0))
    out = np.empty((len(rows), longest, *feature.shape), NUMPY_TYPES[feature.kind])
    out[...] = b"" if feature.kind == BYTES else 0
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return out, lengths


def _batch_shape(c: Inference) -> list[Shape]:
    batch = c.require_rank(0, 1)
    c.require_rank(1, 1)
    assert batch is not None
    require_equal_lengths(
        c,
        *_LENGTHS,
        "Ncontext_sparse context_sparse_keys",
        "Tcontext_dense context_dense_keys",
        "Nfeature_list_sparse feature_list_sparse_keys",
        "Nfeature_list_dense feature_list_dense_keys",
    )
    n, m = c.attr("Ncontext_sparse"), c.attr("Nfeature_list_sparse")
    context: list[Shape] = [
        None if s is None else (batch[0], *s) for s in c.attr("context_dense_shapes")
    ]
    lists: list[Shape] = [
        None if s is None else (batch[0], None, *s) for s in c.attr("feature_list_dense_shapes")
    ]
    sparse = [(None, 2)] * n + [(None,)] * n + [(2,)] * n
    lengths = [(batch[0],)] * len(lists)
    return sparse + context + [(None, 3)] * m + [(None,)] * m + [(3,)] * m + lists + lengths


PARSE_SEQUENCE_EXAMPLE = define(
    "ParseSequenceExample",
    "serialized: string, debug_name: string, context_dense_defaults: *Tcontext_dense -> "
    f"{_OUTPUTS}, feature_list_dense_lengths: Nfeature_list_dense*int64; "
    "feature_list_dense_missing_assumed_empty: list(str), context_sparse_keys: list(str), "
    "context_dense_keys: list(str), feature_list_sparse_keys: list(str), "
    "feature_list_dense_keys: list(str), "
    f"{_ATTRS}",
    shape=_batch_shape,
    kernel=_batch_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
