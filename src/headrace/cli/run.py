"""``headrace run``: a program as ``__main__``, with ``tensorflow`` meaning Headrace.

What the program sees (``sys.argv``, ``sys.path[0]``, ``__file__``) and what its caller sees (exit
code, traceback) is what Python itself would show: no frame of Headrace's stands on top of the
program's.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import sys
import types
from pathlib import Path
from typing import Any

from headrace import dropin
from headrace.dropin import finder
from headrace.dropin.source_scan import Choice, choose_api

__all__ = ["add_arguments"]

EXECUTORS = ("numpy", "reference")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--report", action="store_true", help="print an account of the runs at the end (to stderr)"
    )
    parser.add_argument(
        "--executor", choices=EXECUTORS, default="numpy", help="what computes (default: numpy)"
    )
    parser.add_argument(
        "--api",
        choices=("v1", "v2"),
        default=None,
        help="what `import tensorflow` gives: TensorFlow 1.15 (v1) or TensorFlow 2 (v2, eager); "
        "without this option the program's own source decides",
    )
    parser.add_argument(
        "-m", dest="module", action="store_true", help="run a module, found as an import would"
    )
    parser.add_argument("program", metavar="script.py", help="the program")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    parser.set_defaults(function=_run)


def _run(options: argparse.Namespace) -> int:
    choice = _choose_api(options)
    dropin.install(choice.api)
    _choose_executor(options.executor)
    if options.report:
        from headrace.cli.report import Account

        Account().start()
    sys.argv = [options.program, *options.args]
    try:
        code, module = (
            _find_module(options.program) if options.module else _find_script(options.program)
        )
    except _CannotOpen as e:
        print(f"headrace: {e}", file=sys.stderr)
        return e.exit_code
    except SyntaxError as e:
        sys.excepthook(type(e), e.with_traceback(None), None)
        return 1
    return _execute(code, module, choice)


def _choose_api(options: argparse.Namespace) -> Choice:
    """``--api``, else what the program's source says."""
    if options.api:
        return Choice(options.api, "--api")
    if options.module:
        return _choose_api_of_module(options.program)
    script = Path(options.program)
    if script.is_dir():
        script = script / "__main__.py"
    return choose_api(script) if script.is_file() else Choice("v1", "the default")


def _choose_api_of_module(name: str) -> Choice:
    """The API that a module's source asks for.

    The module is found without importing its package, which may import tensorflow.
    """
    for root in ("", *sys.path[1:]):
        stem = Path(root, *name.split("."))
        for script in (stem.with_name(f"{stem.name}.py"), stem / "__main__.py"):
            if script.is_file():
                return choose_api(script, Path(root))
    return Choice("v1", "the default")


def _choose_executor(name: str) -> None:
    from headrace.session import session

    session._default_executor[0] = name


class _CannotOpen(Exception):
    """The program cannot be found; with Python's own exit code for it."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def _main_module(file: str | None, spec: Any = None) -> types.ModuleType:
    module = types.ModuleType("__main__")
    module.__dict__.update(
        __builtins__=__builtins__, __spec__=spec, __package__=spec.parent if spec else None
    )
    if file is not None:
        module.__file__ = file
    return module


def _find_script(path: str) -> tuple[types.CodeType, types.ModuleType]:
    if os.path.isdir(path):
        inner = os.path.join(path, "__main__.py")
        if not os.path.isfile(inner):
            raise _CannotOpen(f"can't find '__main__' module in {path!r}", 1)
        sys.path[0] = path
        path = inner
    else:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    path = os.path.abspath(path)
    try:
        with open(path, "rb") as f:
            source = f.read()
    except OSError as e:
        raise _CannotOpen(f"can't open file {path!r}: [Errno {e.errno}] {e.strerror}", 2) from None
    return compile(source, path, "exec", dont_inherit=True), _main_module(path)


def _find_module(name: str) -> tuple[types.CodeType, types.ModuleType]:
    sys.path[0] = os.getcwd()
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as e:
        raise _CannotOpen(
            f"Error while finding module specification for {name!r} ({e})", 1
        ) from None
    if spec is None or spec.loader is None or not hasattr(spec.loader, "get_code"):
        raise _CannotOpen(f"No module named {name}", 1)
    code = spec.loader.get_code(spec.name)
    if code is None:
        raise _CannotOpen(f"No code object available for {name}", 1)
    sys.argv[0] = spec.origin or name
    return code, _main_module(spec.origin, spec)


def _execute(code: types.CodeType, module: types.ModuleType, choice: Choice) -> int:
    sys.modules["__main__"] = module
    try:
        exec(code, module.__dict__)
    except SystemExit:
        raise
    except KeyboardInterrupt as e:
        _show(e)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)  # so that a shell sees an interrupted program
        return 130
    except BaseException as e:
        _show(e)
        if _is_about_the_api(e, choice.api):
            other = "v2" if choice.api == "v1" else "v1"
            print(
                f"headrace: the program ran with TensorFlow {choice.api[1]}'s names and behaviour "
                f"({choice.reason}). If it is written for the other version, add --api {other}.",
                file=sys.stderr,
            )
        return 1
    return 0


#: Parts of messages of errors that come from running with the other version's behaviour.
_SIGNS = {
    "v1": (
        "has no attribute 'numpy'",
        "only iterable when eager execution",
        "only supported when eager execution is enabled",
        "as a Python `bool` is not allowed",
    ),
    "v2": (
        "tf.Session",
        "tf.placeholder",
        "tf.get_variable",
        "tf.contrib",
        "is not compatible with eager execution",
        "not supported when eager execution is enabled",
        "is part of TensorFlow 1.15",
        "TensorFlow 2 has no",
    ),
}


def _is_about_the_api(error: BaseException, api: str) -> bool:
    return any(sign in str(error) for sign in _SIGNS[api])


def _show(error: BaseException) -> None:
    """The traceback as Python would show it.

    Without the frames of this module and of the import hook.
    """
    trace = _without_own_frames(error.__traceback__)
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def _without_own_frames(trace: types.TracebackType | None) -> types.TracebackType | None:
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    kept = [t for t in frames if t.tb_frame.f_code.co_filename not in _HIDDEN]
    for above, below in zip(kept, [*kept[1:], None]):
        above.tb_next = below
    return kept[0] if kept else None


_HIDDEN = (__file__, finder.__file__)
