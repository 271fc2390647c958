"""Programs with summaries.

Make_summaries.py records what TensorFlow 1.15 gives. Python 3.7 syntax.
"""

import time

import numpy as np


def run(tf, folder):
    """Tags, names, collections and serialized summaries of small graphs, by name."""
    out = {}
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None])
        made = [
            tf.summary.scalar("loss", tf.reduce_sum(x)),
            tf.summary.scalar("loss", tf.reduce_max(x)),
            tf.summary.scalar("a b/c", tf.cast(tf.size(x), tf.int32), family="sizes"),
            tf.summary.histogram("values", x),
            tf.summary.histogram("empty", x[:0]),
        ]
        with tf.name_scope("train"):
            made.append(tf.summary.scalar("rate", tf.constant(0.5, tf.float64)))
        alone = tf.summary.scalar("alone", 1.0, collections=["mine"])
        everything = tf.summary.merge_all()
        two = tf.summary.merge(made[:2], name="two")
        feed = {x: np.array([-3.0, -0.5, 0.0, 0.0, 1e-14, 2.5, 2.6, 1e21], np.float32)}
        out["names"] = [t.name for t in made] + [alone.name, everything.name, two.name]
        out["collections"] = [[t.name for t in tf.get_collection(k)] for k in ("summaries", "mine")]
        out["values"] = [_shown(tf, v) for v in sess.run([everything, two, alone], feed)]
        out["nothing"] = tf.summary.merge_all("no such collection") is None
        for name, bad in (("nan", [np.nan]), ("infinity", [np.inf])):
            out[name] = _caught(tf, sess, made[3], {x: bad})
        same = tf.summary.merge([made[0], made[0]])
        out["twice"] = _caught(tf, sess, same, feed)
        writer = tf.summary.FileWriter(folder, graph)
        writer.add_summary(sess.run(two, feed), 3)
        writer.add_session_log(tf.SessionLog(status=tf.SessionLog.START), 1)
        writer.close()
        if not hasattr(tf, "HEADRACE_VERSION"):
            time.sleep(1.1)  # TensorFlow would overwrite a file of the same second
        writer.reopen()
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="t", simple_value=2.0)]), 4)
        writer.close()
    return out


def media(tf):
    """Summaries of images and sound: names, tags and the files in them, and errors."""
    rng = np.random.RandomState(0)
    out = {}
    pixels = rng.randint(0, 256, (4, 5, 7, 3)).astype(np.uint8)
    floats = rng.normal(size=(3, 6, 5, 1)).astype(np.float32)
    odd = np.abs(rng.normal(size=(2, 9, 4, 4))).astype(np.float32)
    odd[0, 0, 0, 1], odd[0, 3, 2, 0], odd[1] = np.nan, np.inf, 1e-9
    y, x = np.mgrid[:60, :80]
    smooth = np.stack([np.sin(x / 9.0 + k) * np.cos(y / 7.0) for k in range(3)], -1)[None]
    with tf.Graph().as_default(), tf.Session() as sess:
        made = [
            tf.summary.image("pixels", pixels),
            tf.summary.image("kept", tf.constant(pixels)),
            tf.summary.image("one", pixels, max_outputs=1, family="few"),
            tf.summary.image("floats", floats, 2),
            tf.summary.image("odd", odd),
            tf.summary.image("smooth", tf.constant(smooth, tf.float64)),
            tf.summary.image("half", tf.constant(floats, tf.float16)),
            tf.summary.image("smooth/bytes", np.round(smooth * 90 + 100).astype(np.uint8)),
            tf.summary.audio("mono", rng.normal(size=(2, 50)).astype(np.float32), 8000),
            tf.summary.audio("stereo", np.float32(rng.rand(2, 20, 2)), 44100.5, max_outputs=1),
            tf.summary.audio(
                "named", np.float32([[0.5 / 32768, -0.5 / 32768, 2]]), 0.2, family="f"
            ),
        ]
        out["media names"] = [m.name for m in made]
        out["media inputs"] = [i.name for m in made for i in m.op.inputs]
        out["media"] = [_files(tf, v) for v in sess.run(made)]
        shape = tf.placeholder_with_default(np.zeros((1, 2, 2, 3), np.float32), None)
        image = tf.summary.image("i", shape)
        for bad in ((2, 2), (1, 2, 2, 2), (1, 0, 2, 3)):
            out["media %s" % (bad,)] = _caught(tf, sess, image, {shape: np.zeros(bad, np.float32)})
        sound = tf.summary.audio("s", shape, 8000)
        for bad in ((2,), (1, 0), (1, 3, 0)):
            out["sound %s" % (bad,)] = _caught(tf, sess, sound, {shape: np.zeros(bad, np.float32)})
        slow = tf.summary.audio("r", np.zeros((1, 2), np.float32), 0.0)
        out["rate"] = _caught(tf, sess, slow, {})
        node = made[0].op.node_def
        out["bad_color"] = [int(v) for v in tf.make_ndarray(node.attr["bad_color"].tensor)]
    return out


