"""``contrib.training.HParams``: named settings with types, from keywords, text or JSON.

hparams = HParams(learning_rate=0.1, units=[100, 50])
hparams.parse("learning_rate=0.3,units=[10,20]").learning_rate     # 0.3
"""

from __future__ import annotations

import json
import numbers
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from headrace.wire import hparam_messages

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Tensor

__all__ = ["HParams", "parse_values"]

#: One ``name=value``, ``name[index]=value`` or ``name=[value, …]`` of a text.
PARAM_RE = re.compile(
    r"""
    (?P<name>[a-zA-Z][\w\.]*)
    (\[\s*(?P<index>\d+)\s*\])?
    \s*=\s*
    ((?P<val>[^,\[]*) | \[(?P<vals>[^\]]*)\])
    ($|,\s*)""",
    re.VERBOSE,
)

_BOOLEANS = {"true": True, "True": True, "false": False, "False": False}


def parse_values(
    values: str, type_map: Mapping[str, type], ignore_unknown: bool = False
) -> dict[str, Any]:
    """``"x=5,l=[1,2],a[1]=3"`` as ``{"x": 5, "l": [1, 2], "a": {1: 3}}``.

    ``type_map`` has the type of every name (of its elements, for lists). A name without a type is
    a ValueError, or left out with ``ignore_unknown``.
    """
    found: dict[str, Any] = {}
    position = 0
    while position < len(values):
        match = PARAM_RE.match(values, position)
        if not match:
            raise ValueError(f"Malformed hyperparameter value: {values[position:]}")
        position = match.end()
        name = match["name"]
        if name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError(f"Unknown hyperparameter type for {name}")
        if match["val"] is not None:
            _set_scalar(found, match, type_map[name], values)
        else:
            _set_list(found, match, type_map[name], values)
    return found


def _parser(kind: type) -> Callable[[str], Any]:
    if kind is not bool:
        return kind
    return lambda text: _BOOLEANS[text] if text in _BOOLEANS else bool(int(text))


def _parsed(match: re.Match[str], kind: type, text: str, whole: str) -> Any:
    try:
        return _parser(kind)(text)
    except ValueError:
        given = match["val"] if match["val"] is not None else match["vals"]
        raise ValueError(
            f"Could not parse hparam '{match['name']}' of type '{kind.__name__}' with value "
            f"'{given}' in {whole}"
        ) from None


def _refuse_again(name: str, whole: str) -> None:
    raise ValueError(f"Multiple assignments to variable '{name}' in {whole}")


def _set_scalar(found: dict[str, Any], match: re.Match[str], kind: type, whole: str) -> None:
    name, value = match["name"], _parsed(match, kind, match["val"], whole)
    if not match["index"]:
        if name in found:
            _refuse_again(name, whole)
        found[name] = value
        return
    items = found.setdefault(name, {})
    if not isinstance(items, dict):
        _refuse_again(name, whole)
    index = int(match["index"])
    if index in items:
        _refuse_again(f"{name}[{index}]", whole)
    items[index] = value


def _set_list(found: dict[str, Any], match: re.Match[str], kind: type, whole: str) -> None:
    if match["index"] is not None:
        raise ValueError("Assignment of a list to a list index.")
    if match["name"] in found:
        _refuse_again(match["name"], whole)
    elements = [e for e in re.split("[ ,]", match["vals"]) if e]
    found[match["name"]] = [_parsed(match, kind, e, whole) for e in elements]


def _cast(name: str, kind: type, value: TensorLike) -> Any:
    """``value`` as ``kind``: an integer may become a float, nothing else changes its nature."""
    if type(value) is kind or issubclass(kind, type(None)):
        return value
    texts = (str, bytes)
    wrong = (
        (issubclass(kind, texts) and not isinstance(value, texts))
        or issubclass(kind, bool) != isinstance(value, bool)
        or (issubclass(kind, numbers.Integral) and not isinstance(value, numbers.Integral))
        or (issubclass(kind, numbers.Number) and not isinstance(value, numbers.Number))
    )
    if wrong:
        raise ValueError(f"Could not cast hparam '{name}' of type '{kind}' from value {value!r}")
    convert: Callable[[Any], Any] = kind
    return convert(value)


