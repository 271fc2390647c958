"""AutoGraph: Python's control flow over tensors as graph operations, with the meaning of TensorFlow
2's.

>>> def f(x):
...     while x < 100:
...         x = x * 2
...     return x
>>> g = convert(f)            # g(placeholder) makes a while loop; g(3) is 192, in plain Python

A function's tree (``source``) has its jumps turned into flags (``jumps``), then branches and loops
into functions over the variables that they write (``analysis``, ``statements``) and expressions
into calls (``expressions``); it is compiled under its own file name and lines with its own globals
and cells (``conversion``). Converted code decides while it runs whether a condition is a tensor
(``branches``, ``loops``) and converts what it calls (``call``). Python values, eager tensors among
them, take Python's way.

Why not a library: the only one found, diastatic-malt, is TensorFlow's own converter copied out with
small changes, on top of gast: many passes over trees of its own kind, text generated into new
modules, and a map from their lines back to the user's. With ``ast`` from the standard library a
fifth of TensorFlow's 15,000 lines is enough, nothing is added to what must be installed, and lines
need no map because they never change.

Beyond TensorFlow: ``assert`` on tensors, ``while … else`` and ``for … else``, private names
(``self.__x``), ``max`` and ``min`` of scalars, and a ``return`` in a loop or in a branch after
which the function goes on.
"""

from headrace.autograph import experimental
from headrace.autograph.autograph_api import (
    ConversionError,
    Feature,
    convert,
    do_not_convert,
    set_loop_options,
    tf_convert,
    to_code,
    to_graph,
)
from headrace.autograph.loop_operators import FOR_HANDLERS
from headrace.autograph.py_builtins import BUILTIN_HANDLERS
from headrace.autograph.staged import is_staged
from headrace.autograph.status import (
    ControlStatusCtx,
    Status,
    control_status_ctx,
    set_verbosity,
    trace,
)

__all__ = [
    "BUILTIN_HANDLERS",
    "FOR_HANDLERS",
    "ControlStatusCtx",
    "ConversionError",
    "Feature",
    "Status",
    "control_status_ctx",
    "convert",
    "do_not_convert",
    "experimental",
    "is_staged",
    "set_loop_options",
    "set_verbosity",
    "tf_convert",
    "to_code",
    "to_graph",
    "trace",
]
