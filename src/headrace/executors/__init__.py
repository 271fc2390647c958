"""Executors turn programs into functions: numpy (the default), reference, and xla where jax is
installed.

The way from a program to a function is imported when the first plan is made, not with ``import
headrace``.
"""

from __future__ import annotations

from headrace import env, kernels
from headrace.lower.executable import Executable, Options, options_for
from headrace.program.nodes import Program

kernels.install()

__all__ = ["Executable", "Options", "make_executable", "options_for"]


def make_executable(program: Program, options: Options) -> Executable:
    """Rewrite, plan and bind a program."""
    from headrace.lower.passes import Choices, make_plan

    if options.executor == "reference":
        from headrace.executors.reference import make_reference

        return make_reference(make_plan(program, Choices(fusion=False)), options)
    if options.executor == "xla":
        from headrace.executors.xla import make_xla

        plain = options_for(
            "numpy", options.rewrites, options.fusion, options.exact, options.weights
        )
        return make_xla(program, options, lambda: make_executable(program, plain))
    if options.executor != "numpy":
        raise ValueError(
            f"There is no executor {options.executor!r}; there are 'numpy', 'reference' and 'xla'."
        )
    from headrace.executors.numpy_executor import make_numpy
    from headrace.executors.specialised import specialise
    from headrace.runtime.allocator import keep_freed

    keep_freed()
    if not options.rewrites:
        return make_numpy(make_plan(program, Choices(options.fusion)), options)
    _check(program, "building it")
    general = _planned(program, options)
    if not options.fusion:
        return general
    return specialise(program, general, lambda known, often: _planned(known, options, often))


def _planned(program: Program, options: Options, often: bool = False) -> Executable:
    """Rewrite, lower and emit a program for the default executor; one that runs ``often`` may have
    a larger plan.
    """
    from headrace.executors.numpy_executor import make_numpy
    from headrace.lower.passes import lower_program
    from headrace.rewrite.engine import rewrite
    from headrace.rewrite.rule_table import rules_for

    program = rewrite(program, rules_for(options.exact, often=often))
    _check(program, "rewriting")
    plan, written = lower_program(program, options.weights, options.fusion)
    part = None if written is None else make_numpy(written, options)
    return make_numpy(plan, options, part)


def _check(program: Program, after: str) -> None:
    """Verify a program where HEADRACE_DEBUG asks for it; the verifier is loaded then."""
    if env.verifies():
        from headrace.program.verify import verify

        verify(program, after)
