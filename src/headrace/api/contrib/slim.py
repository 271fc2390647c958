"""``tf.contrib.slim``: the package tf_slim (see ``headrace.api.hosting``)."""

from headrace.api.hosting import hosted_getattr

__all__: list[str] = []

__getattr__ = hosted_getattr(
    "contrib.slim",
    __name__,
    ["tf_slim.layers", "tf_slim.ops.variables", "tf_slim.ops.arg_scope"],
    {
        "data_decoder": "tf_slim.data.data_decoder",
        "data_provider": "tf_slim.data.data_provider",
        "dataset": "tf_slim.data.dataset",
        "dataset_data_provider": "tf_slim.data.dataset_data_provider",
        "evaluation": "tf_slim.evaluation",
        "initializers": "tf_slim.layers.initializers",
        "layers": "headrace.api.contrib.layers",
        "learning": "tf_slim.learning",
        "losses": "tf_slim.losses",
        "metrics": "tf_slim.metrics",
        "model_analyzer": "tf_slim.model_analyzer",
        "nets": "headrace.api.contrib.slim_nets",
        "parallel_reader": "tf_slim.data.parallel_reader",
        "prefetch_queue": "tf_slim.data.prefetch_queue",
        "queues": "tf_slim.queues",
        "regularizers": "tf_slim.layers.regularizers",
        "summaries": "tf_slim.summaries",
        "tfexample_decoder": "tf_slim.data.tfexample_decoder",
        "utils": "tf_slim.layers.utils",
    },
)
