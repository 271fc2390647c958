"""Small programs whose effects have an order. Each is run with Headrace and gives what TensorFlow
2.21 gave.

A program takes ``tf`` and two variables (1.0 and 10.0) and returns a function of one tensor;
``EXPECTED`` has, for each argument, the results and the values of both variables afterwards.
``python function_programs.py`` in an environment with TensorFlow prints the table anew. (What is
printed is in the order of the program here; TensorFlow lets a print after a loop overtake those in
it.)
"""

from __future__ import annotations

from typing import Any


def read_before_and_after_write(tf: Any, v: Any, w: Any) -> Any:
    def f(x: Any) -> Any:
        before = v.read_value()
        v.assign_add(x)
        after = v.read_value()
        v.assign(after * 10.0)
        return before, after, v.read_value()

    return f


def write_nobody_reads(tf: Any, v: Any, w: Any) -> Any:
    def f(x: Any) -> Any:
        w.assign(x)
        return x * 2.0

    return f


def write_after_read(tf: Any, v: Any, w: Any) -> Any:
    def f(x: Any) -> Any:
        a = v + x
        v.assign(100.0)
        b = v + x
        w.assign(a + b)
        return a, b

    return f


def two_variables_crossed(tf: Any, v: Any, w: Any) -> Any:
    def f(x: Any) -> Any:
        v.assign(w + x)
        w.assign(v * 2.0)
        v.assign(w + v)
        return v + w

    return f


def swap(tf: Any, v: Any, w: Any) -> Any:
    def f(x: Any) -> Any:
        old = v.read_value()
        v.assign(w)
        w.assign(old)
        return v - w

    return f


def prints_in_order(tf: Any, v: Any, w: Any) -> Any:
    def f(x: Any) -> Any:
        tf.print("start", v)
        v.assign_add(x)
        tf.print("middle", v, x)
        v.assign_add(x)
        tf.print("end", v)

    return f


def assign_in_branch(tf: Any, v: Any, w: Any) -> Any:
    def f(x: Any) -> Any:
        v.assign_add(1.0)

        def positive() -> Any:
            v.assign_add(x)
            return v.read_value()

        def negative() -> Any:
            w.assign_add(x)
            return w.read_value()

        chosen = tf.cond(x > 0.0, positive, negative)
        after = v.read_value()
        v.assign(0.0)
        return chosen, after, w.read_value()

    return f


def branch_without_result(tf: Any, v: Any, w: Any) -> Any:
    def f(x: Any) -> Any:
        if x > 0.0:
            v.assign(x)
            tf.print("positive")
        else:
            w.assign(x)
            tf.print("negative")
        tf.print("both", v, w)
        return v + w

    return f


def nested_branches(tf: Any, v: Any, w: Any) -> Any:
    def f(x: Any) -> Any:
        if x > 0.0:
            if x > 5.0:
                v.assign(w + x)
                tf.print("large")
            else:
                v.assign_sub(x)
            w.assign(v)
        v.assign_add(100.0)
        return v + 0.0

    return f


def assign_in_loop(tf: Any, v: Any, w: Any) -> Any:
    def f(x: Any) -> Any:
        v.assign(2.0)

        def body(i: Any, j: Any) -> Any:
            v.assign(v * 2.0)
            tf.print("turn", i, v)
            return i + 1, j

        tf.print("before")
        n, _ = tf.while_loop(lambda i, j: i < tf.cast(x, tf.int32), body, [0, 0])
        tf.print("after")
        w.assign(v)
        return n, v + 0.0

    return f


def effects_in_the_condition(tf: Any, v: Any, w: Any) -> Any:
    def f(x: Any) -> Any:
        def test(i: Any, j: Any) -> Any:
            v.assign_add(1.0)
            return v < x

        def body(i: Any, j: Any) -> Any:
            w.assign(v * 10.0)
            return i + 1, j

        n, _ = tf.while_loop(test, body, [0, 0])
        return n, v + 0.0, w + 0.0

    return f


def branch_in_loop(tf: Any, v: Any, w: Any) -> Any:
    def f(x: Any) -> Any:
        for i in tf.range(4):
            if tf.equal(i % 2, 0):
                v.assign_add(x)
            else:
                w.assign(w + v)
                tf.print("odd", i, w)
        return v * w

    return f


