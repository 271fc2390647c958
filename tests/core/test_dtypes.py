"""``tf.as_dtype`` of what is no type."""

from __future__ import annotations

import pytest

import headrace as tf


@pytest.mark.parametrize("text", [",", "(", "1,,", "(2,", "i4,", "no", ":"])
def test_text_that_numpy_cannot_parse_is_a_type_error(text: str) -> None:
    with pytest.raises(TypeError, match="Cannot convert value"):
        tf.as_dtype(text)
