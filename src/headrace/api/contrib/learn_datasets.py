"""``tf.contrib.learn.datasets``: MNIST, iris and Boston from local files."""

from __future__ import annotations

from typing import Any

from headrace.data.classic import csv_tables as base
from headrace.data.classic import mnist_files as mnist
from headrace.data.classic.csv_tables import load_boston, load_iris

__all__ = ["DATASETS", "base", "load_boston", "load_dataset", "load_iris", "mnist"]

DATASETS = {"boston": load_boston, "iris": load_iris, "mnist": mnist.load_mnist}


def load_dataset(
    name: str, size: str = "small", test_with_fake_data: bool = False
) -> tuple[Any, ...]:
    """A data set by its name.

    ``size`` and ``test_with_fake_data`` choose among the files of dbpedia, which is not here.
    """
    if name == "dbpedia":
        raise NotImplementedError(
            f"dbpedia (size={size!r}, test_with_fake_data={test_with_fake_data}) is not "
            "here: read its CSV files with "
            "tf.data or contrib.learn.datasets.base.load_csv_without_header."
        )
    if name not in DATASETS:
        raise ValueError(f"Name of dataset is not found: {name}")
    return DATASETS[name]()
