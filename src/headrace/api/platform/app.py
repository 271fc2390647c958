"""``tf.app``.

``run`` parses the flags and calls ``main(argv)``; flags that are not defined stay in ``argv``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from absl import app as _absl

from headrace.api.platform import flags, tf_logging

__all__ = ["flags", "run"]


def _parse(argv: Sequence[str] | None) -> Any:
    return flags.FLAGS(sys.argv if argv is None else argv, known_only=True)


def run(main: Callable[[Any], Any] | None = None, argv: list[str] | None = None) -> None:
    """Run ``main`` (default: ``main`` of the program's first module) and exit with its result."""
    # configured before absl gives the root logger a handler and format of its own
    tf_logging.get_logger()
    _absl.run(main=main or sys.modules["__main__"].main, argv=argv, flags_parser=_parse)