def loop_in_branch(tf: Any, v: Any, w: Any) -> Any:
    def f(x: Any) -> Any:
        if x > 0.0:
            for i in tf.range(3):
                v.assign(v * 2.0)
                tf.print(i, v)
        else:
            v.assign(-1.0)
        return v + x

    return f


def loop_in_loop(tf: Any, v: Any, w: Any) -> Any:
    def f(x: Any) -> Any:
        for i in tf.range(2):
            for _ in tf.range(2):
                v.assign_add(x)
            w.assign(w + v)
            tf.print(i, v, w)
        return w - v

    return f


def read_between_loops(tf: Any, v: Any, w: Any) -> Any:
    def f(x: Any) -> Any:
        for _ in tf.range(2):
            v.assign_add(x)
        a = v.read_value()
        for _ in tf.range(2):
            v.assign_add(x)
        return a, v.read_value()

    return f


def loop_that_only_reads(tf: Any, v: Any, w: Any) -> Any:
    def f(x: Any) -> Any:
        v.assign(x)
        total = 0.0
        for _ in tf.range(3):
            total += v
        v.assign(-1.0)
        return total + v

    return f


def function_in_function(tf: Any, v: Any, w: Any) -> Any:
    @tf.function
    def add(x: Any) -> Any:
        tf.print("add", v)
        v.assign_add(x)
        return v.read_value()

    def f(x: Any) -> Any:
        v.assign(5.0)
        a = add(x)
        v.assign(v * 2.0)
        b = add(x)
        return a, b, v - 0.0

    return f


def function_in_branch_and_loop(tf: Any, v: Any, w: Any) -> Any:
    @tf.function
    def step(x: Any) -> Any:
        if x > 1.0:
            v.assign_add(x)
        else:
            w.assign_add(x)
        return v + w

    def f(x: Any) -> Any:
        total = 0.0
        for _ in tf.range(2):
            total += step(x)
            if v > 2.0:
                total += step(x - 1.0)
        return total

    return f


def python_in_order(tf: Any, v: Any, w: Any) -> Any:
    seen: list[float] = []

    def note(a: Any) -> Any:
        seen.append(float(a))
        return a * float(len(seen))

    def f(x: Any) -> Any:
        a = tf.numpy_function(note, [x], tf.float32)
        v.assign(a)
        b = tf.numpy_function(note, [v + 1.0], tf.float32)
        return a, b

    return f


PROGRAMS = [
    read_before_and_after_write,
    write_nobody_reads,
    write_after_read,
    two_variables_crossed,
    swap,
    prints_in_order,
    assign_in_branch,
    branch_without_result,
    nested_branches,
    assign_in_loop,
    effects_in_the_condition,
    branch_in_loop,
    loop_in_branch,
    loop_in_loop,
    read_between_loops,
    loop_that_only_reads,
    function_in_function,
    function_in_branch_and_loop,
    python_in_order,
]
ARGUMENTS = (3.0, 7.0, -2.0)


