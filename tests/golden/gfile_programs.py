"""tf.gfile, tf.io.gfile and tf.python_io: run with TensorFlow 1.15's Python, this writes
gfile.json. Python 3.7 syntax.
"""

import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def files(tf):
    """GFile in every mode, seeking, errors."""
    out, folder = [], tempfile.mkdtemp()
    path = os.path.join(folder, "f.txt")

    def note(function, *args, **kwargs):
        try:
            found = function(*args, **kwargs)
        except (tf.errors.OpError, ValueError, TypeError) as error:
            found = type(error).__name__
        out.append(json.loads(json.dumps(found, default=lambda b: ["bytes", b.decode("latin-1")])))

    note(tf.gfile.GFile(path, "r").read)
    note(tf.gfile.GFile, path, "x")
    for mode in ("w", "a", "w+", "a+"):
        with tf.gfile.GFile(os.path.join(folder, mode), mode) as f:
            f.flush()  # nothing is written
        note(os.path.exists, os.path.join(folder, mode))
        note(tf.gfile.GFile(os.path.join(folder, mode), mode).read)
        note(os.path.exists, os.path.join(folder, mode))
    with tf.gfile.GFile(path, "w") as f:
        note(f.read)
        note(f.write, "one\ntwo\n")
        note(f.tell)
        note(f.write, b"bytes\n")
        note(f.flush)
        note(f.size)
    with tf.gfile.Open(path, "a") as f:
        f.write("\u00fc\n")
        note(f.tell)
    for mode in ("r", "rb"):
        f = tf.gfile.FastGFile(path, mode)
        note(f.read, 3)
        note(f.tell)
        note(f.read, 1)
        note(f.readline)
        note(f.seek, 4)
        note(f.read, 0)
        note(f.readlines)
        note(f.read)
        note(f.seek, 0, 2)
        note(f.tell)
        note(f.seek, -3, 1)
        note(f.read)
        note(f.seek, -3, 2)
        note(f.tell)
        note(f.seek, 0, 3)
        note(f.seek)
        note(f.seek, position=2)
        note(f.read)
        note(f.write, "no")
        note(f.size)
        out.append([f.name == path, f.mode])
        f.seek(0)
        note(lambda f=f: [type(line).__name__ for line in f])
        note(f.close)
        note(f.close)
        note(f.read, 2)
    for mode in ("w+", "r+", "a+", "rw", "wb"):
        if mode != "w+":
            note(lambda m=mode: tf.gfile.GFile(path, m).read())
    note(lambda: tf.gfile.GFile(folder, "r").read())
    note(lambda: tf.gfile.GFile(os.path.join(folder, "no", "f"), "w").write("x"))
    return out


def folders(tf):
    """Every function of folders and files."""
    out, top = [], tempfile.mkdtemp()
    gfile, two = tf.gfile, tf.io.gfile

    def at(*parts):
        return os.path.join(top, *parts)

    def note(function, *args, **kwargs):
        try:
            found = function(*args, **kwargs)
        except (tf.errors.OpError, ValueError, TypeError) as error:
            found = type(error).__name__
        out.append(json.loads(json.dumps(found).replace(top, "TOP")))

    note(gfile.MkDir, at("a"))
    note(gfile.MkDir, at("a"))
    note(gfile.MkDir, at("x", "y"))
    note(gfile.MakeDirs, at("a", "b", "c"))
    note(gfile.MakeDirs, at("a", "b", "c"))
    for name in ("1.txt", "2.txt", "3.bin"):
        with gfile.GFile(at("a", name), "w") as f:
            f.write(name)
    note(gfile.Exists, at("a", "1.txt"))
    note(gfile.Exists, at("no"))
    note(gfile.IsDirectory, at("a"))
    note(gfile.IsDirectory, at("a", "1.txt"))
    note(gfile.IsDirectory, at("no"))
    note(lambda: sorted(gfile.ListDirectory(at("a"))))
    note(gfile.ListDirectory, at("no"))
    note(lambda: sorted(two.listdir(at("a"))))
    note(two.listdir, at("a", "1.txt"))
    note(lambda: sorted(gfile.Glob(at("a", "*.txt"))))
    note(lambda: sorted(gfile.Glob([at("a", "?.bin"), at("a", "[12].*")])))
    note(gfile.Glob, at("no", "*"))
    note(two.glob, at("a", "{1,2}.txt"))
    note(lambda: sorted(two.glob(at("*", "*.txt"))))
    note(lambda: [gfile.Stat(at("a", "1.txt")).length, gfile.Stat(at("a")).is_directory])
    note(lambda: two.stat(at("no")).length)
    note(lambda: [[p, sorted(d), sorted(f)] for p, d, f in gfile.Walk(top)])
    note(lambda: [[p, sorted(d), sorted(f)] for p, d, f in gfile.Walk(top, in_order=False)])
    note(lambda: [[p, sorted(d), sorted(f)] for p, d, f in two.walk(at("a"), topdown=False)])
    note(lambda: list(gfile.Walk(at("no"))))
    note(gfile.Copy, at("a", "1.txt"), at("a", "2.txt"))
    note(gfile.Copy, at("a", "1.txt"), at("a", "2.txt"), overwrite=True)
    note(lambda: gfile.GFile(at("a", "2.txt")).read())
    note(two.copy, at("a", "no"), at("a", "4"))
    note(gfile.Rename, at("a", "3.bin"), at("a", "1.txt"))
    note(gfile.Rename, at("a", "3.bin"), at("a", "1.txt"), True)
    note(two.rename, at("a", "no"), at("a", "5"))
    note(gfile.Remove, at("a", "1.txt"))
    note(gfile.Remove, at("a", "1.txt"))
    note(gfile.Remove, at("a"))
    note(two.rmtree, at("no"))
    note(gfile.DeleteRecursively, at("a"))
    note(two.mkdir, at("a"))
    note(two.makedirs, at("a", "d"))
    note(lambda: two.isdir(at("a", "d")) and two.exists(at("a")))
    note(two.remove, at("no"))
    return out


def records(tf):
    """TFRecord files with both compressions and every option."""
    out, folder = [], tempfile.mkdtemp()
    python_io = tf.python_io
    kinds = python_io.TFRecordCompressionType
    options = [
        None, python_io.TFRecordOptions(kinds.GZIP), python_io.TFRecordOptions(kinds.ZLIB),
        python_io.TFRecordOptions("GZIP", compression_level=9, mem_level=9),
        python_io.TFRecordOptions("ZLIB", compression_strategy=0, window_bits=15),
    ]  # fmt: skip
    for i, option in enumerate(options):
        path = os.path.join(folder, str(i))
        with python_io.TFRecordWriter(path, option) as writer:
            for n in range(3):
                writer.write(b"r%d" % n * (n + 1))
            writer.flush()
        found = [r.decode() for r in python_io.tf_record_iterator(path, option)]
        with open(path, "rb") as f:
            head = f.read(2)
        out.append([found, head == b"\x1f\x8b", head[:1] == b"x"])
        out.append(python_io.TFRecordOptions.get_compression_type_string(option))
    for bad in ("NO", 7):
        try:
            out.append(python_io.TFRecordOptions.get_compression_type_string(bad))
        except (ValueError, KeyError, AttributeError) as error:
            out.append(type(error).__name__)
    return out


def everything(tf):
    return {"files": files(tf), "folders": folders(tf), "records": records(tf)}


if __name__ == "__main__":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow

    with open(os.path.join(HERE, "gfile.json"), "w") as f:
        json.dump(everything(tensorflow), f, indent=1)
        f.write("\n")
    sys.exit()
