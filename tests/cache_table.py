"""Every place of the source tree that keeps results by a key, and the test of each.

``found()`` reads the tree: functions under ``lru_cache`` or ``cache`` that take arguments, maps of
modules, weak maps, and maps of objects in which a method looks something up and adds it.
``tests/test_cache_keys.py`` compares that with the tables below, so a new cache needs a line here,
and a line in ``CACHES`` needs a test in which the key is the same, or as good as the same, and the
answer is not.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

__all__ = ["CACHES", "ONE_CALL", "PURE", "REGISTRIES", "STATE", "found", "one_call_classes"]

SOURCE = Path(__file__).parent.parent / "src" / "headrace"
_MAPS = frozenset(
    ["dict", "OrderedDict", "WeakKeyDictionary", "WeakValueDictionary", "defaultdict", "Counter"]
)

_HERE = "tests/test_cache_keys.py::"
_STRUCTURES = "tests/test_structures.py::"
_MEMBERS = _STRUCTURES + "test_members_of_a_structure_do_not_answer_for_each_other"
_KEPT = _STRUCTURES + "test_kept_values_follow_their_variables"
_CALLED = _STRUCTURES + "test_functions_by_what_they_are_called_with"
_SIGNED = _HERE + "test_native_code_of_attributes_that_compare_equal"
_EDITED = _HERE + "test_a_module_that_is_edited_and_loaded_again_is_converted_again"
_SPECIALISED = _HERE + "test_plans_for_fed_shapes_by_every_dimension"

#: What is kept, and the test in which its key does not tell the answers apart by chance.
CACHES: dict[str, str] = {
    "eager/execute.py:_plans": _HERE + "test_eager_calls_whose_attributes_compare_equal",
    "autograph/conversion.py:_cache": _HERE + "test_converted_code_is_not_that_of_a_dead_function",
    "autograph/source_code.py:_trees": _EDITED,
    "autograph/source_code.py:_lambdas": _EDITED,
    "kernels/onednn/onednn_library.py:Api.tensors": _HERE + "test_descriptions_of_equal_sizes",
    "ops/strings/regex.py:compile_pattern": _HERE + "test_patterns_with_and_without_groups",
    "core/convert.py:_cache": _HERE + "test_a_conversion_that_is_registered_later",
    "executors/shared_code.py:_families": _MEMBERS,
    "executors/shared_code.py:_Family.variants": _MEMBERS,
    "lower/emit_lines.py:_factories": _MEMBERS,
    "lower/fused_code.py:_code": _MEMBERS,
    "executors/specialised.py:SpecialisedRuns.made": _SPECIALISED,
    "executors/specialised.py:SpecialisedRuns.reasons": _SPECIALISED,
    "lower/signature_counts.py:SignatureCounts.counts": _HERE
    + "test_bound_runs_see_what_changed_in_place",
    "lower/session_state.py:State.bindings": _HERE + "test_bound_runs_see_what_changed_in_place",
    "lower/session_state.py:State.kept": _KEPT,
    "lower/session_state.py:State.groups": _KEPT,
    "lower/native_groups.py:_known": _SIGNED,
    "rewrite/rewrite_state.py:RewriteState.attribute_keys": (
        _HERE + "test_keys_of_attributes_that_are_gone"
    ),
    "kernels/native/group_kernels.py:group_kernel": _SIGNED,
    "kernels/native/group_reductions.py:reduction_kernel": _SIGNED,
    "kernels/native/llvm_library.py:Llvm._modules": _HERE + "test_native_code_on_disk",
    "kernels/native/update_kernels.py:_updates": (
        _HERE + "test_updates_that_differ_in_one_attribute"
    ),
    "kernels/packed_weights.py:PackedForms.forms": (
        "tests/lower/test_packing.py::test_a_matrix_and_its_transpose_are_two_packed_forms"
    ),
    "kernels/numpy/gemm.py:_ones": _HERE + "test_kept_arrays_cannot_be_written",
    "kernels/numpy/lstm_kernels.py:_rows": (_HERE + "test_cells_that_differ_in_their_forget_bias"),
    "functions/function.py:Function._bound": _CALLED,
    "functions/function_gradients.py:Part._variants": _CALLED,
    "functions/function_gradients.py:_Variant._backward": _CALLED,
    "functions/defined_function.py:OverloadedFunction._overload": (
        _HERE + "test_a_defun_of_several_types"
    ),
    "rewrite/engine.py:_tables": _MEMBERS,
    "runtime/buffers.py:_shelves": "tests/runtime/test_buffers.py::test_results_stay_what_they_are",
    "wire/tensor_bundle.py:BundleReader._files": _HERE + "test_large_variables_under_the_same_name",
    "wire/tensor_bundle.py:BundleReader._known": _HERE + "test_a_checkpoint_under_the_same_name",
    "wire/slice_files.py:SliceFileReader._known": _HERE + "test_a_checkpoint_under_the_same_name",
}

#: Functions whose arguments decide everything; all of them are computed again and compared while
#: programs run (``test_kept_results_are_what_is_computed``).
PURE: frozenset[str] = frozenset(
    [
        "api/raw_ops.py:_allowed",
        "api/raw_ops.py:_results",
        "api/raw_ops.py:generated",
        "api/raw_ops.py:raw",
        "lower/select_calls.py:_call_text",
        "autograph/call.py:_users_files",
        "autograph/call.py:namespace_for",
        "cli/symbol_check.py:_found",
        "cli/symbol_check.py:_have_in_v2",
        "cli/symbol_check.py:have",
        "cli/symbol_check.py:tested",
        "core/build.py:_result_class",
        "core/device_names.py:_canonical_device",
        "core/stacks.py:canonical",
        "core/trace.py:_internal",
        "data/runtime/csv_records.py:_field_end",
        "kernels/native/activation_loops.py:_kernel",
        "kernels/native/cell_kernels.py:_cell",
        "kernels/native/cell_kernels.py:_cell_grad",
        "kernels/native/openmp_team.py:_team",
        "kernels/native/philox_kernels.py:_kernel",
        "kernels/native/resize_kernels.py:_kernel",
        "kernels/native/row_products.py:_kernel",
        "kernels/numpy/gemm.py:_few_ones",
        "kernels/numpy/im2col.py:_positions",
        "kernels/numpy/im2col.py:geometry",
        "kernels/numpy/philox.py:_round_keys",
        "kernels/numpy/pooling_kernels.py:_places",
        "kernels/numpy/pooling_kernels.py:windows",
        "kernels/numpy/resample.py:_area_matrix",
        "kernels/numpy/resample.py:_bicubic_axes",
        "kernels/numpy/resample.py:_bicubic_matrix",
        "kernels/numpy/resample.py:_bilinear_axes",
        "kernels/numpy/resample.py:_bilinear_matrix",
        "kernels/numpy/resample.py:_cubic_table",
        "kernels/numpy/resample.py:_flat_pairs",
        "kernels/numpy/resample.py:_flat_quadruples",
        "kernels/numpy/resample.py:_nearest_indices",
        "kernels/native/tile_updates.py:_kernel",
        "kernels/numpy/resample.py:_pairs",
        "kernels/numpy/resample.py:_quadruples",
        "kernels/numpy/resample.py:_row_blocks",
        "lower/fusion.py:_broadcasting",
        "lower/executable.py:options_for",
        "lower/select_forms.py:_inverse_of",
        "lower/select_forms.py:_number_of",
        "lower/select_forms.py:_of_matrices",
        "lower/select_forms.py:inverse",
        "lower/storage_reuse.py:_size",
        "kernels/native/recurrent_kernels.py:_backward",
        "kernels/native/recurrent_kernels.py:_forward",
        "kernels/native/scatter_kernels.py:_kernel",
        "ops/state/forest_ops.py:forest_params",
        "dropin/removed_names.py:_uses_tensorflow",
        "lower/segment_cuts.py:_has_rule",
        "program/binding_times.py:why_no_computation",
        "program/binding_times.py:why_no_function",
        "executors/shared_code.py:_may_share",
        "program/constants.py:_have_notes",
        "lower/segment_cuts.py:_is_small",
        "ops/io/parsing.py:parser",
        "ops/io/parsing_sequence.py:_wanted",
        "ops/io/variable_restores.py:assignment_of_stored",
        "ops/math/reduction_kernels.py:_normal_axes",
        "ops/nn/conv_shapes.py:_output_dims",
        "ops/nn/sparse_cross_entropy.py:row_starts",
        "ops/nn/pool_ops.py:_pooled",
        "ops/strings/regex.py:_rewrite_parts",
        "runtime/cores.py:_default",
        "wire/crc.py:_power",
    ]
)

#: Written while modules are imported, or by the user's own registration; never forgotten.
REGISTRIES: frozenset[str] = frozenset(
    [
        "api/missing.py:_NOTHING",
        "api/paths.py:PATHS",
        "api/v2/name_lookup.py:_NOTHING",
        "autodiff/registry.py:_registered",
        "core/collection_protos.py:_registered",
        "core/dtypes.py:_LOOKUP",
        "core/nest.py:_nested_types",
        "core/opdef.py:ALL_OPS",
        "dropin/package_names.py:_added",
        "dropin/old_calls.py:_replaced",
        "dropin/one_element_arrays.py:_replaced",
        "dropin/removed_names.py:_replaced",
        "kernels/native/element_rules.py:RULES",
        "distributions/divergences.py:_DIVERGENCES",
        "lower/segment_rules.py:RULES",
        "lower/segment_rules.py:TOO_LARGE",
        "ops/nn/normalization.py:_GRAD_OPS",
        "ops/nn/pool_ops.py:_OPS",
        "session/placement.py:LOCAL_TARGETS",
    ]
)

#: What the program itself defined: variables, slots, collections, elements of a queue.
STATE: frozenset[str] = frozenset(
    [
        "runtime/code_pages.py:_idle",
        "api/platform/tf_logging.py:_calls",
        "core/func_graph.py:FuncGraph._captured",
        "core/func_graph.py:FuncGraph._handles",
        "core/func_graph.py:FuncGraph.outer_handles",
        "core/graph.py:Graph._collections",
        "distributions/bijectors.py:Bijector._known",
        "data/runtime/stages.py:Context.generators",
        "eager/eager_state_ops.py:_shared",
        "eager/graph_tape.py:GraphNotes.spans",
        "eager/graph_tape.py:GraphNotes.watches",
        "functions/retracing.py:_by_code",
        "layers/naming.py:_counters",
        "layers/rnn/special_cells.py:PhasedLSTMCell._maps",
        "lower/select_packed.py:_warn",
        "ops/control/py_func.py:_functions",
        "ops/control/tensor_array_ops.py:ArrayState.grads",
        "ops/queues/barrier_ops.py:BarrierResource._incomplete",
        "runtime/buffers.py:_made",
        "train/input_queues/queue_runner.py:QueueRunner._runs_per_session",
        "train/moving_averages.py:ExponentialMovingAverage._averages",
        "train/optimizers/matrix_optimizers.py:GGTOptimizer._flat",
        "train/optimizers/optimizer.py:Optimizer._non_slot_dict",
        "train/optimizers/optimizer.py:Optimizer._slots",
        "train/optimizers/optimizer_v2.py:OptimizerV2._hyper",
        "train/optimizers/optimizer_v2.py:OptimizerV2._slots",
        "train/optimizers/optimizer_v2.py:OptimizerV2._step",
        "variables/variable_store.py:VariableStore._partitioned_vars",
        "variables/variable_store.py:VariableStore._vars",
    ]
)

#: Classes whose objects live as long as one call (a pass over a graph, one file that is written).
ONE_CALL: frozenset[str] = frozenset(
    [
        "Builder",
        "BundleWriter",
        "CodeLines",
        "DataGraph",
        "FunctionLibrary",
        "GroupByReducerPass",
        "GroupByWindowPass",
        "Library",
        "Loop",
        "NodeImporter",
        "ObjectGraph",
        "Restoration",
        "RunContext",
        "SegmentBinder",
        "SegmentCode",
        "ShapeFacts",
        "Slots",
        "Stores",
        "Tape",
        "ValueNames",
        "_Backward",
        "_Calls",
        "_Groups",
        "_Places",
        "Arena",
        "AssetFolder",
        "BoundValues",
        "ControlOutputs",
        "SavedObjects",
        "_Beam",
        "BodyImporter",
        "_Builder",
        "VariableReads",
        "_Check",
        "_Copier",
        "_Finder",
        "_Freezer",
        "_Objects",
        "_Region",
        "_Replacing",
        "_ShardsWriter",
        "_Shared",
        "_Sharing",
        "_Writer",
    ]
)


def found() -> Iterator[str]:
    """``path:name`` of everything in the tree that may be a cache."""
    for where, tree in _trees():
        for name in sorted({*_functions(tree), *_modules_maps(tree), *_objects_maps(tree)}):
            yield f"{where}:{name}"


def one_call_classes() -> set[str]:
    """Classes of the tree."""
    return {c.name for _, t in _trees() for c in t.body if isinstance(c, ast.ClassDef)}


@functools.cache
def _trees() -> list[tuple[str, ast.Module]]:
    paths = sorted(SOURCE.rglob("*.py"))
    return [(p.relative_to(SOURCE).as_posix(), ast.parse(p.read_text())) for p in paths]


def _called(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _functions(tree: ast.Module) -> Iterator[str]:
    """Functions whose results are kept; without arguments there is one result."""
    for node in ast.walk(tree):
        is_function = isinstance(node, ast.FunctionDef) and _takes_arguments(node.args)
        if is_function and any(_called(d) in ("lru_cache", "cache") for d in node.decorator_list):
            yield node.name
    for node in tree.body:
        made = node.value.func if isinstance(getattr(node, "value", 0), ast.Call) else None
        if isinstance(made, ast.Call) and _called(made) == "lru_cache":
            yield ast.unparse(node.targets[0])


def _takes_arguments(given: ast.arguments) -> bool:
    return bool(given.posonlyargs or given.args or given.kwonlyargs or given.vararg or given.kwarg)


def _is_new_map(node: ast.expr | None) -> bool:
    if isinstance(node, ast.IfExp):
        return _is_new_map(node.body) or _is_new_map(node.orelse)
    if isinstance(node, ast.Dict):
        return not node.keys
    return isinstance(node, ast.Call) and _called(node) in _MAPS and not node.args


def _assigned(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree) if not isinstance(tree, ast.Module) else tree.body:
        if isinstance(node, ast.Assign) and _is_new_map(node.value):
            yield _name(node.targets[0]), node.value
        elif isinstance(node, ast.AnnAssign) and node.value and _is_new_map(node.value):
            yield _name(node.target), node.value


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute) and _called(node.value) == "self":
        return f"self.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _modules_maps(tree: ast.Module) -> Iterator[str]:
    yield from (name for name, _ in _assigned(tree) if name)


def _objects_maps(tree: ast.Module) -> Iterator[str]:
    """Maps of objects that a method looks into and adds to, and all weak ones."""
    for owner in ast.walk(tree):
        if not isinstance(owner, ast.ClassDef):
            continue
        maps = {n: v for n, v in _assigned(owner) if n.startswith("self.")}
        weak = {n for n, v in maps.items() if "Weak" in ast.unparse(v)}
        methods = [m for m in owner.body if isinstance(m, ast.FunctionDef)]
        looked_up = {n for m in methods for n in _looked_up_and_added(m)}
        for name in sorted(weak | (looked_up & maps.keys())):
            yield f"{owner.name}.{name[5:]}"


def _looked_up_and_added(function: ast.FunctionDef) -> set[str]:
    reads, writes = set(), set()
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript):
            (writes if isinstance(node.ctx, ast.Store) else reads).add(_name(node.value))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("get", "setdefault"):
                reads.add(_name(node.func.value))
            if node.func.attr == "setdefault":
                writes.add(_name(node.func.value))
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            reads.add(_name(node.comparators[0]))
    return reads & writes
