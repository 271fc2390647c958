"""``tf.train``: optimizers, schedules, averages."""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

import typing as _typing

from headrace.api.missing import late, module_getattr
from headrace.api.platform.messages import TRAIN_MESSAGES
from headrace.train.global_step import (
    assert_global_step, create_global_step, get_global_step, get_or_create_global_step,
    global_step,
)
from headrace.train.moving_averages import ExponentialMovingAverage
from headrace.train.optimizers.optimizer import Optimizer
from headrace.train.optimizers.standard import (
    AdadeltaOptimizer, AdagradDAOptimizer, AdagradOptimizer, AdamOptimizer, FtrlOptimizer,
    GradientDescentOptimizer, MomentumOptimizer, ProximalAdagradOptimizer,
    ProximalGradientDescentOptimizer, RMSPropOptimizer,
)
from headrace.train.schedules import (
    cosine_decay, cosine_decay_restarts, exponential_decay, inverse_time_decay,
    linear_cosine_decay, natural_exp_decay, noisy_linear_cosine_decay, piecewise_constant,
    piecewise_constant_decay, polynomial_decay,
)

__all__ = [
    "AdadeltaOptimizer", "AdagradDAOptimizer", "AdagradOptimizer", "AdamOptimizer",
    "assert_global_step", "cosine_decay", "cosine_decay_restarts", "create_global_step",
    "exponential_decay", "ExponentialMovingAverage", "FtrlOptimizer", "get_global_step",
    "get_or_create_global_step", "global_step", "GradientDescentOptimizer",
    "inverse_time_decay", "linear_cosine_decay", "MomentumOptimizer", "natural_exp_decay",
    "noisy_linear_cosine_decay", "Optimizer", "piecewise_constant", "piecewise_constant_decay",
    "polynomial_decay", "ProximalAdagradOptimizer", "ProximalGradientDescentOptimizer",
    "RMSPropOptimizer",
]

LAZY_MODULES = {
    "experimental": "headrace.api.v1.train_experimental",
    "queue_runner": "headrace.api.v1.train_queue_runner",
}
LAZY_NAMES = late({
    "headrace.train.checkpoint_files": (
        "checkpoint_exists generate_checkpoint_state_proto get_checkpoint_mtimes "
        "get_checkpoint_state "
        "latest_checkpoint remove_checkpoint update_checkpoint_state"
    ),
    "headrace.train.checkpoint_readers": (
        "NewCheckpointReader=CheckpointReader checkpoints_iterator init_from_checkpoint "
        "list_variables load_checkpoint load_variable"
    ),
    "headrace.train.object_checkpoints": "Checkpoint CheckpointManager",
    "headrace.train.warm_starting": "VocabInfo warm_start",
    "headrace.train.saver": "Saver export_meta_graph import_meta_graph",
    "headrace.train.summaries.event_files": "summary_iterator SummaryWriter=FileWriter",
    "headrace.train.input_queues.batches": (
        "batch batch_join maybe_batch maybe_batch_join maybe_shuffle_batch "
        "maybe_shuffle_batch_join "
        "shuffle_batch shuffle_batch_join"
    ),
    "headrace.train.input_queues.coordinator": "Coordinator LooperThread",
    "headrace.train.input_queues.producers": (
        "input_producer limit_epochs range_input_producer slice_input_producer "
        "string_input_producer"
    ),
    "headrace.api.device_setter": "replica_device_setter",
    "headrace.train.cluster": "ClusterSpec Server",
    "headrace.train.monitored.hooks": (
        "FeedFnHook FinalOpsHook GlobalStepWaiterHook LoggingTensorHook NanLossDuringTrainingError "
        "NanTensorHook SecondOrStepTimer StopAtStepHook"
    ),
    "headrace.train.monitored.monitored_session": (
        "ChiefSessionCreator MonitoredSession MonitoredTrainingSession SessionCreator "
        "SingularMonitoredSession WorkerSessionCreator"
    ),
    "headrace.train.monitored.saving_hooks": (
        "CheckpointSaverHook CheckpointSaverListener StepCounterHook SummarySaverHook"
    ),
    "headrace.profiler.profiler_hook": "ProfilerHook",
    "headrace.train.monitored.scaffold": "Scaffold",
    "headrace.train.monitored.session_manager": "SessionManager",
    "headrace.train.optimizers.sync_replicas": "SyncReplicasOptimizer",
    "headrace.train.monitored.session_run_hook": (
        "SessionRunArgs SessionRunContext SessionRunHook SessionRunValues"
    ),
    "headrace.train.monitored.supervisor": "Supervisor",
    "headrace.train.input_queues.queue_runner": "QueueRunner add_queue_runner start_queue_runners",
    "headrace.wire.graph_files": "write_graph",
    "headrace.ops.io.file_ops": "match_filenames_once",
})

