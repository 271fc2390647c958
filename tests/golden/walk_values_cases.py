"""The walk of known wrong results: each program once gave another answer than TensorFlow 1.15.

Run on TF 1.15 (make_cases.py) and on Headrace. ``_eager`` runs a program with eager execution.
"""

import inspect

import numpy as np


def _eager(tf, program):
    """What ``program()`` gives with eager execution, in a process that began without it."""
    if tf.__name__.startswith("headrace"):
        from headrace.eager.eager_context import eager_mode
    else:
        from tensorflow.python.eager.context import eager_mode
    with eager_mode():
        return program()


def _run(tf, fetches, feeds=None):
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return sess.run(fetches, feeds)


def _outcome(tf, program):
    """The class of the error of ``program()``, or what its results are."""
    try:
        return _run(tf, program())
    except Exception as error:
        return type(error).__name__


#: Functions of a matrix and a number that belongs to the program, not to the data.
_BAKED = [
    lambda tf, x, a: tf.reduce_sum(x, a),
    lambda tf, x, a: tf.reduce_max(x, a, keepdims=True),
    lambda tf, x, a: tf.reduce_logsumexp(x, a),
    lambda tf, x, a: tf.argmax(x, a),
    lambda tf, x, a: tf.cumsum(x, a, exclusive=True),
    lambda tf, x, a: tf.concat([x, x], a),
    lambda tf, x, a: tf.stack([x, x], a),
    lambda tf, x, a: tf.expand_dims(x, a),
    lambda tf, x, a: tf.gather(x, [1, 0], axis=a),
    lambda tf, x, a: tf.one_hot([0, 1], 3, axis=a),
    lambda tf, x, a: tf.reverse(x, [a]),
    lambda tf, x, a: tf.pad(x, [[a, 0], [0, a]]),
    lambda tf, x, a: tf.slice(x, [a, 0], [1, 2]),
    lambda tf, x, a: x[a],
    lambda tf, x, a: tf.transpose(x, [a, 1 - a]),
    lambda tf, x, a: tf.tile(x, [1 + a, 2 - a]),
    lambda tf, x, a: tf.roll(x, 1, a),
    lambda tf, x, a: tf.norm(x, axis=a),
    lambda tf, x, a: tf.nn.softmax(x, a),
    lambda tf, x, a: tf.nn.l2_normalize(x, a),
    lambda tf, x, a: tf.split(x, [1, -1], a)[0],
    lambda tf, x, a: tf.unstack(x, axis=a)[0],
    lambda tf, x, a: tf.tensordot(x, x, [[a], [a]]),
    lambda tf, x, a: tf.nn.moments(x, [a])[1],
    lambda tf, x, a: tf.clip_by_norm(x, 2.0, axes=[a]),
    lambda tf, x, a: tf.gradients(tf.reduce_prod(x, a), x)[0],
]


def axes_in_new_graphs(tf):
    """The program of each function for the axes 1, 0, 1, each in a graph of its own."""
    found = []
    for function in _BAKED:
        for axis in (1, 0, 1):
            with tf.Graph().as_default():
                x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
                found.append(_run(tf, function(tf, x, axis)))
    return found


def axes_in_one_session(tf):
    x = tf.placeholder(tf.float32, [2, 3])
    data = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    found = []
    with tf.Session() as sess:
        for function in _BAKED:
            for axis in (0, 1, 0):
                y = function(tf, x, axis)
                found += [sess.run(y, {x: data}) for _ in range(3)]
    return found


def outer_operations_of_branches(tf):
    """Operations made outside, which branches group, depend on, or use."""
    found = []
    for kind in ("cond", "case", "switch_case"):
        for use_resource in (False, True):
            with tf.Graph().as_default():
                v = tf.Variable(0.0, use_resource=use_resource)
                add, more = v.assign_add(1.0), v.assign_add(10.0)
                yes, no = (lambda a=a: tf.group(a) for a in (add, more))
                if kind == "cond":
                    made = tf.cond(tf.constant(True), yes, no)
                elif kind == "case":
                    made = tf.case([(tf.constant(False), no)], default=yes)
                else:
                    made = tf.switch_case(tf.constant(0), [yes, no])
                with tf.Session() as sess:
                    sess.run(v.initializer)
                    sess.run(made)
                    found.append(sess.run(v))
    return found


