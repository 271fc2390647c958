"""reduce and scan: functions of a state and an element.

The state's shapes are those of the initial state at first; where the function returns others, they
become unknown and it is traced again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import nest
from headrace.core.build import apply_list
from headrace.core.opdef import lookup
from headrace.data.api import structure
from headrace.data.functions.user_functions import DataFunction, traced

if TYPE_CHECKING:
    from headrace.core.specs import TypeSpec
    from headrace.data.api.dataset import DatasetV2

__all__ = ["reduce", "scanned"]


def _settled(
    fn: Callable[..., Any],
    state_spec: object,
    element_spec: TypeSpec | Sequence[TypeSpec | Sequence[TypeSpec]],
    what: str,
    split: Callable[[Any], Any],
) -> tuple[DataFunction, Any]:
    """The traced function, with the structure of a state that it keeps.

    ``split`` gives the state of its result.
    """
    while True:
        f = traced(fn, (state_spec, element_spec), what, several=True)
        returned = split(f.output_spec)
        try:
            nest.assert_same_structure(state_spec, returned, check_types=False)
        except (TypeError, ValueError):
            raise TypeError(
                "The element structure for the new state must match the initial state. "
                f"Expected {state_spec}; got "
                f"{returned}."
            ) from None
        wider = nest.map_structure(_wider, state_spec, returned, check_types=False)
        if wider == state_spec:
            return f, state_spec
        state_spec = wider


def _wider(old: TypeSpec, new: TypeSpec) -> Any:
    if getattr(old, "dtype", None) != getattr(new, "dtype", None):
        raise TypeError(
            "The element types for the new state must match the initial state. Expected "
            f"{old}; got {new}."
        )
    found = old.most_specific_common_supertype([new])
    if found is None:
        raise TypeError(
            "The element types for the new state must match the initial state. Expected "
            f"{old}; got {new}."
        )
    return found


def reduce(
    dataset: DatasetV2, initial_state: Any, reduce_func: Callable[..., Any], name: str | None
) -> Any:
    """The last state."""
    state = structure.normalize(initial_state)
    spec = structure.spec_of(state)
    f, kept = _settled(reduce_func, spec, dataset.element_spec, "Dataset.reduce()", lambda s: s)
    result = apply_list(
        lookup("ReduceDataset"),
        dataset._prepared()._variant_tensor,
        structure.to_components(kept, state),
        f.captured,
        f=f,
        output_types=structure.component_types(kept),
        output_shapes=structure.component_shapes(kept),
        name=name,
    )
    return structure.from_components(kept, result)


def scanned(
    dataset: Any, initial_state: Any, scan_func: Callable[..., Any], name: str | None
) -> Any:
    """The outputs for each element."""
    state = structure.normalize(initial_state)
    spec = structure.spec_of(state)

    def split(result: object) -> Any:
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(
                "The scan function must return a pair comprising the new state and the "
                "output value."
            )
        return result[0]

    f, kept = _settled(scan_func, spec, dataset.element_spec, "Dataset.scan()", split)
    return dataset._unary(
        "ScanDataset",
        structure.to_components(kept, state),
        f.captured,
        f=f,
        spec=f.output_spec[1],
        preserve_cardinality=True,
        name=name,
    )
