"""The unique fixed point of a function in an interval, by interval Newton in ball arithmetic.

Source: Moore, Kearfott & Cloud (2009), Introduction to Interval Analysis, 8.1.
With F(x) = f(x) - x, every zero of F in a ball X lies in N(X) = m - F(m)/F'(X), m the middle of X.
If N(X) lies in the interior of X, there is exactly one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

from flint import arb, ctx, fmpq

from derive.errors import DeriveError

Function = Callable[[arb], tuple[arb, arb]]
"""A ball x to enclosures of f(x) and of f'(x) over it."""

LEVELS = 24
"""How often the interval is halved; pieces where f(x) = x is excluded are dropped on the way."""
MAX_PIECES = 64
"""More pieces than this show a function that bisection does not resolve, such as f(x) = x."""
MAX_STEPS = 80
"""Newton steps; each about doubles the digits, so the precision ends them long before."""
RAISED = (1, 2, 4)
"""Multiples of the asked precision that are tried for the proof."""

Piece = tuple[Fraction, Fraction]


def fixed_point(f: Function, low: Fraction, high: Fraction, name: str = "f") -> arb:
    """Return a ball that holds the only x from low to high with f(x) = x, at `ctx.prec`.

    Args:
        f: The function with its slope.
        low: The lower end.
        high: The upper end.
        name: The function's text, for messages.

    Raises:
        DeriveError: If f has no fixed point there, or existence and uniqueness cannot be shown.
    """
    if low >= high:
        raise DeriveError(f"{name}: expected an interval from low to high; found {low}..{high}")
    before, error = ctx.prec, DeriveError("")
    for factor in RAISED:
        ctx.prec = before * factor
        try:
            return refined(f, isolated(f, low, high, name), before)
        except DeriveError as found:
            error = found
        finally:
            ctx.prec = before
    raise error


def isolated(f: Function, low: Fraction, high: Fraction, name: str) -> arb:
    """Return a ball whose Newton image, inside low..high, proves one fixed point in low..high.

    Raises:
        DeriveError: As `fixed_point`.
    """
    pieces: list[Piece] = [(low, high)]
    for _ in range(LEVELS):
        pieces = [p for piece in pieces for p in halves(piece) if may_hold(f, p)]
        if not pieces:
            raise DeriveError(
                f"{name} has no fixed point from {shown(low)} to {shown(high)}",
                hint="give an interval that holds one",
            )
        # all fixed points from low to high lie in the hull of what is left
        image = newton(f, ball(pieces[0][0], pieces[-1][1]), pieces)
        if image is not None and strictly_inside(image, pieces[0][0], pieces[-1][1]):
            return image
        if len(pieces) > MAX_PIECES:
            break
    near = ", ".join(sorted({shown(a) for a, _ in (pieces[0], pieces[-1])}, key=float))
    raise DeriveError(
        f"{name}: a unique fixed point from {shown(low)} to {shown(high)} cannot be shown; what is "
        f"left reaches from {shown(pieces[0][0])} to {shown(pieces[-1][1])}",
        hint=f"give a narrower interval around one of them (near {near}), its ends off it",
    )


def refined(f: Function, x: arb, bits: int) -> arb:
    """Return a proved enclosure, narrowed until Newton steps gain nothing more."""
    for _ in range(MAX_STEPS):
        image = newton(f, x)
        if image is None or not image.overlaps(x):
            return x
        narrow = image.intersection(x)
        if not 2 * narrow.rad() < x.rad():
            return narrow if narrow.rad() < x.rad() else x
        x = narrow
    return x


def newton(f: Function, x: arb, pieces: Sequence[Piece] = ()) -> arb | None:
    """Return N(x), None where the slope of F may be zero.

    Args:
        f: The function.
        x: The ball.
        pieces: Intervals that make it up: where they leave no gap, slopes are taken over each.
    """
    middle, slope = x.mid(), f(x)[1] - 1
    if not is_sure(slope) and pieces and adjacent(pieces):
        slope = union([f(ball(*p))[1] - 1 for p in pieces])
    if not is_sure(slope):
        return None
    image = middle - (f(middle)[0] - middle) / slope
    return image if image.is_finite() else None


def adjacent(pieces: Sequence[Piece]) -> bool:
    """Tell whether pieces leave no gap."""
    return all(a[1] == b[0] for a, b in pairwise(pieces))


def is_sure(slope: arb) -> bool:
    """Tell whether a slope is finite and surely not zero."""
    return bool(slope.is_finite() and not slope.contains(0))


def may_hold(f: Function, piece: Piece) -> bool:
    """Tell whether a piece may hold a fixed point: F over it may be zero.

    F is enclosed directly and by the mean value form, F(m) + F'(X)(X - m).
    """
    x = ball(*piece)
    middle = x.mid()
    value, slope = f(x)
    direct = value - x
    centred = f(middle)[0] - middle + (slope - 1) * (x - middle)
    return all(not e.is_finite() or e.contains(0) for e in (direct, centred))


def halves(piece: Piece) -> list[Piece]:
    """Split an interval in two; both halves hold the middle."""
    low, high = piece
    middle = (low + high) / 2
    return [(low, middle), (middle, high)]


def ball(low: Fraction, high: Fraction) -> arb:
    """Return a ball that holds an interval."""
    return exact(low).union(exact(high))


def union(balls: list[arb]) -> arb:
    """Return a ball that holds all of these."""
    out = balls[0]
    for other in balls[1:]:
        out = out.union(other)
    return out


def strictly_inside(image: arb, low: Fraction, high: Fraction) -> bool:
    """Tell whether a ball surely lies between two numbers and holds neither."""
    return bool(exact(low) < image and image < exact(high))


def exact(value: Fraction) -> arb:
    """Return the ball of a rational."""
    return arb(fmpq(value.numerator, value.denominator))


def shown(value: Fraction) -> str:
    """Return an end of an interval for a message."""
    return f"{float(value):g}"
