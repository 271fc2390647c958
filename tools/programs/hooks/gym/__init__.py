"""A small stand-in for OpenAI Gym's interface (reset, step, render, seed), for public programs.

It has CartPole, MountainCar, Pendulum and FrozenLake with the usual equations of motion, so that
programs need neither the package nor its version. Plain Python 3.7 and NumPy.
"""

import numpy as np

from . import envs, spaces, utils, wrappers  # noqa: F401
from .envs import MAKERS, Env  # noqa: F401
from .wrappers import Wrapper  # noqa: F401


def make(name):
    """The environment called `name`, version number included or not."""
    key = name.split("-v")[0]
    if key not in MAKERS:
        raise ValueError(f"this stand-in for gym has {sorted(MAKERS)}, not {name}")
    env = MAKERS[key]()
    env.spec = Spec(name, env.steps_allowed)
    return env


envs.make = make


def spec(name):
    """What `make(name).spec` is."""
    return make(name).spec


class Spec:
    def __init__(self, name, steps):
        self.id = name
        self.max_episode_steps = steps
        self.reward_threshold = 195.0
        self.timestep_limit = steps
        self.tags = {}


class logger:
    @staticmethod
    def set_level(level):
        del level


def seed(value):
    np.random.seed(value)
