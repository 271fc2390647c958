"""Decoders, attention and beam search.

Each program gives a dict of tensors. Run on TF 1.15 (make_layers.py) and on Headrace.
"""

try:
    from layer_programs import numbers
except ImportError:
    from tests.golden.layer_programs import numbers


def _seeded(program):
    """The program in a scope whose initializer has a seed.

    Assertions have fewer operations here than in TensorFlow.
    """

    def run(tf):
        with tf.variable_scope("m", initializer=tf.random_uniform_initializer(-0.5, 0.5, seed=7)):
            return program(tf)

    run.__name__ = program.__name__
    return run


def _flat(prefix, values, tf):
    flat = tf.contrib.framework.nest.flatten(values)
    return {"%s_%d" % (prefix, i): t for i, t in enumerate(flat) if isinstance(t, tf.Tensor)}


def training_decoder(tf):
    s = tf.contrib.seq2seq
    cell = tf.nn.rnn_cell.BasicLSTMCell(5)
    helper = s.TrainingHelper(tf.constant(numbers(3, 4, 6)), [4, 2, 3])
    decoder = s.BasicDecoder(
        cell, helper, cell.zero_state(3, tf.float32), output_layer=tf.layers.Dense(7)
    )
    outputs, state, lengths = s.dynamic_decode(decoder, impute_finished=True)
    targets = tf.constant([[1, 2, 3, 4], [2, 3, 0, 0], [5, 6, 1, 0]])
    weights = tf.sequence_mask([4, 2, 3], dtype=tf.float32)
    loss = s.sequence_loss(outputs.rnn_output, targets, weights)
    by_row = s.sequence_loss(outputs.rnn_output, targets, weights, True, False)
    found = dict(
        _flat("state", state, tf), logits=outputs.rnn_output, ids=outputs.sample_id, lengths=lengths
    )
    return dict(found, loss=loss, by_row=by_row)


def greedy_decoder(tf):
    s = tf.contrib.seq2seq
    embedding = tf.get_variable("embedding", [7, 4])
    cell = tf.nn.rnn_cell.GRUCell(5)
    helper = s.GreedyEmbeddingHelper(embedding, tf.fill([3], 1), 2)
    decoder = s.BasicDecoder(
        cell, helper, tf.constant(numbers(3, 5)), tf.layers.Dense(7, name="out")
    )
    outputs, state, lengths = s.dynamic_decode(decoder, maximum_iterations=6, scope="decode")
    return {
        "logits": outputs.rnn_output,
        "ids": outputs.sample_id,
        "state": state,
        "lengths": lengths,
    }


def _attention(tf, make, **kwargs):
    s = tf.contrib.seq2seq
    memory = tf.constant(numbers(3, 5, 4))
    mechanism = make(memory)
    cell = s.AttentionWrapper(tf.nn.rnn_cell.LSTMCell(6), mechanism, **kwargs)
    helper = s.TrainingHelper(tf.constant(numbers(3, 4, 6)), [4, 2, 3])
    decoder = s.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32))
    outputs, state, lengths = s.dynamic_decode(decoder)
    found = {"out": outputs.rnn_output, "alignments": state.alignments, "lengths": lengths}
    if kwargs.get("alignment_history"):
        found["history"] = state.alignment_history.stack()
    return dict(found, **_flat("cell", state.cell_state, tf))


@_seeded
def bahdanau(tf):
    s = tf.contrib.seq2seq
    return _attention(
        tf,
        lambda m: s.BahdanauAttention(6, m, memory_sequence_length=[5, 3, 4]),
        attention_layer_size=7,
        alignment_history=True,
    )


@_seeded
def bahdanau_normalized(tf):
    s = tf.contrib.seq2seq
    return _attention(
        tf, lambda m: s.BahdanauAttention(6, m, normalize=True), output_attention=False
    )


@_seeded
def luong(tf):
    s = tf.contrib.seq2seq
    return _attention(tf, lambda m: s.LuongAttention(6, m, scale=True), attention_layer_size=5)


@_seeded
def monotonic(tf):
    s = tf.contrib.seq2seq
    return _attention(tf, lambda m: s.BahdanauMonotonicAttention(6, m, score_bias_init=-1.0))


@_seeded
def monotonic_luong(tf):
    s = tf.contrib.seq2seq
    return _attention(tf, lambda m: s.LuongMonotonicAttention(6, m, mode="recursive"))


@_seeded
def beam_search(tf):
    s = tf.contrib.seq2seq
    embedding = tf.get_variable(
        "embedding", [7, 4], initializer=tf.random_normal_initializer(seed=3)
    )
    memory = s.tile_batch(tf.constant(numbers(2, 5, 4)), 3)
    mechanism = s.BahdanauAttention(6, memory)
    cell = s.AttentionWrapper(tf.nn.rnn_cell.GRUCell(5), mechanism, attention_layer_size=5)
    state = cell.zero_state(6, tf.float32).clone(
        cell_state=s.tile_batch(tf.constant(numbers(2, 5)), 3)
    )
    layer = tf.layers.Dense(7, kernel_initializer=tf.random_normal_initializer(stddev=2.0, seed=5))
    decoder = s.BeamSearchDecoder(
        cell, embedding, tf.fill([2], 1), 2, state, 3, layer, length_penalty_weight=0.5
    )
    outputs, state, lengths = s.dynamic_decode(decoder, maximum_iterations=8)
    return {
        "ids": outputs.predicted_ids,
        "scores": outputs.beam_search_decoder_output.scores,
        "lengths": lengths,
    }


def gather_tree(tf):
    s = tf.contrib.seq2seq
    steps = tf.constant([[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]], [[-1, -1, -1]]])
    parents = tf.constant([[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]], [[-1, -1, -1]]])
    return {"beams": s.gather_tree(steps, parents, max_sequence_lengths=[3], end_token=10)}


PROGRAMS = [
    training_decoder,
    greedy_decoder,
    bahdanau,
    bahdanau_normalized,
    luong,
    monotonic,
    monotonic_luong,
    beam_search,
    gather_tree,
]
