"""The second reading of an expected value: polynomials in the random entries, moment by moment.

At explicit sizes a value is expanded into monomials of the random entries; independent entries
have the product of their raw moments as the mean of a monomial. This shares nothing with the
cumulant expansion of the normal form.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING

from derive.equation import Moments, moment_indices
from derive.errors import DeriveError
from derive.index import Expr
from derive.instances import Env
from derive.rings import Element, Ring

if TYPE_CHECKING:
    from derive.explicit import Entry, Explicit

Monomial = tuple[tuple["Entry", int], ...]
MAX_MONOMIALS = 20_000


@dataclass(frozen=True, eq=False)
class Polynomial:
    """A polynomial in random entries with coefficients in a ring."""

    ring: Drawn
    parts: dict[Monomial, Element]

    def lift(self, other: Element) -> dict[Monomial, Element]:
        """Return the parts of an element or of a Python integer."""
        if isinstance(other, Polynomial):
            return other.parts
        return {(): self.ring.base.constant(Fraction(other))}

    def plus(self, other: Element, sign: int) -> Polynomial:
        """Add or subtract."""
        out = dict(self.parts)
        for key, value in self.lift(other).items():
            moved = value if sign > 0 else 0 - value
            out[key] = out[key] + moved if key in out else moved
        return Polynomial(self.ring, out)

    def __add__(self, other: Element) -> Polynomial:
        """Add."""
        return self.plus(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Element) -> Polynomial:
        """Subtract."""
        return self.plus(other, -1)

    def __rsub__(self, other: Element) -> Polynomial:
        """Subtract from."""
        return Polynomial(self.ring, self.lift(other)).plus(self, -1)

    def __mul__(self, other: Element) -> Polynomial:
        """Multiply.

        Raises:
            DeriveError: When it grows past its limit.
        """
        out: dict[Monomial, Element] = {}
        for a, x in self.parts.items():
            for b, y in self.lift(other).items():
                key, value = merged(a, b), x * y
                out[key] = out[key] + value if key in out else value
        if len(out) > MAX_MONOMIALS:
            raise DeriveError(f"E(...) has more than {MAX_MONOMIALS} monomials at these sizes")
        return Polynomial(self.ring, out)

    __rmul__ = __mul__

    def __truediv__(self, other: Element) -> Polynomial:
        """Divide by something that is not random."""
        below = self.ring.fixed(other, "1/x")
        return Polynomial(self.ring, {k: v / below for k, v in self.parts.items()})


def merged(a: Monomial, b: Monomial) -> Monomial:
    """Return the product of two monomials."""
    powers = dict(a)
    for entry, power in b:
        powers[entry] = powers.get(entry, 0) + power
    return tuple(sorted(powers.items()))


@dataclass(frozen=True, eq=False)
class Drawn:
    """The ring of polynomials in the entries of random tensors.

    Args:
        base: The ring of their coefficients.
        random: Names of the random tensors.
    """

    base: Ring
    random: frozenset[str]

    @property
    def one(self) -> Polynomial:
        """The number one."""
        return Polynomial(self, {(): self.base.one})

    @property
    def zero(self) -> Polynomial:
        """The number zero."""
        return Polynomial(self, {(): self.base.zero})

    def constant(self, value: Fraction) -> Polynomial:
        """Return an exact rational."""
        return Polynomial(self, {(): self.base.constant(value)})

    def given(self, name: str, index: tuple[int, ...]) -> Polynomial:
        """Return an entry: a variable if it is random."""
        if name in self.random:
            return Polynomial(self, {(((name, index), 1),): self.base.one})
        return Polynomial(self, {(): self.base.given(name, index)})

    def apply(self, function: str, x: Polynomial) -> Polynomial:
        """Apply a function to something that is not random."""
        return Polynomial(self, {(): self.base.apply(function, self.fixed(x, function))})

    def fixed(self, value: Element, what: str) -> Element:
        """Return the value of something that is not random.

        Raises:
            DeriveError: If it is.
        """
        parts = self.one.lift(value)
        if any(parts.keys() - {()}):
            raise DeriveError(f"E(...) of {what} at a random x does not follow from moments")
        return parts.get((), self.base.zero)


def expected(world: Explicit, expr: Expr, env: Env) -> Element:
    """Return the expected value of an expression at explicit sizes.

    Raises:
        DeriveError: If it is no polynomial in the random entries, or a moment is not declared.
    """
    value: Polynomial = world.drawn.value(expr.args[0], env)
    total = world.ring.zero
    for monomial, coefficient in value.parts.items():
        for (name, index), power in monomial:
            coefficient = coefficient * raw_moment(world, name, index, power)
        total = total + coefficient
    return total


def raw_moment(world: Explicit, name: str, index: tuple[int, ...], power: int) -> Element:
    """Return E(x^power) of one entry, by the binomial theorem from its central moments."""
    tensor, moments = world.system.tensors[name], world.system.random[name]
    env: Env = dict(zip(moment_indices(tensor), index, strict=True))
    mean = world.value(moments.mean, env)
    total = world.ring.zero
    for order in range(power + 1):
        if order == 1:
            continue
        part = world.ring.one
        if order:
            central = known(name, moments, order)
            part = world.value(central, env)
        for _ in range(power - order):
            part = part * mean
        total = total + part * world.ring.constant(Fraction(comb(power, order)))
    return total


def known(name: str, moments: Moments, order: int) -> Expr:
    """Return a central moment.

    Raises:
        DeriveError: If it is not declared.
    """
    central = moments.central(order)
    if central is None:
        raise DeriveError(f"the central moment of order {order} of {name} is not declared")
    return central
