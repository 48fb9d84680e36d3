"""Two plain evaluators that share no code with the normal form: of expressions, of normal forms."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import sympy as sp

from derive.nodes import entry_indices, kind, tensor_name

REACH = 3


class Values:
    """Total random functions on the integers; adjoints are zero outside their positions."""

    def __init__(self, system, sizes, seed):
        self.system, self.sizes, self.seed = system, sizes, seed

    def __call__(self, name, index):
        if name.startswith(("g_", "g:")):
            tensor = self.system.tensors[name[2:]]
            for slot, (i, dim) in enumerate(zip(index, tensor.dims, strict=True)):
                first = tensor.first if slot == 0 else 0
                if dim.ordered and not first <= i < self.sizes[dim.name]:
                    return Fraction(0)
            name = "g_" + name[2:]
        return Fraction(random.Random(f"{self.seed}{name}{index}").randint(-9, 9))


def of_expression(expr, env, values):
    """Evaluate a typed expression; ``env`` maps symbols to integers."""
    if kind(expr) == "Total":
        wrt = expr.args[1]
        return values("g_" + tensor_name(wrt), indices(wrt, env))
    name = tensor_name(expr)
    if name is not None:
        return values(name, indices(expr, env))
    if expr.is_Rational:
        return Fraction(int(expr.p), int(expr.q))
    if expr.is_Symbol:
        return Fraction(env[expr])
    if expr.is_Add:
        return sum((of_expression(a, env, values) for a in expr.args), Fraction(0))
    if expr.is_Mul:
        out = Fraction(1)
        for arg in expr.args:
            out *= of_expression(arg, env, values)
        return out
    if expr.is_Pow:
        return of_expression(expr.base, env, values) ** int(expr.exp)
    if kind(expr) == "KroneckerDelta":
        return Fraction(integer(expr.args[0], env) == integer(expr.args[1], env))
    assert isinstance(expr, sp.Sum), expr
    envs = [env]
    for symbol, first, last in reversed(expr.limits):
        envs = [
            {**e, symbol: i} for e in envs for i in range(integer(first, e), integer(last, e) + 1)
        ]
    return sum((of_expression(expr.function, e, values) for e in envs), Fraction(0))


def indices(entry, env):
    return tuple(integer(i, env) for i in entry_indices(entry))


def integer(expr, env):
    if expr.is_Integer:
        return int(expr)
    if expr.is_Symbol:
        return env[expr]
    return sum(integer(a, env) for a in expr.args)


def of_normal_form(terms, env, values):
    """Evaluate a normal form; ``env`` maps free base names to integers."""
    return sum((of_term(t, env, values) for t in terms.values()), Fraction(0))


def of_term(term, env, values):
    sizes = {"#" + n: s for n, s in values.sizes.items()}
    known = {"": 0, **sizes, **env}
    for base, (target, offset) in term.pinned.items():
        if known[base] != known[target] + offset:
            return Fraction(0)
    names, total = list(term.bound), Fraction(0)
    for places in product(*(span(values, term.bound[n]) for n in names)):
        here = {**known, **dict(zip(names, places, strict=True))}
        if all(here[a] - here[b] <= c for (a, b), c in term.guards.items()):
            total += monomial(term, here, values)
    return term.coef * total


def span(values, dim):
    size = values.sizes[dim]
    ordered = values.system.dims[dim].ordered
    return range(-REACH, size + REACH) if ordered else range(size)


def monomial(term, here, values):
    out = Fraction(1)
    # adjoints first: where one is zero, the other factors may stand outside their arrays
    for (name, places), power in sorted(term.factors.items(), key=lambda f: f[0][0][:2] != "g:"):
        index = tuple(here[b] + o for b, o in places)
        if name.startswith("#"):
            value = Fraction(here[name])
        elif name == "@":
            value = Fraction(index[0])
        elif name == "δ":
            value = Fraction(index[0] == index[1])
        else:
            value = values(name, index)
        out *= value**power
        if not out:
            return out
    return out
