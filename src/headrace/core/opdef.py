"""What an operation is: declared once, completely.

An op has a signature (TensorFlow's registered argument and attribute names), a shape rule, a
kernel, a gradient and traits. Nothing may be left out: a definition without a gradient decision is
refused here, not at a user's call.

    define(
        "MatMul",
        "a: T, b: T -> product: T; transpose_a: bool=False, transpose_b: bool=False, "
        "T: type(number)",
        shape=matmul_shape, kernel=matmul_kernel, grad=matmul_grad,
    )

Signature grammar: ``inputs -> outputs; attributes``.

* an argument is ``name: TYPE``; TYPE is a dtype name (``int32``), a type attribute (``T``), ``N*T``
  (a list of N tensors of one type), ``*Tlist`` (a list of tensors, one type each) and may be
  preceded by ``&`` (reference).
* an attribute is ``name: kind`` or ``name: kind=default``; kind is bool, int, float, str, shape,
  tensor (a default is ``uint8[255, 0]``), type, ``type(GROUP)`` or list(kind). Type attributes
  and N that inputs determine need not be listed. GROUPs: any, number, real, float, inexact, int,
  index. What a group cannot say (TensorFlow's exact types, types without a kernel, least values,
  allowed strings) is in op_limits.txt.

A kernel is ``kernel(xp, *inputs, **attrs)``: it is given the keyword-only parameters that it names,
from the attributes, and ``rt`` (the :class:`Runtime` of the session) or ``node`` (the
:class:`KernelNode`) if it names those. It returns one array, or a tuple if the op has several
outputs.

State: for the inputs listed in ``reads`` and ``writes`` (references and resource handles) the
kernel is given the variable's current *value*, not a handle. An op with ``writes`` is still a pure
function: its kernel returns the new values of the written variables, in the order of ``writes``,
followed by those outputs that are not references. A reference output is the new value of the first
written variable; the executor stores and forwards. ``inplace``, if given, is a NumPy version with
the same parameters (without ``xp``) that overwrites the arrays of the written inputs and returns
nothing; the NumPy executor takes it when nothing else references those arrays. ``trusting`` is the
kernel without its checks of shapes, taken where all static shapes are known and were checked when
the operation was made, and in fused groups where a number stands for an array that repeats it (so
it must broadcast). ``native(uses, …)``, beside ``inplace``, is a compiled version of it: it is
told how often the variable was overwritten in this session, and answers whether it did the work.

A gradient is ``grad(op, *output_grads)`` and returns one gradient (Tensor, IndexedSlices or None)
per input.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np

from headrace.core import dtypes, op_limits
from headrace.core.dtypes import DType

if TYPE_CHECKING:
    from headrace.core.annotations import ArrayNamespace

__all__ = [
    "ALL_OPS",
    "LOADERS",
    "NOT_DIFFERENTIABLE",
    "NO_GRADIENT_YET",
    "Arg",
    "Attr",
    "KernelNode",
    "OpDef",
    "FLOW",
    "Traits",
    "add_traits",
    "bind_kernel",
    "define",
    "lookup",
    "traits_of",
]


class _Marker:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


#: The op has no derivative (integer output, a shape, a comparison): gradients stop here silently.
NOT_DIFFERENTIABLE: Final = _Marker("NOT_DIFFERENTIABLE")
#: The op has a derivative that is not written yet: asking for it is a LookupError that says so.
NO_GRADIENT_YET: Final = _Marker("NO_GRADIENT_YET")

_F = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
_I = (
    dtypes.int8,
    dtypes.int16,
    dtypes.int32,
    dtypes.int64,
    dtypes.uint8,
    dtypes.uint16,
    dtypes.uint32,
    dtypes.uint64,
)
_C = (dtypes.complex64, dtypes.complex128)
GROUPS: dict[str, frozenset[DType] | None] = {
    "any": None,
    "number": frozenset(_F + _I + _C),
    "real": frozenset(_F + _I),
    "float": frozenset(_F),
    "inexact": frozenset(_F + _C),
    "int": frozenset(_I),
    "index": frozenset((dtypes.int32, dtypes.int64)),
}


class Arg(NamedTuple):
    """An input or output of a signature."""

    name: str
    dtype: DType | None  # fixed type
    type_attr: str  # or: the attribute that gives the type ("" if the type is fixed or a list)
    number_attr: str = ""  # N*T
    type_list_attr: str = ""  # *Tlist
    is_ref: bool = False

    @property
    def is_list(self) -> bool:
        return bool(self.number_attr or self.type_list_attr)


class Attr(NamedTuple):
    """An attribute of a signature."""

    name: str
    kind: str
    default: Any = None
    has_default: bool = False
    allowed: frozenset[DType] | None = None
    least: int | None = None  # the least value, or the least length of a list
    strings: tuple[str, ...] | None = None  # the strings that are allowed
    missing: frozenset[DType] = frozenset()  # types that are allowed but have no kernel
    unimplemented: frozenset[DType] = frozenset()  # types that the kernel refuses


class Traits(NamedTuple):
    """What planning and rewriting must know of an op."""

    ufunc: str | None = (
        None  # the xp function (and Python operator, see plan) that is the whole kernel
    )
    elementwise: bool = (
        False  # output element i depends on input elements i (after broadcasting) only
    )
    view: bool = False  # an output may share memory with an input
    stateful: bool = False  # never folded, never shared with an equal node
    random: bool = False
    reads: tuple[
        int, ...
    ] = ()  # reference or handle inputs whose variable's value the kernel is given
    writes: tuple[int, ...] = ()  # reference or handle inputs whose variable it gives a new value
    uninit_ok: bool = False  # a variable that was never set reaches the kernel as None
    writes_files: bool = False  # never run on behalf of a file (core/file_writes.py)
    restores: bool = False  # gives what a checkpoint holds (ops/io/variable_restores.py)
    looks_up: bool = False  # a resource that was never set is not found (reads: not initialized)
    known_inputs: tuple[int, ...] = ()  # inputs that must be known when compiling for XLA
    shape_input: int | None = None  # the input that is the shape of the (only) result
    of_shape: bool = False  # results depend on the shapes of the inputs alone
    whole: bool = False  # a view of all of its first input's memory, each element once
    repeats: int | None = None  # the input that is a number, which the result repeats
    like_elementwise: bool = False  # element-wise if all inputs have the result's shape
    dense: bool = False  # training steps of dense layers consist of such ops (lower/binding.py)
    layer: bool = False  # the work of a layer: for its sake runs are bound to shapes
    compiled: str = ""  # a function of kernels/native, "module:name" (lower/native_kernels.py)
    data_dependent_shape: bool = False
    computes_shapes: bool = False  # of inputs that are shapes: these must be known
    host_only: bool = False
    calls_user: bool = (
        False  # calls a Python function, which may wait for another operation of the run
    )
    blocking: bool = False  # may wait for another run, or for another operation of the same run
    # raises what TensorFlow raises for these attributes when it makes the kernel: before a first
    # run of the operation, and whatever is fed
    check_attrs: Callable[[dict[str, Any]], None] | None = None
    role: str = ""  # what all versions of an op have in common (ROLES): Add and AddV2 are "+"
    # what makes it raise: "never" anything, "shapes" that do not broadcast, "known shapes" nothing
    # if all static shapes are known, "arguments" nothing if they are, and all inputs but the first
    # are constants
    fails: str = ""
    heavy: bool = False  # a function of which every element takes many operations
    neutral: tuple[float, bool] | None = None  # x op number is x; whether only on the right
    reduces: str = ""  # what becomes of the elements: their "sum", "mean", "max", "min", "prod"
    expression: str | None = None  # in Python, of arrays and scalars alike
    into: str | None = None  # a NumPy call that writes ``{out}``, which may be one of the inputs
    update: str | None = None  # the new value of a variable, input 0, as a Python expression
    packed_as: str | None = None  # the op that takes packed weights (lower/select_packed.py)
    packed_from: int = 0  # elements of weights from which that is worth while
    packed_input: int = 1  # which input the weights are
    packed_unless: str = ""  # an attribute that asks for results that the packed op has not
    stored: str = ""  # "write" or "read": what it does with a stack's or tensor array's elements
    batching: str = ""  # over a batch of elements: the op itself, "elementwise" or the "same"
    in_composites: bool = False  # each composite of training has one such op (composites.py)
    attrs_vary: bool = False  # attributes that are new with every call
    repeatable: bool = False  # stateful, but may be done again elsewhere
    rearranges: bool = False  # results consist of elements of the first input, or of one number
    large_inputs: tuple[int, ...] = ()  # inputs of which only a part is read
    native_attrs: tuple[str, ...] = ()  # attributes that compiled code depends on
    same_shapes: bool = False  # element-wise, but does not broadcast (``trusting`` does)
    takes_numbers: bool = False  # … but takes numbers in the place of arrays
    static_value: bool = False  # TensorFlow's ``get_static_value`` computes it
    renamed: tuple[tuple[str, str], ...] = ()  # inputs and attributes, and TF's parameters for them
    removed: tuple[int, str] | None = None  # the version of graphs without it, and TF's advice

    @property
    def is_stateful(self) -> bool:
        """What TensorFlow's registry calls stateful."""
        return bool(self.stateful or self.writes or self.random)