def outer_operations_of_dependent_branches(tf):
    v = tf.Variable(0.0, use_resource=True)
    add = v.assign_add(1.0)

    def taken():
        with tf.control_dependencies([add]):
            return tf.constant(3.0)

    result = tf.cond(tf.constant(True), taken, lambda: tf.constant(0.0))
    with tf.Session() as sess:
        sess.run(v.initializer)
        return [sess.run(result), sess.run(v)]


def outer_operations_of_loops(tf):
    found = []
    for use_resource in (False, True):
        with tf.Graph().as_default():
            v = tf.Variable(0.0, use_resource=use_resource)
            w = tf.Variable(0.0, use_resource=use_resource)
            made = v.assign(5.0)

            def body(i, made=made, w=w):
                with tf.control_dependencies([w.assign_add(made)]):
                    return i + 1

            loop = tf.while_loop(lambda i: i < 3, body, [0])
            with tf.Session() as sess:
                sess.run(tf.global_variables_initializer())
                found += [sess.run(loop), sess.run([v, w])]
    return found


def outer_operations_of_functions(tf):
    v = tf.Variable(0.0, use_resource=True)
    add = v.assign_add(2.0)

    @tf.function
    def f():
        with tf.control_dependencies([add]):
            return tf.constant(4.0)

    result = f()
    with tf.Session() as sess:
        sess.run(v.initializer)
        return [sess.run(result), sess.run(v)]


def _taped(tf, function):
    with tf.GradientTape(persistent=True) as tape:
        x = tf.constant([1.0, 2.0])
        x1 = tf.identity(x)
        return function(tape, x, x1)


def tapes(tf):
    def watched(tape, x, x1):
        tape.watch([x, x1])
        return tape.gradient(x * 2.0 + x1 * 3.0, [x, x1])

    def unwatched(tape, x, x1):
        return [g is None for g in tape.gradient(x * 2.0 + x1, [x, x1])]

    def variables(accessed):
        v = tf.Variable(3.0, use_resource=True)
        with tf.GradientTape(watch_accessed_variables=accessed) as tape:
            y = v * 2.0
        watched = len(tape.watched_variables())
        g = tape.gradient(y, v)
        return [watched, g is None]

    run = lambda ts: [t if isinstance(t, bool) else _run(tf, t) for t in ts]

    @tf.function
    def inside():
        return _taped(tf, watched)

    return [
        run(_taped(tf, watched)),
        run(_taped(tf, unwatched)),
        variables(True),
        variables(False),
        _run(tf, inside()),
        _eager(tf, lambda: [g.numpy() for g in _taped(tf, watched)]),
        _eager(tf, lambda: _taped(tf, unwatched)),
        _eager(tf, lambda: variables(True) + variables(False)),
    ]


def leaky_relu(tf):
    x = tf.constant([-2.0, -0.0, 1.0, 3.0, np.inf, -np.inf])
    return [
        _run(tf, [tf.nn.leaky_relu(x, alpha=a)] + tf.gradients(tf.nn.leaky_relu(x, a), x))
        for a in (0.2, 1.0, 1.5, 0.0, -0.5)
    ]


def random_operations_of_datasets(tf):
    """A seeded random operation begins again with its iterator."""
    d = tf.data.Dataset.range(4)
    d = d.map(lambda i: tf.random.uniform([], seed=7) + 0.0 * tf.cast(i, tf.float32))
    iterator = tf.data.make_initializable_iterator(d)
    following = iterator.get_next()
    found = []
    with tf.Session() as sess:
        for _ in range(3):
            sess.run(iterator.initializer)
            found.append([sess.run(following) for _ in range(3)])
    return found


