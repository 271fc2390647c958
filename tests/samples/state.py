"""Assignments, scatters and reads of reference and resource variables."""

import numpy as np

from .base import Sample, boolean, c64, f32, f64, i32, i64, strings

SAMPLES = [
    # whole values
    Sample("Assign", dict(ref=f32(2, 3), value=f32(2, 3, salt=1))),
    Sample(
        "Assign",
        dict(ref=f32(2, 3), value=f32(4, salt=1)),
        dict(validate_shape=False),
        id="Assign/reshape",
        golden=False,
        why="the harness reads the variable under its old static shape",
        expect=[f32(4, salt=1)],
    ),
    Sample("Assign", dict(ref=f32(), value=f32(salt=1)), id="Assign/scalar"),
    Sample("Assign", dict(ref=f32(0, 3), value=f32(0, 3)), id="Assign/empty"),
    Sample("Assign", dict(ref=boolean(3), value=boolean(3, salt=1)), id="Assign/bool"),
    Sample("Assign", dict(ref=strings(["a", "b"]), value=strings(["c", "d"])), id="Assign/string"),
    Sample("AssignVariableOp", dict(resource=f32(2, 3), value=f32(2, 3, salt=1))),
    Sample(
        "AssignVariableOp", dict(resource=i64(), value=i64(salt=1)), id="AssignVariableOp/scalar"
    ),
    Sample("IsVariableInitialized", dict(ref=f32(2))),
    Sample("VarIsInitializedOp", dict(resource=f32(2))),
    Sample("ReadVariableOp", dict(resource=f32(2, 3)), dict(dtype="float32"), grad=["resource"]),
    Sample(
        "ReadVariableOp",
        dict(resource=strings(["a", "b"])),
        dict(dtype="string"),
        id="ReadVariableOp/string",
    ),
    Sample("VariableShape", dict(input=f32(2, 3))),
    Sample("VariableShape", dict(input=f32()), dict(out_type="int64"), id="VariableShape/scalar"),
    Sample(
        "DestroyResourceOp",
        dict(resource=f32(2)),
        golden=False,
        why="the harness reads the variable afterwards",
    ),
    Sample("CountUpTo", dict(ref=np.array(3, np.int32)), dict(limit=5)),
    Sample("CountUpTo", dict(ref=np.array(-1, np.int64)), dict(limit=0), id="CountUpTo/int64"),
    Sample("ResourceCountUpTo", dict(resource=np.array(3, np.int32)), dict(limit=5, T="int32")),
]

for _ref, _res in (("AssignAdd", "AssignAddVariableOp"), ("AssignSub", "AssignSubVariableOp")):
    for _id, _a, _b in (
        ("", f32(2, 3), f32(2, 3, salt=1)),
        ("/scalar", f64(), f64(salt=1)),
        ("/int", i32(4), i32(4, salt=1)),
        ("/uint8", i32(4).astype(np.uint8), i32(4, salt=1).astype(np.uint8)),
        ("/half", f32(4).astype(np.float16), f32(4, salt=1).astype(np.float16)),
        ("/complex", c64(3), c64(3, salt=1)),
        ("/empty", f32(0, 2), f32(0, 2)),
    ):
        SAMPLES.append(Sample(_ref, dict(ref=_a, value=_b), id=_ref + _id))
        SAMPLES.append(Sample(_res, dict(resource=_a, value=_b), id=_res + _id))

# rows
_ROWS = np.array([3, 0, 3], np.int32)
for _how in ("Update", "Add", "Sub", "Mul", "Div", "Min", "Max"):
    _cases = [
        ("", f32(5, 2), _ROWS, f32(3, 2, salt=1, low=0.5, high=2.0)),
        ("/vector", f32(5), _ROWS.astype(np.int64), f32(3, salt=1, low=0.5, high=2.0)),
        (
            "/grid",
            f32(4, 2, 2),
            np.array([[0, 1], [3, 1]], np.int32),
            f32(2, 2, 2, 2, salt=1, low=0.5, high=2.0),
        ),
        ("/one", f32(4, 2), np.array(2, np.int32), f32(2, salt=1, low=0.5, high=2.0)),
        ("/none", f32(4, 2), np.zeros([0], np.int32), f32(0, 2)),
        ("/int", i32(5, 2, low=-20, high=20), _ROWS, i32(3, 2, salt=1, low=1, high=5)),
        ("/negative", i32(5, low=-20, high=20), _ROWS, i32(3, salt=1, low=-5, high=-1)),
        (
            "/half",
            f32(5, 2).astype(np.float16),
            _ROWS,
            f32(3, 2, salt=1, low=0.5).astype(np.float16),
        ),
        ("/scalar", f32(5, 2), _ROWS, np.array(1.5, np.float32)),
    ]
    if _how == "Update":
        _cases.append(
            ("/string", strings(["a", "b", "c"]), np.array([2, 2], np.int32), strings(["x", "y"]))
        )
        _cases.append(("/bool", boolean(5), _ROWS, boolean(3, salt=1)))
    if _how in ("Add", "Sub", "Mul", "Div"):
        _cases.append(("/complex", c64(5), _ROWS, c64(3, salt=1)))
    for _id, _a, _i, _u in _cases:
        if not (_id == "/string" and _how != "Update"):
            SAMPLES.append(
                Sample(
                    "Scatter" + _how,
                    dict(ref=_a, indices=_i, updates=_u),
                    id="Scatter" + _how + _id,
                )
            )
            SAMPLES.append(
                Sample(
                    "ResourceScatter" + _how,
                    dict(resource=_a, indices=_i, updates=_u),
                    id="ResourceScatter" + _how + _id,
                )
            )

