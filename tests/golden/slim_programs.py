"""``tf.contrib.layers``, ``slim`` and ``framework``.

Each program gives a dict of tensors. Run on TF 1.15 and on Headrace.
"""

try:
    from layer_programs import _with_updates, numbers
except ImportError:
    from tests.golden.layer_programs import _with_updates, numbers


def contrib_dense(tf):
    c = tf.contrib.layers
    x = tf.constant(numbers(4, 5))
    a = c.fully_connected(x, 3)
    b = c.fully_connected(
        a, 2, activation_fn=None, weights_regularizer=c.l2_regularizer(0.1), scope="out"
    )
    d = c.linear(x, 2, weights_initializer=c.xavier_initializer(uniform=False))
    e = c.relu(x, 2, scope="out2", normalizer_fn=c.layer_norm)
    loss = c.apply_regularization(c.l1_regularizer(0.3), tf.trainable_variables())
    return {
        "a": a,
        "b": b,
        "d": d,
        "e": e,
        "loss": loss,
        "total": tf.losses.get_regularization_loss(),
    }


def contrib_convolutions(tf):
    c = tf.contrib.layers
    x = tf.constant(numbers(2, 8, 8, 3))
    a = c.conv2d(x, 4, 3)
    b = c.conv2d(a, 4, [3, 3], stride=2, padding="VALID", activation_fn=tf.nn.elu, scope="second")
    d = c.max_pool2d(a, 2)
    e = c.avg_pool2d(a, [3, 3], stride=1)
    f = c.conv2d_transpose(b, 3, 3, stride=2)
    g = c.separable_conv2d(x, 5, 3, depth_multiplier=2)
    h = c.flatten(d)
    i = c.convolution2d_in_plane(x, 2) if False else c.instance_norm(x)
    return {"a": a, "b": b, "d": d, "e": e, "f": f, "g": g, "h": h, "i": i}


def contrib_batch_norm(tf):
    c = tf.contrib.layers
    a = c.batch_norm(tf.constant(numbers(6, 4) + 1), is_training=True, scale=True)
    b = c.batch_norm(tf.constant(numbers(2, 3, 3, 4)), fused=True, decay=0.9, scope="fused")
    d = c.batch_norm(
        tf.constant(numbers(6, 4)), is_training=tf.placeholder_with_default(True, []), scope="cond"
    )
    e = c.batch_norm(tf.constant(numbers(6, 4)), is_training=False, center=False, scope="test")
    g = c.batch_norm(tf.constant(numbers(6, 4)), updates_collections=None, scope="now")
    return _with_updates(tf, {"a": a, "b": b, "d": d, "e": e, "g": g})


def contrib_various(tf):
    c = tf.contrib.layers
    x = tf.constant(numbers(4, 5))
    a = c.dropout(x, 0.6, seed=3)
    b = c.stack(x, c.fully_connected, [4, 3], scope="fc")
    d = c.repeat(tf.constant(numbers(1, 6, 6, 2)), 2, c.conv2d, 3, [3, 3], scope="conv")
    e = c.one_hot_encoding(tf.constant([0, 2, 1]), 4)
    f = c.embed_sequence(tf.constant([[1, 2], [0, 2]]), 5, 3, scope="emb")
    g = c.unit_norm(x, 1)
    h = c.bias_add(x, activation_fn=tf.tanh)
    i = c.softmax(x)
    return {"a": a, "b": b, "d": d, "e": e, "f": f, "g": g, "h": h, "i": i}


def slim_arg_scope(tf):
    slim = tf.contrib.slim
    x = tf.constant(numbers(2, 9, 9, 3))
    with slim.arg_scope(
        [slim.conv2d, slim.fully_connected],
        weights_regularizer=slim.l2_regularizer(0.01),
        weights_initializer=tf.truncated_normal_initializer(0.0, 0.1),
        normalizer_fn=slim.batch_norm,
        normalizer_params={"is_training": True, "decay": 0.9},
    ):
        with slim.arg_scope([slim.conv2d], padding="VALID", outputs_collections="ends"):
            h = slim.conv2d(x, 4, 3, scope="conv1")
            h = slim.max_pool2d(h, 2, scope="pool")
            h = slim.conv2d(h, 5, [2, 2], stride=1, scope="conv2", activation_fn=None)
        h = slim.flatten(h)
        logits = slim.fully_connected(h, 3, activation_fn=None, normalizer_fn=None, scope="logits")
    points = slim.utils.convert_collection_to_dict("ends")
    assert sorted(points) == ["conv1", "conv2"], points
    names = [v.op.name for v in slim.get_model_variables()]
    assert names == [v.op.name for v in slim.get_variables_to_restore()], names
    assert next(v.op.name for v in slim.get_variables("conv2")) == "conv2/weights"
    loss = slim.losses.softmax_cross_entropy(logits, slim.one_hot_encoding(tf.constant([0, 2]), 3))
    return {"logits": logits, "loss": loss, "total": slim.losses.get_total_loss()}


def slim_resnet(tf):
    slim = tf.contrib.slim
    try:
        from tensorflow.contrib.slim.nets import resnet_v2 as from_nets
    except ImportError:  # Headrace under its own name
        from_nets = slim.nets.resnet_v2
    with slim.arg_scope(from_nets.resnet_arg_scope()):
        net, ends = from_nets.resnet_v2(
            tf.constant(numbers(1, 32, 32, 3)),
            [from_nets.resnet_v2_block("block1", base_depth=2, num_units=2, stride=2)],
            num_classes=3,
            is_training=False,
            global_pool=True,
            include_root_block=True,
            scope="net",
        )
    return {"net": net, "block": ends["net/block1"]}


def contrib_optimize(tf):
    c = tf.contrib.layers
    x = tf.constant(numbers(4, 5))
    loss = tf.reduce_mean(tf.square(c.fully_connected(x, 3, activation_fn=None)))
    step = tf.train.get_or_create_global_step()
    train = c.optimize_loss(
        loss, step, learning_rate=0.1, optimizer="SGD", clip_gradients=1.0, summaries=[]
    )
    with tf.control_dependencies([train]):
        after = [v.read_value() for v in tf.trainable_variables()]
    return {"loss": train, "w": after[0], "b": after[1]}


PROGRAMS = [
    contrib_dense,
    contrib_convolutions,
    contrib_batch_norm,
    contrib_various,
    slim_arg_scope,
    slim_resnet,
    contrib_optimize,
]
