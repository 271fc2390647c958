"""HParams, preprocessing, contrib metrics and losses.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import json
import os
import tempfile

import numpy as np

TEXTS = ["This is a cat's photo", "NASA is not aNAME isIt", "", "a well-known word is a word"]


def vocabulary_processor(tf):
    v = tf.contrib.learn.preprocessing.VocabularyProcessor(4)
    found = [np.array(list(v.fit_transform(TEXTS))), len(v.vocabulary_)]
    found.append(list(v.reverse(list(v.transform(["is a zebra word"])))))
    found.append([v.vocabulary_.get("word"), v.vocabulary_.get("none"), v.max_document_length])
    frequent = tf.contrib.learn.preprocessing.VocabularyProcessor(5, min_frequency=1)
    found.append(np.array(list(frequent.fit_transform(TEXTS))))
    found.append(sorted(frequent.vocabulary_._mapping.items()))
    split = tf.contrib.learn.preprocessing.VocabularyProcessor(
        3, tokenizer_fn=lambda docs: (d.split(" ") for d in docs)
    )
    found.append(np.array(list(split.fit(TEXTS).transform(TEXTS))))
    path = os.path.join(tempfile.mkdtemp(), "vocab")
    v.save(path)
    again = tf.contrib.learn.preprocessing.VocabularyProcessor.restore(path)
    found.append(np.array(list(again.transform(TEXTS))))
    return found


def byte_and_categorical_processors(tf):
    pre = tf.contrib.learn.preprocessing
    b = pre.ByteProcessor(6)
    rows = list(b.fit_transform(["abc", "\u00e4bcdefg", b"x"]))
    c = pre.CategoricalProcessor(min_frequency=0, share=True)
    table = list(c.fit_transform([["a", 1, "b"], ["b", 2, float("nan")], ["a", 1, "b"]]))
    vocabulary = pre.CategoricalVocabulary(support_reverse=True)
    for word in ("x", "y", "x", "z", "x", "y"):
        vocabulary.add(word)
    vocabulary.trim(1, max_frequency=3)
    return [rows, list(b.reverse(rows)), table, len(vocabulary), vocabulary.reverse(1)]


def _error(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except Exception as e:
        return [type(e).__name__, str(e)]


def hparams(tf):
    HParams = tf.contrib.training.HParams
    h = HParams(rate=0.1, units=3, act="relu", flag=True, sizes=[1, 2, 3], words=["a", "b"])
    found = [str(h.values()), repr(h), str(h), h.to_json(sort_keys=True), "rate" in h, "x" in h]
    h.parse("rate=3,units=7,act=tanh,flag=false,sizes=[4,5],words=[c]")
    found.append(sorted(h.values().items()))
    h.parse_json('{"rate": 2, "sizes": [9]}')
    h.override_from_dict({"units": 5})
    h.add_hparam("extra", "e")
    h.del_hparam("words")
    h.set_hparam("flag", True)
    found.append([type(h.rate).__name__, sorted(h.values().items())])
    found.append([h.get("rate"), h.get("none"), h.get("none", 3), h.get("units", 9)])
    proto = h.to_proto()
    found.append([sorted(proto.hparam), proto.SerializeToString().count(b"tanh")])
    found.append(sorted(HParams(hparam_def=proto).values().items()))
    return found


def hparams_errors(tf):
    HParams, parse = tf.contrib.training.HParams, tf.contrib.training.parse_values
    h = HParams(rate=0.1, units=3, sizes=[1, 2])
    return [
        _error(h.parse, "rate=x"),
        _error(h.parse, "none=1"),
        _error(h.parse, "units=1,units=2"),
        _error(h.parse, "sizes=3"),
        _error(h.parse, "units=[1,2]"),
        _error(h.parse, "units"),
        _error(h.parse, "units=1.5"),
        _error(h.set_hparam, "units", 1.5),
        _error(h.set_hparam, "rate", True),
        _error(h.get, "units", "a"),
        _error(h.add_hparam, "units", 3),
        _error(h.add_hparam, "empty", []),
        _error(parse, "a[1]=3,b=[1,2],c=true,d=x", {"a": int, "b": float, "c": bool}, True),
        _error(parse, "a[1]=3,a[1]=4", {"a": int}),
        _error(parse, "a[1]=[3]", {"a": int}),
        _error(parse, "a=1,a[1]=4", {"a": int}),
    ]


def placement_strategies(tf):
    t = tf.contrib.training
    with tf.device(
        tf.train.replica_device_setter(
            ps_tasks=3, ps_strategy=t.GreedyLoadBalancingStrategy(3, t.byte_size_load_fn)
        )
    ):
        variables = [tf.Variable(np.zeros(n, np.float32)) for n in (5, 1, 2, 3, 1, 10)]
    with tf.device(tf.train.replica_device_setter(ps_tasks=3, ps_strategy=t.RandomStrategy(3, 7))):
        more = [tf.Variable(0.0) for _ in range(8)]
    return [v.device for v in variables + more]


def _stream(tf, build, runs=2):
    value, update = build
    found = [value.name, [v.name for v in tf.local_variables()], []]
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        for _ in range(runs):
            found[2].append([sess.run(update), sess.run(value)])
    return found


def _numbers(*shape, seed=0):
    return np.random.RandomState(seed).uniform(size=shape).astype(np.float32)


def _bits(*shape, seed=1):
    return np.random.RandomState(seed).randint(0, 2, shape)


METRICS = [
    "streaming_accuracy streaming_precision streaming_recall streaming_true_positives",
    "streaming_false_positives streaming_false_negatives streaming_true_negatives",
    "streaming_false_positive_rate streaming_false_negative_rate",
]


def streaming_counts(tf):
    m = tf.contrib.metrics
    predictions, labels = tf.constant(_bits(3, 4)), tf.constant(_bits(3, 4, seed=2))
    weights = tf.constant(_numbers(3, 4))
    found = {}
    for name in " ".join(METRICS).split():
        found[name] = _stream(tf, getattr(m, name)(predictions, labels, weights))
    return found


def streaming_numbers(tf):
    m = tf.contrib.metrics
    predictions, labels = tf.constant(_numbers(3, 4)), tf.constant(_bits(3, 4, seed=2))
    reals = tf.constant(_numbers(3, 4, seed=5))
    found = {}
    for name in ["streaming_auc", "streaming_dynamic_auc"]:
        args = (predictions, labels) if name == "streaming_auc" else (labels, predictions)
        found[name] = _stream(tf, getattr(m, name)(*args), runs=3)
    for name in [
        "streaming_covariance",
        "streaming_pearson_correlation",
        "streaming_mean_absolute_error",
        "streaming_mean_squared_error",
        "streaming_root_mean_squared_error",
    ]:
        found[name] = _stream(tf, getattr(m, name)(predictions, reals))
    found["mean"] = _stream(tf, m.streaming_mean(reals))
    found["tensor"] = _stream(tf, m.streaming_mean_tensor(reals))
    found["less"] = _stream(tf, m.streaming_percentage_less(reals, 0.5))
    found["cosine"] = _stream(tf, m.streaming_mean_cosine_distance(predictions, reals, 1))
    found["relative"] = _stream(tf, m.streaming_mean_relative_error(predictions, reals, reals + 1))
    found["concat"] = _stream(tf, m.streaming_concat(reals), runs=4)
    found["concat_limited"] = _stream(tf, m.streaming_concat(reals, axis=1, max_size=9), runs=4)
    found["count"] = _stream(tf, m.count(reals))
    return found


def streaming_thresholds(tf):
    m = tf.contrib.metrics
    predictions, labels = tf.constant(_numbers(3, 4)), tf.constant(_bits(3, 4, seed=2))
    found = {}
    for kind in [
        "true_positives",
        "false_positives",
        "false_negatives",
        "true_negatives",
        "precision",
        "recall",
        "false_positive_rate",
        "false_negative_rate",
    ]:
        metric = getattr(m, "streaming_%s_at_thresholds" % kind)
        found[kind] = _stream(tf, metric(predictions, labels, [0.2, 0.5, 0.8]))
    found["points"] = _stream(tf, m.streaming_curve_points(labels, predictions, num_thresholds=5))
    found["spec"] = _stream(tf, m.streaming_specificity_at_sensitivity(predictions, labels, 0.5))
    found["sens"] = _stream(tf, m.streaming_sensitivity_at_specificity(predictions, labels, 0.5))
    found["rap"] = _stream(tf, m.recall_at_precision(labels, predictions, 0.5))
    found["par"] = _stream(tf, m.precision_at_recall(labels, predictions, 0.5))
    found["f1"] = _stream(tf, m.f1_score(labels, predictions))
    return found


def ranking_and_tables(tf):
    m = tf.contrib.metrics
    predictions = tf.constant(_numbers(4, 5))
    labels = tf.constant(np.array([[1], [2], [0], [4]], np.int64))
    classes = tf.constant([0, 1, 2, 1, 0])
    found = {}
    for kind in ["recall", "precision", "average_precision"]:
        metric = getattr(m, "streaming_sparse_%s_at_k" % kind)
        found[kind] = _stream(tf, metric(predictions, labels, 2))
    found["recall_at_k"] = _stream(tf, m.streaming_recall_at_k(predictions, labels[:, 0], 2))
    found["iou"] = _stream(tf, m.streaming_mean_iou(classes, classes[::-1], 3))
    found["kappa"] = _stream(tf, m.cohen_kappa(classes, classes[::-1], 3))
    with tf.Session() as sess:
        found["matrix"] = sess.run(m.confusion_matrix(classes, classes[::-1]))
        found["accuracy"] = sess.run(m.accuracy(classes, classes[::-1], weights=[1, 2, 3, 4, 5.0]))
        names, updates = m.aggregate_metric_map({"a": m.streaming_mean(predictions)})
        sess.run(tf.local_variables_initializer())
        found["map"] = sess.run([updates, names])
    return found


def contrib_losses(tf):
    losses = tf.contrib.losses
    logits, onehot = (
        tf.constant(_numbers(3, 4)),
        tf.constant(np.eye(4, dtype=np.float32)[[0, 2, 1]]),
    )
    reals = tf.constant(_numbers(3, 4, seed=5))
    weights = tf.constant([1.0, 0.0, 2.0])
    built = [
        losses.absolute_difference(logits, reals, weights[:, None]),
        losses.mean_squared_error(logits, reals),
        losses.mean_pairwise_squared_error(logits, reals),
        losses.log_loss(logits, onehot, weights[:, None]),
        losses.hinge_loss(logits, onehot),
        losses.softmax_cross_entropy(logits, onehot, weights, label_smoothing=0.1),
        losses.sparse_softmax_cross_entropy(logits, tf.constant([0, 2, 1])),
        losses.sigmoid_cross_entropy(logits, onehot, 0.5),
        losses.cosine_distance(tf.nn.l2_normalize(logits, 1), tf.nn.l2_normalize(reals, 1), axis=1),
    ]
    learned = losses.metric_learning
    ids = tf.constant([0, 1, 0])
    built += [
        learned.contrastive_loss(tf.constant([1, 0, 1]), logits, reals),
        learned.triplet_semihard_loss(ids, tf.nn.l2_normalize(logits, 1)),
        learned.npairs_loss(tf.constant([0, 1, 2]), logits, reals),
        learned.lifted_struct_loss(ids, logits),
    ]
    total = losses.get_total_loss()
    with tf.Session() as sess:
        found = [sess.run(built), sess.run(total)]
        found.append(sess.run(tf.gradients(total, [logits])))
    return [found, [x.name for x in losses.get_losses()], [x.name for x in built]]


def train_op(tf):
    t = tf.contrib.training
    w = tf.get_variable("w", [3], initializer=tf.ones_initializer())
    loss = tf.reduce_sum(tf.square(w - [1.0, 2.0, 4.0]))
    tf.losses.add_loss(loss)
    op = t.create_train_op(
        loss,
        tf.train.GradientDescentOptimizer(0.1),
        transform_grads_fn=t.clip_gradient_norms_fn(0.5),
    )
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        values = [sess.run(op) for _ in range(3)]
        values.append(sess.run([w, tf.train.get_global_step()]))
    stop = tf.train.StopAtStepHook(num_steps=4)
    quiet = {"save_summaries_steps": None, "save_checkpoint_secs": None}
    final = t.train(op, None, hooks=[stop], **quiet)
    return [op.name, values, final, [v.name for v in tf.global_variables()]]


def signal_and_stateless(tf):
    s, r = tf.contrib.signal, tf.contrib.stateless
    wave = tf.constant(_numbers(32))
    seed = [3, 5]
    with tf.Session() as sess:
        return sess.run(
            [
                s.hann_window(8),
                s.hamming_window(7),
                s.frame(wave, 8, 4),
                tf.abs(s.stft(wave, 8, 4)),
                s.inverse_stft(s.stft(wave, 8, 4), 8, 4),
                s.overlap_and_add(s.frame(wave, 8, 4), 4),
                s.linear_to_mel_weight_matrix(4, 9, 8000.0, 100.0, 3000.0),
                s.mfccs_from_log_mel_spectrograms(tf.constant(_numbers(2, 6))),
                r.stateless_random_uniform([3], seed),
                r.stateless_random_normal([3], seed),
                r.stateless_truncated_normal([3], seed),
                r.stateless_multinomial(tf.zeros([1, 5]), 4, seed),
            ]
        )


def projector(tf):
    p = tf.contrib.tensorboard.plugins.projector
    folder = tempfile.mkdtemp()
    config = p.ProjectorConfig()
    embedding = config.embeddings.add()
    embedding.tensor_name = "words"
    embedding.metadata_path = "meta.tsv"
    embedding.sprite.single_image_dim.extend([28, 28])
    p.visualize_embeddings(tf.summary.FileWriter(folder), config)
    with open(os.path.join(folder, "projector_config.pbtxt")) as f:
        return f.read()


def missing_op_library(tf):
    return _error(tf.load_op_library, "/nonexistent/ops.so")[0]


def mode_keys(tf):
    keys = tf.contrib.learn.ModeKeys
    return [keys.TRAIN, keys.EVAL, keys.INFER]


def _timeline(tf):
    if tf.__name__ == "tensorflow":
        from tensorflow.python.client import timeline
    else:
        from headrace.profiler import timeline
    return timeline.Timeline


def timeline(tf):
    stats = tf.RunMetadata().step_stats
    device = stats.dev_stats.add(device="/job:localhost/replica:0/task:0/device:CPU:0")
    rows = [
        ("a", 100, 10, "a = Const()", 4),
        ("b", 105, 20, "b = Add(a, a)", 8),
        ("c", 111, 5, "c = Mul(a, b:1, none)", 16),
        ("odd", 200, 3, "no label", 0),
    ]
    for name, start, duration, label, size in rows:
        node = device.node_stats.add(
            node_name=name,
            all_start_micros=start,
            all_end_rel_micros=duration,
            timeline_label=label,
        )
        for slot in range(2):
            memory = node.output.add(slot=slot).tensor_description.allocation_description
            memory.requested_bytes = size
            memory.allocator_name = "cpu"
    gpu = stats.dev_stats.add(device="/device:GPU:0/stream:all")
    gpu.node_stats.add(node_name="k:MatMul", all_start_micros=101, all_end_rel_micros=9)
    plain = _timeline(tf)(stats).generate_chrome_trace_format()
    full = _timeline(tf)(stats).analyze_step_stats()
    most = full.allocator_maximums["cpu"]
    memory = full.chrome_trace.format_to_string()
    events = [e for e in json.loads(memory)["traceEvents"] if e["ph"] != "O"]
    return [plain, events, most.timestamp, most.num_bytes, sorted(most.tensors)]
