"""TensorFlow's module paths: what stands behind ``tensorflow.python.ops.array_ops`` and its like.

Programs import from TensorFlow's inner modules. Each path that they use has here a list of
*providers*, modules that are asked for a name in turn; anything below the public namespaces
(``tensorflow.nn``, ``tensorflow.compat.v1.train``) needs no entry, it is found by walking the
attributes of the API. A :class:`Facade` is the module that an importer is given.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from headrace.api.contrib_paths import CONTRIB_INNER
from headrace.api.inner_paths import INNER_PATHS
from headrace.api.platform import messages

__all__ = ["GENERATED", "PATHS", "V1"]

V1 = "headrace.api.v1"
GENERATED = "<generated>"  # the snake-case functions of all ops

#: Path below ``tensorflow`` -> providers, first match wins.
PATHS: dict[str, tuple[str, ...]] = {}


def _inner(package: str, **modules: tuple[str, ...] | str) -> None:
    PATHS.setdefault(package, ())
    for name, providers in modules.items():
        given = (providers,) if isinstance(providers, str) else providers
        PATHS[f"{package}.{name}"] = given


PATHS["python"] = (V1,)
PATHS["core"] = ()
_inner(
    "python.framework",
    constant_op=("headrace.api.python.constant_names", V1),
    dtypes=("headrace.core.dtypes", V1),
    errors=("headrace.errors",),
    errors_impl=("headrace.errors",),
    ops=(
        "headrace.core.graph", "headrace.core.tensor", "headrace.core.convert",
        "headrace.core.scopes", "headrace.api.python.framework_ops",
        "headrace.core.indexed_slices", "headrace.core.collection_protos", V1,
    ),
    convert_to_constants=("headrace.formats.freezing_v2",),
    function=("headrace.functions.defined_function",),
    graph_util=("headrace.api.v1.graph_util",),
    graph_util_impl=("headrace.api.v1.graph_util",),
    importer=("headrace.formats.graphdef_reader",),
    meta_graph=("headrace.formats.meta_graph",),
    device_spec=("headrace.core.device_spec", "headrace.api.python.numbered_names"),
    random_seed=("headrace.core.seeds",),
    sparse_tensor=V1,
    tensor_shape=("headrace.core.shapes",),
    tensor_util=("headrace.api.v1.tensor_util", V1),
    device=V1,
)  # fmt: skip
_inner(
    "python.ops",
    array_ops=("headrace.api.python.array_ops", V1, GENERATED),
    check_ops=V1,
    clip_ops=V1,
    control_flow_ops=(
        "headrace.ops.control.control_flow", "headrace.ops.control.while_loops",
        "headrace.ops.control.case_branches", V1,
    ),
    custom_gradient=V1,
    data_flow_ops=(
        V1,
        "headrace.ops.queues.staging_area",
        "headrace.ops.queues.barriers",
        GENERATED,
    ),
    embedding_ops=("headrace.api.v1.nn", V1),
    functional_ops=V1,
    image_ops=("headrace.api.v1.image", GENERATED),
    image_ops_impl=("headrace.api.v1.image", GENERATED),
    io_ops=("headrace.api.v1.io", V1, GENERATED),
    gradients=V1,
    gradients_impl=V1,
    init_ops=("headrace.api.v1.initializers", "headrace.variables.initializers", V1),
    linalg_ops=("headrace.api.v1.linalg", V1, GENERATED),
    logging_ops=("headrace.api.python.logging_names", V1, GENERATED),
    map_fn=V1,
    math_ops=(V1, "headrace.api.v1.math", GENERATED),
    nn=("headrace.api.v1.nn", V1),
    nn_impl=("headrace.api.v1.nn", V1),
    nn_ops=("headrace.api.v1.nn", V1, GENERATED),
    numerics=V1,
    parsing_ops=("headrace.api.v1.io", V1, GENERATED),
    partitioned_variables=V1,
    random_ops=("headrace.api.v1.random", V1, GENERATED),
    resource_variable_ops=(
        "headrace.variables.resource_variable", "headrace.ops.state.resource_state", V1, GENERATED,
    ),
    script_ops=V1,
    sparse_ops=("headrace.api.v1.sparse", V1),
    standard_ops=V1,
    state_ops=("headrace.ops.state.ref_state", "headrace.ops.state.ref_scatter", V1, GENERATED),
    string_ops=("headrace.api.v1.strings", V1, GENERATED),
    tensor_array_ops=V1,
    template=V1,
    variable_scope=("headrace.variables.variable_scope", V1),
    variables=(
        "headrace.variables.variable", "headrace.variables.variable_lists",
        "headrace.variables.partitioned_variable", "headrace.api.python.numbered_names", V1,
    ),
)  # fmt: skip
for _family in (
    "array",
    "control_flow",
    "data_flow",
    "image",
    "io",
    "linalg",
    "logging",
    "math",
    "nn",
    "parsing",
    "random",
    "resource_variable",
    "sparse",
    "state",
    "stateless_random",
    "string",
    "training",
):
    PATHS[f"python.ops.gen_{_family}_ops"] = (GENERATED,)
_inner(
    "python.client",
    session=("headrace.session.session", "headrace.session.conversions"),
    device_lib=("headrace.api.v1.device_lib",),
)
_inner(
    "python.training",
    adam=("headrace.api.v1.train",),
    adagrad=("headrace.api.v1.train",),
    adadelta=("headrace.api.v1.train",),
    ftrl=("headrace.api.v1.train",),
    gradient_descent=("headrace.api.v1.train",),
    learning_rate_decay=("headrace.api.v1.train",),
    momentum=("headrace.api.v1.train",),
    moving_averages=("headrace.train.moving_averages", "headrace.api.v1.train"),
    optimizer=("headrace.train.optimizers.optimizer", "headrace.api.v1.train"),
    rmsprop=("headrace.api.v1.train",),
    slot_creator=("headrace.train.optimizers.slots",),
    training=("headrace.api.v1.train",),
    training_ops=("headrace.api.v1.train", GENERATED),
    training_util=("headrace.train.global_step", "headrace.api.v1.train"),
)
_inner(
    "python.platform",
    app=("headrace.api.platform.app",),
    flags=("headrace.api.platform.flags",),
    gfile=("headrace.api.platform.gfile",),
    test=("headrace.api.platform.test",),
    tf_logging=("headrace.api.platform.tf_logging",),
)
_RAGGED = ("headrace.api.v1.ragged", "headrace.api.python.ragged_names", V1)
_inner(
    "python.ops.ragged",
    ragged_tensor=("headrace.ops.ragged.ragged_tensor", *_RAGGED),
    ragged_tensor_value=_RAGGED,
    ragged_util=("headrace.api.python.ragged_names", V1),
    segment_id_ops=_RAGGED,
    **dict.fromkeys(
        (
            "ragged_array_ops", "ragged_batch_gather_ops", "ragged_concat_ops",
            "ragged_conversion_ops", "ragged_factory_ops", "ragged_functional_ops",
            "ragged_gather_ops", "ragged_map_ops", "ragged_math_ops", "ragged_squeeze_op",
            "ragged_string_ops", "ragged_where_op",
        ),
        _RAGGED,
    ),
)  # fmt: skip
_inner("python.lib")
_inner(
    "python.lib.io",
    file_io=("headrace.api.platform.file_io",),
    python_io=("headrace.api.v1.python_io",),
    tf_record=("headrace.api.v1.python_io",),
)
_inner(
    "python.util",
    all_util=("headrace.api.python.all_util",),
    compat=("headrace.api.platform.compat",),
    deprecation=("headrace.api.python.deprecation",),
    nest=("headrace.core.nest",),
    tf_contextlib=("headrace.api.python.tf_decorator",),
    tf_decorator=("headrace.api.python.tf_decorator",),
    tf_export=("headrace.api.python.tf_export",),
    tf_inspect=("headrace.api.python.tf_inspect",),
)
_SAVED = "headrace.api.v1.saved_model"
_inner(
    "python.saved_model",
    **{
        name: (f"{_SAVED}.{name}",)
        for name in (
            "builder", "constants", "loader", "main_op", "signature_constants",
            "signature_def_utils",
            "tag_constants", "utils",
        )
    },
    builder_impl=(f"{_SAVED}.builder",),
    loader_impl=(f"{_SAVED}.loader",),
    load=("headrace.api.v2.saved_model", "headrace.formats.saved_model_load"),
    save=("headrace.formats.saved_model_save",),
    saved_model=(_SAVED,),
    simple_save=("headrace.formats.saved_model",),
)  # fmt: skip
_inner("tools", graph_transforms=("headrace.formats.graph_transforms",))
_inner(
    "python.tools",
    freeze_graph=("headrace.formats.freeze_tool",),
    inspect_checkpoint=("headrace.cli.inspect_checkpoint",),
    optimize_for_inference_lib=("headrace.formats.graph_transforms",),
    saved_model_utils=("headrace.formats.saved_model_tools",),
    strip_unused_lib=("headrace.formats.subgraphs", "headrace.formats.freeze_tool"),
)
_inner(
    "python.eager",
    backprop=("headrace.eager.tape",),
    context=("headrace.api.v1.context", "headrace.eager.eager_context"),
)
_LAYERS = "headrace.api.v1.layers"
_inner(
    "python.layers",
    base=("headrace.layers.base",),
    convolutional=("headrace.layers.conv_names", _LAYERS),
    core=("headrace.layers.dense", _LAYERS),
    layers=(_LAYERS,),
    normalization=("headrace.layers.batch_norm_layer",),
    pooling=(_LAYERS,),
    utils=("headrace.layers.conv_arguments", "headrace.layers.smart_cond"),
)
_RNN = ("headrace.api.v1.nn", "headrace.api.python.rnn_cell_impl")
_CELLS = ("headrace.api.v1.rnn_cell", "headrace.api.python.rnn_cell_impl")
for _name in ("rnn", "rnn_cell", "rnn_cell_impl"):
    PATHS[f"python.ops.{_name}"] = _RNN if _name == "rnn" else _CELLS
_CONTRIB_RNN = ("headrace.api.contrib.rnn", "headrace.api.python.rnn_cell_impl")
_inner("contrib.rnn", python=())
_inner("contrib.rnn.python", ops=())
_inner(
    "contrib.rnn.python.ops",
    **dict.fromkeys(
        (
            "core_rnn",
            "core_rnn_cell",
            "core_rnn_cell_impl",
            "gru_ops",
            "lstm_ops",
            "rnn",
            "rnn_cell",
        ),
        _CONTRIB_RNN,
    ),
)
_inner("contrib.seq2seq", python=())
_inner("contrib.seq2seq.python", ops=())
_inner(
    "contrib.seq2seq.python.ops",
    **dict.fromkeys(
        (
            "attention_wrapper",
            "basic_decoder",
            "beam_search_decoder",
            "beam_search_ops",
            "decoder",
            "helper",
            "loss",
        ),
        (
            "headrace.api.contrib.seq2seq",
            "headrace.api.python.seq2seq_internals",
            "headrace.api.python.rnn_cell_impl",
        ),
    ),
)
_inner("contrib.legacy_seq2seq", python=())
_inner("contrib.legacy_seq2seq.python", ops=())
_inner("contrib.legacy_seq2seq.python.ops", seq2seq=("headrace.api.contrib.legacy_seq2seq",))
_inner("contrib.tpu", python=())
_inner("contrib.tpu.python", tpu=())
_inner(
    "contrib.tpu.python.tpu",
    tpu=("headrace.api.v1.tpu",),
    tpu_optimizer=("headrace.api.v1.tpu",),
    bfloat16=("headrace.api.v1.tpu",),
)
_inner("contrib.tensor_forest", python=("headrace.api.contrib.tensor_forest_python",))
_inner(
    "contrib.tensor_forest.python", tensor_forest=("headrace.api.contrib.random_forest",), ops=()
)
_inner(
    "contrib.tensor_forest.python.ops",
    gen_model_ops=GENERATED,
    gen_stats_ops=GENERATED,
    model_ops=("headrace.train.forest.forest_variables", GENERATED),
    stats_ops=("headrace.train.forest.forest_variables", GENERATED),
)
PATHS["python.ops.resources"] = ("headrace.ops.state.shared_resources",)
_inner("contrib.factorization", python=())
_inner("contrib.factorization.python", ops=())
_inner(
    "contrib.factorization.python.ops",
    clustering_ops=("headrace.api.contrib.factorization", GENERATED),
    factorization_ops=("headrace.api.contrib.factorization", GENERATED),
    gmm_ops=("headrace.api.contrib.factorization", GENERATED),
)
_inner("contrib.crf", python=())
_inner("contrib.crf.python", ops=())
_inner("contrib.crf.python.ops", crf=("headrace.api.contrib.crf",))
PATHS["python.tf2"] = ("headrace.api.python.tf2",)
_inner(
    "python.summary",
    summary=("<public summary>",),
    writer=("<public summary>",),
    plugin_asset=("headrace.train.summaries.plugin_assets",),
)
_inner("python.debug")
_inner("python.debug.lib", debug_data=())
_inner("python.debug.wrappers", hooks=())
for _name in (
    "histogram_ops",
    "summary_ops",
):
    PATHS[f"python.ops.{_name}"] = (V1, GENERATED)
for _name in ("metrics", "metrics_impl"):
    PATHS[f"python.ops.{_name}"] = (
        "headrace.api.v1.metrics",
        "headrace.api.python.metrics_impl",
    )
PATHS["python.ops.confusion_matrix"] = ("headrace.ops.nn.weights_broadcasting", V1)
PATHS["python.ops.weights_broadcast_ops"] = ("headrace.ops.nn.weights_broadcasting",)
for _name in ("sets", "sets_impl"):
    PATHS[f"python.ops.{_name}"] = ("headrace.api.v1.sets",)
PATHS["python.ops.lookup_ops"] = (
    "headrace.ops.state.lookup_tables", "headrace.ops.state.table_initializers",
    "headrace.ops.state.vocabulary_tables", V1,
)  # fmt: skip
PATHS["python.ops.control_flow_util"] = ("headrace.api.python.control_flow_util",)
PATHS["python.ops.parallel_for"] = ("headrace.autodiff.jacobians",)
PATHS["python.ops.parallel_for.gradients"] = ("headrace.autodiff.jacobians",)
PATHS["python.ops.parallel_for.control_flow_ops"] = ("headrace.ops.control.parallel_loops",)
PATHS["python.client.timeline"] = ("headrace.profiler.timeline",)
PATHS["python.pywrap_tensorflow"] = (
    "headrace.api.v1.train",
    "headrace.train.summaries.events_writer",
    V1,
)
_DISTRIBUTIONS = ("headrace.api.contrib.distributions",)
_inner(
    "python.ops.distributions",
    special_math=("headrace.distributions.normal_functions",),
    util=("headrace.distributions.logits", "headrace.distributions.bijectors"),
    **dict.fromkeys(
        (
            "bernoulli", "beta", "categorical", "dirichlet", "dirichlet_multinomial",
            "distribution", "distributions", "exponential", "gamma", "kullback_leibler", "laplace",
            "multinomial", "normal", "student_t", "transformed_distribution", "uniform",
        ),
        _DISTRIBUTIONS,
    ),
)  # fmt: skip
for _name in (
    "basic_session_run_hooks",
    "checkpoint_utils",
    "coordinator",
    "device_setter",
    "input",
    "monitored_session",
    "queue_runner",
    "queue_runner_impl",
    "server_lib",
    "session_manager",
    "session_run_hook",
    "supervisor",
    "sync_replicas_optimizer",
):
    PATHS[f"python.training.{_name}"] = ("headrace.api.v1.train",)
_inner(
    "python.training",
    checkpoint_management=(
        "headrace.api.v1.train",
        "headrace.train.checkpoint_files",
        "headrace.train.object_checkpoints",
    ),
    checkpoint_ops=("headrace.api.contrib.framework",),
    saver=("headrace.api.v1.train", "headrace.train.saver", "headrace.train.saver_builder"),
    tracking=(),
    warm_starting_util=("headrace.train.warm_starting",),
)
_inner(
    "python.feature_column",
    **dict.fromkeys(
        ("feature_column", "feature_column_lib", "feature_column_v2"),
        ("headrace.api.v1.feature_column",),
    ),
)
_inner("python.training.saving", saveable_object=("headrace.train.saveables",))
_inner(
    "python.training.tracking",
    base=("headrace.api.python.tracking",),
    python_state=("headrace.train.tracked_objects",),
    tracking=("headrace.api.python.tracking",),
    util=("headrace.api.python.tracking", "headrace.train.object_checkpoints"),
)
PATHS["python.training.device_setter"] = ("headrace.api.v1.train", "headrace.api.device_setter")
PATHS["python.training.evaluation"] = ("headrace.train.monitored.evaluation_loop",)
_inner("python.keras")
_inner(
    "python.keras.engine",
    base_layer=("headrace.layers.core_layer", "headrace.layers.input_spec"),
    input_spec=("headrace.layers.input_spec",),
)
PATHS["contrib"] = ("headrace.api.contrib",)
for _name in (
    "crf",
    "cudnn_rnn",
    "factorization",
    "framework",
    "layers",
    "legacy_seq2seq",
    "rnn",
    "seq2seq",
    "slim",
    "tensor_forest",
):
    PATHS[f"contrib.{_name}"] = (f"headrace.api.contrib.{_name}",)
PATHS["contrib.slim.nets"] = ("headrace.api.contrib.slim_nets",)
for _name in (
    "alexnet",
    "inception_v1",
    "inception_v2",
    "inception_v3",
    "overfeat",
    "resnet_utils",
    "resnet_v1",
    "resnet_v2",
    "vgg",
):
    PATHS[f"contrib.slim.nets.{_name}"] = (f"<hosted tf_slim.nets.{_name}>",)
PATHS["contrib.slim.nets.inception"] = ("headrace.api.contrib.slim_inception",)
_LEARN = "headrace.api.contrib.learn_datasets"
_inner("contrib.learn", python=())
_inner("contrib.learn.python", learn=("headrace.api.contrib.learn",))
_inner(
    "contrib.learn.python.learn",
    datasets=(_LEARN,),
    **dict.fromkeys(
        ("basic_session_run_hooks", "monitored_session", "session_run_hook"),
        ("headrace.api.v1.train",),
    ),
)
_inner(
    "contrib.learn.python.learn.datasets",
    base=("headrace.data.classic.csv_tables",),
    mnist=("headrace.data.classic.mnist_files",),
)
_inner(
    "contrib.learn.datasets",
    **{n: PATHS[f"contrib.learn.python.learn.datasets.{n}"] for n in ("base", "mnist")},
)
PATHS["contrib.learn"] = ("headrace.api.contrib.learn",)
PATHS["contrib.learn.datasets"] = PATHS["contrib.learn.python.learn.datasets"] = (_LEARN,)
_inner("examples")
_inner("examples.tutorials")
_inner(
    "examples.tutorials.mnist",
    input_data=("headrace.data.classic.mnist_files",),
    mnist=("headrace.api.python.mnist_tutorial",),
)
_PREPROCESSING = ("headrace.api.contrib.learn_preprocessing", "headrace.data.classic.vocabularies")
PATHS["contrib.learn.preprocessing"] = _PREPROCESSING
PATHS["contrib.learn.python.learn.preprocessing"] = _PREPROCESSING
_inner(
    "contrib.learn.python.learn.preprocessing",
    **dict.fromkeys(("categorical", "categorical_vocabulary", "text"), _PREPROCESSING),
)


def _contrib_inner(namespace: str, packages: dict[str, str]) -> None:
    """Inner modules of one namespace of contrib, which all lead to it."""
    root = f"contrib.{namespace}"
    PATHS[root] = provider = (f"headrace.api.contrib.{namespace}",)
    for package, modules in packages.items():
        for module in modules.split():
            path = root
            for part in [*package.split("."), module] if package else [module]:
                path = f"{path}.{part}"
                PATHS.setdefault(path, ())
            PATHS[path] = provider


for _namespace, _packages in CONTRIB_INNER.items():
    _contrib_inner(_namespace, _packages)
PATHS["contrib.opt.python.training.sign_decay"] = ("headrace.train.optimizers.sign_optimizers",)
PATHS["contrib.tensorboard.plugins"] = ("headrace.api.contrib.tensorboard_plugins",)
PATHS["contrib.tensorboard.plugins.projector"] = ("headrace.api.contrib.projector",)
_inner("contrib.layers", python=())
_inner(
    "contrib.layers.python",
    layers=("<hosted tf_slim.layers>", "headrace.api.contrib.layers"),
    ops=(),
)
_inner(
    "contrib.layers.python.layers",
    **{
        name: (f"<hosted tf_slim.layers.{name}>", "headrace.api.contrib.layers")
        for name in (
            "initializers",
            "layers",
            "normalization",
            "optimizers",
            "regularizers",
            "summaries",
            "utils",
        )
    },
    embedding_ops=("headrace.api.contrib.layers",),
    encoders=("headrace.api.contrib.layers",),
)
_inner("contrib.layers.python.ops", sparse_ops=("<hosted tf_slim.layers.sparse_ops>",))
_FRAMEWORK = "headrace.api.contrib.framework"
_inner("contrib.framework", python=())
_inner("contrib.framework.python", framework=(_FRAMEWORK,), ops=(_FRAMEWORK,))
_inner(
    "contrib.framework.python.framework", checkpoint_utils=(_FRAMEWORK,), tensor_util=(_FRAMEWORK,)
)
_inner(
    "contrib.framework.python.ops",
    arg_scope=("<hosted tf_slim.ops.arg_scope>",),
    audio_ops=(GENERATED,),
    ops=(_FRAMEWORK,),
    variables=("<hosted tf_slim.ops.variables>",),
)
_SLIM = "headrace.api.contrib.slim"
_inner("contrib.slim", python=())
_inner("contrib.slim.python", slim=(_SLIM,))
_inner(
    "contrib.slim.python.slim",
    data=(),
    nets=("headrace.api.contrib.slim_nets",),
    **{
        name: (f"<hosted tf_slim.{name}>",)
        for name in ("evaluation", "learning", "model_analyzer", "queues", "summaries")
    },
)
_inner(
    "contrib.slim.python.slim.data",
    **{
        name: (f"<hosted tf_slim.data.{name}>",)
        for name in (
            "data_decoder", "data_provider", "dataset", "dataset_data_provider", "parallel_reader",
            "prefetch_queue",
            "tfexample_decoder",
        )
    },
)  # fmt: skip
_NETS = {
    name: (f"<hosted tf_slim.nets.{name}>",)
    for name in (
        "alexnet", "inception_v1", "inception_v2", "inception_v3", "overfeat", "resnet_utils",
        "resnet_v1", "resnet_v2",
        "vgg",
    )
}  # fmt: skip
_inner("contrib.slim.python.slim.nets", inception=("headrace.api.contrib.slim_inception",), **_NETS)
for _path in messages.paths():
    PATHS.setdefault(_path.rpartition(".")[0], ())
    PATHS[_path] = (f"<message {_path}>",)

for _path, _providers in INNER_PATHS.items():
    PATHS.setdefault(_path, _providers)
for _path, _providers in PATHS.items():  # a namespace of contrib that has inner modules as well
    if not _providers and _path.startswith("contrib.") and _path.count(".") == 1:
        PATHS[_path] = (f"<public {_path}>",)


def __getattr__(name: str) -> Callable[[str, str], ModuleType]:
    """``facade``, which runners of TensorFlow's own tests look for beside the paths."""
    if name != "facade":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from headrace.api.facades import facade

    return facade
