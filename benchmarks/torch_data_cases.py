"""The input pipelines with PyTorch's ``DataLoader``: without workers or with two, whichever is
faster here.

PyTorch itself reads neither TFRecords nor JPEG files: the package ``tfrecord`` does the one, and
Pillow the other, as in torchvision's datasets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.data_cases import (
    BATCH,
    ELEMENTS,
    LOOP_BATCH,
    SIDE,
    overlap,
    slices_arrays,
    small_function,
)
from benchmarks.data_files import find_files
from benchmarks.scale import QUICK, Scale
from benchmarks.session_cases import Case, Measure
from benchmarks.timing import each_call, seconds_of

__all__ = ["CASES"]


class _Mapped:
    """A map-style dataset. (It needs no base class, and may be made where PyTorch is not.)"""

    def __init__(self, count: int, item: Callable[[int], Any]) -> None:
        self.count = count
        self.item = item

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        return self.item(index)


def _run(loader: Any) -> Callable[[], None]:
    def run() -> None:
        for _ in loader:
            pass

    return run


def _passes(
    torch: Any,
    scale: Scale,
    dataset: Any,
    batch: int = BATCH,
    shared: bool = False,
    **options: Any,
) -> Measure:
    """The faster of the two ways to load, after a pass that starts the workers. Workers would each
    yield all of an iterable dataset, unless it is ``shared``.
    """
    load = torch.utils.data.DataLoader
    runs = [_run(load(dataset, batch, **options))]
    if shared or not isinstance(dataset, torch.utils.data.IterableDataset):
        runs.append(_run(load(dataset, batch, num_workers=2, persistent_workers=True, **options)))
    for run in runs:
        run()
    fastest = min(runs, key=seconds_of)
    return lambda: {"epoch": each_call(fastest, 1 if scale is QUICK else 3)}


def slices(torch: Any, scale: Scale) -> Measure:
    x, labels = map(torch.from_numpy, slices_arrays(scale))
    return _passes(torch, scale, torch.utils.data.TensorDataset(x, labels), shuffle=True)


def _image(torch: Any, name: str) -> Any:
    from PIL import Image

    with Image.open(name) as image:
        small = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    return torch.from_numpy(np.asarray(small, np.float32))


def _images(torch: Any) -> _Mapped:
    names = find_files().images
    return _Mapped(len(names), lambda i: _image(torch, names[i]))


def jpeg(torch: Any, scale: Scale) -> Measure:
    return _passes(torch, scale, _images(torch), 32)


def _records(
    torch: Any, scale: Scale, path: str, description: dict[str, str], then: Any
) -> Measure:
    """With the index that lets two workers share a file."""
    from tfrecord.tools.tfrecord2idx import create_index
    from tfrecord.torch.dataset import TFRecordDataset

    index = f"{path}.index"
    create_index(path, index)
    dataset = TFRecordDataset(path, index, description, transform=then)
    return _passes(torch, scale, dataset, shared=True)


def records(torch: Any, scale: Scale) -> Measure:
    return _records(
        torch,
        scale,
        find_files().floats,
        {"x": "float", "label": "int"},
        lambda values: (values["x"], values["label"]),
    )


def records_bytes(torch: Any, scale: Scale) -> Measure:
    return _records(
        torch,
        scale,
        find_files().bytes,
        {"x": "byte", "label": "int"},
        lambda values: (_pixels(values["x"]), values["label"]),
    )


def _pixels(data: bytes) -> Any:
    return np.frombuffer(data, np.uint8).astype(np.float32) / np.float32(255)


def generator(torch: Any, scale: Scale) -> Measure:
    rows = np.random.rand(scale.count(ELEMENTS), 784).astype(np.float32)

    class Rows(torch.utils.data.IterableDataset):  # type: ignore[misc]  # torch is not there when this is checked
        def __iter__(self) -> Any:
            return iter(rows)

    return _passes(torch, scale, Rows())


def python_map(torch: Any, scale: Scale) -> Measure:
    return _passes(torch, scale, _Mapped(scale.count(ELEMENTS), small_function))


def input_loop(torch: Any, scale: Scale) -> Measure:
    """One worker of input beside a small model."""
    loader = torch.utils.data.DataLoader(
        _images(torch),
        LOOP_BATCH,
        num_workers=1,
        persistent_workers=True,
        drop_last=True,
        prefetch_factor=2,
    )
    kernel = (torch.randn(8, 3, 3, 3) * 0.1).requires_grad_()
    weights = (torch.randn(8, 10) * 0.1).requires_grad_()
    optimizer = torch.optim.SGD([kernel, weights], 0.01)

    def step(x: Any) -> None:
        optimizer.zero_grad()
        images = x.permute(0, 3, 1, 2) / 255.0
        y = torch.relu(torch.nn.functional.conv2d(images, kernel, stride=2, padding=1))
        ((y.mean((2, 3)) @ weights - 1) ** 2).mean().backward()
        optimizer.step()

    def loop() -> None:
        for x in loader:
            step(x)

    batch = torch.rand(LOOP_BATCH, SIDE, SIDE, 3)

    def model_alone() -> None:
        for _ in range(len(loader)):
            step(batch)

    loop()
    return overlap(loop, _run(loader), model_alone, 1 if scale is QUICK else 3)


CASES: dict[str, Case] = {
    "slices": slices,
    "jpeg": jpeg,
    "records": records,
    "records_batched": records,
    "records_bytes": records_bytes,
    "generator": generator,
    "python_map": python_map,
    "input_loop": input_loop,
}
