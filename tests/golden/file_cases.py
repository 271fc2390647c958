"""SavedModels, datasets of files, MNIST's files, pictures, freezing, slim's training.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import gzip
import os
import shutil
import struct
import tempfile

import numpy as np

from tests.golden.inner_paths import inner


def _in_folder(run):
    folder = tempfile.mkdtemp()
    try:
        return run(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _model(tf):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    w = tf.get_variable("w", initializer=np.float32([[1.0], [2.0]]))
    return x, tf.matmul(x, w, name="y")


def _signature(tf, x, y):
    s = tf.saved_model
    info = s.utils.build_tensor_info
    return s.signature_def_utils.build_signature_def(
        inputs={"x": info(x)}, outputs={"y": info(y)},
        method_name=s.signature_constants.PREDICT_METHOD_NAME,
    )  # fmt: skip


def _loaded(tf, loader, path):
    with tf.Graph().as_default(), tf.Session() as sess:
        meta = loader(sess, [tf.saved_model.tag_constants.SERVING], path)
        key = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        signature = meta.signature_def[key]
        fed = {signature.inputs["x"].name: [[1.0, 1.0]]}
        value = sess.run(signature.outputs["y"].name, fed)
        return [value, signature.method_name, sorted(meta.signature_def)]


def saved_model(tf):
    def run(folder):
        path = os.path.join(folder, "model")
        x, y = _model(tf)
        builder = tf.saved_model.builder.SavedModelBuilder(path)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            key = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
            builder.add_meta_graph_and_variables(
                sess, [tf.saved_model.tag_constants.SERVING], {key: _signature(tf, x, y)}
            )
        builder.save()
        load = tf.saved_model.loader.load
        return [_loaded(tf, load, path), tf.saved_model.loader.maybe_saved_model_directory(path)]

    return _in_folder(run)


def saved_model_with_a_table(tf):
    """The entries of a table that changes are saved with the variables."""

    def run(folder):
        path = os.path.join(folder, "model")
        table = tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, -1, name="table")
        keys = tf.placeholder(tf.string, [None], name="keys")
        found = tf.identity(table.lookup(keys), name="found")
        tf.Variable(3.0, name="v")
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(table.insert(tf.constant(["a", "b"]), tf.constant([5, 6], tf.int64)))
            tf.saved_model.simple_save(sess, path, {"keys": keys}, {"found": found})
        with tf.Graph().as_default(), tf.Session() as sess:
            meta = tf.saved_model.loader.load(sess, ["serve"], path)
            given = {"keys:0": ["b", "a", "z"]}
            return [sess.run(["found:0", "v:0"], given), meta.saver_def.sharded]

    return _in_folder(run)


def saved_model_main_ops(tf):
    """main_op, legacy_init_op, both of them, and a second one for the same graph."""

    def run(folder):
        out = []
        for i, names in enumerate((["main_op"], ["legacy_init_op"], ["main_op", "legacy_init_op"])):
            path = os.path.join(folder, str(i))
            with tf.Graph().as_default(), tf.Session() as sess:
                v = tf.Variable(3.0, name="v")
                ops = {n: v.assign_add(10.0 ** (k + 1)).op for k, n in enumerate(names)}
                sess.run(tf.global_variables_initializer())
                builder = tf.saved_model.builder.SavedModelBuilder(path)
                builder.add_meta_graph_and_variables(sess, ["serve"], **ops)
                try:
                    out.append(builder.add_meta_graph(["again"], **ops))
                except ValueError as error:
                    out.append(str(error))
                builder.save()
            with tf.Graph().as_default(), tf.Session() as sess:
                meta = tf.saved_model.loader.load(sess, ["serve"], path)
                out.append([sess.run("v:0"), sorted(meta.collection_def)])
        return out

    return _in_folder(run)


def saved_model_inner(tf):
    def run(folder):
        path = os.path.join(folder, "model")
        below = "python.saved_model."
        constants = below + "signature_constants"
        key = inner(tf, constants, "DEFAULT_SERVING_SIGNATURE_DEF_KEY")
        tag = inner(tf, below + "tag_constants", "SERVING")
        info = inner(tf, below + "utils", "build_tensor_info")
        x, y = _model(tf)
        builder = inner(tf, below + "builder", "SavedModelBuilder")(path)
        signature = inner(tf, below + "signature_def_utils", "build_signature_def")(
            {"x": info(x)}, {"y": info(y)}, inner(tf, constants, "PREDICT_METHOD_NAME")
        )
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            builder.add_meta_graph_and_variables(sess, [tag], {key: signature})
        builder.save(as_text=True)
        return _loaded(tf, inner(tf, below + "loader", "load"), path)

    return _in_folder(run)


def saved_model_simple(tf):
    def run(folder):
        path = os.path.join(folder, "model")
        x, y = _model(tf)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            tf.saved_model.simple_save(sess, path, {"x": x}, {"y": y})
        return [_loaded(tf, tf.saved_model.load, path), sorted(os.listdir(path))]

    return _in_folder(run)


def signature_constants(tf):
    c = tf.saved_model.signature_constants
    return [
        c.CLASSIFY_INPUTS, c.CLASSIFY_METHOD_NAME, c.CLASSIFY_OUTPUT_CLASSES,
        c.CLASSIFY_OUTPUT_SCORES, c.PREDICT_INPUTS, c.PREDICT_METHOD_NAME, c.PREDICT_OUTPUTS,
        c.REGRESS_INPUTS, c.REGRESS_METHOD_NAME, c.REGRESS_OUTPUTS,
        c.DEFAULT_SERVING_SIGNATURE_DEF_KEY, tf.saved_model.tag_constants.TRAINING,
        tf.saved_model.tag_constants.GPU,
    ]  # fmt: skip


def frozen(tf):
    def run(folder):
        _model(tf)
        prefix = os.path.join(folder, "model")
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            tf.train.Saver().save(sess, prefix)
            tf.train.write_graph(sess.graph_def, folder, "graph.pb", as_text=False)
        out = os.path.join(folder, "frozen.pb")
        inner(tf, "python.tools.freeze_graph", "freeze_graph")(
            os.path.join(folder, "graph.pb"), "", True, prefix, "y", "save/restore_all",
            "save/Const:0", out, True, "",
        )  # fmt: skip
        with open(out, "rb") as f:
            made = tf.GraphDef.FromString(f.read())
        with tf.Graph().as_default(), tf.Session() as sess:
            (again,) = tf.import_graph_def(made, return_elements=["y:0"], name="")
            value = sess.run(again, {"x:0": [[3.0, 1.0]]})
        return [[n.op for n in made.node], value]

    return _in_folder(run)


def _rows(tf, dataset, repeat=20):
    value = dataset.make_one_shot_iterator().get_next()
    rows = []
    with tf.Session() as sess:
        for _ in range(repeat):
            try:
                rows.append(sess.run(value))
            except tf.errors.OutOfRangeError:
                break
    return rows


def datasets(tf):
    d = tf.data.Dataset

    def numbers():
        for i in range(3):
            yield i, [i * 1.0, 2.0]

    return [
        _rows(tf, d.range(3)), _rows(tf, d.from_tensors([1, 2])),
        _rows(tf, d.from_tensor_slices(([1, 2, 3], [4, 5, 6])).batch(2)),
        _rows(tf, d.zip((d.range(2), d.range(5, 8)))),
        _rows(tf, d.from_generator(numbers, (tf.int32, tf.float32), ([], [2]))),
        _rows(tf, d.range(4).map(lambda x: x * 2, num_parallel_calls=tf.contrib.data.AUTOTUNE)),
        _rows(tf, tf.contrib.data.Counter(start=2, step=3), 3),
    ]  # fmt: skip


def dataset_files(tf):
    def run(folder):
        text = os.path.join(folder, "a.txt")
        table = os.path.join(folder, "b.csv")
        record = os.path.join(folder, "c.tfrecord")
        with open(text, "w") as f:
            f.write("one\ntwo\n")
        with open(table, "w") as f:
            f.write("h,i\n1,2.5\n3,4.5\n")
        with tf.python_io.TFRecordWriter(record) as writer:
            for row in (b"r1", b"r2"):
                writer.write(row)
        files = tf.data.Dataset.list_files(os.path.join(folder, "*"), shuffle=False)
        csv = tf.data.experimental.CsvDataset(table, [tf.int32, tf.float32], header=True)
        return [
            _rows(tf, tf.data.TextLineDataset(text).skip(1)),
            _rows(tf, tf.data.TFRecordDataset([record])),
            [os.path.basename(r) for r in _rows(tf, files)],
            _rows(tf, csv),
        ]  # fmt: skip

    return _in_folder(run)


def reinitialized(tf):
    first, second = tf.data.Dataset.range(2), tf.data.Dataset.range(5, 7)
    iterator = tf.data.Iterator.from_structure(first.output_types, first.output_shapes)
    value = iterator.get_next()
    a, b = iterator.make_initializer(first), iterator.make_initializer(second)
    with tf.Session() as sess:
        sess.run(a)
        got = [sess.run(value)]
        sess.run(b)
        return got + [sess.run(value), sess.run(value)]


def _mnist_files(folder, n=7):
    """Four files as MNIST's, with random digits."""
    rng = np.random.RandomState(3)
    for prefix in ("train", "t10k"):
        images = rng.randint(0, 256, (n, 28, 28)).astype(np.uint8)
        labels = rng.randint(0, 10, n).astype(np.uint8)
        with gzip.open(os.path.join(folder, prefix + "-images-idx3-ubyte.gz"), "wb") as f:
            f.write(struct.pack(">iiii", 2051, n, 28, 28) + images.tobytes())
        with gzip.open(os.path.join(folder, prefix + "-labels-idx1-ubyte.gz"), "wb") as f:
            f.write(struct.pack(">ii", 2049, n) + labels.tobytes())


