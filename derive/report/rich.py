"""The report for a terminal: one table that is understood at a glance, fitted to its width."""

from __future__ import annotations

from io import StringIO

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from derive.report import Report, View
from derive.report._layout import page
from derive.report._page import Cell, Page, Table
from derive.report.text import ASCII

WIDEST = 120  # a heading does not spread further
TONES = {"good": "green", "bad": "bold red", "warn": "yellow", "dim": "dim", "": ""}


def render(report: Report, view: View) -> str:
    """Return the report with colours, wrapped to the width."""
    return written(page(report, view), view)


def written(laid_out: Page, view: View) -> str:
    """Return a page with colours, wrapped to the width."""
    out = StringIO()
    console = Console(
        file=out,
        width=view.width,
        force_terminal=view.color,
        color_system="standard" if view.color else None,
        no_color=not view.color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    show(laid_out, console, view)
    text = "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())
    if view.unicode:
        return text
    return text.translate(ASCII).encode("ascii", "backslashreplace").decode("ascii")


def show(shown: Page, console: Console, view: View) -> None:
    """Print a page."""
    console.print(heading(shown, min(view.width, WIDEST)))
    for block in shown.blocks:
        console.print()
        console.print(styled(block[0]))
        for cell in block[1:]:
            console.print(Padding(styled(cell), (0, 0, 0, 4)))
    for table in shown.tables:
        console.print()
        console.print(grid(table))
    for block in shown.closing:
        console.print()
        console.print(Text(block[0].text, "bold"))
        for cell in block[1:]:
            console.print(Padding(styled(cell), (0, 0, 0, 4)))
    console.print()
    for note in shown.notes:
        console.print(Text(note, "dim"))
    console.print(Text.assemble(*((cell.text, TONES[cell.tone]) for cell in shown.last)))


def heading(shown: Page, width: int) -> Text:
    """Return what was checked on the left and on what on the right, if both fit."""
    gap = width - len(shown.left) - len(shown.right)
    space = " " * gap if gap >= 2 else "  "
    return Text.assemble((shown.left, "bold"), space, (shown.right, "dim"))


def grid(table: Table) -> RichTable:
    """Return a table without vertical rules; the first column takes what is left."""
    made = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim")
    for place, (name, right) in enumerate(table.columns):
        made.add_column(
            name,
            justify="right" if right else "left",
            no_wrap=place > 0,
            overflow="fold",
        )
    for title, rows in table.sections:
        if title:
            made.add_row(Text(title, "bold"))
        for first, *others in rows:
            inset = Padding(styled(first), (0, 0, 0, 2 if title else 0))
            made.add_row(inset, *(styled(cell) for cell in others))
    return made


def styled(cell: Cell) -> Text:
    """Return a cell with its tone."""
    return Text(cell.text, TONES[cell.tone])
