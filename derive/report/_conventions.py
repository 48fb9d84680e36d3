"""The card of conventions: one table where there is room, else two of them."""

from __future__ import annotations

from textwrap import wrap

from derive.conventions import SOURCES, Card
from derive.report import View
from derive.report._page import Cell, Table

ROOM = 120
"""Columns that the whole table needs."""


def tables(card: Card, view: View) -> tuple[Table, ...]:
    """Return the table of every source, or one with ours and torch and one with the rest."""
    if view.width >= ROOM:
        return (table(card, SOURCES),)
    return table(card, SOURCES[:2]), table(card, SOURCES[2:])


def table(card: Card, sources: tuple[str, ...]) -> Table:
    """Return the lines of a card in some of its columns."""
    places = [SOURCES.index(source) for source in sources]
    rows = tuple(
        (Cell(line.what), *(Cell(line.names[place]) for place in places)) for line in card.lines()
    )
    return Table((("", False), *((source, False) for source in sources)), (("", rows),))


def as_text(card: Card, view: View) -> str:
    """Return a card as plain text."""
    from derive.report.text import rows

    parts = [card.title]
    for shown in tables(card, view):
        parts += ["", *rows(shown)]
    parts.append("")
    for note in card.notes:
        parts += wrap(note, view.width)
    return "\n".join(line.rstrip() for line in parts) + "\n"


def as_rich(card: Card, view: View) -> str:
    """Return a card for a terminal."""
    from io import StringIO

    from rich.console import Console
    from rich.text import Text

    from derive.report.rich import grid

    out = StringIO()
    console = Console(file=out, width=view.width, force_terminal=view.color,
                      no_color=not view.color, color_system="standard" if view.color else None,
                      highlight=False, markup=False, emoji=False, legacy_windows=False)  # fmt: skip
    console.print(Text(card.title, "bold"))
    for shown in tables(card, view):
        console.print()
        console.print(grid(shown))
    console.print()
    for note in card.notes:
        console.print(Text(note, "dim"))
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())
