"""Small programs with tapes, gradients and control flow, written for TF 1.15: what they give is
compared with TensorFlow.

A program is a function of the module that stands for ``tf``; it returns tensors, None, strings, or
lists of them. It is run as a v1 graph, as the body of a ``tf.function``, and eagerly, or in the
modes that it names. Python 3.7 syntax.
"""

import importlib

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


# gradients ----------------------------------------------------------------------------------------


@program()
def gradients_of_captures(tf):
    x, (v,) = tf.constant([1.0, 2.0]), variables(tf, [3.0, 4.0])

    @tf.function
    def f():
        return tf.gradients(tf.reduce_sum(x * x * v), [x, v])

    return f()


@program(GRAPH)
def gradients_through_outer_operations(tf):
    x, w = scalar(tf, 2), scalar(tf, 5)
    u = x * x
    ref = tf.compat.v1.Variable([3.0, 4.0], use_resource=False)

    @tf.function
    def f(a):
        b = u * a * x

        @tf.function
        def g():
            return tf.gradients(b * u * w, [x, a, b, u])

        return g(), tf.gradients(u * 3.0 * x, [x, u]), tf.gradients(ref * ref, ref)

    return f(scalar(tf, 7))


@program(GRAPH)
def gradients_stop_outside(tf):
    x = scalar(tf, 2)
    u = x * x
    return tf.function(lambda: tf.gradients(u * x, [x], stop_gradients=[u]))()


def _loop(tf, y, **options):
    start = [tf.constant(0), scalar(tf, 1)]
    return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * y), start, **options)[1]


@program(GRAPH)
def gradients_behind_a_loops_gradient(tf):
    y = scalar(tf, 2)
    g = tf.stop_gradient(tf.gradients(_loop(tf, y), y)[0])
    return tf.gradients(g * y * y, y)


@program(GRAPH)
def gradients_of_a_loops_gradient(tf):
    y = scalar(tf, 2)
    return tf.gradients(tf.gradients(_loop(tf, y), y)[0], y)


@program(GRAPH)
def loop_without_back_prop(tf):
    y = scalar(tf, 2)
    loop = _loop(tf, y, back_prop=False)

    def body(i, a):
        inner = tf.while_loop(
            lambda j, b: j < 3,
            lambda j, b: (j + 1, b * a * y),
            [tf.constant(0), scalar(tf, 1)],
            back_prop=False,
        )
        return i + 1, a * y + inner[1]

    outer = tf.while_loop(lambda i, a: i < 2, body, [tf.constant(0), scalar(tf, 1)])[1]
    x = tf.constant([1.0, 2.0])
    mapped = tf.map_fn(lambda t: t * t, x, back_prop=False)
    return [
        [tf.gradients(loop * y, y), tf.gradients(loop, y)],
        [outer, tf.gradients(outer, y), tf.gradients(mapped * x, x)],
    ]


@program(GRAPH)
def aggregation_unknown(tf):
    x = scalar(tf, 2)
    return tf.gradients(x * x, x, aggregation_method=99)


@program(GRAPH)
def aggregation_known(tf):
    x = scalar(tf, 2)
    method = tf.compat.v1.AggregationMethod
    return [
        tf.gradients(x * x + x, x, aggregation_method=m)
        for m in (None, method.EXPERIMENTAL_TREE, method.EXPERIMENTAL_ACCUMULATE_N)
    ]


@program(GRAPH)
def zero_gradients_at_poles(tf):
    functions = [
        tf.math.reciprocal,
        tf.math.rsqrt,
        tf.sqrt,
        tf.math.log,
        tf.math.log1p,
        tf.asin,
        tf.math.atanh,
    ]
    out = []
    for dtype in (tf.float16, tf.float32, tf.float64):
        x = tf.constant([0.0, 1.0, -1.0, float("inf")], dtype)
        for function in functions:
            y = function(x)
            first = tf.gradients(y, x)[0]
            out.append(tf.abs(tf.gradients(y, x, tf.zeros_like(y))[0]))
            out.append(tf.abs(tf.gradients(first, x, tf.zeros_like(first))[0]))
    return out


