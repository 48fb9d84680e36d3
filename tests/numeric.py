"""Shared by the tests of derive.checks: points, and the explicit reader over floats."""

import math

import numpy as np

from derive.checks.sizes import default_sizes, random_givens
from derive.explicit import Explicit

FUNCTIONS = {
    "tanh": math.tanh,
    "relu": lambda x: max(x, 0.0),
    "erf": math.erf,
    "erf_slope": lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x),
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "sin": math.sin,
    "cos": math.cos,
    "abs": abs,
    "step": lambda x: float(x >= 0),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
}


class Floats:
    """Plain floats as a ring, the given entries read from arrays."""

    one, zero = 1.0, 0.0

    def __init__(self, system, givens):
        self.system, self.givens = system, givens

    def constant(self, value):
        return float(value)

    def given(self, name, index):
        tensor = self.system.tensors[name]
        if index and index[0] < 0:
            return float(self.givens[f"{name}_init"][(index[0] - tensor.first, *index[1:])])
        return float(self.givens[name][index])

    def apply(self, function, x):
        return FUNCTIONS[function](x)


def point(system, seed=0, sizes=None):
    """Return sizes and givens of a system."""
    sizes = default_sizes(system, sizes)
    return sizes, random_givens(system, sizes, seed)


def explicit(system, givens, sizes):
    """Return the entry-by-entry reader at a point."""
    return Explicit(system, sizes, Floats(system, givens))


def rows_of(system, name, sizes):
    """Return every index of a tensor, its initial rows first, with its place in an array."""
    tensor = system.tensors[name]
    lengths = [sizes[d.name] for d in tensor.dims]
    if tensor.first:
        lengths[0] -= tensor.first
    for place in np.ndindex(*lengths):
        yield place, (place[0] + tensor.first, *place[1:]) if place else ()
