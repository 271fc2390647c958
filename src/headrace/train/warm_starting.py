"""``tf.train.warm_start``: variables of a new model start with values of an old checkpoint."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace import errors
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import get_collection
from headrace.train.checkpoint_readers import checkpoint_filename, init_from_checkpoint
from headrace.train.saveables import op_list_to_dict
from headrace.variables.variable import Variable

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike


__all__ = ["VocabInfo", "warm_start"]

_log = logging.getLogger("tensorflow")


class VocabInfo(NamedTuple):
    """How rows (axis 0) or columns (axis 1) of a variable follow a vocabulary's words."""

    new_vocab: Any
    new_vocab_size: int
    num_oov_buckets: int
    old_vocab: Any
    old_vocab_size: int = -1
    backup_initializer: Any = None
    axis: int = 0


def warm_start(
    ckpt_to_initialize_from: str,
    vars_to_warm_start: TensorLike = ".*",
    var_name_to_vocab_info: Mapping[str, VocabInfo] | None = None,
    var_name_to_prev_var_name: Mapping[str, str] | None = None,
) -> None:
    """Let variables be initialized from a checkpoint.

    Args:
      ckpt_to_initialize_from: a checkpoint's prefix, or a folder with checkpoints.
      vars_to_warm_start: a regular expression for trainable variables, a list of such for all
        global variables, a list of variables, or None (those with vocabularies alone).
      var_name_to_vocab_info: refused unless empty: vocabularies cannot be changed here yet.
      var_name_to_prev_var_name: names in the checkpoint, by name here, where they differ.
    """
    if var_name_to_vocab_info:
        raise NotImplementedError(
            "tf.train.warm_start(var_name_to_vocab_info=...): Headrace cannot rearrange variables "
            "for a new vocabulary yet. Leave these variables out and load them with "
            "tf.train.load_variable."
        )
    _log.info("Warm-starting from: %s", ckpt_to_initialize_from)
    grouped = _grouped(vars_to_warm_start)
    earlier = dict(var_name_to_prev_var_name or {})
    if not earlier:
        earlier = _object_names(ckpt_to_initialize_from, grouped)
    unused = set(earlier) - set(grouped)
    if unused:
        raise ValueError(
            f"You provided the following variables in var_name_to_prev_var_name that were not "
            f"used: {unused}.  Perhaps you misspelled them?  Here is the list of viable variable "
            f"names: {grouped.keys()}"
        )
    if vars_to_warm_start:
        chosen = {
            earlier.get(name, name): found[0] if len(found) == 1 else found
            for name, found in grouped.items()
        }
        init_from_checkpoint(ckpt_to_initialize_from, chosen)
        _log.info("Warm-started %d variables.", len(chosen))


def _grouped(wanted: TensorLike) -> dict[str, list[Any]]:
    """Variables by the name under which they are saved; parts of one together."""
    if isinstance(wanted, str) or wanted is None:
        _log.info("Warm-starting variables only in TRAINABLE_VARIABLES.")
        found = get_collection(GraphKeys.TRAINABLE_VARIABLES, scope=wanted)
    elif not isinstance(wanted, list):
        raise ValueError(
            f"`vars_to_warm_start must be a `list` or `str`.  Given type is {type(wanted)}"
        )
    elif all(isinstance(v, str) for v in wanted):
        found = [v for w in wanted for v in get_collection(GraphKeys.GLOBAL_VARIABLES, scope=w)]
    elif all(isinstance(v, Variable) for v in wanted):
        found = wanted
    else:
        raise ValueError(
            "If `vars_to_warm_start` is a list, it must be all `Variable` or all `str`.  Given "
            f"types are {[type(v) for v in wanted]}"
        )
    grouped: dict[str, list[Any]] = {}
    for variable in found:
        (name,) = op_list_to_dict([variable])
        grouped.setdefault(name, []).append(variable)
    return grouped


def _object_names(path: str, names: Mapping[str, Any]) -> dict[str, str]:
    """Keys in a checkpoint of objects, by variable; {} for a checkpoint by names."""
    from headrace.train.object_checkpoints import object_graph_key_mapping

    try:
        keys = object_graph_key_mapping(checkpoint_filename(path))
    except errors.NotFoundError:
        return {}
    missing = set(names) - set(keys)
    if missing:
        raise ValueError(
            "Attempting to warm-start from an object-based checkpoint, but found that the "
            "checkpoint did not contain values for all variables. The following variables were "
            f"missing: {missing}"
        )
    return {name: keys[name] for name in names}
