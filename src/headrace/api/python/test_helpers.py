"""``tensorflow.python.framework.test_util``: decorators of tests beside ``tf.test.TestCase``.

@run_in_graph_and_eager_modes
def testSquare(self):
    self.assertAllEqual(self.evaluate(tf.square([2, 3])), [4, 9])
"""

from __future__ import annotations

import functools
import unittest
from collections.abc import Callable
from typing import Any

from headrace.api.platform import test
from headrace.api.python import tf2
from headrace.api.v1.context import executing_eagerly
from headrace.core.graph import Graph

__all__ = [
    "GetTempDir",
    "TensorFlowTestCase",
    "deprecated_graph_mode_only",
    "run_all_in_graph_and_eager_modes",
    "run_deprecated_v1",
    "run_in_graph_and_eager_modes",
    "run_v1_only",
]

TensorFlowTestCase = test.TestCase
GetTempDir = test.get_temp_dir

Test = Callable[..., Any]


def run_in_graph_and_eager_modes(func: Test | None = None, **options: Any) -> Any:
    """Run a test in a graph and its session, then again eagerly."""
    if func is None:
        return functools.partial(run_in_graph_and_eager_modes, **options)
    unknown = set(options) - {"config", "use_gpu", "reset_test", "assert_no_eager_garbage"}
    if unknown:
        raise TypeError(f"run_in_graph_and_eager_modes has no parameters {sorted(unknown)}")

    @functools.wraps(func)
    def both(self: test.TestCase, *args: Any, **kwargs: Any) -> None:
        from headrace.eager import eager_context

        config, use_gpu = options.get("config"), options.get("use_gpu", True)
        with Graph().as_default(), self.test_session(config=config, use_gpu=use_gpu):
            func(self, *args, **kwargs)
        if options.get("reset_test", True):
            self.tearDown()
            self.setUp()
        with eager_context.eager_mode():
            func(self, *args, **kwargs)

    return both


def run_all_in_graph_and_eager_modes(cls: type) -> type:
    """:func:`run_in_graph_and_eager_modes` for every test of a class."""
    for name, member in list(vars(cls).items()):
        if name.startswith(unittest.TestLoader.testMethodPrefix) and callable(member):
            setattr(cls, name, run_in_graph_and_eager_modes(member))
    return cls


def deprecated_graph_mode_only(func: Any = None) -> Any:
    """Run a test (or all of a class) in a graph, whether or not eager execution is on."""
    if func is None:
        return deprecated_graph_mode_only
    if isinstance(func, type):
        for name, member in list(vars(func).items()):
            if name.startswith(unittest.TestLoader.testMethodPrefix) and callable(member):
                setattr(func, name, deprecated_graph_mode_only(member))
        return func

    @functools.wraps(func)
    def in_graph(self: test.TestCase, *args: Any, **kwargs: Any) -> Any:
        if not executing_eagerly():
            return func(self, *args, **kwargs)
        with Graph().as_default():
            return func(self, *args, **kwargs)

    return in_graph


run_deprecated_v1 = deprecated_graph_mode_only


def run_v1_only(reason: str, func: Any = None) -> Any:
    """Skip a test (or all of a class) under TensorFlow 2's API."""
    if not isinstance(reason, str):
        raise ValueError(f"'reason' should be string, got {type(reason)}")
    if func is None:
        return functools.partial(run_v1_only, reason)
    if isinstance(func, type):
        return func

    @functools.wraps(func)
    def only(self: test.TestCase, *args: Any, **kwargs: Any) -> Any:
        if tf2.enabled():
            self.skipTest(reason)
        return func(self, *args, **kwargs)

    return only
