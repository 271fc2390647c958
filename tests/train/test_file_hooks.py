"""Files that hooks and plugins write beside checkpoints and summaries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import headrace.api.v1 as tf
from headrace.train.summaries.plugin_assets import (
    PluginAsset,
    get_all_plugin_assets,
    get_plugin_asset,
)
from tests.golden import hook_programs

HOOKS = json.loads((Path(hook_programs.HERE) / "hook_programs.json").read_text())


def _kinds(folder: Path) -> list[str]:
    (path,) = folder.glob("events.out.tfevents.*")
    return [e.WhichOneof("what") for e in tf.train.summary_iterator(str(path))]


def test_a_new_file_has_graph_and_meta_graph(tmp_path: Path) -> None:
    """The events of TF 1.15, in its order."""
    with tf.Graph().as_default() as graph:
        tf.constant(1.0)
        tf.summary.FileWriter(str(tmp_path), graph).close()
    assert _kinds(tmp_path) == ["file_version", "graph_def", "meta_graph_def"]


def test_profiler_hook(tmp_path: Path) -> None:
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        train = tf.assign_add(step, 1)
        hook = tf.train.ProfilerHook(save_steps=3, output_dir=str(tmp_path))
        with tf.train.SingularMonitoredSession(hooks=[hook]) as session:
            for _ in range(7):
                session.run(train)
    tf.summary.FileWriterCache.get(str(tmp_path)).flush()
    assert sorted(p.name for p in tmp_path.glob("timeline-*")) == [
        "timeline-3.json",
        "timeline-6.json",
    ]
    events = json.loads((tmp_path / "timeline-3.json").read_text())["traceEvents"]
    assert any(e.get("ph") == "X" for e in events)
    assert _kinds(tmp_path).count("tagged_run_metadata") == 2
    tf.summary.FileWriterCache.clear()


class Colours(PluginAsset):
    plugin_name = "colours"

    def __init__(self) -> None:
        self.names: list[str] = []

    def assets(self) -> dict[str, str]:
        return {"palette.txt": " ".join(self.names)}


def test_plugin_assets(tmp_path: Path) -> None:
    class Others(Colours):
        pass

    class Nameless(Colours):
        plugin_name = None

    with tf.Graph().as_default() as graph:
        asset = get_plugin_asset(Colours)
        asset.names.append("red")
        assert get_plugin_asset(Colours, graph) is asset
        assert get_all_plugin_assets() == [asset]
        with pytest.raises(ValueError, match="Plugin name collision"):
            get_plugin_asset(Others)
        with pytest.raises(ValueError, match="no plugin_name"):
            get_plugin_asset(Nameless)
        writer: Any = tf.summary.FileWriter(str(tmp_path), graph)
        writer.close()
    assert (tmp_path / "plugins" / "colours" / "palette.txt").read_text() == "red"


@pytest.mark.parametrize("name", sorted(hook_programs.PROGRAMS))
def test_hooks_write_and_say_what_tensorflows_do(name: str) -> None:
    with tf.Graph().as_default():
        found = json.loads(json.dumps(hook_programs.PROGRAMS[name](tf)))
    assert found == HOOKS[name]
