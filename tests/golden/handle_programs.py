"""Small graphs for ops that make no sense alone: handles, control flow, datasets, iterators, files,
Python functions.

A program is a function of the module that stands for ``tf`` (and of a new folder); it returns
tensors. What TensorFlow 1.15 gives is in handle_programs.json (make_handle_programs.py).
tests/ops/test_samples.py counts the ops that occur in the programs as compared with TensorFlow.
Python 3.7 syntax.
"""

import os

import numpy as np

PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


def result(tf, name, folder):
    """The values that a program gives, as nested lists."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        fetches = PROGRAMS[name](tf.compat.v1, folder)
        session.run(tf.compat.v1.global_variables_initializer())
        session.run(tf.compat.v1.get_collection("first"))
        return plain(session.run(fetches))


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    return value.decode("latin1") if isinstance(value, bytes) else value


def raw(tf, name, **arguments):
    return getattr(tf.raw_ops, name)(**arguments)


# TensorArrays and stacks --------------------------------------------------------------------------


@program
def tensor_array_pieces(tf, folder):
    ta = tf.TensorArray(
        tf.float32, 3, element_shape=[None], infer_shape=False, clear_after_read=False
    )
    ta = ta.split([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1, 3, 2])
    x = tf.constant([1.0, 2.0, 3.0])
    grown = tf.TensorArray(tf.float32, 0, dynamic_size=True, clear_after_read=False).scatter(
        [2, 0, 1], x * x
    )
    total = tf.reduce_sum(grown.stack() * [1.0, 2.0, 3.0])
    return [
        ta.concat(),
        ta.read(1),
        ta.size(),
        grown.size(),
        tf.gradients(total, x)[0],
        grown.gather([2, 2]),
    ]


@program
def tensor_array_closed(tf, folder):
    ta = tf.TensorArray(tf.int32, 2).unstack([4, 5])
    stacked = ta.stack()
    with tf.control_dependencies([stacked]):
        closed = ta.close()
    with tf.control_dependencies([closed]):
        return [tf.identity(stacked)]


@program
def stack_of_two(tf, folder):
    handle = raw(tf, "StackV2", max_size=5, elem_type=tf.float32, stack_name="s")
    one = raw(tf, "StackPushV2", handle=handle, elem=tf.constant([1.0]), swap_memory=False)
    with tf.control_dependencies([one]):
        two = raw(tf, "StackPushV2", handle=handle, elem=tf.constant([2.0, 3.0]), swap_memory=False)
    with tf.control_dependencies([two]):
        last = raw(tf, "StackPopV2", handle=handle, elem_type=tf.float32)
    with tf.control_dependencies([last]):
        first = raw(tf, "StackPopV2", handle=handle, elem_type=tf.float32)
    with tf.control_dependencies([first]):
        closed = raw(tf, "StackCloseV2", handle=handle)
    with tf.control_dependencies([closed]):
        return [last, first, tf.constant(1)]


# control flow -------------------------------------------------------------------------------------


@program
def branch_and_loop(tf, folder):
    x = tf.placeholder_with_default([1.0, 2.0], [2])
    y = tf.cond(tf.reduce_sum(x) > 2, lambda: x * 3, lambda: x - 1)
    return [
        y,
        tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2), [0, y])[1],
        tf.gradients(y, x)[0],
    ]


@program
def reference_branch(tf, folder):
    v = tf.Variable([1.0, 2.0], use_resource=False)
    chosen = tf.cond(
        tf.placeholder_with_default(True, []),
        lambda: tf.assign_add(v, [1.0, 1.0]),
        lambda: tf.assign(v, [0.0, 0.0]),
    )
    return [chosen]


@program
def reference_passed_on(tf, folder):
    v = tf.Variable([1.0, 2.0], use_resource=False)
    switched = raw(tf, "RefSwitch", data=v._ref() if hasattr(v, "_ref") else v, pred=True)
    merged = raw(tf, "RefMerge", inputs=list(switched))
    return [tf.identity(merged[0])]


@program
def parallel_rows(tf, folder):
    return [tf.parallel_stack([tf.constant([1, 2]), tf.constant([3, 4])]), tf.timestamp() > 1e9]


# functions of the process -------------------------------------------------------------------------


@program
def python_functions(tf, folder):
    x = tf.constant([1.0, 2.0])
    doubled = tf.py_func(lambda a: a * 2, [x], tf.float32)
    plain_one = tf.py_func(lambda a: a + 1, [x], tf.float32, stateful=False)
    eager = tf.py_function(lambda a: a * a, [x], tf.float32)
    return [doubled, plain_one, eager, tf.gradients(eager, x)[0]]


@program
def placeholders_and_variables(tf, folder):
    p = tf.placeholder_with_default(tf.constant([1, 2]), [2])
    old = raw(tf, "Variable", shape=[2], dtype=tf.float32, container="", shared_name="")
    tf.add_to_collection("first", tf.assign(old, [3.0, 4.0]))
    new = tf.Variable([1.0], use_resource=False)
    handle = tf.Variable([2.0], use_resource=True)
    return [p, tf.identity(old), new, handle]


@program
def resource_destroyed(tf, folder):
    handle = raw(tf, "VarHandleOp", dtype=tf.float32, shape=[], container="", shared_name="d")
    made = raw(tf, "AssignVariableOp", resource=handle, value=1.0)
    with tf.control_dependencies([made]):
        gone = raw(tf, "DestroyResourceOp", resource=handle, ignore_lookup_error=False)
    with tf.control_dependencies([gone]):
        return [raw(tf, "VarIsInitializedOp", resource=handle)]


# files --------------------------------------------------------------------------------------------


@program
def files(tf, folder):
    path = os.path.join(folder, "a.txt")
    written = tf.write_file(path, "one\ntwo\n")
    with tf.control_dependencies([written]):
        found = tf.matching_files(os.path.join(folder, "*.txt"))
        return [tf.read_file(path), tf.size(found), tf.strings.regex_replace(found, ".*/", "")]


# datasets -----------------------------------------------------------------------------------------


def only(tf, dataset, kind, shape=()):
    """All elements of a dataset of one component, as one tensor."""
    many = raw(
        tf,
        "BatchDatasetV2",
        input_dataset=dataset,
        batch_size=np.int64(100),
        drop_remainder=False,
        output_types=[kind],
        output_shapes=[[None] + list(shape)],
    )
    return raw(
        tf,
        "DatasetToSingleElement",
        dataset=many,
        output_types=[kind],
        output_shapes=[[None] + list(shape)],
    )[0]


def numbers(tf, n=6):
    return raw(
        tf,
        "RangeDataset",
        start=np.int64(0),
        stop=np.int64(n),
        step=np.int64(1),
        output_types=[tf.int64],
        output_shapes=[[]],
    )


def known(tf):
    return {"output_types": [tf.int64], "output_shapes": [[]]}


@program
def old_batches(tf, folder):
    batched = raw(
        tf,
        "BatchDataset",
        input_dataset=numbers(tf),
        batch_size=np.int64(2),
        output_types=[tf.int64],
        output_shapes=[[None]],
    )
    rows = raw(
        tf, "TensorSliceDataset", components=[np.arange(6).reshape(2, 3)], output_shapes=[[3]]
    )
    padded = raw(
        tf,
        "PaddedBatchDataset",
        input_dataset=rows,
        batch_size=np.int64(2),
        padded_shapes=[np.array([4], np.int64)],
        padding_values=[np.int64(-1)],
        output_shapes=[[None, 4]],
    )
    return [only(tf, batched, tf.int64, [2]), only(tf, padded, tf.int64, [2, 4])]


@program
def experimental_names(tf, folder):
    n = numbers(tf)
    again = raw(tf, "ConcatenateDataset", input_dataset=n, another_dataset=n, **known(tf))
    rows = raw(
        tf, "TensorSliceDataset", components=[np.arange(6).reshape(2, 3)], output_shapes=[[3]]
    )
    pick = raw(
        tf, "TensorSliceDataset", components=[np.array([0, 1, 1], np.int64)], output_shapes=[[]]
    )
    return [
        only(tf, raw(tf, "ExperimentalUniqueDataset", input_dataset=again, **known(tf)), tf.int64),
        only(
            tf, raw(tf, "ExperimentalIgnoreErrorsDataset", input_dataset=n, **known(tf)), tf.int64
        ),
        only(tf, raw(tf, "ExperimentalUnbatchDataset", input_dataset=rows, **known(tf)), tf.int64),
        only(
            tf,
            raw(
                tf,
                "ExperimentalMaxIntraOpParallelismDataset",
                input_dataset=n,
                max_intra_op_parallelism=np.int64(1),
                **known(tf),
            ),
            tf.int64,
        ),
        only(
            tf,
            raw(
                tf,
                "ExperimentalPrivateThreadPoolDataset",
                input_dataset=n,
                num_threads=np.int64(1),
                **known(tf),
            ),
            tf.int64,
        ),
        only(
            tf,
            raw(
                tf,
                "MaxIntraOpParallelismDataset",
                input_dataset=n,
                max_intra_op_parallelism=np.int64(1),
                **known(tf),
            ),
            tf.int64,
        ),
        only(
            tf,
            raw(
                tf,
                "PrivateThreadPoolDataset",
                input_dataset=n,
                num_threads=np.int64(1),
                **known(tf),
            ),
            tf.int64,
        ),
        only(
            tf,
            raw(
                tf,
                "ExperimentalDirectedInterleaveDataset",
                selector_input_dataset=pick,
                data_input_datasets=[n, n],
                **known(tf),
            ),
            tf.int64,
        ),
        raw(tf, "ExperimentalDatasetCardinality", input_dataset=n),
        raw(tf, "DatasetCardinality", input_dataset=n),
    ]


@program
def random_and_shuffled(tf, folder):
    seeds = {"seed": np.int64(3), "seed2": np.int64(4)}
    drawn = raw(tf, "ExperimentalRandomDataset", **dict(seeds, **known(tf)))
    mixed = raw(
        tf,
        "ShuffleAndRepeatDataset",
        input_dataset=numbers(tf),
        buffer_size=np.int64(3),
        count=np.int64(2),
        **dict(seeds, **known(tf)),
    )
    return [
        only(
            tf,
            raw(tf, "TakeDataset", input_dataset=drawn, count=np.int64(3), **known(tf)),
            tf.int64,
        ),
        only(tf, mixed, tf.int64),
    ]


@program
def sparse_batches(tf, folder):
    rows = raw(
        tf, "TensorSliceDataset", components=[np.arange(6).reshape(2, 3)], output_shapes=[[3]]
    )
    batched = raw(
        tf,
        "ExperimentalDenseToSparseBatchDataset",
        input_dataset=rows,
        batch_size=np.int64(2),
        row_shape=np.array([4], np.int64),
        output_types=[tf.variant],
        output_shapes=[[None, 4]],
    )
    packed = raw(
        tf,
        "DatasetToSingleElement",
        dataset=batched,
        output_types=[tf.variant],
        output_shapes=[[3]],
    )[0]
    parts = raw(tf, "DeserializeSparse", serialized_sparse=packed, dtype=tf.int64)
    sliced = raw(
        tf,
        "SparseTensorSliceDataset",
        indices=np.array([[0, 1], [1, 0]], np.int64),
        values=np.array([5, 6], np.int64),
        dense_shape=np.array([2, 3], np.int64),
    )
    iterator = raw(
        tf,
        "IteratorV2",
        shared_name="s",
        container="",
        output_types=[tf.int64] * 3,
        output_shapes=[[None, 1], [None], [1]],
    )
    tf.add_to_collection("first", raw(tf, "MakeIterator", dataset=sliced, iterator=iterator))
    return list(parts) + list(
        raw(
            tf,
            "IteratorGetNext",
            iterator=iterator,
            output_types=[tf.int64] * 3,
            output_shapes=[[None, 1], [None], [1]],
        )
    )


@program
def records_in_files(tf, folder):
    lines, fixed, records, table = (
        os.path.join(folder, n) for n in ("l.txt", "f.bin", "r.rec", "t.csv")
    )
    with open(lines, "w") as f:
        f.write("one\ntwo\n")
    with open(fixed, "wb") as f:
        f.write(b"HHaabbccF")
    with open(table, "w") as f:
        f.write("a,b\n1,x\n2,y\n")
    words = raw(tf, "TensorSliceDataset", components=[np.array([b"p", b"q"])], output_shapes=[[]])
    for name in ("DatasetToTFRecord", "ExperimentalDatasetToTFRecord"):
        tf.add_to_collection(
            "first", raw(tf, name, input_dataset=words, filename=records, compression_type="")
        )
    i64 = np.int64
    csv = {
        "filenames": table,
        "compression_type": "",
        "buffer_size": i64(99),
        "header": True,
        "field_delim": ",",
        "use_quote_delim": True,
        "na_value": "",
        "select_cols": np.zeros(0, i64),
        "record_defaults": [tf.zeros([0], tf.int64), tf.zeros([0], tf.string)],
        "output_shapes": [[], []],
    }
    out = [
        only(
            tf,
            raw(tf, "TextLineDataset", filenames=lines, compression_type="", buffer_size=i64(0)),
            tf.string,
        ),
        only(
            tf,
            raw(
                tf,
                "FixedLengthRecordDataset",
                filenames=fixed,
                header_bytes=i64(2),
                record_bytes=i64(2),
                footer_bytes=i64(1),
                buffer_size=i64(0),
            ),
            tf.string,
        ),
        only(
            tf,
            raw(
                tf,
                "FixedLengthRecordDatasetV2",
                filenames=fixed,
                header_bytes=i64(2),
                record_bytes=i64(2),
                footer_bytes=i64(1),
                buffer_size=i64(0),
                compression_type="",
            ),
            tf.string,
        ),
        only(
            tf,
            raw(tf, "TFRecordDataset", filenames=records, compression_type="", buffer_size=i64(0)),
            tf.string,
        ),
    ]
    for name in ("ExperimentalMatchingFilesDataset", "MatchingFilesDataset"):
        found = only(tf, raw(tf, name, patterns=os.path.join(folder, "*.txt")), tf.string)
        out.append(tf.strings.regex_replace(found, ".*/", ""))
    for name in ("ExperimentalCSVDataset", "CSVDataset"):
        first = raw(
            tf,
            "TakeDataset",
            input_dataset=raw(tf, name, **csv),
            count=i64(1),
            output_types=[tf.int64, tf.string],
            output_shapes=[[], []],
        )
        out += raw(
            tf,
            "DatasetToSingleElement",
            dataset=first,
            output_types=[tf.int64, tf.string],
            output_shapes=[[], []],
        )
    return out


@program
def snapshot_of_a_dataset(tf, folder):
    kept = raw(
        tf,
        "SnapshotDataset",
        input_dataset=numbers(tf),
        path=os.path.join(folder, "s"),
        **known(tf),
    )
    return [only(tf, kept, tf.int64)]


# iterators and optionals --------------------------------------------------------------------------


@program
def iterators_by_name(tf, folder):
    iterator = raw(tf, "Iterator", shared_name="i", container="", **known(tf))
    tf.add_to_collection("first", raw(tf, "MakeIterator", dataset=numbers(tf), iterator=iterator))
    text = raw(tf, "IteratorToStringHandle", resource_handle=iterator)
    first = raw(
        tf,
        "IteratorGetNextSync",
        iterator=raw(tf, "IteratorFromStringHandle", string_handle=text, **known(tf)),
        **known(tf),
    )[0]
    with tf.control_dependencies([first]):
        second = raw(
            tf,
            "IteratorGetNext",
            iterator=raw(tf, "IteratorFromStringHandleV2", string_handle=text, **known(tf)),
            **known(tf),
        )[0]
    return [first, second]


@program
def anonymous_iterators(tf, folder):
    plain_one = raw(tf, "AnonymousIterator", **known(tf))
    handle, deleter = raw(tf, "AnonymousIteratorV2", **known(tf))
    out = []
    for iterator in (plain_one, handle):
        with tf.control_dependencies(
            [raw(tf, "MakeIterator", dataset=numbers(tf), iterator=iterator)]
        ):
            out += raw(tf, "IteratorGetNext", iterator=iterator, **known(tf))
    with tf.control_dependencies(out):
        gone = raw(tf, "DeleteIterator", handle=handle, deleter=deleter)
    with tf.control_dependencies([gone]):
        return [tf.identity(x) for x in out]


@program
def one_shot(tf, folder):
    return [tf.data.make_one_shot_iterator(tf.data.Dataset.range(3, 5)).get_next()]


@program
def optionals(tf, folder):
    some = raw(tf, "OptionalFromValue", components=[tf.constant(5, tf.int64)])
    none = raw(tf, "OptionalNone")
    iterator = raw(tf, "IteratorV2", shared_name="o", container="", **known(tf))
    tf.add_to_collection(
        "first", raw(tf, "MakeIterator", dataset=numbers(tf, 1), iterator=iterator)
    )
    first = raw(tf, "IteratorGetNextAsOptional", iterator=iterator, **known(tf))
    return [
        raw(tf, "OptionalHasValue", optional=some),
        raw(tf, "OptionalHasValue", optional=none),
        raw(tf, "OptionalGetValue", optional=some, **known(tf))[0],
        raw(tf, "OptionalGetValue", optional=first, **known(tf))[0],
    ]


@program
def reduced(tf, folder):
    total = tf.data.Dataset.range(5).reduce(np.int64(0), lambda a, x: a + x)
    return [total, tf.data.experimental.cardinality(tf.data.Dataset.range(4))]


@program
def tensor_lists(tf, folder):
    """Lists of tensors as TF 2's loops have them."""
    rows = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    shape = tf.constant([2])

    def stacked(handle):
        return raw(
            tf,
            "TensorListStack",
            input_handle=handle,
            element_shape=shape,
            element_dtype=tf.float32,
            num_elements=-1,
        )

    scattered = raw(tf, "TensorListScatter", tensor=rows, indices=[2, 0, 1], element_shape=shape)
    sized = raw(
        tf,
        "TensorListScatterV2",
        tensor=rows,
        indices=[2, 0, 1],
        element_shape=shape,
        num_elements=4,
    )
    with_more = raw(
        tf,
        "TensorListScatterIntoExistingList",
        input_handle=sized,
        tensor=rows[:1],
        indices=[3],
    )
    gathered = raw(
        tf,
        "TensorListGather",
        input_handle=with_more,
        indices=[3, 1],
        element_shape=shape,
        element_dtype=tf.float32,
    )
    shorter = raw(tf, "TensorListResize", input_handle=scattered, size=2)
    parts = raw(
        tf, "TensorListSplit", tensor=rows, element_shape=tf.constant([-1, 2]), lengths=[1, 2]
    )
    joined, lengths = raw(
        tf,
        "TensorListConcatV2",
        input_handle=parts,
        element_shape=tf.constant([-1, 2]),
        leading_dims=tf.constant([], tf.int64),
        element_dtype=tf.float32,
    )
    return [stacked(scattered), stacked(with_more), gathered, stacked(shorter), joined, lengths]
