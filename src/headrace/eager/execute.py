"""One operation, computed at once.

``execute`` is what ``core.build.apply`` calls while eager execution is on. A *call plan* (kernel
bound to attributes, types of the outputs) is kept per op, input types and attributes, so that a
repeated call looks up one dictionary, calls the kernel and wraps what it returns. Inputs that are
not tensors are converted with TF 2's rules: they take the type of the tensors beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace.core import convert as conversion
from headrace.core import dtypes
from headrace.core.build import _attr_value
from headrace.core.dtypes import DType
from headrace.core.func_graph import out_of_scope
from headrace.core.infer import output_dtypes
from headrace.core.opdef import Arg, KernelNode, OpDef, bind_kernel
from headrace.core.tensor import Tensor
from headrace.eager import eager_operators as operators
from headrace.eager import eager_state_ops as states
from headrace.eager.eager_context import EAGER, STATE
from headrace.eager.eager_errors import located, not_allowed, wrong_type
from headrace.eager.eager_tensor import EagerTensor, Handle, wrap
from headrace.eager.tape_record import ACTIVE, Record, record
from headrace.kernels.numpy import numpy_xp
from headrace.kernels.numpy.openblas import blas_holders, release_blas
from headrace.lower.session_state import RunContext
from headrace.ops.state.resource_state import VAR_HANDLE
from headrace.runtime.float_errors import restore, silence

__all__ = ["CallPlan", "execute", "execute_flat"]

_new = EagerTensor.__new__
#: Call plans that are kept.
_MAX_PLANS = 4096


class CallPlan:
    """An op bound to its attributes."""

    __slots__ = (
        "attrs",
        "dtype",
        "dtypes",
        "groups",
        "kernel",
        "opdef",
        "plain",
        "stateful",
        "wants_rt",
    )

    def __init__(self, opdef: OpDef, attrs: dict[str, Any], kernel: Callable[..., Any]) -> None:
        self.opdef = opdef
        self.attrs = attrs
        self.kernel = kernel
        self.dtypes: list[DType] = output_dtypes(opdef, attrs) if opdef.outputs else []
        single = opdef.single
        self.dtype = (
            self.dtypes[0] if single is not None and self.dtypes[0]._kind not in "sr" else None
        )
        self.wants_rt = "rt" in opdef.kernel_params
        self.stateful = bool(opdef.traits.reads or opdef.traits.writes)
        self.groups = None if opdef.simple else _groups(opdef, attrs)
        #: The type of the result of a kernel that takes arrays and gives one.
        self.plain = None if self.wants_rt or self.stateful else self.dtype


def _groups(opdef: OpDef, attrs: dict[str, Any]) -> list[int]:
    """How many outputs each output argument has; -1 for one that is not a list."""
    out = []
    for arg in opdef.outputs:
        if not arg.is_list:
            out.append(-1)
        elif arg.number_attr:
            out.append(attrs[arg.number_attr])
        else:
            out.append(len(attrs[arg.type_list_attr]))
    return out


_plans: dict[Any, CallPlan] = {}


def execute(opdef: OpDef, inputs: tuple[Any, ...], name: str | None, given: dict[str, Any]) -> Any:
    """Compute one op; returns tensors as ``apply`` does, None if the op has no outputs."""
    key: list[Any] = [opdef]
    values: list[Any] = []
    for x in inputs:
        if type(x) is not EagerTensor:
            return _execute_mixed(opdef, inputs, name, given)
        key.append(x._dtype)
        values.append(x._static)
    try:
        if given:
            key.extend(given.items())
        plan = _plans.get(tuple(key))
    except TypeError:  # an attribute that cannot be hashed as it was given
        return _execute_any(opdef, inputs, name, given)
    if plan is None:
        if not opdef.simple or len(inputs) != len(opdef.inputs):
            return _execute_any(opdef, inputs, name, given)
        plan = _checked_plan(opdef, inputs, given, name)
        _remember(tuple(key), plan)
    dtype = plan.plain
    if dtype is None:
        return _grouped(plan, _outputs(plan, values, inputs, name))
    token = silence()
    try:
        value = plan.kernel(*values)
    except Exception as error:
        raise located(error, opdef, inputs, values, name, plan.attrs) from None
    finally:
        restore(token)
        if blas_holders[0]:
            release_blas()
    out = _new(EagerTensor)
    out._static = value
    out._dtype = dtype
    if ACTIVE[0]:
        record(opdef, plan.attrs, inputs, (out,))
    return out


def _remember(key: object, plan: CallPlan) -> None:
    if plan.opdef.traits.attrs_vary or (plan.opdef.traits.random and plan.attrs.get("seed2")):
        return  # attributes that are new with every call
    if any(type(v) is float and v == 0.0 for v in plan.attrs.values()):
        return  # 0.0 and -0.0 are one key and two attributes
    if len(_plans) >= _MAX_PLANS:
        _plans.pop(next(iter(_plans)))
    _plans[key] = plan


def _execute_mixed(
    opdef: OpDef, inputs: tuple[Any, ...], name: str | None, given: dict[str, Any]
) -> Any:
    """Single inputs, some of them numbers, arrays or variables: converted, then as above."""
    args = opdef.inputs
    if len(inputs) != len(args):
        return _execute_any(opdef, inputs, name, given)
    if not opdef.simple:
        return _execute_lists(opdef, inputs, name, given)
    tensors = list(inputs)
    handles = False
    for i, x in enumerate(inputs):
        if type(x) is EagerTensor:
            continue
        if isinstance(x, Handle):
            handles = True
            continue
        arg = args[i]
        attr = arg.type_attr
        want, wish = arg.dtype, None
        if attr:
            want = given.get(attr)
            if want is None:
                wish = _type_beside(args, tensors, attr)
            elif type(want) is not DType:
                want = dtypes.as_dtype(want).base_dtype
        tensors[i] = _converted(opdef, arg, x, want, wish)
    if handles:
        return _execute_handles(opdef, tensors, name, given)
    return execute(opdef, tuple(tensors), name, given)


def _execute_handles(
    opdef: OpDef, inputs: list[Any], name: str | None, given: dict[str, Any]
) -> Any:
    """Tensors and handles of variables."""
    try:
        key = (opdef, *[x._dtype for x in inputs], *given.items())
        plan = _plans.get(key)
    except TypeError:
        return _execute_any(opdef, tuple(inputs), name, given)
    if plan is None:
        return _execute_any(opdef, tuple(inputs), name, given, key)
    return _grouped(plan, _outputs(plan, [x._static for x in inputs], inputs, name))


def _execute_lists(
    opdef: OpDef, inputs: tuple[Any, ...], name: str | None, given: dict[str, Any]
) -> Any:
    """Lists of tensors, and beside them tensors or numbers."""
    key: list[Any] = [opdef]
    flat: list[Any] = []
    for arg, x in zip(opdef.inputs, inputs):
        if type(x) in (list, tuple) and arg.is_list:
            key.append(len(x))
            for item in x:
                if type(item) is not EagerTensor:
                    return _execute_any(opdef, inputs, name, given)
                key.append(item._dtype)
                flat.append(item)
            continue
        if type(x) is not EagerTensor:
            if type(x) is not int or not arg.type_attr or arg.type_attr in given:
                return _execute_any(opdef, inputs, name, given)
            x = _converted(opdef, arg, x, None, None)
        key.append(x._dtype)
        flat.append(x)
    try:
        key.extend(given.items())
        plan = _plans.get(tuple(key))
    except TypeError:
        return _execute_any(opdef, inputs, name, given)
    if plan is None:
        return _execute_any(opdef, inputs, name, given, tuple(key))
    return _grouped(plan, _outputs(plan, [t._static for t in flat], flat, name))


def _type_beside(args: tuple[Arg, ...], values: list[Any], attr: str) -> DType | None:
    """The type that a tensor among the inputs gives to a type attribute."""
    for arg, value in zip(args, values):
        if arg.type_attr == attr:
            if type(value) is EagerTensor:
                return value._dtype
            dtype = _tensor_dtype(value)
            if dtype is not None:
                return dtype
    return None


def _execute_any(
    opdef: OpDef,
    inputs: tuple[Any, ...],
    name: str | None,
    given: dict[str, Any],
    key: object = None,
) -> Any:
    """An operation with inputs of any kind, lists, handles. The plan is kept under ``key`` too."""
    if len(inputs) != len(opdef.inputs):
        raise TypeError(f"{opdef.name} takes {len(opdef.inputs)} inputs, {len(inputs)} were given")
    attrs = _given_attrs(opdef, given)
    types = _Types(dict(attrs), _known_types(opdef, inputs, attrs))
    flat: list[Any] = []
    for i, (arg, value) in enumerate(zip(opdef.inputs, inputs)):
        if arg.is_list:
            flat += _list_input(opdef, arg, value, attrs, types, name)
        else:
            flat.append(_one_input(opdef, arg, i, value, attrs, types, name))
    plan = _plan_for(opdef, attrs, name)
    if key is not None:
        _remember(key, plan)
    return _grouped(plan, _outputs(plan, [t._static for t in flat], flat, name))


def execute_flat(
    opdef: OpDef, inputs: Sequence[Tensor], attrs: dict[str, Any], name: str
) -> Record:
    """For code that adds operations by flat tensors and complete attributes."""
    flat = [conversion.convert(t) for t in inputs]
    plan = _plan_for(opdef, attrs, name)
    outputs = _outputs(plan, [t._static for t in flat], flat, name)
    return Record(opdef, plan.attrs, flat, outputs)


# plans ------------------------------------------------------------------------------------------


def _given_attrs(opdef: OpDef, given: dict[str, Any]) -> dict[str, Any]:
    """Attributes in their stored form.

    Unlike a graph, eager TensorFlow takes any number for a bool: 1, 1.0 and True are one key of a
    plan and give one answer.
    """
    attrs = {}
    for name, value in given.items():
        attr = opdef.attrs.get(name)
        if attr is not None and attr.kind == "bool" and isinstance(value, (int, float)):
            value = bool(value)
        if value is not None or attr is not None:
            attrs[name] = _attr_value(opdef, name, value)
    return attrs


def _checked_plan(
    opdef: OpDef, inputs: tuple[Any, ...], given: dict[str, Any], name: str | None
) -> CallPlan:
    """The plan for inputs that are all eager tensors: types are inferred and checked."""
    attrs = _given_attrs(opdef, given)
    for i, (arg, tensor) in enumerate(zip(opdef.inputs, inputs)):
        _check_type(opdef, arg, i, tensor, attrs, name)
    return _plan_for(opdef, attrs, name)


def _check_type(
    opdef: OpDef, arg: Arg, i: int, tensor: Tensor, attrs: dict[str, Any], name: str | None
) -> None:
    have = tensor._dtype
    want = arg.dtype if not arg.type_attr else attrs.get(arg.type_attr)
    if want is None:
        attr = opdef.attrs[arg.type_attr]
        if attr.allowed is not None and have not in attr.allowed:
            raise not_allowed(opdef, attr, have)
        attrs[arg.type_attr] = have
    elif have is not want:
        raise wrong_type(opdef, i, have, want, name)
    if arg.is_ref:
        raise RuntimeError(
            f"{opdef.name} op does not support eager execution. Arg '{arg.name}' is a ref."
        )


def _plan_for(opdef: OpDef, attrs: dict[str, Any], name: str | None) -> CallPlan:
    """The plan for complete input types; attributes that were not given get their defaults."""
    for attr, default in opdef.defaults.items():
        attrs.setdefault(attr, default)
    if len(attrs) < len(opdef.attrs):
        for a in opdef.attrs.values():
            if a.name not in attrs:
                if not a.has_default:
                    raise TypeError(f"{opdef.name}: attribute '{a.name}' is missing")
                attrs[a.name] = a.default
    try:
        key = (opdef, *sorted(attrs.items(), key=_first))
        found = _plans.get(key)
    except TypeError:
        return _new_plan(opdef, attrs, name)
    if found is None:
        found = _new_plan(opdef, attrs, name)
        _remember(key, found)
    return found


def _first(pair: tuple[str, Any]) -> str:
    return pair[0]


def _new_plan(opdef: OpDef, attrs: dict[str, Any], name: str | None) -> CallPlan:
    if opdef.traits.check_attrs is not None:
        opdef.traits.check_attrs(attrs)
    if opdef is VAR_HANDLE:
        return CallPlan(opdef, attrs, states.handle_kernel(attrs, name))
    if opdef.traits.random or opdef.traits.stateful:  # generators go on where this call stopped
        name = f"{opdef.name}{sorted((k, repr(v)) for k, v in attrs.items())}"
    node = KernelNode(name or opdef.name, opdef.name, attrs)
    return CallPlan(opdef, attrs, bind_kernel(opdef, node, numpy_xp))


# inputs -----------------------------------------------------------------------------------------


class _Types(NamedTuple):
    """Types of attributes for values that are no tensors.

    Demanded by the caller, or wished because tensors have them.
    """

    demanded: dict[str, Any]
    wished: dict[str, DType]


def _known_types(opdef: OpDef, inputs: Sequence[Any], attrs: dict[str, Any]) -> dict[str, DType]:
    """The types that the tensors among the inputs decide; the other inputs follow them."""
    known: dict[str, DType] = {}
    for arg, value in zip(opdef.inputs, inputs):
        attr = arg.type_attr
        if not attr or attr in attrs or attr in known:
            continue
        for item in value if arg.is_list and isinstance(value, (list, tuple)) else (value,):
            dtype = _tensor_dtype(item)
            if dtype is not None:
                known[attr] = dtype
                break
    return known


def _tensor_dtype(value: Any) -> DType | None:
    if isinstance(value, Tensor):
        return value._dtype._base
    if hasattr(value, "_as_graph_element"):  # a variable
        dtype: DType = value.dtype
        return dtype.base_dtype
    return None


def _one_input(
    opdef: OpDef,
    arg: Arg,
    i: int,
    value: object,
    attrs: dict[str, Any],
    types: _Types,
    name: str | None,
) -> Tensor:
    if not isinstance(value, EagerTensor):
        attr = arg.type_attr
        want = arg.dtype if not attr else types.demanded.get(attr)
        wish = None if not attr else types.wished.get(attr) or attrs.get(attr)
        value = _converted(opdef, arg, value, want, wish)
    _check_type(opdef, arg, i, value, attrs, name)
    return value


def _converted(
    opdef: OpDef, arg: Arg, value: object, want: DType | None, wish: DType | None
) -> EagerTensor:
    """A value that is no eager tensor, as one: ``want`` is a demand, ``wish`` may fail."""
    if isinstance(value, Tensor):
        raise out_of_scope(value, is_outside=True)
    if want is None and wish is None and arg.type_attr:
        attr = opdef.attrs[arg.type_attr]
        wish = attr.default if attr.has_default else None
    if want is not None:
        return to_tensor(value, want)
    if wish is not None:
        try:
            return to_tensor(value, wish)
        except (TypeError, ValueError, OverflowError):
            pass
    return to_tensor(value, None)


def to_tensor(value: object, dtype: DType | None) -> EagerTensor:
    """Any Python value as an eager tensor."""
    kind = type(value)
    if kind is float or kind is int or kind is np.ndarray or kind is bool:
        try:
            array = conversion.make_ndarray(value, dtype)
        except TypeError as error:
            if kind is np.ndarray or dtype is None:
                raise
            raise TypeError(
                f"Cannot convert {value!r} to EagerTensor of dtype {dtype.name}"
            ) from error
        return wrap(array, dtype or dtypes.FROM_NUMPY[array.dtype])
    read: Callable[[], Any] | None = getattr(value, "_eager_read", None)
    if read is not None:
        held: EagerTensor = read()
        if dtype is None or held._dtype is dtype:
            return held
        return _at_hand(conversion.convert(value, dtype))
    if value is None:
        raise ValueError(
            "Attempt to convert a value (None) with an unsupported type (<class "
            "'NoneType'>) to a Tensor."
        )
    return _at_hand(conversion.convert(value, dtype))


def _at_hand(tensor: Tensor) -> EagerTensor:
    """The tensor, which must not be one of a graph."""
    if not isinstance(tensor, EagerTensor):
        raise out_of_scope(tensor, is_outside=True)
    return tensor


def _list_input(
    opdef: OpDef,
    arg: Arg,
    values: Sequence[str | Tensor | Sequence[int | str]],
    attrs: dict[str, Any],
    types: _Types,
    name: str | None,
) -> list[Any]:
    if not isinstance(values, (list, tuple)):
        raise TypeError(
            f"Expected list for '{arg.name}' argument to '{opdef.name}' Op, not {values!r}."
        )
    if arg.type_list_attr:
        want = attrs.get(arg.type_list_attr)
        tensors = [
            v
            if isinstance(v, EagerTensor)
            else _converted(opdef, arg, v, want[i] if want else None, None)
            for i, v in enumerate(values)
        ]
        attrs[arg.type_list_attr] = tuple(t._dtype for t in tensors)
        return tensors
    out = [_one_input(opdef, arg, i, v, attrs, types, name) for i, v in enumerate(values)]
    attrs[arg.number_attr] = len(out)
    return out


# computing --------------------------------------------------------------------------------------


def _outputs(
    plan: CallPlan, values: list[Any], inputs: Sequence[Any], name: str | None
) -> list[Any]:
    """The flat outputs of an op, recorded."""
    opdef = plan.opdef
    token = silence()
    try:
        if plan.stateful:
            result = states.call(plan, values, inputs)
        elif plan.wants_rt:
            result = plan.kernel(*values, rt=RunContext(STATE))
        else:
            result = plan.kernel(*values)
    except Exception as error:
        raise located(error, opdef, inputs, values, name, plan.attrs) from None
    finally:
        restore(token)
        if blas_holders[0]:
            release_blas()
    n = len(plan.dtypes)
    if n == 0:
        return []
    results = result if n > 1 or (type(result) is tuple and plan.groups is not None) else (result,)
    outputs = [_wrapped(r, d) for r, d in zip(results, plan.dtypes)]
    if ACTIVE[0]:
        record(opdef, plan.attrs, inputs, outputs)
    return outputs


def _wrapped(value: object, dtype: DType) -> EagerTensor:
    kind = dtype._kind
    if kind == "r":
        return value if isinstance(value, Handle) else Handle(value, dtype=dtype)
    if kind == "s" and not isinstance(value, np.ndarray):
        value = conversion.make_ndarray(value, dtypes.string)
    return wrap(value, dtype)


def _grouped(plan: CallPlan, outputs: list[Any]) -> Any:
    """As ``apply`` returns them: list arguments give lists."""
    if plan.groups is None:
        if len(outputs) == 1:
            return outputs[0]
        return tuple(outputs) if outputs else None
    parts: list[Any] = []
    at = 0
    for n in plan.groups:
        if n < 0:
            parts.append(outputs[at])
            at += 1
        else:
            parts.append(outputs[at : at + n])
            at += n
    if len(parts) == 1:
        return parts[0]
    return tuple(parts) if parts else None


operators.install()
EAGER._execute = execute  # type: ignore[method-assign]