@program(EAGER)
def gradients_function_of_equal_arguments(tf):
    x = scalar(tf, 3)
    both = tf.contrib.eager.gradients_function(lambda a, b: a * a * b)
    second = tf.contrib.eager.gradients_function(lambda a, b: a * a * b, params=[1])
    return [both(x, x), second(x, x), both(3.0, 3.0)]


# control flow -------------------------------------------------------------------------------------


def _sparse(tf, value=1.0):
    return tf.SparseTensor([[0, 0], [1, 1]], [value, 2.0], [2, 2])


@program()
def loop_of_sparse(tf):
    sparse = _sparse(tf)
    twice = lambda s: tf.SparseTensor(s.indices, s.values * 2.0, s.dense_shape)
    i, out = tf.while_loop(
        lambda i, s: i < 3, lambda i, s: (i + 1, twice(s)), [tf.constant(0), sparse]
    )
    return [i, out, type(out).__name__]


@program(GRAPH)
def loop_of_growing_sparse(tf):
    start = [tf.constant(0), _sparse(tf)]
    grow = lambda i, s: (i + 1, tf.sparse.concat(0, [s, s]))
    invariants = [
        None,
        [tf.TensorShape([]), tf.TensorShape([2])],
        [tf.TensorSpec([], tf.int32), tf.SparseTensorSpec([None, None], tf.float32)],
    ]
    return [
        tf.while_loop(lambda i, s: i < 3, grow, start, shape_invariants=v)[1] for v in invariants
    ]


@program(GRAPH)
def loop_of_sparse_wrong_invariant(tf):
    start = [tf.constant(0), _sparse(tf)]
    invariants = [tf.TensorShape([]), tf.TensorShape([None, None])]
    return tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s), start, invariants)


@program(GRAPH)
def loop_of_slices(tf):
    values, indices = tf.constant([[1.0], [2.0]]), tf.constant([0, 3])
    with_shape = tf.IndexedSlices(values, indices, tf.constant([4, 1]))
    without = tf.IndexedSlices(values, indices)

    def twice(i, s):
        return i + 1, tf.IndexedSlices(s.values * 2.0, s.indices, s.dense_shape)

    def longer(i, s):
        parts = [tf.concat([t, t], 0) for t in (s.values, s.indices)]
        return i + 1, tf.IndexedSlices(parts[0], parts[1], s.dense_shape)

    less = lambda i, s: i < 2
    zero = tf.constant(0)
    a = tf.while_loop(less, twice, [zero, with_shape])[1]
    b = tf.while_loop(less, twice, [zero, without])[1]
    shapes = [tf.TensorShape([]), tf.TensorShape([None, 1])]
    c = tf.while_loop(less, longer, [zero, with_shape], shape_invariants=shapes)[1]
    return [a, a.dense_shape, b, str(b.dense_shape), c, c.dense_shape]


@program(GRAPH)
def loop_with_specs(tf):
    specs = [tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.float32)]
    out = tf.while_loop(
        lambda i, s: i < 2,
        lambda i, s: (i + 1, tf.concat([s, s], 0)),
        [tf.constant(0), tf.constant([1.0])],
        shape_invariants=specs,
    )
    return [out, str(out[1].shape)]


@program(GRAPH)
def loop_with_wrong_spec(tf):
    specs = [tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.int32)]
    start = [tf.constant(0), tf.constant([1.0])]
    return tf.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, s), start, specs)


@program(GRAPH, EAGER)
def branches_tensor_and_list(tf):
    x = scalar(tf, 3)
    return [
        tf.compat.v1.cond(x > 2.0, lambda: x * 2.0, lambda: [x]),
        tf.compat.v1.cond(x < 2.0, lambda: [x * 2.0], lambda: x),
    ]