def _read(read):
    def run(folder):
        _mnist_files(folder)
        sets = read(folder, one_hot=True, validation_size=2, seed=1)
        seen = []
        for part in (sets.train, sets.validation, sets.test):
            images, labels = part.next_batch(3)
            seen.append([part.num_examples, images.sum(1), labels.argmax(1), part.epochs_completed])
        images, labels = sets.train.next_batch(4, shuffle=False)
        return [seen, images.shape, str(images.dtype), labels.argmax(1)]

    return _in_folder(run)


def mnist_tutorial(tf):
    path = "examples.tutorials.mnist.input_data"
    fake = inner(tf, path, "read_data_sets")("", fake_data=True)
    images, labels = fake.train.next_batch(2, fake_data=True)
    return [_read(inner(tf, path, "read_data_sets")), len(images), images[0][:3], labels]


def mnist_learn(tf):
    path = "contrib.learn.python.learn.datasets.mnist"
    return _read(inner(tf, path, "read_data_sets"))


def downloaded(tf):
    def run(folder):
        with open(os.path.join(folder, "there"), "w") as f:
            f.write("x")
        path = "contrib.learn.python.learn.datasets.base"
        found = inner(tf, path, "maybe_download")("there", folder, "http://localhost/none")
        return os.path.basename(found)

    return _in_folder(run)


