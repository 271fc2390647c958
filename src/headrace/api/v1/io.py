"""``tf.io``: files."""

from headrace.api.missing import module_getattr

__all__: list[str] = []

__getattr__ = module_getattr("io", __name__, modules={"gfile": "headrace.api.v1.io_gfile"})
