"""Compiled protocol buffers of TensorFlow 1's time."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2

from headrace.dropin import old_protos

_OLD = """
import sys
_b=sys.version_info[0]<3 and (lambda x:x) or (lambda x:x.encode('latin1'))
from google.protobuf import descriptor as _descriptor
{imports}
DESCRIPTOR = _descriptor.FileDescriptor(
  name='{name}.proto', package='{name}', syntax='proto3', serialized_pb={described})
raise TypeError("Descriptors cannot be created directly")
"""


def _write(folder: Path, name: str, described: str, imports: str = "") -> None:
    text = _OLD.format(name=name, described=described, imports=imports)
    (folder / f"{name}_pb2.py").write_text(text)


def _file(name: str, field: str, kind: int, of: str = "") -> descriptor_pb2.FileDescriptorProto:
    made = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", package=name, syntax="proto3")
    message = made.message_type.add(name="Point")
    message.field.add(name=field, number=1, type=kind, label=1, type_name=of or None)
    made.enum_type.add(name="Colour").value.add(name="RED", number=0)
    return made


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    old_protos.install()
    yield tmp_path
    old_protos.uninstall()
    for name in [n for n in sys.modules if n.startswith("hr_old_")]:
        del sys.modules[name]


def test_messages_and_enumerations(folder):
    first = _file("hr_old_first", "size", 5)
    _write(folder, "hr_old_first", repr(first.SerializeToString()))
    module = importlib.import_module("hr_old_first_pb2")
    point = module.Point(size=7)
    assert module.Point.FromString(point.SerializeToString()).size == 7
    assert module.RED == 0
    assert module.DESCRIPTOR.name == "hr_old_first.proto"


def test_bytes_as_latin_1_and_a_file_that_needs_another(folder):
    base = _file("hr_old_base", "size", 5)
    _write(folder, "hr_old_base", repr(base.SerializeToString()))
    user = _file("hr_old_user", "base", 11, ".hr_old_base.Point")
    user.dependency.append("hr_old_base.proto")
    described = f"_b({user.SerializeToString().decode('latin-1')!r})"
    _write(folder, "hr_old_user", described, "import hr_old_base_pb2 as hr__old__base__pb2")
    module = importlib.import_module("hr_old_user_pb2")
    assert module.Point(base={"size": 3}).base.size == 3


def test_modules_of_today_are_left_alone(folder):
    (folder / "hr_old_new_pb2.py").write_text("DESCRIPTOR = 'FileDescriptor(serialized_pb)'\n")
    assert importlib.import_module("hr_old_new_pb2").DESCRIPTOR.startswith("FileDescriptor")


def test_after_uninstall_python_reads_them(folder):
    old_protos.uninstall()
    _write(folder, "hr_old_late", repr(_file("hr_old_late", "size", 5).SerializeToString()))
    with pytest.raises(TypeError):
        importlib.import_module("hr_old_late_pb2")
