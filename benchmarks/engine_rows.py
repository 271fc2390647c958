"""The rows of the group "engine": small graphs, long graphs, memory, the first heavy ops.

Two columns of targets: what the engine had to reach when it was made, and what it has to reach
since it is to be fast.
"""

from __future__ import annotations

from benchmarks.rows import FLAT, LEVEL, Best, Growth, Quotient, Row, Target, Worst

__all__ = ["ENGINE", "FAST", "ROWS"]

ENGINE = "must (engine)"
FAST = "must (fast)"


def _times(engine: Target | float | None, fast: Target | float | None) -> dict[str, Target]:
    """A number is how many times faster than TensorFlow."""
    targets = {ENGINE: engine, FAST: fast}
    return {
        heading: target if isinstance(target, Target) else Target({"tf": target})
        for heading, target in targets.items()
        if target is not None
    }


def _both(target: Target) -> dict[str, Target]:
    return _times(target, target)


def _jax(times: float) -> Target:
    """Faster than jax too."""
    return Target({"tf": times, "jax": 1})


_FLAT = _both(Target(at_most=FLAT))
_LEVEL = _both(Target(at_most=LEVEL))

ROWS = [
    Row("run of a scalar add", "scalar_add", Best("run"), _times(_jax(40), _jax(60)), short="add"),
    Row(
        "run of a 1x5 linear layer, float64 feed",
        "linear_layer",
        Best("run"),
        _times(_jax(35), _jax(45)),
        short="linear",
    ),
    Row(
        "logistic-regression step, 100x10",
        "logistic_step",
        Best("run"),
        _times(_jax(8), _jax(12)),
        short="logistic",
    ),
    Row(
        "784-512-512-10 MLP, Adam, batch 128",
        "mlp_adam",
        Best("run"),
        _times(1.1, _jax(1.3)),
        short="MLP",
    ),
    Row(
        "ten tanh(1.1x+0.1), a million floats",
        "tanh_chain",
        Best("run"),
        _times(1, 1.2),
        short="tanh",
    ),
    Row(
        "sigmoid cross entropy with gradient, 128x784",
        "sigmoid_loss",
        Best("run"),
        _times(1, 1.5),
        short="sigmoid loss",
        peers=("tf",),
    ),
    Row(
        "dropout with gradient, 128x784",
        "dropout",
        Best("run"),
        _times(1, 1.5),
        short="dropout",
        peers=("tf",),
    ),
    Row(
        "conv net 28x28, 5x5x32, 5x5x64, batch 64, forward",
        "conv_forward",
        Best("run"),
        _times(None, 1),
        short="conv",
    ),
    Row("… with gradient descent", "conv_step", Best("run"), _times(None, 1), short="conv step"),
    Row(
        "graph and session anew, one iteration of 1,000",
        "anew",
        Best("iteration"),
        _times(60, 150),
        short="anew",
    ),
    Row(
        "… iteration 10,000 over iteration 100",
        "anew_long",
        Quotient("late", "early"),
        _FLAT,
        peers=(),
    ),
    Row(
        "import in a new process",
        "import",
        Best("import"),
        _times(15, 15),
        short="import",
    ),
    Row("building a graph, per op", "many_vectors", Best("build"), _times(15, 15), short="build"),
    Row(
        "… of 100,000: last tenth over first",
        "build_long",
        Quotient("late", "early"),
        _FLAT,
        peers=(),
    ),
    Row(
        "5,000 ops on 10-vectors, first run",
        "many_vectors",
        Best("first"),
        _times(5, 10),
        short="first run",
    ),
    Row("… later runs", "many_vectors", Best("later"), _times(0.5, 0.5), short="5,000 ops"),
    Row("5,000 ops on scalars, first run", "many_scalars", Best("first"), _times(5, 10)),
    Row("… later runs", "many_scalars", Best("later"), _times(0.5, 0.5)),
    Row(
        "first run per op, 20,000 over 5,000 ops",
        "first_run_size",
        Quotient("large", "small"),
        _FLAT,
        peers=(),
    ),
    Row(
        "… 5,000 of 50,000 ops over 5,000 of 5,000",
        "first_run_size",
        Quotient("pruned", "small"),
        _FLAT,
        peers=(),
    ),
    Row(
        "… 100,000 over 5,000 ops",
        "long_graph",
        Quotient("large_first", "small_first"),
        _times(None, Target(at_most=FLAT)),
        peers=(),
    ),
    Row(
        "later runs per op, 100,000 over 5,000 ops",
        "long_graph",
        Quotient("large_later", "small_later"),
        _times(None, Target(at_most=FLAT)),
        peers=(),
    ),
    Row("training step with a new batch size", "new_sizes", Best("new"), short="new size"),
    Row(
        "… worst of 1,000 over the settled step",
        "new_sizes",
        Worst("new", "settled"),
        _both(Target(at_most=2)),
    ),
    Row("memory over 100,000 runs", "memory_runs", Growth(), _LEVEL, peers=()),
    Row("memory over 10,000 sessions dropped", "memory_sessions", Growth(), _LEVEL, peers=()),
    Row("memory over 1,000 batch sizes", "memory_sizes", Growth(), _LEVEL, peers=()),
]
