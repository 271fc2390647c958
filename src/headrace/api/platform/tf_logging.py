"""``tf.logging``: the Python logger named "tensorflow", at level WARN, written to the standard
error stream.

>>> set_verbosity(INFO)
>>> info("step %d", 3)   # INFO:tensorflow:step 3
"""

from __future__ import annotations

import functools
import logging
import sys
from collections import Counter
from logging import DEBUG, ERROR, FATAL, INFO, WARN
from typing import Any

__all__ = [
    "DEBUG", "ERROR", "FATAL", "INFO", "WARN", "TaskLevelStatusMessage", "debug", "error", "fatal",
    "flush", "get_logger", "get_verbosity", "info", "log", "log_every_n", "log_first_n", "log_if",
    "set_verbosity", "vlog", "warn", "warning",
]  # fmt: skip

_calls: Counter[tuple[str, int]] = Counter()


@functools.cache
def get_logger() -> logging.Logger:
    """The logger. It gets a handler of its own unless the program has configured logging
    already.
    """
    logger = logging.getLogger("tensorflow")
    if not logging.getLogger().handlers:
        interactive = hasattr(sys, "ps1") or bool(sys.flags.interactive)
        if interactive:
            logger.setLevel(INFO)
        handler = logging.StreamHandler(sys.stdout if interactive else sys.stderr)
        handler.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
        logger.addHandler(handler)
        logger.propagate = (
            False  # or absl.app.run, which gives the root a handler, doubles each line
        )
    return logger


def log(level: int, msg: Any, *args: object, **kwargs: Any) -> None:
    """Log ``msg % args`` at a level such as ``tf.logging.INFO``, with the caller's line.

    Levels are Python's: DEBUG 10, INFO 20, WARN 30, ERROR 40, FATAL 50. Messages below the level of
    ``set_verbosity`` are not made. Keyword arguments go to the logger.
    """
    get_logger().log(level, msg, *args, stacklevel=2, **kwargs)


vlog = log


def debug(msg: str, *args: object, **kwargs: Any) -> None:
    """Log ``msg % args`` at level DEBUG; hidden unless ``set_verbosity`` allows it.

    Keyword arguments (``exc_info``, ``extra``) go to the logger "tensorflow" of Python's
    ``logging``.
    """
    get_logger().debug(msg, *args, stacklevel=2, **kwargs)


def info(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log ``msg % args`` at level INFO; hidden unless ``set_verbosity(tf.logging.INFO)``.

    The text is made only if it is shown. Keyword arguments (``exc_info``, ``extra``) go to the
    logger.

        tf.logging.info("step %d", 3)
    """
    get_logger().info(msg, *args, stacklevel=2, **kwargs)


def warning(msg: str, *args: object, **kwargs: Any) -> None:
    """Log ``msg % args`` at level WARN, which is shown by default.

    ``tf.logging.warn`` is the same function. Keyword arguments (``exc_info``, ``extra``) go to the
    logger.
    """
    get_logger().warning(msg, *args, stacklevel=2, **kwargs)


warn = warning


def error(msg: Any, *args: object, **kwargs: Any) -> None:
    """Log ``msg % args`` at level ERROR.

    Shown by default. Keyword arguments (``exc_info=True`` adds the traceback) go to the logger.
    """
    get_logger().error(msg, *args, stacklevel=2, **kwargs)


def fatal(msg: str, *args: object, **kwargs: Any) -> None:
    """Log ``msg % args`` at level FATAL. The process goes on, as in TensorFlow.

    It is shown whatever ``set_verbosity`` says. Keyword arguments go to the logger.
    """
    get_logger().fatal(msg, *args, stacklevel=2, **kwargs)


def TaskLevelStatusMessage(msg: object) -> None:
    """Log a message about the whole task, at level ERROR."""
    error(msg)


def _count_here() -> int:
    """How often the line that called the caller was here before."""
    frame = sys._getframe(2)
    where = (frame.f_code.co_filename, frame.f_lineno)
    _calls[where] += 1
    return _calls[where] - 1


def log_every_n(level: int, msg: object, n: int, *args: object) -> None:
    """Log the first call of this line, the (n+1)st, the (2n+1)st and so on.

    Calls are counted for each line of source apart, as in TensorFlow; ``level`` as in ``log``.

        for step in range(1000):
            tf.logging.log_every_n(tf.logging.INFO, "step %d", 100, step)
    """
    if _count_here() % n == 0:
        log(level, msg, *args)


def log_first_n(level: int, msg: object, n: int, *args: object) -> None:
    """Log the first n calls of this line.

    Calls are counted for each line of source apart; ``level`` as in ``log``.
    """
    if _count_here() < n:
        log(level, msg, *args)


def log_if(level: int, msg: object, condition: object, *args: object) -> None:
    """``log(level, msg, *args)`` if the condition is true.

    ``condition`` is a Python value, not a tensor; the text is made only if the condition is true.
    """
    if condition:
        log(level, msg, *args)


def flush() -> None:
    """Write out what the logger's handlers hold back."""
    for handler in get_logger().handlers:
        handler.flush()


def get_verbosity() -> int:
    """The level from which on messages are shown; ``set_verbosity`` changes it."""
    return get_logger().getEffectiveLevel()


def set_verbosity(v: int | str) -> None:
    """Messages below this level are dropped."""
    get_logger().setLevel(v)
