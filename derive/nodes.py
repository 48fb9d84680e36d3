"""The few node kinds beside SymPy's own: undefined functions, so SymPy never rewrites them.

==================  ===============================================================================
``Total(a, b)``     total derivative of entry a by entry b, through every path of the system
``Partial(a, b)``   local derivative of a's equation by b, all its other inputs held
``Detach(x)``       x, with derivative zero
``Leq(a, b)``       1 where index a <= index b, else 0
``Softmax(x,k,at,n)`` exp(x at k=at) / sum over k < n of exp(x); x has the bound index k
``LogSumExp(x,k,n)``  log of the sum over k < n of exp(x)
``Masked(w, x, rest, first, last)``  the body of one of these two: x where the weight w is one, -oo
                    where it is zero; w is `rest` within first..last, and zero outside
``Product(x,i,j,k,first,last,row,col,n)``  entry [row, col] of the ordered product of the n x n
                    matrices x[i,j] for k = first, ..., last (ascending), leftmost first; DProduct:
                    descending; n = 1 for scalars
``Power(w, n)``     w to an index expression n
``Expect(x)``       expected value of x over the system's random tensors
==================  ===============================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import sympy as sp

from derive.index import Expr

Total = sp.Function("Total")
Partial = sp.Function("Partial")
Detach = sp.Function("Detach")
Leq = sp.Function("Leq")
Softmax = sp.Function("Softmax")
LogSumExp = sp.Function("LogSumExp")
Masked = sp.Function("Masked")
Product = sp.Function("Product")
DProduct = sp.Function("DProduct")
Power = sp.Function("Power")
Expect = sp.Function("Expect")


def kind(expr: Expr) -> str:
    """Return the node kind: the function's name for undefined functions, else the class name."""
    return expr.func.__name__  # type: ignore[no-any-return]


def tensor_name(expr: Expr) -> str | None:
    """Return the tensor's name if the node is a tensor entry (scalars included), else None."""
    if isinstance(expr, sp.Indexed):
        return expr.args[0].args[0].name  # type: ignore[no-any-return]
    if expr.is_Symbol and expr.is_real and not expr.is_integer:
        return expr.name  # type: ignore[no-any-return]
    return None


def entry_indices(expr: Expr) -> tuple[Expr, ...]:
    """Return the indices of a tensor entry; () for a scalar."""
    return expr.args[1:] if isinstance(expr, sp.Indexed) else ()


def exponential(body: Expr, exp: Callable[[Expr], Expr]) -> Expr:
    """Return exp of the body of a softmax: w exp(x) where a mask gives it a weight."""
    if kind(body) == "Masked":
        return body.args[0] * exp(body.args[1])
    return exp(body)


def exponentials(body: Expr, bound: sp.Symbol, size: Expr, exp: Callable[[Expr], Expr]) -> Expr:
    """Return the sum of exp of a body over its bound index, within the range of its mask."""
    if kind(body) == "Masked":
        _, value, rest, first, last = body.args
        return sp.Sum(rest * exp(value), (bound, first, last))
    return sp.Sum(exp(body), (bound, 0, size - 1))


def rebuild(expr: Expr, mapping: Mapping[Expr, Expr]) -> Expr:
    """Replace leaves or whole nodes, exactly as mapped (bound names are fresh: no capture)."""
    if expr in mapping:
        return mapping[expr]
    if isinstance(expr, sp.Indexed):
        return expr.base[tuple(rebuild(i, mapping) for i in expr.indices)]
    if not expr.args:
        return expr
    args = [rebuild(a, mapping) for a in expr.args]
    return expr if all(a is b for a, b in zip(args, expr.args, strict=True)) else expr.func(*args)


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield every node, a tensor entry before its indices, parents first."""
    yield expr
    children = expr.indices if isinstance(expr, sp.Indexed) else expr.args
    for child in children:
        yield from walk(child)


def degree(expr: Expr) -> int:
    """Bound the degree of an expression as a polynomial in its leaves."""
    if expr.is_Mul:
        return sum(degree(a) for a in expr.args)
    if expr.is_Pow and expr.exp.is_Rational:
        return max(1, int(abs(expr.exp))) * degree(expr.base)
    if isinstance(expr, sp.Indexed) or not expr.args:
        return 1
    return max(degree(a) for a in expr.args)


BINDERS = {"Softmax": (1,), "LogSumExp": (1,), "Product": (1, 2, 3), "DProduct": (1, 2, 3)}


def bound_symbols(expr: Expr) -> list[sp.Symbol]:
    """Return the symbols that this very node binds."""
    if isinstance(expr, sp.Sum):
        return [limit[0] for limit in expr.limits]
    return [expr.args[i] for i in BINDERS.get(kind(expr), ())]


def freshen(expr: Expr, fresh: Callable[[sp.Symbol], sp.Symbol]) -> Expr:
    """Rename every bound symbol below (and at) this node by ``fresh``."""
    mapping = {s: fresh(s) for node in walk(expr) for s in bound_symbols(node)}
    return rebuild(expr, mapping) if mapping else expr
