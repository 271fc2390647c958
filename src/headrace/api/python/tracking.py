"""``tensorflow.python.training.tracking``: the bases of objects that checkpoints save."""

from headrace.formats.saved_assets import SavedAsset as Asset
from headrace.formats.saved_assets import SavedAsset as TrackableAsset
from headrace.train.object_checkpoints import Checkpoint
from headrace.train.tracked_objects import Tracking as AutoTrackable
from headrace.train.tracked_objects import Tracking as Trackable

__all__ = ["Asset", "AutoTrackable", "Checkpoint", "Trackable", "TrackableAsset"]
