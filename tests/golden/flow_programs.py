"""Small programs with tapes, gradients and control flow, written for TF 1.15: what they give is compared with TensorFlow.

A program is a function of the module that stands for ``tf``; it returns tensors, None, strings, or lists of them. It is run
as a v1 graph, as the body of a ``tf.function``, and eagerly, or in the modes that it names. Python 3.7 syntax.
"""

import numpy as np

GRAPH, FUNCTION, EAGER = "graph", "function", "eager"
PROGRAMS = {}


def program(*modes):
    def noted(f):
        PROGRAMS[f.__name__] = (f, modes or (GRAPH, FUNCTION, EAGER))
        return f

    return noted


def results(tf, name, mode, eager_mode):
    """What a program gives, as text; the class of the error if it fails."""
    function, _ = PROGRAMS[name]
    try:
        if mode == EAGER:
            with eager_mode():
                return shown(tf, function(tf), lambda t: t.numpy())
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            out = function(tf) if mode == GRAPH else _in_function(tf, function)
            session.run(tf.compat.v1.global_variables_initializer())
            return shown(tf, out, session.run)
    except Exception as error:
        return type(error).__name__


def _in_function(tf, function):
    kept = []

    @tf.function(autograph=False)
    def traced():
        flat = tf.nest.flatten(function(tf))
        kept[:] = [flat]
        return [x for x in flat if x is not None and not isinstance(x, str)]

    given = iter(traced())
    return [x if x is None or isinstance(x, str) else next(given) for x in kept[0]]


def shown(tf, value, run):
    if value is None or isinstance(value, str):
        return [str(value)]
    if isinstance(value, (list, tuple)):
        return [s for v in value for s in shown(tf, v, run)]
    if isinstance(value, tf.IndexedSlices):
        return shown(tf, [value.values, value.indices], run)
    if isinstance(value, tf.SparseTensor):
        return shown(tf, [value.indices, value.values, value.dense_shape], run)
    if hasattr(value, "read_value"):
        value = value.read_value()
    return [_digits(np.asarray(run(value)).tolist())]


def _digits(value):
    """Numbers with five significant digits."""
    if isinstance(value, list):
        return "[%s]" % ", ".join(_digits(v) for v in value)
    return "%.5g" % value if isinstance(value, float) else str(value)


def scalar(tf, value):
    return tf.constant(float(value))


def variables(tf, *values):
    with tf.init_scope():
        return [
            tf.compat.v1.Variable(v, name="v%d" % i, use_resource=True)
            for i, v in enumerate(values)
        ]


# tapes: what is recorded and watched ------------------------------------------------------------


@program()
def tape_of_a_copy(tf):
    x = scalar(tf, 3)
    x1 = tf.identity(x)
    with tf.GradientTape() as tape:
        tape.watch([x, x1])
        loss = x * 2.0 + x1 * 3.0
    return tape.gradient(loss, [x, x1])


@program()
def tape_unwatched(tf):
    x, z = scalar(tf, 3), scalar(tf, 4)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
        tape.watch(x)
        u = z * 2.0
        w = x * u * y
    return [tape.gradient(y, x), tape.gradient(w, [x, z, u, y])]


@program()
def tape_watched_late(tf):
    x, z = scalar(tf, 3), scalar(tf, 4)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * z
        tape.watch(z)
    return tape.gradient(y, [x, z])


@program()
def tape_target_is_source(tf):
    x = scalar(tf, 3)
    with tf.GradientTape(persistent=True) as tape:
        z = x * x
    return [tape.gradient(x, x), tape.gradient(z, x), tape.gradient(z, z)]


@program()
def tape_outside(tf):
    x = scalar(tf, 3)
    before = x * x
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    z = y * y
    return [tape.gradient(t, x) for t in (before, z, y, [y, z])]


@program()
def tape_stop_recording(tf):
    x = scalar(tf, 3)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            z = y * x
        w = z * x + y
    return tape.gradient(w, [x, z, y])


@program()
def tape_reset(tf):
    x = scalar(tf, 3)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
        u = y * x
        tape.watch(x)
        z = y * x
    return [tape.gradient(u, x), tape.gradient(z, x)]


@program()
def tapes_nested(tf):
    x = scalar(tf, 3)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape(persistent=True) as inner:
            y = x * x
            inner.watch(x)
            z = x * x * x
        none, g = inner.gradient(y, x), inner.gradient(z, x)
        loss = g + y
    return [none, g, outer.gradient(loss, x)]


