"""Elementwise functions: one row each, read by every interpreter of an expression.

A derivative is written through the value f itself where that is simpler (tanh' = 1 - f^2), so that
an equation ``h = tanh(z)`` yields ``1 - h^2`` as a lecture writes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import sympy as sp

from derive.index import Expr


@dataclass(frozen=True)
class Elementwise:
    """One function of one real variable.

    Args:
        name: As written in statements; also the SymPy undefined function's name.
        derivative: (x, f) to f'(x) as an expression in x and f.
        numpy: The expression in numpy, with ``x`` for the argument.
        latex: The LaTeX operator.
        sympy: The SymPy function it denotes (checks the derivative, in the tests).
    """

    name: str
    derivative: Callable[[Expr, Expr], Expr]
    numpy: str
    latex: str
    sympy: Callable[[Expr], Expr]

    def __call__(self, x: Expr) -> Expr:
        """Apply it, without any automatic rewriting."""
        return sp.Function(self.name)(x)


ONE = sp.Integer(1)

TABLE: dict[str, Elementwise] = {
    row.name: row
    for row in (
        Elementwise("tanh", lambda x, f: ONE - f**2, "np.tanh(x)", r"\tanh", sp.tanh),
        Elementwise(
            "sigmoid",
            lambda x, f: f * (ONE - f),
            "1 / (1 + np.exp(-x))",
            r"\sigma",
            lambda x: 1 / (1 + sp.exp(-x)),
        ),
        Elementwise("exp", lambda x, f: f, "np.exp(x)", r"\exp", sp.exp),
        Elementwise("log", lambda x, f: 1 / x, "np.log(x)", r"\log", sp.log),
        Elementwise(
            "sqrt", lambda x, f: 1 / (2 * f), "np.sqrt(x)", r"\operatorname{sqrt}", sp.sqrt
        ),
        # the root of the square: exact, and analytic off zero, as a complex step needs it
        Elementwise("abs", lambda x, f: x / f, "np.sqrt(x * x)", r"\operatorname{abs}", sp.Abs),
        Elementwise(
            "step",
            lambda x, f: sp.Integer(0),
            "np.where(np.real(x) >= 0, 1.0, 0.0)",
            r"\operatorname{step}",
            lambda x: sp.Heaviside(x, 1),
        ),
        Elementwise(
            "relu",
            lambda x, f: TABLE["step"](x),
            "np.where(np.real(x) > 0, x, 0.0 * x)",
            r"\operatorname{relu}",
            lambda x: x * sp.Heaviside(x, 1),
        ),
        Elementwise(
            "erf",
            lambda x, f: TABLE["erf_slope"](x),
            "erf(x)",
            r"\operatorname{erf}",
            sp.erf,
        ),
        # erf' = 2/sqrt(pi) exp(-x^2), a name of its own because of its constant
        Elementwise(
            "erf_slope",
            lambda x, f: -2 * x * f,
            f"{2 / math.sqrt(math.pi)!r} * np.exp(-x * x)",
            r"\operatorname{erf}'",
            lambda x: 2 / sp.sqrt(sp.pi) * sp.exp(-(x**2)),
        ),
        Elementwise("sin", lambda x, f: TABLE["cos"](x), "np.sin(x)", r"\sin", sp.sin),
        Elementwise("cos", lambda x, f: -TABLE["sin"](x), "np.cos(x)", r"\cos", sp.cos),
    )
}
