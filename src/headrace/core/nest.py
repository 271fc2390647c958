"""Nested structures: lists, tuples, named tuples, dicts, attrs classes and dataclasses around
leaves.

A structure is flattened depth first; a mapping gives its values in the order of its sorted keys,
whatever order it was filled in, so that two equal dicts always flatten alike. Packing gives back
the types of the structure it follows. Arrays, strings, tensors and everything else that is not
listed above are leaves.

    >>> flatten({"b": 2, "a": [1, (3, 4)]})
    [1, 3, 4, 2]
    >>> pack_sequence_as({"b": 0, "a": [0, (0, 0)]}, [1, 3, 4, 2])
    {'b': 2, 'a': [1, (3, 4)]}
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import (
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    MutableMapping,
    Sequence,
    ValuesView,
)
from typing import Any

__all__ = [
    "assert_same_structure",
    "assert_shallow_structure",
    "flatten",
    "flatten_dict_items",
    "flatten_up_to",
    "flatten_with_joined_string_paths",
    "flatten_with_tuple_paths",
    "is_composite",
    "is_namedtuple",
    "is_nested",
    "is_sequence",
    "is_sequence_or_composite",
    "map_structure",
    "map_structure_up_to",
    "map_structure_with_paths",
    "map_structure_with_tuple_paths",
    "map_structure_with_tuple_paths_up_to",
    "pack_sequence_as",
    "yield_flattened",
    "yield_flattened_paths",
    "yield_flattened_up_to",
]

_VIEWS = (KeysView, ValuesView, ItemsView)
_LEAF_SEQUENCES = (str, bytes, bytearray, memoryview, range)


def is_nested(structure: object) -> bool:
    """True for lists, tuples, dicts and named tuples; False for leaves (also strings)."""
    kind = type(structure)
    known = _nested_types.get(kind)
    if known is None:
        if len(_nested_types) > 1000:
            _nested_types.clear()
        known = _nested_types[kind] = _is_nested_type(kind)
    return known


_nested_types: dict[type, bool] = {}


def _is_nested_type(kind: type) -> bool:
    if issubclass(kind, (list, tuple, Mapping, *_VIEWS)):
        return True
    if issubclass(kind, Sequence):
        return not issubclass(kind, _LEAF_SEQUENCES)
    return _is_record(kind)


is_sequence = is_nested


def is_namedtuple(instance: object, strict: bool = False) -> bool:
    """Whether it is a named tuple (``strict``: of a class that derives from ``tuple`` directly)."""
    if not isinstance(instance, tuple) or (strict and type(instance).__base__ is not tuple):
        return False
    fields = getattr(instance, "_fields", None)
    return isinstance(fields, Sequence) and all(isinstance(f, str) for f in fields)


def is_sequence_or_composite(structure: object) -> bool:
    """Whether it is a structure or a composite tensor (SparseTensor, IndexedSlices)."""
    return is_nested(structure) or is_composite(structure)


def is_composite(value: object) -> bool:
    """Whether it is one thing made of tensors: a SparseTensor, IndexedSlices."""
    return hasattr(type(value), "_to_components")


def _is_record(kind: type) -> bool:
    """attrs classes and users' dataclasses; Headrace's own dataclasses are values, not
    structures.
    """
    if hasattr(kind, "__attrs_attrs__"):
        return True
    return hasattr(kind, "__dataclass_fields__") and not kind.__module__.startswith("headrace.")


def _record_fields(structure: Any) -> list[str]:
    if hasattr(type(structure), "__attrs_attrs__"):
        return [a.name for a in type(structure).__attrs_attrs__]
    return [f.name for f in dataclasses.fields(structure) if f.init]


def _sorted_keys(mapping: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError:
        raise TypeError("nest only supports dicts with sortable keys.") from None


def _items(structure: Any, composites: bool = False) -> list[tuple[Any, Any]]:
    """(key, child) pairs of one level, in flattening order."""
    if isinstance(structure, Mapping):
        return [(k, structure[k]) for k in _sorted_keys(structure)]
    if composites and is_composite(structure):
        return list(enumerate(structure._to_components()))
    if is_namedtuple(structure):
        return list(zip(structure._fields, structure))
    if isinstance(structure, (Sequence, KeysView, ValuesView, ItemsView)):
        return list(enumerate(structure))
    return [(f, getattr(structure, f)) for f in _record_fields(structure)]


def _like(instance: Any, values: Sequence[Any]) -> Any:
    """A structure of the type of ``instance`` whose children, in flattening order, are
    ``values``.
    """
    kind = type(instance)
    if kind is list:
        return list(values)
    if kind is tuple:
        return tuple(values)
    if isinstance(instance, Mapping):
        return _mapping_like(instance, values)
    if isinstance(instance, _VIEWS):
        return list(values)
    if is_namedtuple(instance):
        return kind(*values)
    if is_composite(instance):
        return instance._from_components(values)
    if _is_record(kind):
        return kind(**dict(zip((f.lstrip("_") for f in _record_fields(instance)), values)))
    return kind(values)


def _mapping_like(instance: Mapping[Any, Any], values: Sequence[Any]) -> Any:
    by_key = dict(zip(_sorted_keys(instance), values))
    ordered = [(k, by_key[k]) for k in instance]
    if isinstance(instance, defaultdict):
        return type(instance)(instance.default_factory, ordered)
    try:
        return type(instance)(ordered)  # type: ignore[call-arg]
    except TypeError:
        if not isinstance(instance, MutableMapping):
            raise
        made = type(instance)()
        made.update(ordered)
        return made


def _is_branch(structure: object, composites: bool) -> bool:
    return is_nested(structure) or (composites and is_composite(structure))


# flattening and packing -------------------------------------------------------------------------


def flatten(structure: object, expand_composites: bool = False) -> list[Any]:
    """The leaves, depth first. A leaf gives a list of itself."""
    out: list[Any] = []
    _flatten_into(structure, expand_composites, out)
    return out


def _flatten_into(structure: Any, composites: bool, out: list[Any]) -> None:
    kind = type(structure)
    if kind is list or kind is tuple:
        for child in structure:
            _flatten_into(child, composites, out)
    elif _is_branch(structure, composites):
        for _, child in _items(structure, composites):
            _flatten_into(child, composites, out)
    else:
        out.append(structure)


def yield_flattened(structure: object, expand_composites: bool = False) -> Iterator[Any]:
    """The leaves of a structure, one at a time, in the order of ``flatten``."""
    for _, leaf in _paths(structure, expand_composites, ()):
        yield leaf


def _paths(
    structure: object, composites: bool, prefix: tuple[Any, ...]
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if not _is_branch(structure, composites):
        yield prefix, structure
        return
    for key, child in _items(structure, composites):
        yield from _paths(child, composites, (*prefix, key))


def yield_flattened_paths(
    nest: object, expand_composites: bool = False
) -> Iterator[tuple[Any, ...]]:
    """The paths (tuples of keys and indices) to the leaves."""
    for path, _ in _paths(nest, expand_composites, ()):
        yield path


def flatten_with_tuple_paths(
    structure: object, expand_composites: bool = False
) -> list[tuple[tuple[Any, ...], Any]]:
    """The leaves of a structure with their paths: ``(("a", 0), leaf)`` pairs."""
    return list(_paths(structure, expand_composites, ()))


def flatten_with_joined_string_paths(
    structure: Mapping[str, Any], separator: str = "/", expand_composites: bool = False
) -> list[tuple[str, Any]]:
    """The leaves of a structure with their paths: ``("a/0", leaf)`` pairs.

    Paths are keys of dicts, indices of sequences and names of fields, joined with ``separator``;
    ``expand_composites`` looks into sparse and ragged tensors.
    """
    return [
        (separator.join(map(str, path)), leaf)
        for path, leaf in _paths(structure, expand_composites, ())
    ]


def pack_sequence_as(
    structure: object, flat_sequence: object, expand_composites: bool = False
) -> Any:
    """The inverse of :func:`flatten`: ``flat_sequence`` in the shape of ``structure``.

    There must be as many values as leaves; dicts are filled in the order of their sorted keys.

        tf.nest.pack_sequence_as({"b": 0, "a": [0, 0]}, [1, 2, 3])["a"]  # [1, 2]
    """
    if not isinstance(flat_sequence, Iterable) or isinstance(flat_sequence, (str, bytes)):
        raise TypeError(f"flat_sequence must be a sequence, got {flat_sequence!r}")
    flat = list(flat_sequence)
    if not _is_branch(structure, expand_composites):
        if len(flat) != 1:
            raise ValueError(
                f"Structure is a scalar but len(flat_sequence) == {len(flat)}, which is not 1"
            )
        return flat[0]
    wanted = len(flatten(structure, expand_composites))
    if wanted != len(flat):
        raise ValueError(
            f"Could not pack sequence. Structure had {wanted} elements, but flat_sequence "
            f"had {len(flat)} elements.  "
            f"Structure: {structure}, flat_sequence: {flat}."
        )
    return _pack(structure, iter(flat), expand_composites)


def _pack(structure: object, leaves: Iterator[Any], composites: bool) -> Any:
    if not _is_branch(structure, composites):
        return next(leaves)
    return _like(
        structure, [_pack(child, leaves, composites) for _, child in _items(structure, composites)]
    )


def map_structure(func: Callable[..., Any], *structure: object, **kwargs: object) -> Any:
    """``func`` of the corresponding leaves, packed like the first structure.

    All structures must be nested alike; ``check_types=False`` lets a list stand for a tuple.
    ``expand_composites`` maps the parts of sparse and ragged tensors.

        tf.nest.map_structure(lambda a, b: a + b, {"x": 1}, {"x": 2})["x"]  # 3
    """
    check_types, composites = _map_options(kwargs)
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types, composites)
    flat = (flatten(s, composites) for s in structure)
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in zip(*flat)], composites)


def _map_options(kwargs: dict[str, Any]) -> tuple[bool, bool]:
    check_types = kwargs.pop("check_types", True)
    composites = kwargs.pop("expand_composites", False)
    if kwargs:
        raise ValueError(
            "Only valid keyword arguments are `check_types` and `expand_composites`, "
            f"not: `{', '.join(kwargs)}`"
        )
    return check_types, composites


def map_structure_with_tuple_paths(
    func: Callable[..., Any], *structure: object, **kwargs: object
) -> Any:
    """As :func:`map_structure`, with the path of the leaves as first argument.

    A path is such as ``("a", 0, "b")``. The keyword arguments are those of ``map_structure``.
    """
    check_types, composites = _map_options(kwargs)
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types, composites)
    paths = yield_flattened_paths(structure[0], composites)
    flat = (flatten(s, composites) for s in structure)
    return pack_sequence_as(structure[0], [func(*args) for args in zip(paths, *flat)], composites)


def map_structure_with_paths(func: Callable[..., Any], *structure: object, **kwargs: object) -> Any:
    """As :func:`map_structure`, with the path of the leaves, as text, as first argument.

    A path is such as "a/0/b". The keyword arguments are those of ``map_structure``.
    """
    return map_structure_with_tuple_paths(
        lambda path, *leaves: func("/".join(map(str, path)), *leaves), *structure, **kwargs
    )


# comparing --------------------------------------------------------------------------------------


def assert_same_structure(
    nest1: object, nest2: object, check_types: bool = True, expand_composites: bool = False
) -> None:
    """ValueError if the nesting differs.

    TypeError if types of sequences differ and ``check_types`` is set.
    """
    try:
        _assert_same(nest1, nest2, check_types, expand_composites)
    except (ValueError, TypeError) as e:
        raise type(e)(
            "The two structures don't have the same nested structure.\n\nFirst "
            f"structure: {_shown(nest1)}\n\n"
            f"Second structure: {_shown(nest2)}\n\nMore specifically: {e}\n"
            f"Entire first structure:\n{_dotted(nest1)}\nEntire second structure:\n{_dotted(nest2)}"
        ) from None


def _shown(structure: object) -> str:
    return f"type={type(structure).__name__} str={structure}"


def _dotted(structure: object) -> Any:
    return map_structure(lambda _: ".", structure)


def _assert_same(a: object, b: object, check_types: bool, composites: bool) -> None:
    nested = _is_branch(a, composites)
    if nested != _is_branch(b, composites):
        is_, is_not = (a, b) if nested else (b, a)
        raise ValueError(
            f'Substructure "{_shown(is_)}" is a sequence, while substructure '
            f'"{_shown(is_not)}" is not'
        )
    if not nested:
        return
    if check_types:
        _assert_same_type(a, b)
    children_a, children_b = _items(a, composites), _items(b, composites)
    if isinstance(a, Mapping) and isinstance(b, Mapping) and set(a) != set(b):
        raise ValueError(
            "The two dictionaries don't have the same set of keys. First structure has "
            f"keys {list(a)}, "
            f"while second structure has keys {list(b)}"
        )
    if len(children_a) != len(children_b):
        raise ValueError(
            "The two structures don't have the same number of elements. First structure: "
            f"{_shown(a)}; "
            f"second structure: {_shown(b)}"
        )
    for (_, child_a), (_, child_b) in zip(children_a, children_b):
        _assert_same(child_a, child_b, check_types, composites)


def _assert_same_type(a: object, b: object) -> None:
    if type(a) is type(b) or (isinstance(a, Mapping) and isinstance(b, Mapping)):
        return
    if is_namedtuple(a) and is_namedtuple(b) and _same_namedtuples(a, b):
        return
    if isinstance(a, list) and isinstance(b, list):
        return  # wrappers of lists are lists
    kind = "namedtuples" if is_namedtuple(a) and is_namedtuple(b) else "structures"
    raise TypeError(
        f"The two {kind} don't have the same sequence type. First structure has type "
        f"{type(a).__name__}, "
        f"while second structure has type {type(b).__name__}."
    )


def _same_namedtuples(a: Any, b: Any) -> bool:
    """Classes made twice by the same ``namedtuple`` call are alike."""
    return type(a).__name__ == type(b).__name__ and a._fields == b._fields


# shallow structures -----------------------------------------------------------------------------


def assert_shallow_structure(
    shallow_tree: object, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """ValueError/TypeError unless ``input_tree`` has the nesting of ``shallow_tree``, at least.

    Below a leaf of ``shallow_tree`` anything may stand. ``check_types`` wants the same kinds of
    sequences; ``expand_composites`` looks into sparse and ragged tensors.
    """
    if not _is_branch(shallow_tree, expand_composites):
        return
    if not _is_branch(input_tree, expand_composites):
        raise TypeError(
            "If shallow structure is a sequence, input must also be a sequence. Input "
            f"has type: {type(input_tree)}."
        )
    if check_types:
        _assert_shallow_type(shallow_tree, input_tree)
    shallow, given = _items(shallow_tree, expand_composites), _items(input_tree, expand_composites)
    if len(shallow) != len(given):
        raise ValueError(
            "The two structures don't have the same sequence length. "
            f"Input structure has length {len(given)}, while shallow structure has length "
            f"{len(shallow)}."
        )
    if isinstance(shallow_tree, Mapping):
        absent = set(shallow_tree) - set(input_tree)
        if absent:
            raise ValueError(
                "The two structures don't have the same keys. Input structure has keys "
                f"{list(input_tree)}, while shallow structure has keys {list(shallow_tree)}."
            )
    for (_, shallow_child), (_, child) in zip(shallow, given):
        assert_shallow_structure(shallow_child, child, check_types, expand_composites)


def _assert_shallow_type(shallow: object, given: object) -> None:
    if isinstance(given, type(shallow)) or (
        isinstance(shallow, Mapping) and isinstance(given, Mapping)
    ):
        return
    if is_namedtuple(shallow) and is_namedtuple(given) and _same_namedtuples(shallow, given):
        return
    raise TypeError(
        "The two structures don't have the same sequence type. Input structure has type "
        f"{type(given)}, while shallow structure has type {type(shallow)}."
    )


def _yield_up_to(
    shallow: object, tree: object, composites: bool, prefix: tuple[Any, ...]
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if not _is_branch(shallow, composites):
        yield prefix, tree
        return
    for (key, shallow_child), (_, child) in zip(
        _items(shallow, composites), _items(tree, composites)
    ):
        yield from _yield_up_to(shallow_child, child, composites, (*prefix, key))


def yield_flattened_up_to(
    shallow_tree: object,
    input_tree: object,
    check_types: bool = True,
    expand_composites: bool = False,
) -> Iterator[Any]:
    """The parts of ``input_tree`` that stand where ``shallow_tree`` has its leaves, in order.

    The iterator behind ``flatten_up_to``, with the same arguments.
    """
    assert_shallow_structure(shallow_tree, input_tree, check_types, expand_composites)
    for _, subtree in _yield_up_to(shallow_tree, input_tree, expand_composites, ()):
        yield subtree


def flatten_up_to(
    shallow_tree: object,
    input_tree: object,
    check_types: bool = True,
    expand_composites: bool = False,
) -> list[Any]:
    """The parts of ``input_tree`` that stand where ``shallow_tree`` has its leaves.

    In order. The input may be nested deeper: such a part comes as it is. ``check_types`` and
    ``expand_composites`` are as in ``assert_shallow_structure``.

        tf.contrib.framework.nest.flatten_up_to([0, 0], [[1, 2], 3])  # [[1, 2], 3]
    """
    return list(yield_flattened_up_to(shallow_tree, input_tree, check_types, expand_composites))


def map_structure_up_to(
    shallow_tree: object, func: Callable[..., Any], *inputs: object, **kwargs: object
) -> Any:
    """``func`` of the corresponding parts of ``inputs``, packed like ``shallow_tree``.

    Where ``shallow_tree`` has a leaf, ``func`` gets what each of ``inputs`` has there, be it nested
    or not. ``check_types`` and ``expand_composites`` are as in ``map_structure``.
    """
    return map_structure_with_tuple_paths_up_to(
        shallow_tree, lambda _, *parts: func(*parts), *inputs, **kwargs
    )


def map_structure_with_tuple_paths_up_to(
    shallow_tree: object, func: Callable[..., Any], *inputs: object, **kwargs: object
) -> Any:
    """``func(path, *parts)`` for each leaf of ``shallow_tree``, in its structure.

    ``path`` is a tuple of keys and positions; the parts are what the inputs hold at that place.
    """
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    check_types, composites = _map_options(kwargs)
    for tree in inputs:
        assert_shallow_structure(shallow_tree, tree, check_types, composites)
    paths = [path for path, _ in _yield_up_to(shallow_tree, inputs[0], composites, ())]
    parts = [
        [part for _, part in _yield_up_to(shallow_tree, tree, composites, ())] for tree in inputs
    ]
    return pack_sequence_as(shallow_tree, [func(*args) for args in zip(paths, *parts)], composites)


def flatten_dict_items(dictionary: Mapping[Any, Any]) -> dict[Any, Any]:
    """A dict whose keys may be structures, with structures of values beside them.

    One flat dict of both.
    """
    if not isinstance(dictionary, Mapping):
        raise TypeError("input must be a dictionary")
    flat: dict[Any, Any] = {}
    for keys, values in dictionary.items():
        if not is_nested(keys):
            pairs: list[tuple[Any, Any]] = [(keys, values)]
        else:
            flat_keys, flat_values = flatten(keys), flatten(values)
            if len(flat_keys) != len(flat_values):
                raise ValueError(
                    f"Could not flatten dictionary. Key had {len(flat_keys)} elements, "
                    "but value had "
                    f"{len(flat_values)} elements. Key: {flat_keys}, value: {flat_values}."
                )
            pairs = list(zip(flat_keys, flat_values))
        for key, value in pairs:
            if key in flat:
                raise ValueError(f"Could not flatten dictionary: key {key} is not unique.")
            flat[key] = value
    return flat
