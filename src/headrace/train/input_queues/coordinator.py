"""``tf.train.Coordinator``: several threads that stop together, and one place where their error
comes out.

>>> coord = tf.train.Coordinator()
>>> threads = tf.train.start_queue_runners(sess, coord)
>>> while not coord.should_stop(): ...
>>> coord.request_stop(); coord.join(threads)
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from headrace import errors

__all__ = ["Coordinator", "LooperThread"]

_log = logging.getLogger("tensorflow")
#: Seconds between two looks whether the threads have ended by themselves.
_LOOK = 1.0


class Coordinator:
    """Threads ask ``should_stop``; any of them may ``request_stop``; ``join`` waits for all and
    raises what one reported.

    Exceptions of ``clean_stop_exception_types`` (OutOfRangeError unless told otherwise) stop the
    threads without being raised.
    """

    def __init__(self, clean_stop_exception_types: Any = None) -> None:
        if clean_stop_exception_types is None:
            clean_stop_exception_types = (errors.OutOfRangeError,)
        self._clean_stop_exception_types = tuple(clean_stop_exception_types)
        self._lock = threading.Lock()
        self._stop_event = threading.Event()
        self._error: BaseException | None = None
        self._joined = False
        self._registered_threads: set[threading.Thread] = set()

    def request_stop(self, ex: Any = None) -> None:
        """Ask the threads to stop.

        ``ex``, an exception or ``sys.exc_info()``, is raised by ``join``.
        """
        with self._lock:
            error = ex[1] if isinstance(ex, tuple) else ex
            if isinstance(error, self._clean_stop_exception_types):
                ex = error = None
            if self._joined and error is not None:
                raise error
            if self._stop_event.is_set():
                return
            if ex and self._error is None:
                self._error = self._reported(ex, error)
            self._stop_event.set()

    @staticmethod
    def _reported(given: object, error: object) -> BaseException:
        if not isinstance(error, BaseException):
            return ValueError(
                f"ex must be a tuple or sys.exc_info must return the current exception: {given!r}"
            )
        _log.info("Error reported to Coordinator: %s, %s", type(error), error)
        return error

    def clear_stop(self) -> None:
        """Forget a stop and its error, so that the coordinator can be used again."""
        with self._lock:
            self._joined = False
            self._error = None
            self._stop_event.clear()

    def should_stop(self) -> bool:
        return self._stop_event.is_set()

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """An exception inside becomes a request to stop."""
        try:
            yield
        except BaseException:
            self.request_stop(ex=sys.exc_info())

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        return self._stop_event.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        with self._lock:
            self._registered_threads.add(thread)

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait for the threads to end, at most ``stop_grace_period_secs`` after a stop.

        Raise the error that was reported.
        """
        with self._lock:
            waited = list(self._registered_threads.union(threads or ()))
        while any(t.is_alive() for t in waited) and not self.wait_for_stop(_LOOK):
            pass
        end = time.monotonic() + stop_grace_period_secs
        for thread in waited:
            if thread.ident is not None:
                thread.join(max(0.0, end - time.monotonic()))
        stragglers = [t.name for t in waited if t.is_alive()]
        with self._lock:
            self._joined = True
            self._registered_threads = set()
            if self._error is not None:
                raise self._error
        if stragglers:
            text = f"Coordinator stopped with threads still running: {' '.join(stragglers)}"
            if not ignore_live_threads:
                raise RuntimeError(text)
            _log.info(text)

    @property
    def joined(self) -> bool:
        return self._joined

    def raise_requested_exception(self) -> None:
        """Raise the error that a thread reported, if one did."""
        with self._lock:
            if self._error is not None:
                raise self._error


class LooperThread(threading.Thread):
    """A thread that calls ``target`` (or its ``run_loop``) again and again, every
    ``timer_interval_secs``, until the stop.
    """

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any] | None = None,
        args: Any = None,
        kwargs: Any = None,
    ) -> None:
        if not isinstance(coord, Coordinator):
            raise ValueError(f"'coord' argument must be a Coordinator: {coord}")
        super().__init__()
        self.daemon = True
        self._coord = coord
        self._timer_interval_secs = timer_interval_secs
        if not target and (args or kwargs):
            raise ValueError("'args' and 'kwargs' argument require that you also pass 'target'")
        self._call = (target, args or (), kwargs or {})
        self._coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: object = None,
        kwargs: object = None,
    ) -> LooperThread:
        """Make one and start it."""
        looper = LooperThread(coord, timer_interval_secs, target=target, args=args, kwargs=kwargs)
        looper.start()
        return looper

    def run(self) -> None:
        with self._coord.stop_on_exception():
            self.start_loop()
            for _ in self._rounds():
                self.run_loop()
            self.stop_loop()

    def _rounds(self) -> Iterator[None]:
        """One item a call of ``run_loop``, on time, until the coordinator asks to stop."""
        interval = self._timer_interval_secs
        if interval is None:
            while not self._coord.should_stop():
                yield
            return
        due = time.time()
        while not self._coord.wait_for_stop(due - time.time()):
            yield
            due += interval

    def start_loop(self) -> None:
        """Called when the thread starts."""

    def stop_loop(self) -> None:
        """Called when the thread stops."""

    def run_loop(self) -> None:
        target, args, kwargs = self._call
        if target:
            target(*args, **kwargs)
