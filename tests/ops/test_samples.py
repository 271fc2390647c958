"""The sample table.

Every op, on each executor, against TensorFlow's values and against finite differences.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from headrace.autodiff.gradients import gradients
from headrace.core import dtypes, shapes
from headrace.core.build import apply
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import Graph
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.opdef import ALL_OPS, Arg, lookup
from headrace.data.ops.load_dataset_ops import load_ops as load_data_ops
from headrace.ops import load_all
from headrace.ops.array.basic import placeholder
from headrace.session.session import Session
from tests.golden import store
from tests.golden.proven import ops_in_programs
from tests.tolerances import FINITE_DIFFERENCES, assert_close

load_all()
load_data_ops()

EXECUTORS = ["numpy", "reference"]

FOREST_OPS = [n for n, d in ALL_OPS.items() if d.kernel.__module__.endswith(".forest_ops")] + [
    "DecisionTreeResourceHandleOp",
    "FertileStatsResourceHandleOp",
]
#: Ops that make no sense alone; each is proven by the test file that is named.
_LOOPS = "one part of tf.cond or tf.while_loop; test_control_flow.py"
_HANDLES = "works on a handle that another op makes; test_handle_programs.py"
EXEMPT: dict[str, str] = {
    **dict.fromkeys(
        ["GenerateVocabRemapping", "LoadAndRemapMatrix"],
        "reads files; golden/warm_start_cases.py has what TensorFlow gives",
    ),
    **dict.fromkeys(
        ["RaggedTensorToVariant", "RaggedTensorFromVariant"],
        "variants are neither fed nor fetched; datasets of ragged_dataset_cases.py",
    ),
    **dict.fromkeys(
        ["DenseBincount", "RaggedBincount", "SparseBincount", "RaggedTensorToTensor"],
        "stands in graphs of Keras' text layers; test_saved_model.py",
    ),
    **dict.fromkeys(
        (
            n
            for n, d in ALL_OPS.items()
            if d.kernel.__module__.endswith((".accumulator_ops", ".staging_ops", ".barrier_ops"))
        ),
        "runs wait for each other: golden/coordination_cases.py",
    ),
    "SparseCross": "lists of several kinds: golden/column_cases.py",
    **dict.fromkeys(
        [
            "AudioSummary",
            "AudioSummaryV2",
            "HistogramSummary",
            "ImageSummary",
            "MergeSummary",
            "ScalarSummary",
            "TensorSummaryV2",
        ],
        "gives a message; test_summaries.py",
    ),
    **dict.fromkeys(
        (n for n, d in ALL_OPS.items() if d.kernel.__module__.endswith(".summary_writer_ops")),
        "writes an event file; test_summaries.py",
    ),
    **dict.fromkeys(
        [
            "FIFOQueueV2",
            "FixedLengthRecordReaderV2",
            "IdentityReaderV2",
            "PaddingFIFOQueueV2",
            "PriorityQueueV2",
            "QueueCloseV2",
            "QueueDequeueManyV2",
            "QueueDequeueUpToV2",
            "QueueDequeueV2",
            "QueueEnqueueManyV2",
            "QueueEnqueueV2",
            "QueueIsClosedV2",
            "QueueSizeV2",
            "RandomShuffleQueueV2",
            "ReaderNumRecordsProducedV2",
            "ReaderNumWorkUnitsCompletedV2",
            "ReaderReadUpToV2",
            "ReaderReadV2",
            "ReaderResetV2",
            "ReaderRestoreStateV2",
            "ReaderSerializeStateV2",
            "TFRecordReaderV2",
            "TextLineReaderV2",
            "WholeFileReaderV2",
        ],
        "needs a queue or a reader; test_queue_programs.py",
    ),
    "GatherTree": "of contrib.seq2seq's own library; tests/layers (beam search against TF 1.15)",
    **dict.fromkeys(
        (
            n
            for n in ALL_OPS
            if re.search("HashTable|LookupTable|InitializeTable|SetOperation|SetSize", n)
        ),
        "works on a table or on the parts of a sparse tensor; api/test_library_cases.py",
    ),
    "_FusedMatMul": "made by rewriting only; test_fused_products.py",
    "_FusedConv2D": "made by rewriting only; test_onednn_conv.py",
    "_InverseSize": "made by rewriting only; test_rules.py",
    "_ReadAcrossResize": "made by program/snapshot.py only; golden/state_cases.py",
    "_PackedWeights": "made by planning only; test_packing.py",
    "_PackedConv2D": "made by planning only; test_packing.py",
    "_PackedMatMul": "made by planning only; test_packing.py",
    "_PackedLSTMLayer": "made by planning only; test_packing.py",
    **dict.fromkeys(
        ["_Attention", "_Gelu", "_LayerNorm"], "made by rewriting only; test_model_patterns.py"
    ),
    **dict.fromkeys(
        ["_GeluGrad", "_LayerNormGrad", "_LayerNormTraining", "_SoftmaxGrad"],
        "made by rewriting only; test_training_patterns.py",
    ),
    **dict.fromkeys(
        ["_LSTMCell", "_LSTMCellGrad", "_LSTMLayer", "_LSTMLayerGrad"],
        "made by rewriting only; test_lstm_cells.py",
    ),
    **dict.fromkeys(
        ["_AddProduct", "_AddRows", "_RowSum", "_SumOfProducts"],
        "made by rewriting only; test_loop_product_sums.py",
    ),
    "ImageProjectiveTransformV2": "an op of tf.contrib.image; golden/contrib_cases.py",
    **dict.fromkeys(
        ["BytesInUse", "BytesLimit", "MaxBytesInUse"],
        "another value each time; test_memory_stats.py",
    ),
    **dict.fromkeys(FOREST_OPS, "works on a tree of the session; golden/forest_cases.py"),
    "Timestamp": "another value each time; test_handle_programs.py",
    **dict.fromkeys(
        ["FractionalAvgPool", "FractionalMaxPool"],
        "stateful in the session; golden/namespace_cases.py",
    ),
    **dict.fromkeys(
        (n for n, d in ALL_OPS.items() if d.kernel.__module__.endswith(".checkpoint_ops")),
        "writes or reads files, names them; test_saver.py",
    ),
    "Placeholder": "has no value of its own: every sample is fed through it",
    **dict.fromkeys(
        ["Variable", "VariableV2", "VarHandleOp"],
        "every sample with a written-to input is made with it",
    ),
    **dict.fromkeys(
        ["EagerPyFunc", "PyFunc", "PyFuncStateless"],
        "calls a function of the process; test_handle_programs.py",
    ),
    **dict.fromkeys(["Enter", "Exit", "LoopCond", "Merge", "NextIteration", "Switch"], _LOOPS),
    **dict.fromkeys(["RefEnter", "RefExit", "RefMerge", "RefNextIteration", "RefSwitch"], _LOOPS),
    **dict.fromkeys(["StackV2", "StackPushV2", "StackPopV2", "StackCloseV2"], _HANDLES),
    **dict.fromkeys((n for n in ALL_OPS if n.startswith("TensorArray")), _HANDLES),
    **dict.fromkeys(
        (n for n in ALL_OPS if n.startswith("TensorList") or n == "EmptyTensorList"),
        "its value is a list; formats/test_graphdef.py",
    ),
    "DisableCopyOnRead": "does nothing",
    **dict.fromkeys(
        (n for n, d in ALL_OPS.items() if d.kernel.__module__.startswith("headrace.data.")),
        "its value is a dataset, an iterator or an element of one; test_data_*.py",
    ),
}

PAIRS: list[tuple[str, str, Any]] = []
NOT_LOADED: dict[str, str] = {}
for _family in store.families():
    try:
        PAIRS += [(_family, key, sample) for key, sample in store.load_samples(_family)]
    except Exception as e:  # one broken module must not hide the others
        NOT_LOADED[_family] = f"{type(e).__name__}: {e}"
IDS = [f"{family}:{key}" for family, key, _ in PAIRS]
WITH_GRAD = [(family, key, s) for family, key, s in PAIRS if s.grad]
GRAD_IDS = [f"{family}:{key}" for family, key, _ in WITH_GRAD]


# the table itself ---------------------------------------------------------------------------------


def test_sample_modules_load() -> None:
    assert not NOT_LOADED


def test_every_op_is_in_the_table() -> None:
    missing = sorted(set(ALL_OPS) - {s.op for _, _, s in PAIRS} - set(EXEMPT))
    assert not missing, f"{len(missing)} ops have no sample in tests/samples: {', '.join(missing)}"


def test_exemptions_are_needed() -> None:
    sampled = {s.op for _, _, s in PAIRS}
    assert not [op for op in EXEMPT if op in sampled or op not in ALL_OPS]


def test_the_files_that_exemptions_name_exist() -> None:
    tests = Path(__file__).parent.parent
    names = {p.name for folder in (tests, tests.parent / "src") for p in folder.rglob("*.py")}
    for table in (EXEMPT, NOT_COMPARED, COMPARED_ELSEWHERE, UNCHECKED_GRADIENTS):
        for op, why in table.items():
            for file in re.findall(r"(\w+\.py)\b", why):
                assert file in names, (op, why)


#: Ops whose values are compared with TensorFlow's neither by a sample nor in a program; each with
#: the reason.
_OLD_NAME = (
    "the op under its older name; old graphs only. TensorFlow's API cannot make it, the newer "
    "name is compared"
)
_FRAMES = (
    "passes a reference through a loop's frame; tf.while_loop does not make it. "
    "test_control_flow.py"
)
NOT_COMPARED: dict[str, str] = {
    **{n: why for n, why in EXEMPT.items() if n.startswith("_") and n != "_SaveDataset"},
    **dict.fromkeys(
        [
            "ExperimentalGroupByReducerDataset",
            "ExperimentalGroupByWindowDataset",
            "ExperimentalMapAndBatchDataset",
            "ExperimentalMapDataset",
            "ExperimentalParallelInterleaveDataset",
            "ExperimentalScanDataset",
            "ExperimentalTakeWhileDataset",
        ],
        _OLD_NAME,
    ),
    **dict.fromkeys(["RefExit", "RefNextIteration"], _FRAMES),
    **dict.fromkeys(
        ["ReaderRestoreStateV2", "ReaderSerializeStateV2"],
        "the state is a string of Headrace's own form",
    ),
}


#: Ops that TensorFlow 1.15 does not compute on a CPU: there is nothing to compare with.
NO_CPU_KERNEL: dict[str, str] = {
    "MaxPoolGradGradWithArgmax": "for GPUs only",
    "TileGrad": "no kernel at all",
}

#: Ops whose effect is compared with files or programs of TensorFlow's elsewhere.
COMPARED_ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(
        ["MatrixDiagV3", "MatrixDiagPartV3", "MatrixSetDiagV3"],
        "with TensorFlow 2.21: test_v2_ragged.py",
    ),
    **dict.fromkeys(
        (n for n, d in ALL_OPS.items() if d.kernel.__module__.endswith(".checkpoint_ops")),
        "checkpoints byte for byte, V1 files and SavedModels: tests/wire, tests/train, "
        "tests/formats",
    ),
    **dict.fromkeys(
        ["LoadDataset", "SnapshotDatasetV2"],
        "is compared eagerly (test_data_golden.py), where ops are not recorded",
    ),
    "DisableCopyOnRead": "models saved by TF 2.21: tests/formats",
    **dict.fromkeys(
        ["DenseBincount", "RaggedBincount", "SparseBincount", "RaggedTensorToTensor"],
        "Keras' text layers, saved by TF 2.21: tests/formats/test_saved_model.py",
    ),
    "GatherTree": "beam search: tests/layers",
    "ImageProjectiveTransformV2": "tests/api/test_library_cases.py (projective_images)",
    **dict.fromkeys(
        [
            "AudioSummary",
            "AudioSummaryV2",
            "HistogramSummary",
            "ImageSummary",
            "MergeSummary",
            "ScalarSummary",
        ],
        "messages against TF 1.15's: tests/train/test_summaries.py",
    ),
    **dict.fromkeys(
        (n for n, d in ALL_OPS.items() if d.kernel.__module__.endswith(".summary_writer_ops")),
        "event files against TF 1.15's and 2.21's: tests/train/test_summaries.py",
    ),
    "TensorSummaryV2": "read back by TensorBoard: tests/train/test_summaries.py",
}


@pytest.mark.once
def test_every_op_is_compared_with_tensorflow() -> None:
    compared = {s.op for _, _, s in PAIRS if s.golden} | ops_in_programs()
    compared |= COMPARED_ELSEWHERE.keys()
    missing = sorted(set(ALL_OPS) - compared - set(NOT_COMPARED) - set(NO_CPU_KERNEL))
    assert not missing, f"nothing compares these with TensorFlow: {', '.join(missing)}"
    assert not sorted(compared & (set(NOT_COMPARED) | set(NO_CPU_KERNEL)))
    assert len(NOT_COMPARED) < 40


def test_every_differentiable_op_has_its_gradient_checked() -> None:
    checked = {s.op for _, _, s in PAIRS if s.grad}
    without = checked | set(UNCHECKED_GRADIENTS) | set(EXEMPT)
    missing = sorted(n for n, d in ALL_OPS.items() if callable(d.grad) and n not in without)
    assert not missing, f"no sample checks the gradient of: {', '.join(missing)}"


#: Ops with a gradient function that finite differences cannot check here; each with the reason.
UNCHECKED_GRADIENTS: dict[str, str] = {
    "PreventGradient": "its gradient is an error",
    "FakeQuantWithMinMaxArgs": "steps have no slope; the straight-through one: small_cases",
    "FakeQuantWithMinMaxVars": "likewise",
    "FakeQuantWithMinMaxVarsPerChannel": "likewise",
    "QuantizeAndDequantizeV2": "likewise",
    "RefIdentity": "headrace.autodiff passes by it",
    "Cholesky": "the kernel reads one triangle, the gradient is symmetric; test_linalg.py",
    "RandomGamma": "random; test_random.py",
}


# signatures against TensorFlow's registry -------------------------------------------------------


@functools.cache
def registered() -> dict[str, Any]:
    with gzip.open(os.path.join(store.HERE, "opdefs.json.gz")) as f:
        return json.load(f)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", sorted(ALL_OPS))
def test_signature_is_tensorflows(name: str) -> None:
    opdef = ALL_OPS[name]
    theirs = registered().get(name)
    if theirs is None:
        assert name in NOT_IN_TENSORFLOW, f"TensorFlow 1.15 has no op named {name}"
        return
    assert [_arg_text(a) for a in opdef.inputs] == [tuple(a) for a in theirs["inputs"]]
    assert [_arg_text(a) for a in opdef.outputs] == [tuple(a) for a in theirs["outputs"]]
    ours = {a.name: a for a in opdef.attrs.values()}
    assert sorted(ours) == sorted(theirs["attrs"])
    for attr_name, (kind, *default) in theirs["attrs"].items():
        attr = ours[attr_name]
        assert attr.kind.replace("str", "string") == kind, f"kind of {attr_name}"
        assert attr.has_default == bool(default), f"default of {attr_name}"
        if default:
            assert _plain(attr.default) == _plain(default[0]), f"default of {attr_name}"


#: Ops of our own or of later TensorFlow versions.
NOT_IN_TENSORFLOW: dict[str, str] = {
    **dict.fromkeys(["DenseBincount", "RaggedBincount", "SparseBincount"], "is an op of TF 2"),
    **dict.fromkeys(["MatrixDiagV3", "MatrixDiagPartV3", "MatrixSetDiagV3"], "is an op of TF 2"),
    "_IgnoreErrorsLoggedDataset": "is IgnoreErrorsDataset with an attribute of TF 2",
    "ImageProjectiveTransformV2": "is in contrib.image's own library",
    "MaxBytesInUse": "is in contrib.memory_stats' own library",
    "BytesLimit": "is in contrib.memory_stats' own library",
    **dict.fromkeys(FOREST_OPS, "is in contrib.tensor_forest's own library"),
    "BytesInUse": "is in contrib.memory_stats' own library",
    "GatherTree": "is in contrib.seq2seq's own library, which the list of core ops leaves out",
    "_FusedMatMul": "is internal to TensorFlow (its list has no names with _); made by rewriting",
    "_FusedConv2D": "is internal to TensorFlow likewise",
    "_PackedWeights": "is Headrace's own",
    "_PackedConv2D": "is Headrace's own",
    "_PackedMatMul": "is Headrace's own",
    "_PackedLSTMLayer": "is Headrace's own",
    **dict.fromkeys(
        [
            "_AddProduct",
            "_AddRows",
            "_Attention",
            "_Gelu",
            "_GeluGrad",
            "_InverseSize",
            "_LayerNorm",
            "_LayerNormGrad",
            "_LayerNormTraining",
            "_LSTMCell",
            "_LSTMCellGrad",
            "_LSTMLayer",
            "_LSTMLayerGrad",
            "_ReadAcrossResize",
            "_RowSum",
            "_SoftmaxGrad",
            "_SumOfProducts",
        ],
        "Headrace's own; made by rewriting only",
    ),
    **dict.fromkeys(
        [
            "AssertCardinalityDataset",
            "DisableCopyOnRead",
            "LoadDataset",
            "ParallelBatchDataset",
            "ParallelInterleaveDatasetV4",
            "ParallelMapDatasetV2",
            "SnapshotDatasetV2",
        ],
        "is TensorFlow 2's",
    ),
    **dict.fromkeys(
        ["_LoadDataset", "_RerandomDataset", "_SaveDataset", "_StoppingInterleaveDataset"],
        "is Headrace's own, for what TensorFlow 2's datasets can say",
    ),
}


def _arg_text(arg: Arg) -> tuple[str, str]:
    if arg.type_list_attr:
        kind = "*" + arg.type_list_attr
    else:
        kind = arg.type_attr or arg.dtype.name  # type: ignore[union-attr]
    number = f"{arg.number_attr}*" if arg.number_attr else ""
    return arg.name, ("&" if arg.is_ref else "") + number + kind


def _plain(value: Any) -> Any:
    if isinstance(value, dtypes.DType):
        return value.name
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, str) and value.startswith("tensor {"):
        return [int(v) for v in re.findall(r"int_val: (-?[0-9]+)", value)]
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return pytest.approx(value, rel=1e-6) if isinstance(value, float) else value


# running samples --------------------------------------------------------------------------------


class Case:
    """A sample built in a graph of its own.

    Placeholders, variables for references and handles, the op.
    """

    def __init__(self, sample: Any, double: bool = False, known_shapes: bool = True) -> None:
        self.sample = sample
        self.opdef = lookup(sample.op)
        self.double = double
        self.known_shapes = known_shapes
        self.graph = Graph()
        self.tensors: dict[str, Any] = {}
        self.placeholders: dict[str, Any] = {}
        self.variables: dict[str, _Variable] = {}
        with self.graph.as_default():
            self._build()

    def _build(self) -> None:
        unknown = set(self.sample.inputs) - {a.name for a in self.opdef.inputs}
        assert not unknown, f"{self.opdef.name} has no inputs named {sorted(unknown)}"
        for arg in self.opdef.inputs:
            self.tensors[arg.name] = self._input(arg, self.sample.inputs[arg.name])
        attrs = {
            k: self._attr(k, v)
            for k, v in self.sample.attrs.items()
            if k not in self.opdef.inferred
        }
        apply(
            self.opdef, *(self.tensors[a.name] for a in self.opdef.inputs), name="sample", **attrs
        )
        self.op = self.graph.get_operation_by_name("sample")
        self.outputs = list(self.op.outputs)

    def _attr(self, name: str, value: Any) -> Any:
        if self.double and self.opdef.attrs[name].kind == "type":
            return {"float32": "float64", "complex64": "complex128"}.get(value, value)
        return value

    def array(self, value: Any) -> Any:
        array = np.asarray(value)
        if self.double:
            wide = {"float32": np.float64, "float16": np.float64, "complex64": np.complex128}
            return array.astype(wide.get(array.dtype.name, array.dtype))
        return array

    def _input(self, arg: Arg, value: Any) -> Any:
        if arg.is_list:
            self.placeholders[arg.name] = parts = [self._tensor(arg, self.array(v)) for v in value]
            return parts
        tensor = self._tensor(arg, self.array(value))
        if arg.name not in self.variables and arg.name not in self.sample.const:
            self.placeholders[arg.name] = tensor
        return tensor

    def _tensor(self, arg: Arg, array: Any) -> Any:
        if is_variable(arg):
            self.variables[arg.name] = variable = _Variable(array, arg.is_ref)
            return variable.tensor
        if arg.name in self.sample.const:
            return convert_to_tensor(array, name=arg.name)
        return placeholder(_dtype(array), array.shape if self.known_shapes else None)

    def feeds(self, inputs: dict[str, Any]) -> dict[Any, Any]:
        feeds: dict[Any, Any] = {}
        for name, target in self.placeholders.items():
            if name in self.sample.const:
                continue
            if isinstance(target, list):
                feeds.update((t, self.array(v)) for t, v in zip(target, inputs[name]))
            else:
                feeds[target] = self.array(inputs[name])
        return feeds

    def run(self, session: Session, fetches: Any, inputs: dict[str, Any]) -> Any:
        for name, variable in self.variables.items():
            session.run(variable.assign, {variable.value: self.array(inputs[name])})
        return session.run(fetches, self.feeds(inputs))


class _Variable:
    """A reference or resource variable, from the raw ops."""

    def __init__(self, array: Any, is_ref: bool) -> None:
        dtype = _dtype(array)
        self.value = placeholder(dtype, array.shape)
        if is_ref:
            self.tensor = apply(lookup("VariableV2"), shape=array.shape, dtype=dtype)
            self.assign = apply(lookup("Assign"), self.tensor, self.value).op
            self.read = apply(lookup("Identity"), self.tensor)
        else:
            name = f"resource_{id(self)}"
            self.tensor = apply(
                lookup("VarHandleOp"), shape=array.shape, dtype=dtype, shared_name=name
            )
            self.assign = apply(lookup("AssignVariableOp"), self.tensor, self.value)
            self.read = apply(lookup("ReadVariableOp"), self.tensor, dtype=dtype)


def is_variable(arg: Arg) -> bool:
    return arg.is_ref or arg.dtype is dtypes.resource


def _dtype(array: Any) -> dtypes.DType:
    return dtypes.string if array.dtype == object else dtypes.as_dtype(array.dtype)


@functools.cache
def golden(family: str) -> store.Golden:
    return store.Golden(store.path_of(family), ml_dtypes.bfloat16)


def wanted(family: str, key: str, sample: Any) -> tuple[list[Any] | None, dict[str, Any]]:
    """The outputs and the values of written-to inputs after the run, by hand or from TensorFlow."""
    if sample.expect is not None:
        expect = sample.expect if isinstance(sample.expect, (list, tuple)) else [sample.expect]
        return list(expect), {}
    if not sample.golden:
        return None, {}
    hint = f"make it with TensorFlow 1.15: python tests/golden/make.py {family}"
    if not os.path.exists(store.path_of(family)):
        pytest.fail(f"no golden file for {family}; {hint}")
    entry = golden(family).entry(key)
    if entry is None or entry["sig"] != store.fingerprint(sample):
        pytest.fail(
            f"the golden value of {key} is {'missing' if entry is None else 'out of date'}; {hint}"
        )
    if "error" in entry:
        pytest.fail(
            f"TensorFlow could not run {key}: {entry['error']}; give golden=False, why and expect"
        )
    return golden(family).outputs(key), golden(family).after(key)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(("family", "key", "sample"), PAIRS, ids=IDS)
def test_values(family: str, key: str, sample: Any, executor: str) -> None:
    outputs, after = wanted(family, key, sample)
    case = Case(sample)
    with Session(graph=case.graph, executor=executor) as session:
        got = case.run(session, case.outputs or [case.op], sample.inputs)
        got = got if case.outputs else []
        check_declared(case, got)
        if sample.check is not None:
            sample.check(got, outputs)
        elif outputs is not None:
            assert len(got) == len(outputs)
            for i, (g, w) in enumerate(zip(got, outputs)):
                assert_close(g, w, sample.tol, f"output {i}")
        for name, value in after.items():
            assert_close(
                session.run(case.variables[name].read), value, sample.tol, f"{name} after the run"
            )


def check_declared(case: Case, got: list[Any]) -> None:
    """Declared dtype exactly; static shape compatible with the real one."""
    for tensor, value in zip(case.outputs, got):
        array = np.asarray(value)
        have = dtypes.string if array.dtype.kind in "OSU" else dtypes.as_dtype(array.dtype)
        assert have is tensor.dtype.base_dtype, (
            f"{tensor.name} is declared {tensor.dtype.name}, is {array.dtype}"
        )
        static = shapes.to_plain(tensor.shape)
        assert shapes.compatible(static, array.shape), (
            f"{tensor.name}: static {static}, real {array.shape}"
        )


#: Samples of ops that refuse inputs of unknown shape, as in TF 1.15.
WANT_SHAPES = {
    "ParallelConcat": "must be fully defined",
    "SpaceToBatchND": "block_shape must have rank 1",
    "BatchToSpaceND": "block_shape must have rank 1",
}


@pytest.mark.parametrize(("family", "key", "sample"), PAIRS, ids=IDS)
def test_unknown_shapes(family: str, key: str, sample: Any) -> None:
    """Shape rules take inputs of unknown rank, and then promise nothing that is not so."""
    known = Case(sample)
    try:
        unknown = Case(sample, known_shapes=False)
    except ValueError as error:
        assert sample.op in WANT_SHAPES, error
        assert WANT_SHAPES[sample.op] in str(error)
        return
    for a, b in zip(known.outputs, unknown.outputs):
        assert shapes.compatible(shapes.to_plain(a.shape), shapes.to_plain(b.shape))
        assert a.dtype is b.dtype


# gradients --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "key", "sample"), WITH_GRAD, ids=GRAD_IDS)
@pytest.mark.usefixtures("any_float_type")
def test_gradient(family: str, key: str, sample: Any) -> None:
    case = Case(sample, double=not sample.single)
    chosen = range(len(case.outputs)) if sample.grad_outputs is None else sample.grad_outputs
    ys = [
        case.outputs[i]
        for i in chosen
        if case.outputs[i].dtype.is_floating or case.outputs[i].dtype.is_complex
    ]
    xs = {name: _flat(case.tensors[name]) for name in sample.grad}
    with Session(graph=case.graph) as session:
        values = case.run(session, ys, sample.inputs)
        cotangents = [cotangent(np.asarray(v), i) for i, v in enumerate(values)]
        with case.graph.as_default():
            found = {
                name: gradients(ys, list(tensors), grad_ys=cotangents)
                for name, tensors in xs.items()
            }

        def loss(inputs: dict[str, Any]) -> float:
            out = case.run(session, ys, inputs)
            return float(sum(np.sum((np.conj(g) * y).real) for g, y in zip(cotangents, out)))

        for name, parts in found.items():
            assert all(p is not None for p in parts), f"no gradient for {name}"
            got = case.run(session, [_fetch(p) for p in parts], sample.inputs)
            for i, g in enumerate(got):
                where = i if isinstance(sample.inputs[name], (list, tuple)) else None
                check_against_differences(case, loss, name, where, g)


def _flat(tensors: Any) -> list[Any]:
    return list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]


def _fetch(gradient: Any) -> Any:
    return convert_to_tensor(gradient) if isinstance(gradient, IndexedSlices) else gradient


def cotangent(value: Any, salt: int) -> Any:
    rng = np.random.default_rng(1234 + salt)
    g = rng.uniform(0.5, 1.5, value.shape)
    if value.dtype.kind == "c":
        g = g + 1j * rng.uniform(0.5, 1.5, value.shape)
    return g.astype(value.dtype)


def check_against_differences(case: Case, loss: Any, name: str, part: int | None, got: Any) -> None:
    """Every element (at most 64, spread evenly) moved by a small step either way.

    Complex ones in both directions.
    """
    given = case.sample.inputs[name]
    base = np.asarray(case.array(given if part is None else given[part]))
    got = np.asarray(got)
    assert got.shape == base.shape, f"gradient of {name}: shape {got.shape}, input {base.shape}"
    assert got.dtype == base.dtype, f"gradient of {name}: dtype {got.dtype}, input {base.dtype}"
    step, rtol, atol = FINITE_DIFFERENCES["float64" if case.double else "float32"]
    for at in np.unique(np.linspace(0, base.size - 1, 64).astype(int)) if base.size else ():
        where = np.unravel_index(at, base.shape)
        slope = difference(case, loss, name, part, base, where, step)
        if base.dtype.kind == "c":
            slope = slope + 1j * difference(case, loss, name, part, base, where, 1j * step)
        np.testing.assert_allclose(got[where], slope, rtol, atol, err_msg=f"d/d{name}{list(where)}")


def difference(
    case: Case, loss: Any, name: str, part: int | None, base: Any, where: Any, step: Any
) -> Any:
    step = step * max(1.0, abs(base[where]))
    sides = []
    for sign in (1, -1):
        moved = base.copy()
        moved[where] += sign * step
        inputs = dict(case.sample.inputs)
        if part is None:
            inputs[name] = moved
        else:
            inputs[name] = [moved if i == part else v for i, v in enumerate(inputs[name])]
        sides.append(loss(inputs))
    return (sides[0] - sides[1]) / (2 * abs(step))
