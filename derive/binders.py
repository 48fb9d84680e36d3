"""Binders of the statement language: sums, means, products, softmax."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sympy as sp

from derive import syntax as S
from derive.errors import DeriveError
from derive.functions import TABLE
from derive.index import Dim, Expr, affine
from derive.indices import IndexReader
from derive.masks import MaskReader, difference_guard, empty_row, has_infinity, ranged
from derive.nodes import (
    DProduct,
    LogSumExp,
    Masked,
    Product,
    Softmax,
    degree,
    freshen,
    tensor_name,
)
from derive.scope import MAX_DEGREE, Env, Val, bound_name

TINY = sp.Rational(1, 2)
"""Less than what lies between 0 and 1: a strict comparison of the two with a whole number."""
Bound = tuple[sp.Symbol, Dim]
Limits = tuple[sp.Symbol, Dim, Expr, Expr]


@dataclass
class BinderReader(IndexReader):
    """Reads what binds an index."""

    def binder(self, node: S.Call, env: Env) -> Val:
        """``sum``, ``mean``, ``var``, ``prod``, ``softmax``, ``logsumexp``."""
        *bound, body = node.args
        if node.func in S.QUANTITY_CALLS:
            return self.of_quantity(node, env)
        if not bound and node.func in ("softmax", "logsumexp"):
            return self.over_last_axis(node, self.value(body, env))
        if not bound:
            raise self.fail(node, f"{node.func} needs a bound index first: {node.func}(t, ...)")
        if node.func == "softmax" and len(bound) == 1 and isinstance(bound[0], S.Name):
            return self.softmax_at(node, bound[0], body, env)
        limits, inner = self.bound(node, env)
        if node.func == "prod":
            return self.product(node, limits, self.value(body, inner))
        if node.func == "logsumexp" and has_infinity(body) and len(limits) == 1:
            return self.log_sum(node, limits, inner)
        return self.reduced(node, limits, self.value(body, inner))

    def of_quantity(self, node: S.Call, env: Env) -> Val:
        """Refuse ``fixed``, ``lowest``, ``highest``: `derive.case_quantity` reads them."""
        raise self.fail(node, f"{node.func}(...) is a number: it stands in a printed quantity, "
                        "or in a statement about numbers alone")  # fmt: skip

    def bound(self, node: S.Call, env: Env) -> tuple[list[Limits], dict[str, Bound]]:
        """Return the bound indices of a call with their limits, and the names for its body."""
        *bound, body = node.args
        inner, limits = dict(env), []
        for place, arg in enumerate(bound):
            name = bound_name(arg)
            if name is None:
                raise self.fail(arg, f"expected a bound index such as t or t=0..T-1 in {node.func}")
            self.binding.add(name)
            dim = self.bind(name, [*bound[place + 1 :], body], inner, arg)
            symbol = self.fresh(name)
            limits.append((symbol, dim, *self.limits(arg, dim, inner)))
            inner[name] = (symbol, dim)
        return limits, inner

    def limits(self, arg: S.Node, dim: Dim, env: Env) -> tuple[Expr, Expr]:
        """Return first and last of a bound index."""
        if isinstance(arg, S.Range) and arg.first is not None and arg.last is not None:
            if not dim.ordered:
                raise self.fail(arg, f"a range needs a position axis; {dim.name} has no order")
            return self.index(arg.first, env), self.index(arg.last, env)
        return sp.Integer(0), dim.symbol - 1

    def log_sum(self, node: S.Call, limits: list[Limits], env: Env) -> Val:
        """``logsumexp(s, x)`` of a body that may be minus infinity."""
        symbol, dim, _, _ = limits[0]
        body = self.score(node.args[-1], symbol, env)
        return Val((), lambda _: LogSumExp(body, symbol, dim.symbol))

    def reduced(self, node: S.Call, limits: list[Limits], val: Val) -> Val:
        """Sum, mean or variance of a body over bound indices."""
        if node.func == "logsumexp":
            if len(limits) > 1:
                raise self.fail(node, "logsumexp takes one bound index")
            return Val(
                val.axes, lambda i: LogSumExp(val.build(i), limits[0][0], limits[0][1].symbol)
            )
        if node.func not in ("sum", "mean", "var") or (node.func != "sum" and len(limits) > 1):
            raise self.fail(node, f"{node.func} takes one bound index")
        full = all(first == 0 and last == dim.symbol - 1 for _, dim, first, last in limits)
        if node.func != "sum" and not full:
            raise self.fail(node, f"{node.func} is over the whole axis: no range")

        def total(body: Expr) -> Expr:
            for symbol, _, first, last in reversed(limits):
                body = sp.Sum(body, (symbol, first, last))
            return body

        size = limits[0][1].symbol
        if node.func == "sum":
            return Val(val.axes, lambda i: total(val.build(i)), val.turned)
        if node.func == "mean":
            return Val(val.axes, lambda i: total(val.build(i)) / size, val.turned)

        def variance(i: tuple[Expr, ...]) -> Expr:
            entry = val.build(i)
            return total((entry - freshen(total(entry), self.renewed) / size) ** 2) / size

        return Val(val.axes, variance, val.turned)

    def product(self, node: S.Call, limits: list[Limits], val: Val) -> Val:
        """``prod(k=a..b, M)``: ordered, leftmost factor first; descending if b is before a."""
        arg = node.args[0]
        if len(limits) != 1 or not isinstance(arg, S.Range):
            raise self.fail(node, "prod takes one range: prod(k=t..s+1, M), leftmost factor first")
        symbol, _, first, last = limits[0]
        make = DProduct if self.descends(arg, first, last) else Product
        if not val.axes:
            one, zero = sp.Integer(1), sp.Integer(0)
            row, col = self.fresh("i"), self.fresh("j")
            body = val.build(())
            return Val((), lambda _: make(body, row, col, symbol, first, last, zero, zero, one))
        if len(val.axes) != 2 or val.axes[0].name != val.axes[1].name:
            raise self.fail(node, f"prod multiplies square matrices; found shape {val.shape}")
        row, col = self.fresh("i"), self.fresh("j")
        entry, size = val.build((row, col)), val.axes[0].symbol
        return Val(val.axes, lambda i: make(entry, row, col, symbol, first, last, *i, size))

    def descends(self, arg: S.Range, first: Expr, last: Expr) -> bool:
        """Tell whether a product's factors run from late to early positions.

        ``k=t..s+1`` starts at a position and ends one past another: it goes down. ``k=s+1..t``
        goes up, and so does a start at a number or an end at T-1. A condition ``for s <= t``
        decides what the offsets leave open.
        """
        a, b = affine(first), affine(last)
        if a.base is None or (b.base is not None and b.base.is_positive):
            return False
        if b.base is None or a.base.is_positive:
            return True
        if a.base == b.base:
            return a.offset > b.offset
        if (a.base.name, b.base.name) in self.ordered:
            return False
        if (b.base.name, a.base.name) in self.ordered:
            return True
        if a.offset != b.offset:
            return a.offset < b.offset
        raise self.fail(arg, "cannot tell whether this product goes up or down",
                        f"add a condition: for {b.base.name} <= {a.base.name}")  # fmt: skip

    def softmax_at(self, node: S.Call, index: S.Name, body: S.Node, env: Env) -> Val:
        """``softmax(s, S[t, s])``: its entry at the free index s."""
        if index.name not in env:
            raise self.fail(index, f"softmax(s, ...) is an entry at s; {index.name!r} is unknown")
        at, dim = env[index.name]
        symbol = self.fresh(index.name)
        inner = {**env, index.name: (symbol, dim)}
        expr = self.score(body, symbol, inner)
        return Val((), lambda _: Softmax(expr, symbol, at, dim.symbol))

    def score(self, body: S.Node, symbol: sp.Symbol, env: Env) -> Expr:
        """Elaborate a scalar body of a softmax, parts of which may be minus infinity."""
        if not has_infinity(body):
            return self.scalar(body, env)
        masked = MaskReader(self.scalar, self.allowed, self.fail).read(body, env)
        self.masks.append((body, masked.weight, symbol, dict(env)))
        within = ranged(masked.weight, symbol, dict(env.values()))
        return Masked(masked.weight, self.bounded(masked.value), *within)

    def check_masks(self, conditions: tuple[tuple[Expr, Expr], ...] = ()) -> None:
        """Refuse masks of positions alone that hide every source of a row.

        Raises:
            DeriveError: Naming the row.
        """
        for node, weight, bound, env in self.masks:
            row = empty_row(weight, bound, env, conditions)
            if row:
                raise self.fail(
                    node,
                    f"this mask leaves {row} without a source",
                    "allow at least one source in every row, such as s <= t",
                )

    def allowed(self, test: S.Condition, env: Env) -> Expr:
        """Return one where a comparison holds, else zero."""
        guard = self.guard(test, env)
        if guard is not None:
            return guard
        left, right = (self.scalar(n, env) for n in (test.left, test.right))
        exact = self.binary_test(left, right, test.shift)
        if exact is not None:
            return exact
        return 1 - TABLE["step"](left - right) if test.shift else TABLE["step"](right - left)

    def binary_test(self, left: Expr, right: Expr, strict: int) -> Expr | None:
        """Return a comparison of one entry that is 0 or 1 with a number, through the entry."""
        for entry, number, sign in ((left, right, 1), (right, left, -1)):
            name = tensor_name(entry)
            if name is None or not number.is_Rational or not self.scope.tensors[name].binary:
                continue
            zero, one = (int(bool(sign * (number - v) >= strict * TINY)) for v in (0, 1))
            return zero + (one - zero) * entry
        return None

    def guard(self, test: S.Condition, env: Env) -> Expr | None:
        """Return a comparison of positions as a guard, None for one of values."""
        try:
            left, right = self.position(test.left, env), self.position(test.right, env)
        except DeriveError:
            return None
        dims = {
            **{s: d for s, d in env.values()},
            **{d.symbol: d for d in self.scope.dims.values()},
        }
        return difference_guard(left, right - test.shift, dims)

    def over_last_axis(self, node: S.Call, val: Val) -> Val:
        """``softmax(a[t])``, ``logsumexp(a[t])`` over the last axis."""
        if not val.axes:
            raise self.fail(node, f"{node.func}(x) needs an axis; found a scalar",
                            f"write {node.func}(c, a[t,c])")  # fmt: skip
        rest, size = val.axes[:-1], val.axes[-1].symbol

        def build(i: tuple[Expr, ...]) -> Expr:
            k = self.fresh("k")
            if node.func == "softmax":
                return Softmax(val.build((*i[:-1], k)), k, i[-1], size)
            return LogSumExp(val.build((*i, k)), k, size)

        return Val(val.axes if node.func == "softmax" else rest, build)

    def value(self, node: S.Node, env: Env) -> Val:
        """Elaborate a node to a value."""
        handler: Callable[[S.Node, Env], Val] = getattr(self, "on_" + type(node).__name__.lower())
        return handler(node, env)

    def scalar(self, node: S.Node, env: Env) -> Expr:
        """Elaborate a node that must have no open axes."""
        val = self.value(node, env)
        if val.axes:
            raise self.fail(node, f"expected a scalar here; found shape {val.shape}")
        return self.bounded(val.build(()))

    def bounded(self, expr: Expr) -> Expr:
        """Return an expression whose degree is within bounds.

        Raises:
            DeriveError: If powers of powers make it too large to expand.
        """
        if expr.has(sp.zoo, sp.nan, sp.oo):
            raise DeriveError("division by zero", text=self.text, at=0)
        if degree(expr) > MAX_DEGREE:
            raise DeriveError(
                f"powers and products reach degree {degree(expr)}; at most {MAX_DEGREE} is read",
                text=self.text,
                at=0,
            )
        return expr