# points
for _how in ("Update", "Add", "Sub"):
    for _id, _a, _i, _u in (
        ("", f32(5), np.array([[4], [1], [4]], np.int32), f32(3, salt=1)),
        ("/points", f32(3, 4), np.array([[0, 1], [2, 3]], np.int64), f32(2, salt=1)),
        ("/rows", f32(3, 4), np.array([[2], [0], [2]], np.int32), f32(3, 4, salt=1)),
        ("/grid", f32(3, 4, 2), np.array([[[0, 1]], [[2, 3]]], np.int32), f32(2, 1, 2, salt=1)),
        ("/int", i32(5), np.array([[4], [4]], np.int32), i32(2, salt=1)),
    ):
        SAMPLES.append(
            Sample(
                "ScatterNd" + _how,
                dict(ref=_a, indices=_i, updates=_u),
                id="ScatterNd" + _how + _id,
            )
        )
        SAMPLES.append(
            Sample(
                "ResourceScatterNd" + _how,
                dict(ref=_a, indices=_i, updates=_u),
                id="ResourceScatterNd" + _how + _id,
            )
        )


# slices
def _bounds(begin, end, strides):
    return dict(
        begin=np.array(begin, np.int32),
        end=np.array(end, np.int32),
        strides=np.array(strides, np.int32),
    )


for _op in ("StridedSliceAssign", "ResourceStridedSliceAssign"):
    for _id, _b, _attrs, _v in (
        ("", _bounds([1, 0], [3, 2], [1, 1]), {}, f32(2, 2, salt=1)),
        (
            "/masks",
            _bounds([0, 1], [0, 0], [2, 1]),
            dict(begin_mask=1, end_mask=3),
            f32(2, 2, salt=1),
        ),
        ("/back", _bounds([-1, 0], [-5, 1], [-1, 1]), dict(end_mask=1), f32(4, 1, salt=1)),
        ("/shrink", _bounds([2], [3], [1]), dict(shrink_axis_mask=1), f32(3, salt=1)),
        (
            "/ellipsis",
            _bounds([0, 1], [0, 2], [1, 1]),
            dict(ellipsis_mask=1, shrink_axis_mask=2),
            f32(4, salt=1),
        ),
        ("/point", _bounds([2, 1], [3, 2], [1, 1]), dict(shrink_axis_mask=3), f32(salt=1)),
    ):
        SAMPLES.append(
            Sample(
                _op,
                dict(_b, ref=f32(4, 3), value=_v),
                _attrs,
                const=["begin", "end", "strides"],
                id=_op + _id,
            )
        )

# gathers through a handle
SAMPLES += [
    Sample(
        "ResourceGather",
        dict(resource=f32(5, 2), indices=np.array([4, 0, 4], np.int32)),
        dict(dtype="float32"),
        grad=["resource"],
    ),
    Sample(
        "ResourceGather",
        dict(resource=f32(5), indices=np.array([[4, 0], [1, 1]], np.int64)),
        dict(dtype="float32"),
        grad=["resource"],
        id="ResourceGather/grid",
    ),
    Sample(
        "ResourceGather",
        dict(resource=f32(5, 2), indices=np.array(3, np.int32)),
        dict(dtype="float32"),
        grad=["resource"],
        id="ResourceGather/one",
    ),
    Sample(
        "ResourceGather",
        dict(resource=f32(2, 3, 2), indices=np.array([[2, 0], [1, 1]], np.int32)),
        dict(dtype="float32", batch_dims=1),
        id="ResourceGather/batch",
    ),
    Sample(
        "ResourceGather",
        dict(resource=i32(4), indices=np.zeros([0], np.int32)),
        dict(dtype="int32"),
        id="ResourceGather/none",
    ),
    Sample(
        "ResourceGatherNd",
        dict(resource=f32(3, 4), indices=np.array([[2, 3], [0, 0], [2, 3]], np.int32)),
        dict(dtype="float32"),
        grad=["resource"],
    ),
    Sample(
        "ResourceGatherNd",
        dict(resource=f32(3, 4), indices=np.array([[2], [0], [2]], np.int64)),
        dict(dtype="float32"),
        grad=["resource"],
        id="ResourceGatherNd/rows",
    ),
]