#: What ``Traits.role`` may be.
ROLES = frozenset(
    [
        "",
        "switch",
        "merge",
        "enter",
        "exit",
        "next",
        "loop condition",
        "identity",
        "stop gradient",
        "variable",
        "handle",
        "read",
        "assign",
        "is initialized",
        "placeholder",
        "constant",
        "nothing",
        "+",
        "-",
        "*",
        "/",
        "matmul",
        "batch matmul",
        "conv2d",
        "batch norm",
        "activation",
        "reduction",
        "cross entropy",
        "max pool gradient",
        "list",
        "list write",
        "list scatter",
        "list read",
        "list gather",
        "pack",
        "concat",
        "slice",
        "select",
        "transpose",
        "reshape",
    ]
)
#: The roles of TensorFlow's control flow.
FLOW = frozenset(["switch", "merge", "enter", "exit", "next"])


class NativeInplace(Protocol):
    """A compiled version of ``inplace``."""

    def __call__(self, uses: int, made: Sequence[Any], *inputs: Any, **attrs: Any) -> bool:
        """Put the variables' new values into ``made``. The update is the variable's n-th in this
        session. False to leave it alone.
        """
        ...

    def why_not(self, dtype: DType, uses: int, size: int) -> str:
        """Why the next one is not compiled; empty if it is."""
        ...


