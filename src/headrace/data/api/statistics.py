"""Where the time of a pipeline goes.

Every iterator knows how long its user waited for elements and how long the user took between calls.
With ``measure()`` the iterators that are made inside also time each stage.

    with headrace.data.measure():
        iterator = iter(dataset)
    ...
    headrace.data.stats(iterator)
    {'elements': 468, 'waiting_seconds': 0.4, 'between_seconds': 3.1,
     'waiting_share': 0.11, 'stages': {...}}

The stages are nested as in the pipeline. ``seconds`` of a stage includes the stages that it reads
from on the same thread; ``own_seconds`` does not; ``waiting_seconds`` is time without an element
ready from a thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headrace.data.runtime.iteration import MEASURE, IteratorResource

__all__ = ["measure", "stats"]


@contextmanager
def measure() -> Iterator[None]:
    """Iterators that begin inside time each of their stages."""
    before = MEASURE[0]
    MEASURE[0] = True
    try:
        yield
    finally:
        MEASURE[0] = before


def stats(iterator: object, session: object = None) -> dict[str, Any]:
    """What was measured of an iterator.

    Of a graph's iterator in ``session`` (or the default session).
    """
    return _running(iterator, session).stats()


def _running(iterator: object, session: object) -> IteratorResource:
    if isinstance(iterator, IteratorResource):
        return iterator
    running: IteratorResource | None = getattr(iterator, "_running", None)
    if running is not None:
        return running
    from headrace.core.stacks import session_for

    handle = getattr(iterator, "_iterator_resource", None)
    if handle is None:
        raise TypeError(
            f"stats() is of an iterator that is being read: `it = iter(dataset)`, or what "
            "`tf.data.make_initializable_iterator(dataset)` gives; this is "
            f"{type(iterator).__name__}."
        )
    reader = session_for(session, handle.graph, "read the statistics with `stats()`")
    found: IteratorResource = reader.run(handle)
    return found