@program(GRAPH)
def branches_tensor_and_list_strictly(tf):
    x = scalar(tf, 3)
    return tf.compat.v1.cond(x > 2.0, lambda: x * 2.0, lambda: [x], strict=True)


@program(GRAPH)
def branches_list_and_tuple(tf):
    x = scalar(tf, 3)
    return tf.compat.v1.cond(x > 2.0, lambda: (x * 2.0, x), lambda: [x, x])


def _slices(tf, value, dtype):
    return lambda: tf.IndexedSlices(tf.constant([value]), tf.constant([1], dtype))


@program(GRAPH)
def branches_of_slices(tf):
    x = scalar(tf, 3)
    out = []
    for pred in (x > 2.0, x < 2.0):
        chosen = tf.cond(pred, _slices(tf, 1.0, tf.int32), _slices(tf, 2.0, tf.int64))
        out += [chosen, chosen.indices.dtype.name, str(chosen.dense_shape)]
    return out


@program()
def branches_of_sparse(tf):
    x = scalar(tf, 3)
    return tf.cond(x > 2.0, lambda: _sparse(tf), lambda: _sparse(tf, 5.0))


@program()
def switch_case_choices(tf):
    out = []
    for i in (-1, 0, 1, 2, 7):
        index = tf.constant(i)
        ten, eleven, fifty = (lambda v=v: scalar(tf, v) for v in (10, 11, 50))
        out.append(tf.switch_case(index, [ten, eleven, fifty]))
        out.append(tf.switch_case(index, {1: ten, 0: eleven}, default=fifty))
        out.append(tf.switch_case(index, [(1, ten), (0, eleven)]))
    return out


@program()
def switch_case_gap(tf):
    return tf.switch_case(tf.constant(1), {0: lambda: scalar(tf, 1), 2: lambda: scalar(tf, 3)})


@program()
def switch_case_float(tf):
    return tf.switch_case(tf.constant(1.0), [lambda: scalar(tf, 1), lambda: scalar(tf, 3)])


@program(GRAPH)
def switch_case_int64(tf):
    index = tf.constant(1, tf.int64)
    return tf.switch_case(index, [lambda: scalar(tf, 1), lambda: scalar(tf, 3)])


@program()
def nest_of_composites(tf):
    sparse = _sparse(tf)
    flat = tf.nest.flatten([sparse, scalar(tf, 1)], expand_composites=True)
    packed = tf.nest.pack_sequence_as([sparse], flat[:3], expand_composites=True)
    twice = lambda t: t * 2 if t.dtype == tf.float32 else t
    mapped = tf.nest.map_structure(twice, sparse, expand_composites=True)
    return [str(len(tf.nest.flatten(sparse))), flat, packed, mapped]


# variables ----------------------------------------------------------------------------------------


def _after_start(tf, variable):
    return tf.control_dependencies([variable.initializer])


@program(GRAPH)
def assign_to_slices(tf):
    out = []
    for resource in (True, False):
        v = tf.compat.v1.Variable([1.0, 2.0, 3.0, 4.0], use_resource=resource)
        with _after_start(tf, v):
            out.append(tf.identity(tf.compat.v1.assign(v[1:3], [9.0, 8.0])))
    return out


@program(EAGER)
def optimizers_in_functions(tf):
    train = tf.compat.v1.train
    optimizers = [
        train.GradientDescentOptimizer(0.1),
        train.MomentumOptimizer(0.1, 0.9),
        train.AdamOptimizer(0.1),
        train.AdagradOptimizer(0.1),
        train.RMSPropOptimizer(0.1),
        train.FtrlOptimizer(0.1),
        train.AdadeltaOptimizer(0.1),
        train.ProximalAdagradOptimizer(0.1),
    ]
    return [_trained(tf, optimizer) for optimizer in optimizers]


