"""``float(a)`` of arrays with one element, and interpreters whose types nobody has looked at."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

from headrace.dropin import one_element_arrays as one_element


@pytest.fixture(autouse=True)
def _undone() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    one_element.uninstall()


def _refused() -> bool:
    try:
        float(np.ones((1, 1)))
    except TypeError:
        return True
    return False


def test_the_element_is_the_number() -> None:
    one_element.install(lambda path: False)
    assert "%.2f %d" % (np.array([[0.5]]), np.array([3])) == "0.50 3"  # noqa: UP031
    assert (float(np.float32([2])), int(np.array([[7]])), float(np.array(4))) == (2.0, 7, 4.0)
    with pytest.raises(TypeError):
        float(np.ones(2))


def test_packages_get_numpys_answer() -> None:
    before = _refused()
    one_element.install(lambda path: True)
    assert _refused() == before


def test_uninstall_gives_numpys_answer_back() -> None:
    before = _refused()
    one_element.install(lambda path: False)
    one_element.uninstall()
    assert _refused() == before


@pytest.mark.parametrize(
    ("name", "value"),
    [("_RELEASES", ((2, 0), (2, 7))), ("_SIZES", (5, 4)), ("_WORD", 4)],
)
def test_nothing_is_changed_on_an_unknown_layout(
    monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    before = _refused(), np.ndarray.__dict__["__float__"]
    monkeypatch.setattr(one_element, name, value)
    one_element.install(lambda path: False)
    assert (_refused(), np.ndarray.__dict__["__float__"]) == before


def test_nothing_is_changed_on_another_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    before = _refused()
    monkeypatch.setattr(sys.implementation, "name", "other")
    one_element.install(lambda path: False)
    assert _refused() == before
