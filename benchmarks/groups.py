"""The groups of cases: which rows a table has, and beside which libraries.

GROUPS["models"].rows[0].case                 # "mlp.train"
GROUPS["models"].libraries()                  # ["headrace", "tf", "xla", ...]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from benchmarks import (
    busy_cases,
    data_cases,
    eager_cases,
    engine_rows,
    files_cases,
    machine_cases,
    program_cases,
)
from benchmarks.libraries import OWN
from benchmarks.model_cases import LATENCY, THROUGHPUT
from benchmarks.models import MODELS
from benchmarks.rows import Best, Row, Target

__all__ = ["GROUPS", "Group", "find_group"]

#: Ahead of TensorFlow's sessions, and at most 5 % behind the best of the peers.
_BAR = {"must": Target({"tf": 1}, of_best=0.95)}

_SHORT = {
    "mlp": "MLP",
    "lenet": "LeNet",
    "resnet": "ResNet",
    "lstm": "LSTM",
    "lstm_loop": "LSTM loop",
    "gpt": "transformer",
}


@dataclass(frozen=True)
class Group:
    """``targets`` are the headings of their columns.

    ``most_rounds`` for cases that take long and hardly differ.
    """

    name: str
    title: str
    rows: list[Row]
    peers: tuple[str, ...]
    targets: tuple[str, ...] = ("must",)
    most_rounds: dict[str, int] = field(default_factory=dict)

    def libraries(self, row: Row | None = None) -> list[str]:
        peers = self.peers if row is None or row.peers is None else row.peers
        return [OWN, *peers]

    def cases(self) -> list[str]:
        return list(dict.fromkeys(row.case for row in self.rows))


def _training_rows() -> list[Row]:
    return [
        Row(
            f"{model.title}, batch {model.batch}",
            f"{model.name}.train",
            Best("run"),
            _BAR,
            work=model.training_work,
            short=_SHORT[model.name],
        )
        for model in MODELS.values()
    ]


def _inference_rows() -> list[Row]:
    return [
        Row(
            f"{model.title.rpartition(',')[0] or model.title}, batch {batch}",
            f"{model.name}.{kind}",
            Best("run"),
            _BAR,
            work=partial(model.forward_work, batch),
            short=_SHORT[model.name],
        )
        for kind, batch in (("latency", LATENCY), ("throughput", THROUGHPUT))
        for model in MODELS.values()
    ]


_TRAINERS = ("tf", "xla", "jax", "torch", "compile", "pytensor")

GROUPS = {
    group.name: group
    for group in [
        Group(
            "engine",
            "The engine",
            engine_rows.ROWS,
            ("tf", "jax"),
            (engine_rows.ENGINE, engine_rows.FAST),
            {"anew": 3, "import": 3, "many_vectors": 3, "many_scalars": 3},
        ),
        Group("machine", "The machine", machine_cases.ROWS, ("numpy", "tf", "jax", "torch"), ()),
        Group("models", "A training step of whole models", _training_rows(), _TRAINERS),
        Group(
            "inference",
            "Inference of the same models, variables not frozen (frozen in ONNX Runtime "
            "and OpenVINO)",
            _inference_rows(),
            (*_TRAINERS, "ort", "openvino"),
        ),
        Group("programs", "Small programs, random numbers, updates", program_cases.ROWS, ("tf",)),
        Group("busy", "Busy machines, many processes and threads", busy_cases.ROWS, ("tf",)),
        Group("files", "Files", files_cases.ROWS, ("tf",)),
        Group("data", "Input pipelines", data_cases.ROWS, ("tf", "torch")),
        Group(
            "eager",
            "Eager execution and tf.function",
            eager_cases.ROWS,
            ("tf", "torch", "numpy", "jax"),
        ),
    ]
}


def find_group(case: str) -> Group:
    return next(group for group in GROUPS.values() if case in group.cases())
