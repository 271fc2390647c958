"""tf.gfile, tf.io.gfile and tf.python_io: run with TensorFlow 1.15's Python, this writes
gfile.json. Python 3.7 syntax.
"""

import json
import os
import sys
import tempfile

from tests.golden.inner_paths import inner

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


def _noted(tf, top):
    out = []

    def note(function, *args, **kwargs):
        try:
            found = function(*args, **kwargs)
        except (tf.errors.OpError, ValueError, TypeError) as error:
            found = type(error).__name__
        text = json.dumps(found, default=lambda b: ["bytes", b.decode("latin-1")])
        out.append(json.loads(text.replace(top, "TOP")))

    return out, note


def patterns(tf):
    """Hidden files, classes of characters, escapes, links, patterns without a folder."""
    top = tempfile.mkdtemp()
    out, note = _noted(tf, top)
    os.makedirs(os.path.join(top, "w", "x", "y"))
    for name in ("1", "2.txt", ".hid", "[z]", "x/3"):
        with open(os.path.join(top, "w", *name.split("/")), "w"):
            pass
    os.symlink(os.path.join(top, "w", "x"), os.path.join(top, "w", "link"))
    os.symlink("nowhere", os.path.join(top, "w", "dead"))
    gfile, two = tf.gfile, tf.io.gfile
    for text in [
        "w/*",
        "w/.*",
        "w/**",
        "w/?",
        "w/[12]*",
        "w/[!1]*",
        "w/[^1]*",
        "w/\\[z\\]",
        "w/*/3",
        "w/{1,2.txt}",
        "w/",
        "w",
        "*/x/*",
        "w/[1-2]",
        "w/[",
        "w/x//3",
        "w/./1",
        "**/3",
        "w/1/*",
        "no/*",
        "w//1",
    ]:
        note(lambda t=text: sorted(gfile.Glob(os.path.join(top, t))))
    note(gfile.Glob, [])
    here = os.getcwd()
    os.chdir(top)
    try:
        for text in ("w/*", "*", "./w/1", "w", "[^w]"):
            note(lambda t=text: sorted(two.glob(t)))
            note(lambda t=text: tf.Session().run(tf.matching_files(t)).tolist())
    finally:
        os.chdir(here)
    for walk in (gfile.Walk, two.walk):
        for start in ("w", "w/"):
            at = os.path.join(top, start)
            note(lambda w=walk, a=at: sorted([p, sorted(d), sorted(f)] for p, d, f in w(a)))
    note(lambda: [p for p, _, _ in gfile.Walk(os.path.join(top, "w", "link"), False)])
    note(gfile.MakeDirs, os.path.join(top, "w", "1"))
    note(gfile.DeleteRecursively, os.path.join(top, "w", "1"))
    note(gfile.Remove, os.path.join(top, "w", "dead"))
    note(lambda: os.path.lexists(os.path.join(top, "w", "dead")))
    for address in ("http://a/b", "foo://x", "file://" + os.path.join(top, "w", "1")):
        note(gfile.Exists, address)
        note(lambda a=address: gfile.GFile(a).read())
    return out


def lines(tf):
    """Carriage returns, seeking, bytes, comparing."""
    top = tempfile.mkdtemp()
    out, note = _noted(tf, top)
    path = os.path.join(top, "crlf")
    with open(path, "wb") as f:
        f.write(b"a\r\nb\rc\n\nd")
    for mode in ("r", "rb"):
        note(lambda m=mode: tf.gfile.GFile(path, m).readlines())
        note(lambda m=mode: tf.gfile.GFile(path, m).read())
        note(lambda m=mode: list(tf.gfile.GFile(path, m)))
    f = tf.gfile.GFile(path)
    for given in ({"offset": 3, "position": 4}, {"offset": -1}, {"offset": 99}, {"offset": 9}):
        note(lambda g=given: f.seek(**g))
    note(f.seek, 2, 1)
    note(f.seek, -3, 2)
    note(f.read)
    note(f.seekable)
    with tf.gfile.GFile(os.path.join(top, "bytes"), "wb") as g:
        note(g.write, "\u00e9")
        note(g.write, b"\xff")
        note(g.write, 3)
        note(g.write, None)
        note(g.flush)
        note(g.size)
    with tf.Session() as session:
        reader, queue = tf.TextLineReader(), tf.FIFOQueue(2, tf.string)
        session.run(queue.enqueue(path))
        _, line = reader.read(queue)
        note(lambda: [session.run(line).decode() for _ in range(4)])
        for i, content in enumerate((b"a\r\nb\rc\nd", b"a\n\nb\n", b"a\nb\r\n\r\n")):
            words = os.path.join(top, "words%d" % i)
            with open(words, "wb") as f:
                f.write(content)
            table = tf.contrib.lookup.index_table_from_file(words, vocab_size=None)
            note(lambda t=table: session.run(t.initializer))
            note(lambda t=table: session.run(t.lookup(tf.constant(["a", "bc", "d", "b"]))).tolist())
    for name, given in (
        ("filecmp", (path, path)),
        ("filecmp", (path, os.path.join(top, "bytes"))),
        ("filecmp", (path, os.path.join(top, "no"))),
        ("file_crc32", (path,)),
        ("file_crc32", (path, 3)),
        ("get_matching_files_v2", (path,)),
    ):
        note(inner(tf, "python.lib.io.file_io", name), *given)
    return out


def positions(tf):
    """Reading and writing through one GFile: each has a place of its own."""
    out, folder = [], tempfile.mkdtemp()

    def note(function, *args):
        try:
            found = function(*args)
        except (tf.errors.OpError, ValueError, TypeError) as error:
            found = type(error).__name__
        out.append(json.loads(json.dumps(found, default=lambda b: ["bytes", b.decode("latin-1")])))

    for there in (False, True):
        for mode in ("r+", "w+", "a+", "rb+", "wb+", "a", "w"):
            path = os.path.join(folder, mode + str(there))
            if there:
                with open(path, "w") as file:
                    file.write("already\nthere\n")
            f = tf.gfile.GFile(path, mode)
            note(f.tell)
            note(f.read, 3)
            note(f.write, "ab\nc")
            note(f.flush)
            note(f.tell)
            note(f.readline)
            note(f.size)
            note(f.seek, 1)
            note(f.write, b"de")
            note(f.flush)
            note(f.read)
            note(f.tell)
            note(f.close)
            note(tf.gfile.GFile(path).read)
    return out


def everything(tf):
    parts = (files, folders, records, patterns, lines, positions)
    return {part.__name__: part(tf) for part in parts}


if __name__ == "__main__":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow

    with open(os.path.join(HERE, "gfile.json"), "w") as f:
        json.dump(everything(tensorflow), f, indent=1)
        f.write("\n")
    sys.exit()
