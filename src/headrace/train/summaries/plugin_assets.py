"""``tensorflow.python.summary.plugin_asset``: files that a TensorBoard plugin wants beside events.

A graph holds at most one asset of each class; a FileWriter that writes the graph writes the files
of its assets to ``logdir/plugins/<plugin_name>/<file>``.

    class Colours(PluginAsset):
        plugin_name = "colours"
        def assets(self): return {"palette.txt": "red"}

    get_plugin_asset(Colours)
"""

from __future__ import annotations

import abc
import os
from typing import TypeVar

from headrace.core.graph import Graph, get_default_graph

__all__ = ["PluginAsset", "get_all_plugin_assets", "get_plugin_asset", "write_plugin_assets"]

_COLLECTION = "__tensorboard_plugin_asset__"

Asset = TypeVar("Asset", bound="PluginAsset")


class PluginAsset(abc.ABC):
    """The files of one plugin; subclasses give ``plugin_name`` and ``assets``."""

    plugin_name: str | None = None

    @abc.abstractmethod
    def assets(self) -> dict[str, str]:
        """The files: contents by name."""


def get_plugin_asset(plugin_asset_cls: type[Asset], graph: Graph | None = None) -> Asset:
    """The graph's asset of a class, made when it is first asked for."""
    if not plugin_asset_cls.plugin_name:
        raise ValueError(f"Class {plugin_asset_cls.__name__} has no plugin_name")
    graph = get_default_graph() if graph is None else graph
    name = _COLLECTION + plugin_asset_cls.plugin_name
    if graph.get_collection(name):
        found = _only(graph, name)
        if not isinstance(found, plugin_asset_cls):
            raise ValueError(
                f"Plugin name collision between classes {plugin_asset_cls.__name__} and "
                f"{type(found).__name__}"
            )
        return found
    made = plugin_asset_cls()
    graph.add_to_collection(name, made)
    graph.add_to_collection(_COLLECTION, plugin_asset_cls.plugin_name)
    return made


def get_all_plugin_assets(graph: Graph | None = None) -> list[PluginAsset]:
    """All assets of a graph."""
    graph = get_default_graph() if graph is None else graph
    return [_only(graph, _COLLECTION + name) for name in graph.get_collection(_COLLECTION)]


def _only(graph: Graph, name: str) -> PluginAsset:
    items: list[PluginAsset] = graph.get_collection(name)
    if len(items) != 1:
        raise ValueError(f"Collection for {name} had {len(items)} items, expected 1")
    return items[0]


def write_plugin_assets(graph: Graph, logdir: str) -> None:
    """Write the files of a graph's assets below ``logdir/plugins``."""
    for asset in get_all_plugin_assets(graph):
        folder = os.path.join(logdir, "plugins", str(asset.plugin_name))
        os.makedirs(folder, exist_ok=True)
        for name, contents in asset.assets().items():
            with open(os.path.join(folder, name), "w") as file:
                file.write(contents)
