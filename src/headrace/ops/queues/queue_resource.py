"""A queue of one session: elements that runs put in and take out, each waiting for the other.

Enqueues and dequeues are *attempts* in two lists, in the order of arrival. A thread that changes
something goes on with the attempts at the head of both lists until neither gets further, under one
lock; the threads of the others wait for their own attempt to be done, without any lock. An enqueue
of many elements, or a dequeue of many, may be done in part and keep its place. These are
TensorFlow's rules, so the order of elements is TensorFlow's too.
"""

from __future__ import annotations

import heapq
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.dtypes import DType
from headrace.core.shapes import Shape, ranked, show
from headrace.kernels.numpy.philox import Philox, groups

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["FifoQueue", "PaddingQueue", "PriorityQueueResource", "QueueResource", "ShuffleQueue"]

Element = tuple[Any, ...]
_UNBOUNDED = 1 << 62


class _Attempt:
    """What one run wants.

    ``step`` goes on with it and tells whether it did (``progress``) and is ``done``.
    """

    __slots__ = ("done", "error", "finished", "progress", "result", "step")

    def __init__(self, step: Callable[[_Attempt], None]) -> None:
        self.step = step
        self.done = False
        self.progress = False
        self.error: Exception | None = None
        self.result: Any = None
        self.finished = threading.Event()

    def finish(
        self, result: Sequence[Sequence[Array]] | None = None, error: Exception | None = None
    ) -> None:
        self.result, self.error, self.done, self.progress = result, error, True, True
        self.finished.set()


