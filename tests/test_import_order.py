"""The rooms of the tree: imports go downward only, and a module name occurs once.

Also: who may name jax, print, and read the environment.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src" / "headrace"

#: From the bottom up; a package may import itself, what stands above it here, and its own line.
LAYERS: list[tuple[str, ...]] = [
    ("errors",),
    ("env",),
    ("runtime",),
    ("core",),
    ("kernels",),
    ("wire",),
    ("ops",),
    ("variables",),
    ("autodiff",),
    ("program",),
    ("rewrite",),
    ("lower",),
    ("executors",),
    ("session",),
    ("autograph", "eager", "functions"),
    ("layers",),
    ("linear_operators",),
    ("distributions",),
    ("train",),
    ("data",),
    ("formats",),
    ("graph_editor",),
    ("profiler",),
    ("api", "compat", "__init__"),
    ("dropin",),
    ("cli", "__main__"),
]
RANK = {name: i for i, names in enumerate(LAYERS) for name in names}

#: Imports inside functions that go upward, each with the reason why it cannot be turned round.
LAZY_UPWARD: dict[tuple[str, str], str] = {
    (
        "ops",
        "autodiff",
    ): "a gradient that is itself the gradient of a subgraph; autodiff reads gradients from "
    "the ops",
    (
        "ops",
        "variables",
    ): "match_filenames_once keeps its result in a local variable",
    (
        "train",
        "formats",
    ): "a saver writes the MetaGraph of its graph beside the checkpoint; formats read what "
    "train defines",
}

#: The one module that reads environment variables.
ENVIRONMENT_MODULE = "env.py"

#: Modules outside cli/ whose purpose is to print.
PRINTERS: dict[str, str] = {
    "ops/io/printing.py": "tf.Print and tf.print",
}


def modules() -> list[Path]:
    return sorted(p for p in SRC.rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(SRC))


def package_of(path: Path) -> str:
    return path.relative_to(SRC).with_suffix("").parts[0]


def dotted(path: Path) -> str:
    parts = ["headrace", *path.relative_to(SRC).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[tuple[str, int, bool]]:
    """(imported module, line, whether only inside a function or for type checking)."""
    tree = ast.parse(path.read_text())
    lazy = {
        id(n)
        for f in ast.walk(tree)
        if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef))
        for n in ast.walk(f)
    }
    typing = {
        id(n)
        for i in ast.walk(tree)
        if isinstance(i, ast.If) and "TYPE_CHECKING" in ast.dump(i.test)
        for n in ast.walk(i)
    }
    for node in ast.walk(tree):
        if id(node) in typing:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno, id(node) in lazy
        elif isinstance(node, ast.ImportFrom):
            for target in from_targets(path, node):
                yield target, node.lineno, id(node) in lazy
        elif isinstance(node, ast.Call) and (name := imported_by_name(node)):
            yield name, node.lineno, id(node) in lazy


def imported_by_name(call: ast.Call) -> str | None:
    """The module of ``importlib.import_module("headrace.formats.graph_files")``."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name != "import_module" or not call.args or not isinstance(call.args[0], ast.Constant):
        return None
    return str(call.args[0].value)


def from_targets(path: Path, node: ast.ImportFrom) -> list[str]:
    """``from headrace import core`` names the submodules that it imports.

    Any other form names the module.
    """
    base = node.module or ""
    if node.level:
        parts = dotted(path).split(".")
        keep = len(parts) - node.level + (path.name == "__init__.py")
        base = ".".join([*parts[:keep], *([node.module] if node.module else [])])
    if base == "headrace":
        return [f"headrace.{alias.name}" for alias in node.names]
    return [base]


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_imports_go_downward(path: Path) -> None:
    here = package_of(path)
    assert here in RANK, f"{name_of(path)}: package {here} has no place in the layers"
    wrong = []
    for target, line, lazy in imports(path):
        if target.split(".")[0] != "headrace":
            continue
        there = target.split(".")[1] if "." in target else "__init__"
        if here == "__init__" or there == here:
            continue
        if RANK.get(there, len(LAYERS)) > RANK[here] and not (
            lazy and (here, there) in LAZY_UPWARD
        ):
            wrong.append(f"{name_of(path)}:{line} imports {target}")
    assert not wrong, "imports upward:\n" + "\n".join(wrong)


def test_module_names_occur_once() -> None:
    """Namespaces of TensorFlow repeat its names by nature: what is below ``api`` and ``compat``.

    Modules that stand in ``api`` itself are Headrace's own, so the rule holds for them.
    """
    places: dict[str, list[str]] = {}
    for path in modules():
        mirrored = package_of(path) in ("api", "compat") and path.parent.name != "api"
        if path.stem not in ("__init__", "__main__") and not mirrored:
            places.setdefault(path.stem, []).append(name_of(path))
    assert not {k: v for k, v in places.items() if len(v) > 1}


def test_every_package_says_what_it_is() -> None:
    empty = [
        name_of(p)
        for p in modules()
        if p.name == "__init__.py" and not ast.get_docstring(ast.parse(p.read_text()))
    ]
    assert not empty, f"packages without a docstring: {empty}"


def test_lazy_upward_imports_exist() -> None:
    found = {
        (package_of(p), t.split(".")[1])
        for p in modules()
        for t, _, lazy in imports(p)
        if lazy and t.startswith("headrace.")
    }
    assert not set(LAZY_UPWARD) - found, "take these out of LAZY_UPWARD"


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_jax_is_named_in_two_places_only(path: Path) -> None:
    if name_of(path).startswith(("kernels/jax/", "executors/xla")):
        return
    assert not [t for t, _, _ in imports(path) if t.split(".")[0] in ("jax", "jaxlib")]


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_nobody_imports_tensorflow(path: Path) -> None:
    assert not [t for t, _, _ in imports(path) if t.split(".")[0] == "tensorflow"]


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_nobody_prints(path: Path) -> None:
    name = name_of(path)
    if name.startswith("cli/") or name in PRINTERS:
        return
    calls = (n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call))
    lines = [c.lineno for c in calls if isinstance(c.func, ast.Name) and c.func.id == "print"]
    assert not lines, f"{name} prints in lines {lines}; use an event, a logger or cli/"


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_environment_is_read_in_one_module(path: Path) -> None:
    if name_of(path) == ENVIRONMENT_MODULE:
        return
    tree = ast.parse(path.read_text())
    names = [
        n.lineno
        for n in ast.walk(tree)
        if isinstance(n, ast.Attribute) and n.attr in ("environ", "getenv")
    ]
    assert not names, f"{name_of(path)} reads the environment in lines {names}; use headrace.env"


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_modules_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 800
