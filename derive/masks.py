"""Masks: ``softmax(s, where(s <= t, S[t,s], -oo))`` as a weighted softmax.

What is -oo gets no weight: w exp(x)/sum(w exp(x)) with w one where a source is allowed, else zero.
A comparison of positions becomes a guard, so that a mask costs a proof nothing. A row in which no
source is allowed has no softmax (0/0); a mask of positions alone that leaves one is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

import sympy as sp

from derive import syntax as S
from derive.errors import DeriveError
from derive.functions import TABLE
from derive.index import Dim, Expr, affine
from derive.nodes import Leq, entry_indices, kind, tensor_name
from derive.scope import Env

INFINITY = "oo"
"""How infinity is written: -oo, under a softmax or a logsumexp alone."""
SMALL_SIZES = (1, 2, 3, 4)
"""The sizes at which a mask of positions alone is looked at for rows without a source."""

Entry = Callable[[str, tuple[int, ...]], int]


@dataclass(frozen=True)
class Masked:
    """A value where the weight is one; minus infinity where it is zero."""

    weight: Expr
    value: Expr


HIDDEN = Masked(sp.Integer(0), sp.Integer(0))
ONE = sp.Integer(1)


def has_infinity(node: S.Node) -> bool:
    """Tell whether -oo stands in a text."""
    return any(isinstance(n, S.Name) and n.name == INFINITY for n in S.descend(node))


def is_hidden(node: S.Node) -> bool:
    """Tell whether a node is -oo."""
    return isinstance(node, S.Neg) and isinstance(node.arg, S.Name) and node.arg.name == INFINITY


class MaskReader:
    """Reads a scalar body that may be minus infinity.

    Args:
        value: Elaborates a node without infinity.
        allowed: Elaborates a comparison to one where it holds, else zero.
        fail: Makes an error that points at a node.
    """

    def __init__(self, value: Callable[[S.Node, Env], Expr],
                 allowed: Callable[[S.Condition, Env], Expr],
                 fail: Callable[..., DeriveError]):  # fmt: skip
        self.value, self.allowed, self.fail = value, allowed, fail

    def read(self, node: S.Node, env: Env) -> Masked:
        """Return weight and value of a node.

        Raises:
            DeriveError: Where infinity stands in anything but a choice or a sum.
        """
        if not has_infinity(node):
            return Masked(ONE, self.value(node, env))
        if is_hidden(node):
            return HIDDEN
        if isinstance(node, S.Bin) and node.op in "+-":
            left, right = self.read(node.left, env), self.read(node.right, env)
            if node.op == "-" and right.weight != 1:
                raise self.fail(node.right, "minus -oo is infinite: no softmax takes it")
            sign = 1 if node.op == "+" else -1
            return Masked(left.weight * right.weight, left.value + sign * right.value)
        if isinstance(node, S.Call) and node.func == "where":
            return self.choice(node, env)
        raise self.fail(node, "-oo may be added, or chosen by where(...), and nothing else",
                        "write softmax(s, where(s <= t, S[t,s], -oo))")  # fmt: skip

    def choice(self, node: S.Call, env: Env) -> Masked:
        """Read ``where(condition, x, y)``, one of which may be minus infinity."""
        if len(node.args) != 3 or not isinstance(node.args[0], S.Condition):
            raise self.fail(node, "where takes a comparison and two values",
                            "write where(s <= t, S[t,s], -oo)")  # fmt: skip
        holds = self.allowed(node.args[0], env)
        yes, no = (self.read(a, env) for a in node.args[1:])
        if no is HIDDEN:
            return Masked(holds * yes.weight, yes.value)
        if yes is HIDDEN:
            return Masked((1 - holds) * no.weight, no.value)
        if yes.value == no.value:
            return Masked(holds * yes.weight + (1 - holds) * no.weight, yes.value)
        return Masked(holds * yes.weight + (1 - holds) * no.weight,
                      holds * yes.value + (1 - holds) * no.value)  # fmt: skip


def weighted(masked: Masked) -> Expr:
    """Return w exp(x)."""
    return masked.weight * TABLE["exp"](masked.value)


def empty_row(
    weight: Expr, bound: sp.Symbol, env: Env, conditions: tuple[tuple[Expr, Expr], ...] = ()
) -> str | None:
    """Return a row that a mask of positions alone leaves without a source, in words.

    Small sizes are looked at, every row of each: what a comparison of two positions hides, it hides
    there already, unless its offset is larger than these sizes.
    """
    if any(tensor_name(n) is not None or kind(n) in TABLE for n in sp.preorder_traversal(weight)):
        return None
    dims = {symbol: dim for symbol, dim in env.values() if weight.has(symbol)}
    rows = [s for s in dims if s != bound]
    names = {d.name: d for d in dims.values()}
    for sizes in sorted(product(SMALL_SIZES, repeat=len(names)), key=sum):
        size = dict(zip(names, sizes, strict=True))
        values: dict[Expr, int] = {names[n].symbol: v for n, v in size.items()}
        for row in product(*(range(size[dims[s].name]) for s in rows)):
            at = {**values, **dict(zip(rows, row, strict=True))}
            if not all(holds(pair, at) for pair in conditions):
                continue
            columns = range(size[dims[bound].name]) if bound in dims else (0,)
            if not any(number(weight, {**at, bound: c}) for c in columns):
                shown = ", ".join(f"{n} = {v}" for n, v in size.items())
                where = ", ".join(f"{str(s).split(chr(39))[0]} = {v}"
                                  for s, v in zip(rows, row, strict=True))  # fmt: skip
                return f"row {where} (at {shown})" if where else f"the row (at {shown})"
    return None


def holds(condition: tuple[Expr, Expr], at: Mapping[Expr, int]) -> bool:
    """Tell whether a condition on positions may hold: one of other positions may."""
    if not all(s in at for side in condition for s in side.free_symbols):
        return True
    low, high = (number(side, at) for side in condition)
    return low <= high


def number(expr: Expr, at: Mapping[Expr, int], entry: Entry | None = None) -> int:
    """Evaluate a weight of positions, and of entries that are 0 or 1."""
    if expr in at:
        return at[expr]
    if expr.is_Integer:
        return int(expr)
    name = tensor_name(expr)
    if name is not None and entry is not None:
        return entry(name, tuple(number(i, at) for i in entry_indices(expr)))
    values = [number(a, at, entry) for a in expr.args]
    if kind(expr) == "Leq":
        return int(values[0] <= values[1])
    if kind(expr) == "KroneckerDelta":
        return int(values[0] == values[1])
    if expr.is_Add:
        return sum(values)
    if expr.is_Pow:
        return int(values[0] ** values[1])
    out = 1
    for value in values:
        out *= value
    return out


def difference_guard(left: Expr, right: Expr, dims: Mapping[Expr, Dim]) -> Expr | None:
    """Return left <= right as a guard: a difference of at most two positions, and a number.

    ``t - s <= 2`` is ``t <= s + 2``. None if it is no such comparison, or is of no position.
    """
    apart = sp.expand(right - left)
    ups, downs, offset = [], [], sp.Integer(0)
    for part in sp.Add.make_args(apart):
        if part.is_Integer:
            offset = part
        elif part.is_Symbol and part in dims:
            ups.append(part)
        elif (-part).is_Symbol and -part in dims:
            downs.append(-part)
        else:
            return None
    if len(ups) > 1 or len(downs) > 1 or not (ups or downs):
        return None
    known = [s for s in (*ups, *downs) if not s.is_positive]
    if not known or not all(dims[s].ordered for s in (*ups, *downs)):
        return None
    low = downs[0] if downs else sp.Integer(0)
    high = (ups[0] if ups else sp.Integer(0)) + offset
    return Leq(low, high)


def ranged(weight: Expr, bound: sp.Symbol, dims: Mapping[Expr, Dim]) -> tuple[Expr, Expr, Expr]:
    """Return what a weight is within a range of its bound index, and the range.

    A guard ``s <= t`` ends the range where both run over one axis: t is one of its positions. One
    that could end past the axis (``s <= t + 2``) stays a guard.
    """
    axis = dims[bound]
    first, last = sp.Integer(0), axis.symbol - 1
    rest = list[Expr]()
    for factor in sp.Mul.make_args(weight):
        low, high = factor.args if kind(factor) == "Leq" else (factor, factor)
        if low == bound and last == axis.symbol - 1 and inside(high, axis, dims, (None, 0)):
            last = high
        elif high == bound and first == 0 and inside(low, axis, dims, (0, None)):
            first = low
        else:
            rest.append(factor)
    return sp.Mul(*rest), first, last


def inside(
    place: Expr, axis: Dim, dims: Mapping[Expr, Dim], offsets: tuple[int | None, int | None]
) -> bool:
    """Tell whether a place is an index of an axis, moved by no more than these offsets."""
    at = affine(place)
    least, most = offsets
    if at.base not in dims or dims[at.base].name != axis.name:
        return False
    return (least is None or at.offset >= least) and (most is None or at.offset <= most)
