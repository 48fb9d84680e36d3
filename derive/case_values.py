"""Exact values of a worked example's quantities: any expression of the statement language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from math import prod

import sympy as sp
from flint import ctx

from derive.case import Group
from derive.case_quantity import NEWTON_WORK, Index, Quantity, read_quantity
from derive.case_tensors import sizes_read
from derive.case_world import Number, World
from derive.errors import DeriveError
from derive.index import Expr
from derive.nodes import entry_indices, kind

__all__ = ("Index", "Pin", "Quantity", "Values")
MAX_WORK = 2_000_000
"""Scalar operations that a group's numbers may take: seconds, not hours, on any input."""
WARM_FROM = 20
"""Sequences from this length are evaluated position by position, so that recursion stays flat."""


def work(expr: Expr, sizes: Mapping[str, int]) -> int:
    """Bound the scalar operations that one evaluation of an expression takes."""
    inner = sum(work(a, sizes) for a in (*expr.args, *entry_indices(expr)) if a.args) + 1
    if isinstance(expr, sp.Sum):
        for _, first, last in expr.limits:
            inner *= span(first, last, sizes)
    elif kind(expr) in ("Lowest", "Highest"):
        inner *= span(expr.args[2], expr.args[3], sizes)
    elif kind(expr) == "Fixed":
        inner *= NEWTON_WORK
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
        used = sizes_read(self.group.system, quantity.expr)
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
