"""Nothing is lost in silence: an error that is caught is raised again, kept as a reason, or stands
here with why it is no refusal.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import headrace

ROOT = Path(headrace.__file__).parent
PACKAGES = ("lower", "executors", "session", "kernels", "program", "rewrite")

#: Handlers that neither raise nor look at the error, by place.
KNOWN = {
    # the answer itself: something has no hash, a list is empty, another thread was faster
    "lower/select_calls.py:_Calls.kernel_of": "attributes without a hash have a kernel each",
    "lower/user_calls.py:_start": "no thread is idle: one is started",
    "executors/shared_code.py:structure_of": "without a hash there is no equal structure",
    "session/deadlines.py:_Runner.run": "a deadline that came when the run was done",
    "session/deadlines.py:run_within": "no runner is idle: one is made",
    "session/fetches.py:_mapping": "a mapping whose class takes other arguments comes as a dict",
    "session/graph_function.py:GraphFunction.attempt": "batches are tried, elements raise",
    "session/session.py:BaseSession.run": "a fetch without a hash is planned each time",
    "session/session.py:BaseSession._run_any": "a fetch without a hash is planned each time",
    "session/session.py:BaseSession._remember": "another thread was faster",
    "session/calls.py:_call_with_many.call": "a fed tensor is evaluated first",
    "session/calls.py:_call_with_one.call": "a fed tensor is evaluated first",
    "session/calls.py:_call_with_two.call": "a fed tensor is evaluated first",
    "rewrite/rewrite_state.py:RewriteState.attributes_key": "without a hash: not shared",
    "kernels/native/ir_values.py:_to_float32": "the number is infinite in float32",
    "kernels/native/object_cache.py:ObjectCache.get": "a miss, which is counted",
    "kernels/onednn/primitive.py:Cache.get": "a thread's first look",
    # a better text for an error that is raised in any case
    "lower/executable.py:_shape_message": "the text of the error",
    # what is asked for is whether it works; the reason is given by the caller
    "lower/native_groups.py:_is_installed": "compiler_status says so",
    "lower/native_groups.py:extents_of": "shapes that do not broadcast: NumPy raises",
    "lower/native_groups.py:NativeStep.run": "an array that is not contiguous: NumPy's run",
    "lower/native_groups.py:NativeReduction.run": "an array that is not contiguous: NumPy's run",
    "lower/native_segments.py:NativeSegment._bind_again": "an input is no array: steps run",
    "kernels/native/segment_code.py:SegmentCode.elements": "inputs of another shape are repeated",
    "kernels/numpy/openblas.py:_Blas.__init__": "a library that does not load is not OpenBLAS",
    "kernels/onednn/onednn_library.py:_openmp": "without OpenMP nothing is told to its threads",
    "kernels/onednn/bound_primitives.py:Fixed.conv": "'the library has no convolution for it'",
    "kernels/onednn/bound_primitives.py:Fixed.pool": "'the library has no pooling for it'",
    "kernels/onednn/conv_primitives.py:Convolutions._make": "NumPy's kernel runs",
    "kernels/onednn/pool_primitives.py:Pooling._make": "NumPy's kernel runs",
    "kernels/onednn/product_primitives.py:Products._fast_description": "'weights cannot be packed'",
    "program/fed_shapes.py:_shapes_of": "the shape rule says nothing here; the run will",
}


def _silent(node: ast.AST, place: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        inner = place
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            inner = f"{place}.{child.name}" if place else child.name
        if isinstance(child, ast.ExceptHandler) and not _speaks(child):
            yield place
        yield from _silent(child, inner)


def _speaks(handler: ast.ExceptHandler) -> bool:
    inside = [n for statement in handler.body for n in ast.walk(statement)]
    named = {n.id for n in inside if isinstance(n, ast.Name)}
    return handler.name in named or any(isinstance(n, ast.Raise) for n in inside)


def test_every_silent_handler_has_its_reason() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{place}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for place in _silent(ast.parse(path.read_text()), "")
    }
    assert found - set(KNOWN) == set(), "keep the error as a reason that explain prints"
    assert set(KNOWN) - found == set(), "take these out of the table"


#: Who catches everything and says nothing, on purpose.
TRIES = {
    "session/graph_function.py",  # a function on a batch is tried; element by element it says why
}


def test_no_handler_passes_over_everything() -> None:
    """``except:`` and ``except Exception: pass`` have no reason that could be printed."""
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            tries = path.relative_to(ROOT).as_posix() in TRIES
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ExceptHandler):
                    assert node.type is not None, f"{path}:{node.lineno}"
                    broad = ast.unparse(node.type) in ("Exception", "BaseException")
                    assert not broad or tries or _speaks(node), f"{path}:{node.lineno}"
