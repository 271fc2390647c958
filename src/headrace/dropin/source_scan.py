"""Which of TensorFlow's names a program uses, read from its source without running it.

``symbols(path)`` finds names through imports and aliases: ``tf.nn.relu`` after ``import tensorflow
as tf``, ``slim.conv2d`` after ``slim = tf.contrib.slim``, ``layers.dense`` after ``from tensorflow
import layers``. ``choose_api`` decides from them whether a program is written for TensorFlow 1 or
for eager TensorFlow 2.

    >>> [u.symbol for u in symbols_of_source("import tensorflow as tf\\ntf.nn.relu(x)", "f.py")]
    ['nn.relu']
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Choice", "Use", "choose_api", "program_files", "symbols", "symbols_of_source"]

MAX_FILES = 300

#: Names that only TensorFlow 1 programs use, as prefixes of dotted names.
_V1_ONLY = (
    "ConfigProto",
    "GPUOptions",
    "InteractiveSession",
    "Session",
    "app",
    "assign",
    "contrib",
    "flags",
    "get_collection",
    "get_variable",
    "global_variables",
    "global_variables_initializer",
    "gfile",
    "initialize_all_variables",
    "layers",
    "local_variables_initializer",
    "logging",
    "losses.add_loss",
    "placeholder",
    "placeholder_with_default",
    "random_normal",
    "random_uniform",
    "reset_default_graph",
    "set_random_seed",
    "summary.FileWriter",
    "summary.merge_all",
    "to_float",
    "to_int32",
    "trainable_variables",
    "train.AdamOptimizer",
    "train.GradientDescentOptimizer",
    "train.Saver",
    "truncated_normal",
    "variable_scope",
    "disable_v2_behavior",
    "disable_eager_execution",
    "get_default_graph",
    "compat.v1.Session",
    "compat.v1.placeholder",
    "compat.v1.disable_v2_behavior",
    "compat.v1.disable_eager_execution",
    "compat.v1.get_variable",
)
#: Names that say that a program runs eagerly.
_EAGER = (
    "GradientTape",
    "function",
    "optimizers",
    "keras",
    "config.run_functions_eagerly",
    "config.list_physical_devices",
    "config.set_visible_devices",
    "data.AUTOTUNE",
    "summary.create_file_writer",
    "summary.experimental",
)
_EAGER_METHODS = ("numpy",)
#: A dataset's methods that give an iterator for graphs.
_GRAPH_ITERATORS = ("make_one_shot_iterator", "make_initializable_iterator")
#: Ops whose result eager programs put into an `if`.
_TENSOR_FUNCTIONS = (
    "equal",
    "greater",
    "less",
    "not_equal",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_sum",
)
#: A program that calls one of these starts eager execution itself, with TensorFlow 1's names.
_EAGER_SWITCHES = (
    "enable_eager_execution",
    "compat.v1.enable_eager_execution",
    "enable_v2_behavior",
)


@dataclass(frozen=True)
class Use:
    """One use of a name below ``tensorflow``."""

    symbol: str  # without "tf."
    file: str
    line: int


@dataclass(frozen=True)
class Choice:
    """The API that a program is written for, and why."""

    api: str
    reason: str


class _Finder(ast.NodeVisitor):
    def __init__(self, file: str) -> None:
        self.file = file
        self.aliases: dict[str, str] = {}
        self.uses: dict[tuple[str, int], Use] = {}
        self.methods: dict[str, int] = {}
        #: The first line that iterates over a dataset or decides on a tensor, as eager code does.
        self.eager_line: int | None = None
        self._datasets: set[str] = set()
        self._inner: set[int] = set()
        self._functions = 0

    def use(self, symbol: str, line: int) -> None:
        if symbol:
            self.uses.setdefault((symbol, line), Use(symbol, self.file, line))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            root, _, below = alias.name.partition(".")
            if root == "tensorflow":
                self.aliases[alias.asname or "tensorflow"] = below if alias.asname else ""
                self.use(below, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        root, _, below = (node.module or "").partition(".")
        if node.level or root != "tensorflow":
            return
        for alias in node.names:
            symbol = below if alias.name == "*" else f"{below}.{alias.name}".lstrip(".")
            if alias.name != "*":
                self.aliases[alias.asname or alias.name] = symbol
            self.use(symbol, node.lineno)

    def visit_Assign(self, node: ast.Assign) -> None:
        """``slim = tf.contrib.slim`` makes a further alias."""
        symbol = self.dotted(node.value)
        for target in node.targets:
            if symbol and isinstance(target, ast.Name) and isinstance(node.value, ast.Attribute):
                self.aliases[target.id] = symbol
            if isinstance(target, ast.Name) and self.is_dataset(node.value):
                self._datasets.add(target.id)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._functions += 1
        self.generic_visit(node)
        self._functions -= 1

    def visit_For(self, node: ast.For) -> None:
        """``for x in dataset`` works in eager code only."""
        if self.is_dataset(node.iter):
            self.note_eager(node.lineno)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        """``if tf.reduce_sum(x) > 2`` too, outside of functions (which may be traced)."""
        test = node.test
        parts = [test.left, *test.comparators] if isinstance(test, ast.Compare) else [test]
        if not self._functions and any(self.is_tensor(p) for p in parts):
            self.note_eager(node.lineno)
        self.generic_visit(node)

    def note_eager(self, line: int) -> None:
        if self.eager_line is None:
            self.eager_line = line

    def is_dataset(self, node: ast.expr) -> bool:
        """Whether an expression is ``tf.data…(…)``, a name for one, or a method call on one."""
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if name in ("enumerate", "zip"):
                return any(self.is_dataset(a) for a in node.args)
            symbol = self.dotted(node.func) or ""
            if symbol.startswith(("data.", "compat.v1.data.", "compat.v2.data.")):
                return "Dataset" in symbol
            return isinstance(node.func, ast.Attribute) and (
                node.func.attr not in _GRAPH_ITERATORS and self.is_dataset(node.func.value)
            )
        return isinstance(node, ast.Name) and node.id in self._datasets

    def is_tensor(self, node: ast.expr) -> bool:
        """Whether an expression is a call of one of the ops below ``tf`` or ``tf.math``."""
        if not isinstance(node, ast.Call):
            return False
        return (self.dotted(node.func) or "").removeprefix("math.") in _TENSOR_FUNCTIONS

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if id(node) not in self._inner:
            symbol = self.dotted(node)
            if symbol is not None:
                self.use(symbol, node.lineno)
        if isinstance(node.value, ast.Attribute):
            self._inner.add(id(node.value))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute) and not node.args and not node.keywords:
            self.methods.setdefault(node.func.attr, node.lineno)
        self.generic_visit(node)

    def dotted(self, node: ast.expr) -> str | None:
        """The name below ``tensorflow`` that an expression stands for."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.aliases:
            return None
        return ".".join([p for p in (self.aliases[node.id], *reversed(parts)) if p])


