"""The adjoint theorem, checked for a system: forward and reverse derivatives are transposes."""

from __future__ import annotations

import time
from functools import lru_cache

import sympy as sp

from derive.calculus import adjoint_equations, tangent
from derive.engine import algebra_of
from derive.equation import System
from derive.index import Expr
from derive.lower import lower
from derive.nodes import tensor_name
from derive.normal import Normalizer
from derive.proof import Proof
from derive.views import open_names


@lru_cache(maxsize=64)
def duality(system: System) -> Proof:
    """Check <g, J S> = <J^T g, S> for free adjoints g and tangents S: forward equals reverse.

    The left side comes from `tangent` (product rule), the right from `adjoint_equations` (uses and
    deltas): different code. By the adjoint theorem the derived adjoints are then dL/dX, for a
    causal single-assignment system, for every number of positions.
    """
    start = time.perf_counter()
    # each equation is a matter of its own: the values of all others are free
    states = frozenset(e.tensor.name for e in system.equations) - open_names(system)
    algebra = algebra_of(system, free=states)
    reached = {"L", *(e.tensor.name[2:] for e in adjoint_equations(system))}
    names = [e.tensor.name for e in system.equations if e.tensor.name in reached]
    left = sp.Add(*(_paired_tangent(system, name) for name in names))
    right = sp.Add(*(_paired_adjoint(system, i) for i in range(len(adjoint_equations(system)))))
    normalizer = Normalizer(algebra, [], frozen=True)
    terms = lower(algebra, left, {}, {})
    for term in lower(algebra, right, {}, {}):
        term.coef = -term.coef
        terms.append(term)
    rest = normalizer.normal(terms)
    seconds = time.perf_counter() - start
    if rest:
        detail = "tangent and adjoint equations disagree"
        return Proof(False, "duality", detail, len(terms), seconds, residual=len(rest))
    return Proof(True, "duality", "<g, J S> = <Jᵀ g, S> for free g and S", len(terms), seconds)


def _paired_tangent(system: System, name: str) -> Expr:
    """Return the sum over one equation of g_v times its tangent in free S."""
    equation = system.by_name[name]
    body = tangent(equation.rhs, lambda read: _free_tangent(system, read))
    if name != "L":
        body = sp.IndexedBase("g_" + name)[equation.indices] * body if equation.indices else (
            sp.Symbol("g_" + name, real=True) * body)  # fmt: skip
    for symbol, dim in zip(equation.indices, equation.tensor.dims, strict=True):
        body = sp.Sum(body, (symbol, 0, dim.symbol - 1))
    return body


def _paired_adjoint(system: System, place_: int) -> Expr:
    """Return the sum of S_X times the derived adjoint of X."""
    equation = adjoint_equations(system)[place_]
    name = equation.tensor.name[2:]
    entry = equation.tensor.at(*equation.indices)
    free = sp.IndexedBase("S_" + name)[entry.indices] if equation.indices else (
        sp.Symbol("S_" + name, real=True))  # fmt: skip
    body = free * equation.rhs
    for slot, (symbol, dim) in enumerate(zip(equation.indices, equation.tensor.dims, strict=True)):
        first = equation.tensor.first if slot == 0 else 0
        body = sp.Sum(body, (symbol, first, dim.symbol - 1))
    return body


def _free_tangent(system: System, read: Expr) -> Expr:
    """Return the free tangent entry S_X at a read; zero where the loss does not reach X."""
    name = str(tensor_name(read))
    reached = {e.tensor.name[2:] for e in adjoint_equations(system)}
    if name not in reached:
        return sp.Integer(0)
    if isinstance(read, sp.Indexed):
        return sp.IndexedBase("S_" + name)[tuple(read.indices)]
    return sp.Symbol("S_" + name, real=True)
