"""The names of ``tf`` that are imported when a program first uses them: :mod:`headrace.api.v1`.

``import headrace`` stays light that way. ``tools/static_names.py`` tells type checkers the same
names.
"""

# fmt: off

from headrace.api.missing import late

__all__ = ["LAZY_MODULES", "LAZY_NAMES"]

#: Modules that are imported when first used.
LAZY_MODULES = {
    "app": "headrace.api.platform.app",
    "autograph": "headrace.autograph",
    "bitwise": "headrace.api.v1.bitwise",
    "compat": "headrace.api.v1.compat",
    "config": "headrace.api.v1.config",
    "contrib": "headrace.api.contrib",
    "data": "headrace.api.v1.data",
    "debugging": "headrace.api.v1.debugging",
    "distribute": "headrace.api.v1.distribute",
    "distributions": "headrace.api.v1.distributions",
    "dtypes": "headrace.api.v1.dtypes",
    "estimator": "headrace.api.v1.estimator",
    "feature_column": "headrace.api.v1.feature_column",
    "flags": "headrace.api.platform.flags",
    "gfile": "headrace.api.platform.gfile",
    "graph_util": "headrace.api.v1.graph_util",
    "saved_model": "headrace.api.v1.saved_model",
    "image": "headrace.api.v1.image",
    "initializers": "headrace.api.v1.initializers",
    "io": "headrace.api.v1.io",
    "layers": "headrace.api.v1.layers",
    "linalg": "headrace.api.v1.linalg",
    "resource_loader": "headrace.api.platform.resource_loader",
    "logging": "headrace.api.platform.tf_logging",
    "lookup": "headrace.api.v1.lookup",
    "losses": "headrace.api.v1.losses",
    "manip": "headrace.api.v1.manip",
    "math": "headrace.api.v1.math",
    "metrics": "headrace.api.v1.metrics",
    "nest": "headrace.api.v1.nest",
    "nn": "headrace.api.v1.nn",
    "python": "headrace.api.v1.python",
    "queue": "headrace.api.v1.queue",
    "profiler": "headrace.api.v1.profiler",
    "quantization": "headrace.api.v1.quantization",
    "ragged": "headrace.api.v1.ragged",
    "python_io": "headrace.api.v1.python_io",
    "random": "headrace.api.v1.random",
    "raw_ops": "headrace.api.raw_ops",
    "sets": "headrace.api.v1.sets",
    "signal": "headrace.api.v1.signal",
    "sparse": "headrace.api.v1.sparse",
    "spectral": "headrace.api.v1.spectral",
    "strings": "headrace.api.v1.strings",
    "audio": "headrace.api.v1.audio",
    "summary": "headrace.api.v1.summary",
    "sysconfig": "headrace.api.platform.sysconfig",
    "test": "headrace.api.platform.test",
    "tpu": "headrace.api.v1.tpu",
    "train": "headrace.api.v1.train",
}
#: Names of ``tf`` itself in modules that are imported when first used.
LAZY_NAMES = late({
    "headrace.ops.queues.queues": (
        "FIFOQueue PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue"
    ),
    "headrace.ops.queues.accumulators": (
        "ConditionalAccumulator ConditionalAccumulatorBase SparseConditionalAccumulator"
    ),
    "headrace.ops.queues.file_readers": (
        "FixedLengthRecordReader IdentityReader ReaderBase TFRecordReader TextLineReader "
        "WholeFileReader"
    ),
    "headrace.ops.nn.fake_quantization": (
        "fake_quant_with_min_max_args fake_quant_with_min_max_args_gradient "
        "fake_quant_with_min_max_vars fake_quant_with_min_max_vars_gradient "
        "fake_quant_with_min_max_vars_per_channel "
        "fake_quant_with_min_max_vars_per_channel_gradient"
    ),
    "headrace.ops.ragged.ragged_tensor": "RaggedTensor",
    "headrace.ops.ragged.ragged_spec": "RaggedTensorSpec",
    "headrace.api.platform.sysconfig": "CXX11_ABI_FLAG MONOLITHIC_BUILD",
    "headrace.api.platform.op_libraries": "load_file_system_library load_library load_op_library",
    "headrace.api.platform.tf_logging": "get_logger",
    "headrace.core.specs": "IndexedSlicesSpec SparseTensorSpec TensorSpec TypeSpec",
    "headrace.ops.control.tensor_array_spec": "TensorArraySpec",
    "headrace.eager.eager_custom_gradient": "recompute_grad",
    "headrace.functions.function": "function",
    "headrace.functions.wrapped_function": "wrap_function",
    "headrace.eager.module": "Module",
    "headrace.eager.py_function": "py_function",
    "headrace.eager.tape": "GradientTape",
    "headrace.formats.graphdef_reader": "import_graph_def",
    "headrace.formats.tensor_proto": "make_ndarray make_tensor_proto",
    "headrace.ops.control.assertions": (
        "add_check_numerics_ops Assert assert_equal assert_greater assert_greater_equal "
        "assert_integer assert_less assert_less_equal assert_near assert_negative "
        "assert_non_negative assert_non_positive assert_none_equal assert_positive "
        "assert_proper_iterable assert_rank assert_rank_at_least assert_rank_in "
        "assert_same_float_dtype assert_scalar assert_type is_numeric_tensor"
    ),
    "headrace.ops.io.decoding": (
        "decode_compressed parse_tensor serialize_tensor"
    ),
    "headrace.ops.io.decoding_csv": (
        "decode_csv"
    ),
    "headrace.ops.math.fft": (
        "fft fft2d fft3d ifft ifft2d ifft3d"
    ),
    "headrace.ops.io.file_ops": (
        "matching_files read_file write_file"
    ),
    "headrace.ops.linalg.decompositions": (
        "cholesky matrix_determinant matrix_inverse qr self_adjoint_eig self_adjoint_eigvals svd"
    ),
    "headrace.ops.linalg.solving": (
        "cholesky_solve matrix_solve matrix_solve_ls matrix_triangular_solve"
    ),
    "headrace.ops.io.parsing_features": (
        "FixedLenFeature FixedLenSequenceFeature SparseFeature VarLenFeature parse_example "
        "parse_single_example parse_single_sequence_example"
    ),
    "headrace.variables.partitioners": (
        "create_partitioned_variables fixed_size_partitioner min_max_variable_partitioner "
        "variable_axis_size_partitioner"
    ),
    "headrace.ops.io.printing": (
        "Print print=print_v2 timestamp"
    ),
    "headrace.ops.random.gamma_poisson": (
        "random_gamma random_poisson"
    ),
    "headrace.ops.control.py_func": (
        "numpy_function py_func"
    ),
    "headrace.ops.sparse.sparse_arithmetic": (
        "sparse_add sparse_maximum sparse_minimum sparse_reduce_max sparse_reduce_max_sparse "
        "sparse_reduce_sum sparse_reduce_sum_sparse sparse_softmax"
    ),
    "headrace.ops.sparse.sparse_tensor": (
        "convert_to_tensor_or_indexed_slices convert_to_tensor_or_sparse_tensor "
        "sparse_placeholder sparse_tensor_dense_matmul "
        "sparse_tensor_to_dense sparse_to_dense SparseTensor SparseTensorValue"
    ),
    "headrace.ops.io.sparse_rows": (
        "deserialize_many_sparse serialize_many_sparse serialize_sparse"
    ),
    "headrace.ops.sparse.sparse_arranging": (
        "sparse_concat sparse_fill_empty_rows sparse_mask sparse_merge sparse_reorder "
        "sparse_reset_shape sparse_reshape sparse_retain sparse_slice sparse_split "
        "sparse_to_indicator sparse_transpose"
    ),
    "headrace.ops.math.special": (
        "betainc digamma erf erfc igamma igammac lbeta lgamma polygamma zeta"
    ),
    "headrace.ops.strings.string_ops": (
        "reduce_join regex_replace string_join string_split string_strip substr"
    ),
    "headrace.ops.strings.string_encoding": (
        "decode_base64 encode_base64 string_to_hash_bucket string_to_hash_bucket_fast "
        "string_to_hash_bucket_strong"
    ),
    "headrace.ops.strings.string_numbers": "as_string decode_raw string_to_number",
    "headrace.variables.make_template": (
        "make_template"
    ),
})
