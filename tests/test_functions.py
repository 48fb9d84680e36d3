"""The table of elementwise functions: each derivative against SymPy's, each slope against balls."""

import flint
import pytest
import sympy as sp

from derive.derivation import NONLINEAR
from derive.functions import TABLE
from derive.rings import SLOPES, Balls

X = sp.Symbol("x", real=True)
RING = Balls(lambda name, index: 0, 128)


def concrete(expr):
    """Replace our undefined functions by SymPy's."""
    if not expr.args:
        return expr
    args = [concrete(a) for a in expr.args]
    row = TABLE.get(expr.func.__name__)
    return row.sympy(*args) if row else expr.func(*args)


@pytest.mark.parametrize("name", TABLE)
def test_the_derivative_is_sympys(name):
    row = TABLE[name]
    ours = concrete(row.derivative(X, row.sympy(X)))
    for point in (sp.Rational(3, 10), sp.Rational(17, 10)):
        want = sp.diff(row.sympy(X), X).subs(X, point)
        assert abs(sp.N(ours.subs(X, point) - want, 30)) < 1e-25


@pytest.mark.parametrize("name", TABLE)
def test_the_slope_is_the_limit_of_differences(name):
    flint.ctx.prec = 128
    x, h = flint.arb("0.7"), flint.arb(2) ** -30
    ahead, behind = (RING.apply(name, x + s * h) for s in (1, -1))
    slope = SLOPES[name](x, RING.apply(name, x), RING)
    # the error of a central difference is h^2/6 times a third derivative of order one
    assert abs(float((ahead - behind) / (2 * h) - slope)) < 1e-15


def test_every_function_has_a_rule_for_each_reader():
    assert set(SLOPES) == set(TABLE)
    assert set(TABLE) <= set(NONLINEAR)


def test_a_wrong_slope_is_seen():
    x = flint.arb("0.7")
    wrong = 1 - RING.apply("tanh", x)
    assert abs(float(wrong - SLOPES["tanh"](x, RING.apply("tanh", x), RING))) > 1e-3
