"""Wrapper and Monitor (which records nothing)."""


class Wrapper:
    def __init__(self, env):
        self.env = env

    def __getattr__(self, name):
        if name == "env":
            raise AttributeError(name)
        return getattr(self.env, name)

    @property
    def unwrapped(self):
        return self.env.unwrapped


ObservationWrapper = ActionWrapper = RewardWrapper = Wrapper


class Monitor(Wrapper):
    def __init__(self, env, directory=None, **options):
        del directory, options
        super().__init__(env)
