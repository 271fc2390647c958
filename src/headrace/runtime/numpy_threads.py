"""NumPy is imported with no more BLAS threads than a quota of CPU time allows.

OpenBLAS starts a thread for each core of the machine when NumPy is imported. In a container that
may use half a core of 64, that is 63 threads too many. NumPy that was imported before Headrace
keeps what it has.
"""

from __future__ import annotations

import sys

from headrace.env import settings_while_loading
from headrace.runtime.cores import cpu_count, cpu_quota

__all__ = ["import_numpy"]


def import_numpy() -> None:
    """The first import of NumPy in this process.

    Nothing to do if it is loaded already, or time is not limited.
    """
    if "numpy" in sys.modules or cpu_quota() is None:
        return
    with settings_while_loading(OPENBLAS_NUM_THREADS=str(cpu_count())):
        import numpy  # noqa: F401
