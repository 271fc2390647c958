"""Deep Q learning and a policy gradient on a pole that is balanced: nets so small that a run is
mostly overhead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.programs.drawing import Draw

__all__ = ["dqn", "policy_gradient"]

ACTS = 16


def dqn(tf: Any, session: Any) -> Callable[[], list[float]]:
    """DQN 4-64-64-2 with a target net: one action, one update of 32 transitions"""
    draw = Draw()
    state, later = (tf.placeholder(tf.float32, [None, 4]) for _ in range(2))
    action = tf.placeholder(tf.int32, [None])
    reward, done = (tf.placeholder(tf.float32, [None]) for _ in range(2))
    sizes = ((4, 64), (64, 64), (64, 2))

    def net(x: Any) -> tuple[Any, list[Any]]:
        layers = [draw.layer(tf, *shape) for shape in sizes]
        for number, (weights, bias) in enumerate(layers):
            x = tf.matmul(x, weights) + bias
            x = tf.nn.relu(x) if number < 2 else x
        return x, [v for layer in layers for v in layer]

    q, own = net(state)
    target_q, theirs = net(later)
    greedy = tf.argmax(q, 1)
    best = reward + 0.99 * (1 - done) * tf.reduce_max(target_q, axis=1)
    taken = tf.reduce_sum(q * tf.one_hot(action, 2), axis=1)
    error = tf.stop_gradient(best) - taken
    huber = tf.where(tf.abs(error) < 1.0, 0.5 * tf.square(error), tf.abs(error) - 0.5)
    loss = tf.reduce_mean(huber)
    optimizer = tf.train.AdamOptimizer(1e-3)
    pairs = optimizer.compute_gradients(loss, var_list=own)
    clipped = [(tf.clip_by_norm(g, 10.0), v) for g, v in pairs if g is not None]
    train = optimizer.apply_gradients(clipped)
    follow = tf.group(*(t.assign(0.99 * t + 0.01 * o) for t, o in zip(theirs, own)))
    one, states, laters = draw.normal(1, 4), draw.normal(32, 4), draw.normal(32, 4)
    actions, rewards, ends = draw.integers(2, 32), draw.uniform(32), np.zeros(32, np.float32)
    feed = {state: states, later: laters, action: actions, reward: rewards, done: ends}

    def step() -> list[float]:
        session.run(greedy, feed_dict={state: one})
        _, value = session.run([train, loss], feed_dict=feed)
        session.run(follow)
        return [value]

    return step


def policy_gradient(tf: Any, session: Any) -> Callable[[], list[float]]:
    """policy gradient 4-32-2: an episode of 16 actions, gradients summed, then applied"""
    draw = Draw()
    state, action = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int32, [None])
    reward = tf.placeholder(tf.float32, [None])
    (w1, b1), (w2, b2) = draw.layer(tf, 4, 32), draw.layer(tf, 32, 2)
    logits = tf.matmul(tf.nn.relu(tf.matmul(state, w1) + b1), w2) + b2
    chances = tf.nn.softmax(logits)
    taken = tf.reduce_sum(tf.log(chances) * tf.one_hot(action, 2), axis=1)
    loss = -tf.reduce_mean(taken * reward)
    variables = [w1, b1, w2, b2]
    gradients = tf.gradients(loss, variables)
    holders = [tf.placeholder(tf.float32) for _ in variables]
    update = tf.train.AdamOptimizer(1e-2).apply_gradients(zip(holders, variables))
    states, actions = draw.normal(ACTS, 4), draw.integers(2, ACTS)
    rewards = draw.normal(ACTS)

    def step() -> list[float]:
        for row in states:
            session.run(chances, feed_dict={state: [row]})
        feed = {state: states, action: actions, reward: rewards}
        value, *found = session.run([loss, *gradients], feed_dict=feed)
        session.run(update, feed_dict=dict(zip(holders, found)))
        return [value]

    return step
