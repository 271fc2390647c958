"""``contrib.learn.datasets.base``: tables from CSV files, and the tuples that data sets come in."""

from __future__ import annotations

import collections
import csv
import os
from typing import Any

import numpy as np

from headrace import errors

__all__ = [
    "Dataset",
    "Datasets",
    "load_boston",
    "load_csv_with_header",
    "load_csv_without_header",
    "load_iris",
    "maybe_download",
    "shrink_csv",
]

Dataset = collections.namedtuple("Dataset", ["data", "target"])
Dataset.__doc__ = "A table as two arrays: ``data`` (rows of features) and ``target`` (labels)."
Datasets = collections.namedtuple("Datasets", ["train", "validation", "test"])
Datasets.__doc__ = """Three parts of one dataset: ``train``, ``validation`` and ``test``.

Each is a ``Dataset``, or None where there is no such part."""


def load_csv_with_header(
    filename: str, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """A table whose first row begins with the numbers of samples and of features.

    Each further row is one sample, whose column ``target_column`` (the last by default) is its
    target. The result is a ``Dataset`` of ``data`` [samples, features] and ``target`` [samples],
    arrays of the given types.
    """
    with open(filename, encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        header = next(rows)
        data = np.zeros((int(header[0]), int(header[1])), dtype=features_dtype)
        target = np.zeros((int(header[0]),), dtype=target_dtype)
        for i, row in enumerate(rows):
            target[i] = np.asarray(row.pop(target_column), dtype=target_dtype)
            data[i] = np.asarray(row, dtype=features_dtype)
    return Dataset(data=data, target=target)


def load_csv_without_header(
    filename: str, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """Read a CSV file without a header line: each row is one sample and its target.

    Column ``target_column`` (the last by default) is the target. The result is a ``Dataset`` of
    ``data`` [samples, features] and ``target`` [samples], arrays of the given types.
    """
    data, target = [], []
    with open(filename, encoding="utf-8", newline="") as file:
        for row in csv.reader(file):
            target.append(row.pop(target_column))
            data.append(np.asarray(row, dtype=features_dtype))
    return Dataset(data=np.array(data), target=np.array(target, dtype=target_dtype))


def shrink_csv(filename: str, ratio: int) -> None:
    """Write every ``ratio``-th row to a file named ``…_small.…``."""
    with (
        open(filename, encoding="utf-8", newline="") as source,
        open(filename.replace(".", "_small."), "w", encoding="utf-8", newline="") as small,
    ):
        csv.writer(small).writerows(
            row for i, row in enumerate(csv.reader(source)) if i % ratio == 0
        )


def load_iris(data_path: str | None = None) -> Dataset:
    """Fisher's iris data, in the order of TensorFlow's file.

    150 samples of 4 features, classes 0 to 2.
    """
    if data_path is None:
        data_path = os.path.join(os.path.dirname(__file__), "iris.csv")
    return load_csv_with_header(data_path, target_dtype=int, features_dtype=float)


def load_boston(data_path: str | None = None) -> Dataset:
    """The Boston house prices, from ``data_path`` (TensorFlow's boston_house_prices.csv)."""
    if data_path is None:
        raise errors.NotFoundError(
            None,
            None,
            "Headrace does not come with the Boston data. Pass data_path=, the path of "
            "TensorFlow's "
            "boston_house_prices.csv.",
        )
    return load_csv_with_header(data_path, target_dtype=float, features_dtype=float)


def maybe_download(filename: str, work_directory: str, source_url: str) -> str:
    """The path of a file that is in ``work_directory`` already. Headrace does not download.

    TensorFlow fetches a missing file from ``source_url``; here it is a NotFoundError that names the
    address and the place.
    """
    path = os.path.join(work_directory, filename)
    if not os.path.exists(path):
        raise errors.NotFoundError(
            None,
            None,
            f"{path} does not exist, and Headrace does not download. Get it from "
            f"{source_url} and put it there.",
        )
    return path
