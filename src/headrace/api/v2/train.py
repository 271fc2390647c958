"""``tf.train`` of the v2 API: what of it is not bound to sessions."""

import typing as _typing

from headrace.api.v2.name_lookup import module_getattr
from headrace.train.moving_averages import ExponentialMovingAverage

__all__ = ["ExponentialMovingAverage"]

# static names: begin (tools/static_names.py)
if _typing.TYPE_CHECKING:
    from headrace.api.v1.train import AdadeltaOptimizer as AdadeltaOptimizer
    from headrace.api.v1.train import AdagradDAOptimizer as AdagradDAOptimizer
    from headrace.api.v1.train import AdagradOptimizer as AdagradOptimizer
    from headrace.api.v1.train import AdamOptimizer as AdamOptimizer
    from headrace.api.v1.train import Checkpoint as Checkpoint
    from headrace.api.v1.train import CheckpointManager as CheckpointManager
    from headrace.api.v1.train import CheckpointSaverHook as CheckpointSaverHook
    from headrace.api.v1.train import CheckpointSaverListener as CheckpointSaverListener
    from headrace.api.v1.train import ChiefSessionCreator as ChiefSessionCreator
    from headrace.api.v1.train import ClusterSpec as ClusterSpec
    from headrace.api.v1.train import Coordinator as Coordinator
    from headrace.api.v1.train import FeedFnHook as FeedFnHook
    from headrace.api.v1.train import FinalOpsHook as FinalOpsHook
    from headrace.api.v1.train import FtrlOptimizer as FtrlOptimizer
    from headrace.api.v1.train import GlobalStepWaiterHook as GlobalStepWaiterHook
    from headrace.api.v1.train import GradientDescentOptimizer as GradientDescentOptimizer
    from headrace.api.v1.train import LoggingTensorHook as LoggingTensorHook
    from headrace.api.v1.train import LooperThread as LooperThread
    from headrace.api.v1.train import MomentumOptimizer as MomentumOptimizer
    from headrace.api.v1.train import MonitoredSession as MonitoredSession
    from headrace.api.v1.train import MonitoredTrainingSession as MonitoredTrainingSession
    from headrace.api.v1.train import NanLossDuringTrainingError as NanLossDuringTrainingError
    from headrace.api.v1.train import NanTensorHook as NanTensorHook
    from headrace.api.v1.train import NewCheckpointReader as NewCheckpointReader
    from headrace.api.v1.train import Optimizer as Optimizer
    from headrace.api.v1.train import ProfilerHook as ProfilerHook
    from headrace.api.v1.train import ProximalAdagradOptimizer as ProximalAdagradOptimizer
    from headrace.api.v1.train import (
        ProximalGradientDescentOptimizer as ProximalGradientDescentOptimizer,
    )
    from headrace.api.v1.train import QueueRunner as QueueRunner
    from headrace.api.v1.train import RMSPropOptimizer as RMSPropOptimizer
    from headrace.api.v1.train import Saver as Saver
    from headrace.api.v1.train import Scaffold as Scaffold
    from headrace.api.v1.train import SecondOrStepTimer as SecondOrStepTimer
    from headrace.api.v1.train import Server as Server
    from headrace.api.v1.train import SessionCreator as SessionCreator
    from headrace.api.v1.train import SessionManager as SessionManager
    from headrace.api.v1.train import SessionRunArgs as SessionRunArgs
    from headrace.api.v1.train import SessionRunContext as SessionRunContext
    from headrace.api.v1.train import SessionRunHook as SessionRunHook
    from headrace.api.v1.train import SessionRunValues as SessionRunValues
    from headrace.api.v1.train import SingularMonitoredSession as SingularMonitoredSession
    from headrace.api.v1.train import StepCounterHook as StepCounterHook
    from headrace.api.v1.train import StopAtStepHook as StopAtStepHook
    from headrace.api.v1.train import SummarySaverHook as SummarySaverHook
    from headrace.api.v1.train import SummaryWriter as SummaryWriter
    from headrace.api.v1.train import Supervisor as Supervisor
    from headrace.api.v1.train import SyncReplicasOptimizer as SyncReplicasOptimizer
    from headrace.api.v1.train import VocabInfo as VocabInfo
    from headrace.api.v1.train import WorkerSessionCreator as WorkerSessionCreator
    from headrace.api.v1.train import add_queue_runner as add_queue_runner
    from headrace.api.v1.train import assert_global_step as assert_global_step
    from headrace.api.v1.train import batch as batch
    from headrace.api.v1.train import batch_join as batch_join
    from headrace.api.v1.train import checkpoint_exists as checkpoint_exists
    from headrace.api.v1.train import checkpoints_iterator as checkpoints_iterator
    from headrace.api.v1.train import cosine_decay as cosine_decay
    from headrace.api.v1.train import cosine_decay_restarts as cosine_decay_restarts
    from headrace.api.v1.train import create_global_step as create_global_step
    from headrace.api.v1.train import experimental as experimental
    from headrace.api.v1.train import exponential_decay as exponential_decay
    from headrace.api.v1.train import export_meta_graph as export_meta_graph
    from headrace.api.v1.train import (
        generate_checkpoint_state_proto as generate_checkpoint_state_proto,
    )
    from headrace.api.v1.train import get_checkpoint_mtimes as get_checkpoint_mtimes
    from headrace.api.v1.train import get_checkpoint_state as get_checkpoint_state
    from headrace.api.v1.train import get_global_step as get_global_step
    from headrace.api.v1.train import get_or_create_global_step as get_or_create_global_step
    from headrace.api.v1.train import global_step as global_step
    from headrace.api.v1.train import import_meta_graph as import_meta_graph
    from headrace.api.v1.train import init_from_checkpoint as init_from_checkpoint
    from headrace.api.v1.train import input_producer as input_producer
    from headrace.api.v1.train import inverse_time_decay as inverse_time_decay
    from headrace.api.v1.train import latest_checkpoint as latest_checkpoint
    from headrace.api.v1.train import limit_epochs as limit_epochs
    from headrace.api.v1.train import linear_cosine_decay as linear_cosine_decay
    from headrace.api.v1.train import list_variables as list_variables
    from headrace.api.v1.train import load_checkpoint as load_checkpoint
    from headrace.api.v1.train import load_variable as load_variable
    from headrace.api.v1.train import match_filenames_once as match_filenames_once
    from headrace.api.v1.train import maybe_batch as maybe_batch
    from headrace.api.v1.train import maybe_batch_join as maybe_batch_join
    from headrace.api.v1.train import maybe_shuffle_batch as maybe_shuffle_batch
    from headrace.api.v1.train import maybe_shuffle_batch_join as maybe_shuffle_batch_join
    from headrace.api.v1.train import natural_exp_decay as natural_exp_decay
    from headrace.api.v1.train import noisy_linear_cosine_decay as noisy_linear_cosine_decay
    from headrace.api.v1.train import piecewise_constant as piecewise_constant
    from headrace.api.v1.train import piecewise_constant_decay as piecewise_constant_decay
    from headrace.api.v1.train import polynomial_decay as polynomial_decay
    from headrace.api.v1.train import queue_runner as queue_runner
    from headrace.api.v1.train import range_input_producer as range_input_producer
    from headrace.api.v1.train import remove_checkpoint as remove_checkpoint
    from headrace.api.v1.train import replica_device_setter as replica_device_setter
    from headrace.api.v1.train import shuffle_batch as shuffle_batch
    from headrace.api.v1.train import shuffle_batch_join as shuffle_batch_join
    from headrace.api.v1.train import slice_input_producer as slice_input_producer
    from headrace.api.v1.train import start_queue_runners as start_queue_runners
    from headrace.api.v1.train import string_input_producer as string_input_producer
    from headrace.api.v1.train import summary_iterator as summary_iterator
    from headrace.api.v1.train import update_checkpoint_state as update_checkpoint_state
    from headrace.api.v1.train import warm_start as warm_start
    from headrace.api.v1.train import write_graph as write_graph
# static names: end

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("train", __name__, fallback="headrace.api.v1.train")