def pictures(tf):
    pixels = np.arange(48, dtype=np.uint8).reshape(4, 4, 3) * 5
    png = tf.image.encode_png(pixels)
    jpeg = tf.image.encode_jpeg(np.full((8, 8, 3), 90, np.uint8), quality=90)
    head = b"BM" + struct.pack(
        "<IHHIIiiHHIIiiII", 54 + 16, 0, 0, 54, 40, 2, 2, 1, 24, 0, 16, 0, 0, 0, 0
    )
    bmp = head + bytes(range(6)) + b"\0\0" + bytes(range(6, 12)) + b"\0\0"
    hsv = tf.constant([[[[0.1, 0.5, 0.7], [0.6, 0.2, 0.3]]]])
    with tf.Session() as sess:
        return sess.run([
            tf.image.decode_png(png), tf.image.decode_image(png),
            tf.reduce_mean(tf.cast(tf.image.decode_jpeg(jpeg), tf.float32)),
            tf.image.decode_bmp(bmp), tf.image.hsv_to_rgb(hsv),
        ])  # fmt: skip


def stacks(tf):
    """Names that were renamed before 1.0 and kept in inner modules."""
    scale = tf.contrib.layers.variance_scaling_initializer(factor=2.0, mode="FAN_AVG", seed=2)
    xavier = tf.contrib.slim.initializers.xavier_initializer(seed=3)
    last = tf.contrib.slim.utils.last_dimension(tf.placeholder(tf.float32, [2, 5]).shape)
    with tf.Session() as sess:
        return [sess.run([scale([3, 2]), xavier([2, 3])]), last]


