"""Small programs with layers.

Each gives a dict of tensors. Run on TF 1.15 (make_layers.py) and on Headrace.
"""

import numpy as np


def numbers(*shape, seed=0):
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def dense_plain(tf):
    return {"y": tf.layers.dense(tf.constant(numbers(4, 5)), 3)}


def dense_named_and_reused(tf):
    x = tf.constant(numbers(4, 5))
    a = tf.layers.dense(x, 3, activation=tf.nn.tanh, name="fc")
    b = tf.layers.dense(x, 3, activation=tf.nn.tanh, name="fc", reuse=True)
    c = tf.layers.dense(x, 3)
    d = tf.layers.dense(x, 3, use_bias=False)
    with tf.variable_scope("outer"):
        e = tf.layers.dense(x, 2, name="fc")
        f = tf.layers.dense(x, 2)
    with tf.variable_scope("outer", reuse=True):
        g = tf.layers.dense(x, 2, name="fc")
    with tf.variable_scope("outer", reuse=tf.AUTO_REUSE):
        h = tf.layers.dense(x, 2, name="fresh")
    return {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f, "g": g, "h": h}


def dense_rank_3_and_4(tf):
    x = tf.placeholder_with_default(numbers(2, 3, 5), [None, 3, 5])
    y = tf.layers.dense(x, 4, activation=tf.nn.relu)
    z = tf.layers.dense(
        tf.constant(numbers(2, 2, 2, 3)),
        4,
        kernel_initializer=tf.random_normal_initializer(0.0, 0.02),
    )
    return {"y": y, "z": z}


def dense_regularized(tf):
    reg = tf.contrib.layers.l2_regularizer(0.1)
    x = tf.constant(numbers(4, 5))
    a = tf.layers.dense(
        x,
        3,
        kernel_regularizer=reg,
        bias_regularizer=tf.contrib.layers.l1_regularizer(0.2),
        name="r",
    )
    b = tf.layers.dense(x, 3, kernel_regularizer=reg, name="r", reuse=True)
    c = tf.layers.dense(
        x, 3, activity_regularizer=lambda t: 0.01 * tf.reduce_sum(tf.abs(t)), name="s"
    )
    with tf.variable_scope("v", regularizer=reg):
        d = tf.layers.dense(x, 2)
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    return {
        "a": a,
        "b": b,
        "c": c,
        "d": d,
        "total": tf.losses.get_regularization_loss(),
        "n": tf.constant(len(losses)),
    }


def dense_class_called_twice(tf):
    layer = tf.layers.Dense(3, activation="relu", kernel_initializer="he_normal", name="shared")
    a = layer(tf.constant(numbers(4, 5)))
    b = layer(tf.constant(numbers(2, 5, seed=1)))
    assert layer.scope_name == "shared"
    assert [v.name for v in layer.trainable_variables] == ["shared/kernel:0", "shared/bias:0"]
    return {"a": a, "b": b}


def dense_scope_defaults(tf):
    with tf.variable_scope("s", initializer=tf.constant_initializer(0.5), reuse=tf.AUTO_REUSE):
        a = tf.layers.dense(tf.constant(numbers(2, 3)), 2, name="d", trainable=False)
        b = tf.layers.dense(tf.constant(numbers(2, 3)), 2, name="d")
    return {"a": a, "b": b}


def dense_in_resource_scope(tf):
    with tf.variable_scope("s", use_resource=True):
        return {"a": tf.layers.dense(tf.constant(numbers(2, 3)), 2)}


def dense_partitioned(tf):
    with tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(2)):
        return {
            "a": tf.layers.dense(tf.constant(numbers(2, 4)), 2, kernel_regularizer=tf.nn.l2_loss)
        }


def conv_layers(tf):
    x = tf.constant(numbers(2, 9, 9, 3))
    a = tf.layers.conv2d(x, 4, 3, padding="same", activation=tf.nn.relu)
    b = tf.layers.conv2d(
        a, 5, [3, 2], strides=(2, 2), name="second", bias_initializer=tf.ones_initializer()
    )
    s = tf.constant(numbers(2, 9, 3))
    c = tf.layers.conv1d(s, 4, 3, strides=2)
    d = tf.layers.conv3d(tf.constant(numbers(1, 4, 4, 4, 2)), 3, 2, use_bias=False)
    e = tf.layers.conv1d(s, 4, 3, padding="causal") if False else c
    return {"a": a, "b": b, "c": c, "d": d, "e": e}


