"""A system at a case's numbers: rationals, and balls where a function is transcendental."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Any

import sympy as sp
from flint import arb, fmpq

from derive.case_quantity import Index
from derive.case_tensors import Nested, needed
from derive.enclosure import fixed_point
from derive.equation import System
from derive.errors import DeriveError
from derive.explicit import Dual, Entry, Explicit
from derive.index import Expr
from derive.instances import Env
from derive.nodes import kind, rebuild, tensor_name
from derive.rings import check_argument

Number = fmpq | arb


@dataclass
class Mixed:
    """Rationals that stay rational until a transcendental function makes them balls.

    Digits of rational values are then compared exactly, ties included.
    """

    givens: Mapping[str, Nested]
    system: System
    one: fmpq = field(default_factory=lambda: fmpq(1))
    zero: fmpq = field(default_factory=lambda: fmpq(0))

    def constant(self, value: Fraction) -> fmpq:
        """Return a rational."""
        return fmpq(value.numerator, value.denominator)

    def given(self, name: str, index: Index) -> fmpq:
        """Return a given entry; before position 0 it stands in ``X_init``."""
        tensor = self.system.tensors[name]
        if index and tensor.dims[0].ordered and index[0] < 0:
            name = f"{name}_init"
            index = index[1:] if tensor.first == -1 else (index[0] - tensor.first, *index[1:])
        if name not in self.givens:
            raise DeriveError(f"{name} is not given in this group")
        found: Any = self.givens[name]
        for place in index:
            found = found[place]
        return self.constant(found)

    def apply(self, function: str, x: Number) -> Number:
        """Apply a function with a rigorous radius; a rational stays one where it can."""
        if function == "abs":
            return x if x >= 0 else -x if x < 0 else arb(x).union(-arb(x)).max(arb(0))
        if function == "relu":
            return (x + self.apply("abs", x)) / 2
        if function == "step":
            return fmpq(x >= 0) if x >= 0 or x < 0 else arb(0.5, 0.5)
        ball = arb(x)
        if function == "erf_slope":
            return 2 * (-ball * ball).exp() / arb.pi().sqrt()
        check_argument(function, ball)
        if function == "sigmoid":
            return 1 / (1 + (-ball).exp())
        value: arb = getattr(ball, function)()
        return value


class World(Explicit):
    """A system at a case's numbers, with entries and adjoints that may be fixed to printed ones."""

    def __init__(self, system: System, sizes: Mapping[str, int], givens: Mapping[str, Nested]):
        # a size that no given fixes is never read: a quantity that needs it is refused before
        super().__init__(system, {n: sizes.get(n, 1) for n in system.dims}, Mixed(givens, system))
        self.pinned: dict[tuple[Entry, Entry], Number] = {}
        self.pinned_points: dict[Expr, Number] = {}
        self.unknown: dict[sp.Symbol, arb] = {}

    def total(self, of: str, of_index: Index, wrt: str, wrt_index: Index) -> Number:
        """Return a total derivative, or the printed number that it is fixed to."""
        pinned = self.pinned.get(((of, of_index), (wrt, wrt_index)))
        found: Number = super().total(of, of_index, wrt, wrt_index) if pinned is None else pinned
        return found

    def pin(self, expr: Expr, env: Mapping[Expr, int], value: Fraction) -> None:
        """Fix an entry, or a derivative of an entry by an entry."""
        number = fmpq(value.numerator, value.denominator)
        full = {**self.size_env, **env}
        if kind(expr) == "Total":
            of, wrt = (self.place(a, full) for a in expr.args)
            self.pinned[of, wrt] = number
            return
        if kind(expr) == "Fixed":
            self.pinned_points[self.located(expr, env)] = number
            return
        if tensor_name(expr) is None:
            raise DeriveError(
                "a printed operand is an entry such as h[1], an adjoint g_h[1], or fixed(...)"
            )
        self.entries[self.place(expr, full)] = (number, {})
        self.order.append(self.place(expr, full))

    def dual(self, expr: Expr, env: Env) -> Dual:
        """Evaluate an expression and its derivatives by the entries that it reads."""
        if expr in self.unknown:
            return self.unknown[expr], {unknown_entry(expr): self.ring.one}
        row = QUANTITY_ROWS.get(kind(expr))
        return super().dual(expr, env) if row is None else (row(self, expr, env), {})

    def located(self, expr: Expr, env: Mapping[Expr, int]) -> Expr:
        """Return an expression at these values of its free indices."""
        return rebuild(expr, {s: sp.Integer(i) for s, i in env.items() if s in expr.free_symbols})

    def warm(self) -> None:
        """Evaluate the states position by position."""
        known = set(getattr(self.ring, "givens", {}))
        ready = [e for e in self.system.equations if needed(self.system, [e.tensor.name]) <= known]
        timed = [e.tensor for e in ready if e.tensor.dims and e.tensor.dims[0].ordered]
        for position in range(max((self.sizes[t.dims[0].name] for t in timed), default=0)):
            for tensor in timed:
                if position < self.sizes[tensor.dims[0].name]:
                    rest = (range(self.sizes[d.name]) for d in tensor.dims[1:])
                    for index in product(*rest):
                        self.entry(tensor.name, (position, *index))


def unknown_entry(symbol: sp.Symbol) -> Entry:
    """Return the name under which slopes by an unknown are kept; no tensor has it."""
    return f"unknown {symbol.name}", ()


def _fixed(world: World, expr: Expr, env: Env) -> Number:
    """Enclose a fixed point; its slope comes from the same tape as every other derivative."""
    place = world.located(expr, env)
    if place in world.pinned_points:
        return world.pinned_points[place]
    body, symbol, low, high = expr.args

    def function(x: arb) -> tuple[arb, arb]:
        world.unknown[symbol] = x
        value, slopes = world.dual(body, env)
        return arb(value), arb(slopes.get(unknown_entry(symbol), 0))

    try:
        return fixed_point(function, rational(low), rational(high), str(body))
    finally:
        world.unknown.pop(symbol, None)


def rational(number: sp.Rational) -> Fraction:
    """Return an exact number."""
    return Fraction(int(number.p), int(number.q))


def _extreme(world: World, expr: Expr, env: Env) -> Number:
    """Return the least or the greatest value; of balls an enclosure of it."""
    body, symbol, first, last = expr.args
    positions = range(world.index(first, env), world.index(last, env) + 1)
    values = [world.dual(body, {**env, symbol: i})[0] for i in positions]
    if not values:
        raise DeriveError(f"the least or greatest of nothing: positions {first}..{last} are none")
    if all(isinstance(v, fmpq) for v in values):
        exact: fmpq = min(values) if kind(expr) == "Lowest" else max(values)
        return exact
    choose = arb.min if kind(expr) == "Lowest" else arb.max
    found: arb = reduce(choose, map(arb, values))
    return found


QUANTITY_ROWS = {"Fixed": _fixed, "Lowest": _extreme, "Highest": _extreme}
