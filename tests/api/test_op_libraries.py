"""Native op libraries are refused with a text that says what to do."""

import pytest

import headrace as tf


@pytest.mark.parametrize("load", [tf.load_op_library, tf.load_library, tf.load_file_system_library])
def test_native_libraries(load, tmp_path):
    with pytest.raises(tf.errors.NotFoundError, match="No such file"):
        load(str(tmp_path / "absent.so"))
    path = tmp_path / "ops.so"
    path.write_bytes(b"\x7fELF")
    with pytest.raises(tf.errors.UnimplementedError, match=r"py_func|local disk"):
        load(str(path))
