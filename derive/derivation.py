"""Derivations as steps: which read passes what back, and how the adjoint is their sum."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import sympy as sp

from derive.calculus import Contribution, adjoint_equations, contributions
from derive.claim import Step
from derive.equation import Equation, System
from derive.index import Expr, affine
from derive.nodes import entry_indices, kind, walk
from derive.printing import to_text
from derive.unelaborate import unelaborate, unelaborate_equation

NONLINEAR = {
    "tanh": "tanh' = 1 - tanh^2",
    "sigmoid": "sigmoid' = sigmoid*(1 - sigmoid)",
    "exp": "exp' = exp",
    "log": "log' = 1/x",
    "sqrt": "sqrt' = 1/(2*sqrt)",
    "abs": "|x|' = x/|x|",
    "step": "step' = 0",
    "relu": "relu' = step, off zero",
    "erf": "erf' = 2/sqrt(pi) exp(-x^2)",
    "erf_slope": "erf'' = -2x erf'",
    "sin": "sin' = cos",
    "cos": "cos' = -sin",
    "Softmax": "softmax' = p*(delta - p)",
    "LogSumExp": "logsumexp' = softmax",
}


@lru_cache(maxsize=64)
def derivation(system: System) -> tuple[tuple[Equation, tuple[Step, ...]], ...]:
    """Return every adjoint of a system, in backward order, with the steps that derive it.

    Raises:
        DeriveError: If the system has no selected loss.
    """
    return tuple((e, tuple(_steps(system, e))) for e in adjoint_equations(system))


def _steps(system: System, equation: Equation) -> Iterator[Step]:
    """Yield the steps of one adjoint."""
    name = equation.tensor.name[2:]
    _, parts = contributions(system, name)
    for part in parts:
        yield _read(system, part)
        yield _chain(system, equation, part)
    if any(_shifted(part) for part in parts):
        yield Step(
            "boundary",
            written(system, equation.rhs),
            written(system, equation.rhs),
            "an adjoint is zero past the last position",
        )
    if len(parts) > 1:
        pieces = "; ".join(written(system, p.expr) for p in parts)
        yield Step("sum of reads", pieces, written(system, equation.rhs), "every path counts once")


def _read(system: System, part: Contribution) -> Step:
    """Return the local derivative of one read."""
    equation, use = part.equation, part.use
    rule = next((NONLINEAR[kind(n)] for n in walk(equation.rhs) if kind(n) in NONLINEAR), "linear")
    cofactor = use.cofactor
    for limit in reversed(use.limits):
        if limit[0] not in {affine(i).base for i in entry_indices(use.entry)}:
            cofactor = sp.Sum(cofactor, limit)
    slope = unelaborate_equation(use.entry, cofactor, tensors=system.tensors)
    entry, value = to_text(slope.lhs), to_text(slope.rhs)
    return Step(
        "local derivative",
        equation.text,
        f"{equation.tensor.name} reads {entry} with derivative {value}",
        rule,
    )


def _chain(system: System, equation: Equation, part: Contribution) -> Step:
    """Return what one read passes back."""
    target = part.equation.tensor.name
    reason = "dL/dL = 1" if target == "L" else f"g_{target} times the local derivative, summed"
    entry = unelaborate_equation(equation.lhs, part.expr, tensors=system.tensors)
    return Step("chain rule", to_text(entry.lhs), to_text(entry.rhs), reason)


def _shifted(part: Contribution) -> bool:
    """Tell whether a read is at another position than its equation."""
    places = [affine(i) for i in entry_indices(part.use.entry)]
    return any(p.base in part.equation.indices and p.offset for p in places)


def written(system: System, expr: Expr) -> str:
    """Return an expression in the statement language."""
    return to_text(unelaborate(expr, system.tensors))
