"""Numbers that an explicit evaluation runs over: what it asks of them, and balls.

A ring makes constants, names the given entries and applies functions; elements add, multiply and
divide by Python's operators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import flint

from derive.errors import DeriveError

Element = Any

# f'(x) from x and the value f: own rows, so that this shares nothing with the symbolic deriver
SLOPES: dict[str, Callable[[Element, Element, Ring], Element]] = {
    "tanh": lambda x, f, ring: 1 - f * f,
    "sigmoid": lambda x, f, ring: f - f * f,
    "exp": lambda x, f, ring: f,
    "log": lambda x, f, ring: ring.one / x,
    "sqrt": lambda x, f, ring: ring.one / (f + f),
    "abs": lambda x, f, ring: x / f,
    "step": lambda x, f, ring: ring.zero,
    "relu": lambda x, f, ring: ring.apply("step", x),
    "erf": lambda x, f, ring: ring.apply("erf_slope", x),
    "erf_slope": lambda x, f, ring: (0 - x - x) * f,
    "sin": lambda x, f, ring: ring.apply("cos", x),
    "cos": lambda x, f, ring: 0 - ring.apply("sin", x),
}


# f(-x) from f(x)


class Ring(Protocol):
    """What an explicit evaluation needs of its numbers."""

    @property
    def one(self) -> Element:
        """The number one."""

    @property
    def zero(self) -> Element:
        """The number zero."""

    def constant(self, value: Fraction) -> Element:
        """Return an exact rational."""

    def given(self, name: str, index: tuple[int, ...]) -> Element:
        """Return an entry of a given tensor."""

    def apply(self, function: str, x: Element) -> Element:
        """Apply an elementwise function."""


Given = Callable[[str, tuple[int, ...]], Fraction]


LARGEST = 10**6
"""Largest argument of a function that is computed through exponentials."""


def check_argument(function: str, x: flint.arb) -> None:
    """Refuse an argument whose exponential has millions of digits.

    Raises:
        DeriveError: Naming the function.
    """
    if function in ("exp", "tanh", "sigmoid") and not abs(x) < LARGEST:
        raise DeriveError(f"the argument of {function} is {x.str(6, radius=False)}: below "
                          f"{LARGEST} in size can be computed")  # fmt: skip


@dataclass(frozen=True)
class Balls:
    """Ball arithmetic (python-flint arb) at given rational values.

    Args:
        values: The given entries.
        precision: Bits of the working precision.
    """

    values: Given
    precision: int = 128

    @property
    def one(self) -> flint.arb:
        """The number one."""
        return flint.arb(1)

    @property
    def zero(self) -> flint.arb:
        """The number zero."""
        return flint.arb(0)

    def constant(self, value: Fraction) -> flint.arb:
        """Return a rational as a ball."""
        return flint.arb(flint.fmpq(value.numerator, value.denominator))

    def given(self, name: str, index: tuple[int, ...]) -> flint.arb:
        """Return a given entry as a ball."""
        return self.constant(self.values(name, index))

    def apply(self, function: str, x: flint.arb) -> flint.arb:
        """Apply a function with a rigorous radius."""
        check_argument(function, x)
        if function == "sigmoid":
            return 1 / (1 + (-x).exp())
        if function == "abs":
            return abs(x)
        if function == "relu":
            return (x + abs(x)) / 2
        if function == "erf_slope":
            return 2 * (-x * x).exp() / flint.arb.pi().sqrt()
        if function == "step":
            undecided = flint.arb(0.5, 0.5)
            return flint.arb(1) if x >= 0 else flint.arb(0) if x < 0 else undecided
        out: flint.arb = getattr(x, function)()
        return out
