"""Functions of tf.nn, linalg, strings, image and sparse that few programs use.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import numpy as np


def _numbers(*shape, **kwargs):
    random = np.random.RandomState(kwargs.get("seed", 0))
    return random.uniform(-1, 1, size=shape).astype(kwargs.get("dtype", np.float32))


def _run(tf, fetches, feeds=None):
    with tf.Session() as sess:
        return sess.run(fetches, feeds)


def _rows(tf, ragged):
    """A ragged tensor as lists."""
    value = _run(tf, ragged)
    return value.to_list() if hasattr(value, "to_list") else value.tolist()


def _error(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except Exception as e:
        return type(e).__name__
    return "nothing"


def morphology(tf):
    x, taps = tf.constant(_numbers(2, 7, 6, 3)), tf.constant(_numbers(3, 2, 3, seed=1))
    found, names = [], []
    for strides, rates, padding in (
        ([1, 1, 1, 1], [1, 1, 1, 1], "SAME"),
        ([1, 2, 1, 1], [1, 1, 2, 1], "VALID"),
        ([1, 2, 2, 1], [1, 2, 2, 1], "SAME"),
    ):
        for function in (tf.nn.dilation2d, tf.nn.erosion2d):
            y = function(x, taps, strides, rates, padding)
            names.append([y.name, y.shape.as_list()])
            found += [y] + tf.gradients(y * y, [x, taps])
    names.append(
        tf.nn.dilation2d(x, filters=taps, strides=[1] * 4, dilations=[1] * 4, padding="SAME").name
    )
    names.append(_error(tf.nn.dilation2d, x, taps, [1, 1, 1, 1], [1, 1, 1, 1], "LEFT"))
    return names + _run(tf, found)


def fractional_pools(tf):
    x = tf.constant(_numbers(2, 10, 9, 2))
    found = []
    for function in (tf.nn.fractional_max_pool, tf.nn.fractional_avg_pool):
        for pseudo in (False, True):
            for overlapping in (False, True):
                y = function(
                    x, [1.0, 1.44, 1.73, 1.0], pseudo_random=pseudo, overlapping=overlapping,
                    deterministic=True, seed=3, seed2=5,
                )  # fmt: skip
                found += list(y) + tf.gradients(y[0] * y[0], x)
    return _run(tf, found)


def fractional_pools_refused(tf):
    x = tf.constant(np.arange(64, dtype=np.float32).reshape(1, 8, 8, 1))
    pool = tf.nn.fractional_max_pool
    free = pool(x, [1.0, 1.5, 1.3, 1.0])
    found = [free[0].shape.as_list(), free[0].name]
    with tf.Session() as sess:
        found.append([v.shape for v in sess.run(free)])
        found.append(_error(lambda: sess.run(pool(x, [1.0, 1.5, 1.3, 1.0], seed=3))))
    return found


def tridiagonals(tf):
    n = 5
    d = tf.constant(_numbers(2, 3, n, dtype=np.float64))
    b = tf.constant(_numbers(2, n, 3, dtype=np.float64, seed=1))
    solve, times = tf.linalg.tridiagonal_solve, tf.linalg.tridiagonal_matmul
    x = solve(d, b)
    y = times(d, b)
    parts = [d[:, i] for i in range(3)]
    short = [d[:, 0, :-1], d[:, 1], d[:, 2, 1:]]
    whole = tf.constant(_numbers(2, n, n, dtype=np.float64, seed=2))
    found = [
        x, y, solve(parts, b, "sequence"), solve(short, b, diagonals_format="sequence"),
        solve(whole, b, "matrix"), times(parts, b, "sequence"), times(whole, b, "matrix"),
        solve(d, b[..., 0]), solve(d, tf.matrix_transpose(b), transpose_rhs=True),
        solve(d, b, partial_pivoting=False),
    ]  # fmt: skip
    c = tf.complex(b, b * 2)
    found.append(solve(tf.complex(d, d), c, conjugate_rhs=True))
    found += tf.gradients(x * x, [d, b]) + tf.gradients(y * y, [d, b])
    zero = tf.constant([[1.0, 2, 3], [0.0, 1, 2], [1.0, 1, 1]])
    found.append(solve(zero, tf.constant([1.0, 2, 3])))
    names = [x.name, y.name, x.shape.as_list()]
    names.append(_error(solve, d, tf.zeros([2, 4, 3], tf.float64)))
    names.append(_error(solve, d, b, "rows"))
    return names + _run(tf, found)


def unicode_decoding(tf):
    s = tf.strings
    words = ["G\xf6dnight".encode("utf8"), "\U0001f60a".encode("utf8"), b"", b"a\x80b\xe2\x82c\x01"]
    found = []
    for errors in ("replace", "ignore"):
        points, starts = s.unicode_decode_with_offsets(words, "UTF-8", errors=errors)
        found += [_rows(tf, points), _rows(tf, starts)]
        found.append(_rows(tf, s.unicode_split(words, "UTF-8", errors=errors)))
    found.append(
        _rows(
            tf,
            s.unicode_decode(words, "UTF-8", replace_control_characters=True, replacement_char=63),
        )
    )
    wide = ["a\U0001f60a".encode("utf-16-be"), b"\xd8\x00\x00a"]
    found += [_rows(tf, t) for t in s.unicode_split_with_offsets(wide, "UTF-16-BE")]
    found.append(_rows(tf, s.unicode_decode(words[0], "UTF-8")))
    found.append(_rows(tf, s.unicode_decode([words[:2], words[2:]], "UTF-8")))
    strict = s.unicode_decode(words, "UTF-8", errors="strict")
    with tf.Session() as sess:
        found.append(_error(sess.run, strict))
    return found


def unicode_encoding(tf):
    s = tf.strings
    rows = tf.ragged.constant([[71, 246], [128522], [], [55296, 97]])
    found = [_rows(tf, s.unicode_encode(rows, e)) for e in ("UTF-8", "UTF-16-BE", "UTF-32-BE")]
    found.append(_rows(tf, s.unicode_encode(rows, "UTF-8", errors="ignore")))
    found.append(_rows(tf, s.unicode_encode(rows, "UTF-8", replacement_char=64)))
    found.append(_run(tf, s.unicode_encode([72, 105], "UTF-8")))
    found.append(_run(tf, s.unicode_encode(np.array([[[72, 105], [72, 72]]], np.int32), "UTF-8")))
    text = ["\xe9t\xe9".encode("latin-1"), b"a\x02"]
    found.append(_run(tf, s.unicode_transcode(text, "latin1", "UTF-8")))
    found.append(
        _run(tf, s.unicode_transcode(text, "UTF-8", "UTF-16-BE", replace_control_characters=True))
    )
    return found


def ngrams(tf):
    s = tf.strings
    rows = tf.ragged.constant([["a", "b", "c", "d"], ["e"], [], ["f", "g"]])
    full = tf.ragged.constant([["a", "b", "c", "d"], ["e"], ["f", "g"]])
    deep = tf.ragged.constant([[["a", "b"], ["c"]], [["d", "e", "f"]]])
    found = [
        _rows(tf, s.ngrams(rows, 2)),
        _rows(tf, s.ngrams(full, [2, 3], separator="|", pad_values="_")),
        _rows(tf, s.ngrams(full, 3, pad_values=("<", ">"), padding_width=1)),
        _rows(tf, s.ngrams(rows, 3, preserve_short_sequences=True)),
        _rows(tf, s.ngrams(deep, 2)),
        _rows(tf, s.ngrams(tf.constant([["a", "b", "c"], ["d", "e", "f"]]), 2)),
        _rows(tf, s.ngrams(tf.constant(["a", "b", "c"]), 2)),
        _error(s.ngrams, rows, 0),
        _error(s.ngrams, rows, 2, pad_values="x", padding_width=0),
        _error(s.ngrams, rows, 2, pad_values=3),
    ]
    return found


def segment_joins(tf):
    join = tf.strings.unsorted_segment_join
    words = tf.constant([["a", "b"], ["c", "d"], ["e", "f"]])
    return _run(
        tf,
        [
            join(words, [1, 0, 1], 3),
            join(words, [[0, 1], [1, 0], [0, 0]], 2, separator="-"),
            join(["x", "y", "z"], [0, 0, 0], 1, ":"),
        ],
    )


def combined_suppression(tf):
    random = np.random.RandomState(0)
    corners = random.uniform(0, 0.6, (2, 12, 1, 2)).astype(np.float32)
    boxes = np.concatenate([corners, corners + 0.5], -1)
    wide = np.tile(boxes, (1, 1, 3, 1)) + random.uniform(-0.1, 0.1, (2, 12, 3, 4)).astype(
        np.float32
    )
    scores = random.uniform(0, 1, (2, 12, 3)).astype(np.float32)
    f = tf.image.combined_non_max_suppression
    found = []
    for given, kwargs in (
        (boxes, {}),
        (wide, {"clip_boxes": False, "iou_threshold": 0.3}),
        (wide, {"pad_per_class": True, "score_threshold": 0.4}),
    ):
        found.append(f(given, scores, 2, 7, **kwargs))
    shapes = [[t.shape.as_list() for t in group] for group in found]
    return shapes + [list(group) for group in _run(tf, found)] + [found[0][0].name]


def patches(tf):
    x = tf.constant(_numbers(1, 6, 5, 2))
    return _run(tf, tf.image.extract_patches(x, [1, 3, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME"))


def ctc_dense(tf):
    logits = tf.constant(_numbers(6, 3, 5))
    labels = tf.constant([[1, 2, 2], [3, 1, 0], [4, 4, 1]])
    found = []
    for blank in (0, 2, -1):
        values = tf.where(tf.equal(labels, blank % 5), (labels + 1) % 5, labels)
        loss = tf.nn.ctc_loss_v2(values, logits, [2, 2, 3], [6, 6, 6], blank_index=blank)
        found += [loss] + tf.gradients(loss, logits)
        found.append(tf.nn.ctc_loss_v2(values, logits, [2, 2, 3], [6, 5, 4], blank_index=blank))
    batch = tf.transpose(logits, [1, 0, 2])
    unique = tf.nn.ctc_unique_labels(labels)
    found.append(
        tf.nn.ctc_loss_v2(
            labels, batch, [2, 2, 3], [6, 5, 6], logits_time_major=False, unique=unique
        )
    )
    sparse = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [2, 0]], [1, 3, 2, 4], [3, 2])
    found.append(tf.nn.ctc_loss_v2(sparse, logits, None, [6, 5, 6], blank_index=0))
    found += list(unique)
    found += list(tf.nn.collapse_repeated([[1, 1, 2, 2, 1], [3, 3, 3, 0, 0]], [5, 3]))
    names = [_error(tf.nn.ctc_loss_v2, sparse, logits, None, [6, 5, 6])]
    return names + _run(tf, found)


def losses_of_replicas(tf):
    per_example = tf.constant([1.0, 2.0, 4.0])
    return _run(
        tf,
        [
            tf.nn.compute_average_loss(per_example),
            tf.nn.compute_average_loss(per_example, sample_weight=[1.0, 0.5, 0.0]),
            tf.nn.compute_average_loss(per_example, global_batch_size=6),
            tf.nn.scale_regularization_loss(per_example),
        ],
    )


def spaces_and_batches(tf):
    x = tf.constant(_numbers(2, 7, 6, 3))
    taps = tf.constant(_numbers(3, 2, 3, 4, seed=1))

    def conv(inner, count, padding):
        return tf.nn.conv2d(inner, taps, [1, 1, 1, 1], padding)

    f = tf.nn.with_space_to_batch
    found = [
        f(x, [2, 3], "SAME", conv, filter_shape=[3, 2]),
        f(x, [2, 1], "VALID", conv),
        f(x, [1, 1], "SAME", conv),
        f(x, [2], "VALID", conv, spatial_dims=[2]),
    ]
    errors = [_error(f, x, [2, 2], "SAME", conv), _error(f, x, [0, 1], "VALID", conv)]
    return errors + [t.shape.as_list() for t in found] + _run(tf, found)


def sparse_of_dense(tf):
    found = [
        tf.sparse.from_dense([[0, 1], [2, 0]]),
        tf.sparse.from_dense(tf.constant([[0.0, 1.5], [0.0, 0.0]])),
    ]
    return [list(v) for v in _run(tf, found)] + [f.indices.name for f in found]
