"""Typed SymPy expressions back to syntax nodes, so that derived equations print like a lecture's.

Bound and fresh names such as ``k'3`` become ``k`` (or the next free letter). A product reads: sign,
numbers and sizes, adjoints, the other factors, then sums; ``Total(L, X[..])`` is ``g_X[..]``. The
expression is only walked, never rewritten: what was not expanded stays so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any

import sympy as sp

from derive import syntax as S
from derive.errors import DeriveError
from derive.functions import TABLE
from derive.index import Expr, Tensor
from derive.masks import INFINITY
from derive.nodes import bound_symbols, entry_indices, kind, tensor_name, walk

LETTERS = "kijlmnpqruv"
NO_TENSORS: Mapping[str, Tensor] = {}


def unelaborate(expr: Expr, tensors: Mapping[str, Tensor] = NO_TENSORS) -> S.Node:
    """Return the syntax node of a typed expression.

    Args:
        expr: Built of the nodes of `derive.nodes`.
        tensors: The system's tensors: the adjoint of a parameter is then written ``dL/dW``, and
            no bound index takes a tensor's name.

    Raises:
        DeriveError: On a SymPy node that is not of `derive.nodes`.
    """
    return _Names(dict(tensors), _free_names(tensors, expr)).node(expr)


def unelaborate_equation(
    lhs: Expr,
    rhs: Expr,
    conditions: tuple[tuple[Expr, Expr], ...] = (),
    tensors: Mapping[str, Tensor] = NO_TENSORS,
) -> S.Statement:
    """Return the statement ``lhs = rhs for a <= b, ...`` with one naming of the free indices."""
    both = (lhs, rhs, *(side for pair in conditions for side in pair))
    names = _Names(dict(tensors), _free_names(tensors, *both))
    ordered = tuple(_condition(names, *pair) for pair in conditions)
    return S.Statement(names.node(lhs), names.node(rhs), ordered, "")


def _condition(names: _Names, left: Expr, right: Expr) -> S.Condition:
    """Return ``a <= b``, or ``a < b`` for ``a+1 <= b``."""
    strict = left.is_Add and (left - 1).is_Symbol
    return S.Condition(names.node(left - 1 if strict else left), names.node(right), int(strict))


def _free_names(tensors: Mapping[str, Tensor], *exprs: Expr) -> dict[sp.Symbol, str]:
    """Name the free index and size symbols, sizes first: they keep their names."""
    nodes = [n for e in exprs for n in walk(e)]
    bound = {s for n in nodes for s in bound_symbols(n)}
    free = [n for n in dict.fromkeys(nodes) if n.is_Symbol and n.is_integer and n not in bound]
    free.sort(key=lambda s: not s.is_positive)
    taken = {str(tensor_name(n)) for n in nodes if tensor_name(n)} | set(tensors)
    names: dict[sp.Symbol, str] = {}
    for symbol in free:
        names[symbol] = _pleasant(symbol, taken | set(names.values()))
    return names


def _pleasant(symbol: sp.Symbol, taken: set[str]) -> str:
    """Return the stem of a fresh name, or the first letter that is not taken."""
    stem, _, _ = str(symbol.name).partition("'")
    numbered = (f"{stem}_{n}" for n in range(1, 1000))
    return str(next(n for n in (stem, *LETTERS, *numbered) if n not in taken))


@dataclass(frozen=True)
class _Names:
    """The names in force at one place of an expression."""

    tensors: dict[str, Tensor]
    names: dict[sp.Symbol, str]

    def node(self, expr: Expr) -> S.Node:
        """Return the node of an expression."""
        name = tensor_name(expr)
        if name is not None:
            return self.entry(name, entry_indices(expr))
        if expr.is_Rational:
            return _signed(Fraction(int(expr.p), int(expr.q)))
        if expr.is_Symbol:
            return S.Name(self.names.get(expr, str(expr.name)))
        row = ROWS.get(kind(expr))
        if row is not None:
            return row(self, expr)
        if kind(expr) in TABLE:
            return S.Call(kind(expr), (self.node(expr.args[0]),))
        raise DeriveError(f"cannot write {kind(expr)!r} in the statement language: {expr}")

    def entry(self, name: str, indices: tuple[Expr, ...]) -> S.Node:
        """Return ``name`` or ``name[indices]``; the adjoint of a parameter is ``dL/dname``."""
        args = tuple(self.node(i) for i in indices)
        owner = self.tensors.get(name[2:]) if name.startswith("g_") else None
        if owner is not None and name not in self.tensors and owner.role == "parameter":
            return S.Deriv("total", S.Name("L"), self.entry(name[2:], indices))
        return S.Item(name, args) if args else S.Name(name)

    def binding(self, symbol: sp.Symbol, body: Expr) -> tuple[_Names, str]:
        """Return the names inside a binder, and the one of its index."""
        visible = {n for s, n in self.names.items() if s in body.free_symbols - {symbol}}
        inside = {str(tensor_name(n)) for n in walk(body) if tensor_name(n)}
        name = _pleasant(symbol, visible | inside | set(self.tensors) | self.sizes)
        return _Names(self.tensors, {**self.names, symbol: name}), name

    @property
    def sizes(self) -> set[str]:
        """The names that sizes have."""
        return {d.name for t in self.tensors.values() for d in t.dims}


def _signed(value: Fraction) -> S.Node:
    """Return an exact number."""
    top, bottom = (S.Num(Fraction(n), str(n)) for n in (abs(value.numerator), value.denominator))
    size: S.Node = top if value.denominator == 1 else S.Bin("/", top, bottom)
    return S.Neg(size) if value < 0 else size


def _add(at: _Names, expr: Expr) -> S.Node:
    """A sum, positive terms first: ``1 - h^2``, but ``t+1`` for an index."""
    is_index = all(a.is_Integer or (a.is_Symbol and a.is_integer) for a in expr.args)
    args = sorted(expr.args, key=lambda a: a.is_Integer) if is_index else expr.args
    return reduce(_plus, sorted((at.node(a) for a in args), key=_is_negative))


def _is_negative(node: S.Node) -> bool:
    """Tell whether a term is written with a sign in front."""
    return isinstance(node, S.Neg) or (
        isinstance(node, S.Bin) and node.op in "*@/" and _is_negative(node.left)
    )


def _plus(left: S.Node, right: S.Node) -> S.Node:
    """Return left + right, or left - x for a negative right."""
    return S.Bin("-", left, _positive(right)) if _is_negative(right) else S.Bin("+", left, right)


def _positive(node: S.Node) -> S.Node:
    """Return a term without its sign."""
    if isinstance(node, S.Neg):
        return node.arg
    assert isinstance(node, S.Bin)
    return S.Bin(node.op, _positive(node.left), node.right)


def _mul(at: _Names, expr: Expr) -> S.Node:
    """A product in a lecturer's order, over the product of its denominators."""
    coefficient, rest = expr.as_coeff_Mul()
    over = [f for f in sp.Mul.make_args(rest) if _is_inverse(f)]
    factors = [f for f in sp.Mul.make_args(rest) if not _is_inverse(f)]
    sizes = [f for f in over if _is_size(f.base)]
    others = [f for f in over if not _is_size(f.base)]
    front = _front(at, Fraction(int(abs(coefficient).p), int(abs(coefficient).q)), sizes)
    ordered = sorted(factors, key=_rank)
    node = _product([*front, *(at.node(f) for f in ordered)])
    if others:
        node = S.Bin("/", node, _product([at.node(_inverted(f)) for f in others]))
    return S.Neg(node) if coefficient < 0 else node


