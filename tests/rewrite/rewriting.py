"""What tests of rewrites share.

The rewritten program, with and without a rule, and its numbers beside the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import headrace as tf
from headrace.program.nodes import Program, walk
from headrace.program.snapshot import snapshot
from headrace.rewrite.engine import rewrite
from headrace.rewrite.rule_table import RULES, rules_for

__all__ = ["check", "ops_of", "program_of", "same"]


def program_of(
    fetches: Any, feeds: Sequence[Any] = (), without: str | None = None, exact: bool = False
) -> Program:
    elements = fetches if isinstance(fetches, list) else [fetches]
    assert without is None or without in {r.name for r in RULES}
    rules = [r for r in rules_for(exact) if r.name != without]
    return rewrite(snapshot(elements, list(feeds)), rules)


def ops_of(fetches: Any, feeds: Sequence[Any] = (), **how: Any) -> list[str]:
    """The op types that are left."""
    return [n.opdef.name for n in walk(program_of(fetches, feeds, **how).body)]


def same(fetches: Any, feed: dict[Any, Any], tolerance: float | None = None) -> None:
    """The numpy executor gives what the reference gives, bit for bit unless a tolerance is
    given.
    """
    results = []
    for executor in ("numpy", "reference"):
        with tf.Session(executor=executor) as session:
            session.run(tf.global_variables_initializer())
            results.append(session.run(fetches, feed))
    got, want = (r if isinstance(r, list) else [r] for r in results)
    for g, w in zip(got, want, strict=True):
        assert np.shape(g) == np.shape(w) and np.asarray(g).dtype == np.asarray(w).dtype
        if tolerance is None:
            np.testing.assert_array_equal(g, w)
            if np.asarray(g).dtype.kind == "f":
                finite = ~np.isnan(w)
                np.testing.assert_array_equal(np.signbit(g)[finite], np.signbit(w)[finite])
        else:
            np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)


def check(
    rule: str, fetch: Any, feed: dict[Any, Any], left: list[str], tolerance: float | None = None
) -> Program:
    """The rule fires and leaves these ops, does not without it, and the numbers stay."""
    program = program_of(fetch, list(feed))
    assert rule in program.notes, (program.notes, program.near_misses)
    assert [n.opdef.name for n in walk(program.body)] == left
    assert ops_of(fetch, list(feed), without=rule) != left
    assert [f for f in program.firings if f.rule == rule]
    if next(r for r in RULES if r.name == rule).exact is False:
        assert rule not in program_of(fetch, list(feed), exact=True).notes
    same(fetch, feed, tolerance)
    return program
