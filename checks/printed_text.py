"""Reading what a lecture prints: numbers with their shown digits, and the arrays they stand in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor

from derive.errors import DeriveError

MAX_TEXT = 4000
MAX_DIGITS = 60
MAX_EXPONENT = 400

WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
SUFFIXES = {"K": 3, "k": 3, "M": 6, "B": 9, "G": 9}
VAGUE = (
    "about",
    "around",
    "near ",
    "roughly",
    "nearly",
    "almost",
    "approximately",
    "circa",
    "~",
    r"\sim",
)
SPACES = re.compile(r"\\[,;:! ]|\\q?quad|\\left|\\right|\\displaystyle|\{,\}|[$\s]")
SCALAR = re.compile(
    r"(?P<sign>(?:[+-]|±|\\pm)?)(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)"
    r"(?:[eE](?P<e>[+-]?\d+)|(?:\\times|\\cdot|×|\*)10(?:\^|\*\*)\{?(?P<ten>[+-]?\d+)\}?)?"
    r"(?P<suffix>[KkMBG]?)(?P<percent>\\?%)?"
)
POWER = re.compile(r"10\^\{?([+-]?\d+)\}?")
"""A bare power of ten is an order of magnitude: it needs an interval, as a word does."""
FACTOR = re.compile(r"^(?:\\times|×)|(?:\\times|×)$")
"""The sign of a factor, as in "100×" or "×0.6"."""
MATRIX = re.compile(r"\\begin\{([bpvB]?matrix|array)\}(?:\{[lcr|]*\})?(.*)\\end\{\1\}")
TIMES = re.compile(r"\\times|×")


@dataclass(frozen=True)
class Shown:
    """One number as shown.

    Args:
        text: As written.
        value: What it denotes, exactly.
        unit: The worth of its last shown place.
        negative: Whether a minus sign is shown (``-0.0000`` has one).
        vague: What makes it no rounding: a word such as "about", a bare power of ten; "" if none.
    """

    text: str
    value: Fraction
    unit: Fraction
    negative: bool = False
    vague: str = ""

    @property
    def decimals(self) -> int:
        """Shown decimals: 4 for 0.0140, 0 for 10, 14 for 3.19e-12."""
        return max(0, len(str(self.unit.denominator)) - 1)

    @property
    def significant(self) -> int:
        """Shown significant digits: 3 for 0.0140."""
        digits = abs(self.value) / self.unit
        return len(str(floor(digits))) if digits >= 1 else 0


@dataclass(frozen=True)
class Display:
    """What stands printed: numbers and the shape they stand in; () for one number."""

    shape: tuple[int, ...]
    scalars: tuple[Shown, ...]


def parse(text: str) -> Display:
    r"""Read what a lecture prints.

    ``0.039853``, ``10``, ``ten``, ``3.19e-12``, ``3.19\times10^{-12}``, ``(-0.1509, 0.0143)``,
    ``[[1, 2], [3, 4]]``, ``\begin{bmatrix}0.3&-0.2\\0.1&0.4\end{bmatrix}``, ``2\times2`` (a shape),
    ``65M``, ``12.5\%``, ``about 0.2``, ``±0.18``, ``100×``, ``10^{-36}``.

    Raises:
        DeriveError: If it is none of these, naming the part that is no number.
    """
    if len(text) > MAX_TEXT:
        raise DeriveError(f"a printed text may have {MAX_TEXT} characters; this has {len(text)}")
    clean, vague = without_vague(text.strip().strip("$").replace("\u2212", "-"))
    clean = FACTOR.sub("", re.sub(r"^(\\approx|≈)", "", SPACES.sub("", clean)))
    if matrix := MATRIX.fullmatch(clean):
        rows = [row.split("&") for row in matrix[2].split(r"\\") if row]
        return rectangle([display((len(r),), r, vague, text) for r in rows], text)
    if len(factors := TIMES.split(clean)) > 1 and all(f.isdigit() for f in factors):
        return display((len(factors),), factors, vague, text)
    return nested(clean, vague, text)


def without_vague(text: str) -> tuple[str, str]:
    """Split a leading word such as "about" from a number."""
    for word in VAGUE:
        if text.lower().startswith(word):
            return text[len(word) :].strip(), word
    return text, ""


def display(shape: tuple[int, ...], cells: Sequence[str], vague: str, text: str) -> Display:
    """Return a display of cells."""
    return Display(shape, tuple(scalar(cell, vague, text) for cell in cells))


def rectangle(rows: Sequence[Display], text: str) -> Display:
    """Stack displays of one shape."""
    shapes = {row.shape for row in rows}
    if len(shapes) != 1:
        raise DeriveError(f"printed rows must be alike; found shapes {sorted(shapes)}", text=text)
    scalars = tuple(s for row in rows for s in row.scalars)
    return Display((len(rows), *rows[0].shape), scalars)


def nested(clean: str, vague: str, text: str, depth: int = 0) -> Display:
    """Read a number, or numbers in (nested) parentheses or brackets."""
    if not clean or clean[0] not in "([" or depth > 4:
        return Display((), (scalar(clean, vague, text),))
    if clean[-1] != {"(": ")", "[": "]"}[clean[0]]:
        raise DeriveError(f"{clean[0]!r} is not closed in {text!r}", text=text, at=0)
    parts = split_outer(clean[1:-1])
    return rectangle([nested(part, vague, text, depth + 1) for part in parts], text)


def split_outer(text: str) -> list[str]:
    """Split at the commas outside parentheses."""
    parts, level = [""], 0
    for char in text:
        level += (char in "([") - (char in ")]")
        if char == "," and level == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts[:-1] if len(parts) > 1 and not parts[-1] else parts


def scalar(clean: str, vague: str, text: str) -> Shown:
    """Read one number.

    Raises:
        DeriveError: If it is none, or over the limits.
    """
    if clean.lower() in WORDS:
        return Shown(clean, Fraction(WORDS.index(clean.lower())), Fraction(1), False, vague)
    if clean.lower() == "half":  # to two decimals: neither 0.4 nor 0.6 is a half
        return Shown(clean, Fraction(1, 2), Fraction(1, 100), False, vague)
    order = POWER.fullmatch(clean)
    vague = vague or (clean if order else "")
    match = SCALAR.fullmatch(f"1e{order[1]}" if order else clean)
    if match is None:
        raise DeriveError(f"expected a printed number; found {clean!r}", text=text,
                          at=max(0, text.find(clean)))  # fmt: skip
    digits = match["digits"].replace(",", "")
    if len(digits) > MAX_DIGITS:
        raise DeriveError(f"a printed number may have {MAX_DIGITS} digits; found {len(digits)}")
    power = int((match["e"] or match["ten"] or "0")[:6]) + SUFFIXES.get(match["suffix"], 0)
    power -= 2 if match["percent"] else 0
    if abs(power) > MAX_EXPONENT:
        raise DeriveError(f"a printed exponent goes to {MAX_EXPONENT}; found {power}")
    shift = Fraction(10) ** power
    sign = -1 if match["sign"] == "-" else 1
    unit = Fraction(1, 10 ** len(digits.partition(".")[2])) * shift
    return Shown(clean, sign * Fraction(digits) * shift, unit, sign < 0, vague)