def _front(at: _Names, number: Fraction, sizes: list[Expr]) -> list[S.Node]:
    """Return the leading ``1/(2*T)``, ``3`` or nothing."""
    below = [at.node(_inverted(s)) for s in sizes]
    if number.denominator != 1:
        below.insert(0, _signed(Fraction(number.denominator)))
    if below:
        return [S.Bin("/", _signed(Fraction(number.numerator)), _product(below))]
    return [] if number == 1 else [_signed(number)]


def _product(factors: list[S.Node]) -> S.Node:
    """Return factors side by side, 1 if there are none."""
    return reduce(lambda a, b: S.Bin("*", a, b), factors) if factors else _signed(Fraction(1))


def _is_inverse(expr: Expr) -> bool:
    """Tell whether a factor is one over something."""
    return bool(expr.is_Pow and expr.exp.is_Rational and expr.exp < 0)


def _inverted(expr: Expr) -> Expr:
    """Return what a factor is one over."""
    return expr.base if expr.exp == -1 else sp.Pow(expr.base, -expr.exp, evaluate=False)


def _is_size(expr: Expr) -> bool:
    """Tell whether an expression is a size, such as T."""
    return bool(expr.is_Symbol and expr.is_integer and expr.is_positive)


def _rank(factor: Expr) -> int:
    """Return where a factor stands in a product: sizes, deltas, adjoints, entries, sums."""
    name = kind(factor)
    if _is_size(factor):
        return 0
    if name in ("KroneckerDelta", "Leq"):
        return 1
    if name == "Total" or (tensor_name(factor) or "").startswith("g_"):
        return 2
    return 4 if name in ("Sum", "Product", "DProduct") else 3


def _pow(at: _Names, expr: Expr) -> S.Node:
    """A power with a number as exponent."""
    if _is_inverse(expr):
        return S.Bin("/", _signed(Fraction(1)), at.node(_inverted(expr)))
    return S.Bin("^", at.node(expr.base), at.node(expr.exp))


