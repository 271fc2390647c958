"""Samples of the basic ops."""

import numpy as np

from tests.samples.base import Sample, boolean, c64, f32, f64, i32, i64, strings

SAMPLES = [
    Sample("Const", attrs=dict(value=f32(2, 3), dtype="float32")),
    Sample("Const", attrs=dict(value=np.array(7, np.int64), dtype="int64"), id="Const-scalar"),
    Sample("Const", attrs=dict(value=strings(["a", "b\xff"]), dtype="string"), id="Const-string"),
    Sample("Identity", dict(input=f32(2, 3)), grad=["input"]),
    Sample("Identity", dict(input=c64(3)), grad=["input"], id="Identity-complex"),
    Sample("Identity", dict(input=strings([["a"], ["b"]])), id="Identity-string"),
    Sample("Identity", dict(input=boolean(0, 2)), id="Identity-empty"),
    Sample("IdentityN", dict(input=[f32(2), i32(3)])),
    Sample("IdentityN", dict(input=[f32(2), f64(2, 2)]), grad=["input"], id="IdentityN-floats"),
    Sample("IdentityN", dict(input=[f32(4)]), grad=["input"], id="IdentityN-one"),
    Sample("StopGradient", dict(input=f32(3))),
    Sample("PreventGradient", dict(input=f32(3)), dict(message="no")),
    Sample("PlaceholderWithDefault", dict(input=f32(2, 3)), dict(shape=[None, 3]), grad=["input"]),
    Sample(
        "PlaceholderWithDefault",
        dict(input=i64(2)),
        dict(shape=[2]),
        const=["input"],
        id="PlaceholderWithDefault-const",
    ),
    Sample("NoOp"),
    Sample("ControlTrigger"),
    Sample("RefIdentity", dict(input=f32(2, 3))),
]