# static names: begin (tools/static_names.py)
if _typing.TYPE_CHECKING:
    from typing import Any as _Any

    from headrace.api.device_setter import replica_device_setter as replica_device_setter
    from headrace.api.v1 import train_experimental as experimental
    from headrace.api.v1 import train_queue_runner as queue_runner
    from headrace.ops.io.file_ops import match_filenames_once as match_filenames_once
    from headrace.profiler.profiler_hook import ProfilerHook as ProfilerHook
    from headrace.train.checkpoint_files import checkpoint_exists as checkpoint_exists
    from headrace.train.checkpoint_files import (
        generate_checkpoint_state_proto as generate_checkpoint_state_proto,
    )
    from headrace.train.checkpoint_files import get_checkpoint_mtimes as get_checkpoint_mtimes
    from headrace.train.checkpoint_files import get_checkpoint_state as get_checkpoint_state
    from headrace.train.checkpoint_files import latest_checkpoint as latest_checkpoint
    from headrace.train.checkpoint_files import remove_checkpoint as remove_checkpoint
    from headrace.train.checkpoint_files import update_checkpoint_state as update_checkpoint_state
    from headrace.train.checkpoint_readers import CheckpointReader as NewCheckpointReader
    from headrace.train.checkpoint_readers import checkpoints_iterator as checkpoints_iterator
    from headrace.train.checkpoint_readers import init_from_checkpoint as init_from_checkpoint
    from headrace.train.checkpoint_readers import list_variables as list_variables
    from headrace.train.checkpoint_readers import load_checkpoint as load_checkpoint
    from headrace.train.checkpoint_readers import load_variable as load_variable
    from headrace.train.cluster import ClusterSpec as ClusterSpec
    from headrace.train.cluster import Server as Server
    from headrace.train.input_queues.batches import batch as batch
    from headrace.train.input_queues.batches import batch_join as batch_join
    from headrace.train.input_queues.batches import maybe_batch as maybe_batch
    from headrace.train.input_queues.batches import maybe_batch_join as maybe_batch_join
    from headrace.train.input_queues.batches import maybe_shuffle_batch as maybe_shuffle_batch
    from headrace.train.input_queues.batches import (
        maybe_shuffle_batch_join as maybe_shuffle_batch_join,
    )
    from headrace.train.input_queues.batches import shuffle_batch as shuffle_batch
    from headrace.train.input_queues.batches import shuffle_batch_join as shuffle_batch_join
    from headrace.train.input_queues.coordinator import Coordinator as Coordinator
    from headrace.train.input_queues.coordinator import LooperThread as LooperThread
    from headrace.train.input_queues.producers import input_producer as input_producer
    from headrace.train.input_queues.producers import limit_epochs as limit_epochs
    from headrace.train.input_queues.producers import range_input_producer as range_input_producer
    from headrace.train.input_queues.producers import slice_input_producer as slice_input_producer
    from headrace.train.input_queues.producers import string_input_producer as string_input_producer
    from headrace.train.input_queues.queue_runner import QueueRunner as QueueRunner
    from headrace.train.input_queues.queue_runner import add_queue_runner as add_queue_runner
    from headrace.train.input_queues.queue_runner import start_queue_runners as start_queue_runners
    from headrace.train.monitored.hooks import FeedFnHook as FeedFnHook
    from headrace.train.monitored.hooks import FinalOpsHook as FinalOpsHook
    from headrace.train.monitored.hooks import GlobalStepWaiterHook as GlobalStepWaiterHook
    from headrace.train.monitored.hooks import LoggingTensorHook as LoggingTensorHook
    from headrace.train.monitored.hooks import (
        NanLossDuringTrainingError as NanLossDuringTrainingError,
    )
    from headrace.train.monitored.hooks import NanTensorHook as NanTensorHook
    from headrace.train.monitored.hooks import SecondOrStepTimer as SecondOrStepTimer
    from headrace.train.monitored.hooks import StopAtStepHook as StopAtStepHook
    from headrace.train.monitored.monitored_session import (
        ChiefSessionCreator as ChiefSessionCreator,
    )
    from headrace.train.monitored.monitored_session import MonitoredSession as MonitoredSession
    from headrace.train.monitored.monitored_session import (
        MonitoredTrainingSession as MonitoredTrainingSession,
    )
    from headrace.train.monitored.monitored_session import SessionCreator as SessionCreator
    from headrace.train.monitored.monitored_session import (
        SingularMonitoredSession as SingularMonitoredSession,
    )
    from headrace.train.monitored.monitored_session import (
        WorkerSessionCreator as WorkerSessionCreator,
    )
    from headrace.train.monitored.saving_hooks import CheckpointSaverHook as CheckpointSaverHook
    from headrace.train.monitored.saving_hooks import (
        CheckpointSaverListener as CheckpointSaverListener,
    )
    from headrace.train.monitored.saving_hooks import StepCounterHook as StepCounterHook
    from headrace.train.monitored.saving_hooks import SummarySaverHook as SummarySaverHook
    from headrace.train.monitored.scaffold import Scaffold as Scaffold
    from headrace.train.monitored.session_manager import SessionManager as SessionManager
    from headrace.train.monitored.session_run_hook import SessionRunArgs as SessionRunArgs
    from headrace.train.monitored.session_run_hook import SessionRunContext as SessionRunContext
    from headrace.train.monitored.session_run_hook import SessionRunHook as SessionRunHook
    from headrace.train.monitored.session_run_hook import SessionRunValues as SessionRunValues
    from headrace.train.monitored.supervisor import Supervisor as Supervisor
    from headrace.train.object_checkpoints import Checkpoint as Checkpoint
    from headrace.train.object_checkpoints import CheckpointManager as CheckpointManager
    from headrace.train.optimizers.sync_replicas import (
        SyncReplicasOptimizer as SyncReplicasOptimizer,
    )
    from headrace.train.saver import Saver as Saver
    from headrace.train.saver import export_meta_graph as export_meta_graph
    from headrace.train.saver import import_meta_graph as import_meta_graph
    from headrace.train.summaries.event_files import FileWriter as SummaryWriter
    from headrace.train.summaries.event_files import summary_iterator as summary_iterator
    from headrace.train.warm_starting import VocabInfo as VocabInfo
    from headrace.train.warm_starting import warm_start as warm_start
    from headrace.wire.graph_files import write_graph as write_graph

    BytesList: _Any
    ClusterDef: _Any
    Example: _Any
    Feature: _Any
    FeatureList: _Any
    FeatureLists: _Any
    Features: _Any
    FloatList: _Any
    Int64List: _Any
    JobDef: _Any
    SaverDef: _Any
    SequenceExample: _Any
    __all__ += ["NewCheckpointReader", "SummaryWriter", "experimental", "queue_runner"]
# static names: end

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr(
        "train", __name__, messages=TRAIN_MESSAGES, modules=LAZY_MODULES, names=LAZY_NAMES
    )
