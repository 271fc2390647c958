"""``tf.train``: optimizers, schedules, averages."""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

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

LAZY_MODULES = {"queue_runner": "headrace.api.v1.train_queue_runner"}
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

__getattr__ = module_getattr(
    "train", __name__, messages=TRAIN_MESSAGES, modules=LAZY_MODULES, names=LAZY_NAMES
)
