"""``tensorflow.python.tools.inspect_checkpoint``: what a checkpoint holds, printed."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from headrace.train.checkpoint_readers import CheckpointReader

__all__ = ["parse_numpy_printoption", "print_tensors_in_checkpoint_file"]


def print_tensors_in_checkpoint_file(
    file_name: str,
    tensor_name: str | None,
    all_tensors: bool,
    all_tensor_names: bool = False,
    count_exclude_pattern: str = "",
) -> None:
    """Print names, types and shapes of a checkpoint's tensors, or values.

    Args:
      file_name: the checkpoint's prefix.
      tensor_name: the tensor to print; all that follow are off then.
      all_tensors: whether to print the values of all tensors.
      all_tensor_names: whether to print the names of all tensors.
      count_exclude_pattern: tensors whose names match are not counted as parameters.
    """
    reader = CheckpointReader(file_name)
    shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    if all_tensors or all_tensor_names:
        for name in sorted(shapes):
            print(f"tensor: {name} ({types[name].name}) {shapes[name]}")
            if all_tensors:
                print(reader.get_tensor(name))
    elif not tensor_name:
        print(reader.debug_string().decode("utf-8", errors="ignore"))
    else:
        print(f"tensor: {tensor_name} ({types[tensor_name].name}) {shapes[tensor_name]}")
        print(reader.get_tensor(tensor_name))
    counted = [
        shape
        for name, shape in shapes.items()
        if not (count_exclude_pattern and re.match(count_exclude_pattern, name))
    ]
    print(f"# Total number of params: {sum(int(np.prod(s)) for s in counted)}")


def parse_numpy_printoption(kv_str: str) -> None:
    """Set a number among NumPy's print options from ``key=value``."""
    key, _, value = kv_str.partition("=")
    options: dict[str, Any] = dict(np.get_printoptions())
    if not value or key not in options:
        raise ValueError(f"Setting '{kv_str}' from the command line: no such print option")
    options[key] = type(options[key])(value)
    np.set_printoptions(**options)