def second_api_values(tf):
    v2 = tf.compat.v2
    x = tf.constant(np.arange(24, dtype=np.float32).reshape((1, 4, 3, 2)))
    found = [
        v2.image.resize(x, [2, 5], method) for method in ("bilinear", "nearest", "bicubic", "area")
    ]
    found += [
        v2.image.resize_with_pad(x, 6, 5, "nearest"),
        v2.image.resize_with_crop_or_pad(x, 2, 5),
        v2.image.crop_and_resize(x, [[0.0, 0.0, 1.0, 0.5]], [0], [2, 2], "nearest", 0.0),
        v2.image.extract_glimpse(x, [2, 2], [[0.0, 0.5]], False, False, "zero"),
        v2.image.ssim(x[..., :1], x[..., :1] * 0.5, 4.0, 2, 1.5, 0.01, 0.03),
        v2.io.decode_csv(["a,,NA"], [["x"], ["z"]], ",", True, "NA", [0, 2]),
        v2.io.decode_csv(["1|2"], [[0], [0.5]], "|", False),
        v2.io.decode_raw(["abcd"], tf.uint8, True, 4),
        v2.io.decode_raw(["ab", "c"], tf.uint8, fixed_length=2),
        v2.math.argmax(x, 1, tf.int32),
        v2.reduce_sum(x, 1, True),
        v2.nn.softmax(x, 1),
        v2.strings.length(["héllo"], "UTF8_CHAR"),
        v2.strings.substr(["héllo"], 1, 2, "UTF8_CHAR"),
        v2.nn.leaky_relu(x - 3.0, 0.1),
        v2.nn.dropout(x, 0.0, None, 3),
        v2.nn.avg_pool(x, 2, 1, "VALID"),
        v2.nn.conv2d(x, tf.ones([1, 1, 2, 1]), 1, "SAME"),
    ]
    return _run(tf, found)


def _parameters(function):
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None


def second_api_parameters(tf):
    """The parameters, in their order, of what programs call by position."""
    names = {
        "image": "resize resize_with_pad resize_with_crop_or_pad crop_and_resize extract_glimpse "
        "extract_patches ssim_multiscale psnr rot90 flip_left_right draw_bounding_boxes "
        "non_max_suppression sample_distorted_bounding_box adjust_gamma "
        "pad_to_bounding_box random_crop combined_non_max_suppression total_variation",
        "io": "decode_csv decode_raw decode_jpeg decode_png decode_image decode_gif decode_bmp "
        "decode_and_crop_jpeg encode_jpeg extract_jpeg_shape parse_example "
        "parse_single_example parse_sequence_example parse_single_sequence_example parse_tensor "
        "read_file write_file write_graph matching_files serialize_sparse serialize_many_sparse "
        "deserialize_many_sparse decode_base64 encode_base64 serialize_tensor "
        "match_filenames_once is_jpeg",
        "test": "assert_equal_graph_def compute_gradient gpu_device_name "
        "is_built_with_cuda is_built_with_rocm is_gpu_available main",
    }
    found = {}
    for space, wanted in names.items():
        module = getattr(tf.compat.v2, space)
        for name in wanted.split():
            found[space + "." + name] = _parameters(getattr(module, name, None))
    return found


def second_api_names(tf):
    """What version 1 alone has."""
    v2 = tf.compat.v2
    gone = {
        "image": "resize_images resize_bilinear resize_area resize_bicubic "
        "resize_nearest_neighbor resize_image_with_pad resize_image_with_crop_or_pad",
        "io": "tf_record_iterator PaddingFIFOQueue QueueBase FIFOQueue",
        "test": "StubOutForTesting get_temp_dir test_src_dir_path compute_gradient_error",
    }
    return {
        name: hasattr(getattr(v2, space), name) for space, n in gone.items() for name in n.split()
    }


def gradients_function_of_one_tensor(tf):
    def program():
        f = lambda x, y: x * x * y
        x = tf.constant(3.0)
        both = tf.contrib.eager.gradients_function(f)(x, x)
        chosen = tf.contrib.eager.gradients_function(f, params=[1])(x, x)
        value, grads = tf.contrib.eager.value_and_gradients_function(f)(x, x)
        return [t.numpy() for t in list(both) + list(chosen) + [value] + list(grads)]

    return _eager(tf, program)


def linspace_ends(tf):
    ends = [tf.linspace(0.0, 1.0, n)[-1] for n in range(2, 60)]
    return _run(tf, ends + [tf.linspace(-3.0, 7.1, 42), tf.linspace(np.float64(1), 2.0, 7)])


def half_gradients_at_zero(tf):
    x = tf.constant([0.0, -0.0, 1.0], tf.float16)
    found = []
    for f in (tf.reciprocal, tf.rsqrt, tf.sqrt):
        for scale in (0.0, 1.0):
            found += tf.gradients(f(x), x, grad_ys=tf.fill([3], tf.cast(scale, tf.float16)))
    return _run(tf, found)