class _ReadLater:
    """A field that the signature gives; found on the class until it was read.

    (A ``__getattr__`` of the class would make all other fields slower.)
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, opdef: OpDef | None, owner: type) -> Any:
        if opdef is None:
            return self
        opdef._read()
        return getattr(opdef, self.name)


def _later() -> Any:
    return _ReadLater()


class OpDef:
    """A complete op definition.

    Signature and kernel parameters are read when the op is first used.
    """

    name: str
    inputs: tuple[Arg, ...] = _later()
    outputs: tuple[Arg, ...] = _later()
    attrs: dict[str, Attr] = _later()
    kernel_params: tuple[str, ...] = _later()
    simple: bool = _later()  # every input and output is a single tensor
    inferred: frozenset[str] = _later()  # attributes that inputs determine
    defaults: dict[str, Any] = _later()  # of the other attributes
    single: Arg | None = _later()  # the output, if there is just one
    has_refs: bool = _later()  # takes references of variables
    #: Type attributes that TensorFlow has no kernel for at some types.
    without_kernel: tuple[Attr, ...] = _later()
    #: The attributes of an operation of one or two tensors that is given none, for the types of
    #: its inputs that were checked already.
    checked: dict[DType | tuple[DType, DType], dict[str, Any]] = _later()

    def __init__(
        self,
        name: str,
        signature: str,
        shape: Callable[[Any], Sequence[Any]],
        kernel: Callable[..., Any],
        grad: Any,
        traits: Traits,
        inplace: Callable[..., None] | None,
        trusting: Callable[..., Any] | None,
        native: NativeInplace | None = None,
    ) -> None:
        self.name = name
        self.node_name = name.lstrip("_")  # node names begin with a letter
        self.signature = signature
        self.shape = shape
        self.kernel = kernel
        self.grad = grad
        self.traits = traits
        self.role = traits.role  # (asked for every operation of a graph)
        self.inplace = inplace
        self.trusting = trusting
        self.native = native

    def _read(self) -> None:
        """Parse the signature and check it against the kernel."""
        inputs, outputs, attrs = parse_signature(self.signature)
        inferred = {a for i in inputs for a in (i.type_attr, i.number_attr, i.type_list_attr) if a}
        for attr in inferred:
            attrs.setdefault(attr, Attr(attr, _implied_kind(attr, inputs)))
        attrs = {n: a._replace(**op_limits.limits_of(self.name, n)) for n, a in attrs.items()}
        params = _keyword_params(self.kernel)
        unknown = set(params) - set(attrs) - {"rt", "node"}
        if unknown:
            raise TypeError(
                f"op {self.name}: the kernel wants {sorted(unknown)}, which the signature "
                "does not have"
            )
        self.inputs, self.outputs, self.attrs, self.kernel_params = inputs, outputs, attrs, params
        self.simple = not any(a.is_list for a in inputs + outputs)
        self.inferred = frozenset(inferred)
        self.defaults = {
            a.name: a.default for a in attrs.values() if a.has_default and a.name not in inferred
        }
        self.single = outputs[0] if len(outputs) == 1 and not outputs[0].is_list else None
        self.has_refs = any(a.is_ref for a in inputs)
        self.without_kernel = tuple(a for a in attrs.values() if a.missing or a.unimplemented)
        self.checked = {}

    def __repr__(self) -> str:
        return f"OpDef({self.name}: {self.signature})"


ALL_OPS: dict[str, OpDef] = {}

_DTYPE_NAMES = {
    d.name: d for d in dtypes._ALL if not d._is_ref_dtype
}  # "float" etc. are not accepted: signatures use exact names


#: Called, each once, when an op is asked for that is not defined yet: they import further modules
#: of ops.
LOADERS: list[Callable[[], None]] = []


def lookup(name: str) -> OpDef:
    found = ALL_OPS.get(name)
    return _late(name) if found is None else found


def _late(name: str) -> OpDef:
    while LOADERS:
        LOADERS.pop()()
        if name in ALL_OPS:
            break
    if name in ALL_OPS:
        return ALL_OPS[name]
    import difflib

    near = difflib.get_close_matches(name, ALL_OPS, 3)
    hint = f" Near: {', '.join(near)}." if near else ""
    raise ValueError(f"No op named {name} is defined in this version of Headrace.{hint}")


def define(
    name: str,
    signature: str,
    *,
    shape: Callable[[Any], Sequence[Any]],
    kernel: Callable[..., Any] | None = None,
    grad: Callable[..., Any] | _Marker,
    inplace: Callable[..., None] | None = None,
    trusting: Callable[..., Any] | None = None,
    native: NativeInplace | None = None,
    **traits: Any,
) -> OpDef:
    """Declare an op.

    ``kernel`` may be left out where ``ufunc`` names an xp function that is all of it.
    """
    if name in ALL_OPS:
        raise ValueError(f"op {name} is defined twice")
    if grad is None or not (callable(grad) or isinstance(grad, _Marker)):
        raise TypeError(
            f"op {name}: say what its gradient is (a function, NOT_DIFFERENTIABLE or "
            "NO_GRADIENT_YET)"
        )
    flags = Traits(**traits)
    if flags.role not in ROLES:
        raise ValueError(f"op {name}: {flags.role!r} is no role (see ROLES)")
    if kernel is None:
        if flags.ufunc is None:
            raise TypeError(f"op {name}: no kernel")
        kernel = ufunc_kernel(flags.ufunc)
    opdef = OpDef(name, signature, shape, kernel, grad, flags, inplace, trusting, native)
    ALL_OPS[name] = opdef
    return opdef


def add_traits(names: str, **traits: Any) -> None:
    """Further traits of ops that were defined by a helper, right after it:
    ``add_traits("Sinh Cosh", heavy=True)``.
    """
    for name in names.split():
        opdef = ALL_OPS[name]
        opdef.traits = opdef.traits._replace(**traits)
        opdef.role = opdef.traits.role
        assert opdef.role in ROLES, f"op {name}: {opdef.role!r} is no role (see ROLES)"


_NO_TRAITS = Traits()


def traits_of(name: str) -> Traits:
    """The traits of an op by its name, which may be an unknown one in a file."""
    found = ALL_OPS.get(name)
    while found is None and LOADERS:
        LOADERS.pop()()
        found = ALL_OPS.get(name)
    return _NO_TRAITS if found is None else found.traits


class KernelNode(NamedTuple):
    """The node a kernel runs for: given to kernels that ask for ``node``."""

    name: str
    op_type: str
    attrs: dict[str, Any]
    op: Any = None  # the user's Operation it came from

    @property
    def key(self) -> str:
        """What state of its own an op keeps is kept under.

        Its name, and the function that it belongs to.
        """
        graph = getattr(self.op, "graph", None)
        if graph is None or not graph._is_function:
            return self.name
        return self.op._state_key or f"{graph.key}/{self.name}"


def bind_kernel(
    opdef: OpDef, node: KernelNode, xp: ArrayNamespace, trusting: bool = False
) -> Callable[..., Any]:
    """The kernel as a function of the inputs alone (and of ``rt=``, for kernels that want the
    runtime).
    """
    if opdef.traits.ufunc is not None:
        ufunc: Callable[..., Any] = getattr(xp, opdef.traits.ufunc)
        return ufunc
    kwargs = {p: node if p == "node" else node.attrs[p] for p in opdef.kernel_params if p != "rt"}
    kernel = opdef.trusting if trusting and opdef.trusting is not None else opdef.kernel
    return functools.partial(kernel, xp, **kwargs)


def ufunc_kernel(name: str) -> Callable[..., Any]:
    """A kernel that is one function of the array namespace."""

    def kernel(xp: ArrayNamespace, *inputs: object) -> Any:
        return getattr(xp, name)(*inputs)

    return kernel


def _implied_kind(attr: str, inputs: Sequence[Arg]) -> str:
    for arg in inputs:
        if arg.number_attr == attr:
            return "int"
        if arg.type_list_attr == attr:
            return "list(type)"
    return "type"


def _keyword_params(kernel: Callable[..., Any]) -> tuple[str, ...]:
    code = getattr(kernel, "__code__", None)
    if code is not None and not hasattr(kernel, "__wrapped__"):
        start = code.co_argcount
        return tuple(code.co_varnames[start : start + code.co_kwonlyargcount])
    parameters = inspect.signature(kernel).parameters.values()
    return tuple(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)


# signatures -------------------------------------------------------------------------------------


def parse_signature(text: str) -> tuple[tuple[Arg, ...], tuple[Arg, ...], dict[str, Attr]]:
    head, _, tail = text.partition(";")
    left, arrow, right = head.partition("->")
    if not arrow:
        raise ValueError(f"signature without '->': {text!r}")
    inputs = tuple(_parse_arg(a) for a in _split(left))
    outputs = tuple(_parse_arg(a) for a in _split(right))
    attrs = {a.name: a for a in (_parse_attr(t) for t in _split(tail))}
    return inputs, outputs, attrs


def _split(text: str) -> list[str]:
    """Split at commas that are outside brackets."""
    parts, depth, start = [], 0, 0
    for i, ch in enumerate(text):
        if ch in "([{":
            depth += 1
        elif ch in ")]}":
            depth -= 1
        elif ch == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [p.strip() for p in parts if p.strip()]


def _parse_arg(text: str) -> Arg:
    name, _, spec = (p.strip() for p in text.partition(":"))
    is_ref = spec.startswith("&")
    spec = spec.lstrip("&").strip()
    if spec.startswith("*"):
        return Arg(name, None, "", "", spec[1:].strip(), is_ref)
    number = ""
    if "*" in spec:
        number, spec = (p.strip() for p in spec.split("*"))
    if spec in _DTYPE_NAMES:
        return Arg(name, _DTYPE_NAMES[spec], "", number, "", is_ref)
    return Arg(name, None, spec, number, "", is_ref)


_ATTR = re.compile(r"^(\w+)\s*:\s*([\w()]+)\s*(?:=\s*(.*))?$", re.S)


def _parse_attr(text: str) -> Attr:
    match = _ATTR.match(text)
    if match is None:
        raise ValueError(f"cannot read attribute {text!r}")
    name, kind, default = match.groups()
    allowed: frozenset[DType] | None = None
    if kind.startswith("type(") or kind.startswith("list(type("):
        group = kind.rstrip(")").rpartition("(")[2]
        allowed = GROUPS[group]
        kind = "list(type)" if kind.startswith("list") else "type"
    if default is None:
        return Attr(name, kind, allowed=allowed)
    value: Any
    if kind == "type":
        value = _DTYPE_NAMES[default.strip()]
    elif kind == "tensor":  # uint8[255, 0]
        dtype, _, values = default.partition("[")
        value = np.array(ast.literal_eval(f"[{values}"), _DTYPE_NAMES[dtype].as_numpy_dtype)
        value.flags.writeable = False
    else:
        value = ast.literal_eval(default.strip())
        if kind == "shape" and value is not None:
            value = tuple(value)
    return Attr(name, kind, value, True, allowed)
