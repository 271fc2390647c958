"""Random programs: small graphs with branches, loops, variables and their first and second
gradients, run several times.

:func:`make_program` gives a case for runner.py (program_ops.py says what it holds). Programs come
in families of :data:`FAMILY`: the same choices of operations with other numbers, axes, sizes and
dtypes, so that what one leaves in a cache meets the next. In a program dimension ``N`` is the
size of a batch that may change from run to run.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from tools.differential import program_ops
from tools.differential.cases import encoded, numpy_dtype

FAMILY = 4
Dim = int | str
Shape = list[Dim]
Step = list[Any]

DTYPES = ["float32", "float32", "float64", "float64", "float64", "float16", "bfloat16", "int32"]
#: What one element decides for others of a row: these jump where numbers differ in the last bit.
UNSTEADY = {"floormod", "embed", "changing_while"}


def make_program(number: int, seed: int) -> dict[str, Any]:
    """Program ``number`` of a seed: always the same one."""
    return _Maker(number, seed).program()


class _Maker:
    def __init__(self, number: int, seed: int) -> None:
        self.number = number
        #: Decides on the operations, alike in a family.
        self.r = random.Random(seed * 1_000_003 + number // FAMILY)
        #: Decides on numbers, axes and sizes.
        self.a = random.Random(seed * 1_000_003 + number + 500_000_000)
        self.np = np.random.RandomState((seed * 7919 + number) % 2**32)
        self.dtype = str(self.a.choice(DTYPES) if self.r.random() < 0.7 else "float64")
        self.special = self.r.random() < 0.06 and self.dtype != "int32"
        self.shapes: list[Shape] = []
        self.leaves: list[dict[str, Any]] = []
        self.fed: list[int] = []
        self.steps: list[Step] = []
        self.n = 0 if self.a.random() < 0.04 else self.a.randint(1, 4)

    # leaves -------------------------------------------------------------------------------------

    def leaf(self, shape: Shape, kind: str) -> int:
        v: dict[str, Any] = {"kind": kind, "dtype": self.dtype}
        if kind == "ph":
            static: Any = [None if d == "N" or self.a.random() < 0.2 else d for d in shape]
            v["static"] = None if self.a.random() < 0.1 else static
            self.fed.append(len(self.leaves))
        else:
            v.update(encoded(self.array(shape, self.n), self.dtype))
        self.leaves.append(v)
        self.shapes.append(list(shape))
        return len(self.shapes) - 1

    def array(self, shape: Shape, n: int) -> Any:
        sizes = [n if d == "N" else int(d) for d in shape]
        if self.dtype == "int32":
            return self.np.randint(-9, 10, sizes)
        array = self.np.uniform(-1.5, 1.5, sizes)
        if self.special and array.size:
            at = self.a.randrange(array.size)
            array.reshape(-1)[at] = self.a.choice([np.nan, np.inf, -np.inf, 0.0, -0.0])
        return array.astype(numpy_dtype(self.dtype))

    # steps --------------------------------------------------------------------------------------

    def add(
        self, step: str, inputs: list[int], to: Shape, given: Any = None, **parameters: Any
    ) -> int:
        """A step whose result has the shape ``to``; its number."""
        self.steps.append([step, inputs, {**(given or {}), **parameters}])
        self.shapes.append(to)
        return len(self.shapes) - 1

    def any(self, fits: Callable[[Shape], bool] = lambda s: True) -> int | None:
        found = [i for i, s in enumerate(self.shapes) if fits(s)]
        # later values are taken more often
        return found[max(self.r.randrange(len(found)) for _ in range(2))] if found else None

    def step(self) -> int | None:
        if self.dtype == "int32":
            return self.whole() if self.r.random() < 0.6 else self.shaped()
        kind = self.r.random()
        if kind < 0.2:
            return self.same()
        if kind < 0.28:
            return self.along()
        if kind < 0.38:
            return self.reduced()
        if kind < 0.56:
            return self.binary()
        if kind < 0.74:
            return self.shaped()
        return self.joined() if kind < 0.88 else self.flow()

    def same(self) -> int | None:
        i = self.any()
        assert i is not None
        return self.add("same:" + self.r.choice(sorted(program_ops.SAME)), [i], self.shapes[i])

    def along(self) -> int | None:
        i = self.any(bool)
        if i is None:
            return None
        axis = self.a.randrange(len(self.shapes[i]))
        axis -= len(self.shapes[i]) if self.a.random() < 0.4 else 0
        name = "along:" + self.r.choice(sorted(program_ops.ALONG))
        return self.add(name, [i], self.shapes[i], axis=axis)

    def reduced(self) -> int | None:
        i = self.any(bool)
        if i is None:
            return None
        shape, keep = self.shapes[i], self.a.random() < 0.4
        axes = sorted(self.a.sample(range(len(shape)), self.a.randint(1, len(shape))))
        left: Shape = [1 if k in axes else d for k, d in enumerate(shape) if keep or k not in axes]
        name = "reduce:" + self.r.choice(sorted(program_ops.REDUCE))
        return self.add(name, [i], left, axis=axes, keep=keep)

    def binary(self) -> int | None:
        i = self.any()
        assert i is not None
        j = self.any(lambda s: _broadcast(s, self.shapes[i]) is not None)
        assert j is not None
        shape = _broadcast(self.shapes[i], self.shapes[j])
        assert shape is not None
        return self.add("binary:" + self.r.choice(sorted(program_ops.BINARY)), [i, j], shape)

    def whole(self) -> int | None:
        i = self.any()
        assert i is not None
        j = self.any(lambda s: _broadcast(s, self.shapes[i]) is not None)
        assert j is not None
        shape = _broadcast(self.shapes[i], self.shapes[j])
        assert shape is not None
        return self.add("whole:" + self.r.choice(sorted(program_ops.WHOLE)), [i, j], shape)

    # another shape ------------------------------------------------------------------------------

    def shaped(self) -> int | None:
        how = self.r.choice(_SHAPES)
        i = self.any(lambda s: 0 < len(s) < 5)
        if i is None:
            return None
        made = getattr(self, "_" + how)(self.shapes[i])
        if made is None:
            return None
        shape, parameters = made
        size = np.prod([4 if d == "N" else d for d in shape], dtype=np.int64)
        return self.add("shaped:" + how, [i], shape, parameters) if size < 600 else None

    def _fixed(self, shape: Shape) -> list[int]:
        """Axes of known size."""
        return [k for k, d in enumerate(shape) if d != "N"]

    def _transpose(self, shape: Shape) -> Any:
        perm = self.a.sample(range(len(shape)), len(shape))
        return [shape[p] for p in perm], {"perm": perm}

    def _reshape(self, shape: Shape) -> Any:
        if shape.count("N") > 1:
            return None
        known = int(np.prod([d for d in shape if d != "N"], dtype=np.int64))
        parts = [known] if known % 2 or self.a.random() < 0.5 else [2, known // 2]
        if self.a.random() < 0.3:
            parts.insert(self.a.randint(0, len(parts)), 1)
        if "N" not in shape:
            return parts, {"shape": parts}
        at = self.a.randint(0, len(parts))
        asked = [*parts[:at], -1, *parts[at:]]
        return ["N" if d == -1 else d for d in asked], {"shape": asked}

    def _flatten(self, shape: Shape) -> Any:
        if "N" in shape[1:] or (shape[0] == "N" and self.n == 0):
            return None
        return [shape[0], int(np.prod(shape[1:], dtype=np.int64))], {}

    def _expand_dims(self, shape: Shape) -> Any:
        at = self.a.randint(0, len(shape))
        axis = at if self.a.random() < 0.6 else at - len(shape) - 1
        return [*shape[:at], 1, *shape[at:]], {"axis": axis}

    def _squeeze(self, shape: Shape) -> Any:
        ones = [k for k, d in enumerate(shape) if d == 1]
        if not ones:
            return None
        at = self.a.choice(ones)
        return [*shape[:at], *shape[at + 1 :]], {"axis": at}

    def _tile(self, shape: Shape) -> Any:
        by = [1 if d == "N" else self.a.choice([1, 1, 2]) for d in shape]
        return [d if d == "N" else int(d) * b for d, b in zip(shape, by)], {"multiples": by}

    def _pad(self, shape: Shape) -> Any:
        mode = self.a.choice(["CONSTANT", "REFLECT", "SYMMETRIC"])
        pads, out = [], []
        for d in shape:
            most = 0 if d == "N" or (mode == "REFLECT" and d == 1) else 1
            pads.append([self.a.randint(0, most), self.a.randint(0, most)])
            out.append(d if d == "N" else int(d) + sum(pads[-1]))
        return out, {"paddings": pads, "mode": mode}

    def _slice(self, shape: Shape) -> Any:
        begin, size, out = [], [], []
        for d in shape:
            b = 0 if d == "N" else self.a.randint(0, int(d) - 1)
            n = -1 if d == "N" or self.a.random() < 0.4 else self.a.randint(1, int(d) - b)
            begin.append(b)
            size.append(n)
            out.append(d if d == "N" else int(d) - b if n == -1 else n)
        return out, {"begin": begin, "size": size}

    def _stride(self, shape: Shape) -> Any:
        slices, out = [], []
        for d in shape:
            if d == "N":
                choice: list[int | None] = self.a.choice([[None, None, None], [None, None, -1]])
                out.append(d)
            else:
                first, last = sorted(self.a.sample(range(int(d) + 1), 2))
                choice = self.a.choice(
                    [[first, last, None], [None, None, -1], [None, None, 2], [-1, None, None]]
                )
                out.append(len(range(*slice(*choice).indices(int(d)))))
            slices.append(choice)
        return out, {"slices": slices}

    def _pick(self, shape: Shape) -> Any:
        if shape[-1] == "N":
            return None
        return shape[:-1], {"at": self.a.randint(-int(shape[-1]), int(shape[-1]) - 1)}

    def _gather(self, shape: Shape) -> Any:
        axes = self._fixed(shape)
        if not axes:
            return None
        axis = self.a.choice(axes)
        sizes = self.a.choice([[], [2], [3], [2, 2]])
        indices = self.np.randint(0, int(shape[axis]), sizes).tolist()
        return [*shape[:axis], *sizes, *shape[axis + 1 :]], {"axis": axis, "indices": indices}

    def _gather_nd(self, shape: Shape) -> Any:
        if shape[0] == "N" or (len(shape) > 1 and shape[1] == "N"):
            return None
        depth = self.a.randint(1, min(2, len(shape)))
        rows = self.a.randint(1, 3)
        indices = [[self.a.randrange(int(d)) for d in shape[:depth]] for _ in range(rows)]
        return [rows, *shape[depth:]], {"indices": indices}

    def _split(self, shape: Shape) -> Any:
        axes = [k for k in self._fixed(shape) if int(shape[k]) > 1]
        if not axes:
            return None
        axis = self.a.choice(axes)
        first = self.a.randint(1, int(shape[axis]) - 1)
        sizes, part = [first, int(shape[axis]) - first], self.a.randint(0, 1)
        out = [*shape[:axis], sizes[part], *shape[axis + 1 :]]
        return out, {"axis": axis, "sizes": sizes, "part": part}

    def _unstack(self, shape: Shape) -> Any:
        axes = self._fixed(shape)
        if not axes or any(leaf.get("static", 0) is None for leaf in self.leaves):
            return None
        axis = self.a.choice(axes)
        part = self.a.randrange(int(shape[axis]))
        return [*shape[:axis], *shape[axis + 1 :]], {"axis": axis, "part": part}

    def _top_k(self, shape: Shape) -> Any:
        if shape[-1] == "N":
            return None
        k = self.a.randint(1, int(shape[-1]))
        return [*shape[:-1], k], {"k": k}

    def _segment(self, shape: Shape) -> Any:
        how = ["sum", "mean", "max", "min", "prod", "sqrt_n"]
        n = self.a.randint(1, 3)
        return [n, *shape[1:]], {"how": "unsorted_segment_" + self.a.choice(how), "n": n}

    def _scatter_nd(self, shape: Shape) -> Any:
        n = self.a.randint(1, 3)
        return [n, *shape[1:]], {"n": n}

    def _pool(self, shape: Shape) -> Any:
        if len(shape) != 4 or "N" in shape[1:]:
            return None
        k, s = self.a.choice([1, 2, 3]), self.a.choice([1, 2])
        padding = self.a.choice(["SAME", "VALID"])
        if padding == "VALID" and min(int(d) for d in shape[1:3]) < k:
            return None
        sides = [_windows(int(d), k, s, padding) for d in shape[1:3]]
        how = self.a.choice(["max_pool", "avg_pool"])
        return [shape[0], *sides, shape[3]], {"how": how, "k": k, "s": s, "padding": padding}

    def _broadcast_to(self, shape: Shape) -> Any:
        front = self.a.choice([[], [2], [3], [2, 1]])
        return [*front, *shape], {"front": front}

    def _resize(self, shape: Shape) -> Any:
        if len(shape) != 4 or self.dtype == "float64" or "N" in shape[1:]:
            return None
        size = [self.a.randint(1, 5), self.a.randint(1, 5)]
        return [shape[0], *size, shape[3]], {"size": size, "align": self.a.random() < 0.5}

    def _diag(self, shape: Shape) -> Any:
        return [*shape, shape[-1]], {}

    def _band(self, shape: Shape) -> Any:
        if len(shape) < 2:
            return None
        # TensorFlow refuses more than the side, which N may be
        sides = [1 if d == "N" else int(d) for d in shape[-2:]]
        if self.n == 0:
            return None
        return shape, {"low": self.a.randint(-1, sides[0]), "high": self.a.randint(-1, sides[1])}

    def _space_to_depth(self, shape: Shape) -> Any:
        if len(shape) != 4 or "N" in shape[1:] or any(int(d) % 2 for d in shape[1:3]):
            return None
        return [shape[0], int(shape[1]) // 2, int(shape[2]) // 2, int(shape[3]) * 4], {}

    # two tensors --------------------------------------------------------------------------------

    def joined(self) -> int | None:
        how = self.r.choice(sorted(program_ops.JOINED))
        made = getattr(self, "_" + how)()
        if made is None:
            return None
        inputs, shape, parameters = made
        size = np.prod([4 if d == "N" else d for d in shape], dtype=np.int64)
        return self.add("joined:" + how, inputs, shape, parameters) if size < 600 else None

    def _weights(self, shape: Shape) -> int:
        """A value of this shape: one that there is, or a function of a new constant."""
        found = self.any(lambda s: s == shape)
        if found is not None:
            return found
        array = encoded(self.np.uniform(-1, 1, [int(d) for d in shape]), self.dtype)
        return self.add("fixed", [], shape, value=array)

    def _matmul(self) -> Any:
        i = self.any(lambda s: len(s) == 2)
        if i is None:
            return None
        a, b = self.a.random() < 0.3, self.a.random() < 0.3
        shape = self.shapes[i][::-1] if a else self.shapes[i]
        if shape[1] == "N":
            return None
        width = self.a.randint(1, 4)
        other: Shape = [width, shape[1]] if b else [shape[1], width]
        return [i, self._weights(other)], [shape[0], width], {"a": a, "b": b}

    def _tensordot(self) -> Any:
        i = self.any(lambda s: 0 < len(s) < 4 and s[-1] != "N")
        if i is None:
            return None
        shape = self.shapes[i]
        axis = self.a.choice(self._fixed(shape))
        j = self._weights([2, shape[axis]])
        left = [*shape[:axis], *shape[axis + 1 :]]
        return [i, j], [*left, 2], {"a": axis, "b": 1}

    def _einsum(self) -> Any:
        i = self.any(lambda s: len(s) == 3 and s[1:].count("N") == 0)
        if i is None:
            return None
        a, b, c = self.shapes[i]
        text, other, out = self.a.choice(
            [
                ("abc,cd->abd", [c, 3], [a, b, 3]),
                ("abc,bd->adc", [b, 2], [a, 2, c]),
                ("abc,cb->a", [c, b], [a]),
                ("abc,dc->bad", [2, c], [b, a, 2]),
            ]
        )
        return [i, self._weights(other)], out, {"text": text}

    def _concat(self) -> Any:
        i = self.any(lambda s: bool(s) and s[-1] != "N")
        if i is None:
            return None
        shape = self.shapes[i]
        axis = self.a.choice(self._fixed(shape))
        j = self.any(
            lambda s: (
                len(s) == len(shape)
                and s[axis] != "N"
                and s[:axis] + s[axis + 1 :] == shape[:axis] + shape[axis + 1 :]
            )
        )
        assert j is not None
        size = int(shape[axis]) + int(self.shapes[j][axis])
        return [i, j], [*shape[:axis], size, *shape[axis + 1 :]], {"axis": axis}

    def _stack(self) -> Any:
        i = self.any()
        assert i is not None
        shape = self.shapes[i]
        j = self.any(lambda s: s == shape)
        at = self.a.randint(0, len(shape))
        return [i, j], [*shape[:at], 3, *shape[at:]], {"axis": at}

    def _conv(self, deep: int = 2) -> Any:
        i = self.any(lambda s: len(s) == 4 and "N" not in s[1:] and 0 not in s[1:])
        if i is None:
            return None
        n, h, w, c = self.shapes[i]
        k, s = self.a.choice([1, 2, 3]), self.a.choice([1, 1, 2])
        padding = "SAME" if k > min(int(h), int(w)) else self.a.choice(["SAME", "VALID"])
        sides = [_windows(int(d), k, s, padding) for d in (h, w)]
        return [i, self._weights([k, k, c, deep])], [n, *sides, deep], {"s": s, "padding": padding}

    def _depthwise(self) -> Any:
        made = self._conv()
        if made is None:
            return None
        inputs, shape, parameters = made
        return inputs, [*shape[:3], int(self.shapes[inputs[0]][3]) * 2], parameters

    def _bias_add(self) -> Any:
        i = self.any(lambda s: len(s) > 1 and s[-1] != "N")
        if i is None:
            return None
        return [i, self._weights([self.shapes[i][-1]])], self.shapes[i], {}

    def _cross_entropy(self) -> Any:
        i = self.any(lambda s: len(s) > 1 and s[-1] != "N" and s[-1] != 0)
        if i is None:
            return None
        j = self.any(lambda s: s == self.shapes[i])
        return [i, j], self.shapes[i][:-1], {"soft": self.a.random() < 0.5}

    def _sparse_cross_entropy(self) -> Any:
        return self._cross_entropy()

    def _sigmoid_cross_entropy(self) -> Any:
        i = self.any()
        assert i is not None
        return [i, self.any(lambda s: s == self.shapes[i])], self.shapes[i], {}

    def _solve(self) -> Any:
        i = self.any(lambda s: len(s) == 2 and "N" not in s)
        if i is None or self.dtype in ("float16", "bfloat16"):
            return None
        n = self.shapes[i][0]
        return [i, self._weights([n, 2])], [n, 2], {"n": n}

    def _batch_norm(self) -> Any:
        i = self.any(lambda s: len(s) > 1 and s[-1] != "N")
        if i is None:
            return None
        axes = list(range(len(self.shapes[i]) - 1))
        return [i, self._weights([self.shapes[i][-1]])], self.shapes[i], {"axes": axes}

    def _embed(self) -> Any:
        i = self.any(lambda s: bool(s) and s[0] != "N" and s[0] != 0)
        j = self.any(lambda s: bool(s) and s[-1] != "N" and s[-1] != 0)
        if i is None or j is None:
            return None
        return [i, j], [*self.shapes[j][:-1], *self.shapes[i][1:]], {}

    # branches and loops -------------------------------------------------------------------------

    def flow(self) -> int | None:
        how = self.r.choice(_FLOWS)
        i = self.any(lambda s: len(s) < 4)
        if i is None:
            return None
        shape = self.shapes[i]
        if how in ("map", "scan") and (not shape or (shape[0] == "N" and self.n == 0)):
            return None
        if how == "assigned":
            i = self.any(lambda s: "N" not in s)
            if i is None:
                return None
            start = encoded(self.np.uniform(-1, 1, [int(d) for d in self.shapes[i]]), self.dtype)
            how_assigned = self.a.choice(["add", "assign"])
            resource = self.a.random() < 0.5
            to = self.shapes[i]
            return self.add(how, [i], to, how=how_assigned, value=start, resource=resource)
        if how == "cond":
            yes, no = self.inner(shape), self.inner(shape)
            test = self.any()
            return self.add(how, [i, test], shape, yes=yes, no=no)  # type: ignore[list-item]
        body = self.inner(shape[1:] if how in ("map", "scan") else shape)
        options: dict[str, Any] = {}
        if self.a.random() < 0.3:
            options["parallel_iterations"] = self.a.choice([1, 4])
        if self.a.random() < 0.2:
            options["maximum_iterations"] = self.a.randint(1, 3)
        return self.add(
            how,
            [i],
            [3, *shape] if how == "array" and (stack := self.a.random() < 0.5) else shape,
            body=body,
            n=self.a.randint(0, 3),
            limit=self.a.choice([3.0, 20.0]),
            options=options,
            stack=how == "array" and stack,
        )

    def inner(self, shape: Shape) -> list[Step]:
        """Steps from a value of a shape to another of that shape; they may use those outside."""
        outer = len(self.shapes)
        first, steps = outer, []
        for k in range(self.r.randint(1, 3)):
            value = outer + k
            if self.r.random() < 0.5:
                steps.append(["same:" + self.r.choice(sorted(program_ops.SAME)), [value], {}])
                continue
            fits = [i for i, s in enumerate(self.shapes) if _broadcast(s, shape) == shape] + list(
                range(first, value + 1)
            )
            other = self.r.choice(fits)
            pair = [value, other] if self.a.random() < 0.5 else [other, value]
            steps.append(["binary:" + self.r.choice(sorted(program_ops.BINARY)), pair, {}])
        return steps

    # the whole ----------------------------------------------------------------------------------

    def program(self) -> dict[str, Any]:
        starts: list[Shape] = [["N", 3], ["N", 2, 3], ["N", 4, 4, 2], [3], [2, 3], [3, 3], []]
        for _ in range(self.r.randint(2, 4)):
            kind = self.r.choice(["ph", "ph", "const", "ref", "resource"])
            shape = self.r.choice(starts if kind == "ph" else starts[3:])
            self.leaf(shape, kind)
        wanted = self.r.randint(2, 9)
        while wanted:
            wanted -= self.step() is not None
        return self.finished()

    def finished(self) -> dict[str, Any]:
        leaves, first = len(self.leaves), len(self.shapes) - len(self.steps)
        assert leaves == first
        results = sorted({len(self.shapes) - 1, self.r.randrange(first, len(self.shapes))})
        order = 0 if self.dtype in ("int32", "bfloat16") else self.r.choice([0, 1, 1, 2, 2])
        if any(s[0] == "joined:cross_entropy" and s[2]["soft"] for s in self.steps):
            order = min(order, 1)  # TensorFlow's second derivative leaves the labels out
        wrt = list(range(leaves))
        if self.r.random() < 0.3:
            wrt.append(self.r.randrange(first, len(self.shapes)))
        sessions = [[self.run() for _ in range(self.a.randint(1, 3))] for _ in range(2)]
        steps = repr(self.steps)
        steady = not any(f"{name}'" in steps for name in UNSTEADY)
        return {
            "id": self.number,
            "fn": "program",
            "program": True,
            "args": [],
            "kwargs": {},
            "dtype": self.dtype,
            "leaves": self.leaves,
            "steps": self.steps,
            "results": results,
            "loss": len(self.shapes) - 1,
            "order": order,
            "wrt": wrt,
            "sessions": sessions,
            "compare": self.dtype != "bfloat16" and (steady or self.dtype in ("float64", "int32")),
            "special": self.special,
            "loose": 20 if order < 2 else 100,
        }

    def run(self) -> dict[str, Any]:
        n = self.a.choice([self.n, self.n, self.a.randint(1, 5)]) if self.n else 0
        fed = []
        for i in self.fed:
            fed.append(encoded(self.array(self.shapes[i], n), self.dtype))
        return {"fetch": self.r.choice(["all", "all", "values", "grads"]), "fed": fed}


def _windows(size: int, k: int, s: int, padding: str) -> int:
    return -(-size // s) if padding == "SAME" else (size - k) // s + 1


def _broadcast(a: Shape, b: Shape) -> Shape | None:
    """The shape of both together, or None."""
    out: Shape = []
    for x, y in zip([1] * (len(b) - len(a)) + a, [1] * (len(a) - len(b)) + b):
        if x != y and 1 not in (x, y):
            return None
        out.append(y if x == 1 else x)
    return out


_SHAPES = sorted(program_ops.SHAPED)
_FLOWS = sorted(set(program_ops.FLOWS) - {"fixed"})
