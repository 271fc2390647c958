"""Programs with queues and readers; ``make_queue_programs.py`` records what TensorFlow 1.15 gives
for them.

Each function takes ``tf`` and a folder, and returns plain values. Producers run in the program's
own thread or in one queue runner thread, so that the order of elements is defined.
"""

import os


def _session(tf):
    return tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=20000))


def _caught(tf, sess, op):
    try:
        sess.run(op)
    except tf.errors.OpError as error:
        return type(error).__name__
    return "no error"


def fifo(tf, folder):
    q = tf.FIFOQueue(10, [tf.float32, tf.string], shapes=[[2], []], name="q")
    put = q.enqueue([[1.0, 2.0], "a"])
    many = q.enqueue_many([[[3.0, 4.0], [5.0, 6.0]], ["b", "c"]])
    get, three, some, size, close = (
        q.dequeue(),
        q.dequeue_many(2),
        q.dequeue_up_to(5),
        q.size(),
        q.close(),
    )
    closed = q.is_closed()
    out = [str(t.shape) for t in (*get, *three, *some)]
    out += [t.op.name for t in (q.queue_ref, get[0], three[0], some[0], size, closed)] + [
        put.name,
        many.name,
        close.name,
    ]
    with _session(tf) as sess:
        sess.run(put)
        sess.run(many)
        sess.run(many)
        out += [int(sess.run(size)), [_plain(v) for v in sess.run(three)]]
        first = sess.run(get)
        out += [first[0].tolist(), first[1].decode()]
        sess.run(close)
        out += [bool(sess.run(closed)), [_plain(v) for v in sess.run(some)]]
        out += [
            _caught(tf, sess, get),
            _caught(tf, sess, put),
            _caught(tf, sess, some),
            _caught(tf, sess, close),
        ]
    return out


def shuffle_queue(tf, folder):
    q = tf.RandomShuffleQueue(100, 5, tf.int32, shapes=[()], seed=11)
    put, get, many, rest = (
        q.enqueue_many([list(range(30))]),
        q.dequeue(),
        q.dequeue_many(7),
        q.dequeue_up_to(50),
    )
    with _session(tf) as sess:
        sess.run(put)
        out = [[int(sess.run(get)) for _ in range(6)], sess.run(many).tolist()]
        sess.run(q.close())
        out.append(sess.run(rest).tolist())
    return out


def shuffle_graph_seed(tf, folder):
    tf.set_random_seed(5)
    q = tf.RandomShuffleQueue(100, 0, [tf.int64], shapes=[[]])
    put, many = q.enqueue_many([list(range(20))]), q.dequeue_many(20)
    with _session(tf) as sess:
        sess.run(put)
        return sess.run(many).tolist()


def padding(tf, folder):
    q = tf.PaddingFIFOQueue(10, [tf.int32, tf.string], shapes=[[None, 2], [None]])
    x, s = tf.placeholder(tf.int32, [None, 2]), tf.placeholder(tf.string, [None])
    put, get = q.enqueue([x, s]), q.dequeue_many(3)
    with _session(tf) as sess:
        for n in (1, 3, 2):
            sess.run(put, {x: [[n, n]] * n, s: ["s"] * (4 - n)})
        found = sess.run(get)
    return [str(t.shape) for t in get] + [_plain(v) for v in found]


def priority(tf, folder):
    q = tf.PriorityQueue(10, [tf.string], shapes=[()])
    put, get = (
        q.enqueue_many([tf.constant([5, 1, 3], tf.int64), ["five", "one", "three"]]),
        q.dequeue(),
    )
    with _session(tf) as sess:
        sess.run(put)
        return [[int(p), s.decode()] for p, s in (sess.run(get) for _ in range(3))]


def named(tf, folder):
    q = tf.FIFOQueue(4, [tf.int32, tf.float32], shapes=[[], []], names=["i", "f"])
    put, get = q.enqueue({"f": 2.5, "i": 4}), q.dequeue()
    with _session(tf) as sess:
        sess.run(put)
        found = sess.run(get)
    return sorted((k, float(v)) for k, v in found.items())


def from_list(tf, folder):
    queues = [tf.FIFOQueue(4, tf.float32, shapes=[[]]) for _ in range(2)]
    index = tf.placeholder(tf.int32, [])
    chosen = tf.QueueBase.from_list(index, queues)
    put, sizes = chosen.enqueue(1.0), [q.size() for q in queues]
    with _session(tf) as sess:
        sess.run(put, {index: 1})
        return [int(n) for n in sess.run(sizes)]


