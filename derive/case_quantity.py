"""Printed quantities: expressions of the statement language, and what has a number only.

``fixed(h=0.5..1, tanh(2*h))`` is the only fixed point there; ``lowest(k=5..T-1, x[k])`` and
``highest`` are over an axis or a range of positions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import sympy as sp

from derive import syntax as S
from derive.elaborate import Elaborator
from derive.equation import System
from derive.errors import DeriveError, nearest
from derive.index import Dim, Expr, index_symbol
from derive.nodes import kind, walk
from derive.parse import parse_expression
from derive.scope import Env, Val
from derive.statement import axis_names, bind_free

Index = tuple[int, ...]
ITEM = re.compile(r"\w+\[[^\]]*\]")

Fixed = sp.Function("Fixed")
"""``Fixed(f, x, low, high)``: the x from low to high with f(x) = x."""
Lowest = sp.Function("Lowest")
"""``Lowest(x, k, first, last)``: the least x for k from first to last."""
Highest = sp.Function("Highest")
SLOPELESS = (*S.QUANTITY_CALLS, "detach", "E", "Var", "Cov")
"""What may not stand inside of ``fixed``."""
NEWTON_WORK = 2000
"""Evaluations of f that an enclosure may take."""


@dataclass
class QuantityReader(Elaborator):
    """Elaborates a printed quantity."""

    def of_quantity(self, node: S.Call, env: Env) -> Val:
        """``fixed``, ``lowest``, ``highest``."""
        if node.func == "fixed":
            return self.fixed(node, env)
        if len(node.args) < 2:
            raise self.fail(node, f"{node.func} needs a bound index first: {node.func}(t, ...)")
        limits, inner = self.bound(node, env)
        val = self.value(node.args[-1], inner)
        make = Lowest if node.func == "lowest" else Highest

        def build(i: tuple[Expr, ...]) -> Expr:
            body = val.build(i)
            for symbol, _, first, last in reversed(limits):
                body = make(body, symbol, first, last)
            return body

        return Val(val.axes, build, val.turned)

    def fixed(self, node: S.Call, env: Env) -> Val:
        """``fixed(h=0.5..1, f)``: a scalar; its unknown is no index and no tensor."""
        unknown = node.args[0]
        if len(node.args) != 2 or not isinstance(unknown, S.Range):
            raise self.fail(node, "fixed takes an unknown with an interval, and a function of it: "
                            "fixed(h=0.5..1, tanh(2*h))")  # fmt: skip
        assert unknown.first is not None and unknown.last is not None
        ends = [self.end(unknown.first), self.end(unknown.last)]
        for inner in S.descend(node.args[1]):
            # the slope by the unknown would be lost in them, and with it the proof
            if isinstance(inner, S.Call) and inner.func in SLOPELESS:
                raise self.fail(inner, f"{inner.func} has no slope inside of fixed(...)",
                                "name the inner part as an equation of a [system]")  # fmt: skip
        symbol = sp.Symbol(unknown.name)
        body = self.scalar(node.args[1], {**env, unknown.name: (symbol, Dim("1"))})
        if any(kind(n) == "step" for n in walk(body)):
            raise self.fail(node, "a function with a jump has no slope inside of fixed(...)")
        return Val((), lambda _: Fixed(body, symbol, *ends))

    def end(self, node: S.Node) -> sp.Rational:
        """Read an end of an interval: an exact number."""
        sign = -1 if isinstance(node, S.Neg) else 1
        number = node.arg if isinstance(node, S.Neg) else node
        if not isinstance(number, S.Num):
            raise self.fail(node, "an interval goes from a number to a number, as in h=0.5..1")
        value: Fraction = sign * number.value
        return sp.Rational(value.numerator, value.denominator)


@dataclass(frozen=True)
class Quantity:
    """An expression with the axes over which it is printed.

    Args:
        text: As written.
        expr: In index notation.
        axes: The symbols that run over the printed axes, with their sizes.
        at: Values of the symbols that are fixed.
        opened: The symbols that stand for open axes, in order; the others are free indices.
        compound: Whether it is an operation, which an index needs in parentheses.
    """

    text: str
    expr: Expr
    axes: tuple[tuple[sp.Symbol, Dim], ...]
    at: Mapping[sp.Symbol, int]
    opened: tuple[sp.Symbol, ...] = ()
    compound: bool = False

    def env(self, index: Index) -> dict[sp.Symbol, int]:
        """Return the value of every symbol at an index of the printed axes."""
        return {**self.at, **{s: i for (s, _), i in zip(self.axes, index, strict=True)}}

    def label(self, index: Index) -> str:
        """Return the name of one number: ``g_h[1,0]``, ``(1 - h^2)[1,0]``, ``... at t=0, j=1``."""
        env = self.env(index)
        places = ",".join(str(env[s]) for s in self.opened)
        name = self.text
        if places and ITEM.fullmatch(name):
            name = f"{name[:-1]},{places}]"
        elif places:
            name = f"({name})[{places}]" if self.compound else f"{name}[{places}]"
        free = ", ".join(f"{s.name}={i}" for s, i in env.items() if s not in self.opened)
        return f"{name} at {free}" if free else name


def read_quantity(system: System, text: str, at: Mapping[str, int]) -> Quantity:
    """Read an expression; its free indices, then its open axes, are the printed axes.

    Args:
        system: Whose names it may use.
        text: The expression: ``g_h``, ``1 - h^2``, ``sum(k, W_x[j,k]*x[t,k])``, ``dL/dW_h``.
        at: Fixed positions, by the name of a free index or the small letter of an open axis' size.

    Raises:
        DeriveError: If it cannot be read, or ``at`` names no free index or axis of it.
    """
    scope = system.scope
    node = parse_expression(text, scope.is_name)
    elaborator = QuantityReader(scope, text)
    free = bind_free(elaborator, S.Statement(node, node, (), text, span=node.span))
    val = elaborator.value(node, free)
    opened = [(index_symbol(n), d) for n, d in
              zip(axis_names(val.axes, free), val.axes, strict=True)]  # fmt: skip
    axes = {name: pair for name, pair in free.items()}
    letters: dict[str, str] = {}
    for symbol, dim in opened:
        axes[symbol.name] = (symbol, dim)
        letters.setdefault(dim.name.lower(), symbol.name)
    fixed = {}
    for name, position in at.items():
        found = name if name in free else letters.get(name, "")
        if not found:
            raise DeriveError(f"{text}: at names {name!r}, neither a free index nor an axis",
                              hint=nearest(name, [*free, *letters]))  # fmt: skip
        fixed[axes.pop(found)[0]] = position
    expr = val.build(tuple(s for s, _ in opened))
    symbols, compound = tuple(s for s, _ in opened), isinstance(node, S.Bin | S.Neg)
    return Quantity(text, expr, tuple(axes.values()), fixed, symbols, compound)