def _sum(at: _Names, expr: Expr) -> S.Node:
    """Nested sums as one; a sum over the whole axis has no range."""
    bound: list[S.Node] = []
    for symbol, first, last in reversed(expr.limits):
        limits = (at.node(first), at.node(last))
        at, name = at.binding(symbol, expr.function)
        whole = first == 0 and (last + 1).is_Symbol and (last + 1).is_positive
        bound.append(S.Name(name) if whole else S.Range(name, *limits))
    return S.Call("sum", (*bound, at.node(expr.function)))


def _total(at: _Names, expr: Expr) -> S.Node:
    """``g_X[..]`` for the loss, else ``dA/dB``."""
    of, wrt = expr.args
    if tensor_name(of) == "L":
        return at.entry(f"g_{tensor_name(wrt)}", entry_indices(wrt))
    return S.Deriv("total", at.node(of), at.node(wrt))


def _masked(at: _Names, expr: Expr) -> S.Node:
    """``where(s <= t, where(m[s] > 0, x, -oo), -oo)``, one choice a factor of the weight."""
    weight, value, *_ = expr.args
    node, hidden = at.node(value), S.Neg(S.Name(INFINITY))
    for factor in reversed(sp.Mul.make_args(weight)):
        if kind(factor) == "Leq":
            left, right = map(at.node, factor.args)
        else:
            left, right = _signed(Fraction(1)), at.node(factor)
        node = S.Call("where", (S.Condition(left, right, 0), node, hidden))
    return node


def _softmax(at: _Names, expr: Expr) -> S.Node:
    """``softmax(s, S[t,s])``, an entry at s; at a place that is no name, exp over its sum."""
    body, symbol, place, *_ = expr.args
    if place in at.names and place not in body.free_symbols:
        inner = _Names(at.tensors, {**at.names, symbol: at.names[place]})
        return S.Call("softmax", (S.Name(at.names[place]), inner.node(body)))
    inner, name = at.binding(symbol, body)
    above = _Names(at.tensors, at.names | {symbol: "_"})
    top = S.Call("exp", (_replace(above.node(body), "_", at.node(place)),))
    exp = S.Call("exp", (inner.node(body),))
    return S.Bin("/", top, S.Call("sum", (S.Name(name), exp)))


def _replace(node: S.Node, name: str, by: S.Node) -> S.Node:
    """Put a node in the place of every use of a name."""
    if isinstance(node, S.Name):
        return by if node.name == name else node
    return replace(node, **{k: _replace_field(v, name, by) for k, v in vars(node).items()})


def _replace_field(value: Any, name: str, by: S.Node) -> Any:
    """Put a node in the place of a name in one field of a node."""
    if isinstance(value, S.Node):
        return _replace(value, name, by)
    if isinstance(value, tuple):
        return tuple(_replace_field(v, name, by) for v in value)
    return value


def _logsumexp(at: _Names, expr: Expr) -> S.Node:
    """``logsumexp(k, x)``."""
    inner, name = at.binding(expr.args[1], expr.args[0])
    return S.Call("logsumexp", (S.Name(name), inner.node(expr.args[0])))


def _prod(at: _Names, expr: Expr) -> S.Node:
    """``prod(k=a..b, x)``; of matrices, ``entry(prod(...), row, col)``, for display only."""
    body, row, col, symbol, first, last, *place, side = expr.args
    limits = (at.node(first), at.node(last))
    inner, name = at.binding(symbol, body)
    scalar = side == 1
    for index in () if scalar else (row, col):
        inner, _ = inner.binding(index, body)
    product = S.Call("prod", (S.Range(name, *limits), inner.node(body)))
    return product if scalar else S.Call("entry", (product, *(at.node(p) for p in place)))


def _call(func: str) -> Callable[[_Names, Expr], S.Node]:
    """Return the row of a function that is written with the same arguments."""
    return lambda at, expr: S.Call(func, tuple(at.node(a) for a in expr.args))


ROWS: dict[str, Callable[[_Names, Expr], S.Node]] = {
    "Add": _add,
    "Mul": _mul,
    "Pow": _pow,
    "Sum": _sum,
    "Total": _total,
    "Partial": lambda at, e: S.Deriv("partial", at.node(e.args[0]), at.node(e.args[1])),
    "KroneckerDelta": _call("delta"),
    "Leq": _call("leq"),
    "Detach": _call("detach"),
    "Masked": _masked,
    "Softmax": _softmax,
    "LogSumExp": _logsumexp,
    "Product": _prod,
    "DProduct": _prod,
    "Power": lambda at, e: S.Bin("^", at.node(e.args[0]), at.node(e.args[1])),
}
