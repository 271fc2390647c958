"""Session: runs parts of a graph and keeps its variables.

The way of a call: look the fetches and feed keys up in a dictionary, convert the fed values, call
the plan's function. Everything else (flattening structures, pruning, planning, generating code)
happens when a combination is seen first. Plans belong to the graph and are shared by its sessions;
variables belong to the session.
"""

from __future__ import annotations

import gc
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.core import stacks
from headrace.core.graph import Graph, get_default_graph
from headrace.core.tensor import Operation, Tensor
from headrace.executors import Executable, Options, make_executable, options_for
from headrace.lower.session_state import State
from headrace.program.snapshot import snapshot
from headrace.runtime import buffers
from headrace.runtime.allocator import give_back
from headrace.session.calls import make_call
from headrace.session.deadlines import check_metadata, run_within, timeout_of
from headrace.session.events import EVENTS
from headrace.session.feeds import check_feeds, expand_feeds, is_symbolic, make_converter
from headrace.session.fetches import plan_fetches, with_dead_check
from headrace.session.placement import Placement, check_target
from headrace.session.plan_cache import plans_of

if TYPE_CHECKING:
    from tensorboard.compat.proto.config_pb2 import ConfigProto, RunMetadata, RunOptions

    from headrace.core.annotations import FeedDict, Fetches, TensorLike
    from headrace.core.stacks import Entered
    from headrace.session.explain import Explanation

__all__ = ["InteractiveSession", "Session", "default_options"]

#: Calls that a session remembers.
MAX_CALLS = 1024
#: Bytes from which a closed session's memory is returned to the system at once.
_MIN_BYTES_RETURNED = 32 << 20

_default_executor = ["numpy"]


def default_options() -> Options:
    return options_for(_default_executor[0])


def _wants_exact(config: ConfigProto) -> bool:
    """TensorFlow's own ways to switch off what rewrites a graph.

    Then nothing is rewritten that may change bits.
    """
    if config is None or not config.HasField("graph_options"):
        return False
    options = config.graph_options
    return bool(
        options.rewrite_options.disable_meta_optimizer or options.optimizer_options.opt_level == -1
    )


_SEPARATOR = object()
_GENERAL = object()  # starts the keys of calls in the general form: no other key begins so
_LEAVES = frozenset([Tensor, Operation])


#: Operations from which the collector of cycles would go through what a plan is made of again and
#: again.
LARGE_GRAPH = 2000


