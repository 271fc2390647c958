"""A plan as one Python function.

Every value is a local variable, in a long plan one that held another before; every step is a line.
Kernels, constants, variable names and writers are parameters of a factory around the function, so
plans of the same structure share one compiled code object. A failing line leads to its node.

    def make(np, k0, c0):
        def run(S, V, f0):
            t0 = f0 * c0
            return k0(t0)
        return run
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections import Counter, OrderedDict
from collections.abc import Callable
from signal import SIGINT
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.opdef import KernelNode, bind_kernel
from headrace.kernels.numpy import gemm, numpy_xp
from headrace.lower import fused_code as fused_steps
from headrace.lower import user_calls
from headrace.lower.emit import EXPRESSIONS, INTO, UPDATES, inverse_of, number_of
from headrace.lower.fusion import Fused, PlanBlock, PlanIf, PlanWhile
from headrace.lower.grouped_updates import GroupWriter
from headrace.lower.growing import Growing
from headrace.lower.native_groups import NativeStep
from headrace.lower.owned_results import copy_unknown, own_string, own_unknown
from headrace.lower.plan import Plan, steps
from headrace.lower.session_state import SMALL, RunContext, Writer
from headrace.lower.start_values import scan, written_variables
from headrace.lower.update_groups import Grouped, gradient_position
from headrace.ops.internal import fused_ops
from headrace.program.constants import exact_key, peek
from headrace.program.nodes import Node
from headrace.runtime import buffers
from headrace.runtime.interrupts import FILENAME, getsignal, handler, name_with_writes, protect

__all__ = ["Compiled", "compile_plan"]

_BLAS = frozenset([dtypes.float32, dtypes.float64])
_DEEP = 60  # levels of indentation (Python ends at 100)
_PRODUCTS = frozenset(["MatMul", "_FusedMatMul"])
_EXACT = frozenset([dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64])
_AUGMENTED = {"Add": "+", "AddV2": "+", "Sub": "-", "Mul": "*", "RealDiv": "/"}
_SHORTCUTS = frozenset(["Size", "_InverseSize", "Cast", "ExpandDims", "Mean", "Sum"])
_SHORT_ROW = 16
_SMALL = 4096  # elements below which reuse of a buffer gains nothing
_NAMES = 32  # local names, before those of dead values are used again
_MANY = 1000  # parameters; compiling a function that closes over n of them takes n * n


_ONE, _ZERO = np.int32(1), np.int32(0)

_size = functools.lru_cache(1024)(shapes.num_elements)


class Compiled(NamedTuple):
    """The function and what is needed to explain it."""

    run: Callable[..., Any]
    source: str
    lines: dict[int, Node | Fused | Grouped]  # line number -> step
    names: dict[int, str]  # value -> local name
    n_reused: int
    make: Callable[..., Callable[..., Any]]  # the factory without its fixed arguments
    params: dict[str, Any]
    constant_params: dict[str, int]  # parameter -> the constant value that it holds


_factories: OrderedDict[str, Callable[..., Any]] = OrderedDict()
_factories_lock = Lock()
_MAX_FACTORIES = 1024
_counts = {"compiled": 0, "shared": 0}


def _factory(source: str) -> Callable[..., Any]:
    found = _factories.get(source)
    if found is not None:
        _counts["shared"] += 1
        return found
    _counts["compiled"] += 1
    namespace: dict[str, Any] = {}
    exec(compile(source, FILENAME, "exec"), namespace)
    made: Callable[..., Any] = namespace["make"]
    with _factories_lock:
        _factories[source] = made
        while len(_factories) > _MAX_FACTORIES:
            _factories.popitem(last=False)
    return made


def compile_plan(plan: Plan, kept: Callable[..., Any] | None = None) -> Compiled:
    """``kept(S, V)`` gives the last feeds of the plan, those that are not the caller's."""
    return _Generator(plan, kept).compile()