class QueueResource:
    """What the kinds of queues share.

    They differ in how elements are kept (``_put``, ``_take``) and batched.
    """

    kind = "FIFOQueue"

    def __init__(
        self, name: str, types: Sequence[DType], shapes: Sequence[Shape], capacity: int
    ) -> None:
        self.name = name
        self.types = tuple(types)
        self.shapes = tuple(shapes)
        self.capacity = _UNBOUNDED if capacity < 0 else capacity
        self.min_after_dequeue = 0
        self.closed = False
        self._cancelled = False
        self._lock = threading.Lock()
        self._enqueues: deque[_Attempt] = deque()
        self._dequeues: deque[_Attempt] = deque()

    def check_shared(
        self,
        types: Sequence[DType],
        shapes: Sequence[Shape],
        capacity: int,
        min_after_dequeue: int = 0,
    ) -> None:
        """Refuse another queue operation that has the queue's name and asks for something else."""
        if self.min_after_dequeue != min_after_dequeue:
            raise self._not_shared(
                f"min_after_dequeue {self.min_after_dequeue}",
                f"min_after_dequeue was {min_after_dequeue}",
            )
        wanted = _UNBOUNDED if capacity < 0 else capacity
        if self.capacity != wanted:
            raise self._not_shared(f"capacity {self.capacity}", f"capacity was {wanted}")
        if self.types != tuple(types):
            have, asked = (", ".join(t.name for t in given) for given in (self.types, types))
            raise self._not_shared(f"component types [{have}]", f"component types were [{asked}]")
        if self.shapes != tuple(shapes):
            have, asked = (", ".join(map(show, given)) for given in (self.shapes, shapes))
            raise self._not_shared(f"component shapes [{have}]", f"component shapes were [{asked}]")

    def _not_shared(self, have: str, asked: str) -> errors.InvalidArgumentError:
        return errors.InvalidArgumentError(
            None, None, f"Shared queue '{self.name}' has {have} but requested {asked}."
        )

    # kinds ---------------------------------------------------------------------------------------
    def _put(self, element: Element) -> None:
        raise NotImplementedError

    def _take(self) -> Element:
        raise NotImplementedError

    def _give_back(self, elements: list[Element]) -> None:
        """Put elements of a batch that is not to be back to where they came from."""
        raise NotImplementedError

    def size(self) -> int:
        raise NotImplementedError

    def _fits(self, i: int, shape: tuple[int, ...]) -> bool:
        return tuple(ranked(self.shapes[i])) == shape

    def _check_batchable(self) -> None:
        if not self.shapes:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"{self.kind}'s DequeueMany and DequeueUpTo require the components to "
                "have specified shapes.",
            )

    def _stacked(self, i: int, parts: list[Any]) -> Array:
        out = np.empty((len(parts), *parts[0].shape), parts[0].dtype)
        for at, part in enumerate(parts):
            out[at] = part[()]
        return out

    # what runs do --------------------------------------------------------------------------------
    def enqueue(self, components: Sequence[Any]) -> None:
        """Add one element, waiting for room."""
        element = tuple([np.array(c) for c in components])
        self._check(element, 0)
        self._enqueue_all([element])

    def enqueue_many(self, components: Sequence[Any]) -> None:
        """Add the slices of the components along their first dimension."""
        owned = [np.array(c) for c in components]
        self._check(owned, 1)
        n = owned[0].shape[0]
        if n:
            self._enqueue_all([tuple([_slice(c, at) for c in owned]) for at in range(n)])

    def dequeue(self) -> Element:
        """Take one element, waiting for it. OutOfRangeError if the queue is closed and empty."""
        (element,) = self._dequeue_all(1, False)
        return tuple([np.array(c) if c.base is not None else c for c in element])

    def dequeue_many(self, n: int, up_to: bool = False) -> Element:
        """Take ``n`` elements, or with ``up_to`` the rest of a closed queue, as batches."""
        self._check_batchable()
        if n < 0:
            raise errors.InvalidArgumentError(
                None, None, f"Dequeue{'UpTo' if up_to else 'Many'} requested {n} < 0 elements"
            )
        if n == 0:
            return tuple(
                [
                    np.zeros((0, *[d or 0 for d in ranked(s)]), t.as_numpy_dtype)
                    for s, t in zip(self.shapes, self.types)
                ]
            )
        elements = self._dequeue_all(n, up_to)
        return tuple([self._stacked(i, list(parts)) for i, parts in enumerate(zip(*elements))])

    def close(self, cancel_pending_enqueues: bool = False) -> None:
        """No further elements. Waiting enqueues still get their turn, unless they are cancelled."""
        if cancel_pending_enqueues:
            with self._lock:
                self.closed = True
                self._cancel(self._enqueues, "Enqueue")
                self._flush()
            return
        self._run(self._enqueues, self._close_step, "Close")

    def _close_step(self, attempt: _Attempt) -> None:
        if self.closed:
            reason = f"Queue '{self.name}' is already closed."
            attempt.finish(error=errors.CancelledError(None, None, reason))
        else:
            self.closed = True
            attempt.finish()

    def cancel(self) -> None:
        """The session closes: end all waiting."""
        with self._lock:
            self._cancelled = True
            self._cancel(self._enqueues, "Enqueue")
            self._cancel(self._dequeues, "Dequeue")

    # how -----------------------------------------------------------------------------------------
    def _check(self, components: Sequence[Any], skip: int) -> None:
        if skip:
            lengths = {c.shape[0] for c in components}
            if len(lengths) > 1:
                raise errors.InvalidArgumentError(
                    None,
                    None,
                    "All input tensors must have the same size in the 0th dimension, but "
                    f"got {sorted(lengths)}.",
                )
        for i in range(len(self.shapes)):
            shape = components[i].shape[skip:]
            if not self._fits(i, shape):
                wanted = (*components[i].shape[:skip], *(self.shapes[i] or ()))
                raise errors.InvalidArgumentError(
                    None,
                    None,
                    f"Shape mismatch in tuple component {i}. Expected {show(wanted)}, got "
                    f"{show(components[i].shape)}",
                )

    def _enqueue_all(self, elements: list[Element]) -> None:
        rest = iter(elements)
        pending: list[Element] = [next(rest)]

        def step(attempt: _Attempt) -> None:
            if self.closed:
                reason = f"{self.kind} '{self.name}' is closed."
                return attempt.finish(error=errors.CancelledError(None, None, reason))
            while self.size() < self.capacity:
                self._put(pending[0])
                attempt.progress = True
                for pending[0] in rest:
                    break
                else:
                    return attempt.finish()
            return None

        self._run(self._enqueues, step, "Enqueue")

    def _dequeue_all(self, wanted: int, up_to: bool) -> list[Element]:
        taken: list[Element] = []

        def step(attempt: _Attempt) -> None:
            if self.closed and self.size() < wanted - len(taken):
                available = self.size() + len(taken)
                if not (up_to and available):
                    self._give_back(taken)
                    taken.clear()
                    return attempt.finish(error=self._exhausted(wanted, available))
                taken.extend([self._take() for _ in range(self.size())])
                return attempt.finish(taken)
            spare = self.size() - (0 if self.closed else self.min_after_dequeue)
            for _ in range(min(spare, wanted - len(taken))):
                taken.append(self._take())
                attempt.progress = True
            return attempt.finish(taken) if len(taken) == wanted else None

        elements: list[Element] = self._run(self._dequeues, step, "Dequeue")
        return elements

    def _exhausted(self, wanted: int, available: int) -> errors.OutOfRangeError:
        return errors.OutOfRangeError(
            None,
            None,
            f"{self.kind} '{self.name}' is closed and has insufficient elements "
            f"(requested {wanted}, "
            f"current size {available})",
        )

    def _run(self, attempts: deque[_Attempt], step: Callable[[_Attempt], None], verb: str) -> Any:
        attempt = _Attempt(step)
        with self._lock:
            if self._cancelled:
                raise _cancelled(verb)
            attempts.append(attempt)
            self._flush()
        if not attempt.done:
            self._wait(attempts, attempt, verb)
        if attempt.error is not None:
            raise attempt.error
        return attempt.result

    def _wait(self, attempts: deque[_Attempt], attempt: _Attempt, verb: str) -> None:
        try:
            attempt.finished.wait()
        except BaseException:  # Ctrl-C: nobody is there any more for whom to go on
            with self._lock:
                if not attempt.done:
                    attempt.finish(error=_cancelled(verb))
                    attempts.remove(attempt)
                    self._flush()
            raise

    def _flush(self) -> None:
        """Go on with the first of both lists until neither gets further."""
        changed = True
        while changed:
            changed = self._advance(self._enqueues)
            changed = self._advance(self._dequeues) or changed

    @staticmethod
    def _advance(attempts: deque[_Attempt]) -> bool:
        progress = False
        while attempts:
            first = attempts[0]
            first.progress = False
            try:
                first.step(first)
            except Exception as error:  # a kind that cannot take the element
                first.finish(error=error)
            progress = progress or first.progress
            if not first.done:
                break
            attempts.popleft()
        return progress

    @staticmethod
    def _cancel(attempts: deque[_Attempt], verb: str) -> None:
        for attempt in attempts:
            attempt.finish(error=_cancelled(verb))
        attempts.clear()


