"""Every spelling by which programs reach contrib's layers and recurrent networks, under the name
of tensorflow.
"""

import subprocess
import sys

PROGRAM = """
import headrace.dropin
headrace.dropin.install()
import tensorflow as tf
import tensorflow.contrib.slim as slim
import tensorflow.contrib.layers as layers
import tensorflow.contrib.slim.nets
from tensorflow.contrib import crf, cudnn_rnn, legacy_seq2seq, rnn, seq2seq
from tensorflow.contrib.framework import arg_scope, add_arg_scope, nest
from tensorflow.contrib.framework.python.ops import arg_scope as inner_arg_scope
from tensorflow.contrib.framework.python.ops.arg_scope import has_arg_scope
from tensorflow.contrib.framework.python.ops import arg_scope as still_the_function
from tensorflow.contrib.layers import conv2d, fully_connected, xavier_initializer, l2_regularizer
from tensorflow.contrib.layers.python.layers import initializers, regularizers, utils, batch_norm
from tensorflow.contrib.layers.python.layers.layers import max_pool2d, softmax
from tensorflow.contrib.metrics.python.ops import metric_ops, set_ops
from tensorflow.contrib.rnn import BasicLSTMCell, static_rnn
from tensorflow.contrib.rnn.python.ops.core_rnn_cell import RNNCell, _linear
from tensorflow.contrib.seq2seq.python.ops.attention_wrapper import AttentionWrapper
from tensorflow.contrib.seq2seq.python.ops.attention_wrapper import _compute_attention
from tensorflow.contrib.slim.nets import resnet_v2, inception
from tensorflow.contrib.slim.python.slim.nets import inception_v3, resnet_utils
from tensorflow.python.layers import base, core, convolutional
from tensorflow.python.ops import rnn as rnn_ops, rnn_cell, rnn_cell_impl
from tensorflow.python.ops.rnn import dynamic_rnn, bidirectional_dynamic_rnn
from tensorflow.python.ops.rnn_cell_impl import _like_rnncell, _Linear
from tensorflow.python.util import tf_contextlib, deprecation

assert slim.conv2d is tf.contrib.slim.conv2d is conv2d, "one function under all names"
assert slim.arg_scope is arg_scope is inner_arg_scope is still_the_function
assert rnn_cell.LSTMCell is tf.nn.rnn_cell.LSTMCell is rnn.LSTMCell
assert core.Dense is tf.layers.Dense
from tensorflow.python.ops.rnn import _maybe_tensor_shape_from_tensor as known
assert known(tf.TensorShape([2])) == [2] and known(tf.stack([3, 4])).as_list() == [3, 4]
assert set_ops.set_size is tf.contrib.metrics.set_size and metric_ops.set_union
x = tf.zeros([2, 8, 8, 3])
with slim.arg_scope([slim.conv2d], weights_regularizer=l2_regularizer(0.1)):
    y = slim.conv2d(x, 4, 3)
assert [v.op.name for v in tf.trainable_variables()] == ["Conv/weights", "Conv/biases"]
assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 1
assert len(inception.inception_v3_arg_scope()) > 0 and resnet_utils.conv2d_same
assert tf.contrib.layers.python.layers.initializers.xavier_initializer
assert tf.contrib.rnn.python.ops.core_rnn_cell.RNNCell is RNNCell
print("all found")
"""


def test_spellings():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout == "all found\n", done.stderr[-2000:]


def test_attributes_without_the_drop_in():
    import headrace as tf

    assert tf.contrib.rnn.python.ops.core_rnn_cell.RNNCell is tf.nn.rnn_cell.RNNCell
    assert tf.contrib.slim.python.slim.nets.inception_v3.inception_v3_base
    assert tf.contrib.layers.python.layers.utils.collect_named_outputs
    assert tf.contrib.framework.python.ops.arg_scope
