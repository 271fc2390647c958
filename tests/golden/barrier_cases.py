"""Barriers that are closed, shared, filled by several threads, or given what does not fit.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import threading

import numpy as np

from tests.golden.inner_paths import inner


def _barrier(tf, *args, **kwargs):
    return inner(tf, "python.ops.data_flow_ops", "Barrier")(*args, **kwargs)


def _kind(call, *args):
    try:
        call(*args)
    except Exception as error:
        return type(error).__name__
    return "nothing"


def _taken(tf, session, taken):
    try:
        indices, keys, values = session.run([taken[0], taken[1], list(taken[2])])
    except tf.errors.OpError as error:
        return type(error).__name__
    order = np.argsort(keys)
    return [sorted(indices), keys[order].tolist(), [v[order].tolist() for v in values]]


def small_batches_of_closed_barriers(tf):
    b = _barrier(tf, (tf.float32, tf.float32), shapes=((), ()))
    keys, first, second = ["a", "b", "c", "d"], [1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0]
    start = b.insert_many(0, keys, first)
    parts = [b.insert_many(1, keys[i:j], second[i:j]) for i, j in ((0, 2), (2, 3), (3, 4))]
    nothing, new = b.insert_many(0, [], []), b.insert_many(0, ["e"], [5.0])
    close, cancel = b.close(), b.close(cancel_pending_enqueues=True)
    small, strict = b.take_many(3, allow_small_batch=True), b.take_many(3)
    sizes = [b.ready_size(), b.incomplete_size()]
    found = []
    with tf.Session() as session:
        session.run(start)
        session.run(parts[0])
        session.run(close)
        found.append(session.run(sizes))
        found += [_taken(tf, session, small), _kind(session.run, parts[0])]
        session.run(parts[1])
        found += [_taken(tf, session, small), _kind(session.run, nothing), _kind(session.run, new)]
        found += [
            _taken(tf, session, strict),
            _taken(tf, session, small),
            _kind(session.run, close),
        ]
        session.run(cancel)
        found += [_kind(session.run, op) for op in (nothing, parts[2], cancel, close)]
        found += [_taken(tf, session, small), session.run(sizes)]
    return found


def shared_barriers(tf):
    def shared(types, shapes, name="shared"):
        return _barrier(tf, types, shapes=shapes, shared_name=name)

    pairs = [
        (((tf.float32,), ((),)), ((tf.float32,), ((),))),
        (((tf.float32,), ((),)), ((tf.int32,), ((),))),
        (((tf.float32,), ((),)), ((tf.float32, tf.int32), ((), ()))),
        (((tf.float32,), ((2, 3),)), ((tf.float32,), ((2, 4),))),
        (((tf.float32,), ((2, 3),)), ((tf.float32,), None)),
        (((tf.float32,), None), ((tf.float32,), None)),
    ]
    found = []
    for number, (one, other) in enumerate(pairs):
        first, second = shared(*one, "s%d" % number), shared(*other, "s%d" % number)
        with tf.Session() as session:
            session.run(first.barrier_ref)
            found.append(_kind(session.run, second.barrier_ref))
    return found


def insertions_of_threads(tf):
    b = _barrier(tf, (tf.float32, tf.int64), shapes=((), (2,)))
    count, keys = 20, [str(i) for i in range(10)]
    named = lambda i: ["%d:%s" % (i, k) for k in keys]
    values = np.arange(10, dtype=np.float32)
    pairs = np.stack([np.arange(10), np.arange(10) + 1], 1)
    inserts = [
        [b.insert_many(0, named(i), values + i), b.insert_many(1, named(i), pairs + i)]
        for i in range(count)
    ]
    takes = [b.take_many(10) for _ in range(count)]
    found = []
    with tf.Session() as session:
        threads = [
            threading.Thread(target=lambda t=t: found.append(_taken(tf, session, t))) for t in takes
        ] + [threading.Thread(target=session.run, args=(ops,)) for ops in inserts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    indices = sorted(i for f in found for i in f[0])
    whole = sorted(k for f in found for k in f[1])
    fits = [
        abs(v - sum(map(int, k.decode().split(":")))) < 1e-6
        for f in found
        for k, v in zip(f[1], f[2][0])
    ]
    return [[int(i - indices[0]) for i in indices], whole, all(fits)]


def what_does_not_fit(tf):
    plain = _barrier(tf, (tf.float32, tf.float32))
    shaped = _barrier(tf, (tf.float32, tf.float32), shapes=((2,), ()))
    calls = [
        plain.insert_many(0, ["a", "b"], np.zeros((2, 0), np.float32)),
        plain.insert_many(2, ["d"], [1.0]),
        shaped.insert_many(1, ["a"], [1.0]),
        shaped.insert_many(1, ["a"], [1.0]),
        shaped.insert_many(0, ["a"], [[1.0, 2.0]]),
    ]
    with tf.Session() as session:
        return [_kind(session.run, call) for call in calls] + [
            _kind(lambda: _barrier(tf, (tf.float32,), shapes=((0,),))),
            _kind(lambda: plain.insert_many(0, ["c"], [1.0, 2.0])),
            session.run([shaped.ready_size(), shaped.incomplete_size()]),
        ]
