"""Samples of the training ops: every rule as ref, sparse, resource and resource-sparse op, in
several types.

The updated inputs (references and handles) are given as arrays: who runs a sample makes variables
of them and compares their values after the run.
"""

import numpy as np

from .base import Sample, f64

POSITIVE = ("accum", "v", "vhat", "ms", "accum_update", "gradient_squared_accumulator")
VALUES = {
    "alpha": 0.3,
    "lr": 0.3,
    "rho": 0.9,
    "momentum": 0.8,
    "epsilon": 0.01,
    "beta1": 0.8,
    "beta2": 0.9,
    "beta1_power": 0.64,
    "beta2_power": 0.81,
    "l1": 0.1,
    "l2": 0.05,
    "l2_shrinkage": 0.02,
    "lr_power": -0.5,
    "logbase": 0.7,
    "sign_decay": 0.9,
    "beta": 0.85,
}
NESTEROV = [{"use_nesterov": False}, {"use_nesterov": True}]
SLOTS = [{"update_slots": True}, {"update_slots": False}]
NO_HALF = (
    "ProximalGradientDescent",
    "ProximalAdagrad",
    "AdagradDA",
)  # as references, in TensorFlow
DA = "gradient_accumulator gradient_squared_accumulator"

# name, variables besides var, the other inputs in order, attribute variants, forms
TABLE = [
    ("GradientDescent", "", "alpha delta", [{}], "ref resource"),
    ("Momentum", "accum", "lr grad momentum", NESTEROV, "ref sparse resource"),
    ("KerasMomentum", "accum", "lr grad momentum", NESTEROV, "sparse resource"),
    (
        "Adam",
        "m v",
        "beta1_power beta2_power lr beta1 beta2 epsilon grad",
        NESTEROV,
        "ref resource",
    ),
    (
        "AdamWithAmsgrad",
        "m v vhat",
        "beta1_power beta2_power lr beta1 beta2 epsilon grad",
        [{}],
        "resource",
    ),
    ("AdaMax", "m v", "beta1_power lr beta1 beta2 epsilon grad", [{}], "ref resource"),
    ("RMSProp", "ms mom", "lr rho momentum epsilon grad", [{}], "ref sparse resource"),
    ("CenteredRMSProp", "mg ms mom", "lr rho momentum epsilon grad", [{}], "ref sparse resource"),
    ("Adagrad", "accum", "lr grad", SLOTS, "ref sparse resource"),
    ("AdagradV2", "accum", "lr epsilon grad", SLOTS, "ref sparse resource"),
    ("Adadelta", "accum accum_update", "lr rho epsilon grad", [{}], "ref sparse resource"),
    ("ProximalGradientDescent", "", "alpha l1 l2 delta", [{}, {"l1": 0.0}], "ref sparse resource"),
    ("ProximalAdagrad", "accum", "lr l1 l2 grad", [{}, {"l1": 0.0}], "ref sparse resource"),
    ("AdagradDA", DA, "grad lr l1 l2 global_step", [{}, {"l1": 0.0}], "ref sparse resource"),
    (
        "Ftrl",
        "accum linear",
        "grad lr l1 l2 lr_power",
        [{}, {"lr_power": -0.7}],
        "ref sparse resource",
    ),
    (
        "FtrlV2",
        "accum linear",
        "grad lr l1 l2 l2_shrinkage lr_power",
        [{}, {"lr_power": -0.7}],
        "ref sparse resource",
    ),
    ("AddSign", "m", "lr alpha sign_decay beta grad", [{}], "ref resource"),
    ("PowerSign", "m", "lr logbase sign_decay beta grad", [{}], "ref resource"),
]


def _array(name, shape, dtype):
    low = 1.5 if name in POSITIVE else -1.0
    return f64(*shape, low=low, high=low + 1.0 if name in POSITIVE else 1.0, salt=name).astype(
        dtype
    )


def _inputs(variables, rest, variant, shape, dtype, indices):
    inputs = {name: _array(name, shape, dtype) for name in ("var " + variables).split()}
    for name in rest.split():
        if name in ("grad", "delta"):
            if indices is None:
                inputs[name] = _array(name, shape, dtype)
            else:
                inputs["grad"] = _array("grad", (len(indices),) + shape[1:], dtype)
                inputs["indices"] = indices
        elif name == "global_step":
            inputs[name] = np.int64(3)
        else:
            inputs[name] = np.array(variant.get(name, VALUES[name]), dtype)
    return inputs


def _samples():
    out = []
    unique, repeated = np.array([3, 0], np.int32), np.array([1, 3, 1, 1], np.int64)
    for name, variables, rest, variants, forms in TABLE:
        prefixes = (["Apply"] if "ref" in forms else []) + ["ResourceApply"]
        sparse = (["SparseApply"] if "ref" in forms and "sparse" in forms else []) + [
            "ResourceSparseApply"
        ]
        for variant in variants:
            attrs = dict({k: v for k, v in variant.items() if k not in VALUES}, use_locking=False)
            cases = [(p, (2, 3), "float32", None) for p in prefixes]
            if "sparse" in forms:
                cases += [(p, (4, 2), "float32", i) for p in sparse for i in (unique, repeated)]
                cases += [(p, (4,), "float32", unique) for p in sparse]
            if variant is variants[0]:
                cases += [
                    (p, s, d, None)
                    for p in prefixes
                    for s, d in (
                        ((3,), "float64"),
                        ((), "float32"),
                        ((0, 2), "float32"),
                        ((5,), "float16"),
                    )
                ]
                if "sparse" in forms:
                    cases += [(p, (4, 1), "float64", unique) for p in sparse]
            for prefix, shape, dtype, indices in cases:
                if dtype == "float16" and prefix == "Apply" and name in NO_HALF:
                    continue
                inputs = _inputs(variables, rest, variant, shape, dtype, indices)
                label = "%s%s-%s-%s-%s" % (
                    prefix,
                    name,
                    dtype,
                    "x".join(map(str, shape)),
                    "_".join("%s=%s" % kv for kv in sorted(variant.items())),
                )
                if indices is not None:
                    label += "-repeated" if indices is repeated else ""
                out.append(Sample(prefix + name, inputs, attrs, id=label))
    return out


SAMPLES = _samples()
