"""TensorSpec and its kin: what they cover, how they print; as in TensorFlow 2.21."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import headrace as tf
from headrace.core import specs
from headrace.core.specs import (
    IndexedSlicesSpec,
    SparseTensorSpec,
    TensorSpec,
    type_spec_from_value,
)


def test_equality_hash_and_text() -> None:
    a = TensorSpec([2, None], tf.float32, "a")
    assert a == TensorSpec([2, None], tf.float32, "a")
    assert hash(a) == hash(TensorSpec([2, None], tf.float32, "a"))
    assert a != TensorSpec([2, None], tf.float32)
    assert a != TensorSpec([2, 3], tf.float32, "a")
    assert a != 3
    assert repr(a) == "TensorSpec(shape=(2, None), dtype=tf.float32, name='a')"
    assert repr(TensorSpec(None)) == "TensorSpec(shape=<unknown>, dtype=tf.float32, name=None)"
    assert pickle.loads(pickle.dumps(a)) == a


def test_compatibility() -> None:
    a = TensorSpec([2, None], tf.float32)
    assert a.is_compatible_with(tf.zeros([2, 3]))
    assert a.is_compatible_with(np.zeros([2, 3], np.float32))
    assert a.is_compatible_with(TensorSpec(None))
    assert not a.is_compatible_with(tf.zeros([3, 3]))
    assert not a.is_compatible_with(tf.zeros([2, 3], tf.int32))
    assert not a.is_compatible_with(3.0)


def test_order() -> None:
    a = TensorSpec([2, None])
    assert TensorSpec([2, 4]).is_subtype_of(a)
    assert not TensorSpec([2, 4], name="b").is_subtype_of(a)
    assert TensorSpec([2, 4]).is_subtype_of(TensorSpec([2, None], name="x"))
    assert a.most_specific_common_supertype([TensorSpec([3, 4])]) == TensorSpec([None, None])
    assert a.most_specific_common_supertype([TensorSpec([2, 4], name="a")]) is None
    assert TensorSpec([2]).most_specific_common_supertype([TensorSpec([3, 2])]) == TensorSpec(None)
    assert a.most_specific_compatible_type(TensorSpec([2, 4])) == a
    with pytest.raises(ValueError, match="No TypeSpec is compatible with both"):
        a.most_specific_compatible_type(TensorSpec([2, 4], tf.int32))


def test_from_values() -> None:
    assert TensorSpec.from_spec(TensorSpec([2], name="a"), name="z") == TensorSpec([2], name="z")
    assert TensorSpec.from_tensor(tf.constant([1], name="q")) == TensorSpec([1], tf.int32, "q")
    assert type_spec_from_value(np.zeros(2)) == TensorSpec([2], tf.float64)
    with pytest.raises(ValueError, match=r"`tensor` should be a tf\.Tensor"):
        TensorSpec.from_tensor(3)
    with pytest.raises(TypeError, match="Could not build a TypeSpec"):
        type_spec_from_value(object())


def test_sparse_tensors_and_slices() -> None:
    sparse = tf.SparseTensor([[0, 1]], [1.0], [2, 3])
    spec = type_spec_from_value(sparse)
    assert spec == SparseTensorSpec([2, 3], tf.float32)
    assert (
        repr(SparseTensorSpec([2, 3], tf.int32))
        == "SparseTensorSpec(TensorShape([Dimension(2), Dimension(3)]), tf.int32)"
    )
    assert spec.most_specific_common_supertype([SparseTensorSpec([3, 3])]) == SparseTensorSpec(
        [None, 3]
    )
    again = spec.from_components(spec.to_components(sparse))
    assert again.values is sparse.values
    slices = tf.IndexedSlices(tf.zeros([2, 3]), tf.constant([1, 4]), tf.constant([5, 3]))
    spec = type_spec_from_value(slices)
    assert isinstance(spec, IndexedSlicesSpec)
    assert [s.shape.as_list() for s in spec.component_specs] == [[2, 3], [2], [2]]


def test_structures() -> None:
    x = tf.constant([1.0])
    sparse = tf.SparseTensor([[0, 1]], [1.0], [2, 3])
    structure = {"a": x, "b": (None, sparse)}
    described = specs.spec_structure(structure)
    assert described == {"a": TensorSpec([1]), "b": (None, SparseTensorSpec([2, 3]))}
    parts = specs.components(described, structure)
    assert len(parts) == len(specs.component_specs(described)) == 4
    again = specs.from_components(described, parts)
    assert again["a"] is x
    assert again["b"][0] is None
    assert isinstance(again["b"][1], tf.SparseTensor)
