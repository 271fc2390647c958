"""Distributions and bijectors whose shapes the graph does not know, and what is checked.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import numpy as np


def _outcome(tf, build, feed=None):
    """What building and running gives: values, or the class of the error."""
    with tf.Session() as sess:
        try:
            return sess.run(build(), feed)
        except Exception as e:
            return type(e).__name__


def _rounded(value):
    return np.round(np.asarray(value, np.float64), 4)


def affine_of_all_parts(tf):
    b = tf.contrib.distributions.bijectors
    shift, x = np.float32([1, -1, 0.5]), np.float32([[1, 2, 3], [0.5, -1, 2]])
    diag, tril = np.float32([2, 3, 4]), np.float32([[1, 9, 9], [2, 3, 9], [4, 5, 6]])
    factor = np.float32([[1, 0], [0.5, 1], [0.25, 2]])
    parts = [
        {}, {"scale_identity_multiplier": 2.0}, {"scale_diag": diag}, {"scale_tril": tril},
        {"scale_identity_multiplier": 2.0, "scale_diag": diag},
        {"scale_identity_multiplier": 2.0, "scale_tril": tril},
        {"scale_diag": diag, "scale_tril": tril}, {"scale_perturb_factor": factor},
        {"scale_diag": diag, "scale_perturb_factor": factor},
        {"scale_diag": diag, "scale_perturb_factor": factor,
         "scale_perturb_diag": np.float32([0.5, 2])},
        {"scale_identity_multiplier": 3.0, "scale_perturb_factor": factor},
    ]  # fmt: skip
    found = []
    with tf.Session() as sess:
        for kept in (None, shift):
            for part in parts:
                if kept is None and "scale_perturb_factor" in part:
                    continue  # TF 1.15 looks for the type of the shift
                bijector = b.Affine(kept, validate_args=False, **part)
                y = bijector.forward(x)
                jacobian = bijector.forward_log_det_jacobian(x, 1)
                back = bijector.inverse(tf.identity(y))
                shapes = [t.shape.as_list() for t in (y, back)]
                found.append([shapes, *map(_rounded, sess.run([y, jacobian, back]))])
    return found


def event_shapes(tf):
    b = tf.contrib.distributions.bijectors
    made = [
        (b.Reshape([2, -1], [6]), [4, 6], [4, 2, 3]), (b.SoftmaxCentered(), [3], [4]),
        (b.FillTriangular(), [5, 6], [5, 3, 3]), (b.Invert(b.SoftmaxCentered()), [4], [3]),
        (b.Chain([b.Exp(), b.SoftmaxCentered()]), [2], [3]), (b.Exp(), [7], [7]),
    ]  # fmt: skip
    found = []
    with tf.Session() as sess:
        for bijector, before, after in made:
            static = [
                bijector.forward_event_shape(tf.TensorShape(before)),
                bijector.inverse_event_shape(tf.TensorShape(after)),
            ]
            tensors = [
                bijector.forward_event_shape_tensor(before),
                bijector.inverse_event_shape_tensor(after),
            ]
            found.append([[s.as_list() for s in static], *sess.run(tensors)])
    return found


def shapes_that_are_fed(tf):
    d = tf.contrib.distributions
    vector = tf.placeholder(tf.int32, [None])
    x = tf.placeholder(tf.float32)
    value = np.arange(6, dtype=np.float32).reshape(2, 3) / 5
    reshape = d.bijectors.Reshape(vector, [3], validate_args=True)
    scaled = d.TransformedDistribution(
        d.Normal(0.0, 1.0), d.bijectors.AffineScalar(1.0, 2.0), event_shape=vector
    )
    batch = d.BatchReshape(d.Normal(x, 1.0), vector, validate_args=True)
    inner = d.Independent(d.Normal(x, 1.0))
    lags = d.auto_correlation(x, axis=1)
    parts = [
        (lambda: reshape.forward(x), {x: value, vector: [3, 1]}),
        (lambda: reshape.forward(x), {x: value, vector: [-1, -1]}),
        (lambda: reshape.forward_event_shape_tensor([3]), {vector: [1, -1]}),
        (lambda: scaled.log_prob(x), {x: value, vector: [3]}),
        (scaled.event_shape_tensor, {vector: [3]}),
        (batch.batch_shape_tensor, {x: [1.0, 2, 3, 4], vector: [2, -1]}),
        (lambda: batch.log_prob(np.ones([2, 2], np.float32)), {x: [1.0, 2, 3, 4], vector: [2, 2]}),
        (lambda: batch.log_prob(np.ones([4], np.float32)), {x: [1.0, 2, 3, 4], vector: [2, 2]}),
        (batch.mean, {x: [1.0, 2, 3, 4], vector: [3, 2]}),
        (lambda: inner.log_prob(value), {x: value}),
        (lambda: lags, {x: value}),
    ]
    return [_outcome(tf, build, feed) for build, feed in parts]


def arguments_that_are_checked(tf):
    d = tf.contrib.distributions
    counts = np.float32([2.5, 3.0])
    parts = [
        lambda: d.Poisson(3.0, validate_args=True).log_prob(counts),
        lambda: d.Poisson(3.0, validate_args=True).cdf(counts),
        lambda: d.Poisson(3.0).cdf(counts),
        lambda: d.NegativeBinomial(5.0, probs=0.9, validate_args=True).log_prob(-1.0),
        lambda: d.Geometric(probs=1.0, validate_args=True).entropy(),
        lambda: d.RelaxedBernoulli(0.0, probs=[0.1], validate_args=True).sample(),
        lambda: d.VectorDeterministic([0.0], validate_args=True).prob([0.0, 1.0]),
        lambda: d.VectorDeterministic([0.0], atol=-1.0, validate_args=True).prob([0.0]),
        lambda: d.MultivariateNormalDiag([0.0, 0], [1.0, -2], validate_args=True).stddev(),
        lambda: d.MultivariateNormalDiag([0.0, 0], [1.0, 0], validate_args=True).sample(),
        lambda: d.MultivariateNormalDiag(0.0, 1.0).sample(),
        lambda: d.MultivariateNormalFullCovariance(
            [0.0, 0], [[1.0, 0], [1, 1]], validate_args=True
        ).covariance(),
        lambda: d.WishartCholesky(df=1.0, scale=np.eye(2, dtype=np.float32)).mean(),
        lambda: d.VectorExponentialDiag([0.0, 0], [1.0, 0], validate_args=True).sample(),
        lambda: d.bijectors.Softplus(hinge_softness=0.0, validate_args=True).forward(1.0),
        lambda: d.bijectors.Permute([0, 2], validate_args=True).forward([1.0, 2.0]),
        lambda: d.percentile([1.0, 2.0], q=[50.0, 60.0]),
        lambda: d.bijectors.Affine([0.0, 1], scale_diag=[0.0, 1], validate_args=True).shift,
        lambda: d.Mixture(d.Categorical([0.1, 0.2]), [d.Normal(0.0, 1.0)]).mean(),
        lambda: d.kl_divergence(
            d.Independent(d.Normal([0.0, 1], 1.0), 1), d.Independent(d.Normal(0.0, 1.0), 0)
        ),
    ]
    return [_outcome(tf, build) for build in parts]


def mixtures_and_vectors(tf):
    d = tf.contrib.distributions
    mixed = d.Mixture(d.Categorical([0.3, 0.7]), [d.Normal(0.0, 1.0), d.Normal(2.0, 0.5)])
    same = d.MixtureSameFamily(
        d.Categorical(probs=[0.3, 0.7]),
        d.MultivariateNormalDiag([[-1.0, 1], [1, -1]], scale_identity_multiplier=[1.0, 0.5]),
    )
    numbers = d.MixtureSameFamily(
        d.Categorical(probs=[0.3, 0.7]), d.Normal([[0.0, 1], [2, 3]], [0.5, 0.25])
    )
    vectors = d.VectorLaplaceDiag(np.zeros([2, 3], np.float32))
    wide = d.VectorExponentialDiag(np.ones([3], np.float32), scale_identity_multiplier=[3.0, 2])
    relaxed = d.RelaxedOneHotCategorical([0.5, 2.0], logits=[[0.1, 0.2, 0.3], [1, 0, 0]])
    x = np.float32([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
    with tf.Session() as sess:
        values = sess.run(
            [
                mixed.cdf([0.5, 2.0]), mixed.log_cdf([0.5]), mixed.entropy_lower_bound(),
                same.covariance(), same.log_prob([[0.0, 1], [1, 1]]), numbers.log_cdf([0.5, 1.0]),
                vectors.stddev(), vectors.covariance(), wide.stddev(), wide.covariance(),
                relaxed.log_prob(x),
            ]
        )  # fmt: skip
    shapes = [numbers.sample([4], seed=3).shape.as_list(), same.sample(5).shape.as_list()]
    return [shapes, [_rounded(v) for v in values]]
