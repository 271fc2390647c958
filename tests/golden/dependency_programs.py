"""Branches, loops and functions that wait for operations made outside of them, written for TF 1.15.

``run_all(tf)`` gives, for each program, its result and the values of both variables afterwards, as
text. Executed by itself it writes TensorFlow's answers to dependencies.json:

    python3.7 tests/golden/dependency_programs.py

Python 3.7 syntax. TensorFlow's graph optimizer is off: it removes loops that run zero times
together with what they wait for.
"""

import itertools

DEPENDENCIES = ["group", "no_inputs", "inputs", "assign", "fed", "result", "no_op", "outer_group"]


def _waiting(tf, dependency, write, w, x):
    """A tensor (or operation) made where this is called, which depends on ``write`` made
    elsewhere.
    """
    if dependency == "group":
        return tf.group(write)
    if dependency == "no_inputs":
        with tf.control_dependencies([write]):
            return tf.constant(5.0)
    if dependency == "inputs":
        with tf.control_dependencies([write]):
            return x + 1.0
    if dependency == "assign":
        with tf.control_dependencies([write]):
            return w.assign_add(2.0)
    if dependency == "fed":
        return w.assign_add(write)
    if dependency == "result":
        return tf.identity(write)
    if dependency == "no_op":
        with tf.control_dependencies([write]):
            done = tf.no_op()
        with tf.control_dependencies([done]):
            return tf.constant(7.0)
    raise ValueError(dependency)


def _waiting_for(tf, dependency, write, w, x):
    if dependency != "outer_group":
        return lambda: _waiting(tf, dependency, write, w, x)
    group = tf.group(write)

    def wait():
        with tf.control_dependencies([group]):
            return tf.constant(7.0)

    return wait


def _value(tf, given):
    """As a float tensor."""
    if isinstance(given, tf.Operation):
        with tf.control_dependencies([given]):
            return tf.constant(1.0)
    return given + 0.0


def in_cond(tf, dependency, write, w, x):
    wait = _waiting_for(tf, dependency, write, w, x)
    return tf.cond(tf.constant(True), lambda: _value(tf, wait()), lambda: tf.constant(0.0))


def in_other_branch(tf, dependency, write, w, x):
    wait = _waiting_for(tf, dependency, write, w, x)
    return tf.cond(tf.constant(False), lambda: _value(tf, wait()), lambda: tf.constant(0.0))


def in_case(tf, dependency, write, w, x):
    wait = _waiting_for(tf, dependency, write, w, x)
    pairs = [
        (tf.constant(False), lambda: tf.constant(1.0)),
        (tf.constant(True), lambda: _value(tf, wait())),
    ]
    return tf.case(pairs, default=lambda: tf.constant(2.0))


def _in_loop(tf, dependency, write, w, x, rounds):
    wait = _waiting_for(tf, dependency, write, w, x)

    def body(i, total):
        with tf.control_dependencies(
            [wait()]
        ):  # (what a reference reads in a loop is left to a race)
            return i + 1, total + 1.0

    return tf.while_loop(lambda i, total: i < rounds, body, [0, 0.0])[1]


def in_while(tf, dependency, write, w, x):
    return _in_loop(tf, dependency, write, w, x, 3)


def in_while_without_rounds(tf, dependency, write, w, x):
    return _in_loop(tf, dependency, write, w, x, 0)


def in_cond_in_while(tf, dependency, write, w, x):
    wait = _waiting_for(tf, dependency, write, w, x)

    def body(i, total):
        return i + 1, total + tf.cond(i < 2, lambda: _value(tf, wait()), lambda: tf.constant(0.5))

    return tf.while_loop(lambda i, total: i < 3, body, [0, 0.0])[1]


def in_while_in_cond(tf, dependency, write, w, x):
    def loop():
        return _in_loop(tf, dependency, write, w, x, 3)

    return tf.cond(tf.constant(True), loop, lambda: tf.constant(0.0))


def in_function(tf, dependency, write, w, x):
    wait = _waiting_for(tf, dependency, write, w, x)
    return tf.function(lambda: _value(tf, wait()), autograph=False)()


def predicate_is_written(tf, dependency, write, w, x):
    pred = tf.Variable(True, use_resource=hasattr(w, "handle"), name="pred")
    value = tf.cond(
        pred, lambda: tf.cast(pred.assign(False), tf.float32) + 3.0, lambda: tf.constant(9.0)
    )
    return value + tf.cast(dependency == "fed", tf.float32)


PROGRAMS = [
    in_cond,
    in_other_branch,
    in_case,
    in_while,
    in_while_without_rounds,
    in_cond_in_while,
    in_while_in_cond,
    in_function,
    predicate_is_written,
]


def run_one(tf, program, dependency, resource):
    config = tf.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        v = tf.Variable(0.0, use_resource=resource)
        w = tf.Variable(0.0, use_resource=resource)
        result = program(tf, dependency, v.assign_add(1.0), w, tf.constant(10.0))
        session.run(tf.global_variables_initializer())
        value = session.run(result)
        return [float(value)] + [float(a) for a in session.run([v, w])]


def cases():
    for program, dependency, resource in itertools.product(PROGRAMS, DEPENDENCIES, [False, True]):
        if program is in_function and not resource and dependency in ("assign", "fed", "result"):
            continue  # TensorFlow refuses reference variables in functions
        kind = "resource" if resource else "reference"
        yield (
            "%s, %s, %s" % (program.__name__, dependency, kind),
            (program, dependency, resource),
        )


if __name__ == "__main__":
    import json
    import os

    import tensorflow as tf

    answers = {}
    for name, case in cases():
        try:
            answers[name] = run_one(tf, *case)
        except Exception as error:
            answers[name] = type(error).__name__
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "dependencies.json"), "w") as out:
        lines = ["%s: %s" % (json.dumps(k), json.dumps(v)) for k, v in sorted(answers.items())]
        out.write("{\n%s\n}\n" % ",\n".join(lines))
