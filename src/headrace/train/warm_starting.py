"""``tf.train.warm_start``: variables of a new model start with values of an old checkpoint."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace import errors
from headrace.core.convert import convert_to_tensor
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import get_collection
from headrace.train.checkpoint_readers import checkpoint_filename, init_from_checkpoint
from headrace.train.saveables import op_list_to_dict
from headrace.train.vocabulary_loading import load_and_remap_matrix_initializer
from headrace.variables.partitioned_variable import PartitionInfo
from headrace.variables.variable import Variable

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike


__all__ = ["VocabInfo", "warm_start"]

_log = logging.getLogger("tensorflow")


class _VocabInfo(NamedTuple):
    new_vocab: Any
    new_vocab_size: int
    num_oov_buckets: int
    old_vocab: Any
    old_vocab_size: int = -1
    backup_initializer: Any = None
    axis: int = 0


class VocabInfo(_VocabInfo):
    """How rows (axis 0) or columns (axis 1) of a variable follow a vocabulary's words.

    ``new_vocab`` and ``old_vocab`` are files with a word a line. ``backup_initializer`` makes the
    values of new words and of the ``num_oov_buckets`` for unknown ones, zeros without it.
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> VocabInfo:
        """Only rows and columns may stand for words."""
        made = super().__new__(cls, *args, **kwargs)
        if made.axis not in (0, 1):
            raise ValueError(
                "The only supported values for the axis argument are 0 and 1.  Provided axis: "
                f"{made.axis}"
            )
        return made


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
      var_name_to_vocab_info: by name, the vocabularies that the rows or columns of a matrix
        follow, where they have changed.
      var_name_to_prev_var_name: names in the checkpoint, by name here, where they differ.
    """
    vocabularies = dict(var_name_to_vocab_info or {})
    _log.info("Warm-starting from: %s", ckpt_to_initialize_from)
    grouped = _grouped(vars_to_warm_start)
    earlier = dict(var_name_to_prev_var_name or {})
    if not earlier:
        earlier = _object_names(ckpt_to_initialize_from, grouped)
    for given, what in ((earlier, "prev_var_name"), (vocabularies, "vocab_info")):
        unused = set(given) - set(grouped)
        if unused:
            raise ValueError(
                f"You provided the following variables in var_name_to_{what} that were not "
                f"used: {unused}.  Perhaps you misspelled them?  Here is the list of viable "
                f"variable names: {grouped.keys()}"
            )
    for name, info in vocabularies.items():
        old_name = earlier.get(name) or name
        _start_by_vocabulary(grouped[name], info, ckpt_to_initialize_from, old_name)
    chosen = {
        earlier.get(name, name): found[0] if len(found) == 1 else found
        for name, found in grouped.items()
        if vars_to_warm_start and name not in vocabularies
    }
    init_from_checkpoint(ckpt_to_initialize_from, chosen)
    _log.info("Warm-started %d variables.", len(chosen) + len(vocabularies))


def _start_by_vocabulary(
    parts: Sequence[Any], info: VocabInfo, checkpoint: str, old_name: str
) -> None:
    """Initialize a matrix, whole or in parts, whose rows or columns are words."""
    if not (info.new_vocab and info.new_vocab_size and checkpoint and info.old_vocab):
        raise ValueError(
            "Invalid args: Must provide all of [current_vocab_path, current_vocab_size, prev_ckpt, "
            "prev_vocab_path}."
        )
    rows = sum(v.get_shape().as_list()[0] for v in parts)
    for variable in parts:
        shape = variable.get_shape().as_list()
        cut = variable._get_save_slice_info()
        place = None if cut is None else PartitionInfo(cut.full_shape, cut.var_offset)
        kinds: dict[str, Any] = {
            "new_row_vocab_size": info.new_vocab_size,
            "new_col_vocab_size": shape[1],
            "old_row_vocab_size": info.old_vocab_size,
            "old_row_vocab_file": info.old_vocab,
            "new_row_vocab_file": info.new_vocab,
            "num_row_oov_buckets": info.num_oov_buckets,
        }
        if info.axis == 1:
            kinds = {
                "new_row_vocab_size": rows,
                "new_col_vocab_size": info.new_vocab_size,
                "old_col_vocab_file": info.old_vocab,
                "new_col_vocab_file": info.new_vocab,
                "num_col_oov_buckets": info.num_oov_buckets,
            }
        initialize = load_and_remap_matrix_initializer(
            checkpoint_filename(checkpoint) or checkpoint,
            old_name,
            initializer=info.backup_initializer,
            **kinds,
        )
        value = convert_to_tensor(initialize(shape, partition_info=place))
        made = variable.assign(value)
        variable._initializer_op = getattr(made, "op", made)
        variable._initial_value = value


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
