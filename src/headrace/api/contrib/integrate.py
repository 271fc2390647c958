"""``tf.contrib.integrate``."""

from headrace.api.missing import module_getattr
from headrace.layers.ode_solvers import odeint, odeint_fixed

__all__ = ["odeint", "odeint_fixed"]

__getattr__ = module_getattr("contrib.integrate", __name__)
