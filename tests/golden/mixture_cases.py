"""Samples of mixtures. Run on TF 1.15 (make_cases.py) and on Headrace."""

import numpy as np


def _samples(tf, make):
    found = []
    for static in (False, True):
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(3)
            mixture = make(tf.contrib.distributions, static)
            values = session.run([mixture.sample([2, 3], seed=7), mixture.sample(4, seed=1)])
            found.append([np.round(v, 4) for v in values])
    return found


def scalars(tf):
    return _samples(
        tf,
        lambda d, static: d.Mixture(
            d.Categorical(logits=[1.0, 2.0, 3.0]),
            [d.Normal(0.0, 1.0), d.Laplace(10.0, 1.0), d.Normal(-5.0, 0.1)],
            use_static_graph=static,
        ),
    )


def batches(tf):
    return _samples(
        tf,
        lambda d, static: d.Mixture(
            d.Categorical(probs=[[0.3, 0.7], [0.5, 0.5]]),
            [d.Normal([0.0, 100.0], 1.0), d.Normal([10.0, 200.0], 1.0)],
            use_static_graph=static,
        ),
    )


def vectors(tf):
    return _samples(
        tf,
        lambda d, static: d.Mixture(
            d.Categorical(probs=[[0.3, 0.7], [0.5, 0.5]]),
            [
                d.MultivariateNormalDiag([[0.0, 100.0], [1.0, 2.0]]),
                d.MultivariateNormalDiag([[10.0, 200.0], [0.0, 0.0]]),
            ],
            use_static_graph=static,
        ),
    )
