"""What `tf_inspect` and `function_utils` say about callables, as text, and other inner modules.

Made with TensorFlow 1.15: ``python tests/golden/inner_modules.py`` writes inner_modules.json.
The test runs :func:`answers` on Headrace.
"""

import functools
import json
import os
import sys
import tempfile


def plain(a, b=2, *c, d=4, **e):
    return a


def defaults(a, b, c=3, d=4):
    return a


class Thing:
    def __init__(self, a, b=1):
        self.a = a

    def __call__(self, z, **rest):
        return z

    def method(self, c, d=1):
        return c


CALLABLES = {
    "plain": plain,
    "defaults": defaults,
    "class": Thing,
    "object": Thing(1),
    "bound": Thing(1).method,
    "unbound": Thing.method,
    "lambda": lambda x, y=1: x,
    "partial position": functools.partial(defaults, 1),
    "partial default": functools.partial(defaults, c=7),
    "partial both": functools.partial(defaults, 1, d=9),
    "partial middle": functools.partial(defaults, b=7),
    "partial first": functools.partial(defaults, a=1),
}


def _call(function, argument):
    try:
        return repr(function(argument))
    except (TypeError, ValueError) as e:
        return type(e).__name__


def answers():
    from tensorflow.python.util import function_utils, tf_decorator, tf_inspect

    asked = (
        tf_inspect.getargspec,
        tf_inspect.getfullargspec,
        tf_inspect.isfunction,
        tf_inspect.isclass,
        tf_inspect.ismethod,
        function_utils.fn_args,
        function_utils.has_kwargs,
    )
    found = {
        f"{f.__name__} {name}": _call(f, value) for name, value in CALLABLES.items() for f in asked
    }

    def outer(*args, **kwargs):
        return defaults(*args, **kwargs)

    spec = tf_inspect.ArgSpec(["q"], None, None, None)
    decorated = tf_decorator.make_decorator(defaults, outer)
    told = tf_decorator.make_decorator(
        defaults,
        lambda *a: defaults(*a),
        decorator_argspec=tf_inspect.FullArgSpec(["q"], None, None, None, [], None, {}),
    )
    found["decorated"] = repr(tf_inspect.getfullargspec(decorated))
    found["told"] = repr(tf_inspect.getfullargspec(told))
    found["ArgSpec"] = repr(spec)
    call = tf_inspect.getcallargs(defaults, 1, 2, d=5)
    found["getcallargs"] = repr(sorted(call.items()))
    found["name"] = function_utils.get_func_name(functools.partial(defaults, 1))
    found["event files"] = event_files()
    found["summary scopes"] = summary_scopes()
    found["round robin"] = repr(round_robin())
    return found


def event_files():
    """Events written as the loggers of `baselines` write them, and read back."""
    import tensorflow as tf
    from tensorflow.core.util import event_pb2
    from tensorflow.python import pywrap_tensorflow

    with tempfile.TemporaryDirectory() as folder:
        writer = pywrap_tensorflow.EventsWriter(os.path.join(folder, "events").encode())
        found = [len(os.listdir(folder))]
        value = tf.Summary.Value(tag="reward", simple_value=2.5)
        event = event_pb2.Event(wall_time=1.0, step=3, summary=tf.Summary(value=[value]))
        writer.WriteEvent(event)
        writer.Flush()
        found += [name.split(".")[:3] for name in os.listdir(folder)]
        path = writer.FileName()
        writer.Close()
        for event in tf.train.summary_iterator(path.decode()):
            values = [(v.tag, v.simple_value) for v in event.summary.value]
            found.append((event.file_version, event.step, values))
        try:
            writer.WriteEvent(b"x")
        except TypeError as e:
            found.append(str(e))
        writer.InitWithSuffix(b"-suffix")
        found.append(writer.FileName().decode().endswith("-suffix"))
        writer.Close()
    return repr(found)


def summary_scopes():
    import tensorflow as tf
    from tensorflow.python.ops import summary_op_util

    with tf.Graph().as_default():
        x = tf.constant(1.0)
        found = [summary_op_util.clean_tag("a b*c/d")]
        for name, family, default in (
            ("loss", None, None), ("loss", "a family", None), (None, None, "default"),
        ):  # fmt: skip
            with summary_op_util.summary_scope(name, family, default, [x]) as (tag, scope):
                found.append((tag, scope))
        summary_op_util.collect(x, None, ["one"])
        summary_op_util.collect(x, ["two", "one"], ["three"])
        found.append([len(tf.get_collection(k)) for k in ("one", "two", "three")])
    return repr(found)


def round_robin():
    from tensorflow.python.training import device_setter

    strategy = device_setter._RoundRobinStrategy(2)
    return [strategy(None) for _ in range(3)]


if __name__ == "__main__":
    json.dump(answers(), sys.stdout, indent=1, sort_keys=True)
    print()
