"""Small training programs as people write them for TensorFlow 1, one text for Headrace and
TensorFlow.

A program is a function of the module ``tf`` and a session, called inside the session's graph. It
builds its graph and gives a function that makes one training step and returns the step's losses.
Data comes from a fixed generator, and random ops have seeds, so that both libraries compute the
same numbers:

    step = make_step(tf, "vae")
    step()                                        # [541.9]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.programs.classic import kmeans, pinn
from benchmarks.programs.generative import conditional_gan, gan, vae
from benchmarks.programs.language import char_rnn, word2vec
from benchmarks.programs.reinforcement import dqn, policy_gradient
from benchmarks.programs.supervised import dropout_mlp

__all__ = ["PROGRAMS", "TITLES", "losses", "make_step"]

Step = Callable[[], list[float]]

PROGRAMS: dict[str, Callable[[Any, Any], Step]] = {
    "vae": vae,
    "gan": gan,
    "cgan": conditional_gan,
    "dropout": dropout_mlp,
    "dqn": dqn,
    "policy": policy_gradient,
    "word2vec": word2vec,
    "char_rnn": char_rnn,
    "pinn": pinn,
    "kmeans": kmeans,
}

#: The first line of each program's docstring.
TITLES = {name: (make.__doc__ or name).split("\n")[0] for name, make in PROGRAMS.items()}


def make_step(tf: Any, name: str, warm: int = 0) -> Step:
    """A step of a program in a graph and a session of its own, after ``warm`` of them."""
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(1)
        session = tf.Session(graph=graph)
        step = PROGRAMS[name](tf, session)
        session.run(tf.global_variables_initializer())
    for _ in range(warm):
        step()
    return step


def losses(tf: Any, name: str, steps: int) -> list[float]:
    """The losses of the first steps, end to end."""
    step = make_step(tf, name)
    return [float(loss) for _ in range(steps) for loss in step()]