def _trained(tf, optimizer):
    v, w = tf.compat.v1.Variable([1.0, 2.0]), tf.compat.v1.Variable([[1.0], [2.0]])

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(v * v) + tf.reduce_sum(tf.gather(w, [1, 1]))
        optimizer.apply_gradients(zip(tape.gradient(loss, [v, w]), [v, w]))
        return loss

    step()
    step()
    return [v, w]


@program(EAGER)
def template_called_twice(tf):
    def scale(x):
        return x * tf.compat.v1.get_variable("v", initializer=2.0)

    one = tf.compat.v1.make_template("scale", scale)
    other = tf.compat.v1.make_template("scale", scale)
    first, second, third = one(scalar(tf, 1)), one(scalar(tf, 2)), other(scalar(tf, 3))
    one.variables[0].assign(5.0)
    counts = [len(t.variables) for t in (one, other)]
    return [first, second, third, one(scalar(tf, 1)), other(scalar(tf, 1)), str(counts)]


# loops and functions ------------------------------------------------------------------------------


@program()
def gradients_of_variables_in_loops_of_functions(tf):
    v, w = variables(tf, [1.0, 1.0, 1.0, 1.0], [4.0, 5.0])

    @tf.function
    def inner(x, var):
        add = lambda j, y: (j + 1, y + tf.reduce_sum(var.sparse_read([1, 2])))
        return tf.while_loop(lambda j, y: j < 3, add, [tf.constant(0), x])[1]

    @tf.function
    def outer(var):
        start = [tf.constant(0), scalar(tf, 0)]
        r = tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, inner(x, var)), start)[1]
        return tf.convert_to_tensor(tf.gradients(r, var)[0])

    @tf.function
    def row(x, var):
        return x + var.sparse_read([1])[0]

    def body(i, x):
        choose = tf.cond(tf.equal(i % 2, 0), lambda: row(x, v), lambda: row(x, w))
        return i + 1, choose

    @tf.function
    def branching(v, w):
        r = tf.while_loop(lambda i, x: i < 4, body, [tf.constant(0), scalar(tf, 0)])
        return [tf.convert_to_tensor(g) for g in tf.gradients(r, [v, w])]

    return [outer(v), branching(v, w)]


@program(FUNCTION)
def gradients_that_wait_for_a_loop(tf):
    x = scalar(tf, 2)
    loop = tf.while_loop(lambda i, a: i < 2, lambda i, a: [i + 1, a**2], [tf.constant(0), x])
    with tf.control_dependencies([loop[1]]):
        return tf.gradients(loop[1], x)


@program(GRAPH)
def gradients_past_stopped_results(tf):
    a, b = tf.constant(1.0), tf.constant(2.0)
    both = tf.scan(lambda x, y: (a, b), tf.zeros(5), initializer=(0.0, 0.0))
    return tf.gradients([both[0] + tf.stop_gradient(both[1])], [a, b])


@program(GRAPH)
def tape_after_a_read_in_a_loop(tf):
    (v,) = variables(tf, 3.0)
    out = []

    def body(i, a):
        before = v + 1.0
        with tf.GradientTape() as tape:
            y = v * 2.0 * before
        return i + 1, a + tape.gradient(y, v)

    out = tf.while_loop(lambda i, a: i < 2, body, [tf.constant(0), scalar(tf, 0)])
    return out[1]


@program(FUNCTION)
def branches_keep_lists_in_functions(tf):
    x = scalar(tf, 3)
    pred = x > 2.0
    results = [
        tf.cond(pred, lambda: [x], lambda: [x * 2.0]),
        tf.case([(pred, lambda: [x])], default=lambda: [x * 2.0]),
    ]
    return [results, str([type(r).__name__ for r in results])]


@program(FUNCTION)
def branches_of_other_structure_in_functions(tf):
    x = scalar(tf, 3)
    return tf.cond(x > 2.0, lambda: x, lambda: [x])