def _scan(source: str, file: str) -> _Finder:
    finder = _Finder(file)
    finder.visit(ast.parse(source, file))
    return finder


def symbols_of_source(source: str, file: str) -> list[Use]:
    """The uses in one source text, by line. SyntaxError if it is not Python 3."""
    return sorted(_scan(source, file).uses.values(), key=lambda u: (u.line, u.symbol))


def symbols(path: Path) -> list[Use]:
    """The uses in one file."""
    return symbols_of_source(path.read_text(encoding="utf-8", errors="replace"), str(path))


def program_files(script: Path, root: Path | None = None) -> Iterator[Path]:
    """The script and the modules that it imports, directly or through others.

    They are looked for beside the script (or in `root`, the first import folder) and beside the
    module that imports them.
    """
    folder = (root or script.parent).resolve()
    queue, seen = [script], {script.resolve()}
    while queue and len(seen) <= MAX_FILES:
        file = queue.pop(0)
        yield file
        try:
            tree = ast.parse(file.read_text(encoding="utf-8", errors="replace"))
        except (SyntaxError, OSError, ValueError):
            continue
        for found in _local_modules(tree, folder, file.resolve().parent):
            if found not in seen:
                seen.add(found)
                queue.append(found)


def _local_modules(tree: ast.Module, folder: Path, here: Path) -> Iterator[Path]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names = [base, *(f"{base}.{alias.name}".strip(".") for alias in node.names)]
        else:
            continue
        for name in names:
            for root in (folder, here):
                stem = root.joinpath(*name.split(".")) if name else root
                for candidate in (stem.with_suffix(".py"), stem / "__init__.py"):
                    if name and candidate.is_file():
                        yield candidate.resolve()


def choose_api(script: Path, root: Path | None = None) -> Choice:
    """v1 for graphs and sessions, v2 for eager code without them; v1 where nothing decides.

    `root` is the folder from which the program imports, if it is not the script's own.
    """
    eager: Choice | None = None
    for file in program_files(script, root):
        try:
            found = _scan(file.read_text(encoding="utf-8", errors="replace"), str(file))
        except (SyntaxError, OSError, ValueError):
            continue
        for use in sorted(found.uses.values(), key=lambda u: u.line):
            place = f"{file.name}:{use.line} uses tf.{use.symbol}"
            if _matches(use.symbol, _EAGER_SWITCHES) or _matches(use.symbol, _V1_ONLY):
                return Choice("v1", place)
            if eager is None and _matches(use.symbol, _EAGER):
                eager = Choice("v2", place)
        if eager is None:
            for method in _EAGER_METHODS:
                if method in found.methods:
                    eager = Choice("v2", f"{file.name}:{found.methods[method]} calls .{method}()")
        if eager is None and found.eager_line is not None:
            eager = Choice("v2", f"{file.name}:{found.eager_line} takes a value out of a tensor")
    return eager or Choice("v1", "nothing in the program asks for eager execution")


def _matches(symbol: str, names: tuple[str, ...]) -> bool:
    return any(symbol == n or symbol.startswith(n + ".") for n in names)
