"""Programs with summaries.

Make_summaries.py records what TensorFlow 1.15 gives. Python 3.7 syntax.
"""

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
        writer.reopen()
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="t", simple_value=2.0)]), 4)
        writer.close()
    return out


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
