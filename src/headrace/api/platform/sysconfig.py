"""``tf.sysconfig``: there is no C++ library to build against, and asking for one says so."""

from __future__ import annotations

from typing import NoReturn

__all__ = [
    "CXX11_ABI_FLAG",
    "MONOLITHIC_BUILD",
    "get_compile_flags",
    "get_include",
    "get_lib",
    "get_link_flags",
]

CXX11_ABI_FLAG = 1
MONOLITHIC_BUILD = 0


def _nothing_to_build_against() -> NoReturn:
    raise NotImplementedError(
        "Headrace has no TensorFlow headers or libraries: custom C++ ops cannot be built "
        "against it. "
        "Write the op in Python with tf.py_func and tf.custom_gradient."
    )


def get_include() -> str:
    """Raises: Headrace has no C headers, so there is nothing to compile an op against."""
    _nothing_to_build_against()


def get_lib() -> str:
    """Raises: Headrace has no shared library to link against."""
    _nothing_to_build_against()


def get_compile_flags() -> list[str]:
    """Raises: Headrace has no C headers, so there are no flags to compile with."""
    _nothing_to_build_against()


def get_link_flags() -> list[str]:
    """Raises: Headrace has no shared library to link against."""
    _nothing_to_build_against()
