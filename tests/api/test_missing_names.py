"""What is said about names that are not there."""

from __future__ import annotations

import pytest

import headrace as tf
from headrace.api.missing import RENAMED
from headrace.api.replacements import GONE, INSTEAD, instead_of
from headrace.cli.symbol_check import have, why_missing


@pytest.mark.parametrize("name", sorted(INSTEAD))
def test_advice_is_for_what_is_missing(name: str) -> None:
    below = {
        "contrib.learn": ".DNNClassifier",
        "contrib.tpu": ".Topology",
        "tpu": ".experimental",
        "distribute": ".MirroredStrategy",
    }
    asked = name + below.get(name, "")
    if name in ("estimator", "keras"):  # there in part, or an own message
        asked = name + ".Model"
    assert not have(asked)
    assert instead_of(asked) == INSTEAD[name]


@pytest.mark.parametrize("name", [n for n in sorted(INSTEAD) if n.startswith("contrib.layers.")])
def test_old_columns_name_the_new_ones(name: str) -> None:
    text = why_missing(name)
    assert INSTEAD[name] in text
    assert have(INSTEAD[name].removeprefix("tf."))


def test_parts_that_tensorflow_dropped_say_so() -> None:
    for name in GONE:
        assert "was removed before TensorFlow 1.15" in why_missing(name)


@pytest.mark.parametrize("old", sorted(RENAMED))
def test_renamed_names_lead_to_names_that_exist(old: str) -> None:
    new = RENAMED[old].split(" ")[0]
    assert have(new)
    assert f"tf.{new}" in why_missing(old)


def test_the_error_of_an_attribute_is_the_same_text() -> None:
    with pytest.raises(AttributeError, match=r"Instead: scikit-learn's GradientBoosting"):
        _ = tf.contrib.boosted_trees
