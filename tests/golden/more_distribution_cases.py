"""The rarer families of contrib.distributions and its bijectors.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import numpy as np

DENSITIES = ["log_prob", "prob", "cdf", "log_cdf", "survival_function"]
STATISTICS = ["mean", "variance", "stddev", "mode", "entropy", "covariance"]


def _try(build):
    try:
        return build()
    except (NotImplementedError, ValueError):
        return None


def _watch(tf, dist, values, seed=5):
    values = tf.constant(values)
    tensors = {n: _try(lambda n=n: getattr(dist, n)(values)) for n in DENSITIES}
    tensors.update({n: _try(lambda n=n: getattr(dist, n)()) for n in STATISTICS})
    tensors["sample"] = dist.sample([3], seed=seed)
    found = {k: v for k, v in tensors.items() if v is not None}
    texts = [dist.batch_shape.as_list(), dist.event_shape.as_list(), dist.dtype.name]
    texts += [found["sample"].shape.as_list(), sorted(found)]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [texts, sess.run(found)]


def _both_ways(tf, bijector, x, event_ndims, back_ndims=None):
    x = tf.constant(x)
    y = bijector.forward(x)
    back_ndims = event_ndims if back_ndims is None else back_ndims
    parts = {"y": y, "fldj": bijector.forward_log_det_jacobian(x, event_ndims)}
    parts["x"] = bijector.inverse(tf.identity(y))
    parts["ildj"] = bijector.inverse_log_det_jacobian(tf.identity(y), back_ndims)
    event = x.shape[x.shape.ndims - event_ndims :]
    shape = bijector.forward_event_shape(event).as_list() if event_ndims else []
    config = tf.ConfigProto()  # (TF 1.15's optimizer takes -(-x) for -x)
    config.graph_options.rewrite_options.arithmetic_optimization = 2  # off
    with tf.Session(config=config) as sess:
        sess.run(tf.global_variables_initializer())
        found = sess.run(parts)
    return [bijector.name, shape, {k: np.asarray(v).astype(np.float64) for k, v in found.items()}]


X = np.array([[0.2, 0.4, 0.7], [0.1, 0.5, 0.9]], np.float32)


def bijectors_of_numbers(tf):
    b = tf.contrib.distributions.bijectors
    made = [
        b.Gumbel(0.3, 1.5), b.Kumaraswamy(2.0, 0.7), b.PowerTransform(0.4), b.PowerTransform(),
        b.SinhArcsinh(0.2, 1.3), b.SinhArcsinh(), b.Softsign(), b.Square(),
        b.Gumbel(validate_args=True),
        b.Kumaraswamy(2.0, 0.7, validate_args=True), b.Square(validate_args=True),
    ]  # fmt: skip
    return [_both_ways(tf, m, X, n) for m in made for n in (0, 1)]


def absolute_value(tf):
    d = tf.contrib.distributions
    bijector = d.bijectors.AbsoluteValue()
    half = d.TransformedDistribution(d.Normal(0.5, 1.0), bijector)
    parts = [bijector.forward([-1.0, 2.0])] + list(bijector.inverse([1.0, 2.0]))
    parts += list(bijector.inverse_log_det_jacobian([1.0, 2.0], 0))
    parts += [half.log_prob([0.5, 2.0]), half.prob([0.5, 2.0])]
    with tf.Session() as sess:
        return sess.run(parts)


def bijectors_of_vectors(tf):
    b = tf.contrib.distributions.bijectors
    op = tf.linalg.LinearOperatorLowerTriangular([[1.0, 0, 0], [2.0, 3.0, 0], [0.5, 1.0, 2.0]])
    return [
        _both_ways(tf, b.SoftmaxCentered(), X, 1),
        _both_ways(tf, b.Ordered(), X, 1),
        _both_ways(tf, b.Ordered(validate_args=True), X, 1),
        _both_ways(tf, b.FillTriangular(), X, 1, 2),
        _both_ways(tf, b.FillTriangular(upper=True), X, 1, 2),
        _both_ways(tf, b.ScaleTriL(), X, 1, 2),
        _both_ways(tf, b.ScaleTriL(diag_bijector=b.Exp(), diag_shift=None), X, 1, 2),
        _both_ways(tf, b.AffineLinearOperator([1.0, 2.0, 3.0], op), X, 1),
        _both_ways(tf, b.Reshape([3, 1], [-1]), X, 1, 2),
        _both_ways(tf, b.Reshape([-1, 2], [4]), np.arange(8.0).reshape(2, 4), 1, 2),
    ]


def bijectors_of_matrices(tf):
    b = tf.contrib.distributions.bijectors
    low = np.array([[[1.0, 0], [0.5, 2.0]], [[3.0, 0], [1.0, 0.4]]], np.float32)
    return [
        _both_ways(tf, b.CholeskyOuterProduct(), low, 2),
        _both_ways(tf, b.CholeskyOuterProduct(validate_args=True), low, 2),
        _both_ways(tf, b.MatrixInverseTriL(), low, 2),
        _both_ways(tf, b.MatrixInverseTriL(validate_args=True), low, 2),
        _both_ways(tf, b.TransformDiagonal(b.Exp()), low, 2),
    ]


def masked_flow(tf):
    d = tf.contrib.distributions
    made = d.bijectors.masked_autoregressive_default_template(
        [8, 8], name="made", kernel_initializer=tf.glorot_normal_initializer(seed=3)
    )
    flow = d.bijectors.MaskedAutoregressiveFlow(made)
    dist = d.TransformedDistribution(d.Normal(0.0, 1.0), flow, event_shape=[3])
    found = _watch(tf, dist, X)
    names = [[v.name, v.shape.as_list()] for v in tf.trainable_variables()]
    unrolled = d.bijectors.MaskedAutoregressiveFlow(made, unroll_loop=True)
    return [names, found, _both_ways(tf, unrolled, X, 1), _both_ways(tf, flow, X, 1)]


def masked_flow_shifts(tf):
    d = tf.contrib.distributions
    made = d.bijectors.masked_autoregressive_default_template(
        [6], shift_only=True, kernel_initializer=tf.glorot_normal_initializer(seed=3)
    )
    flow = d.bijectors.MaskedAutoregressiveFlow(made, is_constant_jacobian=True)
    dense = d.bijectors.masked_dense(
        tf.constant(X), 6, num_blocks=3, exclusive=True, name="block",
        kernel_initializer=tf.glorot_normal_initializer(seed=3),
    )  # fmt: skip
    names = [v.name for v in tf.global_variables()]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        value = sess.run(dense)
    return [names, value, _both_ways(tf, flow, X, 1), [v.name for v in tf.global_variables()]]


def real_nvp(tf):
    d = tf.contrib.distributions
    net = d.bijectors.real_nvp_default_template(
        [7], activation=tf.nn.tanh, kernel_initializer=tf.glorot_normal_initializer(seed=3)
    )
    flow = d.bijectors.RealNVP(1, net)
    dist = d.TransformedDistribution(d.MultivariateNormalDiag(tf.zeros([3])), flow)
    found = _watch(tf, dist, X)
    return [found, [v.name for v in tf.global_variables()], _both_ways(tf, flow, X, 1)]


def batch_norm_flow(tf):
    b = tf.contrib.distributions.bijectors
    flow = b.BatchNormalization()
    y = tf.constant(X)
    x = flow.inverse(y)
    parts = [x, flow.forward(x), flow.inverse_log_det_jacobian(y, 1)]
    updates = [u.name for u in tf.get_collection(tf.GraphKeys.UPDATE_OPS)]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run(parts), updates, [v.name for v in tf.global_variables()]]


def negative_binomial(tf):
    d = tf.contrib.distributions
    x = np.array([[0.0], [2.0], [5.0]], np.float32)
    return [
        _watch(tf, d.NegativeBinomial([3.0, 5.5], probs=[0.3, 0.6]), x),
        _watch(tf, d.NegativeBinomial(2.0, logits=[0.5, -1.0], validate_args=True), x),
    ]


def quantized(tf):
    d = tf.contrib.distributions
    x = np.array([[0.0], [1.0], [3.0]], np.float32)
    return [
        _watch(tf, d.QuantizedDistribution(d.Normal([0.5, 2.0], 1.5)), x),
        _watch(tf, d.QuantizedDistribution(d.Logistic([0.5, 2.0], 0.7), low=0.0, high=3.0), x),
        _watch(tf, d.QuantizedDistribution(d.Uniform(0.0, 4.0), high=3.0, validate_args=True), x),
    ]


def bent(tf):
    d = tf.contrib.distributions
    x = np.array([[0.2], [0.9]], np.float32)
    return [
        _watch(tf, d.Kumaraswamy([2.0, 0.5], 1.5), x),
        _watch(tf, d.Kumaraswamy([2.0, 0.5], 1.5, allow_nan_stats=True), x),
        _watch(tf, d.SinhArcsinh([0.0, 1.0], 2.0), x),
        _watch(tf, d.SinhArcsinh(1.0, [2.0, 0.5], skewness=0.3, tailweight=1.2), x),
    ]


def vectors(tf):
    d = tf.contrib.distributions
    x = X + 1
    loc, diag = [0.1, 0.2, 0.3], [1.0, 2.0, 0.5]
    return [
        _watch(tf, d.VectorExponentialDiag(loc, diag), x),
        _watch(tf, d.VectorExponentialDiag(scale_diag=[diag, diag]), x),
        _watch(tf, d.VectorLaplaceDiag(loc, diag), x),
        _watch(tf, d.VectorLaplaceDiag(scale_diag=diag, scale_identity_multiplier=1.5), x),
        _watch(tf, d.VectorSinhArcsinhDiag(loc, diag, skewness=0.2, tailweight=1.1), x),
        _watch(tf, d.VectorDeterministic(x[0], atol=0.1), x),
    ]


def low_rank_normal(tf):
    d = tf.contrib.distributions
    factor = np.array([[1.0, 0.5], [0.2, 1.0], [0.3, 0.1]], np.float32)
    dist = d.MultivariateNormalDiagPlusLowRank(
        [0.1, 0.2, 0.3], [1.0, 2.0, 1.5], scale_perturb_factor=factor,
        scale_perturb_diag=[0.5, 0.8],
    )  # fmt: skip
    plain = d.MultivariateNormalDiagPlusLowRank([0.1, 0.2, 0.3], [1.0, 2.0, 1.5])
    kl = [d.kl_divergence(dist, plain), d.kl_divergence(plain, dist)]
    with tf.Session() as sess:
        return [_watch(tf, dist, X), _watch(tf, plain, X), sess.run(kl)]


def wishart(tf):
    d = tf.contrib.distributions
    low = np.array([[1.0, 0.0], [0.5, 2.0]], np.float32)
    x = np.array([[2.0, 0.3], [0.3, 1.5]], np.float32)
    full = d.WishartFull([3.0, 5.5], np.array([low.dot(low.T)] * 2))
    root = d.WishartCholesky(4.0, low, cholesky_input_output_matrices=True)
    found = [_watch(tf, d.WishartCholesky(3.5, low), x), _watch(tf, full, x)]
    found.append(_watch(tf, root, np.linalg.cholesky(x)))
    with tf.Session() as sess:
        found.append(sess.run([root.mean_log_det(), full.log_normalization(), full.df]))
    return found


def autoregressive(tf):
    d = tf.contrib.distributions

    def normal(x=None):
        loc = tf.zeros([3])
        if x is not None:
            loc = 0.5 * tf.concat([tf.zeros_like(x[..., :1]), x[..., :-1]], -1)
        return d.MultivariateNormalDiag(loc, tf.ones([3]))

    return _watch(tf, d.Autoregressive(normal), X)


def batch_reshape(tf):
    d = tf.contrib.distributions
    normal = d.Normal([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], 1.0)
    vectors = d.MultivariateNormalDiag(tf.constant(X))
    return [
        _watch(tf, d.BatchReshape(normal, [3, -1]), X.reshape(3, 2)),
        _watch(tf, d.BatchReshape(vectors, [2, 1]), X[:, None, :]),
    ]


def conditional(tf):
    d = tf.contrib.distributions

    class Shift(d.bijectors.ConditionalBijector):
        def __init__(self):
            super(Shift, self).__init__(
                forward_min_event_ndims=0, is_constant_jacobian=True, name="shift"
            )

        def _forward(self, x, by=0.0):
            return x + by

        def _inverse(self, y, by=0.0):
            return y - by

        def _inverse_log_det_jacobian(self, y, by=0.0):
            return tf.constant(0.0)

    dist = d.ConditionalTransformedDistribution(d.Normal(0.0, 1.0), Shift())
    by = {"bijector_kwargs": {"by": 2.0}}
    parts = [dist.sample([3], seed=4, **by), dist.log_prob([1.0], **by), dist.cdf([1.0], **by)]
    parts += [dist.prob([1.0]), Shift().forward(1.0, by=3.0)]
    with tf.Session() as sess:
        return sess.run(parts)


def statistics(tf):
    d = tf.contrib.distributions
    random = np.random.RandomState(0)
    x = random.normal(size=(3, 4, 5)).astype(np.float32)
    parts = [d.percentile(x, 30.0, interpolation=way) for way in ("lower", "higher", "nearest")]
    parts += [d.percentile(x, 75.0, axis=[0, 2]), d.percentile(x, 10.0, axis=-1, keep_dims=True)]
    parts.append(d.percentile(x, 50.0, keep_dims=True))
    parts += [d.auto_correlation(x), d.auto_correlation(x, axis=0, max_lags=1)]
    parts.append(d.auto_correlation(x, axis=1, center=False, normalize=False))
    parts.append(d.tridiag([[1.0, 2]], [[3.0, 4, 5]], [[6.0, 7]]))
    parts.append(d.tridiag(diag=[1.0, 2]))
    with tf.Session() as sess:
        return sess.run(parts)


def moving(tf):
    d = tf.contrib.distributions
    mean, variance = d.moving_mean_variance(tf.constant([1.0, 2.0]), 0.9)
    log_mean = tf.Variable([0.5, 1.0])
    moved = d.assign_log_moving_mean_exp(log_mean, [2.0, 3.0], 0.8)
    names = [v.name for v in tf.global_variables()]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [names, [sess.run([mean, variance]) for _ in range(3)], sess.run(moved)]


def conjugates(tf):
    d = tf.contrib.distributions
    prior = d.Normal(1.0, 2.0)
    s = tf.constant([3.0, 7.0])
    made = [
        d.normal_conjugates_known_scale_posterior(prior, 0.5, s, 4),
        d.normal_conjugates_known_scale_predictive(prior, 0.5, s, 4),
    ]
    stream = d.SeedStream(7, "salt")
    seeds = [str(stream()), str(stream()), str(d.SeedStream(stream, "other")()), stream.salt]
    with tf.Session() as sess:
        return [seeds, [sess.run([m.loc, m.scale]) for m in made], d.SeedStream(None, "x")()]