class HParams:
    """Settings by name, each an attribute.

    A value's type (of a list: its first element's) is kept: later values must fit it.
    ``hparam_def`` is an HParamDef message to take the settings from. ``model_structure`` is kept
    for the caller.
    """

    _HAS_DYNAMIC_ATTRIBUTES = True

    def __init__(
        self, hparam_def: Any = None, model_structure: object = None, **kwargs: Any
    ) -> None:
        self._hparam_types: dict[str, tuple[type, bool]] = {}
        self._model_structure = model_structure
        if hparam_def:
            if kwargs:
                raise ValueError("hparam_def and initialization values are mutually exclusive")
            for name, value in hparam_messages.read(hparam_def).items():
                self.add_hparam(name, value)
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def __getattr__(self, name: str) -> Tensor:
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def add_hparam(self, name: str, value: TensorLike) -> None:
        """A new setting; its name must not be an attribute already."""
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        if isinstance(value, (list, tuple)):
            if not value:
                raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
            self._hparam_types[name] = (type(value[0]), True)
        else:
            self._hparam_types[name] = (type(value), False)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: TensorLike) -> None:
        """Change a setting; KeyError if there is none, ValueError if the type does not fit."""
        kind, is_list = self._hparam_types[name]
        if isinstance(value, list):
            if not is_list:
                raise ValueError(f"Must not pass a list for single-valued parameter: {name}")
            setattr(self, name, [_cast(name, kind, v) for v in value])
        else:
            if is_list:
                raise ValueError(f"Must pass a list for multi-valued parameter: {name}.")
            setattr(self, name, _cast(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Remove a setting, if it is there."""
        if hasattr(self, name):
            delattr(self, name)
            del self._hparam_types[name]

    def parse(self, values: str) -> HParams:
        """Change settings from text (see :func:`parse_values`)."""
        kinds = {name: kind for name, (kind, _) in self._hparam_types.items()}
        return self.override_from_dict(parse_values(values, kinds))

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Change settings from a dictionary."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def set_from_map(self, values_map: Mapping[str, Any]) -> HParams:
        """The older name of :meth:`override_from_dict`."""
        return self.override_from_dict(values_map)

    def set_model_structure(self, model_structure: object) -> None:
        self._model_structure = model_structure

    def get_model_structure(self) -> object:
        return self._model_structure

    def to_json(
        self,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        """The settings as JSON text (arguments as of ``json.dumps``)."""
        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

    def parse_json(self, values_json: str) -> HParams:
        """Change settings from JSON text."""
        return self.override_from_dict(json.loads(values_json))

    def values(self) -> dict[str, Any]:
        """All settings by name."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key: str, default: Any = None) -> Any:
        """A setting, or ``default``, which must fit the setting's type."""
        if key not in self._hparam_types:
            return default
        if default is not None:
            self._check_default(key, default)
        return getattr(self, key)

    def _check_default(self, key: str, default: Any) -> None:
        kind, is_list = self._hparam_types[key]
        described = f"list<{kind}>" if is_list else str(kind)
        text = f"Hparam '{key}' of type '{described}' is incompatible with default={default}"
        if is_list != isinstance(default, list):
            raise ValueError(text)
        try:
            for value in default if is_list else [default]:
                _cast(key, kind, value)
        except ValueError as e:
            raise ValueError(f"{text}. {e}") from None

    def __contains__(self, key: str) -> bool:
        return key in self._hparam_types

    def __str__(self) -> str:
        return ",".join(f"{key}={value}" for key, value in self.values().items())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({sorted(self.values().items())})"

    def to_proto(self, export_scope: str | None = None) -> Any:
        """An HParamDef message; ``export_scope`` has no part in it (nor has it in TensorFlow)."""
        return hparam_messages.write(self._hparam_types, self.values())

    @staticmethod
    def from_proto(hparam_def: object, import_scope: str | None = None) -> HParams:
        """The settings of an HParamDef message."""
        return HParams(hparam_def=hparam_def)
