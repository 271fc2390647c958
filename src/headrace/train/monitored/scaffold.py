"""``tf.train.Scaffold``.

The ops that a monitored session needs, made where a program did not give them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import add_to_collection, get_collection
from headrace.ops.control.dependencies import group
from headrace.train.monitored import training_files
from headrace.variables.variable_lists import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
    tables_initializer,
)

if TYPE_CHECKING:
    from headrace.core.tensor import Operation

__all__ = ["Scaffold"]

_log = logging.getLogger("tensorflow")


class Scaffold:
    """Initialization, readiness, summaries and saver. ``finalize`` makes what is missing and closes
    the graph.

    ``init_fn(scaffold, session)`` is called after ``init_op``. ``copy_from_scaffold`` gives what is
    None here.
    """

    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: Any = None,
        init_fn: Callable[..., Any] | None = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        local_init_op: Any = None,
        summary_op: Any = None,
        saver: Any = None,
        copy_from_scaffold: Scaffold | None = None,
    ) -> None:
        other = copy_from_scaffold
        if other is not None and not isinstance(other, Scaffold):
            raise TypeError("copy_from_scaffold is not a Scaffold instance.")

        def first(given: Callable[..., Any] | None, name: str) -> Any:
            return getattr(other, name) if given is None and other is not None else given

        self._user_init_fn = first(init_fn, "_user_init_fn")
        self._init_op = first(init_op, "init_op")
        self._init_feed_dict = first(init_feed_dict, "init_feed_dict")
        self._ready_op = first(ready_op, "ready_op")
        self._ready_for_local_init_op = first(ready_for_local_init_op, "ready_for_local_init_op")
        self._local_init_op = first(local_init_op, "local_init_op")
        self._summary_op = first(summary_op, "summary_op")
        self._saver = first(saver, "saver")

    def finalize(self) -> Scaffold:
        """Make what was not given, and finalize the default graph."""
        keys, default = GraphKeys, self.get_or_default
        if self._init_op is None:
            self._init_op = default(
                "init_op", keys.INIT_OP, lambda: group(global_variables_initializer())
            )
        if self._ready_op is None:
            self._ready_op = default("ready_op", keys.READY_OP, report_uninitialized_variables)
        if self._ready_for_local_init_op is None:
            self._ready_for_local_init_op = default(
                "ready_for_local_init_op",
                keys.READY_FOR_LOCAL_INIT_OP,
                lambda: report_uninitialized_variables(global_variables()),
            )
        if self._local_init_op is None:
            self._local_init_op = default(
                "local_init_op", keys.LOCAL_INIT_OP, self.default_local_init_op
            )
        if self._summary_op is None:
            self._summary_op = default(
                "summary_op", keys.SUMMARY_OP, training_files.merged_summaries
            )
        if self._saver is None:
            self._saver = training_files.default_saver()
        if self._saver is not None:
            self._saver.build()
        get_default_graph().finalize()
        _log.info("Graph was finalized.")
        return self

    @property
    def init_fn(self) -> Any:
        """``init_fn`` as a function of the session alone."""
        given = self._user_init_fn
        return (lambda sess: given(self, sess)) if given else None

    @property
    def init_op(self) -> Any:
        return self._init_op

    @property
    def init_feed_dict(self) -> Any:
        return self._init_feed_dict

    @property
    def ready_op(self) -> Any:
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        return self._ready_for_local_init_op

    @property
    def local_init_op(self) -> Any:
        return self._local_init_op

    @property
    def summary_op(self) -> Any:
        return self._summary_op

    @property
    def saver(self) -> Any:
        return self._saver

    @staticmethod
    def get_or_default(
        arg_name: str, collection_key: str, default_constructor: Callable[[], Any]
    ) -> Any:
        """The only element of a collection, or a new one that is put there."""
        found = get_collection(collection_key)
        if len(found) > 1:
            raise RuntimeError(
                f'More than one item in the collection "{collection_key}". Please '
                "indicate which one to use by "
                "passing it to the tf.Scaffold constructor as:  "
                f"tf.Scaffold({arg_name}=item to use)"
            )
        if found:
            return found[0]
        made = default_constructor()
        if made is not None:
            add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op() -> Operation:
        """Local variables and tables."""
        return group(local_variables_initializer(), tables_initializer())