@program(GRAPH)
def case_of_a_dict(tf):
    x = scalar(tf, 3)
    late, early = tf.less(2.0, x, name="z"), tf.less(1.0, x, name="a")
    return tf.case({late: lambda: x * 2.0, early: lambda: x * 5.0}, default=lambda: x)


@program(GRAPH)
def case_of_numbers(tf):
    return tf.case([(1.0, lambda: scalar(tf, 1))], default=lambda: scalar(tf, 2))


@program(GRAPH)
def fetch_inside_a_branch(tf):
    x = scalar(tf, 3)
    inside = []

    def branch():
        inside.append(x * 2.0)
        return inside[0]

    tf.cond(x > 2.0, branch, lambda: x)
    return inside


@program(GRAPH)
def gradients_of_unknown_kind(tf):
    x = scalar(tf, 3)
    return tf.gradients(x * x, x, unconnected_gradients="nonsense")


@program(EAGER)
def array_with_gaps(tf):
    array = tf.TensorArray(tf.float32, size=4, element_shape=[2])
    first = array.read(0)
    array = array.write(1, [4.0, 5.0])
    stacked = [array.stack(), array.concat(), array.stack(), array.gather([1, 3])]
    array = array.scatter([3], [[1.0, 2.0]])
    return [first, stacked, array.read(1), array.stack()]


@program(EAGER)
def array_read_twice(tf):
    array = tf.TensorArray(tf.float32, size=2).write(0, 1.0)
    array.read(0)
    return array.read(0)


@program(GRAPH, EAGER)
def array_of_other_shape(tf):
    array = tf.TensorArray(tf.float32, size=2, infer_shape=False, element_shape=[None, 2])
    array = array.write(0, [[1.0, 2.0]])
    return array.write(1, [[1.0, 2.0, 3.0]]).stack()


@program(EAGER)
def defun_makes_variables(tf):
    made = []

    def f(x):
        made.append(tf.compat.v1.Variable(2.0))
        return x * made[-1]

    function = tf.contrib.eager.defun(f)
    out = [function(scalar(tf, 1)), function(tf.constant([1.0, 2.0])), function(scalar(tf, 3))]
    return [out, str(len(made))]


@program(EAGER)
def function_changes_its_argument(tf):
    @tf.function
    def f(values):
        values.append(tf.constant(1.0))
        return values

    return f([tf.constant(0.0)])


@program(EAGER)
def function_with_wrong_argument(tf):
    signature = [tf.TensorSpec([2], tf.float32)]
    f = tf.function(lambda x: x, input_signature=signature)
    try:
        return f(tf.ones([3]))
    except ValueError:
        return "ValueError"


@program(FUNCTION)
def branch_uses_the_other(tf):
    x = scalar(tf, 3)
    kept = []

    def true_fn():
        kept.append(x * 2.0)
        return kept[0]

    return tf.cond(x > 2.0, true_fn, lambda: tf.identity(kept[0]))


@program(GRAPH)
def gradients_by_a_loops_start(tf):
    x = scalar(tf, 3)
    body = lambda i, v: (i + 1, tf.gradients(v * 2.0, x)[0])
    return tf.while_loop(lambda i, v: i < 3, body, [tf.constant(0), x + 1.0])


@program(EAGER)
def tape_of_custom_gradient_without_gradients(tf):
    @tf.custom_gradient
    def f(x):
        return x, lambda dy: []

    (v,) = variables(tf, 1.0)
    with tf.GradientTape() as tape:
        y = f(v)
    return tape.gradient(y, [v])


@program(EAGER)
def control_dependencies_call(tf):
    calls = []
    with tf.control_dependencies([lambda: calls.append(1), tf.constant(1)]):
        return str(calls)


