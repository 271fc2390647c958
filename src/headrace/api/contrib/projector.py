"""``tf.contrib.tensorboard.plugins.projector``: what TensorBoard's projector shows.

The messages are TensorBoard's own.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from headrace.api.missing import module_getattr
from headrace.api.platform import file_io

if TYPE_CHECKING:
    from headrace.train.summaries.event_files import FileWriter


__all__ = ["visualize_embeddings"]

_MESSAGES = "tensorboard.plugins.projector.projector_config_pb2"


def visualize_embeddings(summary_writer: FileWriter, config: Any) -> None:
    """Write ``config``, a ProjectorConfig, where the summaries of ``summary_writer`` are."""
    logdir = summary_writer.get_logdir()
    if logdir is None:
        raise ValueError("Summary writer must have a logdir")
    from google.protobuf import text_format

    text = text_format.MessageToString(config)
    file_io.write_string_to_file(os.path.join(logdir, "projector_config.pbtxt"), text)


__getattr__ = module_getattr(
    "contrib.tensorboard.plugins.projector",
    __name__,
    names={
        name: f"{_MESSAGES}:{name}"
        for name in ("EmbeddingInfo", "ProjectorConfig", "SpriteMetadata")
    },
)
