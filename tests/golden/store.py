"""How golden values are kept: one ``<family>.npz`` per sample module, read and written without
pickle.

A file has two members: ``manifest`` (JSON, as bytes) and ``data`` (the bytes of all arrays, end to
end). The manifest gives for every sample key a fingerprint of the sample, and each output's dtype,
shape and place in ``data``, or the reason why TensorFlow could not run it. Strings sit in the
manifest itself. Runs under Python 3.7 and NumPy 1.18 too.
"""

import importlib
import json
import os
import pkgutil
import zlib

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def families():
    """Names of the sample modules."""
    import tests.samples

    names = [m.name for m in pkgutil.iter_modules(tests.samples.__path__)]
    return sorted(n for n in names if n != "base")


def load_samples(family):
    """(key, sample) pairs of a family; the key is the sample's id, made unique by a counter."""
    module = importlib.import_module("tests.samples." + family)
    seen = {}
    pairs = []
    for sample in module.SAMPLES:
        n = seen[sample.id] = seen.get(sample.id, 0) + 1
        pairs.append((sample.id if n == 1 else "%s#%d" % (sample.id, n), sample))
    return pairs


def fingerprint(sample):
    """Changes with anything that TensorFlow's result may depend on."""
    crc = zlib.crc32(sample.op.encode())
    for name in sorted(sample.inputs):
        value = sample.inputs[name]
        for part in value if isinstance(value, (list, tuple)) else [value]:
            crc = zlib.crc32(_bytes_of(np.asarray(part)), zlib.crc32(name.encode(), crc))
    attrs = [(k, _attr_text(sample.attrs[k])) for k in sorted(sample.attrs)]
    return zlib.crc32(repr((attrs, sorted(sample.const))).encode(), crc)


def _attr_text(value):
    if isinstance(value, np.ndarray):
        return (value.dtype.name, value.tolist())
    return value.item() if isinstance(value, np.generic) else value


def _bytes_of(array):
    head = "%s%s" % (array.dtype.name, array.shape)
    body = (
        repr(array.tolist()).encode()
        if array.dtype == object
        else np.ascontiguousarray(array).tobytes()
    )
    return head.encode() + body


class Writer(object):
    """Collects the results of one family."""

    def __init__(self):
        self.manifest = {}
        self.data = []
        self.size = 0

    def add(self, key, sample, outputs, after):
        """``after``: values of written-to inputs after the run, by input name."""
        self.manifest[key] = {
            "sig": fingerprint(sample),
            "outputs": [self._encode(o) for o in outputs],
            "after": {name: self._encode(after[name]) for name in sorted(after)},
        }

    def add_error(self, key, sample, message):
        self.manifest[key] = {"sig": fingerprint(sample), "error": message}

    def _encode(self, value):
        array = np.asarray(value)
        if array.dtype.kind in "OSU":
            flat = [v if isinstance(v, bytes) else v.encode() for v in array.reshape(-1).tolist()]
            text = [v.decode("latin-1") for v in flat]
            return {"dtype": "string", "shape": list(array.shape), "values": text}
        raw = np.ascontiguousarray(array).tobytes()
        entry = {"dtype": array.dtype.name, "shape": list(array.shape), "at": self.size}
        self.data.append(raw)
        self.size += len(raw)
        return entry

    def save(self, path):
        manifest = json.dumps(self.manifest, sort_keys=True, separators=(",", ":")).encode()
        np.savez_compressed(
            path,
            manifest=np.frombuffer(manifest, np.uint8),
            data=np.frombuffer(b"".join(self.data), np.uint8),
        )


class Golden(object):
    """The golden values of one family. ``bfloat16`` is the NumPy type to give bfloat16 values
    in.
    """

    def __init__(self, path, bfloat16):
        with np.load(path, allow_pickle=False) as f:
            self.manifest = json.loads(f["manifest"].tobytes().decode())
            self.data = f["data"].tobytes()
        self.bfloat16 = bfloat16

    def entry(self, key):
        return self.manifest.get(key)

    def outputs(self, key):
        return [self._decode(e) for e in self.manifest[key]["outputs"]]

    def after(self, key):
        return {name: self._decode(e) for name, e in self.manifest[key]["after"].items()}

    def _decode(self, entry):
        shape = tuple(entry["shape"])
        if entry["dtype"] == "string":
            out = np.empty(len(entry["values"]), object)
            out[:] = [v.encode("latin-1") for v in entry["values"]]
            return out.reshape(shape)
        dtype = np.dtype(self.bfloat16 if entry["dtype"] == "bfloat16" else entry["dtype"])
        count = 1
        for n in shape:
            count *= n
        return (
            np.frombuffer(self.data, dtype, count, entry["at"]).reshape(shape)
            if count
            else np.empty(shape, dtype)
        )


def path_of(family):
    return os.path.join(HERE, family + ".npz")
