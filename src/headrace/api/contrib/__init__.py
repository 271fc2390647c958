"""``tf.contrib``: what there is of it; any other name says clearly that it is missing."""

from headrace.api.missing import module_getattr

__all__: list[str] = []

_MODULES = (
    "crf",
    "cudnn_rnn",
    "data",
    "distributions",
    "eager",
    "factorization",
    "feature_column",
    "framework",
    "graph_editor",
    "image",
    "integrate",
    "layers",
    "learn",
    "legacy_seq2seq",
    "lookup",
    "losses",
    "memory_stats",
    "metrics",
    "nn",
    "opt",
    "rnn",
    "seq2seq",
    "signal",
    "slim",
    "sparsemax",
    "staging",
    "stateless",
    "summary",
    "tensor_forest",
    "tensorboard",
    "tfprof",
    "training",
    "util",
)

__getattr__ = module_getattr(
    "contrib",
    __name__,
    modules={
        **{name: f"headrace.api.contrib.{name}" for name in _MODULES},
        "tpu": "headrace.api.v1.tpu",
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, "tpu"})
