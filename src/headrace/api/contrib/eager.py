"""``tf.contrib.eager`` (``import tensorflow.contrib.eager as tfe``)."""

from headrace.api.contrib.eager_modes import (
    ASYNC,
    DEVICE_PLACEMENT_EXPLICIT,
    DEVICE_PLACEMENT_SILENT,
    DEVICE_PLACEMENT_WARN,
    SYNC,
    Saver,
    async_clear_error,
    async_wait,
    execution_mode,
    get_optimizer_variables,
    run,
    set_execution_mode,
)
from headrace.api.missing import module_getattr
from headrace.api.v1.context import enable_eager_execution, executing_eagerly
from headrace.autodiff.custom_gradient import custom_gradient
from headrace.eager.derivatives import (
    EagerVariableStore,
    gradients_function,
    implicit_gradients,
    implicit_value_and_gradients,
    value_and_gradients_function,
)
from headrace.eager.eager_variables import EagerVariable as Variable
from headrace.eager.py_function import py_function as py_func
from headrace.train.global_step import get_or_create_global_step

__all__ = [
    "ASYNC", "DEVICE_PLACEMENT_EXPLICIT", "DEVICE_PLACEMENT_SILENT", "DEVICE_PLACEMENT_WARN",
    "SYNC", "Saver", "async_clear_error", "async_wait", "execution_mode",
    "get_optimizer_variables", "run", "set_execution_mode",
    "EagerVariableStore", "Variable", "custom_gradient", "enable_eager_execution",
    "executing_eagerly", "get_or_create_global_step", "gradients_function", "implicit_gradients",
    "implicit_value_and_gradients", "in_eager_mode", "list_devices", "num_gpus", "py_func",
    "value_and_gradients_function",
]  # fmt: skip

in_eager_mode = executing_eagerly


def num_gpus() -> int:
    """The number of GPUs: always 0, since Headrace computes on the CPU."""
    return 0


def list_devices() -> list[str]:
    """The names of the devices that eager operations may run on: the one CPU device."""
    return ["/job:localhost/replica:0/task:0/device:CPU:0"]


__getattr__ = module_getattr(
    "contrib.eager",
    __name__,
    modules={"metrics": "headrace.train.metrics.eager_metrics"},
    names={
        "Checkpoint": "headrace.train.object_checkpoints:Checkpoint",
        "Checkpointable": "headrace.train.tracked_objects:Tracking",
        "GradientTape": "headrace.eager.tape:GradientTape",
        "TensorSpec": "headrace.core.specs:TensorSpec",
        "make_template": "headrace.variables.make_template:make_template",
        "Iterator": "headrace.data.api.iterators:OwnedIterator",
        "defun": "headrace.functions.function:defun",
        "function": "headrace.functions.function:function",
    },
)