def old_audio(tf):
    """AudioSummary, which only graphs of old producers may have."""
    with tf.Graph().as_default() as graph:
        tf.constant("old", name="tag")
        tf.constant([[0.25, 1.0]], tf.float32, name="clip")
    graph_def = graph.as_graph_def()
    graph_def.versions.producer = 10
    node = graph_def.node.add(name="sound", op="AudioSummary", input=["tag", "clip"])
    node.attr["sample_rate"].f = 8000.0
    node.attr["max_outputs"].i = 1
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.import_graph_def(graph_def, name="")
        return {"old audio": _files(tf, sess.run("sound:0"))}


def contrib(tf, folder):
    """Summary ops of tf.contrib.summary in a graph: names, results, files."""
    out = {}
    summary = tf.contrib.summary
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        step = tf.train.get_or_create_global_step()
        x = tf.placeholder(tf.float32, [None])
        writer = summary.create_file_writer(folder)
        out["contrib before"] = _refused(summary.initialize)
        with writer.as_default(), summary.record_summaries_every_n_global_steps(2):
            made = [
                summary.scalar("a b", tf.reduce_sum(x), family="sums"),
                summary.histogram("h", x),
                summary.image("i", tf.reshape(x, [1, 2, 2, 1]), max_images=1),
                summary.generic("g", x, step=5),
            ]
            with tf.name_scope("train"), summary.always_record_summaries():
                made.append(summary.audio("s", tf.reshape(x, [2, 2]), 8000.0, 2))
                made.append(summary.scalar("count", tf.size(x), step=step))
            with summary.never_record_summaries():
                made.append(summary.scalar("never", 1.0))
            sess.run(tf.global_variables_initializer())
            summary.initialize(graph=graph)
            flush = summary.flush()
        with summary.always_record_summaries():
            out["contrib no writer"] = type(summary.scalar("none", 1.0)).__name__
        operations = summary.all_summary_ops()
        out["contrib names"] = [m.name for m in made]
        out["contrib collected"] = [o.name for o in operations]
        out["contrib same"] = tf.summary.all_v2_summary_ops() == operations
        out["contrib results"] = []
        for i in range(3):
            results = sess.run(operations, {x: [1.0, 2.0, 3.0, i]})
            out["contrib results"].append([bool(r) for r in results])
            sess.run(step.assign_add(1))
        sess.run(flush)
        shared = tf.summary.FileWriter(folder, session=sess)
        shared.add_summary(tf.Summary(value=[tf.Summary.Value(tag="t", simple_value=2.0)]), 9)
        shared.close()
        out["contrib closed"] = _caught(tf, sess, flush, {})[0]
    out["contrib events"] = sorted(messages(tf, folder))  # TensorFlow's order varies within a run
    return out


