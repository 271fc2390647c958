"""Reference variables whose size changes, run on TF 1.15 (make_cases.py) and on Headrace."""


def _variable(tf):
    return tf.Variable(tf.zeros([2]), validate_shape=False, use_resource=False)


def read_before_a_resizing_assign(tf):
    v = _variable(tf)
    x = tf.placeholder(tf.float32, [None])
    before = v.value()
    write = tf.assign(v, x, validate_shape=False)
    with tf.control_dependencies([write]):
        results = [before + 1, v + 2, tf.identity(before), v.read_value() * 3]
        branch = tf.cond(x[0] > 0, lambda: before * 2, lambda: tf.zeros([1]))
    found = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for fed in ([5.0, 6.0], [7.0, 8.0], [1.0, 2.0, 3.0], [4.0], [-4.0]):
            found.append([session.run([*results, branch], {x: fed}), session.run(v)])
    return found


def read_before_a_resizing_assign_in_a_loop(tf):
    v = _variable(tf)

    def body(i, total):
        before = v.value()
        with tf.control_dependencies([before]):
            longer = tf.concat([before, [tf.cast(i, tf.float32)]], 0)
        write = tf.assign(v, longer, validate_shape=False)
        with tf.control_dependencies([write]):
            size = tf.cast(tf.size(before), tf.float32)
            return i + 1, total + tf.reduce_sum(before) + 100 * size

    loop = tf.while_loop(lambda i, total: i < 4, body, [0, 0.0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run(loop), session.run(v)]


def read_around_a_write_of_the_same_size(tf):
    v = _variable(tf)
    before = v.value()
    add = tf.assign_add(v, [1.0, 2.0])
    with tf.control_dependencies([add]):
        results = [before + 1, v + 2]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run(results), session.run(results), session.run(v)]
