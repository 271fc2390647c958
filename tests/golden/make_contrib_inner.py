"""Record what the inner modules of ``tf.contrib`` define, and which of it the namespace has.

    python tests/golden/make_contrib_inner.py    # with TensorFlow 1.15, at the root of the tree

Writes ``contrib_inner.json``: per module of ``headrace.api.contrib_paths`` the public functions
and classes that it defines and that are the same object in its namespace ("same"), and those whose
name means something else there ("other").
"""

import importlib
import json
import os
import types

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "..", "..", "src", "headrace", "api", "contrib_paths.py")


def table():
    """`CONTRIB_INNER`, read without importing Headrace (this runs on Python 3.7)."""
    with open(TABLE) as f:
        lines = f.read().replace("from __future__ import annotations", "")
    space = {}
    exec(lines.replace(": dict[str, dict[str, str]]", ""), space)
    return space["CONTRIB_INNER"]


def defined(module):
    """Names of functions and classes that a module defines itself."""
    own = module.__name__.split(".", 1)[-1]
    for name, value in sorted(vars(module).items()):
        of = getattr(value, "__module__", "").split(".", 1)[-1]
        if of == own and isinstance(value, (types.FunctionType, type)) and name[0] != "_":
            yield name, value


def answers():
    found = {}
    for namespace, packages in sorted(table().items()):
        public = importlib.import_module("tensorflow.contrib." + namespace)
        for package, modules in sorted(packages.items()):
            for module in modules.split():
                path = ".".join(filter(None, (namespace, package, module)))
                try:
                    inner = importlib.import_module("tensorflow.contrib." + path)
                except ImportError:  # a path of earlier versions
                    continue
                same, other = [], []
                for name, value in defined(inner):
                    if hasattr(public, name):
                        (same if getattr(public, name) is value else other).append(name)
                found[path] = {"same": same, "other": other}
    return found


if __name__ == "__main__":
    with open(os.path.join(HERE, "contrib_inner.json"), "w") as f:
        json.dump(answers(), f, indent=0, sort_keys=True)
        f.write("\n")
