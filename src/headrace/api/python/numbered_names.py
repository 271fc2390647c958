"""Classes of which TensorFlow's inner modules have a first and a second version."""

from headrace.core.device_spec import DeviceSpec as DeviceSpecV1
from headrace.variables.variable import Variable as VariableV1

__all__ = ["DeviceSpecV1", "VariableV1"]
