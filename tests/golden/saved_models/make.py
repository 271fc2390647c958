"""Makes small SavedModels with TensorFlow: ``python tests/golden/saved_models/make.py`` in TF
1.15's and in TF 2's environment.

TF 1.15 writes ``tf1`` (ref, resource and partitioned variables, an asset, an init operation, two
signatures) and ``tf1.meta``; TF 2 writes ``module`` (functions, a list of variables, control flow),
``keras`` (a sequential model) and ``lstm``.
"""

import json
import os
import shutil

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as T

HERE = os.path.dirname(os.path.abspath(__file__))


def fresh(name):
    path = os.path.join(HERE, name)
    shutil.rmtree(path, ignore_errors=True)
    return path


def note(name, values):
    with open(os.path.join(HERE, name + ".json"), "w") as out:
        json.dump({k: np.asarray(v).tolist() for k, v in values.items()}, out)


def make_tf1():
    tf = T.compat.v1
    words = os.path.join(HERE, "words.txt")
    with open(words, "w") as out:
        out.write("alpha\nbeta\n")
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.set_random_seed(3)
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        w = tf.get_variable("w", [3, 2])
        b = tf.get_variable("b", [2], use_resource=True, initializer=tf.ones_initializer())
        part = tf.get_variable("part", [4, 2], partitioner=tf.fixed_size_partitioner(2))
        step = tf.train.get_or_create_global_step()
        y = tf.identity(tf.matmul(x, w) + b + tf.reduce_sum(part), name="y")
        counted = tf.get_local_variable("counted", [], initializer=tf.zeros_initializer())
        _, looped = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a * 2.0), [0, y])
        looped = tf.identity(looped, name="looped")
        path = tf.constant(words, name="path")
        tf.read_file(path, name="text")
        tf.add_to_collection("mine", y)
        tf.add_to_collection("numbers", 3)
        session.run(tf.global_variables_initializer())
        main = tf.group(counted.assign(7.0), name="main")
        predict = tf.saved_model.signature_def_utils.predict_signature_def
        builder = tf.saved_model.builder.SavedModelBuilder(fresh("tf1"))
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            {
                "serving_default": predict({"x": x}, {"y": y}),
                "loop": predict({"x": x}, {"z": looped}),
            },
            assets_collection=[path],
            main_op=main,
        )
        builder.add_meta_graph(["train", "serve"])
        builder.save()
        saver = tf.train.Saver()
        saver.save(session, os.path.join(fresh("tf1_checkpoint"), "model"), global_step=step)
        feeds = {x: [[1.0, 2.0, 3.0]]}
        note("tf1", {"y": session.run(y, feeds), "z": session.run(looped, feeds)})
        del graph
    os.unlink(words)


def make_tf2():
    tf = T

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(np.arange(6, dtype="float32").reshape(3, 2) / 7, name="w")
            self.parts = [tf.Variable([1.0, 2.0]), tf.Variable([0.5, 0.25])]
            self.count = tf.Variable(0, dtype=tf.int64, trainable=False)

        @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
        def __call__(self, x):
            self.count.assign_add(1)
            y = tf.matmul(x, self.w)
            for part in self.parts:
                y = y + part
            if tf.reduce_sum(y) > 0.0:
                y = tf.nn.relu(y)
            else:
                y = -y
            i = tf.constant(0)
            while i < 3:
                y = y * 1.5
                i += 1
            return {"y": y, "n": self.count}

        @tf.function
        def add(self, a, b=2.0, twice=False):
            return (a + b) * 2.0 if twice else a + b

    model = Model()
    x = tf.constant([[1.0, 2.0, 3.0]])
    model.add(tf.constant(1.0))
    model.add(tf.constant(1.0), twice=True)
    tf.saved_model.save(model, fresh("module"), signatures={"serving_default": model.__call__})
    note(
        "module",
        {
            "y": model(x)["y"],
            "add": model.add(tf.constant(1.0)),
            "twice": model.add(tf.constant(1.0), twice=True),
        },
    )
    keras = tf.keras
    keras.utils.set_random_seed(1)
    net = keras.Sequential(
        [
            keras.layers.Input([8, 8, 1]),
            keras.layers.Conv2D(2, 3, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.MaxPool2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(3, activation="softmax"),
        ]
    )
    image = np.random.RandomState(0).rand(2, 8, 8, 1).astype("float32")
    net.export(fresh("keras"))
    note("keras", {"x": image, "y": net(image)})
    net = keras.Sequential(
        [keras.layers.Input([4, 3]), keras.layers.LSTM(2), keras.layers.Dense(1)]
    )
    series = np.random.RandomState(1).rand(2, 4, 3).astype("float32")
    net.export(fresh("lstm"))
    note("lstm", {"x": series, "y": net(series)})


if __name__ == "__main__":
    make_tf1() if T.__version__.startswith("1.") else make_tf2()