def slim_training(tf):
    slim = tf.contrib.slim

    def run(folder):
        x = tf.constant(np.linspace(-1, 1, 12, dtype=np.float32).reshape(6, 2))
        y = slim.fully_connected(
            x, 1, activation_fn=None, weights_initializer=tf.constant_initializer(0.5),
            weights_regularizer=slim.l2_regularizer(0.1),
        )  # fmt: skip
        slim.losses.mean_squared_error(y, tf.ones([6, 1]))
        regular = slim.losses.get_regularization_losses()
        total = slim.losses.get_total_loss()
        op = slim.learning.create_train_op(total, tf.train.GradientDescentOptimizer(0.1))
        step = slim.get_or_create_global_step()
        slim.model_analyzer.analyze_vars(slim.get_model_variables())
        loss = slim.learning.train(
            op,
            folder,
            number_of_steps=3,
            save_summaries_secs=0,
            log_every_n_steps=100,
            save_interval_secs=0,  # a second thread that saves may end after the last save
        )
        values = {n: tf.train.load_variable(folder, n) for n, _ in tf.train.list_variables(folder)}
        return [loss, values, len(regular), slim.get_global_step().name, step.name]

    return _in_folder(run)


def slim_queues(tf):
    slim = tf.contrib.slim
    counter = tf.train.range_input_producer(4, shuffle=False).dequeue()
    queue = slim.prefetch_queue.prefetch_queue([counter], capacity=3)
    value = queue.dequeue()
    with tf.Session() as sess:
        with slim.queues.QueueRunners(sess):
            return [sess.run(value) for _ in range(6)]


def slim_data(tf):
    slim = tf.contrib.slim

    def run(folder):
        path = os.path.join(folder, "d.tfrecord")
        with tf.python_io.TFRecordWriter(path) as writer:
            for i in range(3):
                feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))
                made = tf.train.Example(features=tf.train.Features(feature={"n": feature}))
                writer.write(made.SerializeToString())
        decoder = slim.tfexample_decoder.TFExampleDecoder(
            {"n": tf.FixedLenFeature([], tf.int64)}, {"number": slim.tfexample_decoder.Tensor("n")}
        )
        data = slim.dataset.Dataset([path], tf.TFRecordReader, decoder, 3, {})
        provider = slim.dataset_data_provider.DatasetDataProvider(
            data, shuffle=False, num_readers=1
        )
        (value,) = provider.get(["number"])
        with tf.Session() as sess:
            with slim.queues.QueueRunners(sess):
                return [sess.run(value) for _ in range(5)]

    return _in_folder(run)


def inception(tf):
    inner_nets = inner(tf, "contrib.slim.nets", "inception")
    with tf.contrib.slim.arg_scope(inner_nets.inception_v3_arg_scope()):
        logits, ends = inner_nets.inception_v3(
            tf.placeholder(tf.float32, [1, 299, 299, 3]), num_classes=5, is_training=False
        )
    names = [v.name for v in tf.global_variables()]
    return [logits.shape.as_list(), sorted(ends), len(names), names[:3], names[-3:]]


def old_decoder(tf):
    cell = tf.nn.rnn_cell.GRUCell(2, kernel_initializer=tf.constant_initializer(0.3))
    inputs = [tf.constant([[1.0, 2.0]]), tf.constant([[0.5, -1.0]])]
    outputs, state = tf.contrib.legacy_seq2seq.rnn_decoder(inputs, tf.zeros([1, 2]), cell)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run([outputs, state]), [v.name for v in tf.global_variables()]]
