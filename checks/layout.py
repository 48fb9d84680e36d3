"""What generated code works on: values with index labels, and arrays with padding.

Rows outside an adjoint's positions are padding that holds zero: an adjoint read at T is zero. How
much padding a tensor needs is known only after all reads were seen; until then an offset is written
as a token ``@slot.axis:offset@``, which `Layout.resolve` replaces by the number.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import sympy as sp

from derive.index import Affine, Dim

BATCH = sp.Symbol("batch'", integer=True)
ZERO = Affine(None, 0)


@dataclass(frozen=True)
class Span:
    """The positions first..last (inclusive) that an index runs over."""

    first: Affine
    last: Affine


def whole(dim: Dim, first: int = 0) -> Span:
    """Return the span of a whole axis."""
    return Span(Affine(None, first), Affine(dim.symbol, -1))


@dataclass(frozen=True)
class Val:
    """A generated value.

    Args:
        code: A variable name or a parenthesised expression.
        labels: One index symbol per axis.
        level: 0 before the loop, 1 inside it.
    """

    code: str
    labels: tuple[sp.Symbol, ...]
    level: int = 0


@dataclass
class Slot:
    """An array that the code reads or writes, and how far it is read beyond its positions.

    Args:
        number: The variable is ``x<number>``.
        dims: One size per axis.
        firsts: Lowest position on each axis.
        batch: Where the batch axis stands, None if there is none.
        listed: The leading axis is a Python list of arrays.
    """

    number: int
    dims: tuple[Dim, ...]
    firsts: tuple[int, ...]
    batch: int | None = None
    listed: bool = False
    low: list[int] = field(default_factory=list)
    high: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start without padding."""
        self.low, self.high = [0] * len(self.dims), [0] * len(self.dims)

    def cover(self, axis: int, first: Affine, last: Affine) -> None:
        """Widen the padding so that first..last can be read at every size (sizes are at least 1).

        Only position axes have positions beyond their ends.
        """
        if not self.dims[axis].ordered:
            return
        least = first.offset + (0 if first.base is None else 1)
        self.low[axis] = max(self.low[axis], self.firsts[axis] - least)
        most = last.offset + 1 if last.base is not None else last.offset
        self.high[axis] = max(self.high[axis], most)

    def row(self, axis: int, offset: int) -> int:
        """Return the storage row of a position offset."""
        return offset - self.firsts[axis] + self.low[axis]


class Layout:
    """All slots of a piece of code, by key, in order of first use."""

    def __init__(self, make: Callable[[object, int], Slot]):
        self.make, self.slots = make, dict[object, Slot]()

    def slot(self, key: object) -> Slot:
        """Return the slot of a key, made on first use."""
        if key not in self.slots:
            self.slots[key] = self.make(key, len(self.slots))
        return self.slots[key]

    def resolve(self, code: str) -> str:
        """Replace the offset tokens by numbers, now that all padding is known."""
        by_number = {s.number: s for s in self.slots.values()}

        def number(match: re.Match[str]) -> str:
            slot, axis, offset = (int(g) for g in match.groups())
            row = by_number[slot].row(axis, offset)
            return f"+{row}" if row > 0 else str(row) if row < 0 else ""

        return re.sub(r"@(\d+)\.(\d+):(-?\d+)@", number, code)
