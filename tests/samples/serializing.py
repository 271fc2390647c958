"""Sparse tensors as strings."""

import numpy as np

from tests.samples.base import Sample, f32, strings

_SPARSE = dict(
    sparse_indices=np.array([[0, 1], [2, 0], [2, 3]], np.int64),
    sparse_values=f32(3),
    sparse_shape=np.array([3, 4], np.int64),
)
_WORDS = dict(_SPARSE, sparse_values=strings(["a", "bc", ""]))
_EMPTY = dict(
    sparse_indices=np.zeros((0, 2), np.int64),
    sparse_values=np.zeros(0, np.float32),
    sparse_shape=np.array([2, 4], np.int64),
)


def _packed(places, values, dims):
    """One row of DeserializeManySparse's input, of float32 values."""

    def proto(enum, array):
        sizes = b"".join(b"\x12\x02\x08" + bytes([n]) for n in array.shape)
        content = array.tobytes()
        return bytes([8, enum, 0x12, len(sizes)]) + sizes + bytes([0x22, len(content)]) + content

    parts = (places, np.int64, 9), (values, np.float32, 1), (dims, np.int64, 9)
    return [proto(enum, np.array(a, kind)) for a, kind, enum in parts]


_ROWS = strings([_packed([[1]], [0.5], [4]), _packed([[0], [2]], [1.5, -2.0], [3])])

SAMPLES = [
    Sample("SerializeSparse", _SPARSE),
    Sample("SerializeSparse", _WORDS, id="SerializeSparse_words"),
    Sample("SerializeSparse", _EMPTY, id="SerializeSparse_empty"),
    Sample("SerializeManySparse", _SPARSE),
    Sample("SerializeManySparse", _WORDS, id="SerializeManySparse_words"),
    Sample("SerializeManySparse", _EMPTY, id="SerializeManySparse_empty"),
    Sample("DeserializeManySparse", dict(serialized_sparse=_ROWS), dict(dtype="float32")),
    Sample("DeserializeSparse", dict(serialized_sparse=_ROWS), dict(dtype="float32")),
    Sample(
        "DeserializeSparse",
        dict(serialized_sparse=_ROWS[1]),
        dict(dtype="float32"),
        id="DeserializeSparse_one",
    ),
]
