"""The report as plain text for pipes and files: one line a claim, nothing cut or wrapped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from derive.report import Report, View
from derive.report._layout import page
from derive.report._page import Page, Table

ASCII = str.maketrans({"✗": "x", "·": "-", "≤": "<=", "…": "...", "\u201c": '"', "\u201d": '"'})

UNLIMITED = 10_000


def render(report: Report, view: View) -> str:
    """Return the report as text."""
    return written(page(report, replace(view, width=UNLIMITED)), view)


def written(laid_out: Page, view: View) -> str:
    """Return a page as text."""
    text = "\n".join(lines(laid_out)) + "\n"
    if view.unicode:
        return text
    return text.translate(ASCII).encode("ascii", "backslashreplace").decode("ascii")


def lines(shown: Page) -> Iterator[str]:
    """Yield the lines of a page."""
    yield f"{shown.left}    {shown.right}".rstrip()
    for block in shown.blocks:
        yield ""
        yield block[0].text
        yield from ("    " + cell.text for cell in block[1:] if cell.text)
    for table in shown.tables:
        yield ""
        yield from rows(table)
    for block in shown.closing:
        yield ""
        yield block[0].text
        yield from ("    " + cell.text for cell in block[1:])
    yield ""
    yield from shown.notes
    yield "".join(cell.text for cell in shown.last)


def rows(table: Table) -> Iterator[str]:
    """Yield the aligned rows of a table, with the titles of its sections."""
    header = tuple(name.replace("\n", " ") for name, _ in table.columns)
    body = [[c.text for c in row] for _, section in table.sections for row in section]
    widths = [max(map(len, column)) for column in zip(header, *body, strict=True)]
    sides = [right for _, right in table.columns]

    def line(texts: Iterable[str]) -> str:
        cells = zip(texts, widths, sides, strict=True)
        return "  ".join(["", *(t.rjust(w) if r else t.ljust(w) for t, w, r in cells)]).rstrip()

    yield line(header)
    for title, section in table.sections:
        if title:
            yield title
        yield from (line(cell.text for cell in row) for row in section)