class _Generator:
    def __init__(self, plan: Plan, kept: Callable[..., Any] | None) -> None:
        self.plan = plan
        self.kept = kept
        self.program = plan.program
        self.lives = plan.lives
        self.lines: list[str] = []
        self.steps: dict[int, Node | Fused | Grouped] = {}
        self.names: dict[int, str] = {}
        self.params: dict[str, Any] = {}
        self.constant_params: dict[str, int] = {}
        self.kernels: dict[Any, str] = {}
        self.numbers: dict[int, str] = {}  # constants of rank 0 that stand beside arrays
        self.position = 0
        self.n_temps = 0
        self.n_reused = 0
        self.n_guards = 0
        self.uses_rt = False
        self.checked: list[set[int]] = [set()]
        self.growing: dict[int, str] = {}  # results of appending to a loop variable
        self.home: dict[
            int, set[int]
        ] = {}  # which block (by its set of checked variables) makes a value
        self.loaded: set[int] = set()  # variables that are read, not only written
        self.by_start = {v.start: (i, v) for i, v in enumerate(self.program.variables)}
        self.by_current = {v.current: (i, v) for i, v in enumerate(self.program.variables)}
        self.depth = 2
        self.locked = (0, 0)  # lines and depth after the last update under the lock
        self.free: list[str] = []  # names whose values nobody reads any more
        self.started: frozenset[Any] = frozenset()  # operations that run on threads of their own
        self.joining: dict[
            str, Node | None
        ] = {}  # those that were started, None once their results are taken

    # driver -------------------------------------------------------------------------------------
    def compile(self) -> Compiled:
        for n, feed in enumerate(self.program.feeds):
            self.names[feed] = f"f{n}"
        self._keep_starts()
        first = last = 0  # lines between which the run is not interrupted
        self.started = user_calls.independent(self.plan.block)
        for statement in self.plan.block:
            before = len(self.lines)
            user_calls.emit_joins(self, statement)
            self.block((statement,))
            if any(written_variables(step) for step in steps((statement,))):
                first, last = first or before + 1, len(self.lines)
        user_calls.emit_joins(self, None)
        self.emit(f"return {self.results()}")
        feeds = "".join(f", f{n}" for n in range(len(self.program.feeds) - self.plan.kept))
        prologue = self.prologue()
        params = ", ".join(self.params)
        if len(self.params) > _MANY:
            prologue.insert(0, f"  {params} = P")
            params = "*P"
        offset = 2 + len(prologue)
        name = name_with_writes(first + offset, last + offset) if last else "run"
        header = [f"def make(np, RunContext, {params}):", f" def {name}(S, V{feeds}):"]
        source = "\n".join([*header, *prologue, *self.lines, f" return {name}", ""])
        make = functools.partial(_factory(source), np, RunContext)
        run = make(*self.params.values())
        lines = {line + offset: step for line, step in self.steps.items()}
        return Compiled(
            run, source, lines, self.names, self.n_reused, make, self.params, self.constant_params
        )

    def emit(self, text: str, step: Node | Fused | Grouped | None = None) -> None:
        self.lines.append(" " * self.depth + text)
        if step is not None:
            self.steps[len(self.lines)] = step

    def prologue(self) -> list[str]:
        out = []
        if self.plan.kept:
            n = len(self.program.feeds)
            names = "".join(f"f{i}, " for i in range(n - self.plan.kept, n))
            out.append(f"  {names}= {self.param('kept', self.kept)}(S, V)")
        for i, v in enumerate(self.program.variables):
            if i in self.loaded:
                out.append(f"  v{i} = V.get({self.param(f'q{i}', v.key)})")
                if self.starts_kept.get(i):
                    # None may mean that another thread is writing it; later this run's own write
                    # would be seen
                    out.append(f"  if v{i} is None: v{i} = S.raw(q{i})")
                    out.append(f"  s{i} = v{i}")
        if any(v.written for v in self.program.variables):
            look, on_interrupt = self.param("getsignal", getsignal), self.param("handler", handler)
            protected = f"{look}({int(SIGINT)}) is {on_interrupt}"
            out.append(f"  if not {protected}: {self.param('protect', protect)}()")
        if self.uses_rt:
            out.append("  rt = RunContext(S)")
        return out

    def _keep_starts(self) -> None:
        """Variables whose old value is read after a write keep it under a name of its own."""
        self.starts_kept: dict[int, bool] = {}
        if not any(v.written for v in self.program.variables):
            return
        first_write: dict[int, int] = {}
        last_start_use: dict[int, int] = {}
        scan(self.plan.block, self.by_start, first_write, last_start_use, [0], False)
        end = 1 << 60
        for f in self.program.fetches:
            if f in self.by_start:
                last_start_use[self.by_start[f][0]] = end
        for i, at in first_write.items():
            self.starts_kept[i] = last_start_use.get(i, -1) > at

    # names --------------------------------------------------------------------------------------
    def param(self, name: str, value: Any) -> str:
        assert self.params.setdefault(name, value) is value, f"two parameters are called {name}"
        return name

    def name(self, value: int) -> str:
        """The local name of a value.

        Variables are checked to be initialised where they are first used.
        """
        found = self.names.get(value)
        if value in self.by_start or value in self.by_current:
            return self.variable(value)
        if found is not None:
            return found
        array = peek(self.program.constants, value)
        if array is not None:
            name = f"c{len(self.params)}"
            self.names[value] = name
            self.constant_params[name] = value
            return self.param(
                name, array[()] if array.ndim == 0 and array.dtype.kind != "O" else array
            )
        raise AssertionError(f"value {value} is used before it is made")

    def variable(self, value: int, check: bool = True) -> str:
        is_start = value in self.by_start
        i, info = self.by_start[value] if is_start else self.by_current[value]
        name = f"s{i}" if is_start and self.starts_kept.get(i) else f"v{i}"
        self.names[value] = name
        self.loaded.add(i)
        if check and not any(value in scope for scope in self.checked):
            self.checked[-1].add(value)
            key, op = self.param(f"q{i}", info.key), self.param(f"o{i}", info.op)
            self.emit(f"if {name} is None: {name} = S.need({key}, {op})")
        return name

    def new(self, value: int) -> str:
        """A name; outside of branches and loops, after the first few, one whose value nobody reads
        any more.
        """
        if self.free and self.n_temps >= _NAMES and len(self.checked) == 1:
            name = self.free.pop()
        else:
            name = f"t{self.n_temps}"
            self.n_temps += 1
        self.names[value] = name
        self.home[value] = self.checked[-1]
        return name

    # statements ---------------------------------------------------------------------------------
    def block(self, block: PlanBlock) -> None:
        for s in block:
            if isinstance(s, Node):
                self.node(s)
            elif isinstance(s, Fused):
                self.fused(s)
            elif isinstance(s, Grouped):
                self.grouped(s)
            else:
                if isinstance(s, PlanIf):
                    self.branch(s)
                else:
                    self.loop(s)
                continue
            self.release(s)
            self.position += 1

    def branch(self, s: PlanIf, guard: str = "") -> None:
        """An ``if``; where they are nested deeper than Python allows, a flat sequence of guarded
        runs of steps.
        """
        test = self.name(s.pred)
        test = test if s.branch else f"not {test}"
        if self.depth < _DEEP:
            self.emit(f"if {test}:")
            self.nested(s.body)
            return
        own = f"g{self.n_guards}"
        self.n_guards += 1
        self.emit(f"{own} = {guard} and {test}" if guard else f"{own} = {test}")
        for inner, group in itertools.groupby(s.body, key=lambda b: isinstance(b, PlanIf)):
            if inner:
                for b in group:
                    assert isinstance(b, PlanIf)
                    self.branch(b, own)
            else:
                self.emit(f"if {own}:")
                self.nested(tuple(group))

    def nested(self, block: PlanBlock) -> None:
        self.depth += 1
        self.checked.append(set())
        before = len(self.lines)
        self.block(block)
        if len(self.lines) == before:
            self.emit("pass")
        self.checked.pop()
        self.depth -= 1

    def loop(self, s: PlanWhile) -> None:
        values = s.loop.values
        inits = [self.name(v.init) for v in values]
        targets = [self.new(v.value) for v in values]
        if targets:
            self.emit(f"{', '.join(targets)} = {', '.join(inits)}")
        self.find_growing(s)
        self.position += 1
        self.emit("while True:")
        self.depth += 1
        self.checked.append(set())
        self.block(s.test)
        self.emit(f"if not {self.name(s.loop.cond)}: break")
        self.block(s.body)
        if targets:
            nexts = ", ".join(self.name(v.next) for v in values)
            self.emit(f"{', '.join(targets)} = {nexts}")
        self.checked.pop()
        self.depth -= 1
        self.position += 1

    def find_growing(self, s: PlanWhile) -> None:
        """Loop variables whose next value is themselves with something appended (see
        growing.py).
        """
        nexts = {v.next: v.value for v in s.loop.values}
        for node in s.body:
            if not isinstance(node, Node) or node.opdef.name != "ConcatV2" or len(node.inputs) != 3:
                continue
            axis = self.program.constants.get(node.inputs[-1])
            value = nexts.get(node.outputs[0])
            if axis is None or value is None or value != node.inputs[0] or value == node.inputs[1]:
                continue
            if self.program.values[value].dtype._kind in "fiuc":
                name = f"h{len(self.growing)}"
                self.growing[node.outputs[0]] = name
                self.emit(f"{name} = {self.param('Growing', Growing)}({int(axis)})")

    def node(self, node: Node) -> None:
        if node.writes:
            self.write(node)
            return
        if node.outputs and node.outputs[0] in self.growing:
            old, new = (self.name(i) for i in node.inputs[:2])
            call = f"{self.growing[node.outputs[0]]}.append({old}, {new})"
            self.emit(f"{self.new(node.outputs[0])} = {call}", node)
            return
        if node.opdef.name in ("Merge", "RefMerge"):
            self.merge(node)
            return
        args = [self.argument(node, i) for i in range(len(node.inputs))]
        if node.op in self.started and len(self.checked) == 1:
            user_calls.emit_start(self, node, args)
            return
        expression = self.expression(node, args)
        outputs = node.outputs
        if len(outputs) == 1:
            reused = self.reuse(node, args)
            if reused is not None:
                self.emit(reused, node)
                return
            self.emit(f"{self.new(outputs[0])} = {expression}", node)
        elif not outputs:
            self.emit(expression, node)
        else:
            self.emit(f"{', '.join(self.new(o) for o in outputs)} = {expression}", node)

    def argument(self, node: Node, i: int) -> str:
        value = node.inputs[i]
        if node.opdef.traits.uninit_ok and (value in self.by_start or value in self.by_current):
            name = self.variable(value, check=False)
            return f"(S.raw({self.param_key(value)}) if {name} is None else {name})"
        return self.beside_array(node, value) or self.name(value)

    def beside_array(self, node: Node, value: int) -> str | None:
        """A constant number in an expression with an array, as one of rank 0.

        A NumPy scalar takes 0.2 µs more there.
        """
        array = peek(self.program.constants, value)
        if array is None or array.ndim or array.dtype.kind == "O":
            return None
        if node.opdef.name not in EXPRESSIONS and not self.is_small_update(node):
            return None
        if not any(self.program.values[i].shape for i in node.inputs):
            return None
        name = self.numbers.get(value)
        if name is None:
            name = self.numbers[value] = self.param(f"z{len(self.params)}", np.asarray(array))
            self.constant_params[name] = value
        return name

    def param_key(self, value: int) -> str:
        i, info = self.by_start.get(value) or self.by_current[value]
        return self.param(f"q{i}", info.key)

    def expression(self, node: Node, args: list[str]) -> str:
        name = node.opdef.name
        template = EXPRESSIONS.get(name)
        if template is not None and not (name == "Add" and self.is_string(node)):
            return template.format(*args)
        if name in _PRODUCTS and self.program.values[node.outputs[0]].dtype in _BLAS:
            return self.product(node, args)
        return self.shortcut(node, args) or self.call(node, args)

    def is_string(self, node: Node) -> bool:
        """``+`` of two scalar strings would give plain bytes."""
        return self.program.values[node.outputs[0]].dtype is dtypes.string

    def shortcut(self, node: Node, args: list[str]) -> str | None:
        """Ops on shapes and scalars whose other inputs are known, without a call of their
        kernel.
        """
        name = node.opdef.name
        if name not in _SHORTCUTS:
            return None
        dtype = self.program.values[node.outputs[0]].dtype
        if name == "Size":
            return f"{self.param(f'{dtype.name}_of', number_of(dtype))}({args[0]}.size)"
        if name == "_InverseSize":
            return f"{self.param(f'inverse_{dtype.name}', inverse_of(dtype))}({args[0]}.size)"
        source = self.program.values[node.inputs[0]]
        if name == "Cast" and source.shape == () and dtype in _BLAS and source.dtype in _EXACT:
            return f"{self.param(dtype.name, dtype.np_dtype.type)}({args[0]})"
        if name == "ExpandDims" and source.shape:
            axis = self.program.constants.get(node.inputs[1])
            if axis is not None and axis.size == 1:
                rank = len(source.shape)
                at = int(axis.reshape(-1)[0])
                at = at + rank + 1 if at < 0 else at
                return f"{args[0]}[{', '.join([':'] * at + ['None'])}]"
        if name in ("Sum", "Mean"):
            return self.reduction(node, args[0])
        return None

    def reduction(self, node: Node, x: str) -> str | None:
        """Sums over everything, and of columns, of the types that add up in their own precision."""
        info = self.program.values[node.inputs[0]]
        axes = self.program.constants.get(node.inputs[1])
        if info.dtype not in _BLAS or info.shape is None or axes is None or node.attrs["keep_dims"]:
            return None
        rank = len(info.shape)
        gone = {int(a) % rank for a in axes.reshape(-1)} if rank else set()
        if rank and len(gone) == rank:
            if rank == 1:
                total = f"{self.param('vector_sum', gemm.vector_sum)}({x})"
            else:
                total = f"np.add.reduce({x}, None)"
            return total if node.opdef.name == "Sum" else f"{total} / {x}.size"
        if node.opdef.name == "Sum" and rank == 2 and gone == {0}:
            return f"{self.param('column_sums', gemm.column_sums)}({x})"
        return None

    def product(self, node: Node, args: list[str]) -> str:
        """Small products as an operator, the others (or unknown sizes) through the threads of
        ``gemm``.
        """
        left = args[0] + (".T" if node.attrs["transpose_a"] else "")
        right = args[1] + (".T" if node.attrs["transpose_b"] else "")
        if node.opdef.name == "_FusedMatMul":
            function = fused_ops.product_step(node.attrs["fused_ops"])
            return f"{self.param(function.__name__, function)}({left}, {right}, {args[2]})"
        sizes = [
            shapes.num_elements(self.program.values[v].shape) for v in (*node.inputs, *node.outputs)
        ]
        if all(s is not None and s < _SMALL for s in sizes):
            return f"{left} @ {right}"
        return f"{self.param('matmul', gemm.matmul)}({left}, {right})"

    def call(self, node: Node, args: list[str]) -> str:
        kernel = self.kernel(node)
        if "rt" in node.opdef.kernel_params:
            self.uses_rt = True
            args = [*args, "rt=rt"]
        return f"{kernel}({', '.join(args)})"

    def kernel(self, node: Node) -> str:
        opdef = node.opdef
        key: Any = None
        if "node" not in opdef.kernel_params:
            try:
                key = (
                    opdef.name,
                    tuple([exact_key(node.attrs[p]) for p in opdef.kernel_params if p != "rt"]),
                )
                found = self.kernels.get(key)
            except TypeError:
                key, found = None, None
            if found is not None:
                return found
        name = f"k{len(self.params)}"
        if key is not None:
            self.kernels[key] = name
        bound = bind_kernel(
            opdef, KernelNode(node.op.name, node.op.type, node.attrs, node.op), numpy_xp
        )
        return self.param(name, bound)

    def reuse(self, node: Node, args: list[str]) -> str | None:
        """An ``out=`` form over an input that dies here, where that input certainly has the
        result's shape.
        """
        form = INTO.get(node.opdef.name)
        out = node.outputs[0]
        info = self.program.values[out]
        if form is None or not info.shape or info.dtype._kind not in "fiuc":
            return None
        n = _size(info.shape)
        if n is not None and n < _SMALL:
            return None
        for k, value in enumerate(node.inputs):
            if not self.lives.reusable(value, self.position) or value not in self.names:
                continue
            if self.program.values[value].dtype is info.dtype and self._covers(node, k):
                target = args[k]
                self.names[out] = target
                if value in self.home:
                    self.home[out] = self.home.pop(value)
                self.n_reused += 1
                operator = _AUGMENTED.get(node.opdef.name)
                if operator is not None and (k == 0 or operator in "+*"):
                    return f"{target} {operator}= {args[1 - k]}"
                return form.format(*args, out=target)
        return None

    def _covers(self, node: Node, k: int) -> bool:
        """Input k certainly has the broadcast shape of all inputs."""
        mine = self.program.values[node.inputs[k]].shape
        if mine is None or self.program.values[node.outputs[0]].shape != mine:
            return False
        for j, value in enumerate(node.inputs):
            other = self.program.values[value].shape
            if j == k or value == node.inputs[k]:
                continue
            if other is None or len(other) > len(mine):
                return False
            for a, b in zip(reversed(other), reversed(mine)):
                if a != 1 and (a is None or a != b):
                    return False
        return True

    def merge(self, node: Node) -> None:
        pred, if_false, if_true = (self.name_lazily(i) for i in node.inputs)
        self.emit(f"{self.new(node.outputs[0])} = {if_true} if {pred} else {if_false}", node)
        self.emit(
            f"{self.new(node.outputs[1])} = {self.param('one', _ONE)} if {pred} else "
            f"{self.param('zero', _ZERO)}"
        )

    def name_lazily(self, value: int) -> str:
        """A variable is checked only if its branch is the one that is taken."""
        if value not in self.by_start and value not in self.by_current:
            return self.name(value)
        name = self.variable(value, check=False)
        i, info = self.by_start.get(value) or self.by_current[value]
        op = self.param(f"o{i}", info.op)
        return f"({name} if {name} is not None else S.need({self.param_key(value)}, {op}))"

    def write(self, node: Node) -> None:
        traits = node.opdef.traits
        args = [self.argument(node, i) for i in range(len(node.inputs)) if i not in traits.writes]
        targets = [f"v{w}" for w in node.writes]
        for w in dict.fromkeys(node.writes):
            info = self.program.variables[w]
            self.names.setdefault(info.current, f"v{w}")
        if not self.is_small_update(node):
            self.call_writer(node, args, targets)
            self._wrote(node)
            return
        if self.locked != (len(self.lines), self.depth):  # one after the other they share the lock
            self.emit("with S.lock:")
        self.depth += 1
        self.update(node, args)
        self._wrote(node)
        self.depth -= 1
        self.locked = (len(self.lines), self.depth)

    def is_small_update(self, node: Node) -> bool:
        """A new value that is one expression, of a variable that is replaced rather than
        overwritten.
        """
        if node.opdef.name not in UPDATES:
            return False
        variable, change = (self.program.values[node.inputs[i]].shape for i in (0, -1))
        size = shapes.num_elements(variable)
        return size is not None and size <= SMALL and variable == change

    def update(self, node: Node, args: list[str]) -> None:
        """What a Writer does, in the generated code itself."""
        i = node.writes[0]
        info = self.program.variables[i]
        key, op = self.param(f"q{i}", info.key), self.param(f"o{i}", info.op)
        new = UPDATES[node.opdef.name].format(f"v{i}", *args)
        self.emit(f"v{i} = V.get({key})")
        self.emit(f"if v{i} is None: v{i} = S.need({key}, {op})", node)
        self.emit(f"v{i} = V[{key}] = {new}", node)

    def call_writer(self, node: Node, args: list[str], targets: list[str]) -> None:
        bound = self.writer(node)
        writer = self.param(f"w{len(self.params)}", bound.write_one if bound.single else bound)
        live = [t for t in dict.fromkeys(targets) if t not in args]
        self.emit(" = ".join([*live, "None"]) if live else "pass")
        if "rt" in node.opdef.kernel_params:
            self.uses_rt = True
            runtime = "rt"
        else:
            runtime = "None"
        outs = self._write_targets(node, targets)
        call = f"{writer}(S, {runtime}{''.join(', ' + a for a in args)})"
        self.emit(f"{', '.join(outs)}, = {call}", node)

    def _write_targets(self, node: Node, targets: list[str]) -> list[str]:
        plain = [o for o, t in zip(node.outputs, node.op._outputs) if not t._dtype._is_ref]
        return targets + [self.new(o) for o in plain]

    def writer(self, node: Node) -> Writer:
        opdef = node.opdef
        knode = KernelNode(node.op.name, node.op.type, node.attrs, node.op)
        known = all(shapes.known(self.program.values[v].shape) is not None for v in node.inputs)
        kernel = bind_kernel(opdef, knode, numpy_xp, trusting=known)
        inplace = opdef.inplace
        if inplace is not None:
            wanted = [
                p.name
                for p in inspect.signature(inplace).parameters.values()
                if p.kind is p.KEYWORD_ONLY
            ]
            if wanted:
                inplace = functools.partial(inplace, **{p: node.attrs[p] for p in wanted})
        others = [v for i, v in enumerate(node.inputs) if i not in opdef.traits.writes]
        own = all(self.lives.reusable(v, self.position) for v in others)
        return Writer(
            [self.program.variables[w].op for w in node.writes],
            [self.program.variables[w].key for w in node.writes],
            opdef.traits.writes,
            kernel,
            inplace,
            opdef.traits.uninit_ok,
            copies=not own and opdef.name in ("Assign", "AssignVariableOp"),
            wants_rt="rt" in opdef.kernel_params,
        )

    def grouped(self, step: Grouped) -> None:
        first = step.nodes[0]
        at = gradient_position(first, self.program)
        assert at is not None
        written = first.opdef.traits.writes
        shared = [
            self.argument(first, i)
            for i in range(len(first.inputs))
            if i not in written and i != at
        ]
        gradients = [self.argument(node, at) for node in step.nodes]
        variables = [[self.program.variables[w] for w in node.writes] for node in step.nodes]
        knode = KernelNode(first.op.name, first.op.type, first.attrs, first.op)
        bound = GroupWriter(
            bind_kernel(first.opdef, knode, numpy_xp, trusting=True),
            [[v.key for v in one] for one in variables],
            [[v.op for v in one] for one in variables],
            [self.program.values[node.inputs[0]].shape or () for node in step.nodes],  # type: ignore[misc]
            at,
        )
        targets = [f"v{w}" for w in written_variables(step)]
        writer = self.param(f"w{len(self.params)}", bound)
        call = (
            f"{writer}(S, ({''.join(a + ', ' for a in shared)}), "
            f"({''.join(g + ', ' for g in gradients)}))"
        )
        self.emit(f"{', '.join(targets)}, = {call}", step)
        for node in step.nodes:
            self._wrote(node)

    def _wrote(self, node: Node) -> None:
        """The names of what a write left behind."""
        for w in node.writes:
            current = self.program.variables[w].current
            self.names.setdefault(current, f"v{w}")
            for scope in self.checked:
                scope.discard(current)
            self.checked[-1].add(current)
        if node.outputs and node.op._outputs[0]._dtype._is_ref:
            self.emit(f"{self.new(node.outputs[0])} = v{node.writes[0]}")

    def fused(self, step: Fused) -> None:
        args = [self.name(i) for i in step.inputs]
        own = next(
            (
                k
                for k, v in enumerate(step.inputs)
                if self.lives.reusable(v, self.position)
                and not any(
                    w != v and self.lives.root(w) == self.lives.root(v) for w in step.inputs
                )
                and self.program.values[v].dtype is self.program.values[step.output].dtype
                and self.program.values[v].shape == self.program.values[step.output].shape
            ),
            None,
        )
        if own is not None:
            self.n_reused += 1
        function = fused_steps.make_fused(step, self.program, own)
        if step.reduces:
            name = self.param(f"k{len(self.params)}", function)
            self.emit(f"{self.new(step.output)} = {name}({', '.join(args)})", step)
            return
        native = NativeStep(step, self.program, own, function)
        name = self.param(f"k{len(self.params)}", native)
        self.emit(f"{self.new(step.output)} = {name}(S, {', '.join(args)})", step)

    def release(self, s: Node | Fused | Grouped) -> None:
        """Let go of large values after their last use, and of views: one of a variable keeps it
        from being overwritten.

        Small ones go when their name is used again.
        """
        last, position, gone = self.lives.last, self.position, []
        outermost = self.checked[0] if len(self.checked) == 1 else None
        for value in s.inputs:
            if last.get(value) != position:
                continue
            name = self.names.get(value)
            if name is None or name[0] != "t":
                continue
            if not self.is_small(value):
                outputs = (s.output,) if isinstance(s, Fused) else s.outputs
                if any(self.names.get(o) == name for o in outputs):
                    continue
                gone.append(name)
                if value in self.lives.fresh and self.may_be_pooled(value):
                    self.emit(f"{self.param('give', buffers.give)}({name})")
            if outermost is not None and self.home.pop(value, None) is outermost:
                self.free.append(name)
        if gone:
            self.emit(" = ".join([*dict.fromkeys(gone), "None"]))

    def may_be_pooled(self, value: int) -> bool:
        """Large enough to be used again, and certainly there (a branch that was not taken makes
        nothing).
        """
        info = self.program.values[value]
        if (
            self.home.get(value) is not self.checked[-1]
            or info.dtype._kind not in "fiucb"
            or info.shape == ()
        ):
            return False
        size = shapes.num_elements(info.shape)
        return size is None or size * info.dtype.size >= buffers.MIN_BYTES

    def is_small(self, value: int) -> bool:
        """A few elements in all, or a few in each row of a batch: not worth a line."""
        shape = self.program.values[value].shape
        size = _size(shape)
        if size is not None:
            return size < _SMALL
        row = _size(shape[1:]) if shape else None
        return row is not None and row <= _SHORT_ROW

    # results ------------------------------------------------------------------------------------
    def results(self) -> str:
        """The fetched values, each the user's own."""
        parts = []
        fetched = {f for f in self.program.fetches if f is not None}
        sharing = Counter(map(self.lives.root, fetched))
        seen: set[int] = set()
        for f in self.program.fetches:
            if f is None:
                parts.append("None")
                continue
            alone = f not in seen and sharing[self.lives.root(f)] == 1
            parts.append(self.result(f, alone))
            seen.add(f)
        return f"({', '.join(parts)},)" if parts else "()"

    def result(self, value: int, alone: bool) -> str:
        """``alone``: nothing that was returned or will be shares its memory."""
        info = self.program.values[value]
        name = self.name(value)
        lives = self.lives
        own = alone and (value in lives.fresh or value in lives.whole)
        own = own and lives.root(value) not in lives.shared
        own = own or self.program.borrowed
        if info.dtype is dtypes.resource or info.dtype is dtypes.variant:
            return name
        if info.dtype is dtypes.string and not info.shape:
            return f"{self.param('text', own_string)}({name})"
        if info.shape == ():
            return f"{name}[()]"
        if info.shape is None:
            helper = self.param("own1" if own else "own0", own_unknown if own else copy_unknown)
            return f"{helper}({name})"
        return name if own else f"np.array({name})"