@program()
def tape_persistent_inside(tf):
    x = scalar(tf, 3)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x * x
        g = tape.gradient(y, x)
        h = tape.gradient(g, x)
    return [g, h]


@program()
def tape_used_twice(tf):
    x = scalar(tf, 3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    return tape.gradient(y, x)


@program()
def tape_zeros(tf):
    x, z = scalar(tf, 3), scalar(tf, 1)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.gradient(y, [x, z], unconnected_gradients="zero")


@program()
def tape_without_gradient(tf):
    """What an operation without a gradient gives is watched all the same."""
    x = scalar(tf, 3.5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        a, b = tf.stop_gradient(x * 2.0), tf.floor(x)
        c = tf.cast(tf.cast(x, tf.int32), tf.float32)
        y = a * a + b * b + c * c
    return tape.gradient(y, [a, b, c, x])


@program()
def tape_of_variables(tf):
    v, w = variables(tf, 3.0, 5.0)
    read = tf.identity(v)
    with tf.GradientTape(persistent=True) as tape:
        y = v * v
        z = read * w
    names = [x.name for x in tape.watched_variables()]
    return [tape.gradient(y, [v, w]), tape.gradient(z, [v, w]), str(sorted(names))]


@program()
def tape_of_chosen_variables(tf):
    v, w = variables(tf, 3.0, 5.0)
    with tf.GradientTape(watch_accessed_variables=False, persistent=True) as tape:
        before = v * w
        tape.watch(v)
        y = v * w
    names = [x.name for x in tape.watched_variables()]
    return [tape.gradient(before, [v, w]), tape.gradient(y, [v, w]), str(names)]


@program()
def tape_of_called_function(tf):
    v, w = variables(tf, 3.0, 5.0)

    @tf.function
    def f(a):
        return a * v * w

    f(scalar(tf, 1))  # traced before the tape
    with tf.GradientTape(persistent=True) as tape:
        y = f(scalar(tf, 2))
    names = [x.name for x in tape.watched_variables()]
    return [tape.gradient(y, [v, w]), str(sorted(names))]


@program(FUNCTION, EAGER)
def tape_of_loop(tf):
    x, z = scalar(tf, 3), scalar(tf, 2)
    (v,) = variables(tf, 2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.while_loop(
            lambda i, a, b: i < 3,
            lambda i, a, b: (i + 1, a * x * z * v + b, a * 2.0),
            [tf.constant(0), scalar(tf, 1), scalar(tf, 1)],
        )
        total = y[1] * y[2]
        other = tf.while_loop(lambda a: a < 50.0, lambda a: a * z, [scalar(tf, 1)])
    return [tape.gradient(total, [x, z, v]), tape.gradient(other, z)]


@program(FUNCTION, EAGER)
def tape_of_branches(tf):
    x, z = scalar(tf, 3), scalar(tf, 2)
    (v,) = variables(tf, 2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cond(x > 2.0, lambda: x * x * z * v, lambda: x * 3.0)
    return tape.gradient(y, [x, z, v])


@program(FUNCTION, EAGER)
def tape_in_branches(tf):
    x = scalar(tf, 3)

    def derived():
        with tf.GradientTape(persistent=True) as tape:
            y = x * x
            tape.watch(x)
            z = x * x * y
        assert tape.gradient(y, x) is None
        return tape.gradient(z, x)

    return tf.cond(x > 2.0, derived, lambda: x)


@program()
def tape_in_loop(tf):
    x = scalar(tf, 3)

    def body(i, a):
        with tf.GradientTape() as tape:
            before = a * a
            tape.watch(a)
            y = a * a * x * before
        return i + 1, tape.gradient(y, a)

    return tf.while_loop(lambda i, a: i < 3, body, [tf.constant(0), scalar(tf, 0.5)])[1]


@program()
def tape_of_custom_gradient(tf):
    @tf.custom_gradient
    def f(x):
        return x * x, lambda dy: dy * 10.0

    x = scalar(tf, 3)
    with tf.GradientTape(persistent=True) as tape:
        unwatched = f(x)
        tape.watch(x)
        y = f(x * 2.0)
    return [tape.gradient(y, x), tape.gradient(unwatched, x)]


@program()
def tape_jacobian(tf):
    x, z = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x * z
    both = tape.jacobian(y, [x, z], experimental_use_pfor=False)
    return [*both]


@program(EAGER)
def tape_jacobian_once(tf):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.jacobian(y, x, experimental_use_pfor=False)
