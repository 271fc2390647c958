"""What programs take from `gym.utils`."""


class seeding:
    @staticmethod
    def np_random(seed=None):
        import numpy as np

        return np.random.RandomState(seed), seed
