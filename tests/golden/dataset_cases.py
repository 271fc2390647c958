"""Datasets of datasets, fed seeds, run on TF 1.15 (make_cases.py) and on Headrace."""


def _elements(tf, dataset):
    element = tf.data.make_one_shot_iterator(dataset).get_next()
    found = []
    with tf.Session() as session:
        try:
            while True:
                found.append(session.run(element))
        except tf.errors.OutOfRangeError:
            return found


def _error(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return None


def batches_of_datasets(tf):
    D = tf.data.Dataset
    same = lambda dataset: dataset
    ranges = D.range(4).map(lambda n: D.range(n))
    pairs = D.zip((D.range(3), D.from_tensors(D.range(3)).repeat(3)))
    added = lambda n, dataset: dataset.map(lambda x: x + n)
    return [
        _elements(tf, ranges.batch(2).unbatch().flat_map(same)),
        _elements(tf, ranges.batch(3, drop_remainder=True).unbatch().flat_map(same)),
        _elements(tf, ranges.batch(2).batch(1).unbatch().unbatch().flat_map(same)),
        _elements(tf, pairs.batch(2).unbatch().flat_map(added)),
        _elements(tf, D.range(10).window(3).batch(2).unbatch().flat_map(same)),
        _elements(tf, D.from_tensor_slices([D.range(3), D.range(2)]).flat_map(same)),
        _elements(tf, D.from_tensor_slices(([1, 2], [D.range(3), D.range(2)])).map(lambda n, d: n)),
        _elements(tf, ranges.batch(3).map(lambda batch: 1)),
        _error(lambda: _elements(tf, D.range(10).window(2).batch(2).flat_map(same))),
        _error(lambda: ranges.unbatch()),
    ]


def specs_of_batches_of_datasets(tf):
    D = tf.data.Dataset
    ranges = D.range(4).map(lambda n: D.range(n))
    found = [ranges, ranges.batch(2), ranges.batch(2, drop_remainder=True)]
    found.append(D.from_tensor_slices([D.range(3), D.range(2)]))
    found.append(ranges.batch(2).batch(5, drop_remainder=True).unbatch())
    return [repr(dataset.element_spec) for dataset in found] + [repr(found[1])]


def shuffles_with_a_fed_seed(tf):
    found = []
    for graph_seed in (None, 0, 5):
        with tf.Graph().as_default(), tf.Session() as session:
            if graph_seed is not None:
                tf.set_random_seed(graph_seed)
            seed = tf.placeholder(tf.int64, [])
            dataset = tf.data.Dataset.range(6).shuffle(6, seed=seed)
            iterator = tf.data.make_initializable_iterator(dataset)
            element = iterator.get_next()
            for fed in (3, 0, 3):
                session.run(iterator.initializer, {seed: fed})
                found.append([session.run(element) for _ in range(6)])
    return found


def buffers_for_many_rounds(tf):
    def first(dataset, n, size, count):
        dataset = dataset.apply(tf.data.experimental.shuffle_and_repeat(size, count, 7))
        element = tf.data.make_one_shot_iterator(dataset).get_next()
        found = []
        with tf.Session() as session:
            try:
                while len(found) < n:
                    found.append(session.run(element))
            except tf.errors.OutOfRangeError:
                found.append("end")
        return found

    D = tf.data.Dataset
    kinds = [lambda d: d, lambda d: d.map(lambda x: x * 1), lambda d: d.filter(lambda x: x >= 0)]
    sizes = [(2, 3), (5, 3), (100, 3), (17, 10), (10**7, None), (10**7, 10**6)]
    found = [first(kind(D.range(5)), 40, *size) for kind in kinds for size in sizes]
    found.append(first(D.range(500).batch(100), 10, 5 * 10**6, 10**6))
    return found + [first(D.range(1), 9, 100, 5), first(D.range(0), 3, 10, 5)]
