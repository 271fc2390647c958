"""Which numbers the training ops refuse: rates that are not positive, negative regularization.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import numpy as np

_REST = {
    "Ftrl": "lr l1 l2 lr_power",
    "FtrlV2": "lr l1 l2 l2_shrinkage lr_power",
    "ProximalAdagrad": "lr l1 l2",
    "ProximalGradientDescent": "alpha l1 l2",
    "AdagradDA": "lr l1 l2",
    "Adagrad": "lr",
    "Adadelta": "lr rho epsilon",
    "RMSProp": "lr rho momentum epsilon",
    "Momentum": "lr momentum",
    "GradientDescent": "alpha",
    "AddSign": "lr alpha sign_decay beta",
}
_SLOTS = {
    "Ftrl": "accum linear",
    "FtrlV2": "accum linear",
    "ProximalAdagrad": "accum",
    "ProximalGradientDescent": "",
    "AdagradDA": "gradient_accumulator gradient_squared_accumulator",
    "Adagrad": "accum",
    "Adadelta": "accum accum_update",
    "RMSProp": "ms mom",
    "Momentum": "accum",
    "GradientDescent": "",
    "AddSign": "m",
}


def _built(tf, name, prefix, given):
    """The op of a rule with these numbers, or None if there is none."""
    op = getattr(tf.raw_ops, prefix + name, None)
    if op is None:
        return None
    resource, sparse = "Resource" in prefix, "Sparse" in prefix
    shape = [3, 2]
    variables = [
        tf.Variable(np.full(shape, 0.5, np.float32), use_resource=resource)
        for _ in range(1 + len(_SLOTS[name].split()))
    ]
    refs = [v.handle if resource else v.op.outputs[0] for v in variables]
    args = dict(zip(["var"] + _SLOTS[name].split(), refs))
    args.update({k: tf.constant(v, tf.float32) for k, v in given.items()})
    gradient = tf.constant(np.full([2, 2] if sparse else shape, 0.25, np.float32))
    plain = not sparse and name in ("ProximalGradientDescent", "GradientDescent")
    args["delta" if plain else "grad"] = gradient
    if sparse:
        args["indices"] = tf.constant([2, 0])
    if name == "AdagradDA":
        args["global_step"] = tf.constant(1, tf.int64)
    return variables, op(**args)


def _outcome(tf, name, prefix, given):
    with tf.Graph().as_default(), tf.Session() as session:
        try:
            built = _built(tf, name, prefix, given)
            if built is None:
                return None
            session.run(tf.global_variables_initializer())
            session.run(built[1])
            return session.run(built[0])
        except Exception as error:
            return type(error).__name__


def _outcomes(tf, name):
    names = _REST[name].split()
    found = {}
    for prefix in ("Apply", "SparseApply", "ResourceApply", "ResourceSparseApply"):
        for changed in names:
            for value in (-0.5, 0.0, 0.5):
                given = {n: 0.5 for n in names}
                if "lr_power" in given:
                    given["lr_power"] = -0.5
                given[changed] = value
                key = "%s %s=%s" % (prefix, changed, value)
                found[key] = _outcome(tf, name, prefix, given)
    return found


def ftrl(tf):
    return [_outcomes(tf, name) for name in ("Ftrl", "FtrlV2")]


def proximal(tf):
    return [_outcomes(tf, name) for name in ("ProximalAdagrad", "ProximalGradientDescent")]


def dual_averaging(tf):
    return _outcomes(tf, "AdagradDA")


def other_rules(tf):
    names = ("Adagrad", "Adadelta", "RMSProp", "Momentum", "GradientDescent", "AddSign")
    return [_outcomes(tf, name) for name in names]
