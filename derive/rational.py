"""Rational functions of free generators: what the second prover computes with (python-flint)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import flint

from derive.errors import UndefinedError
from derive.rings import Element, Ring

MIRRORS: dict[str, Callable[[Element, Ring], Element]] = {
    "tanh": lambda f, ring: ring.zero - f,
    "sigmoid": lambda f, ring: ring.one - f,
    "sin": lambda f, ring: ring.zero - f,
    "cos": lambda f, ring: f,
}
ZEROS = {"tanh": Fraction(0), "sigmoid": Fraction(1, 2), "sin": Fraction(0), "cos": Fraction(1)}


@dataclass(frozen=True, eq=False)
class Rational:
    """A rational function: a polynomial in free generators and in inverses, each a generator too.

    Inverses are cleared only when a value is tested for zero, so that no step takes a gcd.
    """

    ring: Functions
    poly: flint.fmpq_mpoly

    def lift(self, value: Element) -> flint.fmpq_mpoly:
        """Return the polynomial of an element or of a Python integer."""
        return value.poly if isinstance(value, Rational) else value

    def __add__(self, other: Element) -> Rational:
        """Add."""
        return Rational(self.ring, self.poly + self.lift(other))

    __radd__ = __add__

    def __sub__(self, other: Element) -> Rational:
        """Subtract."""
        return Rational(self.ring, self.poly - self.lift(other))

    def __rsub__(self, other: Element) -> Rational:
        """Subtract from."""
        return Rational(self.ring, self.lift(other) - self.poly)

    def __mul__(self, other: Element) -> Rational:
        """Multiply.

        Raises:
            TimeoutError: Past the ring's end.
        """
        if time.perf_counter() > self.ring.end:
            raise TimeoutError
        return Rational(self.ring, self.poly * self.lift(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Element) -> Rational:
        """Divide.

        Raises:
            DeriveError: By zero.
        """
        return self * self.ring.inverse(other.poly)

    @property
    def is_zero(self) -> bool:
        """Whether it is zero as a rational function."""
        return bool(self.ring.cleared(self.poly).is_zero())


MAX_CLEARED = 200_000


class NeedMoreError(Exception):
    """The context has too few generators."""


@dataclass
class Functions:
    """Rational functions over free generators: every given entry and every function value is one.

    The same function of the same argument is the same generator; log opens products and exp.

    Args:
        size: How many generators the context holds.
        onehot: Names of the one-hot targets, with their number of classes.
        classes: Class of each row, by tensor; without them a row is any that sums to one.
        end: Clock time (`time.perf_counter`) at which it gives up.
        split: Whether exp of a sum opens into a product (needed for shifts, slower).
        kinked: Whether a root, |x| or a step was met: such values are not free generators, and
            two functions that differ as polynomials may be equal.
    """

    size: int
    onehot: Mapping[str, int] = field(default_factory=dict)
    classes: Mapping[str, Mapping[tuple[int, ...], int]] = field(default_factory=dict)
    split: bool = False
    end: float = float("inf")
    made: dict[Any, int] = field(default_factory=dict)
    arguments: dict[int, Rational] = field(default_factory=dict)
    inverted: dict[int, flint.fmpq_mpoly] = field(default_factory=dict)
    squared: dict[int, flint.fmpq_mpoly] = field(default_factory=dict)
    kinked: bool = False

    def __post_init__(self) -> None:
        """Make the context."""
        self.context = context_of(self.size)
        self.gens = self.context.gens()
        self.unit = Rational(self, self.context.constant(1))
        self.nothing = Rational(self, self.context.constant(0))

    @property
    def one(self) -> Rational:
        """The number one."""
        return self.unit

    @property
    def zero(self) -> Rational:
        """The number zero."""
        return self.nothing

    def constant(self, value: Fraction) -> Rational:
        """Return an exact rational."""
        number = flint.fmpq(value.numerator, value.denominator)
        return Rational(self, self.context.constant(number))

    def given(self, name: str, index: tuple[int, ...]) -> Rational:
        """Return the generator of a given entry; a one-hot row sums to one, or is its class."""
        if name in self.classes and name not in self.onehot:
            return self.one if self.classes[name][index] else self.zero
        if name in self.onehot and self.classes:
            return self.one if self.classes[name][index[:-1]] == index[-1] else self.zero
        if name in self.onehot and index[-1] == self.onehot[name] - 1:
            others = (self.given(name, (*index[:-1], c)) for c in range(index[-1]))
            return self.one - sum(others, self.zero)
        return self.generator(("given", name, index))

    def place(self, key: Any) -> int:
        """Return the place of a key's generator, new or known.

        Raises:
            NeedMoreError: When the context is full.
        """
        found = self.made.setdefault(key, len(self.made))
        if found >= self.size:
            raise NeedMoreError
        return found

    def generator(self, key: Any) -> Rational:
        """Return the generator of a key."""
        return Rational(self, self.gens[self.place(key)])

    def inverse(self, poly: flint.fmpq_mpoly) -> Rational:
        """Return 1 / poly: factor by factor for a monomial, else one generator for it."""
        if self.cleared(poly).is_zero():
            raise UndefinedError("division by something that is identically zero")
        lead = poly.leading_coefficient()
        if len(poly) > 1:
            return self.inverse_generator(poly / lead) * self.constant_of(1 / lead)
        out = self.constant_of(1 / lead)
        for place, power in enumerate(poly.monoms()[0]):
            for _ in range(int(power)):
                out = out * self.inverse_of(place)
        return out

    def constant_of(self, number: flint.fmpq) -> Rational:
        """Return a constant."""
        return Rational(self, self.context.constant(number))

    def inverse_of(self, place: int) -> Rational:
        """Return the inverse of one generator; of an inverse, what it inverts."""
        if place in self.inverted:
            return Rational(self, self.inverted[place])
        return self.inverse_generator(self.gens[place])

    def inverse_generator(self, poly: flint.fmpq_mpoly) -> Rational:
        """Return the generator that stands for 1 / poly."""
        place = self.place(("inverse", str(poly)))
        self.inverted[place] = poly
        return Rational(self, self.gens[place])

    def cleared(self, poly: flint.fmpq_mpoly) -> flint.fmpq_mpoly:
        """Multiply the inverses out, latest first: zero if and only if the function is zero.

        Powers of roots and absolute values come down to 0 and 1 on the way.
        """
        for place in sorted({*self.inverted, *self.squared}, reverse=True):
            if place in self.squared:
                poly = self.reduced(poly, place)
                continue
            top = poly.degrees()[place] if not poly.is_zero() else 0
            if not top:
                continue
            parts: dict[int, dict[tuple[int, ...], Any]] = {}
            for powers, coefficient in poly.to_dict().items():
                rest = (*powers[:place], 0, *powers[place + 1 :])
                parts.setdefault(int(powers[place]), {})[rest] = coefficient
            if time.perf_counter() > self.end or len(poly) * top > MAX_CLEARED:
                raise TimeoutError
            poly = sum(
                (self.context.from_dict(p) * self.inverted[place] ** (top - e)
                 for e, p in parts.items()),
                self.context.constant(0),
            )  # fmt: skip
        return poly

    def known_argument(self, function: str, x: Rational) -> Rational:
        """Return an argument of the same function that equals x, written otherwise, else x.

        Only inverses make that possible: polynomials are equal if they read the same.
        """
        degrees = () if x.poly.is_zero() else x.poly.degrees()
        if any(degrees[p] for p in self.inverted if degrees):
            for key, place in list(self.made.items()):
                if key[0] == function and (x - self.arguments[place]).is_zero:
                    return self.arguments[place]
        return x

    def reduced(self, poly: flint.fmpq_mpoly, place: int) -> flint.fmpq_mpoly:
        """Replace the square of one generator by what it is."""
        if poly.is_zero() or poly.degrees()[place] < 2:
            return poly
        out = self.context.constant(0)
        for powers, coefficient in poly.to_dict().items():
            half, odd = divmod(int(powers[place]), 2)
            rest = (*powers[:place], odd, *powers[place + 1 :])
            out += self.context.from_dict({rest: coefficient}) * self.squared[place] ** half
        return out

    def apply(self, function: str, x: Rational) -> Rational:
        """Name a function value; log opens monomials and exponentials."""
        if function == "relu":
            return (x + self.apply("abs", x)) * self.constant(Fraction(1, 2))
        if function in ("sin", "cos") and (parts := whole_parts(x.poly)) is not None:
            return self.turned_sum(function, parts)
        if function == "exp" and self.split and len(x.poly) > 1:
            return self.split_exp(x.poly)
        if function in ZEROS and x.poly.is_zero():
            return self.constant(ZEROS[function])
        if function in MIRRORS and x.poly.leading_coefficient() < 0:
            turned: Rational = MIRRORS[function](self.apply(function, self.zero - x), self)
            return turned
        if function != "log":
            key = (function, str(self.known_argument(function, x).poly))
            self.arguments[self.place(key)] = x
            if function == "cos":
                sine = self.apply("sin", x)
                self.squared[self.place(key)] = 1 - sine.poly**2
            if function in ("sqrt", "abs", "step"):
                self.kinked = True
                square = {"sqrt": x.poly, "abs": x.poly**2, "step": self.gens[self.place(key)]}
                self.squared[self.place(key)] = square[function]
            return self.generator(key)
        content = x.poly.term_content()
        if len(x.poly) != 1 and not content.is_constant():
            rest = Rational(self, x.poly / content)
            return self.apply("log", rest) + self.apply("log", Rational(self, content))
        if len(x.poly) != 1:
            return self.generator(("log", str(x.poly)))
        lead = x.poly.leading_coefficient()
        out = self.zero if lead == 1 else self.generator(("log", str(lead)))
        for place, power in enumerate(x.poly.monoms()[0]):
            if power:
                out = out + self.log_generator(place) * int(power)
        return out

    def split_exp(self, poly: flint.fmpq_mpoly) -> Rational:
        """Return exp of a sum as a product, one factor for each term to its integer coefficient."""
        out = self.one
        for powers, coefficient in poly.to_dict().items():
            whole = coefficient.denominator == 1
            monomial = self.context.from_dict({powers: 1 if whole else coefficient})
            factor = self.apply("exp", Rational(self, monomial))
            for _ in range(abs(int(coefficient.numerator)) if whole else 1):
                out = out * factor if coefficient > 0 or not whole else out / factor
        return out

    def turned_sum(self, function: str, parts: list[flint.fmpq_mpoly]) -> Rational:
        """Return the sine or cosine of a sum of angles, turning by one after the other."""
        sine, cosine = self.zero, self.one
        for part in parts:
            s, c = (self.apply(f, Rational(self, part)) for f in ("sin", "cos"))
            sine, cosine = sine * c + cosine * s, cosine * c - sine * s
        return sine if function == "sin" else cosine

    def log_generator(self, place: int) -> Rational:
        """Return log of one generator: of exp x it is x, of an inverse minus the log."""
        if place in self.inverted:
            return self.zero - self.apply("log", Rational(self, self.inverted[place]))
        key = next(k for k, v in self.made.items() if v == place)
        if key[0] == "exp":
            return self.arguments[place]
        return self.generator(("log", f"generator {place}"))


def whole_parts(poly: flint.fmpq_mpoly) -> list[flint.fmpq_mpoly] | None:
    """Return the monomials of an angle, each as often as its whole coefficient; None of one."""
    parts: list[flint.fmpq_mpoly] = []
    for powers, coefficient in poly.to_dict().items():
        count = abs(coefficient)
        whole = count.denominator == 1
        monomial = poly.context().from_dict({powers: coefficient / count if whole else coefficient})
        parts += [monomial] * (int(count.numerator) if whole else 1)
        if len(parts) > MAX_ANGLES:
            return None
    return parts if len(parts) > 1 else None


MAX_ANGLES = 6


@lru_cache(maxsize=16)
def context_of(size: int) -> flint.fmpq_mpoly_ctx:
    """Return a polynomial context with this many generators."""
    names = tuple(f"v{i}" for i in range(size))
    return flint.fmpq_mpoly_ctx.get(names, flint.Ordering.degrevlex)