def _cancelled(verb: str) -> errors.CancelledError:
    return errors.CancelledError(None, None, f"{verb} operation was cancelled")


def _slice(array: Array, at: int) -> Array:
    """An element of a batch as an array, of rank 0 too."""
    return array[at, ...]


class FifoQueue(QueueResource):
    """First in, first out."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._elements: deque[Element] = deque()

    def _put(self, element: Element) -> None:
        self._elements.append(element)

    def _take(self) -> Element:
        return self._elements.popleft()

    def _give_back(self, elements: list[Element]) -> None:
        self._elements.extendleft(reversed(elements))

    def size(self) -> int:
        return len(self._elements)


class PaddingQueue(FifoQueue):
    """Elements of several lengths: batches are filled with zeros, False or empty strings."""

    kind = "PaddingFIFOQueue"

    def _fits(self, i: int, shape: tuple[int, ...]) -> bool:
        wanted = self.shapes[i]
        assert wanted is not None
        return len(wanted) == len(shape) and all(w is None or w == s for w, s in zip(wanted, shape))

    def _stacked(self, i: int, parts: list[Any]) -> Array:
        largest = np.max([p.shape for p in parts], axis=0) if parts[0].ndim else ()
        out = np.zeros((len(parts), *[int(n) for n in largest]), parts[0].dtype)
        if out.dtype == object:
            out.fill(b"")
        for at, part in enumerate(parts):
            corner: Any = (at, *[slice(n) for n in part.shape])
            out[corner] = part[()]
        return out


class ShuffleQueue(QueueResource):
    """Gives out a random element; ``min_after_dequeue`` stay in until it is closed."""

    kind = "RandomShuffleQueue"

    def __init__(self, *args: Any, min_after_dequeue: int, seed: int, seed2: int) -> None:
        super().__init__(*args)
        self.min_after_dequeue = min_after_dequeue
        self._elements: list[Element] = []
        if seed == 0 and seed2 == 0:
            seed, seed2 = (int.from_bytes(os.urandom(8), "little") for _ in range(2))
        self._random = Philox(seed & (2**64 - 1), seed2 & (2**64 - 1), 0)
        self._words: list[int] = []

    def _put(self, element: Element) -> None:
        self._elements.append(element)

    def _take(self) -> Element:
        elements = self._elements
        at = self._word() % len(elements)
        element = elements[at]
        elements[at] = elements[-1]
        elements.pop()
        return element

    def _word(self) -> int:
        if not self._words:
            self._words = groups(self._random, 64).reshape(-1)[::-1].tolist()
            self._random = self._random.skip(64)
        return self._words.pop()

    def _give_back(self, elements: list[Element]) -> None:
        self._elements.extend(reversed(elements))

    def size(self) -> int:
        return len(self._elements)


class PriorityQueueResource(QueueResource):
    """The element with the smallest first component first.

    Equal ones in the order of their coming.
    """

    kind = "PriorityQueue"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._heap: list[tuple[int, int, Element]] = []
        self._numbers = itertools.count()

    def _put(self, element: Element) -> None:
        heapq.heappush(self._heap, (int(element[0]), next(self._numbers), element))

    def _take(self) -> Element:
        return heapq.heappop(self._heap)[2]

    def _give_back(self, elements: list[Element]) -> None:
        for element in elements:
            self._put(element)

    def size(self) -> int:
        return len(self._heap)
