"""Samples of the ops that parse records.

Examples, SequenceExamples, CSV, raw bytes, tensors, and files.
"""

import os
import struct
import tempfile
import zlib

import numpy as np

from tests.samples.base import Sample, c64, f32, i64, strings

# serialized messages, written by hand -----------------------------------------------------------


def number(n):
    out = bytearray()
    n &= (1 << 64) - 1
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes(out + bytearray([n]))


def part(field, data):
    return number(field << 3 | 2) + number(len(data)) + data


def feature(values, packed=True):
    """bytes, float or int values; None for a feature without a list."""
    if values is None:
        return b""
    if len(values) == 0:
        return part(3, b"")
    if isinstance(values[0], bytes):
        return part(1, b"".join(part(1, v) for v in values))
    if isinstance(values[0], float):
        raw = [struct.pack("<f", v) for v in values]
        return part(2, part(1, b"".join(raw)) if packed else b"".join(b"\x0d" + r for r in raw))
    raw = [number(v) for v in values]
    return part(3, part(1, b"".join(raw)) if packed else b"".join(b"\x08" + r for r in raw))


def features(table, packed=True):
    return b"".join(
        part(1, part(1, k.encode()) + part(2, feature(table[k], packed))) for k in sorted(table)
    )


def example(packed=True, **table):
    return part(1, features(table, packed))


def sequence(context, lists):
    entries = b""
    for key in sorted(lists):
        steps = b"".join(part(1, feature(step)) for step in lists[key])
        entries += part(1, part(1, key.encode()) + part(2, steps))
    return part(1, features(context)) + part(2, entries)


ONE = example(a=[1, -2, 300], b=[0.5, 1.5], c=[b"x", b"yz"], d=[7])
TWO = example(a=[4, 5, 1 << 40], b=[2.5, 3.5], c=[b""], d=[8])
BARE = example(a=[9, 9, 9])
UNPACKED = example(False, a=[1, -2, 300], b=[0.5, 1.5], c=[b"x"], d=[7])
MANY = example(a=list(range(-40, 90, 3)), b=[i / 4.0 for i in range(30)])
NONE = np.array([], object)


def parse_single(record, sparse=(), dense=()):
    """``sparse``: (key, type); ``dense``: (key, default, shape)."""
    return Sample(
        "ParseSingleExample",
        dict(serialized=strings(record), dense_defaults=[d for _, d, _ in dense]),
        dict(
            num_sparse=len(sparse),
            sparse_keys=[k for k, _ in sparse],
            dense_keys=[k for k, _, _ in dense],
            sparse_types=[t for _, t in sparse],
            dense_shapes=[s for _, _, s in dense],
            Tdense=[],
        ),
    )


def parse(records, sparse=(), dense=(), names=NONE):
    return Sample(
        "ParseExample",
        dict(
            serialized=strings(records),
            names=names,
            sparse_keys=[strings(k) for k, _ in sparse],
            dense_keys=[strings(k) for k, _, _ in dense],
            dense_defaults=[d for _, d, _ in dense],
        ),
        dict(
            sparse_types=[t for _, t in sparse],
            dense_shapes=[s for _, _, s in dense],
            Nsparse=len(sparse),
            Ndense=len(dense),
            Tdense=[],
        ),
    )


def no(kind):
    return NONE if kind == "string" else np.array([], kind)


ALL_DENSE = [("a", no("int64"), [3]), ("b", no("float32"), [2]), ("d", no("int64"), [])]
ALL_SPARSE = [("a", "int64"), ("b", "float32"), ("c", "string"), ("none", "int64")]
WORDS = sequence(
    dict(n=[3], w=[0.5]), dict(t=[[1, 2], [3, 4], [5, 6]], s=[[b"a"], [b"-"], [b"b", b"c"]])
)
SHORT = sequence(dict(n=[4, 5]), dict(t=[[7, 8]], s=[[b"q"]]))


def single_sequence(record, context_sparse, context_dense, sparse, dense, optional=()):
    return Sample(
        "ParseSingleSequenceExample",
        dict(
            serialized=strings(record),
            feature_list_dense_missing_assumed_empty=strings(list(optional)) if optional else NONE,
            context_sparse_keys=[strings(k) for k, _ in context_sparse],
            context_dense_keys=[strings(k) for k, _, _ in context_dense],
            feature_list_sparse_keys=[strings(k) for k, _ in sparse],
            feature_list_dense_keys=[strings(k) for k, _, _ in dense],
            context_dense_defaults=[d for _, d, _ in context_dense],
            debug_name=strings("sample"),
        ),
        sequence_attrs(context_sparse, context_dense, sparse, dense),
    )


def sequence_attrs(context_sparse, context_dense, sparse, dense):
    return dict(
        Ncontext_sparse=len(context_sparse),
        Ncontext_dense=len(context_dense),
        Nfeature_list_sparse=len(sparse),
        Nfeature_list_dense=len(dense),
        context_sparse_types=[t for _, t in context_sparse],
        context_dense_shapes=[s for _, _, s in context_dense],
        feature_list_sparse_types=[t for _, t in sparse],
        feature_list_dense_types=[t for _, t, _ in dense],
        feature_list_dense_shapes=[s for _, _, s in dense],
        Tcontext_dense=[],
    )


