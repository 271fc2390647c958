"""``tf.saved_model.Asset``: a file that is saved with a model.

model.vocabulary = tf.saved_model.Asset("words.txt")
tf.saved_model.save(model, folder)        # copies words.txt; asset_path names the copy when loaded
"""

from __future__ import annotations

from typing import Any

from headrace.core.convert import convert_to_tensor
from headrace.core.dtypes import string
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import init_scope
from headrace.train.tracked_objects import Tracking

__all__ = ["SavedAsset"]


class SavedAsset(Tracking):
    """A file of a model; ``asset_path`` is a tensor with its name."""

    def __init__(self, path: Any) -> None:
        with init_scope():
            self._path = convert_to_tensor(path, string)
            graph = get_default_graph()
            if not graph._is_eager:
                graph.add_to_collection(GraphKeys.ASSET_FILEPATHS, self._path)

    @property
    def asset_path(self) -> Any:
        """The file's name."""
        return self._path
