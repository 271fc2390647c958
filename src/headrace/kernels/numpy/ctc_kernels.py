"""Connectionist temporal classification: the loss with its gradient, and decoders.

Inputs are (time, batch, classes); the last class is the blank. A target l of length n is widened to
``blank l1 blank l2 … blank`` (2n + 1 states); all items of a batch go through the forward and the
backward recursion together, in log space and float64.

    >>> loss, gradient = loss_and_gradient(logits, [[0, 1], [2]], lengths, merge=True)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["beam_search", "collapse", "greedy", "loss_and_gradient"]

Array = np.ndarray[Any, Any]


def log_softmax(logits: Array) -> Array:
    d: Array = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    total: Array = np.exp(d).sum(-1, keepdims=True)
    return np.subtract(d, np.log(total))


def collapse(labels: Sequence[int]) -> list[int]:
    """Without repetitions of the label before."""
    return [v for i, v in enumerate(labels) if i == 0 or v != labels[i - 1]]


# the loss ---------------------------------------------------------------------------------------


def loss_and_gradient(
    logits: Array, targets: list[list[int]], lengths: Array, merge: bool
) -> tuple[Array, Array]:
    """-log p(target | logits) per item, and its derivative by the logits."""
    log_y = log_softmax(logits)
    states, counts = _states(targets, logits.shape[2] - 1)
    emitted = np.take_along_axis(log_y, np.broadcast_to(states, (len(log_y), *states.shape)), 2)
    stay, skip = _moves(states, logits.shape[2] - 1, merge)
    inside = np.arange(states.shape[1]) < counts[:, None]
    emitted = np.where(inside, emitted, -np.inf)
    alpha = _forward(emitted, stay, skip)
    beta = _backward(emitted, stay, skip, lengths, counts)
    both = alpha + beta
    log_p = np.logaddexp.reduce(both[0], axis=1)
    gradient = np.exp(log_y)
    _subtract_occupancy(gradient, both, log_p, states)
    gradient[np.arange(len(log_y))[:, None] >= lengths] = 0
    return (-log_p).astype(logits.dtype), gradient.astype(logits.dtype)


def _states(targets: list[list[int]], blank: int) -> tuple[Array, Array]:
    """(batch, 2 * longest + 1) classes, and the number of states of each item."""
    longest = max(map(len, targets), default=0)
    states = np.full((len(targets), 2 * longest + 1), blank, np.int64)
    for row, target in zip(states, targets):
        row[1 : 2 * len(target) : 2] = target
    return states, np.array([2 * len(t) + 1 for t in targets], np.int64)


def _moves(states: Array, blank: int, merge: bool) -> tuple[Array, Array]:
    """Penalties (0 or -inf) for staying in a state, and for reaching it from two states before."""
    is_blank = states == blank
    stay = np.where(is_blank | merge, 0.0, -np.inf)
    same = np.zeros(states.shape, np.bool_)
    same[:, 2:] = states[:, 2:] == states[:, :-2]
    skip = np.where(is_blank | (same if merge else False), -np.inf, 0.0)
    skip[:, :2] = -np.inf
    return stay, skip


def _shift(x: Array, by: int) -> Array:
    """States moved up (or down), -inf coming in."""
    out = np.full_like(x, -np.inf)
    if by > 0:
        out[:, by:] = x[:, :-by]
    else:
        out[:, :by] = x[:, -by:]
    return out


def _forward(emitted: Array, stay: Array, skip: Array) -> Array:
    alpha = np.full_like(emitted, -np.inf)
    alpha[0, :, :2] = emitted[0, :, :2]
    for t in range(1, len(emitted)):
        before = alpha[t - 1]
        total = np.logaddexp(before + stay, _shift(before, 1))
        alpha[t] = np.logaddexp(total, _shift(before, 2) + skip) + emitted[t]
    return alpha


def _backward(emitted: Array, stay: Array, skip: Array, lengths: Array, counts: Array) -> Array:
    """log p of the rest of the target, without the emission at t itself."""
    beta = np.full_like(emitted, -np.inf)
    at = np.arange(emitted.shape[2])
    final = np.where((at >= counts[:, None] - 2) & (at < counts[:, None]), 0.0, -np.inf)
    for t in range(len(emitted) - 1, -1, -1):
        if t + 1 < len(emitted):
            after = beta[t + 1] + emitted[t + 1]
            total = np.logaddexp(after + stay, _shift(after, -1))
            beta[t] = np.logaddexp(total, _shift(after + skip, -2))
        beta[t] = np.where((lengths == t + 1)[:, None], final, beta[t])
    return beta


def _subtract_occupancy(gradient: Array, both: Array, log_p: Array, states: Array) -> None:
    """Minus the probability of being in a state with this class, given the target."""
    possible = np.isfinite(log_p)
    share = np.exp(both - np.where(possible, log_p, 0.0)[:, None])
    share[:, ~possible] = 0
    items = np.arange(len(states))
    for u in range(states.shape[1]):
        gradient[:, items, states[:, u]] -= share[:, :, u]


# decoding ---------------------------------------------------------------------------------------


def greedy(logits: Array, lengths: Array, merge: bool) -> tuple[list[list[int]], Array]:
    """The best class at each step, without blanks; the score is minus the sum of the best
    logits.
    """
    best = logits.argmax(-1)
    inside = np.arange(len(logits))[:, None] < lengths
    score = -np.where(inside, logits.max(-1), 0).sum(0, dtype=logits.dtype)
    blank = logits.shape[2] - 1
    paths = []
    for item, length in enumerate(lengths):
        path = best[:length, item].tolist()
        paths.append([c for c in (collapse(path) if merge else path) if c != blank])
    return paths, score[:, None]


class _Beam:
    """The prefixes that are followed.

    Nodes of a tree, with the log probabilities of ending in a blank or not.
    """

    def __init__(self) -> None:
        self.children: dict[tuple[int, int], int] = {}
        self.parent, self.label = [-1], [-1]
        self.active = np.array([0])
        self.blank, self.other = np.array([0.0]), np.array([-np.inf])

    def node(self, parent: int, label: int) -> int:
        found = self.children.get((parent, label))
        if found is None:
            found = self.children[parent, label] = len(self.parent)
            self.parent.append(parent)
            self.label.append(label)
        return found

    def path(self, node: int) -> list[int]:
        labels = []
        while node:
            labels.append(self.label[node])
            node = self.parent[node]
        return labels[::-1]

    def step(self, log_y: Array, width: int) -> None:
        """One time step: every prefix stays or grows by a label; the best ``width`` are kept."""
        total = np.logaddexp(self.blank, self.other)
        labels = np.array([self.label[n] for n in self.active])
        grown = total[:, None] + log_y[:-1]
        rows = np.flatnonzero(labels >= 0)
        grown[rows, labels[rows]] = (
            self.blank[rows] + log_y[labels[rows]]
        )  # a repetition needs a blank between
        other = np.where(labels >= 0, self.other + log_y[labels], -np.inf)
        place = {n: i for i, n in enumerate(self.active.tolist())}
        for i in rows:
            above = place.get(self.parent[self.active[i]])
            if above is not None:  # grown from a prefix that is itself followed: one and the same
                other[i] = np.logaddexp(other[i], grown[above, labels[i]])
                grown[above, labels[i]] = -np.inf
        self._keep_best(total + log_y[-1], other, grown, width)

    def _keep_best(self, blank: Array, other: Array, grown: Array, width: int) -> None:
        n = len(self.active)
        scores = np.concatenate([np.logaddexp(blank, other), grown.reshape(-1)])
        order = np.argsort(-scores, kind="stable")[:width]
        order = order[scores[order] > -np.inf]
        old, new = order[order < n], order[order >= n] - n
        made = [
            self.node(int(self.active[i]), int(c)) for i, c in zip(*np.divmod(new, grown.shape[1]))
        ]
        self.active = np.concatenate([self.active[old], np.array(made, np.int64)]).astype(np.int64)
        self.blank = np.concatenate([blank[old], np.full(len(new), -np.inf)])
        self.other = np.concatenate([other[old], grown.reshape(-1)[new]])


def beam_search(
    logits: Array, lengths: Array, width: int, top: int
) -> tuple[list[list[list[int]]], Array]:
    """Per item its ``top`` likeliest label sequences, and their log probabilities."""
    log_y = log_softmax(logits)
    found, scores = [], np.full((logits.shape[1], top), -np.inf)
    for item, length in enumerate(lengths):
        beam = _Beam()
        for t in range(length):
            beam.step(log_y[t, item], width)
        total = np.logaddexp(beam.blank, beam.other)
        order = np.argsort(-total, kind="stable")[:top]
        scores[item, : len(order)] = total[order]
        found.append([beam.path(int(beam.active[i])) for i in order])
    return found, scores.astype(logits.dtype)