def batch_sequence(records, context_sparse, context_dense, sparse, dense, optional=()):
    attrs = sequence_attrs(context_sparse, context_dense, sparse, dense)
    attrs.update(
        feature_list_dense_missing_assumed_empty=list(optional),
        context_sparse_keys=[k for k, _ in context_sparse],
        context_dense_keys=[k for k, _, _ in context_dense],
        feature_list_sparse_keys=[k for k, _ in sparse],
        feature_list_dense_keys=[k for k, _, _ in dense],
    )
    defaults = [d for _, d, _ in context_dense]
    return Sample(
        "ParseSequenceExample",
        dict(serialized=strings(records), debug_name=NONE, context_dense_defaults=defaults),
        attrs,
    )


def csv(records, defaults, **attrs):
    return Sample(
        "DecodeCSV",
        dict(records=strings(records), record_defaults=defaults),
        dict(attrs, OUT_TYPE=[]),
    )


PADDED_BUG = "TensorFlow 1.15 places the rows of wider types wrongly; later versions do it so"
HERE = os.path.dirname(os.path.abspath(__file__))
PICTURES = os.path.join(os.path.dirname(HERE), "golden", "images")
THIS_MACHINE = "the path is this machine's"


def contents(path):
    with open(path, "rb") as f:
        return f.read()


