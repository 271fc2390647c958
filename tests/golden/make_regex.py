"""What TF 1.15 makes of regular expressions and of StringSplit.

``<python of TF 1.15> make_regex.py`` writes regex.json.
"""

import itertools
import json
import os

import numpy as np

REPLACED = [
    ("abc", "b*", "x"),
    ("abc", "", "-"),
    ("h\u00e9llo", "", "-"),
    ("a.b", "(a)(.)", "\\2\\1\\0"),
    ("abc", "b", "\\1"),
    ("abc", "b", "[\\q]"),
    ("abc", "b", "\\"),
    ("abc", "(?=a)", "x"),
    ("abc", "(a)\\1", "x"),
    ("ABC abc", "(?i)b", "x"),
    ("a\nb", "a.b", "x"),
    ("a\nb", "(?s)a.b", "x"),
    ("h\u00e9llo", "h.llo", "x"),
    ("a1 b2", "[[:alpha:]]", "L"),
    ("a1", "\\pL", "L"),
    ("abc", "(b", "x"),
    ("aaa", "a{1001}", "x"),
    ("abc", "\\bb", "x"),
    ("foo bar", "^\\w+", "x"),
    ("a\nb", "^b", "x"),
    ("a\nb", "(?m)^b", "x"),
    ("xx", "(?P<n>x)", "<\\1>"),
    ("abc", "b+?c*", "y"),
    ("aab", "(a|ab)(c|b)?", "[\\1|\\2]"),
    ("\u00e9", "\\w", "x"),
    ("\u00e9", "\\x{e9}", "x"),
    ("ab", "\\C", "x"),
    ("a+b", "\\Q+\\E", "x"),
    ("abc", "\\z", "!"),
    ("abc", "$", "!"),
    ("abc\n", "$", "!"),
    ("a\u00a0b", "\\s", "_"),
    ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "(a+)+$", "x"),
]
TEXTS = ["", "a", " a  b ", "a,b,,c", "<><a<>b>", "\x0b a\x0c\tb\r\n", ",,"]
SEPARATORS = ["", ",", "<>", " "]


def outcome(tf, make):
    """The value as JSON, or the class of the error."""
    with tf.Graph().as_default(), tf.Session() as sess:
        try:
            return plain(sess.run(make()))
        except (tf.errors.OpError, ValueError) as error:
            return type(error).__name__


def plain(value):
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if isinstance(value, bytes):
        return value.decode("latin1")
    value = np.asarray(value)
    return [v.decode("latin1") for v in value] if value.dtype == object else value.tolist()


def replaced(tf, text, pattern, rewrite, everywhere):
    """By attributes, by tensors, and whether all of the text matches."""
    return [
        outcome(tf, lambda: tf.strings.regex_replace(text, pattern, rewrite, everywhere)),
        outcome(
            tf,
            lambda: tf.strings.regex_replace(
                text, tf.constant(pattern), tf.constant(rewrite), everywhere
            ),
        ),
        outcome(tf, lambda: tf.strings.regex_full_match(text, pattern)),
        outcome(tf, lambda: tf.strings.regex_full_match(text, tf.constant(pattern))),
    ]


def split(tf, version, sep, option):
    if version == 2:
        return outcome(
            tf, lambda: tuple(tf.raw_ops.StringSplitV2(input=TEXTS, sep=sep, maxsplit=option))
        )
    return outcome(
        tf, lambda: tuple(tf.raw_ops.StringSplit(input=TEXTS, delimiter=sep, skip_empty=option))
    )


def fed(tf, version, shape, sep):
    """Ranks that are known only when it runs."""

    def make():
        x = tf.placeholder_with_default(np.full(shape, b"a b", object), None)
        mark = tf.placeholder_with_default(np.array(sep, object), None)
        if version == 2:
            return tuple(tf.raw_ops.StringSplitV2(input=x, sep=mark))
        return tuple(tf.raw_ops.StringSplit(input=x, delimiter=mark))

    return outcome(tf, make)


def cases():
    for case in itertools.product(REPLACED, (True, False)):
        yield "replaced", (*case[0], case[1])
    for case in itertools.product((2,), SEPARATORS, (-1, 0, 1, 2, -3)):
        yield "split", case
    for case in itertools.product((1,), SEPARATORS, (True, False)):
        yield "split", case
    for case in itertools.product((1, 2), ((), (2,), (1, 2), (0,)), ("", [""], [",", "."])):
        yield "fed", case


def main():
    import tensorflow as tf

    functions = {"replaced": replaced, "split": split, "fed": fed}
    found = [functions[kind](tf, *arguments) for kind, arguments in cases()]
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "regex.json")
    with open(path, "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
