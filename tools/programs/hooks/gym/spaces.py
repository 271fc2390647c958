"""Box, Discrete, and vectors of choices."""

import numpy as np


class Space:
    dtype = None
    shape = ()


class Discrete(Space):
    def __init__(self, n):
        self.n = n
        self.dtype = np.dtype("int64")

    def sample(self):
        return int(np.random.randint(self.n))

    def contains(self, x):
        return 0 <= int(x) < self.n


class Box(Space):
    def __init__(self, low, high, shape=None, dtype=np.float32):
        shape = np.shape(low) if shape is None else tuple(shape)
        self.low = np.full(shape, low, dtype)
        self.high = np.full(shape, high, dtype)
        self.shape = shape
        self.dtype = np.dtype(dtype)

    def sample(self):
        return np.random.uniform(self.low, self.high).astype(self.dtype)

    def contains(self, x):
        return bool(np.all(x >= self.low) and np.all(x <= self.high))


class MultiBinary(Space):
    def __init__(self, n):
        self.n = n
        self.shape = (n,)
        self.dtype = np.dtype("int8")

    def sample(self):
        return np.random.randint(0, 2, self.n).astype(self.dtype)

    def contains(self, x):
        return bool(np.all((np.asarray(x) == 0) | (np.asarray(x) == 1)))


class MultiDiscrete(Space):
    def __init__(self, nvec):
        self.nvec = np.asarray(nvec, np.int64)
        self.shape = self.nvec.shape
        self.dtype = np.dtype("int64")

    def sample(self):
        return (np.random.random_sample(self.shape) * self.nvec).astype(self.dtype)

    def contains(self, x):
        return bool(np.all(np.asarray(x) >= 0) and np.all(np.asarray(x) < self.nvec))


class Tuple(Space):
    def __init__(self, spaces):
        self.spaces = list(spaces)

    def sample(self):
        return tuple(s.sample() for s in self.spaces)


class Dict(Space):
    def __init__(self, spaces):
        self.spaces = dict(spaces)

    def sample(self):
        return {k: s.sample() for k, s in self.spaces.items()}