def gzipped(data):
    """Without a date, unlike ``gzip.compress``."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)
    return compressor.compress(data) + compressor.flush()


def tensor(array):
    """A serialized TensorProto with the values in their own fields, not as raw bytes."""
    dims = b"".join(part(2, b"\x08" + number(d)) for d in array.shape)
    if array.dtype.kind == "i":
        kind, field, data = 9, 10, b"".join(number(int(v)) for v in array.reshape(-1))
    else:
        kind, field = (8, 9) if array.dtype.kind == "c" else (1, 5)
        data = array.tobytes()
    return b"\x08" + number(kind) + part(2, dims) + part(field, data)


def wav(channels, frames):
    """A WAV file with another chunk before its data."""
    data = struct.pack("<%dh" % (channels * frames), *range(-5, channels * frames - 5))
    form = struct.pack("<HHIIHH", 1, channels, 8000, 16000 * channels, 2 * channels, 16)
    chunks = ((b"fmt ", form), (b"LIST", b"info"), (b"data", data))
    body = b"WAVE" + b"".join(n + struct.pack("<I", len(d)) + d for n, d in chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


SAMPLES = [
    parse_single(ONE, dense=ALL_DENSE),
    parse_single(UNPACKED, dense=ALL_DENSE),
    parse_single(ONE, sparse=ALL_SPARSE),
    parse_single(UNPACKED, sparse=ALL_SPARSE),
    parse_single(MANY, sparse=[("a", "int64"), ("b", "float32")]),
    parse_single(ONE, [("c", "string")], [("d", no("int64"), []), ("zz", f32(2, 2), [2, 2])]),
    parse_single(ONE, dense=[("c", strings([["p"], ["q"]]), [2, 1]), ("none", strings("p"), [])]),
    parse_single(ONE, dense=[("a", np.int64(0), [None]), ("none", np.float32(0), [None, 2])]),
    parse_single(b"", dense=[("a", np.int64(5), [])]),
    parse([ONE, TWO, ONE, ONE], dense=ALL_DENSE),
    parse([ONE, UNPACKED], dense=ALL_DENSE),
    parse([ONE, TWO, BARE, ONE], sparse=ALL_SPARSE),
    parse([MANY] * 3, sparse=ALL_SPARSE),
    parse([MANY] * 3, dense=[("a", no("int64"), [44]), ("b", no("float32"), [15, 2])]),
    parse(
        [ONE, BARE], dense=[("b", f32(2), [2]), ("d", np.int64(-1), [])], names=strings(["p", "q"])
    ),
    parse([ONE, TWO, BARE], dense=[("c", strings("-"), [None]), ("b", np.float32(9), [None, 1])]),
    parse([ONE], [("c", "string")], [("d", no("int64"), [])]),
    parse(NONE, ALL_SPARSE, ALL_DENSE),
    single_sequence(
        WORDS,
        [("n", "int64")],
        [("w", no("float32"), [])],
        [("s", "string")],
        [("t", "int64", [2])],
    ),
    single_sequence(
        WORDS, [], [("u", f32(2), [2])], [("none", "int64")], [("z", "float32", [2])], ["z"]
    ),
    batch_sequence(
        [WORDS, SHORT],
        [("n", "int64")],
        [("w", np.float32(-1), [])],
        [("s", "string")],
        [("t", "int64", [2])],
    ),
    batch_sequence([SHORT, WORDS], [("w", "float32")], [], [], [("z", "string", [])], ["z"]),
    csv(["1,2.5,abc", '3,4,"x,""y"""'], [np.int32([0]), np.float32([0]), strings([""])]),
    csv("7,,", [np.int64([1]), np.float64([1.5]), strings(["d"])]),
    csv(["NA;2"], [np.float32([5]), np.float32([])], field_delim=";", na_value="NA"),
    csv([['"1",a"b']], [strings([""]), strings([""])], use_quote_delim=False),
    csv(["1,2,3,4", "5,6,7,"], [np.int32([0]), strings(["-"])], select_cols=[1, 3]),
    Sample(
        "DecodePaddedRaw",
        dict(input_bytes=strings(["abcd", "ab", "abcdefgh"]), fixed_length=np.int32(5)),
        dict(out_type="uint8"),
    ),
    Sample(
        "DecodePaddedRaw",
        dict(input_bytes=strings(["abcd", "ab"]), fixed_length=np.int32(4)),
        dict(out_type="int16"),
        golden=False,
        why=PADDED_BUG,
        expect=np.array([[25185, 25699], [25185, 0]], np.int16),
    ),
    Sample(
        "DecodePaddedRaw",
        dict(input_bytes=strings(["abcd"]), fixed_length=np.int32(4)),
        dict(out_type="int16", little_endian=False),
    ),
    Sample(
        "DecodeCompressed",
        dict(bytes=strings([zlib.compress(b"abc"), zlib.compress(b"")])),
        dict(compression_type="ZLIB"),
    ),
    Sample(
        "DecodeCompressed",
        dict(bytes=strings([gzipped(b"abc"), gzipped(b"defg" * 50)])),
        dict(compression_type="GZIP"),
    ),
    Sample("DecodeCompressed", dict(bytes=strings(["as it is"]))),
    Sample("SerializeTensor", dict(tensor=f32(2, 3))),
    Sample("SerializeTensor", dict(tensor=np.int32(3))),
    Sample("SerializeTensor", dict(tensor=strings(["a", "bc"]))),
    Sample("SerializeTensor", dict(tensor=np.zeros((0, 200), np.float64))),
    Sample("ParseTensor", dict(serialized=strings(tensor(f32(2, 3)))), dict(out_type="float32")),
    Sample("ParseTensor", dict(serialized=strings(tensor(i64(4)))), dict(out_type="int64")),
    Sample("ParseTensor", dict(serialized=strings(tensor(c64(2)))), dict(out_type="complex64")),
    Sample(
        "ParseTensor",
        dict(serialized=strings(b"\x08\x07\x12\x04\x12\x02\x08\x02B\x01aB\x02bb")),
        dict(out_type="string"),
    ),
    Sample(
        "ParseTensor",
        dict(serialized=strings(b'\x08\x03\x12\x00"\x04\x03\x00\x00\x00')),
        dict(out_type="int32"),
    ),
    Sample("EncodeWav", dict(audio=f32(5, 2), sample_rate=np.int32(8000))),
    Sample("DecodeWav", dict(contents=strings(wav(2, 7)))),
    Sample("DecodeWav", dict(contents=strings(wav(1, 3))), dict(desired_channels=3)),
    Sample(
        "DecodeWav", dict(contents=strings(wav(2, 4))), dict(desired_channels=1, desired_samples=6)
    ),
    Sample("AudioSpectrogram", dict(input=f32(90, 1)), dict(window_size=25, stride=10)),
    Sample(
        "AudioSpectrogram",
        dict(input=f32(90, 1)),
        dict(window_size=16, stride=20, magnitude_squared=True),
    ),
    Sample("AudioSpectrogram", dict(input=f32(20, 1)), dict(window_size=25, stride=10)),
    Sample("Mfcc", dict(spectrogram=np.abs(f32(1, 3, 257)), sample_rate=np.int32(16000))),
    Sample(
        "Mfcc",
        dict(spectrogram=np.abs(f32(2, 2, 129)), sample_rate=np.int32(16000)),
        dict(
            upper_frequency_limit=7000.0,
            lower_frequency_limit=100.0,
            filterbank_channel_count=26,
            dct_coefficient_count=20,
        ),
    ),
    Sample("Mfcc", dict(spectrogram=np.abs(f32(1, 3, 65)), sample_rate=np.int32(4000))),
    Sample(
        "ReadFile",
        dict(filename=strings(os.path.join(PICTURES, "rgb.png"))),
        golden=False,
        why=THIS_MACHINE,
        expect=strings(contents(os.path.join(PICTURES, "rgb.png"))),
    ),
    Sample(
        "WriteFile",
        dict(
            filename=strings(os.path.join(tempfile.gettempdir(), "headrace_sample", "written")),
            contents=strings("text"),
        ),
        golden=False,
        why=THIS_MACHINE,
        expect=[],
    ),
    Sample(
        "MatchingFiles",
        dict(pattern=strings([os.path.join(PICTURES, p) for p in ("rgb.*", "*.gif")])),
        golden=False,
        why=THIS_MACHINE,
        expect=strings(
            [os.path.join(PICTURES, n) for n in ("frames.gif", "one.gif", "rgb.bmp", "rgb.png")]
        ),
    ),
]