def pools_of_nan(tf):
    x = np.full((1, 2, 4, 1), np.nan, np.float32)
    x[0, :, 2:] = 1.0
    t = tf.constant(x)
    found = [tf.nn.max_pool(t, [1, 2, 2, 1], [1, 2, 2, 1], p) for p in ("VALID", "SAME")]
    found.append(tf.nn.avg_pool(t, [1, 2, 2, 1], [1, 2, 2, 1], "VALID"))
    return _run(tf, found)


def cached_variables(tf):
    found = []
    for use_resource in (False, True):
        with tf.Graph().as_default(), tf.Session() as sess:
            with tf.variable_scope(
                "s%d" % use_resource, caching_device="/cpu:0", use_resource=use_resource
            ):
                v = tf.get_variable("v", initializer=1.0)
            before = v + 0.0
            with tf.control_dependencies([before]):
                written = v.assign_add(10.0)
            with tf.control_dependencies([written]):
                after = v + 0.0
            sess.run(v.initializer)
            found += [sess.run([before, written, after]), sess.run(v)]
    return found


def composites_are_flattened(tf):
    sparse = tf.SparseTensor([[0, 1]], [3.0], [2, 2])
    slices = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]), tf.constant([3, 2]))
    parts = tf.nest.flatten({"a": sparse, "b": [slices, tf.constant(5)]}, expand_composites=True)
    back = tf.nest.pack_sequence_as([sparse], parts[:3], expand_composites=True)
    doubled = tf.nest.map_structure(lambda t: t * 2, [sparse.values], expand_composites=True)
    return [len(parts), len(tf.nest.flatten(sparse)), len(tf.nest.flatten([sparse, 1]))] + _run(
        tf, [parts, back, doubled]
    )


def sparse_labels(tf):
    logits = tf.constant([[1.0, 2.0], [3.0, 0.5]])
    fed = tf.placeholder_with_default([[0], [1]], None)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits
    return [
        _outcome(tf, lambda: loss(labels=[[0], [1]], logits=logits)),
        _outcome(tf, lambda: loss(labels=fed, logits=logits)),
        _outcome(tf, lambda: loss(labels=[0, 1], logits=logits)),
        _outcome(tf, lambda: loss(labels=[0, 2], logits=logits)),
        _outcome(tf, lambda: loss(labels=[0, -1], logits=logits)),
        _outcome(tf, lambda: tf.losses.sparse_softmax_cross_entropy([[0], [1]], logits)),
    ]


def negative_sizes(tf):
    x = tf.zeros([2, 3])
    fed = lambda s: tf.placeholder_with_default(np.array(s, np.int32), [len(s)])
    return (
        [_outcome(tf, lambda s=s: tf.reshape(x, s)) for s in ([2, -3], [-6], [4, -1])]
        + [
            _outcome(tf, lambda s=s: tf.reshape(x, fed(s)))
            for s in ([2, -3], [-1, -1], [-6], [4, -1])
        ]
        + [_outcome(tf, lambda: tf.zeros([-1])), _outcome(tf, lambda: tf.fill(fed([-2]), 1.0))]
    )


def settled_activations(tf):
    """Infinities and NaN through layers that ran many times before."""
    random = np.random.RandomState(0)
    x = tf.placeholder(tf.float32, [2, 8])
    image = tf.placeholder(tf.float32, [1, 6, 6, 3])
    w = tf.constant(random.uniform(0.5, 1.0, (8, 16)).astype(np.float32))
    kernel = tf.constant(random.uniform(0.5, 1.0, (3, 3, 3, 4)).astype(np.float32))
    dense = [f(tf.nn.bias_add(tf.matmul(x, w), tf.ones([16]))) for f in (tf.nn.relu, tf.nn.relu6)]
    conv = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(image, kernel, [1] * 4, "SAME"), tf.ones([4])))
    found = []
    with tf.Session() as sess:
        for bad in (0.5, np.nan, np.inf, -np.inf, 0.25):
            for _ in range(12):
                rows = np.full((2, 8), 0.5, np.float32)
                rows[0, 3] = bad
                picture = np.full((1, 6, 6, 3), 0.5, np.float32)
                picture[0, 0, 0, 1] = bad
                got = sess.run(dense + [conv], {x: rows, image: picture})
            found.append(got)
    return found
