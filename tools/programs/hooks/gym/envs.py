"""Classic control problems."""

import math

import numpy as np

from . import spaces


class Env:
    steps_allowed = 200
    metadata = {"render.modes": []}
    spec = None

    def __init__(self):
        self.steps = 0

    @property
    def unwrapped(self):
        return self

    def seed(self, value=None):
        np.random.seed(value)
        return [value]

    def render(self, mode="human", close=False):
        del mode, close

    def close(self):
        pass

    def reset(self):
        self.steps = 0
        self.state = self.first_state()
        return self.observation()

    def step(self, action):
        self.steps += 1
        reward, done = self.advance(action)
        done = bool(done or self.steps >= self.steps_allowed)
        return self.observation(), reward, done, {}

    def observation(self):
        return np.array(self.state)


class CartPole(Env):
    def __init__(self):
        super().__init__()
        self.action_space = spaces.Discrete(2)
        self.x_threshold = 2.4
        self.theta_threshold_radians = 12 * 2 * math.pi / 360
        high = np.array([4.8, 3.4e38, 0.42, 3.4e38], np.float32)
        self.observation_space = spaces.Box(-high, high)

    def first_state(self):
        return np.random.uniform(-0.05, 0.05, 4)

    def advance(self, action):
        x, x_dot, theta, theta_dot = self.state
        force = 10.0 if int(action) == 1 else -10.0
        push = (force + 0.05 * theta_dot**2 * math.sin(theta)) / 1.1
        turn = (9.8 * math.sin(theta) - math.cos(theta) * push) / (
            0.5 * (4.0 / 3.0 - 0.1 * math.cos(theta) ** 2 / 1.1)
        )
        pull = push - 0.05 * turn * math.cos(theta) / 1.1
        self.state = np.array(
            [
                x + 0.02 * x_dot,
                x_dot + 0.02 * pull,
                theta + 0.02 * theta_dot,
                theta_dot + 0.02 * turn,
            ]
        )
        fell = abs(self.state[0]) > 2.4 or abs(self.state[2]) > self.theta_threshold_radians
        return 1.0, fell


class MountainCar(Env):
    def __init__(self):
        super().__init__()
        self.action_space = spaces.Discrete(3)
        self.observation_space = spaces.Box(np.array([-1.2, -0.07]), np.array([0.6, 0.07]))

    def first_state(self):
        return np.array([np.random.uniform(-0.6, -0.4), 0.0])

    def advance(self, action):
        position, speed = self.state
        speed += (int(action) - 1) * 0.001 - 0.0025 * math.cos(3 * position)
        speed = float(np.clip(speed, -0.07, 0.07))
        position = float(np.clip(position + speed, -1.2, 0.6))
        self.state = np.array([position, 0.0 if position == -1.2 and speed < 0 else speed])
        return -1.0, position >= 0.5


class MountainCarContinuous(MountainCar):
    steps_allowed = 999

    def __init__(self):
        super().__init__()
        self.action_space = spaces.Box(-1.0, 1.0, (1,))

    def advance(self, action):
        position, speed = self.state
        force = float(np.clip(np.ravel(action)[0], -1, 1))
        speed += force * 0.0015 - 0.0025 * math.cos(3 * position)
        speed = float(np.clip(speed, -0.07, 0.07))
        position = float(np.clip(position + speed, -1.2, 0.6))
        self.state = np.array([position, speed])
        done = position >= 0.45
        return (100.0 if done else 0.0) - 0.1 * force**2, done


class Pendulum(Env):
    def __init__(self):
        super().__init__()
        self.action_space = spaces.Box(-2.0, 2.0, (1,))
        high = np.array([1.0, 1.0, 8.0], np.float32)
        self.observation_space = spaces.Box(-high, high)

    def first_state(self):
        return np.random.uniform([-math.pi, -1.0], [math.pi, 1.0])

    def advance(self, action):
        theta, speed = self.state
        torque = float(np.clip(np.ravel(action)[0], -2, 2))
        angle = (theta + math.pi) % (2 * math.pi) - math.pi
        cost = angle**2 + 0.1 * speed**2 + 0.001 * torque**2
        speed = speed + (15.0 * math.sin(theta) + 3.0 * torque) * 0.05
        speed = float(np.clip(speed, -8, 8))
        self.state = np.array([theta + speed * 0.05, speed])
        return -cost, False

    def observation(self):
        theta, speed = self.state
        return np.array([math.cos(theta), math.sin(theta), speed])


class FrozenLake(Env):
    steps_allowed = 100
    ice = "SFFFFHFHFFFHHFFG"

    def __init__(self):
        super().__init__()
        self.action_space = spaces.Discrete(4)
        self.observation_space = spaces.Discrete(16)

    def first_state(self):
        return 0

    def observation(self):
        return int(self.state)

    def advance(self, action):
        row, column = divmod(self.state, 4)
        turn = (int(action) + np.random.randint(-1, 2)) % 4
        row = min(max(row + (turn == 1) - (turn == 3), 0), 3)
        column = min(max(column + (turn == 2) - (turn == 0), 0), 3)
        self.state = row * 4 + column
        return float(self.ice[self.state] == "G"), self.ice[self.state] in "HG"


class Breakout(Env):
    """Colour screens of an Atari console's size: noise below a bar that the actions move."""

    steps_allowed = 400
    screen = (210, 160, 3)

    def __init__(self):
        super().__init__()
        self.action_space = spaces.Discrete(4)
        self.observation_space = spaces.Box(0, 255, self.screen, np.uint8)
        self.ale = Lives()

    def get_action_meanings(self):
        return ["NOOP", "FIRE", "RIGHT", "LEFT"]

    def first_state(self):
        return 80

    def observation(self):
        rng = np.random.RandomState(self.steps)
        picture = np.zeros(self.screen, np.uint8)
        picture[34:90] = rng.randint(0, 256, (56, 160, 3))
        picture[180:186, self.state - 10 : self.state + 10] = 200
        return picture

    def advance(self, action):
        move = {2: 4, 3: -4}.get(int(action), 0)
        self.state = min(max(self.state + move, 10), 150)
        return float(self.steps % 7 == 0), False


class Lives:
    """What `env.ale` is asked for."""

    @staticmethod
    def lives():
        return 5


MAKERS = {
    "Breakout": Breakout,
    "BreakoutDeterministic": Breakout,
    "Pong": Breakout,
    "CartPole": CartPole,
    "MountainCar": MountainCar,
    "MountainCarContinuous": MountainCarContinuous,
    "Pendulum": Pendulum,
    "FrozenLake": FrozenLake,
}