@program()
def custom_gradient_with_variables(tf):
    a, b = variables(tf, 2.0, 3.0)
    x = scalar(tf, 5)

    @tf.custom_gradient
    def f(y):
        def grad(dy, variables=None):
            return dy * 7.0, [dy * 10.0 for _ in variables]

        return a * y + b, grad

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, [x, a, b])


@program(EAGER)
def custom_gradient_in_a_function(tf):
    (a,) = variables(tf, 2.0)

    @tf.function
    def call(x):
        @tf.custom_gradient
        def inner():
            return a * x, lambda dy, variables=None: ((), [dy * 10.0 for _ in variables])

        return inner()

    with tf.GradientTape() as tape:
        y = call(scalar(tf, 3))
    return tape.gradient(y, a)


@program(EAGER)
def variable_creators_reach_functions(tf):
    made = []

    def creator(next_creator, **kwargs):
        made.append(next_creator(**kwargs))
        return made[-1]

    kept = []

    @tf.function
    def f():
        if not kept:
            kept.append(tf.Variable(3.0))
        return kept[0] * 2.0

    with tf.variable_creator_scope(creator):
        out = f()
    return [out, str(len(made))]


def inner(tf, path):
    """A module inside of TensorFlow, by the path below ``tensorflow``."""
    if tf.__name__ == "headrace":
        from headrace.api import facades

        return facades.facade(path, "tensorflow")
    return importlib.import_module("tensorflow." + path)


@program(GRAPH, FUNCTION)
def parallel_loops(tf):
    flow = inner(tf, "python.ops.parallel_for.control_flow_ops")
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    count = tf.compat.v1.placeholder_with_default(2, [])

    def round_of(i):
        return tf.gather(x, i) * 2, {"a": tf.cast(i, tf.float32), "b": tf.cast(i, tf.int64)}

    def flat(value):
        return [value[0], value[1]["a"], value[1]["b"]]

    kinds = (tf.float32, {"a": tf.float32, "b": tf.int64})
    return [
        *flat(flow.pfor(round_of, 2)),
        *flat(flow.pfor(round_of, count)),
        *flat(flow.for_loop(round_of, kinds, 2)),
        *flat(flow.for_loop(round_of, kinds, count, parallel_iterations=1)),
    ]


@program()
def vectorized_maps(tf):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    pairs = tf.vectorized_map(lambda r: (r["a"] * 2.0, tf.reduce_sum(r["b"])), {"a": x, "b": x})
    return [tf.vectorized_map(lambda r: tf.reduce_sum(r * r), x), pairs]


@program(GRAPH)
def pfor_with_one_iteration_at_a_time(tf):
    flow = inner(tf, "python.ops.parallel_for.control_flow_ops")
    return flow.pfor(lambda i: i, 2, parallel_iterations=1)


@program(GRAPH)
def graph_jacobians(tf):
    by = inner(tf, "python.ops.parallel_for.gradients")
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    w = tf.constant([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    unused = tf.constant(1.0)
    y = tf.square(tf.matmul(x, w))
    some = tf.compat.v1.placeholder_with_default(x, [None, 2])
    found = [
        by.jacobian(y, w),
        by.jacobian(y, [w, unused, x]),
        by.jacobian(y, w, use_pfor=False),
        by.jacobian(tf.gather(w, [1, 0, 1])[:, 0], w),
        by.jacobian(tf.square(some), some),
        by.batch_jacobian(y, x),
        by.batch_jacobian(tf.reshape(y, [2, 3, 1]), x, use_pfor=False),
        by.batch_jacobian(tf.square(some), some),
    ]
    flat = [g for f in found for g in (f if isinstance(f, list) else [f])]
    return [[g, None if g is None else str(g.shape)] for g in flat]


@program(GRAPH)
def batch_jacobian_of_other_rows(tf):
    by = inner(tf, "python.ops.parallel_for.gradients")
    return by.batch_jacobian(tf.ones([3, 2]), tf.ones([2, 2]))