def refused(tf, folder):
    out = []
    q = tf.FIFOQueue(4, tf.float32, shapes=[[2]])
    x = tf.placeholder(tf.float32)
    loose = tf.FIFOQueue(4, tf.float32)
    for make in (
        lambda: q.enqueue([[1.0]]),
        lambda: q.enqueue({"a": 1.0}),
        lambda: tf.FIFOQueue(4, tf.float32, shapes=[[None]]),
        lambda: tf.QueueBase.from_list(0, []),
        lambda: tf.PaddingFIFOQueue(4, [tf.int32] * 2, shapes=[[None]]),
        lambda: tf.train.shuffle_batch([x], 2, 4, 4),
        lambda: tf.train.batch([x], 2),
        lambda: tf.train.limit_epochs(x, 0),
        lambda: tf.train.string_input_producer([]),
        lambda: tf.train.input_producer(x),
        lambda: tf.train.QueueRunner(q),
        lambda: tf.train.start_queue_runners(),
    ):
        try:
            make()
            out.append("fine")
        except (ValueError, TypeError) as error:
            out.append(type(error).__name__)
    put, many = q.enqueue(x), loose.dequeue_many(1)
    with _session(tf) as sess:
        try:
            sess.run(put, {x: [1.0, 2.0, 3.0]})
        except tf.errors.OpError as error:
            out.append(type(error).__name__)
        out.append(_caught(tf, sess, many))
    return out


def _drain(tf, tensors, limit=100):
    out = []
    with _session(tf) as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        try:
            while not coord.should_stop() and len(out) < limit:
                out.append([_plain(v) for v in sess.run(tensors)])
        except tf.errors.OutOfRangeError:
            out.append("end")
        finally:
            coord.request_stop()
        coord.join(threads)
    return out


def _plain(value):
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, bytes):
        return os.path.basename(value.decode("latin-1"))
    return [_plain(v) for v in value] if isinstance(value, list) else value


def _files(tf, folder):
    for i in range(3):
        with open(os.path.join(folder, "t%d.txt" % i), "wb") as f:
            f.write(b"head %d\n" % i + b"".join(b"line %d %d\r\n" % (i, n) for n in range(3)))
        with open(os.path.join(folder, "f%d.bin" % i), "wb") as f:
            f.write(b"HH" + bytes(range(i * 10, i * 10 + 9)) + b"F")
        with tf.python_io.TFRecordWriter(os.path.join(folder, "r%d.rec" % i)) as writer:
            for n in range(3):
                writer.write(b"x" * (n + i))
    return {
        k: [os.path.join(folder, n % i) for i in range(3)]
        for k, n in (("text", "t%d.txt"), ("fixed", "f%d.bin"), ("records", "r%d.rec"))
    }


def text_lines(tf, folder):
    names = tf.train.string_input_producer(
        _files(tf, folder)["text"], num_epochs=2, shuffle=True, seed=3
    )
    reader = tf.TextLineReader(skip_header_lines=1)
    key, value = reader.read(names)
    return _drain(tf, [key, value])


def fixed_records(tf, folder):
    names = tf.train.string_input_producer(_files(tf, folder)["fixed"], num_epochs=1, shuffle=False)
    reader = tf.FixedLengthRecordReader(3, header_bytes=2, footer_bytes=1)
    key, value = reader.read(names)
    return _drain(tf, [key, tf.decode_raw(value, tf.uint8)])


def hop_records(tf, folder):
    names = tf.train.string_input_producer(_files(tf, folder)["fixed"], num_epochs=1, shuffle=False)
    key, value = tf.FixedLengthRecordReader(3, header_bytes=2, footer_bytes=1, hop_bytes=2).read(
        names
    )
    return _drain(tf, [key, tf.decode_raw(value, tf.uint8)])


def tf_records(tf, folder):
    names = tf.train.string_input_producer(
        _files(tf, folder)["records"], num_epochs=1, shuffle=False
    )
    reader = tf.TFRecordReader()
    keys, values = reader.read_up_to(names, 2)
    out = [str(keys.shape), str(values.shape)]
    return out + _drain(tf, [keys, values])


def whole_files(tf, folder):
    names = tf.train.string_input_producer(_files(tf, folder)["text"], num_epochs=1, shuffle=False)
    key, value = tf.WholeFileReader().read(names)
    return _drain(tf, [key, tf.string_split([value]).values])