def writers(tf, folder):
    """TF 2's tf.summary, eagerly and in a function."""
    out = {}
    rng = np.random.RandomState(0)
    writer = tf.summary.create_file_writer(folder)

    @tf.function
    def inside(x, step):
        tf.summary.scalar("inside", tf.reduce_sum(x), step=step)
        tf.summary.histogram("inside/h", x, step=step, buckets=3)
        return x + 1

    out["v2 none"] = bool(tf.summary.scalar("x", 1.0, step=0))
    with writer.as_default():
        out["v2 step"] = _refused(lambda: tf.summary.scalar("x", 1.0))
        for i in range(3):
            with tf.summary.record_if(lambda i=i: i != 1), tf.name_scope("scope"):
                out["v2 %d" % i] = bool(tf.summary.scalar("a", 1.5 * i, step=i, description="d"))
                tf.summary.histogram("h", np.arange(10.0), step=i)
                tf.summary.histogram("one", np.ones([4]), step=i, buckets=5)
                tf.summary.histogram("nothing", np.zeros([0]), step=i)
                tf.summary.image("i", rng.rand(4, 4, 5, 3), step=i)
                tf.summary.image("u", rng.randint(0, 255, (1, 3, 3, 1)).astype(np.uint8), step=i)
                tf.summary.audio("s", rng.rand(2, 40, 1).astype(np.float32), 8000, step=i)
                tf.summary.text("t", "hello", step=i)
                tf.summary.text("ts", ["a", "b"], step=i)
        for i in range(2):
            inside(tf.constant([1.0, 2.0, 4.0]), tf.constant(i, tf.int64))
        tf.summary.experimental.set_step(7)
        tf.summary.write("raw", tf.constant([[1, 2]], tf.int32))
        proto = tf.compat.v1.Summary(value=[{"tag": "pb", "simple_value": 1.0}])
        tf.summary.experimental.write_raw_pb(proto.SerializeToString())
        out["v2 get"] = tf.summary.experimental.get_step()
        tf.summary.experimental.set_step(None)
    writer.close()
    out["v2 closed"] = _refused(writer.as_default)
    with tf.summary.create_noop_writer().as_default():
        out["v2 noop"] = bool(tf.summary.scalar("x", 1.0, step=0))
    out["v2 events"] = messages(tf.compat.v1, folder)
    return out


def messages(tf, folder):
    """Kind, step, tags and a hash of the summary of every event in a folder."""
    import hashlib
    import os

    found = []
    for name in sorted(os.listdir(folder)):
        for event in tf.train.summary_iterator(os.path.join(folder, name)):
            data = event.summary.SerializeToString(deterministic=True)
            tags = [v.tag for v in event.summary.value]
            found.append(
                [event.WhichOneof("what"), event.step, tags, hashlib.md5(data).hexdigest()]
            )
    return found


def _refused(function):
    try:
        function()
    except (RuntimeError, ValueError) as error:
        return type(error).__name__
    return "no error"


def _files(tf, serialized):
    """Tag, numbers and hash of every file in a summary."""
    import hashlib

    found = []
    for v in tf.Summary.FromString(serialized).value:
        i, a = v.image, v.audio
        data = i.encoded_image_string or a.encoded_audio_string
        numbers = [i.height, i.width, i.colorspace]
        numbers += [a.sample_rate, a.num_channels, a.length_frames, a.content_type]
        found.append([v.tag, numbers, len(data), hashlib.md5(data).hexdigest()])
    return found


def events(tf, folder):
    """What stands in the event files of a folder, without times and graphs."""
    import os

    found = []
    for name in sorted(os.listdir(folder)):
        for event in tf.train.summary_iterator(os.path.join(folder, name)):
            kind = event.WhichOneof("what")
            tags = [v.tag for v in event.summary.value]
            found.append([kind, event.step, tags, [v.simple_value for v in event.summary.value]])
    return [e for e in found if e[0] != "meta_graph_def"]


def _caught(tf, sess, op, feed):
    try:
        sess.run(op, feed)
    except tf.errors.OpError as error:
        return [type(error).__name__, error.message.split("\n")[0].split(" [[")[0].strip()]
    return "no error"


def _shown(tf, serialized):
    summary = tf.Summary.FromString(serialized)
    return [
        [
            v.tag,
            v.simple_value,
            [
                v.histo.min,
                v.histo.max,
                v.histo.num,
                v.histo.sum,
                v.histo.sum_squares,
                list(v.histo.bucket_limit),
                list(v.histo.bucket),
            ],
        ]
        for v in summary.value
    ]
