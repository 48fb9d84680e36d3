"""What an experiment found, in the formats of the reports."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from math import isfinite

from derive.checks.experiments import Expectation, Outcome
from derive.errors import DeriveError, nearest
from derive.report import View, rich, text, versions
from derive.report._page import Cell, Page, Table
from derive.report.json import finite

SCHEMA = "derive-run/1"
FORMATS = ("json", "rich", "text")
Value = str | int | float | None


def check_run_format(form: str) -> None:
    """Refuse a format that a run has not; "" stands for the one that fits the output.

    Raises:
        DeriveError: Naming the nearest known one.
    """
    if form and form not in FORMATS:
        raise DeriveError(f"unknown format {form!r}", hint=nearest(form, FORMATS))


def render_run(outcome: Outcome, form: str, view: View | None = None) -> str:
    """Return an outcome in one of the `FORMATS`, ending with a line break.

    Raises:
        DeriveError: On an unknown format.
    """
    check_run_format(form)
    view = view or View()
    if form == "json":
        made = document(outcome)
        return json.dumps(made, indent=1, ensure_ascii=not view.unicode, allow_nan=False) + "\n"
    written = rich.written if form == "rich" else text.written
    return written(page(outcome), view)


def document(outcome: Outcome) -> dict[str, object]:
    """Return an outcome as plain data; a number that is not finite becomes null."""
    rows = [dict(zip(outcome.columns, row, strict=True)) for row in outcome.rows]
    fields = {k: v for k, v in asdict(outcome).items() if k != "columns"}
    made = {"schema": SCHEMA, "versions": versions(), **fields, "rows": rows, "ok": outcome.ok}
    return {k: finite(v) for k, v in made.items()}


def schema() -> dict[str, object]:
    """Return the JSON schema of the document."""
    from importlib.resources import files

    text = files("derive.report").joinpath("derive-run-1.schema.json").read_text("utf-8")
    loaded: dict[str, object] = json.loads(text)
    return loaded


def page(outcome: Outcome) -> Page:
    """Lay out an outcome: the measured table, then a verdict a line."""
    return Page(
        left=f"derive run {outcome.name}",
        right=f"seed {outcome.seed}",
        blocks=((Cell(outcome.title), Cell(outcome.settings, "dim")),),
        tables=(measured(outcome), verdicts(outcome.expectations)),
        notes=outcome.notes,
        last=tuple(counts(outcome)),
    )


def measured(outcome: Outcome) -> Table:
    """Return the table of what was measured; text stands left, numbers right."""
    rows = tuple(tuple(Cell(shown(value)) for value in row) for row in outcome.rows)
    sides = [not any(isinstance(row[n], str) for row in outcome.rows)
             for n in range(len(outcome.columns))]  # fmt: skip
    return Table(tuple(zip(outcome.columns, sides, strict=True)), (("", rows),))


def verdicts(expectations: Iterable[Expectation]) -> Table:
    """Return one row an expectation."""
    columns = (("expected", False), ("measured", True), ("held to", False), ("verdict", False))
    rows = tuple(
        (
            Cell(e.text),
            Cell(shown(e.measured)),
            Cell(e.bound, "dim"),
            Cell("holds", "good") if e.holds else Cell("✗ does not", "bad"),
        )
        for e in expectations
    )
    return Table(columns, (("", rows),))


def shown(value: Value) -> str:
    """Return a value for a table."""
    if value is None:
        return ""
    if isinstance(value, float) and isfinite(value):
        return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 1e5 else (
            f"{value:.1e}")  # fmt: skip
    return str(value)


def counts(outcome: Outcome) -> Iterable[Cell]:
    """Yield the parts of the last line."""
    good = sum(e.holds for e in outcome.expectations)
    total = len(outcome.expectations)
    yield Cell(f"{total} expectations: ")
    yield Cell(f"{good} hold", "good" if good == total else "")
    yield Cell(f", {total - good} do not", "bad" if good < total else "")
    yield Cell(f" · {outcome.seconds:.1f} s")