def reader_counts(tf, folder):
    q = tf.FIFOQueue(9, tf.string, shapes=[()])
    reader = tf.IdentityReader()
    key, value = reader.read(q)
    produced, completed = reader.num_records_produced(), reader.num_work_units_completed()
    out = []
    with _session(tf) as sess:
        sess.run(q.enqueue_many([["a", "b", "c"]]))
        for _ in range(2):
            out.append([_plain(v) for v in sess.run([key, value])])
        out += [int(v) for v in sess.run([produced, completed])]
        sess.run(reader.reset())
        out += [int(v) for v in sess.run([produced, completed])]
    return out


def batches(tf, folder):
    i = tf.train.range_input_producer(7, num_epochs=2, shuffle=True, seed=2).dequeue()
    x, y = tf.train.batch([i, tf.to_float(i) * 2.0], 4, allow_smaller_final_batch=True)
    return [str(x.shape), x.op.name, y.name] + _drain(tf, [x, y])


def batches_whole(tf, folder):
    i = tf.train.range_input_producer(7, num_epochs=1, shuffle=False).dequeue()
    found = tf.train.batch({"b": i, "a": [i, i]}, 3)
    return _drain(tf, [found["a"], found["b"]])


def batch_pad(tf, folder):
    i = tf.train.range_input_producer(5, num_epochs=1, shuffle=False).dequeue()
    return _drain(tf, [tf.train.batch([tf.range(i)], 2, dynamic_pad=True)])


def batch_many(tf, folder):
    rows = tf.train.input_producer(
        [[1, 2], [3, 4], [5, 6]], num_epochs=2, shuffle=False
    ).dequeue_many(3)
    return _drain(tf, [tf.train.batch([rows], 2, enqueue_many=True)])


def keep_some(tf, folder):
    i = tf.train.range_input_producer(10, num_epochs=1, shuffle=False).dequeue()
    return _drain(tf, [tf.train.maybe_batch([i], tf.equal(i % 2, 0), 2)])


def slices(tf, folder):
    a, b = tf.train.slice_input_producer([[10, 20, 30], ["x", "y", "z"]], num_epochs=2, seed=4)
    return _drain(tf, [a, b])


def shuffled(tf, folder):
    """All elements are in the queue before the first batch, so that the order is defined."""
    q = tf.train.range_input_producer(6, num_epochs=1, shuffle=False)
    x = tf.train.shuffle_batch([q.dequeue()], 2, capacity=50, min_after_dequeue=6, seed=1)
    return [str(x.shape), x.op.name] + sorted(v for row in _drain(tf, [x])[:-1] for v in row[0])


def taken_before_given(tf, folder):
    """One run holds a dequeue, what uses it, and the enqueue that it waits for."""
    q = tf.FIFOQueue(3, tf.float32, shapes=[[]])
    doubled = q.dequeue() * 2
    more = q.enqueue(3.0)
    with tf.Session() as sess:
        first = sess.run([doubled, more])[0]
        second = sess.run([more, doubled])[1]
        return [float(first), float(second), int(sess.run(q.size()))]


def given_when_there_is_room(tf, folder):
    """The queue is full: the enqueue waits for the dequeue of the same run."""
    q = tf.FIFOQueue(1, tf.int32, shapes=[[]])
    n = tf.Variable(0)
    x = tf.placeholder(tf.int32, [])
    out = q.dequeue() + 10
    more = q.enqueue(x)
    with tf.control_dependencies([more]):
        count = tf.assign_add(n, 1)
    with tf.Session() as sess:
        sess.run(n.initializer)
        sess.run(count, {x: 7})
        found = [int(sess.run([out, count], {x: i})[0]) for i in range(4)]
        return found + [int(sess.run(n)), int(sess.run(q.size()))]


def passed_on(tf, folder):
    """From one queue to the next in one run, the last dequeue built first."""
    a, b = (tf.FIFOQueue(4, tf.int32, shapes=[[]]) for _ in range(2))
    last = b.dequeue()
    middle = b.enqueue(a.dequeue() + 1)
    first = a.enqueue(5)
    with tf.Session() as sess:
        return [int(sess.run([last, middle, first])[0]) for _ in range(3)]


PROGRAMS = [
    taken_before_given,
    given_when_there_is_room,
    passed_on,
    fifo,
    shuffle_queue,
    shuffle_graph_seed,
    padding,
    priority,
    named,
    from_list,
    refused,
    text_lines,
    fixed_records,
    hop_records,
    tf_records,
    whole_files,
    reader_counts,
    batches,
    batches_whole,
    batch_pad,
    batch_many,
    keep_some,
    slices,
    shuffled,
]
