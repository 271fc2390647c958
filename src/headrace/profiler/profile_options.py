"""``tf.profiler.ProfileOptionBuilder``: what a profile counts and shows, as a dictionary.

>>> options = ProfileOptionBuilder().with_max_depth(3).select(["params"]).build()
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["ProfileOptionBuilder"]

_LIMITS = ("min_bytes", "min_micros", "min_params", "min_float_ops", "min_occurrence")


def _options(select: list[str], order_by: str, types: str = ".*", **more: object) -> dict[str, Any]:
    return {
        "max_depth": 10000,
        **dict.fromkeys(_LIMITS, 0),
        "order_by": order_by,
        "account_type_regexes": [types],
        "start_name_regexes": [".*"],
        "trim_name_regexes": [],
        "show_name_regexes": [".*"],
        "hide_name_regexes": [],
        "account_displayed_op_only": True,
        "select": select,
        "step": -1,
        "output": "stdout",
        **more,
    }


class ProfileOptionBuilder:
    """Changes options one by one; :meth:`build` gives the dictionary for a profile."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        plain = _options(["micros"], "name", max_depth=100, account_displayed_op_only=False)
        self._options = copy.deepcopy(dict(plain if options is None else options))

    @staticmethod
    def trainable_variables_parameter() -> dict[str, Any]:
        """Parameters of the trainable variables."""
        return _options(["params"], "name", "_trainable_variables")

    @staticmethod
    def float_operation() -> dict[str, Any]:
        """Floating-point operations."""
        return _options(["float_ops"], "float_ops", min_float_ops=1)

    @staticmethod
    def time_and_memory(
        min_micros: int = 1,
        min_bytes: int = 1,
        min_accelerator_micros: int = 0,
        min_cpu_micros: int = 0,
        min_peak_bytes: int = 0,
        min_residual_bytes: int = 0,
        min_output_bytes: int = 0,
    ) -> dict[str, Any]:
        """Times and memory of traced runs."""
        limits = {
            "min_bytes": min_bytes,
            "min_peak_bytes": min_peak_bytes,
            "min_residual_bytes": min_residual_bytes,
            "min_output_bytes": min_output_bytes,
            "min_micros": min_micros,
            "min_accelerator_micros": min_accelerator_micros,
            "min_cpu_micros": min_cpu_micros,
        }
        return {**_options(["micros", "bytes"], "micros"), **limits}

    def build(self) -> dict[str, Any]:
        """The options, a copy."""
        return copy.deepcopy(self._options)

    def _set(self, **changes: object) -> ProfileOptionBuilder:
        self._options.update(copy.copy(changes))
        return self

    def with_max_depth(self, max_depth: int) -> ProfileOptionBuilder:
        """Show so many levels (of the tree of names, or entries of a list)."""
        return self._set(max_depth=max_depth)

    def with_min_memory(
        self,
        min_bytes: int = 0,
        min_peak_bytes: int = 0,
        min_residual_bytes: int = 0,
        min_output_bytes: int = 0,
    ) -> ProfileOptionBuilder:
        """Show nodes that ask for at least so many bytes."""
        return self._set(
            min_bytes=min_bytes,
            min_peak_bytes=min_peak_bytes,
            min_residual_bytes=min_residual_bytes,
            min_output_bytes=min_output_bytes,
        )

    def with_min_execution_time(
        self, min_micros: int = 0, min_accelerator_micros: int = 0, min_cpu_micros: int = 0
    ) -> ProfileOptionBuilder:
        """Show nodes that take at least so long."""
        return self._set(
            min_micros=min_micros,
            min_accelerator_micros=min_accelerator_micros,
            min_cpu_micros=min_cpu_micros,
        )

    def with_min_parameters(self, min_params: int) -> ProfileOptionBuilder:
        """Show nodes with at least so many parameters of their own."""
        return self._set(min_params=min_params)

    def with_min_occurrence(self, min_occurrence: int) -> ProfileOptionBuilder:
        """Show nodes that stand for at least so many operations."""
        return self._set(min_occurrence=min_occurrence)

    def with_min_float_operations(self, min_float_ops: int) -> ProfileOptionBuilder:
        """Show nodes with at least so many floating-point operations of their own."""
        return self._set(min_float_ops=min_float_ops)

    def with_accounted_types(self, account_type_regexes: Sequence[str]) -> ProfileOptionBuilder:
        """Count nodes one of whose types matches (op type, device, ``_trainable_variables``)."""
        return self._set(account_type_regexes=list(account_type_regexes))

    def with_node_names(
        self,
        start_name_regexes: Sequence[str] | None = None,
        show_name_regexes: Sequence[str] | None = None,
        hide_name_regexes: Sequence[str] | None = None,
        trim_name_regexes: Sequence[str] | None = None,
    ) -> ProfileOptionBuilder:
        """Choose nodes by name: where to start, what to show, to hide, where to stop."""
        given = {
            "start_name_regexes": start_name_regexes,
            "show_name_regexes": show_name_regexes,
            "hide_name_regexes": hide_name_regexes,
            "trim_name_regexes": trim_name_regexes,
        }
        return self._set(**{k: list(v) for k, v in given.items() if v is not None})

    def account_displayed_op_only(self, is_true: bool) -> ProfileOptionBuilder:
        """Whether totals count shown nodes only."""
        return self._set(account_displayed_op_only=is_true)

    def with_empty_output(self) -> ProfileOptionBuilder:
        """Print nothing."""
        return self._set(output="none")

    def with_stdout_output(self) -> ProfileOptionBuilder:
        """Print the report."""
        return self._set(output="stdout")

    def with_file_output(self, outfile: str) -> ProfileOptionBuilder:
        """Write the report to a file."""
        return self._set(output=f"file:outfile={outfile}")

    def with_timeline_output(self, timeline_file: str) -> ProfileOptionBuilder:
        """A timeline: refused by ``profile``, see ``tensorflow.python.client.timeline``."""
        return self._set(output=f"timeline:outfile={timeline_file}")

    def order_by(self, attribute: str) -> ProfileOptionBuilder:
        """``"name"``, ``"params"``, ``"float_ops"``, ``"micros"``, ``"bytes"``, …"""
        return self._set(order_by=attribute)

    def select(self, attributes: Sequence[str]) -> ProfileOptionBuilder:
        """The columns: ``"params"``, ``"float_ops"``, ``"micros"``, ``"bytes"``,
        ``"occurrence"``.
        """
        return self._set(select=list(attributes))

    def with_step(self, step: int) -> ProfileOptionBuilder:
        """The step of a Profiler to report on; -1 for all."""
        return self._set(step=step)
