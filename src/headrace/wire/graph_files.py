"""Writing messages to files: ``tf.io.write_graph``, and ``write_bytes`` for whole files.

    tf.io.write_graph(sess.graph, "/tmp/model", "graph.pb", as_text=False)

formats/graphdef_reader.py reads them back (``read_graph_def``).
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

from headrace.core.graph import Graph
from headrace.wire.streams import raise_os_error

__all__ = ["write_bytes", "write_graph"]


def write_graph(graph_or_graph_def: Any, logdir: Any, name: str, as_text: bool = True) -> str:
    """Write a graph (or a GraphDef) to ``logdir/name``.

    Returns the path. Text is TensorFlow's .pbtxt.
    """
    message = graph_or_graph_def
    if isinstance(message, Graph):
        message = message.as_graph_def()
    logdir = os.fspath(logdir)
    if not logdir.startswith("gs:"):
        try:
            os.makedirs(logdir or ".", exist_ok=True)
        except OSError as error:
            raise_os_error(logdir, error)
    path = os.path.join(logdir, name)
    if as_text:
        from google.protobuf import text_format

        write_bytes(path, text_format.MessageToString(message).encode())
    else:
        write_bytes(path, message.SerializeToString(deterministic=True))
    return path


def write_bytes(path: str, data: bytes) -> None:
    """Write a file whole or not at all: readers see the old content or the new.

    An operating system's error is the one of ``tf.errors`` that stands for it.
    """
    try:
        _replace_file(path, data)
    except OSError as error:
        raise_os_error(path, error)


def _replace_file(path: str, data: bytes) -> None:
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{os.path.basename(path)}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
