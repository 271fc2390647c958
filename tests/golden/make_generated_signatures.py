"""Parameters of TensorFlow 1.15's generated functions, one per op: names in order, and which of
them have a default.

Run with TensorFlow 1.15: ``python make_generated_signatures.py > generated_signatures.json``.
"""

from __future__ import annotations

import inspect
import json
from typing import Any


def found(raw_ops: Any) -> dict[str, list[str]]:
    """{op: its parameters, those with a default ending with "="}."""
    made: dict[str, list[str]] = {}
    for op in sorted(dir(raw_ops)):
        call = getattr(raw_ops, op)
        if op.startswith("_") or not callable(call):
            continue
        parameters = inspect.signature(call).parameters.values()
        made[op] = [p.name + ("" if p.default is p.empty else "=") for p in parameters]
    return made


if __name__ == "__main__":
    import tensorflow

    rows = (f"{json.dumps(op)}: {json.dumps(row)}" for op, row in found(tensorflow.raw_ops).items())
    print("{" + ",\n".join(rows) + "}")