#: Results and final values of both variables, by TensorFlow 2.21.
EXPECTED: dict[str, tuple[list[float], float, float]] = {
    "assign_in_branch(-2.0)": ([8.0, 2.0, 8.0], 0.0, 8.0),
    "assign_in_branch(3.0)": ([5.0, 5.0, 10.0], 0.0, 10.0),
    "assign_in_branch(7.0)": ([9.0, 9.0, 10.0], 0.0, 10.0),
    "assign_in_loop(-2.0)": ([0.0, 2.0], 2.0, 2.0),
    "assign_in_loop(3.0)": ([3.0, 16.0], 16.0, 16.0),
    "assign_in_loop(7.0)": ([7.0, 256.0], 256.0, 256.0),
    "branch_in_loop(-2.0)": ([-18.0], -3.0, 6.0),
    "branch_in_loop(3.0)": ([147.0], 7.0, 21.0),
    "branch_in_loop(7.0)": ([495.0], 15.0, 33.0),
    "branch_without_result(-2.0)": ([-1.0], 1.0, -2.0),
    "branch_without_result(3.0)": ([13.0], 3.0, 10.0),
    "branch_without_result(7.0)": ([17.0], 7.0, 10.0),
    "effects_in_the_condition(-2.0)": ([0.0, 2.0, 10.0], 2.0, 10.0),
    "effects_in_the_condition(3.0)": ([1.0, 3.0, 20.0], 3.0, 20.0),
    "effects_in_the_condition(7.0)": ([5.0, 7.0, 60.0], 7.0, 60.0),
    "function_in_branch_and_loop(-2.0)": ([16.0], 1.0, 6.0),
    "function_in_branch_and_loop(3.0)": ([70.0], 11.0, 10.0),
    "function_in_branch_and_loop(7.0)": ([110.0], 27.0, 10.0),
    "function_in_function(-2.0)": ([3.0, 4.0, 4.0], 4.0, 10.0),
    "function_in_function(3.0)": ([8.0, 19.0, 19.0], 19.0, 10.0),
    "function_in_function(7.0)": ([12.0, 31.0, 31.0], 31.0, 10.0),
    "loop_in_branch(-2.0)": ([-3.0], -1.0, 10.0),
    "loop_in_branch(3.0)": ([11.0], 8.0, 10.0),
    "loop_in_branch(7.0)": ([15.0], 8.0, 10.0),
    "loop_in_loop(-2.0)": ([7.0], -7.0, 0.0),
    "loop_in_loop(3.0)": ([17.0], 13.0, 30.0),
    "loop_in_loop(7.0)": ([25.0], 29.0, 54.0),
    "loop_that_only_reads(-2.0)": ([-7.0], -1.0, 10.0),
    "loop_that_only_reads(3.0)": ([8.0], -1.0, 10.0),
    "loop_that_only_reads(7.0)": ([20.0], -1.0, 10.0),
    "nested_branches(-2.0)": ([101.0], 101.0, 10.0),
    "nested_branches(3.0)": ([98.0], 98.0, -2.0),
    "nested_branches(7.0)": ([117.0], 117.0, 17.0),
    "prints_in_order(-2.0)": ([], -3.0, 10.0),
    "prints_in_order(3.0)": ([], 7.0, 10.0),
    "prints_in_order(7.0)": ([], 15.0, 10.0),
    "python_in_order(-2.0)": ([-2.0, -2.0], -2.0, 10.0),
    "python_in_order(3.0)": ([3.0, 8.0], 3.0, 10.0),
    "python_in_order(7.0)": ([7.0, 16.0], 7.0, 10.0),
    "read_before_and_after_write(-2.0)": ([1.0, -1.0, -10.0], -10.0, 10.0),
    "read_before_and_after_write(3.0)": ([1.0, 4.0, 40.0], 40.0, 10.0),
    "read_before_and_after_write(7.0)": ([1.0, 8.0, 80.0], 80.0, 10.0),
    "read_between_loops(-2.0)": ([-3.0, -7.0], -7.0, 10.0),
    "read_between_loops(3.0)": ([7.0, 13.0], 13.0, 10.0),
    "read_between_loops(7.0)": ([15.0, 29.0], 29.0, 10.0),
    "swap(-2.0)": ([9.0], 10.0, 1.0),
    "swap(3.0)": ([9.0], 10.0, 1.0),
    "swap(7.0)": ([9.0], 10.0, 1.0),
    "two_variables_crossed(-2.0)": ([40.0], 24.0, 16.0),
    "two_variables_crossed(3.0)": ([65.0], 39.0, 26.0),
    "two_variables_crossed(7.0)": ([85.0], 51.0, 34.0),
    "write_after_read(-2.0)": ([-1.0, 98.0], 100.0, 97.0),
    "write_after_read(3.0)": ([4.0, 103.0], 100.0, 107.0),
    "write_after_read(7.0)": ([8.0, 107.0], 100.0, 115.0),
    "write_nobody_reads(-2.0)": ([-4.0], 1.0, -2.0),
    "write_nobody_reads(3.0)": ([6.0], 1.0, 3.0),
    "write_nobody_reads(7.0)": ([14.0], 1.0, 7.0),
}


def run(tf: Any, program: Any, argument: float, compiled: bool = True) -> tuple[Any, ...]:
    """(results, v, w) of one program."""
    v, w = tf.Variable(1.0), tf.Variable(10.0)
    f = program(tf, v, w)
    result = (tf.function(f) if compiled else f)(tf.constant(argument))
    flat = [] if result is None else list(result) if isinstance(result, (tuple, list)) else [result]
    return [float(r) for r in flat], float(v), float(w)


def _table() -> dict[str, Any]:
    """What TensorFlow makes of the programs."""
    import tensorflow

    return {f"{p.__name__}({a})": run(tensorflow, p, a) for p in PROGRAMS for a in ARGUMENTS}


if __name__ == "__main__":
    import pprint

    pprint.pprint(_table(), width=120)
