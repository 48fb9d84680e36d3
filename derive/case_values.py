"""Exact values of a worked example's quantities: any expression of the statement language."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import sympy as sp
from flint import arb, ctx, fmpq

from derive import syntax as S
from derive.case import Group
from derive.case_tensors import Nested, needed
from derive.elaborate import Elaborator
from derive.equation import System
from derive.errors import DeriveError, nearest
from derive.explicit import Entry, Explicit
from derive.index import Dim, Expr, index_symbol
from derive.nodes import entry_indices, kind, tensor_name, walk
from derive.parse import parse_expression
from derive.statement import axis_names, bind_free

Number = fmpq | arb
Index = tuple[int, ...]
ITEM = re.compile(r"\w+\[[^\]]*\]")
MAX_WORK = 2_000_000
"""Scalar operations that a group's numbers may take: seconds, not hours, on any input."""
WARM_FROM = 20
"""Sequences from this length are evaluated position by position, so that recursion stays flat."""


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
    elaborator = Elaborator(scope, text)
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

    def apply(self, function: str, x: Number) -> arb:
        """Apply a function with a rigorous radius."""
        ball = arb(x)
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
        if tensor_name(expr) is None:
            raise DeriveError("a printed operand is an entry such as h[1], or an adjoint g_h[1]")
        self.entries[self.place(expr, full)] = (number, {})
        self.order.append(self.place(expr, full))

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


def work(expr: Expr, sizes: Mapping[str, int]) -> int:
    """Bound the scalar operations that one evaluation of an expression takes."""
    inner = sum(work(a, sizes) for a in (*expr.args, *entry_indices(expr)) if a.args) + 1
    if isinstance(expr, sp.Sum):
        for _, first, last in expr.limits:
            inner *= span(first, last, sizes)
    elif kind(expr) in ("Softmax", "LogSumExp"):
        inner *= span(sp.Integer(0), expr.args[-1], sizes)
    elif kind(expr) in ("Product", "DProduct"):
        inner *= max(sizes.values(), default=1) ** 3
    return inner


def span(first: Expr, last: Expr, sizes: Mapping[str, int]) -> int:
    """Bound the number of values of a bound index."""
    names = {s.name for s in (first.free_symbols | last.free_symbols)}
    if not names:
        return max(0, int(last - first) + 1)
    return max(sizes.get(n, max(sizes.values(), default=1)) for n in names)


def check_work(group: Group) -> None:
    """Refuse a system whose entries at these sizes are too many operations.

    Raises:
        DeriveError: Naming the equation.
    """
    total = 0
    for equation in group.system.equations:
        count = prod(group.sizes.get(d.name, 1) for d in equation.tensor.dims)
        total += count * work(equation.rhs, group.sizes)
        if total > MAX_WORK:
            raise DeriveError(
                f"group {group.name}: exact values take more than {MAX_WORK} operations at these "
                f"sizes, by the equation {equation.text!r}",
                hint="give a smaller example",
            )


Pin = tuple[Quantity, Index, Fraction]


class Values:
    """The exact values of a group's quantities, evaluated once per precision.

    Args:
        group: The worked example.
        pins: Quantities whose entries are fixed to printed numbers.
    """

    def __init__(self, group: Group, pins: tuple[Pin, ...] = ()):
        check_work(group)
        self.group, self.pins = group, pins
        self.worlds: dict[int, World] = {}

    def quantity(self, text: str, at: Mapping[str, int]) -> Quantity:
        """Read a quantity of this group.

        Raises:
            DeriveError: If it cannot be read, or a size that it needs is unknown.
        """
        quantity = read_quantity(self.group.system, text, at)
        used = {
            n.name for n in walk(quantity.expr) if n.is_Symbol and n.is_integer and n.is_positive
        }
        used |= {dim.name for _, dim in quantity.axes}
        missing = sorted(used - set(self.group.sizes))
        if missing:
            raise DeriveError(
                f"{text}: size {missing[0]} is unknown in group {self.group.name}",
                hint=f"give a tensor with that axis, or sizes = {{ {missing[0]} = 3 }}",
            )
        count = prod(self.shape(quantity)) * work(quantity.expr, self.group.sizes)
        if count > MAX_WORK:
            raise DeriveError(f"{text}: more than {MAX_WORK} operations at these sizes")
        return quantity

    def shape(self, quantity: Quantity) -> tuple[int, ...]:
        """Return the sizes of the printed axes."""
        return tuple(self.group.sizes[dim.name] for _, dim in quantity.axes)

    def indices(self, quantity: Quantity) -> Iterator[Index]:
        """Yield every index of the printed axes, the last one fastest."""
        return product(*(range(n) for n in self.shape(quantity)))

    def at(self, quantity: Quantity, index: Index, precision: int) -> Number:
        """Return the value at an index of the printed axes: exact, or a ball.

        Raises:
            DeriveError: If a given is missing, an index is outside, or on a division by zero.
        """
        before = ctx.prec
        ctx.prec = precision
        try:
            world = self.world(precision)
            value: Number = world.value(quantity.expr, quantity.env(index))
        except ZeroDivisionError:
            raise DeriveError(f"{quantity.text}: division by zero") from None
        finally:
            ctx.prec = before
        return value

    def world(self, precision: int) -> World:
        """Return the system evaluated at a precision."""
        if precision not in self.worlds:
            world = World(self.group.system, self.group.sizes, self.group.givens)
            for quantity, index, value in self.pins:
                world.pin(quantity.expr, quantity.env(index), value)
            if max(self.group.sizes.values(), default=0) >= WARM_FROM:
                world.warm()
            self.worlds[precision] = world
        return self.worlds[precision]
