"""Accumulators, staging areas, barriers and synchronous replicas.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import threading

import numpy as np

from tests.golden.inner_paths import inner


def _error(run):
    try:
        run()
    except Exception as e:
        return type(e).__name__
    return None


def _ops(tf):
    return [[op.name, op.type] for op in tf.get_default_graph().get_operations()]


def accumulator(tf):
    sums = tf.ConditionalAccumulator(tf.float32, shape=[2], name="sums")
    x, step = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int64, [])
    add, number = sums.apply_grad(x, local_step=step), sums.num_accumulated()
    mean, later = sums.take_grad(2), sums.set_global_step(5)
    seen = []
    with tf.Session() as sess:
        for value, at in (([1, 2], 0), ([3, 5], 0), ([0, 3], 1)):
            sess.run(add, {x: value, step: at})
            seen.append(sess.run(number))
        seen.append(sess.run(mean))
        sess.run(add, {x: [9, 9], step: 0})
        seen.append(sess.run(number))
        sess.run(later)
        for at in (4, 5, 6):
            sess.run(add, {x: [1, at], step: at})
        seen.append(sess.run(number))
        seen.append(sess.run(mean))
        seen.append(_error(lambda: sess.run(sums.take_grad(0))))
    return [seen, _ops(tf), mean.shape.as_list(), sums.name, sums.dtype.name]


def accumulator_waits(tf):
    sums = tf.ConditionalAccumulator(tf.float32, reduction_type="SUM")
    x = tf.placeholder(tf.float32)
    add, total = sums.apply_grad(x), sums.take_grad(3)
    with tf.Session() as sess:
        got = []
        thread = threading.Thread(target=lambda: got.append(sess.run(total)))
        thread.start()
        for value in (1.0, 2.0, 4.0):
            sess.run(add, {x: [value]})
        thread.join()
        wrong = _error(lambda: [sess.run(add, {x: v}) for v in ([1.0], [1.0, 2.0])])
    return [got, wrong, sums.accumulator_ref.dtype.name]


def sparse_accumulator(tf):
    sums = tf.SparseConditionalAccumulator(tf.float32, shape=[4, 2], name="rows")
    slices = tf.IndexedSlices(
        tf.placeholder(tf.float32, [None, 2], name="v"), tf.placeholder(tf.int64, [None], name="i"),
        dense_shape=[4, 2],
    )  # fmt: skip
    add, mean = sums.apply_indexed_slices_grad(slices), sums.take_indexed_slices_grad(2)
    number, later = sums.num_accumulated(), sums.set_global_step(3)
    seen = []
    with tf.Session() as sess:
        sess.run(add, {"v:0": [[1, 2], [3, 4]], "i:0": [0, 2]})
        sess.run(add, {"v:0": [[5, 6], [7, 8]], "i:0": [2, 3]})
        seen.append(sess.run(number))
        seen.append(sess.run([mean.values, mean.indices, mean.dense_shape]))
        sess.run(later)
        sess.run(add, {"v:0": [[1, 2]], "i:0": [0]})
        seen.append(sess.run(number))
        wrong = sums.apply_grad([0], [[1.0, 2.0, 3.0]], [4, 3], local_step=4)
        seen.append(_error(lambda: sess.run(wrong)))
    return [seen, [op for op in _ops(tf) if "ccumulator" in op[1]]]


def staging(tf):
    area = tf.contrib.staging.StagingArea([tf.float32, tf.int32], shapes=[[2], []], capacity=2)
    x = tf.placeholder(tf.float32, [2])
    put = area.put([x, tf.constant(7)])
    got, first, size, clear = area.get(), area.peek(0), area.size(), area.clear()
    seen = []
    with tf.Session() as sess:
        sess.run(put, {x: [1, 2]})
        sess.run(put, {x: [3, 4]})
        seen.append(sess.run([first, size]))
        seen.append(sess.run(got))
        seen.append(sess.run([got, put], {x: [5, 6]})[0])
        seen.append(sess.run(size))
        sess.run(clear)
        seen.append(sess.run(size))
    return [seen, _ops(tf), [t.shape.as_list() for t in got], area.name, area.capacity]


def staging_pipeline(tf):
    staging_area = inner(tf, "python.ops.data_flow_ops", "StagingArea")
    area = staging_area([tf.float32], names=["x"], shapes=[[]], memory_limit=8)
    step = tf.get_variable("step", initializer=0.0)
    put = area.put({"x": step.assign_add(1.0) * 1.0})
    got = area.get()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(put)
        values = [sess.run([got, put])[0]["x"] for _ in range(3)]
    return [values, sorted(got)]


def barrier(tf):
    kind = inner(tf, "python.ops.data_flow_ops", "Barrier")
    made = kind([tf.float32, tf.int32], shapes=[(), (2,)], name="gate")
    first = made.insert_many(0, [b"a", b"b", b"c"], [1.0, 2.0, 3.0])
    second = made.insert_many(1, [b"c", b"a"], [[1, 2], [3, 4]])
    third = made.insert_many(1, [b"b"], [[5, 6]])
    ready, missing = made.ready_size(), made.incomplete_size()
    take, close = made.take_many(2), made.close()
    rest = made.take_many(2, allow_small_batch=True)
    seen = []
    with tf.Session() as sess:
        sess.run(first)
        seen.append(sess.run([ready, missing]))
        sess.run(second)
        seen.append(sess.run([ready, missing]))
        indices, keys, values = sess.run(take)
        seen.append([[int(i) + 2**63 for i in indices], keys, values])
        seen.append(_error(lambda: sess.run(first)))
        sess.run(close)
        new = made.insert_many(0, [b"new"], [1.0])
        seen.append(_error(lambda: sess.run(new)))
        sess.run(third)
        seen.append(sess.run([rest[1], rest[2]]))
        seen.append(_error(lambda: sess.run(take)))
    return [seen, _ops(tf), take[0].shape.as_list(), take[2][1].shape.as_list()]


def _replicas(tf, sparse):
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.float32, [], name="x")
    w = tf.get_variable("w", initializer=np.ones((3, 2), np.float32))
    rows = tf.nn.embedding_lookup(w, [0, 2, 0]) if sparse else w
    loss = x * tf.reduce_sum(rows)
    wrapped = tf.train.GradientDescentOptimizer(0.1)
    opt = tf.train.SyncReplicasOptimizer(wrapped, replicas_to_aggregate=2, total_num_replicas=2)
    train = opt.minimize(loss, global_step=step)
    return opt, train, w, step


def _trained(tf, sparse):
    opt, train, w, step = _replicas(tf, sparse)
    opt.make_session_run_hook(True, num_tokens=0).begin()
    names = [v.name for v in tf.global_variables() + tf.local_variables()]
    types = sorted(t for _, t in _ops(tf) if "ccumulator" in t or "Queue" in t)
    init = [tf.global_variables_initializer(), tf.local_variables_initializer()]
    together = threading.Barrier(2)
    sess = tf.Session()
    sess.run(init)
    sess.run(opt.chief_init_op)
    opt.get_chief_queue_runner().create_threads(sess, daemon=True, start=True)

    def work(value):
        for _ in range(3):
            together.wait()  # or one replica may take the other's token
            sess.run(train, {"x:0": value})

    threads = [threading.Thread(target=work, args=(v,)) for v in (1.0, 3.0)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    values = sess.run([w, step])
    sess.close()  # the queue runner's run ends with it
    return [values, names, types]


def sync_replicas(tf):
    return _trained(tf, False)


def sync_replicas_sparse(tf):
    return _trained(tf, True)


def sync_replicas_errors(tf):
    opt = tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(), 2)
    w = tf.get_variable("w", initializer=1.0)
    pair = [(tf.constant(1.0), w)]
    step = tf.train.get_or_create_global_step()
    errors = [
        _error(lambda: opt.get_chief_queue_runner()), _error(lambda: opt.get_init_tokens_op()),
        _error(lambda: opt.apply_gradients([])), _error(lambda: opt.apply_gradients(pair)),
    ]  # fmt: skip
    op = opt.apply_gradients(pair, step)
    few = tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(), 3, 1)
    few.apply_gradients([(tf.constant(1.0), w)], step)
    errors.append(_error(lambda: few.get_init_tokens_op(1)))
    return [errors, op.name, opt.get_slot_names(), [v.name for v in opt.variables()],
            opt.get_slot(w, "m").name]  # fmt: skip
