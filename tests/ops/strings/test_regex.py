"""Regular expressions and splitting against TF 1.15 (golden/make_regex.py), and in linear time."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

import headrace as tf
from headrace.ops.strings import regex
from tests.golden import make_regex

_FOUND = json.loads((Path(__file__).parents[2] / "golden" / "regex.json").read_text())
_CASES = list(make_regex.cases())


@pytest.mark.parametrize("number", range(len(_CASES)))
def test_as_tensorflow(number: int) -> None:
    kind, arguments = _CASES[number]
    assert getattr(make_regex, kind)(tf, *arguments) == _FOUND[number], (kind, arguments)


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|aa)+$", "(a*)*b", "(.*)(.*)(.*)(.*)x", "(?i)(A+A+)+B"]
)
def test_time_is_linear_in_the_text(pattern: str) -> None:
    text = b"a" * 200_000 + b"!"
    start = time.process_time()
    with tf.Session() as sess:
        assert not sess.run(tf.strings.regex_full_match(text, pattern))
        assert sess.run(tf.strings.regex_replace(text, "(a+)+$", "")) == text
    assert time.process_time() - start < 5


def test_without_re2_simple_patterns_work_and_others_say_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    regex.compile_pattern.cache_clear()
    try:
        with tf.Session() as sess:
            assert sess.run(tf.strings.regex_replace("a,b;c", "[,;]", "-")) == b"a-b-c"
            assert sess.run(tf.strings.regex_full_match("cat", "cat|dog"))
            for pattern in ("a*", "(?i)a", "[[:alpha:]]", "a.b", "\\w", "^a"):
                with pytest.raises(tf.errors.UnimplementedError, match="pip install google-re2"):
                    sess.run(tf.strings.regex_full_match("a", pattern))
    finally:
        regex.compile_pattern.cache_clear()


def test_raw_ops_has_ops_whose_module_was_not_used_yet() -> None:
    import subprocess

    program = "import headrace as tf; tf.raw_ops.StringSplitV2; tf.raw_ops.TensorSliceDataset"
    subprocess.run([sys.executable, "-c", program], check=True)
