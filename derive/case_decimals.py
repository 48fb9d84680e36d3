"""Enclosures of exact values, and decimals rounded from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import floor

from flint import arb, ctx, fmpq, fmpz

from derive.errors import DeriveError

LADDER = (64, 128, 256, 512)
"""Bits of the working precision, tried in turn."""

Exact = Fraction | int | fmpq | fmpz | arb
Value = Callable[[int], Exact]
"""Precision in bits to the value: exact, or a ball that holds it."""


@dataclass(frozen=True)
class Enclosure:
    """Bounds of the exact value; equal for a rational one."""

    low: Fraction
    high: Fraction

    @property
    def middle(self) -> Fraction:
        """The midpoint."""
        return (self.low + self.high) / 2

    def distance(self, value: Fraction) -> tuple[Fraction, Fraction]:
        """Return bounds of the distance to a number."""
        far = max(abs(self.low - value), abs(self.high - value))
        inside = self.low <= value <= self.high
        near = Fraction(0) if inside else min(abs(self.low - value), abs(self.high - value))
        return near, far


def enclose(value: Exact) -> Enclosure | None:
    """Return exact bounds of a value, None if the ball is not finite."""
    if isinstance(value, arb):
        if not value.is_finite():
            return None
        middle, radius = dyadic(value.mid()), dyadic(value.rad())
        return Enclosure(middle - radius, middle + radius)
    if isinstance(value, fmpq):
        number = Fraction(int(value.p), int(value.q))
    else:
        number = Fraction(int(value)) if isinstance(value, fmpz) else Fraction(value)
    return Enclosure(number, number)


def dyadic(exact: arb) -> Fraction:
    """Return an exact ball (radius zero) as a fraction."""
    mantissa, exponent = exact.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


MAX_DECIMALS, LARGEST_POWER = 400, 3000
LARGEST = 10**LARGEST_POWER


def at_precision(value: Value, bits: int) -> Enclosure | None:
    """Evaluate at a precision; the global precision of python-flint is restored."""
    before = ctx.prec
    ctx.prec = bits
    try:
        return enclose(value(bits))
    finally:
        ctx.prec = before


def decimal_text(value: Fraction, decimals: int) -> str:
    """Return a fraction to so many decimals, half away from zero.

    >>> decimal_text(Fraction(-1, 3), 4)
    '-0.3333'
    """
    if decimals > MAX_DECIMALS or abs(value) >= LARGEST:
        raise DeriveError(f"a number below 10^{LARGEST_POWER} in size is printed to at most "
                          f"{MAX_DECIMALS} decimals")  # fmt: skip
    scaled = floor(abs(value) * 10**decimals + Fraction(1, 2))
    digits = str(scaled).rjust(decimals + 1, "0")
    cut = len(digits) - decimals
    body = f"{digits[:cut]}.{digits[cut:]}" if decimals else digits
    return ("-" if value < 0 and scaled else "") + body


def rounded(value: Value, decimals: int) -> str:
    """Return the correct rounding of a value, once an enclosure leaves only one.

    Raises:
        DeriveError: If no precision of the ladder decides it.
    """
    for bits in LADDER:
        bounds = at_precision(value, bits)
        if bounds is not None:
            ends = {decimal_text(bounds.low, decimals), decimal_text(bounds.high, decimals)}
            if len(ends) == 1:
                return ends.pop()
    raise DeriveError(f"{decimals} decimals are not decided at {LADDER[-1]} bits")
