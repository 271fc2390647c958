"""Distributions: samples by seed, densities, statistics, divergences, gradients, names.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import numpy as np

DENSITIES = ["log_prob", "prob", "cdf", "log_cdf", "survival_function", "log_survival_function"]
STATISTICS = ["mean", "variance", "stddev", "mode", "entropy", "covariance"]


def _tensor(build):
    try:
        return build()
    except NotImplementedError:
        return None


def _watch(tf, dist, values, other=None, quantiles=None, drawn=True):
    """Everything that a distribution tells, with gradients of the density and of samples."""
    values = tf.constant(values)
    tensors = {name: _tensor(lambda n=name: getattr(dist, n)(values)) for name in DENSITIES}
    tensors.update({name: _tensor(lambda n=name: getattr(dist, n)()) for name in STATISTICS})
    if quantiles is not None:
        tensors["quantile"] = dist.quantile(tf.constant(quantiles))
    if other is not None:
        tensors["kl"] = tf.contrib.distributions.kl_divergence(dist, other)
        tensors["cross"] = _tensor(lambda: dist.cross_entropy(other))
    if drawn:
        tensors["sample"] = dist.sample(seed=5)
        tensors["samples"] = dist.sample([4, 2], seed=7)
    found = {k: v for k, v in tensors.items() if v is not None}
    texts = [str(dist), dist.batch_shape.as_list(), dist.event_shape.as_list(), dist.dtype.name]
    texts.append([found["log_prob"].name, found["log_prob"].shape.as_list()])
    texts.append([found["mean"].name if "mean" in found else "", sorted(found)])
    parameters = [p for p in dist._graph_parents if p.dtype.is_floating]
    slopes = tf.gradients(found["log_prob"], parameters)
    grads = [g for g in slopes if g is not None]
    grads.append(dist.batch_shape_tensor())
    grads.append(dist.event_shape_tensor())
    with tf.Session() as sess:
        return [texts, sess.run(found), sess.run(grads)]


X = np.array([[0.3], [0.7], [0.9]], np.float32)


def normal(tf):
    d = tf.distributions
    dist = d.Normal([0.5, -1.0], [1.0, 2.0])
    return _watch(tf, dist, X, d.Normal(0.0, 3.0), np.array([[0.1], [0.5], [0.999]], np.float32))


def normal_tails(tf):
    dist = tf.distributions.Normal(np.float64(0.0), np.float64(1.0))
    x = np.array([-40.0, -25.0, -12.0, -3.0, 0.0, 3.0, 9.0])
    with tf.Session() as sess:
        return sess.run([dist.log_cdf(x), dist.cdf(x), dist.log_survival_function(x)])


def normal_from_the_graph_seed(tf):
    tf.set_random_seed(3)
    dist = tf.distributions.Normal(tf.zeros([2]), 1.0)
    first, second = dist.sample(3), dist.sample()
    with tf.Session() as sess:
        return [sess.run([first, second]), first.name, second.name]


def gradient_of_samples(tf):
    loc, scale = tf.constant([0.5, 1.0]), tf.constant([1.0, 2.0])
    dist = tf.contrib.distributions.MultivariateNormalDiag(loc, scale)
    drawn = dist.sample(3, seed=1)
    gamma = tf.distributions.Gamma(loc + 1, scale).sample(2, seed=1)
    with tf.Session() as sess:
        return sess.run([tf.gradients(drawn, [loc, scale]), tf.gradients(gamma, [loc, scale])])


def laplace(tf):
    return _watch(tf, tf.distributions.Laplace([0.5, -1.0], [1.0, 2.0]), X)


def uniform(tf):
    return _watch(tf, tf.distributions.Uniform([0.0, 0.5], [1.0, 0.8]), X)


def student_t(tf):
    return _watch(tf, tf.distributions.StudentT([3.0, 1.5], [0.5, -1.0], 2.0), X[:2, 0])


def gamma(tf):
    d = tf.distributions
    return _watch(tf, d.Gamma([0.5, 2.0], [1.0, 3.0]), X, d.Gamma(1.5, 1.0))


def exponential(tf):
    return _watch(tf, tf.distributions.Exponential([1.0, 3.0]), X)


def beta(tf):
    d = tf.distributions
    return _watch(tf, d.Beta([0.5, 2.0], [1.5, 3.0]), X[:2, 0], d.Beta(1.5, 1.0))


def bernoulli(tf):
    d = tf.distributions
    event = np.array([[0], [1], [1]], np.int32)
    return _watch(tf, d.Bernoulli(probs=[0.2, 0.9]), event, d.Bernoulli(logits=0.3))


def categorical(tf):
    d = tf.distributions
    logits = np.log(np.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3]], np.float32))
    event = np.array([[2, 0], [1, 1]], np.int32)
    return _watch(tf, d.Categorical(logits), event, d.Categorical(probs=[0.2, 0.2, 0.6]))


def dirichlet(tf):
    d = tf.distributions
    value = np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]], np.float32)
    return _watch(tf, d.Dirichlet([1.5, 2.0, 3.0]), value, d.Dirichlet([1.0, 1.0, 1.0]))


def multinomial(tf):
    value = np.array([[1.0, 2.0, 1.0], [0.0, 0.0, 4.0]], np.float32)
    return _watch(tf, tf.distributions.Multinomial(4.0, probs=[0.2, 0.3, 0.5]), value)


def dirichlet_multinomial(tf):
    value = np.array([[1.0, 2.0, 1.0], [0.0, 0.0, 4.0]], np.float32)
    dist = tf.distributions.DirichletMultinomial(4.0, [1.0, 2.0, 0.5])
    return _watch(tf, dist, value, drawn=False)


def multivariate_normals(tf):
    d = tf.contrib.distributions
    value = np.array([[0.5, 1.0], [0.0, -1.0]], np.float32)
    matrix = np.array([[1.0, 0.0], [0.5, 2.0]], np.float32)
    dists = [
        d.MultivariateNormalDiag([0.5, 1.0], [1.0, 2.0]),
        d.MultivariateNormalDiag([[0.5, 1.0], [0.0, 1.0]], scale_identity_multiplier=0.5),
        d.MultivariateNormalDiag(scale_diag=[1.0, 3.0]),
        d.MultivariateNormalTriL([0.5, 1.0], matrix),
        d.MultivariateNormalFullCovariance([0.5, 1.0], matrix.dot(matrix.T)),
        d.MultivariateNormalDiagWithSoftplusScale([0.5, 1.0], [1.0, 2.0]),
    ]
    tensors = []
    for dist in dists:
        tensors += [dist.log_prob(value), dist.mean(), dist.variance(), dist.stddev()]
        tensors += [dist.covariance(), dist.entropy(), dist.mode(), dist.sample(3, seed=2)]
        tensors.append(d.kl_divergence(dist, dists[0]))
        tensors.append(d.kl_divergence(dist, dists[3]))
    with tf.Session() as sess:
        return [
            sess.run(tensors),
            [[x.batch_shape.as_list(), x.event_shape.as_list()] for x in dists],
        ]


def contrib_scalars(tf):
    d = tf.contrib.distributions
    dists = [
        d.Logistic([0.5, -1.0], [1.0, 2.0]),
        d.Cauchy([0.5, -1.0], [1.0, 2.0]),
        d.HalfNormal([1.0, 2.0]),
        d.InverseGamma([3.0, 4.0], [1.0, 2.0]),
        d.Chi2([3.0, 4.0]),
        d.NormalWithSoftplusScale([0.5, -1.0], [1.0, 2.0]),
        d.LaplaceWithSoftplusScale([0.5, -1.0], [1.0, 2.0]),
        d.BetaWithSoftplusConcentration([0.5, 1.0], [1.0, 2.0]),
        d.GammaWithSoftplusConcentrationRate([0.5, 1.0], [1.0, 2.0]),
        d.ExponentialWithSoftplusRate([0.5, 1.0]),
        d.StudentTWithAbsDfSoftplusScale([-3.5, 4.0], [0.5, 1.0], 1.0),
        d.Deterministic([0.3, 0.7]),
    ]
    found = []
    x = X[:2, 0]
    for dist in dists:
        tensors = [dist.log_prob(x), dist.cdf(x), dist.mean(), dist.stddev(), dist.mode()]
        tensors += [dist.entropy(), dist.sample(3, seed=2)]
        with tf.Session() as sess:
            found.append([str(dist), sess.run(tensors)])
    return found


def contrib_counts(tf):
    d = tf.contrib.distributions
    counts = np.array([[0.0], [1.0], [3.0]], np.float32)
    found = []
    for dist in [
        d.Poisson([0.5, 2.0]),
        d.Binomial([4.0, 5.0], probs=[0.3, 0.6]),
        d.Geometric(probs=[0.3, 0.6]),
    ]:
        tensors = [dist.log_prob(counts), dist.cdf(counts), dist.mean(), dist.variance()]
        tensors.append(dist.mode())
        with tf.Session() as sess:
            found.append(sess.run(tensors))
    onehot = d.OneHotCategorical(logits=[[0.1, 0.6, 0.3], [1.0, 0.0, 0.0]])
    event = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], np.float32)
    with tf.Session() as sess:
        found.append(
            sess.run(
                [
                    onehot.log_prob(event),
                    onehot.sample(4, seed=1),
                    onehot.mode(),
                    onehot.entropy(),
                    onehot.variance(),
                    d.Poisson([0.5, 2.0]).sample(3, seed=1),
                    d.Geometric(probs=[0.3, 0.6]).sample(3, seed=1),
                ]
            )
        )
    return found


def relaxed(tf):
    d = tf.contrib.distributions
    onehot = d.RelaxedOneHotCategorical(0.5, logits=[0.1, 0.6, 0.3])
    one = d.RelaxedBernoulli(0.5, probs=[0.3, 0.6])
    value = np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]], np.float32)
    with tf.Session() as sess:
        return sess.run(
            [
                onehot.log_prob(value),
                onehot.sample(3, seed=1),
                one.log_prob(X),
                one.sample(3, seed=1),
                one.prob(X),
                one.cdf(X),
            ]
        )


def transformed(tf):
    d = tf.contrib.distributions
    b = d.bijectors
    value = np.array([0.4, 2.0], np.float32)
    dists = [
        d.TransformedDistribution(d.Normal([0.5, 0.0], 1.0), b.Exp()),
        d.TransformedDistribution(d.Normal(0.0, 1.0), b.AffineScalar(1.0, 3.0)),
        d.TransformedDistribution(d.Normal(0.0, 1.0), b.Chain([b.Exp(), b.AffineScalar(1.0, 2.0)])),
        d.TransformedDistribution(d.Gamma(2.0, 1.0), b.Invert(b.Softplus())),
    ]
    tensors = []
    for dist in dists:
        tensors += [dist.log_prob(value), dist.prob(value), dist.cdf(value), dist.sample(3, seed=1)]
    vector = d.TransformedDistribution(
        d.Normal(0.0, 1.0), b.Affine([0.5, 1.0], scale_diag=[2.0, 3.0]), event_shape=[2]
    )
    tensors += [vector.log_prob(value), vector.sample(3, seed=1), vector.entropy()]
    tensors.append(dists[0].quantile(np.array([0.3, 0.6], np.float32)))
    with tf.Session() as sess:
        return sess.run(tensors)


def bijectors(tf):
    b = tf.contrib.distributions.bijectors
    x = tf.constant([[0.3, 0.8], [0.6, 0.1]])
    tril = tf.constant([[1.0, 0.0], [0.5, 2.0]])
    tensors = []
    for one in [
        b.Exp(),
        b.Sigmoid(),
        b.Softplus(),
        b.Softplus(hinge_softness=2.0),
        b.AffineScalar(1.0, 3.0),
        b.Identity(),
        b.Chain([b.Exp(), b.Softplus()]),
        b.Invert(b.Exp()),
    ]:
        tensors += [one.forward(x), one.inverse(x)]
        tensors += [
            one.forward_log_det_jacobian(x, 1) + tf.zeros([2]),
            one.inverse_log_det_jacobian(x, 1) + tf.zeros([2]),
        ]
    for one in [
        b.Affine([1.0, 2.0], scale_diag=[2.0, 3.0]),
        b.Affine(scale_tril=tril),
        b.Affine(scale_identity_multiplier=2.0),
        b.Permute([1, 0]),
    ]:
        tensors += [one.forward(x), one.inverse(x)]
        tensors.append(one.forward_log_det_jacobian(x, 1) + tf.zeros([2]))
    with tf.Session() as sess:
        return sess.run(tensors)


def independent_and_mixtures(tf):
    d = tf.contrib.distributions
    ind = d.Independent(d.Normal([[0.5, 1.0], [0.0, 2.0]], 1.0), reinterpreted_batch_ndims=1)
    other = d.Independent(d.Normal([[0.0, 0.0], [0.0, 0.0]], 2.0), reinterpreted_batch_ndims=1)
    value = np.array([[0.5, 1.0], [0.0, -1.0]], np.float32)
    same = d.MixtureSameFamily(d.Categorical(probs=[0.3, 0.7]), d.Normal([-1.0, 1.0], [0.1, 0.5]))
    vectors = d.MixtureSameFamily(
        d.Categorical(probs=[0.3, 0.7]),
        d.MultivariateNormalDiag([[-1.0, 1.0], [1.0, -1.0]], [[0.3, 0.3], [0.5, 1.0]]),
    )
    mix = d.Mixture(d.Categorical(probs=[0.3, 0.7]), [d.Normal(-1.0, 0.1), d.Normal(1.0, 0.5)])
    with tf.Session() as sess:
        return [
            sess.run([ind.log_prob(value), ind.mean(), ind.entropy(), ind.sample(2, seed=1)]),
            sess.run([d.kl_divergence(ind, other), ind.variance(), ind.mode()]),
            sess.run([same.log_prob(X), same.mean(), same.variance(), same.cdf(X)]),
            sess.run([vectors.log_prob(value), vectors.mean()]),
            sess.run([mix.log_prob(X), mix.mean(), mix.variance()]),
            [ind.batch_shape.as_list(), ind.event_shape.as_list()],
        ]


def checks_and_errors(tf):
    d = tf.distributions
    found = []
    with tf.Session() as sess:
        for build in [
            lambda: d.Normal(0.0, tf.constant(-1.0), validate_args=True).mean(),
            lambda: d.Gamma(tf.constant(-1.0), 1.0, validate_args=True).mean(),
            lambda: d.Bernoulli(probs=tf.constant(1.5), validate_args=True).mean(),
            lambda: d.Uniform(tf.constant(1.0), 0.0, validate_args=True).mean(),
            lambda: d.StudentT(0.5, 0.0, 1.0, allow_nan_stats=False).mean(),
        ]:
            try:
                found.append(sess.run(build()))
            except tf.errors.InvalidArgumentError:
                found.append("InvalidArgumentError")
        for build in [
            lambda: d.Bernoulli(),
            lambda: d.Bernoulli(logits=1, probs=2),
            lambda: d.Bernoulli(probs=1),
            lambda: d.Normal(np.float32(1), np.float64(1)),
            lambda: d.kl_divergence(d.Normal(0.0, 1.0), d.Bernoulli(0.5)),
            lambda: d.Normal(0.0, 1.0).covariance(),
        ]:
            try:
                found.append(build())
            except Exception as e:
                found.append([type(e).__name__, str(e) if "dtype" not in str(e) else ""])
    copied = d.Normal(0.0, 1.0).copy(scale=3.0)
    shapes = d.Normal.param_static_shapes([2, 3])
    found.append([copied.parameters["scale"], copied.parameters["loc"], copied.name])
    found.append({k: v.as_list() for k, v in shapes.items()})
    found.append([repr(d.Normal(0.0, [1.0, 2.0])), str(d.FULLY_REPARAMETERIZED)])
    return found


def own_divergence(tf):
    d = tf.distributions

    class Mine(d.Normal):
        pass

    @d.RegisterKL(Mine, d.Uniform)
    def _kl(a, b, name=None):
        return a.loc - b.low

    with tf.Session() as sess:
        return sess.run(
            [
                d.kl_divergence(Mine(1.0, 1.0), d.Uniform(0.25, 1.0)),
                d.kl_divergence(Mine(1.0, 1.0), d.Normal(0.0, 1.0)),
            ]
        )
