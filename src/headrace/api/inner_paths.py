"""More of TensorFlow's inner modules, for packages that are built on it.

Programs import what :mod:`headrace.api.paths` lists; packages (Sonnet, tensor2tensor, texar) reach
further inside. The same form: a path below ``tensorflow`` and the modules that provide its names.
"""

from __future__ import annotations

__all__ = ["INNER_PATHS"]

_V1 = "headrace.api.v1"
_GEN = "<generated>"
_TEST = ("headrace.api.platform.test", "headrace.api.python.test_helpers", _V1)
_NEST = ("headrace.core.nest",)
_DATA = (
    "headrace.api.v1.data",
    "headrace.data.api.data_experimental",
    _V1,
    "headrace.data.api.dataset",
)
_TRAIN = ("headrace.api.v1.train", _V1)

#: Families of generated functions that `paths` does not list.
_GENERATED = (
    "audio", "batch", "bitwise", "candidate_sampling", "checkpoint", "ctc", "dataset",
    "experimental_dataset", "functional", "linalg", "list", "lookup", "manip", "rnn", "script",
    "set", "spectral", "user",
)  # fmt: skip

INNER_PATHS: dict[str, tuple[str, ...]] = {
    **{f"python.ops.gen_{family}_ops": (_GEN,) for family in _GENERATED},
    "python.autograph": ("<public autograph>",),
    "python.autograph.impl": (),
    "python.autograph.impl.api": ("<public autograph.experimental>", "<public autograph>"),
    "python.data": _DATA,
    "python.data.experimental": _DATA,
    "python.data.experimental.ops": (),
    **{
        f"python.data.experimental.ops.{name}": ("<public data.experimental>", *_DATA)
        for name in (
            "batching", "cardinality", "counter", "enumerate_ops", "error_ops",
            "get_single_element", "grouping", "interleave_ops", "iterator_ops", "matching_files",
            "optimization", "optimization_options", "parsing_ops", "prefetching_ops",
            "random_ops", "readers", "resampling", "scan_ops", "shuffle_ops", "snapshot",
            "stats_aggregator", "stats_ops", "stats_options", "take_while_ops",
            "threading_options", "unique", "writers",
        )
    },
    "python.data.ops": (),
    "python.data.ops.dataset_ops": _DATA,
    "python.data.ops.iterator_ops": _DATA,
    "python.data.ops.readers": _DATA,
    "python.data.util": (),
    "python.data.util.nest": _NEST,
    "python.framework.graph_io": ("headrace.wire.graph_files",),
    "python.framework.indexed_slices": ("headrace.core.indexed_slices", _V1),
    "python.framework.smart_cond": ("headrace.api.contrib.framework",),
    "python.framework.tensor_spec": (_V1,),
    "python.framework.test_util": _TEST,
    "python.framework.versions": (_V1, "headrace.api.version"),
    "python.ops.bitwise_ops": ("<public bitwise>", _GEN),
    "python.ops.candidate_sampling_ops": ("<public nn>", "<public random>", _GEN),
    "python.ops.ctc_ops": ("<public nn>", _GEN),
    "python.ops.gradient_checker": ("headrace.api.platform.test",),
    "python.ops.linalg": ("<public linalg>",),
    "python.ops.linalg.linalg_impl": ("<public linalg>",),
    "python.ops.losses": ("<public losses>",),
    "python.ops.losses.losses": ("<public losses>",),
    "python.ops.losses.losses_impl": ("<public losses>",),
    "python.ops.losses.util": ("<public losses>",),
    "python.ops.manip_ops": ("<public manip>", _V1),
    "python.ops.session_ops": (_V1,),
    "python.ops.signal": ("<public signal>",),
    "python.ops.special_math_ops": ("<public math>", _V1),
    "python.ops.spectral_ops": ("<public spectral>", "<public signal>", _GEN),
    "python.ops.stateless_random_ops": ("<public random>", _V1, _GEN),
    "python.ops.summary_op_util": ("headrace.api.python.summary_op_util",),
    "python.platform.googletest": _TEST[:2],
    "python.platform.resource_loader": ("headrace.api.platform.resource_loader",),
    "python.platform.sysconfig": ("headrace.api.platform.sysconfig",),
    "python.summary.summary_iterator": _TRAIN,
    "python.summary.writer.writer": ("<public summary>",),
    "python.summary.writer.writer_cache": ("<public summary>",),
    "python.training.warm_starting_util": _TRAIN,
    "python.util.function_utils": ("headrace.api.python.function_utils",),
    "python.util.lazy_loader": ("headrace.api.python.lazy_loader",),
}  # fmt: skip
