"""Writes src/headrace/core/op_limits.txt from TensorFlow's registry: ``python tools/op_limits.py
--tf1-python PATH``.

The file says what signatures cannot: the exact types that TensorFlow 1.15 registers for a type
attribute where they are no group, the types among them for which no kernel exists (on CPU or
XLA_CPU), least values, and the strings that are allowed.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import subprocess
import sys
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "src"))

#: Quantized types: nothing here computes with them.
LEFT_OUT = {"qint8", "quint8", "qint32", "qint16", "quint16"}
PLAIN = [
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "complex64",
    "complex128",
    "string",
]
TYPES = [*PLAIN, "variant", "resource"]

#: XLA_CPU registers these, but running them fails always: (fact, types, attributes).
BROKEN = [
    ("missing", "int32 int64", ["Acos.T", "Asin.T", "Atan.T", "Inv.T", "Reciprocal.T", "Tan.T"]),
    ("missing", "int8 int16 int32 int64 uint8 uint16", ["RealDiv.T"]),
    ("missing", "complex64 complex128", ["Round.T"]),
    ("missing", "bfloat16", ["LinSpace.T", "LRN.T", "LRNGrad.T"]),
    (
        "unimplemented",
        "complex64 complex128",
        ["Acos.T", "Asin.T", "Atan.T", "ResourceScatterMax.dtype", "ResourceScatterMin.dtype"],
    ),
    ("unimplemented", "float16", ["Where.T"]),
    ("unimplemented", "uint16 uint32 uint64", ["Tile.T"]),
    ("unimplemented", "uint32 uint64", ["ExtractImagePatches.T"]),
]
#: Control flow runs without a kernel of its own.
KERNEL_LESS = {"Switch", "RefSwitch"}

#: Runs in TensorFlow's environment. XLA's kernels are registered when the first session is made.
DUMP = r"""
import json, sys
import tensorflow as tf
from tensorflow.python.framework import kernels, op_def_registry
tf.compat.v1.Session().run(tf.constant(1))
def names(types): return [tf.as_dtype(t).name for t in types]
def allowed(attr): return attr.allowed_values.list
out = {}
for name, d in op_def_registry.get_registered_ops().items():
    out[name] = {
        "allowed": {a.name: names(allowed(a).type) for a in d.attr if allowed(a).type},
        "least": {a.name: a.minimum for a in d.attr if a.has_minimum},
        "strings": {a.name: [s.decode() for s in allowed(a).s] for a in d.attr if allowed(a).s},
        "kernels": [],
    }
for k in kernels.get_all_registered_kernels().kernel:
    if k.device_type in ("CPU", "XLA_CPU") and k.op in out and not k.label:
        out[k.op]["kernels"].append({c.name: names(allowed(c).type) for c in k.constraint})
json.dump(out, sys.stdout)
"""


def facts_of(opdef: Any, registered: dict[str, Any]) -> list[tuple[str, str]]:
    """(fact, attribute) pairs of one op."""
    from headrace.core.opdef import parse_signature

    listed = parse_signature(opdef.signature)[2]
    facts: list[tuple[str, str]] = []
    for attr in opdef.attrs.values():
        theirs = registered["allowed"].get(attr.name)
        if theirs is not None:
            theirs = set(theirs) - LEFT_OUT
            group = listed[attr.name].allowed if attr.name in listed else None
            if group is None or {d.name for d in group} - LEFT_OUT != theirs:
                facts.append(("types " + " ".join(n for n in TYPES if n in theirs), attr.name))
        missing = _missing(attr.name, registered, set(PLAIN) if theirs is None else theirs)
        broken = {
            k: set(v.split()) for k, v, names in BROKEN if f"{opdef.name}.{attr.name}" in names
        }
        missing = missing | broken.pop("missing", set())
        for kind, types in broken.items():
            facts.append((f"{kind} " + " ".join(n for n in PLAIN if n in types), attr.name))
        if missing and attr.kind == "type" and opdef.name not in KERNEL_LESS:
            facts.append(("missing " + " ".join(n for n in PLAIN if n in missing), attr.name))
        if attr.name in registered["least"]:
            facts.append((f"least {registered['least'][attr.name]}", attr.name))
        if attr.name in registered["strings"]:
            facts.append(("strings " + "|".join(registered["strings"][attr.name]), attr.name))
    return facts


def _missing(attr: str, registered: dict[str, Any], allowed: set[str]) -> set[str]:
    """Allowed types of an attribute that no kernel takes."""
    if not registered["kernels"]:
        return set()
    return {t for t in allowed if all(t not in k.get(attr, [t]) for k in registered["kernels"])}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--tf1-python", required=True)
    python = parser.parse_args().tf1_python
    dump = subprocess.run(
        [python, "-c", DUMP], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
    )
    registry = json.loads(dump.stdout)

    from headrace.core.opdef import ALL_OPS
    from headrace.data.ops.load_dataset_ops import load_ops
    from headrace.ops import load_all

    load_all()
    load_ops()
    by_fact: dict[str, list[str]] = collections.defaultdict(list)
    for name in sorted(ALL_OPS):
        if name in registry:
            for fact, attr in facts_of(ALL_OPS[name], registry[name]):
                by_fact[fact].append(f"{name}.{attr}")
    path = os.path.join(ROOT, "src", "headrace", "core", "op_limits.txt")
    with open(path, "w") as f:
        f.write(
            "# Made by tools/op_limits.py from TensorFlow 1.15's registry; read by op_limits.py.\n"
        )
        for fact in sorted(by_fact):
            f.write(f"{fact}: {' '.join(by_fact[fact])}\n")


if __name__ == "__main__":
    main()
