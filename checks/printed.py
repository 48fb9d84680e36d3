"""Printed digits: what a lecture shows, certified as the correct rounding of the exact value.

A number is certified when it lies within half a unit of its last shown place of the exact value.
Rational values are compared exactly, and at an exact tie both neighbours are correct. Other values
are enclosed in balls (python-flint ``arb``) at rising precision until the ball lies on one side of
the rounding boundary; a value that stays on it is undecided, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Literal

from derive.case_decimals import LADDER, Enclosure, Value, at_precision, decimal_text
from derive.checks.printed_text import SUFFIXES, Shown
from derive.claim import Printed
from derive.errors import DeriveError

EXTRA_DIGITS = 6
"""How many more digits than printed a report shows of the exact value."""

Interval = tuple[Fraction, Fraction]
Status = Literal["certified", "wrong", "undecided"]


@dataclass(frozen=True)
class Judged:
    """One shown number judged: its row for the report, its status, how far off it is.

    Args:
        row: For the report.
        status: certified, wrong or undecided.
        error: Upper bound of |printed - exact| in units of the last shown place; None if unknown.
    """

    row: Printed
    status: Status
    error: float | None


Decide = Callable[[Enclosure], Status | None]


def climb(value: Value, decide: Decide) -> tuple[Status, Enclosure | None]:
    """Raise the precision until the enclosure decides, or the ladder ends."""
    bounds = None
    for bits in LADDER:
        bounds = at_precision(value, bits) or bounds
        status = decide(bounds) if bounds is not None else None
        if status is not None:
            return status, bounds
    return "undecided", bounds


def rounding(shown: Shown) -> Decide:
    """Correct rounding: within half a unit of the last place, a tie included; no false minus."""

    def decide(bounds: Enclosure) -> Status | None:
        if shown.negative and shown.value == 0 and bounds.low > 0:
            return "wrong"
        near, far = bounds.distance(shown.value)
        half = shown.unit / 2
        if far <= half and not (shown.negative and shown.value == 0 and bounds.high > 0):
            return "certified"
        return "wrong" if near > half else None

    return decide


def truncation(shown: Shown) -> Decide:
    """Digits cut off: the value is at least as far from zero, by less than one unit."""
    sign = -1 if shown.negative else 1

    def decide(bounds: Enclosure) -> Status | None:
        low, high = sorted(sign * (b - shown.value) for b in (bounds.low, bounds.high))
        if low >= 0 and high < shown.unit:
            return "certified"
        return "wrong" if high < 0 or low >= shown.unit else None

    return decide


def within(interval: Interval) -> Decide:
    """The value lies in an interval: what the case holds a word such as "about" to."""

    def decide(bounds: Enclosure) -> Status | None:
        if interval[0] <= bounds.low and bounds.high <= interval[1]:
            return "certified"
        return "wrong" if bounds.high < interval[0] or bounds.low > interval[1] else None

    return decide


def is_about(interval: Interval, shown: Shown) -> bool:
    """Tell whether an interval belongs to a shown number: as its middle, or as an end of it."""
    low, high = interval
    return shown.value in (low, high, (low + high) / 2)


def exact_text(bounds: Enclosure | None, shown: Shown) -> str | None:
    """Return the exact value to a few more digits than printed, in the printed style."""
    if bounds is None:
        return None
    value = bounds.middle
    if shown.decimals > 20 or re.search(r"[eE]|10\^", shown.text):
        return f"{float(value):.{shown.significant + EXTRA_DIGITS - 1}e}" if value else "0"
    if bounds.low == bounds.high and value.denominator == 1:
        return str(value)
    return decimal_text(value, shown.decimals + EXTRA_DIGITS)


def judge(
    shown: Shown,
    value: Value,
    *,
    mode: str = "rounded",
    interval: Interval | None = None,
    where: str = "",
    quantity: str = "",
    line: int | None = None,
) -> Judged:
    """Judge one shown number.

    Args:
        shown: The number.
        value: Its exact value at a precision.
        mode: ``rounded``, or ``truncated`` where digits are meant to be cut off.
        interval: What the exact value is held to in place of the digits; the shown number is its
            middle or an end of it, so that it says something about the number that stands there.
        where: Slide title, for the row.
        quantity: What it is, for the row.
        line: Line in the lecture, for the row.
    """
    if shown.vague and interval is None:
        _, bounds = climb(value, rounding(shown))
        status: Status = "undecided"
        note = f"undecided: {shown.vague.strip()!r} needs an interval in the case"
    elif interval and not is_about(interval, shown):
        _, bounds = climb(value, rounding(shown))
        status, note = "wrong", f"the stated interval is not one about {shown.text}"
    else:
        decide = within(interval) if interval else choose(mode)(shown)
        status, bounds = climb(value, decide)
        note = note_on(shown, status, bounds, mode, interval)
    row = Printed(where, shown.text, exact_text(bounds, shown), status == "certified", quantity,
                  line, note)  # fmt: skip
    return Judged(row, status, units_off(shown, bounds))


def note_on(
    shown: Shown, status: Status, bounds: Enclosure | None, mode: str, interval: Interval | None
) -> str:
    """Return the remark on a judged number: why undecided, what would be right, tie, truncated."""
    if bounds is None:
        return f"undecided: no finite enclosure at {LADDER[-1]} bits"
    if status == "undecided":
        gap = float(bounds.high - bounds.low)
        return (
            f"undecided: a boundary lies inside the enclosure, {gap:.1e} wide, at {LADDER[-1]} bits"
        )
    if interval is not None:
        inside = "inside" if status == "certified" else "outside"
        low, high = (decimal_text(end, max(shown.decimals, 6)) for end in interval)
        return f"{inside} the stated interval from {low} to {high}"
    if status == "certified":
        tie = bounds.distance(shown.value) == (shown.unit / 2, shown.unit / 2)
        cut = "truncated, as the case says" if mode == "truncated" else ""
        return "an exact tie: both neighbours are correct" if tie and not cut else cut
    return what_is_right(shown, bounds, mode)


def what_is_right(shown: Shown, bounds: Enclosure, mode: str) -> str:
    """Return what a wrong number should be, and whether it is the truncated value."""
    if shown.negative and shown.value == 0 and abs(bounds.middle) <= shown.unit / 2:
        return "the value is positive: no minus sign"
    right = f"the correct rounding is {written_like(shown, bounds.middle)}"
    cut = mode == "rounded" and truncation(shown)(bounds) == "certified"
    return f"truncated, not rounded: {right}" if cut else right


def written_like(shown: Shown, value: Fraction) -> str:
    """Return a value rounded to the last place of a shown number, in its style."""
    places = floor(abs(value) / shown.unit + Fraction(1, 2))
    rounded = (1 if value >= 0 else -1) * places * shown.unit
    if re.search(r"[eE]|10[\^*]", shown.text):
        digits = max(0, len(str(places)) - 1)
        return f"{float(rounded):.{digits}e}"
    suffix = shown.text[-1] if shown.text[-1] in SUFFIXES else ""
    if shown.text.endswith("%"):
        suffix, rounded = "%", rounded * 100
        return decimal_text(rounded, max(0, shown.decimals - 2)) + suffix
    scale = Fraction(10) ** SUFFIXES.get(suffix, 0)
    places = max(0, len(str((shown.unit / scale).denominator)) - 1)
    return decimal_text(rounded / scale, places) + suffix


def choose(mode: str) -> Callable[[Shown], Decide]:
    """Return the rule of a rounding mode."""
    rules = {"rounded": rounding, "truncated": truncation}
    if mode not in rules:
        raise DeriveError(f"rounding is {' or '.join(rules)}; found {mode!r}")
    return rules[mode]


def units_off(shown: Shown, bounds: Enclosure | None) -> float | None:
    """Return the distance from the exact value in units of the last shown place."""
    return None if bounds is None else float(bounds.distance(shown.value)[1] / shown.unit)
