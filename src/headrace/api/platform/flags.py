"""``tf.app.flags`` / ``tf.flags``: absl's flags, as in TensorFlow 1.15, read from ``sys.argv`` at
the first use.

The values live in absl's own ``FLAGS``, so that a program which also says ``from absl import
flags`` sees the same flags.

    flags.DEFINE_integer("steps", 100, "How many steps to train for.")
    print(flags.FLAGS.steps)
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from absl import flags as _absl
from absl.flags import (
    DEFINE,
    ArgumentParser,
    ArgumentSerializer,
    BaseListParser,
    BooleanFlag,
    BooleanParser,
    CantOpenFlagFileError,
    CsvListSerializer,
    DEFINE_alias,
    DEFINE_enum,
    DEFINE_enum_class,
    DEFINE_flag,
    DEFINE_list,
    DEFINE_multi,
    DEFINE_multi_enum,
    DEFINE_multi_float,
    DEFINE_multi_integer,
    DEFINE_multi_string,
    DEFINE_spaceseplist,
    DuplicateFlagError,
    EnumFlag,
    EnumParser,
    Error,
    Flag,
    FlagNameConflictsWithMethodError,
    FlagValues,
    FloatParser,
    IllegalFlagValueError,
    IntegerParser,
    ListParser,
    ListSerializer,
    MultiFlag,
    UnparsedFlagAccessError,
    UnrecognizedFlagError,
    ValidationError,
    WhitespaceSeparatedListParser,
    adopt_module_key_flags,
    declare_key_flag,
    disclaim_key_flags,
    doc_to_help,
    flag_dict_to_args,
    get_help_width,
    mark_bool_flags_as_mutual_exclusive,
    mark_flag_as_required,
    mark_flags_as_mutual_exclusive,
    mark_flags_as_required,
    multi_flags_validator,
    register_multi_flags_validator,
    register_validator,
    text_wrap,
    validator,
)

__all__ = [
    "DEFINE", "DEFINE_alias", "DEFINE_bool", "DEFINE_boolean", "DEFINE_enum", "DEFINE_enum_class",
    "DEFINE_flag", "DEFINE_float", "DEFINE_integer", "DEFINE_list", "DEFINE_multi",
    "DEFINE_multi_enum", "DEFINE_multi_float", "DEFINE_multi_integer", "DEFINE_multi_string",
    "DEFINE_spaceseplist", "DEFINE_string", "FLAGS", "ArgumentParser", "ArgumentSerializer",
    "BaseListParser", "BooleanFlag", "BooleanParser", "CantOpenFlagFileError", "CsvListSerializer",
    "DuplicateFlagError", "EnumFlag", "EnumParser", "Error", "Flag",
    "FlagNameConflictsWithMethodError", "FlagValues", "FloatParser", "IllegalFlagValueError",
    "IntegerParser", "ListParser", "ListSerializer", "MultiFlag", "UnparsedFlagAccessError",
    "UnrecognizedFlagError", "ValidationError", "WhitespaceSeparatedListParser",
    "adopt_module_key_flags", "declare_key_flag", "disclaim_key_flags", "doc_to_help",
    "flag_dict_to_args", "get_help_width", "mark_bool_flags_as_mutual_exclusive",
    "mark_flag_as_required", "mark_flags_as_mutual_exclusive", "mark_flags_as_required",
    "multi_flags_validator", "register_multi_flags_validator", "register_validator", "text_wrap",
    "validator",
]  # fmt: skip

_OLD_NAMES = {"flag_name": "name", "default_value": "default", "docstring": "help"}


def _with_old_names(define: Callable[..., Any]) -> Callable[..., Any]:
    """TensorFlow's own parameter names, from before it took absl's, are accepted too.

    So is a program's own flag ``log_dir``, which many have: absl.logging has taken the name since.
    """

    @functools.wraps(define)
    def wrapper(*args: object, **kwargs: object) -> Any:
        given = {_OLD_NAMES.get(k, k): v for k, v in kwargs.items()}
        name = args[0] if args else given.get("name")
        if name == "log_dir":
            import absl.logging  # before the program's flag: afterwards it would be refused
        if name == "log_dir" and _flags.find_module_defining_flag(name) == absl.logging.__name__:
            holder = define(*args, allow_override=True, **given)
            _flags[name].allow_override = False  # a second definition by the program is refused
            return holder
        return define(*args, **given)

    return wrapper


_flags = _absl.FLAGS
# the flags are the calling program's, not this module's: so absl's messages and --help say
_absl.disclaim_key_flags()

DEFINE_string = _with_old_names(_absl.DEFINE_string)
DEFINE_boolean = _with_old_names(_absl.DEFINE_boolean)
DEFINE_bool = DEFINE_boolean
DEFINE_float = _with_old_names(_absl.DEFINE_float)
DEFINE_integer = _with_old_names(_absl.DEFINE_integer)


class _ParsedOnRead:
    """absl's FLAGS; the first read of a flag parses ``sys.argv`` unless it was parsed before."""

    def __init__(self, wrapped: object) -> None:
        object.__setattr__(self, "_wrapped", wrapped)

    def __getattr__(self, name: str) -> Any:
        flags = object.__getattribute__(self, "_wrapped")
        if name in flags and not flags.is_parsed():
            flags(sys.argv)
        return getattr(flags, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._wrapped, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._wrapped, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._wrapped(*args, **kwargs)

    def __getitem__(self, name: str) -> Any:
        return self._wrapped[name]

    def __setitem__(self, name: str, flag: object) -> None:
        self._wrapped[name] = flag

    def __contains__(self, name: str) -> bool:
        return name in self._wrapped

    def __iter__(self) -> Any:
        return iter(self._wrapped)

    def __len__(self) -> int:
        return len(self._wrapped)

    def __dir__(self) -> list[str]:
        return dir(self._wrapped)


FLAGS = _ParsedOnRead(_absl.FLAGS)
