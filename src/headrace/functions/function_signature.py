"""The parameters of a function, and what distinguishes one call from another.

A call is first brought into one form: every positional parameter by position, defaults filled in.
Its *key* then says all that a trace depends on: type and shape of tensors, the values of Python
arguments, the nesting of structures.

    >>> Signature(lambda x, y=2: None).bind((1,), {})
    ((1, 2), {})
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import nest, specs
from headrace.core.convert import make_ndarray
from headrace.core.dtypes import FROM_NUMPY
from headrace.core.specs import TensorSpec, TypeSpec
from headrace.core.tensor import Tensor
from headrace.eager.eager_tensor import EagerTensor, wrap

if TYPE_CHECKING:
    from headrace.core.annotations import Array, TensorLike

__all__ = ["LITERALS", "ByIdentity", "Signature", "call_specs", "encode", "shown_leaf"]

#: Python values that are part of a key as they are.
LITERALS = frozenset([int, float, bool, str, bytes, complex, type(None)])
_EMPTY = inspect.Parameter.empty
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class UnhashableArgument(TypeError, AttributeError):
    """An argument of which a function could not tell whether it changed.

    An AttributeError in TF 1.15, a TypeError in TF 2.
    """


class SignatureMismatch(TypeError, ValueError):
    """Arguments that do not fit a function's signature.

    A ValueError in TF 1.15, a TypeError in TF 2.
    """


class Signature:
    """The parameters of a Python function."""

    def __init__(self, function: Callable[..., Any], input_signature: object = None) -> None:
        self.function = function
        parameters = list(_signature(function).parameters.values())
        self.positional = [p for p in parameters if p.kind in _POSITIONAL]
        self.names = [p.name for p in self.positional]
        self.defaults = [p.default for p in self.positional]
        self.varargs = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
        self.varkw = next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), None)
        self.keyword_only = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        self._only_positional = {
            p.name for p in self.positional if p.kind is inspect.Parameter.POSITIONAL_ONLY
        }
        self.input_signature = self._checked(input_signature)
        #: A call with just so many positional arguments and nothing else is in its one form
        #: already.
        self.plain_count = len(self.names) if not self.keyword_only else -1

    # binding ------------------------------------------------------------------------------------
    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call in its one form; TypeError, in TensorFlow's words, if it does not fit."""
        if not kwargs and len(args) == self.plain_count:
            return args, kwargs
        n = len(self.names)
        rest = dict(kwargs)
        out = list(args[:n])
        for name, default in list(zip(self.names, self.defaults))[len(out) :]:
            if name in rest and name not in self._only_positional:
                out.append(rest.pop(name))
            elif default is not _EMPTY:
                out.append(default)
            else:
                why = f"missing a required argument: '{name}'"
                if self.input_signature is not None:
                    why += ". Structure of Python function inputs does not match input_signature"
                raise self.misfit(why, args, kwargs)
        if len(args) > n:
            if self.varargs is None:
                raise self.misfit(
                    f"too many positional arguments: Received {len(args)} argument(s)", args, kwargs
                )
            out += args[n:]
        return tuple(out), self._keywords(rest, args, kwargs)

    def _keywords(
        self, rest: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, default in self.keyword_only.items():
            out[name] = rest.pop(name, default)
            if out[name] is _EMPTY:
                raise self.misfit(f"missing a required argument: '{name}'", args, kwargs)
        for name in rest:
            if name in self.names[: len(args)] and name not in self._only_positional:
                raise self.misfit(f"multiple values for argument '{name}'", args, kwargs)
            if self.varkw is None:
                raise self.misfit(f"got an unexpected keyword argument '{name}'", args, kwargs)
        return {**out, **rest}

    def misfit(self, why: object, args: object, kwargs: object) -> TypeError:
        return SignatureMismatch(
            f"Binding inputs to tf.function failed due to `{why}`. Received args: {args} "
            f"and kwargs: {kwargs} for "
            f"signature: {self}."
        )

    def __str__(self) -> str:
        parts = []
        for i, (name, default) in enumerate(zip(self.names, self.defaults)):
            text = name
            if self.input_signature is not None and i < len(self.input_signature):
                text += f": {self.input_signature[i]!r}"
            parts.append(text if default is _EMPTY else f"{text}=<captured_default_value>")
        if self.varargs is not None:
            parts.append(f"*{self.varargs}")
        elif self.keyword_only:
            parts.append("*")
        for name, default in self.keyword_only.items():
            parts.append(name if default is _EMPTY else f"{name}=<captured_default_value>")
        if self.varkw is not None:
            parts.append(f"**{self.varkw}")
        return f"({', '.join(parts)})"

    # an input signature -------------------------------------------------------------------------
    def _checked(self, given: object) -> tuple[Any, ...] | None:
        if given is None:
            return None
        if not isinstance(given, (list, tuple)):
            raise TypeError(f"input_signature must be either a tuple or a list, got {type(given)}.")
        wrong = [s for s in nest.flatten(list(given)) if not isinstance(s, TypeSpec)]
        if wrong:
            raise TypeError(
                f"Invalid input_signature {given}; "
                "input_signature must be a possibly nested sequence of TensorSpec "
                "objects, got invalid args "
                f"{wrong} with types {[type(w) for w in wrong]}."
            )
        if len(given) > len(self.names) and self.varargs is None:
            raise TypeError(
                f"input_signature has {len(given)} entries, but the function takes "
                f"{len(self.names)} arguments"
            )
        # a method is checked without its instance, which has no entry
        own = int(self.names[:1] == ["self"])
        for name, default in list(zip(self.names, self.defaults))[own + len(given) :]:
            if default is _EMPTY:
                raise TypeError(f"input_signature missing type constraint for {name}")
        return tuple(given)

    def cast(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as the input signature wants them."""
        wanted = self.input_signature
        assert wanted is not None
        if len(args) < len(wanted):
            raise self.misfit(
                f"missing a required argument: '{self.names[len(args)]}'. Structure of Python "
                "function inputs does not match input_signature",
                args,
                kwargs,
            )
        try:
            out = [cast_structure(spec, value) for spec, value in zip(wanted, args)]
        except (TypeError, ValueError) as error:
            found = self.misfit(error, args, kwargs)
            raise SignatureMismatch(
                f"{found} (Python inputs incompatible with input_signature, or Structure of "
                "Python function inputs does not match it.)"
            ) from None
        beyond = list(zip(self.names, self.defaults, args))[len(wanted) :]
        for name, default, value in beyond:
            same = type(value) is type(default) in LITERALS and value == default
            if value is not default and not same:
                raise self.misfit(
                    "When input_signature is provided, only pass arguments covered by it. "
                    f"Received argument {name}",
                    args,
                    kwargs,
                )
        return (*out, *args[len(wanted) :]), kwargs

    def named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
        """(name, kind, value) of every argument of a call in its one form."""
        out = [(p.name, p.kind.name, v) for p, v in zip(self.positional, args)]
        out += [
            (f"{self.varargs}_{i}", "VAR_POSITIONAL", v)
            for i, v in enumerate(args[len(self.names) :])
        ]
        return out + [(k, "KEYWORD_ONLY", v) for k, v in kwargs.items()]


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # a builtin that does not tell
        return inspect.signature(lambda *args, **kwargs: None)


def cast_structure(spec: object, value: object) -> Any:
    """A value in the structure of a spec, leaves converted; TypeError if it does not fit."""
    if not nest.is_nested(spec):
        return _cast_leaf(spec, value)
    nest.assert_shallow_structure(spec, value, check_types=False)
    flat = [
        _cast_leaf(s, v)
        for s, v in zip(nest.flatten(spec), nest.flatten_up_to(spec, value, check_types=False))
    ]
    return nest.pack_sequence_as(spec, flat)


def _cast_leaf(spec: Any, value: Any) -> Any:
    if isinstance(value, TypeSpec):
        given: Any = value
        fits = spec.is_compatible_with(value) and (
            not isinstance(value, TensorSpec) or _narrower(value, spec)
        )
    else:
        if isinstance(spec, TensorSpec):
            value = as_tensor(value, spec)
        given = specs.type_spec_from_value(value)
        fits = spec.is_compatible_with(given)
    if not fits:
        raise TypeError(f"Can not cast {given!r} to {spec!r}")
    return spec if isinstance(value, TypeSpec) else value


def _narrower(given: TensorSpec, wanted: TensorSpec) -> bool:
    return TensorSpec(given.shape, given.dtype).is_subtype_of(
        TensorSpec(wanted.shape, wanted.dtype)
    )


def as_tensor(value: TensorLike, spec: TensorSpec) -> Tensor:
    """A Python value as a tensor of the wanted type; tensors as they are."""
    if isinstance(value, Tensor):
        return value
    if hasattr(value, "_as_graph_element"):  # a variable: its value
        from headrace.core.convert import convert_to_tensor

        return convert_to_tensor(value)
    dtype = spec.dtype.base_dtype
    try:
        array = make_ndarray(value, dtype)
    except (TypeError, ValueError):
        raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {dtype.name}") from None
    return eager(array)


def eager(array: Array) -> EagerTensor:
    return wrap(
        array if array.ndim else array[()] if array.dtype.kind != "O" else array,
        FROM_NUMPY[array.dtype],
    )


# keys ---------------------------------------------------------------------------------------------


class ByIdentity:
    """An argument that is compared by what it is, not by what it says.

    Does not keep it alive if that can be helped.
    """

    __slots__ = ("_hash", "_ref")

    def __init__(self, value: object) -> None:
        self._hash = id(value)
        try:
            self._ref: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            self._ref = lambda: value

    @property
    def value(self) -> Any:
        return self._ref()

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ByIdentity):
            return NotImplemented
        mine = self._ref()
        return mine is not None and mine is other._ref()

    def __repr__(self) -> str:
        return repr(self._ref())


class _Mark:
    """Opens a structure in a key."""

    def __init__(self, kind: object, keys: object) -> None:
        self.said = (kind, keys)

    def __hash__(self) -> int:
        return hash(self.said)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Mark) and other.said == self.said


def encode(value: Any, key: list[Any], tensors: list[Any]) -> None:
    """Append to ``key`` what a trace depends on, and to ``tensors`` what it is to be called
    with.
    """
    kind = type(value)
    if kind is EagerTensor:
        key.append(value._dtype)
        key.append(value._static.shape)
        tensors.append(value)
    elif kind in LITERALS:
        key.append(kind)
        key.append(value)
    elif kind is Tensor:
        key.append(value._dtype._base)
        key.append(value._shape)
        tensors.append(value)
    elif kind is list or kind is tuple or kind is dict or nest.is_nested(value):
        _encode_structure(value, key, tensors)
    else:
        _encode_other(value, key, tensors)


def _encode_structure(value: object, key: list[Any], tensors: list[Any]) -> None:
    items = nest._items(value)
    named = isinstance(value, Mapping) or hasattr(value, "_fields")
    key.append(_Mark(type(value), tuple(k for k, _ in items) if named else len(items)))
    for _, child in items:
        encode(child, key, tensors)


def _encode_other(value: object, key: list[Any], tensors: list[Any]) -> None:
    if isinstance(value, (np.ndarray, np.generic)):
        encode(eager(make_ndarray(value, None)), key, tensors)
        return
    if isinstance(value, TypeSpec):
        _encode_spec(value, key, tensors, [None] * len(value.component_specs))
        return
    if hasattr(value, "_as_graph_element"):  # a variable
        key.append(type(value))
        key.append(ByIdentity(value))
        return
    spec = specs.leaf_spec(value)
    if isinstance(spec, TypeSpec):
        _encode_spec(spec, key, tensors, spec.to_components(value))
        return
    key.append(type(value))
    key.append(_comparable(value))


def _encode_spec(spec: TypeSpec, key: list[Any], tensors: list[Any], parts: Sequence[Any]) -> None:
    if isinstance(spec, TensorSpec):
        key.append(spec.dtype.base_dtype)
        key.append(spec.shape._plain)
        if spec.name is not None:
            key.append(spec.name)
    else:
        key.append(spec)
    tensors.extend(parts)


def hashed_by_identity(kind: Any) -> bool:
    """Whether objects of a class are equal only to themselves, or cannot be hashed."""
    return kind.__hash__ is None or kind.__hash__ is object.__hash__


def _comparable(value: object) -> Any:
    """Values that can be hashed are compared by equality.

    Of objects that would be kept alive only the identity counts. What cannot be hashed may change
    its contents: no trace can be kept for it.
    """
    if type(value).__hash__ is object.__hash__:
        return ByIdentity(value)
    try:
        hash(value)
    except TypeError:
        raise UnhashableArgument(
            f"Could not generate a generic TraceType for {value!r}. Please verify that it is "
            f"immutable/hashable: '{type(value).__name__}' is not."
        ) from None
    return value


def call_specs(value: object) -> Any:
    """The arguments of a call with specs in the place of tensors."""
    return nest.map_structure(_spec_of, value)


def _spec_of(value: object) -> Any:
    if isinstance(value, (TypeSpec, Tensor)):
        return specs.leaf_spec(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return specs.leaf_spec(value)
    if hasattr(value, "_as_graph_element"):
        return value
    return specs.leaf_spec(value)


def shown_leaf(value: Any) -> str:
    """An argument in messages.

    The spec of a tensor, a Python value as a literal, structures by their parts.
    """
    if isinstance(value, TypeSpec):
        return repr(value)
    if isinstance(value, Mapping):
        pairs = ", ".join(f"[{k!r}, {shown_leaf(v)}]" for k, v in value.items())
        return f"Dict[{pairs}]"
    if type(value) in (list, tuple):
        return f"{type(value).__name__.title()}[{', '.join(map(shown_leaf, value))}]"
    return repr(value) if nest.is_nested(value) else f"Literal[{value!r}]"