@contextmanager
def _uncollected(large: bool) -> Iterator[None]:
    """Without the collector of cycles, if that is on."""
    if not large or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class BaseSession:
    """What Session and InteractiveSession share."""

    _places_whole_graph = True

    def __init__(
        self,
        target: str = "",
        graph: Graph | None = None,
        config: ConfigProto | None = None,
        executor: str | None = None,
        exact: bool | None = None,
        weights: str = "float32",
    ) -> None:
        server = check_target(target)
        if graph is not None and not isinstance(graph, Graph):
            raise TypeError(f"graph must be a tf.Graph, but got {type(graph)}")
        if config is not None and type(config).__name__ != "ConfigProto":
            raise TypeError(f"config must be a tf.ConfigProto, but got {type(config)}")
        if config is None and server is not None:
            config = server.config
        self._graph = graph if graph is not None else get_default_graph()
        if self._graph._is_eager:  # there is nothing in it that could be run
            self._graph = Graph()
        self._target = target
        self._config = config
        self._threads = 0 if config is None else int(config.intra_op_parallelism_threads)
        self._timeout = 0 if config is None else int(config.operation_timeout_in_ms)
        self._placement = Placement(config, self._places_whole_graph, server)
        self._options = options_for(
            _default_executor[0] if executor is None else executor,
            exact=_wants_exact(config) if exact is None else exact,
            weights=weights,
        )
        self._state = State()
        self._calls: OrderedDict[Any, Callable[[Any], Any]] = OrderedDict()
        self._closed = False
        self._partial_runs: dict[str, Any] = {}
        plans_of(self._graph).sessions.add(self)
        EVENTS.sessions += 1

    # what it is ---------------------------------------------------------------------------------
    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def graph_def(self) -> Any:
        """The graph as a GraphDef; with static shapes if the ConfigProto asks for them."""
        config = self._config
        shapes = config is not None and bool(config.graph_options.infer_shapes)
        return self._graph.as_graph_def(add_shapes=shapes)

    @property
    def sess_str(self) -> str:
        return self._target

    def list_devices(self) -> list[Any]:
        from headrace.session.devices import local_devices

        self._check_open()
        return local_devices(self._placement.cpus)

    # life ---------------------------------------------------------------------------------------
    def close(self) -> None:
        """Give everything back.

        A run under way on another thread finishes first, or fails if it waits for a dataset.
        """
        if not self._closed:
            self._closed = True
            self._calls = OrderedDict()
            EVENTS.sessions_closed += 1
            self._partial_runs.clear()
            large = self._state.nbytes() + buffers.held_bytes() >= _MIN_BYTES_RETURNED
            old, self._state = self._state, State()
            for resource in list(old.resources.values()):
                cancel = getattr(resource, "cancel", None)
                if cancel is not None:  # a run on another thread may be waiting for an iterator
                    cancel()
            del old
            buffers.clear()
            if large:
                give_back()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")

    def as_default(self) -> Entered:
        return stacks.default_sessions.entered(self)

    def reset(self, *_: Any) -> None:
        self._state.clear()

    # running ------------------------------------------------------------------------------------
    def run(
        self,
        fetches: Any,
        feed_dict: Any = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Compute ``fetches`` with the values in ``feed_dict``.

        Of ``options``, a ``tf.RunOptions``, ``timeout_in_ms`` counts: a run that takes longer
        raises DeadlineExceededError. ``run_metadata``, a ``tf.RunMetadata``, gets the times of the
        steps if the options have a ``trace_level``.
        """
        kind = type(fetches)
        try:
            if kind is Tensor or kind is Operation:
                key = (fetches, *feed_dict) if feed_dict else fetches
            elif kind is list:
                key = (*fetches, _SEPARATOR, *feed_dict) if feed_dict else (*fetches, _SEPARATOR)
            else:
                return self._run_any(fetches, feed_dict, options, run_metadata)
            call = self._calls.get(key)
        except TypeError:  # something in it has no hash
            return self._run_any(fetches, feed_dict, options, run_metadata)
        if call is None:
            if kind is list and not all(type(f) in _LEAVES for f in fetches):
                # something nested: its key must tell lists, tuples and named tuples apart
                return self._run_any(fetches, feed_dict, options, run_metadata)
            return self._run_new(key, fetches, feed_dict, options, run_metadata)
        EVENTS.runs += 1
        if EVENTS.timing or run_metadata is not options:  # (one of them is given)
            return self._timed(call, feed_dict, options, run_metadata)
        return call(feed_dict)

    def _timed(
        self, call: Callable[[Any], Any], feed_dict: Any, options: object, run_metadata: RunMetadata
    ) -> Any:
        timeout = timeout_of(options)
        check_metadata(run_metadata)
        if run_metadata is not None:
            run_metadata.Clear()  # of an earlier run
        if run_metadata is not None and options is not None:
            call = self._recording(call, feed_dict, options, run_metadata)
        start = time.perf_counter()
        try:
            return run_within(timeout, call, feed_dict) if timeout else call(feed_dict)
        finally:
            seconds = time.perf_counter() - start
            EVENTS.run_seconds += seconds
            EVENTS.emit("run", session=self, seconds=seconds)

    def _recording(
        self,
        call: Callable[[Any], Any],
        feed_dict: FeedDict,
        options: RunOptions,
        run_metadata: RunMetadata,
    ) -> Callable[[Any], Any]:
        """``call``, or the same that fills in the metadata that the options ask for."""
        from headrace.session import run_metadata as metadata

        if not metadata.wants_trace(options) and not metadata.wants_graphs(options):
            return call
        fetches, feed_dict = vars(call)["fetches"], self._plain_feeds(feed_dict)
        elements, _ = plan_fetches(self._graph, fetches)
        feeds = [t for t, _ in expand_feeds(self._graph, feed_dict)]
        if metadata.wants_graphs(options):
            metadata.add_partition_graph(run_metadata, elements, feeds)
        if not metadata.wants_trace(options):
            return call
        executable = self._executable(elements, feeds, shared=False)
        made = self._prepare(fetches, feed_dict, executable)
        return lambda _: metadata.run_traced(
            lambda: made(feed_dict), executable, self._state, run_metadata
        )

    def _run_any(
        self, fetches: object, feed_dict: Any, options: object, run_metadata: object
    ) -> Any:
        """Structures of any kind."""
        try:
            key = (_GENERAL, _structure_key(fetches), *(feed_dict or ()))
            call = self._calls.get(key)
        except TypeError:  # a fetch or a feed key without a hash is planned each time
            key, call = None, None
        if call is None:
            return self._run_new(key, fetches, feed_dict, options, run_metadata)
        EVENTS.runs += 1
        if EVENTS.timing or run_metadata is not options:  # (one of them is given)
            return self._timed(call, feed_dict, options, run_metadata)
        return call(feed_dict)

    def _run_new(
        self,
        key: object,
        fetches: object,
        feed_dict: FeedDict,
        options: object,
        run_metadata: object,
    ) -> Any:
        """A call that is seen for the first time: prepare it and remember it under its key."""
        self._check_open()
        if not self._graph._ops:
            raise RuntimeError(
                "The Session graph is empty.  Add operations to the graph before calling run()."
            )
        feed_dict = self._plain_feeds(feed_dict)
        try:
            call = self._prepare(fetches, feed_dict)
        except errors.OpError:  # TensorFlow looks at what is fed before it looks at the graph
            check_feeds(self._graph, feed_dict)
            raise
        if key is not None:
            self._remember(key, call)
        EVENTS.runs += 1
        if EVENTS.timing or run_metadata is not options:
            return self._timed(call, feed_dict, options, run_metadata)
        return call(feed_dict)

    def _plain_feeds(self, feed_dict: FeedDict) -> dict[Any, Any]:
        if not feed_dict:
            return {}
        if not isinstance(feed_dict, dict):
            try:
                feed_dict = dict(feed_dict)
            except (TypeError, ValueError):
                raise TypeError(f"feed_dict must be a dictionary, not {type(feed_dict)}") from None
        if any(is_symbolic(v) for v in feed_dict.values()):
            # TF refuses tensors here; people write them. Their values are computed first, in this
            # session.
            tensors = {k: v for k, v in feed_dict.items() if is_symbolic(v)}
            feed_dict = {**feed_dict, **dict(zip(tensors, self.run(list(tensors.values()))))}
        return feed_dict

    def _remember(self, key: object, call: Callable[[Any], Any]) -> None:
        calls = self._calls
        calls[key] = call
        while len(calls) > MAX_CALLS:
            try:
                calls.popitem(last=False)
            except KeyError:  # another thread was faster
                return

    # preparing ----------------------------------------------------------------------------------
    def _prepare(
        self, fetches: object, feed_dict: dict[Any, Any], executable: Executable | None = None
    ) -> Callable[[Any], Any]:
        elements, rebuild = plan_fetches(self._graph, fetches)
        feeds = expand_feeds(self._graph, feed_dict) if feed_dict else []
        self._placement.check(self._graph, elements, [t for t, _ in feeds])
        if self._graph._flat_flow:
            elements, rebuild = with_dead_check(self._graph, elements, rebuild)
        if executable is None:
            executable = self._executable(elements, [t for t, _ in feeds])
        converters = [make_converter(t) for t, _ in feeds]
        if type(fetches) is Operation:
            rebuild = _nothing
        elif (
            type(fetches) is list
            and all(type(f) in _LEAVES for f in fetches)
            and len(elements) == len(fetches)
            and not self._graph._flat_flow
        ):
            rebuild = list
        direct = len(feeds) == len(feed_dict) and all(k is t for k, (t, _) in zip(feed_dict, feeds))
        picks = None if direct else [pick for _, pick in feeds]
        made = make_call(self, executable, converters, picks, rebuild)
        vars(made)["fetches"] = fetches  # for runs that are traced
        return made

    def _executable(
        self, elements: list[Any], feeds: list[Tensor], shared: bool = True
    ) -> Executable:
        """The plan for a call; ``shared`` allows one that was made for an equal structure."""
        cache = plans_of(self._graph)
        if cache.changes != self._graph._changes:
            cache.changes = self._graph._changes
            cache.forget()
        key = (tuple(elements), tuple(feeds), self._options)
        found = cache.get(key)
        if found is not None and (shared or not found.details.is_shared):
            EVENTS.plan_hits += 1
            return found
        start = time.perf_counter()
        made = self._from_shared_code(elements, feeds) if shared else None
        if made is None:  # (what shared code gives is made again faster than it is kept)
            with _uncollected(len(self._graph._ops) >= LARGE_GRAPH):
                program = snapshot(elements, feeds, len(self._graph._ops))
                made = make_executable(program, self._options)
            if shared:
                cache.put(key, made)
        EVENTS.plans += 1
        EVENTS.plan_seconds += time.perf_counter() - start
        if EVENTS.listeners:
            EVENTS.emit_plan(self, made)
        return made

    def _from_shared_code(self, elements: list[Any], feeds: list[Tensor]) -> Executable | None:
        if self._options.executor != "numpy":
            return None
        from headrace.executors.shared_code import shared_executable, structure_of

        structure = structure_of(elements, feeds)
        return (
            None
            if structure is None
            else shared_executable(structure, elements, feeds, self._options)
        )

    # other ways to run --------------------------------------------------------------------------
    def make_callable(
        self, fetches: Operation | Tensor, feed_list: Any = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """A function of the fed values, in the order of ``feed_list``."""
        self._check_open()
        feed_list = list(feed_list or [])
        call = self._prepare(fetches, dict.fromkeys(feed_list))
        n = len(feed_list)

        def callable_(*args: Any, options: object = None, run_metadata: object = None) -> Any:
            if len(args) != n:
                raise TypeError(
                    f"make_callable() was given {n} tensors to feed; it was called with "
                    f"{len(args)} values"
                )
            self._check_open()
            EVENTS.runs += 1
            feed_dict = dict(zip(feed_list, args))
            if run_metadata is not options:
                return self._timed(call, feed_dict, options, run_metadata)
            return call(feed_dict)

        return callable_

    def partial_run_setup(self, fetches: object, feeds: TensorLike | None = None) -> str:
        from headrace.session.partial_run import setup

        self._check_open()
        return setup(self, fetches, feeds)

    def partial_run(self, handle: str, fetches: Fetches, feed_dict: Any = None) -> Any:
        from headrace.session.partial_run import run

        self._check_open()
        return run(self, handle, fetches, self._plain_feeds(feed_dict))

    def explain(
        self, fetches: object, feed_dict: Any = None, times: bool = False, runs: int = 20
    ) -> Explanation:
        """What a run would do, as data.

        Printing it gives text. ``feed_dict`` may be just the keys. With ``times`` the run is done
        ``runs`` times (a training step trains so often) and the time of every step is shown.
        """
        from headrace.session.explain import explain

        self._check_open()
        if times:
            return self._explain_times(fetches, feed_dict, runs)
        if isinstance(feed_dict, Tensor):
            feed_dict = [feed_dict]
        keys = (
            dict.fromkeys(feed_dict)
            if feed_dict is not None and not isinstance(feed_dict, dict)
            else feed_dict
        )
        elements, _ = plan_fetches(self._graph, fetches)
        feeds = expand_feeds(self._graph, keys or {})
        return explain(
            self, self._executable(elements, [t for t, _ in feeds], shared=False), elements
        )

    def _explain_times(self, fetches: object, feed_dict: FeedDict, runs: int) -> Explanation:
        from headrace.session.explain import explain
        from headrace.session.step_times import measure

        if feed_dict is not None and not isinstance(feed_dict, dict):
            raise TypeError(
                "explain(times=True) runs the step: feed_dict must be a dict with the values."
            )
        feed_dict = self._plain_feeds(feed_dict)
        elements, _ = plan_fetches(self._graph, fetches)
        feeds = [t for t, _ in expand_feeds(self._graph, feed_dict)]
        executable = self._executable(elements, feeds, shared=False)
        call = self._prepare(fetches, feed_dict, executable)
        found = measure(lambda: call(feed_dict), executable, self._state, runs)
        return explain(self, executable, elements, found)


def _structure_key(fetches: object) -> Any:
    """A hashable stand-in for a fetch structure that tells list, tuple and named tuple apart."""
    if isinstance(fetches, (list, tuple)):
        return (type(fetches), *[_structure_key(f) for f in fetches])
    if isinstance(fetches, dict):
        return (type(fetches), *[(k, _structure_key(v)) for k, v in fetches.items()])
    if (
        type(fetches) in _LEAVES
        or isinstance(fetches, str)
        or hasattr(fetches, "_as_graph_element")
    ):
        return fetches
    raise TypeError("no key")


def _nothing(values: tuple[Any, ...]) -> None:
    return None


class Session(BaseSession):
    """``with tf.Session() as sess: sess.run(...)``.

    Beside TensorFlow's arguments: ``executor``; ``exact`` leaves out rewrites that may change bits;
    ``weights`` ("bfloat16", "int8") is the type in which inference keeps large weights of products
    (docs/inference.md).

    ``target`` must be "" or that of a ``tf.train.Server`` of this process; ``graph`` is the default
    graph if None; ``config`` is a ``tf.ConfigProto``.
    """

    def __init__(
        self,
        target: str = "",
        graph: Graph | None = None,
        config: ConfigProto | None = None,
        executor: str | None = None,
        exact: bool | None = None,
        weights: str = "float32",
    ) -> None:
        super().__init__(target, graph, config, executor, exact, weights)
        self._entered: list[Any] = []

    def __enter__(self) -> Session:
        if self._entered:
            raise RuntimeError(
                "Session context managers are not re-entrant. Use `Session.as_default()` "
                "if you want to enter a session "
                "multiple times."
            )
        graph = self._graph.as_default()
        graph.__enter__()
        session = self.as_default()
        session.__enter__()
        self._entered.append((graph, session))
        return self

    def __exit__(self, *exc: object) -> None:
        graph, session = self._entered.pop()
        session.__exit__(*exc)
        graph.__exit__(*exc)
        if not self._entered:
            self.close()

    @staticmethod
    def reset(target: str = "", containers: Any = None, config: ConfigProto | None = None) -> None:
        """TF's way to clear the containers of a remote target.

        In this process there is nothing to clear.
        """


class InteractiveSession(BaseSession):
    """A session that is the default from its creation on, for notebooks and shells.

    ``target`` must be "" or that of a ``tf.train.Server`` of this process; ``graph`` is the default
    graph if None; ``config`` is a ``tf.ConfigProto``. Close it with ``close()``.
    """

    _places_whole_graph = False
    _active_session_count = 0

    def __init__(
        self, target: str = "", graph: Graph | None = None, config: ConfigProto | None = None
    ) -> None:
        super().__init__(target, graph, config)
        if InteractiveSession._active_session_count > 0:
            warnings.warn(
                "An interactive session is already active. This can cause out-of-memory "
                "errors in some cases. You must "
                "explicitly call `InteractiveSession.close()` to release resources held "
                "by the other session(s).",
                stacklevel=2,
            )
        InteractiveSession._active_session_count += 1
        self._explicit_graph = graph
        self._pushed_graph = None
        if graph is not None:
            stacks.default_graphs.items.append(graph)
            self._pushed_graph = graph
        stacks.default_sessions.items.append(self)

    def close(self) -> None:
        if self._closed:
            return
        super().close()
        InteractiveSession._active_session_count -= 1
        for stack, item in (
            (stacks.default_sessions.items, self),
            (stacks.default_graphs.items, self._pushed_graph),
        ):
            if item is not None and item in stack:
                stack.remove(item)


@contextmanager
def using_executor(name: str) -> Iterator[None]:
    """Sessions made inside use this executor."""
    old = _default_executor[0]
    _default_executor[0] = name
    try:
        yield
    finally:
        _default_executor[0] = old
