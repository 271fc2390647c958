"""``tf.data.experimental`` of TensorFlow 2."""

from headrace.api.v2.lookup import module_getattr
from headrace.data.dataset import DatasetV2
from headrace.data.experimental import *  # noqa: F403
from headrace.data.experimental import __all__ as __all__

Counter = DatasetV2.counter  # type: ignore[misc]
RandomDataset = DatasetV2.random  # type: ignore[misc,assignment]

__getattr__ = module_getattr("data.experimental", __name__)
