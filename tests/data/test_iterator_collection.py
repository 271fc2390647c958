"""The collection that hooks find a graph's iterators in."""

from __future__ import annotations

import headrace as tf


def test_iterators_are_in_their_collection() -> None:
    with tf.Graph().as_default() as graph:
        dataset = tf.data.Dataset.range(3)
        tf.data.make_one_shot_iterator(dataset)
        tf.data.make_initializable_iterator(dataset)
        tf.data.Iterator.from_structure(dataset.output_types, dataset.output_shapes)
        assert [t.op.type for t in graph.get_collection("iterators")] == [
            "OneShotIterator",
            "IteratorV2",
            "IteratorV2",
        ]
        again = tf.Graph()
        saved = tf.train.export_meta_graph(graph=graph)
    with again.as_default():
        tf.train.import_meta_graph(saved)
        assert len(again.get_collection("iterators")) == 3