def conv_dilated(tf):
    x = tf.constant(numbers(2, 9, 9, 3))
    a = tf.layers.conv2d(x, 4, 3, padding="same", dilation_rate=2)
    b = tf.layers.conv2d(x, 4, 3, dilation_rate=(2, 2))
    c = tf.layers.conv1d(tf.constant(numbers(2, 12, 3)), 4, 3, padding="same", dilation_rate=2)
    return {"a": a, "b": b, "c": c}


def conv_transposed_layers(tf):
    x = tf.placeholder_with_default(numbers(2, 4, 4, 3), [None, 4, 4, 3])
    a = tf.layers.conv2d_transpose(x, 5, 3, strides=2, padding="same")
    b = tf.layers.conv2d_transpose(a, 2, [4, 4], strides=(2, 1), activation=tf.nn.tanh, name="up")
    c = tf.layers.conv3d_transpose(tf.constant(numbers(1, 2, 2, 2, 3)), 2, 2, strides=2)
    return {"a": a, "b": b, "c": c}


def conv_separable_layers(tf):
    a = tf.layers.separable_conv2d(
        tf.constant(numbers(2, 8, 8, 3)), 4, 3, depth_multiplier=2, activation=tf.nn.relu
    )
    b = tf.layers.separable_conv2d(
        tf.constant(numbers(2, 8, 8, 3)), 4, 3, strides=2, padding="same", use_bias=False
    )
    c = tf.layers.separable_conv1d(tf.constant(numbers(2, 8, 3)), 4, 3)
    return {"a": a, "b": b, "c": c}


def pooling_layers(tf):
    x, s = tf.constant(numbers(2, 7, 7, 3)), tf.constant(numbers(2, 7, 3))
    v = tf.constant(numbers(1, 5, 5, 5, 2))
    return {
        "a": tf.layers.max_pooling2d(x, 2, 2),
        "b": tf.layers.average_pooling2d(x, [3, 2], (2, 1), padding="same"),
        "c": tf.layers.max_pooling1d(s, 2, 2),
        "d": tf.layers.average_pooling1d(s, 3, 1, padding="same", name="avg"),
        "e": tf.layers.max_pooling3d(v, 2, 2),
        "f": tf.layers.average_pooling3d(v, 2, 2),
        "g": tf.layers.MaxPooling2D(2, 2)(x),
        "h": tf.layers.max_pooling1d(s, 2, 2, data_format="channels_first"),
    }


def dropout_and_flatten(tf):
    x = tf.constant(numbers(3, 2, 5))
    training = tf.placeholder_with_default(True, [])
    a = tf.layers.dropout(x, 0.4, training=training)
    b = tf.layers.dropout(x, 0.4, seed=7, training=True)
    c = tf.layers.dropout(x, 0.4)
    d = tf.layers.flatten(x)
    e = tf.layers.flatten(tf.placeholder_with_default(numbers(2, 3, 4), [None, 3, None]))
    f = tf.layers.dropout(x, 0.5, noise_shape=[3, 1, None], seed=3, training=True)
    g = tf.layers.flatten(x, data_format="channels_first")
    return {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f, "g": g}


def _with_updates(tf, outputs):
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies(updates):
        done = tf.identity(sum(tf.reduce_sum(v * v) for v in outputs.values()), name="done")
    with tf.control_dependencies([done]):
        averages = [
            v.read_value()
            for v in tf.global_variables()
            if "moving" in v.name or "renorm" in v.name
        ]
    outputs = dict(outputs, done=done)
    outputs.update({"average_%d" % i: v for i, v in enumerate(averages)})
    return outputs


def batch_norm_training(tf):
    x = tf.constant(numbers(6, 4) + 2)
    a = tf.layers.batch_normalization(x, training=True)
    b = tf.layers.batch_normalization(
        tf.constant(numbers(2, 3, 3, 4)), training=True, name="bn", momentum=0.9
    )
    c = tf.layers.batch_normalization(
        tf.constant(numbers(2, 3, 3, 4)), training=True, fused=False, scale=False
    )
    d = tf.layers.batch_normalization(
        tf.constant(numbers(2, 3, 4)), axis=1, training=True, center=False
    )
    return _with_updates(tf, {"a": a, "b": b, "c": c, "d": d})


