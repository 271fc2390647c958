"""``tf.test.Benchmark``: methods that time ops, run by ``--benchmarks=PATTERN``.

    class Products(tf.test.Benchmark):
        def benchmarkSquare(self):
            with tf.Session() as session:
                self.run_op_benchmark(session, tf.matmul(x, x))

Results are printed as TensorFlow prints them; the result files of its test runner are not written.
"""

from __future__ import annotations

import inspect
import logging
import numbers
import re
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

from headrace.api.platform import messages
from headrace.core.stacks import default_sessions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headrace.session.session import BaseSession

__all__ = ["Benchmark", "benchmark_config", "run_benchmarks", "take_pattern"]

#: The classes of the program, in the order of their definition.
_classes: list[type[Benchmark]] = []


class Benchmark:
    """Base of a program's benchmarks: methods that begin with ``benchmark`` are run."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        _classes.append(cls)

    @classmethod
    def is_abstract(cls) -> bool:
        """Whether this is the base, which is not run."""
        return cls is Benchmark

    def _get_name(self, overwrite_name: str | None = None) -> str:
        """CLASS.METHOD of the outermost benchmark that is running."""
        for frame in reversed(inspect.stack(context=0)):
            running = frame.frame.f_locals.get("self")
            if isinstance(running, Benchmark):
                return f"{type(running).__name__}.{overwrite_name or frame.function}"
        raise ValueError("Unable to determine calling Benchmark class.")

    def report_benchmark(
        self,
        iters: int | None = None,
        cpu_time: float | None = None,
        wall_time: float | None = None,
        throughput: float | None = None,
        extras: Mapping[str, Any] | None = None,
        name: str | None = None,
        metrics: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Print one result: times in seconds, ``throughput`` in MB/s.

        ``metrics`` have ``name`` and ``value`` and may have ``min_value`` and ``max_value``.
        """
        if extras is not None and not isinstance(extras, dict):
            raise TypeError("extras must be a dict")
        if metrics is not None and not isinstance(metrics, list):
            raise TypeError("metrics must be a list")
        for metric in metrics or []:
            for key in ("name", "value"):
                if key not in metric:
                    raise TypeError(f"metric must has a {key!r} field")
        times = {"cpu_time": cpu_time, "wall_time": wall_time, "throughput": throughput}
        full = self._get_name(name)
        logging.getLogger("tensorflow").info("Benchmark [%s] iters: %s, %s", full, iters, times)
        sys.stdout.write(_entry(full, iters, times, extras or {}, metrics or []) + "\n")

    def run_op_benchmark(
        self,
        sess: BaseSession,
        op_or_tensor: object,
        feed_dict: Mapping[Any, Any] | None = None,
        burn_iters: int = 2,
        min_iters: int = 10,
        store_trace: bool = False,
        store_memory_usage: bool = True,
        name: str | None = None,
        extras: dict[str, Any] | None = None,
        mbs: float = 0,
    ) -> dict[str, Any]:
        """Time runs of ``op_or_tensor``, report the median, and return what was reported.

        ``mbs``: how many megabytes a run moves. ``store_trace`` adds a trace for Chrome to the
        returned ``extras``, ``store_memory_usage`` the most bytes that were held if the trace tells
        it (Headrace's have no memory in them).
        """
        for _ in range(burn_iters):
            sess.run(op_or_tensor, feed_dict=feed_dict)
        taken = []
        for _ in range(min_iters):
            began = time.time()
            sess.run(op_or_tensor, feed_dict=feed_dict)
            taken.append(time.time() - began)
        extras = {} if extras is None else extras
        trace = {}
        if store_trace or store_memory_usage:
            line = _traced(sess, op_or_tensor, feed_dict)
            if store_trace:
                trace["full_trace_chrome_format"] = line.generate_chrome_trace_format()
            if store_memory_usage:
                most = line.analyze_step_stats(show_memory=True).allocator_maximums
                for kind, held in most.items():
                    extras[f"allocator_maximum_num_bytes_{kind}"] = held.num_bytes
        median = statistics.median(taken) if taken else -1.0
        values: dict[str, Any] = {
            "iters": min_iters,
            "wall_time": median,
            "extras": extras,
            "name": name,
            "throughput": mbs / median if median else 0.0,
        }
        self.report_benchmark(**values)
        extras.update(trace)
        return values

    def evaluate(self, tensors: object) -> Any:
        """The values of tensors, in the default session."""
        session = default_sessions.get()
        if session is None:
            raise ValueError("evaluate needs a default session")
        return session.run(tensors)


def _traced(sess: BaseSession, op_or_tensor: object, feeds: Mapping[Any, Any] | None) -> Any:
    from headrace.profiler.timeline import Timeline

    record, kind = messages.find("RunMetadata")(), messages.find("RunOptions")
    options = kind(trace_level=kind.FULL_TRACE)
    sess.run(op_or_tensor, feed_dict=feeds, options=options, run_metadata=record)
    return Timeline(record.step_stats)


def _entry(
    name: str,
    iters: int | None,
    times: Mapping[str, float | None],
    extras: Mapping[str, Any],
    metrics: Sequence[Mapping[str, Any]],
) -> str:
    """The result in the text form of protocol buffers."""
    lines = [f'  name: "{name}"']
    numbers_of = {"iters": iters, **times}
    lines += [f"  {key}: {value}" for key, value in numbers_of.items() if value is not None]
    for key, value in extras.items():
        number = isinstance(value, numbers.Number)
        held = f"double_value: {float(value)}" if number else f'string_value: "{value}"'
        lines += ["  extras {", f'    key: "{key}"', "    value {", f"      {held}", "    }", "  }"]
    for metric in metrics:
        lines += ["  metrics {", f'    name: "{metric["name"]}"', f"    value: {metric['value']}"]
        for key in ("min_value", "max_value"):
            if key in metric:
                lines += [f"    {key} {{", f"      value: {metric[key]}", "    }"]
        lines.append("  }")
    return "\n".join(["entry {", *lines, "}", ""])


def benchmark_config() -> Any:
    """A ConfigProto in which nothing is left out because it seems not to be needed."""
    config = messages.find("ConfigProto")()
    options = config.graph_options.rewrite_options
    options.dependency_optimization = options.OFF
    return config


def take_pattern(arguments: list[str]) -> str | None:
    """The pattern of ``--benchmarks=PATTERN``, which is taken out of the arguments."""
    for argument in arguments:
        if re.match("--?benchmarks=", argument):
            arguments.remove(argument)
            return argument.partition("=")[2]
    return None


def run_benchmarks(pattern: str) -> None:
    """Run the methods MODULE.CLASS.METHOD that the regular expression (or "all") finds."""
    for kind in list(_classes):
        instance = None
        for name in (n for n in dir(kind) if n.startswith("benchmark")):
            full = f"{kind.__module__}.{kind.__name__}.{name}"
            if callable(getattr(kind, name)) and (pattern == "all" or re.search(pattern, full)):
                instance = instance or kind()
                getattr(instance, name)()
    sys.stdout.flush()
