"""Every parameter of a public function acts.

It is read in the function's body, or has a reason here why it does not.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable
from typing import Any

import headrace as tf
from headrace.compat import v2

_LOCKING = "updates are never torn, locked or not"
_DEVICE = "everything runs on the CPU"
_GRADIENT = "gradients are placed where everything is"
_SHARD = "the values of an initializer do not depend on the part that is made"
_EAGER = "eager operations have no names"
_SWAP = "there is no second memory to move values to"
_DECODING = (
    "an argument of all helpers and decoders, which this one has no use for (as in TensorFlow)"
)
#: parameter -> reason, for every function that has it.
ANYWHERE = {
    "use_locking": _LOCKING,
    "colocate_gradients_with_ops": _GRADIENT,
    "partition_info": _SHARD,
    "swap_memory": _SWAP,
    "use_cudnn_on_gpu": _DEVICE,
    "validate_indices": "indices are always checked",
    "use_gpu": _DEVICE,
    "force_gpu": _DEVICE,
    "parallel_iterations": "a hint about how much runs at once",
    "unused_y": "TensorFlow ignores it, too",
}
#: (last part of the function's name, parameter) -> reason.
BY_FUNCTION = {
    ("__call__", "scope"): "a cell without variables needs no scope",
    ("call", "scope"): "TensorFlow ignores it, too",
    ("update", "grads"): "a fixed loss scale does not depend on gradients",
    ("select_ops", "restrict_ts_regex"): "one set of keywords serves both selections, as there",
    ("select_ts", "restrict_ops_regex"): "one set of keywords serves both selections, as there",
    ("training_loss", "features"): "TensorFlow's loss of a forest is its size, whatever the batch",
    ("training_loss", "labels"): "TensorFlow's loss of a forest is its size, whatever the batch",
    ("validation_loss", "features"): "TensorFlow's loss of a forest is its size",
    ("validation_loss", "labels"): "TensorFlow's loss of a forest is its size",
    ("__init__", "initializers"): "TensorFlow ignores it, too",
    ("__init__", "input_size"): "TensorFlow ignores it, too",
    ("initialize", "name"): _DECODING,
    ("finalize", "sequence_lengths"): _DECODING,
    ("sample", "time"): _DECODING,
    ("sample", "state"): _DECODING,
    ("sample", "name"): _DECODING,
    ("sample", "outputs"): _DECODING,
    ("next_inputs", "time"): _DECODING,
    ("next_inputs", "outputs"): _DECODING,
    ("next_inputs", "name"): _DECODING,
    ("next_inputs", "sample_ids"): _DECODING,
    ("after_create_session", "coord"): "an argument of all hooks, which this one has no use for",
    ("before_run", "run_context"): "an argument of all hooks, which this one has no use for",
    ("to_proto", "export_scope"): "TensorFlow ignores it, too",
    ("readahead_file_path", "readahead"): "TensorFlow ignores it, too",
    ("apply_gradients", "name"): "SyncReplicasOptimizer's: TensorFlow ignores it, too",
    ("from_proto", "import_scope"): "TensorFlow ignores it, too",
    ("create_op", "dtypes"): "types of outputs follow from the op",
    ("create_op", "input_types"): "they follow from the inputs",
    ("create_op", "op_def"): "definitions are found by name",
    ("create_op", "compute_shapes"): "TensorFlow ignores it, too",
    ("create_op", "compute_device"): "devices are recorded anyway",
    ("__init__", "colocate_with_first_write_call"): _DEVICE,
    ("argsort", "stable"): "every sort is stable, as TensorFlow's",
    ("forward_compatibility_horizon", "year"): "one version",
    ("forward_compatibility_horizon", "month"): "one version",
    ("forward_compatibility_horizon", "day"): "one version",
    ("get_memory_growth", "device"): _DEVICE,
    ("enable_eager_execution", "config"): "eager code has no session to configure",
    ("enable_eager_execution", "device_policy"): _DEVICE,
    ("enable_eager_execution", "execution_mode"): "always synchronous",
    ("copy_to_device", "target_device"): _DEVICE,
    ("copy_to_device", "source_device"): _DEVICE,
    ("prefetch_to_device", "device"): _DEVICE,
    ("function", "experimental_implements"): "a hint for converters",
    ("function", "experimental_attributes"): "a hint for converters",
    ("function", "experimental_follow_type_hints"): "arguments are converted by their values",
    ("get_local_variable", "trainable"): "TensorFlow sets it to False, too",
    ("hessians", "name"): "TensorFlow reads it nowhere",
    ("diag_part", "padding_value"): "one diagonal needs no padding; more than one is refused",
    (
        "matrix_diag_part",
        "padding_value",
    ): "one diagonal needs no padding; more than one is refused",
    ("moments", "shift"): "TensorFlow ignores it, too",
    ("no_regularizer", "_"): "it gives None for all",
    ("assert_equal_graph_def", "checkpoint_v2"): "names of temporary files are not compared",
    ("is_gpu_available", "cuda_only"): _DEVICE,
    ("is_gpu_available", "min_cuda_compute_capability"): _DEVICE,
    ("sparse_segment_mean", "sparse_gradient"): "the gradient is dense, which is the default",
    ("sparse_segment_sqrt_n", "sparse_gradient"): "the gradient is dense, which is the default",
    ("sparse_segment_sum", "sparse_gradient"): "the gradient is dense, which is the default",
    ("segment_mean", "sparse_gradient"): "the gradient is dense, which is the default",
    ("segment_sqrt_n", "sparse_gradient"): "the gradient is dense, which is the default",
    ("segment_sum", "sparse_gradient"): "the gradient is dense, which is the default",
    ("__init__", "caching_device"): "an eager variable's value is where it is read",
    ("__init__", "distribute_strategy"): _DEVICE,
    ("__init__", "expected_shape"): "TensorFlow ignores it, too",
    ("__init__", "import_scope"): "nothing is imported in eager code",
    ("__init__", "validate_shape"): "an eager variable has a value, so its shape is known",
    (
        "apply_gradients",
        "experimental_aggregate_gradients",
    ): "one replica: there is nothing to aggregate",
    (
        "from_config",
        "custom_objects",
    ): "a configuration has numbers and schedules, no classes to look up",
    ("load_v2", "options"): "options of devices and remote file systems; there are none",
    ("read", "options"): "options of devices and remote file systems; there are none",
    ("write", "options"): "options of devices and remote file systems; there are none",
    ("after_run", "run_context"): "a hook's method gets the run's context, needed or not",
    ("end", "session"): "a hook's method gets the session, needed or not",
    ("save", "options"): "options of devices and remote file systems; there are none",
    ("snapshot", "name"): _EAGER,
    **dict.fromkeys(
        [
            ("bucket_by_sequence_length", "name"),
            ("counter", "name"),
            ("enumerate", "name"),
            ("group_by_window", "name"),
            ("list_files", "name"),
            ("rejection_resample", "name"),
        ],
        "a name in the profiles of TensorFlow's own data runtime; it makes no operation",
    ),
    ("map", "synchronous"): "a hint about threads: the elements are the same",
    ("map", "use_unbounded_threadpool"): "a hint about threads: the elements are the same",
    ("after_create_session", "session"): "a hook's method gets the session, needed or not",
    ("with_options", "name"): _EAGER,
    (
        "non_max_suppression_padded",
        "canonicalized_coordinates",
    ): "a hint for accelerators: results are the same",
    ("non_max_suppression_padded", "sorted_input"): "a hint for accelerators: results are the same",
    ("load", "session"): "eager code has no session",
    ("import_graph_def", "op_dict"): "TensorFlow ignores it, too",
    ("normal", "name"): _EAGER,
    ("truncated_normal", "name"): _EAGER,
    ("uniform", "name"): _EAGER,
    ("uniform_full_int", "name"): _EAGER,
}


def functions() -> dict[Callable[..., Any], str]:
    """Public functions and methods of both versions, each with one of its names."""
    found: dict[Callable[..., Any], str] = {}
    _collect(tf, "tf", set(), found)
    _collect(v2, "v2", set(), found)
    return found


def _collect(space: Any, path: str, seen: set[int], found: dict[Callable[..., Any], str]) -> None:
    late = {*getattr(space, "LAZY_MODULES", ()), *getattr(space, "LAZY_NAMES", ())}
    for name in sorted(n for n in {*dir(space), *late} if not n.startswith("_")):
        value = getattr(space, name, None)
        if isinstance(value, types.ModuleType):
            if value.__name__.startswith("headrace.api") and id(value) not in seen:
                seen.add(id(value))
                _collect(value, f"{path}.{name}", seen, found)
        elif inspect.isfunction(value) and value.__module__.startswith("headrace"):
            found.setdefault(inspect.unwrap(value), f"{path}.{name}")
        elif inspect.isclass(value) and value.__module__.startswith("headrace"):
            for method, member in vars(value).items():
                body = getattr(member, "__func__", member)
                if inspect.isfunction(body) and (
                    not method.startswith("_") or method in ("__init__", "__call__")
                ):
                    found.setdefault(body, f"{path}.{name}.{method}")


def unread(function: Callable[..., Any]) -> list[str]:
    """Parameters that no statement reads; none for functions that only raise."""
    try:
        node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, SyntaxError, TypeError):
        return []
    if not isinstance(node, ast.FunctionDef):
        return []
    body = [
        s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
    ]
    if all(isinstance(s, (ast.Raise, ast.Pass)) for s in body[:1]):
        return []
    a = node.args
    names = [
        p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if p is not None
    ]
    every = [n for s in node.body for n in ast.walk(s)]
    read = {n.id for n in every if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return (
        [] if "locals" in read else [n for n in names if n not in read and n not in ("self", "cls")]
    )


def test_parameters_are_read_or_have_a_reason() -> None:
    silent = []
    for function, path in functions().items():
        last = path.rpartition(".")[2]
        for parameter in unread(function):
            if parameter not in ANYWHERE and (last, parameter) not in BY_FUNCTION:
                silent.append(f"{path}({parameter})  {function.__module__}")
    assert not silent, "\n".join(sorted(silent))


def test_the_check_sees_functions_and_finds_what_is_not_read() -> None:
    assert len(functions()) > 1500

    def ignores(a: int, b: int) -> int:
        del b
        return a

    assert unread(ignores) == ["b"]
