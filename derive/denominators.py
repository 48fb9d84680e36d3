"""What a statement divides by wherever it has a value, and which therefore is not zero."""

from __future__ import annotations

from derive.algebra import Algebra
from derive.equation import Equation
from derive.index import Expr
from derive.lower import lower
from derive.nodes import bound_symbols, kind, tensor_name
from derive.normal import Normalizer
from derive.statement import Identity
from derive.terms import Ix


def written_denominators(algebra: Algebra, identity: Identity) -> frozenset[str]:
    """Return the names of what is divided by wherever the statement has a value: it is not zero.

    A denominator under a sum over positions, which may be empty, or a power of unknown length that
    was taken apart, is not among them.
    """
    if algebra.divided is None:
        algebra.divided = frozenset().union(
            *(_of_equation(algebra, e) for e in algebra.system.equations)
        )
    plain: dict[Expr, Ix] = {s: (s.name, 0) for s, _ in identity.free}
    return algebra.divided | _denominators(algebra, identity.gap, plain)


def _of_equation(algebra: Algebra, equation: Equation) -> set[str]:
    """Return what an equation divides by."""
    env: dict[Expr, Ix] = {s: (f"{s.name}=", 0) for s in equation.indices}
    return _denominators(algebra, equation.rhs, env)


def _denominators(algebra: Algebra, expr: Expr, env: dict[Expr, Ix]) -> set[str]:
    """Return the names of the factors of what stands under a fraction, outside of such sums."""
    if kind(expr) in ("Product", "DProduct") or (
        kind(expr) == "Sum" and any(over_positions(algebra, limit) for limit in expr.limits)
    ):
        return set()
    inner = dict(env)
    for symbol in bound_symbols(expr):
        inner[symbol] = (f"{symbol.name}=", 0)
    found: set[str] = set()
    if expr.is_Pow and expr.exp.is_Rational and expr.exp < 0:
        terms = lower(algebra, expr.base**-1, inner, {})
        reduced = Normalizer(algebra, []).normal(t.copy() for t in terms)  # 1/n may be n/n^2
        found |= {a[0] for t in (*terms, *reduced.values()) for a in t.factors}
    if kind(expr) == "Softmax":
        found |= {a[0] for t in lower(algebra, expr, inner, {}) for a in t.factors}
    children = () if tensor_name(expr) is not None else expr.args
    for child in children:
        if child.args or child.is_Symbol:
            found |= _denominators(algebra, child, inner)
    return found


def over_positions(algebra: Algebra, limit: Expr) -> bool:
    """Tell whether a sum's limit is a range of positions other than the whole axis."""
    _, first, last = limit
    sizes = {d.symbol - 1 for d in algebra.system.dims.values()}
    return not (first == 0 and last in sizes)