def batch_norm_inference(tf):
    x = tf.constant(numbers(6, 4) + 2)
    a = tf.layers.batch_normalization(x)
    b = tf.layers.batch_normalization(tf.constant(numbers(2, 3, 3, 4)), name="bn")
    c = tf.layers.batch_normalization(x, training=False, name="other", trainable=False)
    assert not tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    return {"a": a, "b": b, "c": c}


def batch_norm_placeholder(tf):
    training = tf.placeholder_with_default(True, [])
    x = tf.layers.conv2d(tf.constant(numbers(2, 5, 5, 3)), 4, 3)
    a = tf.layers.batch_normalization(x, training=training)
    b = tf.layers.batch_normalization(tf.layers.flatten(a), training=training)
    c = tf.layers.batch_normalization(b, training=training, name="again", reuse=tf.AUTO_REUSE)
    return _with_updates(tf, {"a": a, "b": b, "c": c})


def batch_norm_renorm(tf):
    x = tf.constant(numbers(6, 4) + 2)
    a = tf.layers.batch_normalization(
        x, training=True, renorm=True, renorm_clipping={"rmax": 2.0, "dmax": 0.5}
    )
    b = tf.layers.batch_normalization(
        tf.constant(numbers(6, 3)), training=True, virtual_batch_size=3
    )
    return _with_updates(tf, {"a": a, "b": b})


def custom_layer(tf):
    class Scaled(tf.layers.Layer):
        def __init__(self, units, **kwargs):
            super(Scaled, self).__init__(**kwargs)
            self.units = units

        def build(self, input_shape):
            self.w = self.add_weight(
                "w", [int(input_shape[-1]), self.units], regularizer=tf.nn.l2_loss
            )
            self.g = self.add_variable(
                "g", [self.units], initializer=tf.ones_initializer(), trainable=False
            )
            super(Scaled, self).build(input_shape)

        def call(self, inputs, extra=None):
            y = tf.matmul(inputs, self.w) * self.g
            self.add_loss(tf.reduce_sum(tf.square(y)), inputs=True)
            self.add_update(tf.assign_add(self.g, tf.ones_like(self.g)), inputs=True)
            return y if extra is None else y + extra

    layer = Scaled(3)
    x = tf.constant(numbers(2, 5))
    a = layer(x)
    b = layer.apply(x, extra=1.0)
    other = Scaled(2, name="mine")
    c = other(x)
    assert layer.name == "scaled_1" and other.name == "mine", (layer.name, other.name)
    assert len(layer.trainable_weights) == 1 and len(layer.non_trainable_variables) == 1
    assert len(layer.losses) == 3 and len(layer.updates) == 2
    return {"a": a, "b": b, "c": c}


def small_network(tf):
    x = tf.constant(numbers(4, 8, 8, 1))
    y = tf.constant([0, 2, 1, 1])
    h = tf.layers.conv2d(x, 4, 3, activation=tf.nn.relu)
    h = tf.layers.batch_normalization(h, training=True)
    h = tf.layers.max_pooling2d(h, 2, 2)
    h = tf.layers.dropout(tf.layers.flatten(h), 0.3, training=True)
    logits = tf.layers.dense(h, 3)
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.AdamOptimizer(0.01).minimize(loss)
    with tf.control_dependencies([train]):
        after = [v.read_value() for v in tf.trainable_variables()]
    found = {"after_%d" % i: v for i, v in enumerate(after)}
    return dict(found, loss=loss)


PROGRAMS = [
    dense_plain,
    dense_named_and_reused,
    dense_rank_3_and_4,
    dense_regularized,
    dense_class_called_twice,
    dense_scope_defaults,
    dense_in_resource_scope,
    dense_partitioned,
    conv_layers,
    conv_dilated,
    conv_transposed_layers,
    conv_separable_layers,
    pooling_layers,
    dropout_and_flatten,
    batch_norm_training,
    batch_norm_inference,
    batch_norm_placeholder,
    batch_norm_renorm,
    custom_layer,
    small_network,
]
