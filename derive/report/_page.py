"""The parts of a laid out report: cells with a tone, tables, a page."""

from __future__ import annotations

from dataclasses import dataclass

from derive.claim import Result
from derive.report import View

ORACLES = {
    "module": "torch",
    "autograd": "autograd",
    "finite_difference": "finite\ndiff.",
    "complex_step": "complex\nstep",
    "random_sizes": "random\nsizes",
    "replay": "replay",
    "monte_carlo": "sampling",
}


@dataclass(frozen=True)
class Cell:
    """Some text with what it means: good, bad, warn, dim or plain."""

    text: str
    tone: str = ""


@dataclass(frozen=True)
class Table:
    """Columns (a header of up to two lines, whether it is right-aligned), sections of rows."""

    columns: tuple[tuple[str, bool], ...]
    sections: tuple[tuple[str, tuple[tuple[Cell, ...], ...]], ...]


@dataclass(frozen=True)
class Page:
    """A whole report: blocks are indented after their first line."""

    left: str
    right: str
    blocks: tuple[tuple[Cell, ...], ...]
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    last: tuple[Cell, ...]
    closing: tuple[tuple[Cell, ...], ...] = ()


def mathematics(result: Result, view: View) -> str:
    """Return the claim as mathematics, or as written where the output is ASCII only."""
    statement = result.claim.statement or result.claim.title
    return (result.unicode or statement) if view.unicode else statement
