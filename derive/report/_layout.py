"""What a report says, laid out as headings, blocks and tables; terminal and plain text share it.

What is not as expected comes first and in full; then one row a claim, one row a slide for printed
numbers, and always the counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from derive.claim import Evidence, Expected, Printed, Result
from derive.report import Report, View, is_number, is_open
from derive.report._failures import block
from derive.report._lectures import lecture_blocks, lecture_table
from derive.report._page import ORACLES, Cell, Page, Table, mathematics

WIDE = 100  # columns from which there is room for more than the necessary
CLAIM, PROOF, ORACLE, PRINTED = 40, 23, 11, 11  # columns that a table needs for each to be read
QUANTITIES = (24, 48)  # characters of quantity names per slide, narrow and wide
PLACE = re.compile(r"(\[[^\[\]]*\]| axis \d+)$")  # which entry of a quantity a number is


def page(report: Report, view: View) -> Page:
    """Lay out a report."""
    failed = sorted(report.failures(), key=lambda r: r.verdict.name != "refuted")
    opened = [r for r in report.results if not r.ok and is_open(r)]
    wrong = [block(r, view) for r in failed]
    open_blocks = [] if view.quiet else [block(r, view) for r in opened]
    shown = {id(r) for r in (*failed, *opened)}
    rest = [] if view.quiet else [r for r in report.results if id(r) not in shown]
    claims = [r for r in rest if not is_number(r)]
    numbers = [(p, r.claim.expected) for r in rest if is_number(r) for p in r.printed]
    tables = [claim_table(claims, view)] if claims else []
    tables += [number_table(numbers, view)] if numbers else []
    tables += lecture_table(report) if not view.quiet else []
    notes = (*report.notes, *footnotes(rest, tables)) if not view.quiet else ()
    return Page(
        left=f"derive check {report.target}".rstrip(),
        right=report.subject,
        blocks=(*wrong, *open_blocks),
        tables=tuple(tables),
        closing=lecture_blocks(report, view) if not view.quiet else (),
        notes=notes,
        last=tuple(counts(report)),
    )


# one row a claim


def claim_table(results: list[Result], view: View) -> Table:
    """Return the table of claims: mathematics, proof, oracles, printed numbers."""
    kinds = [k for k in ORACLES if any(e.kind == k for r in results for e in r.evidence)]
    printed = any(r.printed for r in results)
    split = view.width >= CLAIM + PROOF + ORACLE * len(kinds) + PRINTED * printed
    columns = [("claim", False), ("proof", False)]
    columns += [(ORACLES[k], True) for k in kinds] if split else []
    columns += [("oracles", False)] if kinds and not split else []
    columns += [("printed", True)] if printed else []
    sections: dict[str, list[tuple[Cell, ...]]] = {}
    for r in results:
        row = [Cell(claim_text(r, view)), proof(r, view)]
        row += [oracle(r, k) for k in kinds] if split else [oracles(r)] if kinds else []
        row += [certified(r.printed)] if printed else []
        sections.setdefault(section(r), []).append(tuple(row))
    return Table(tuple(columns), tuple((title, tuple(rows)) for title, rows in sections.items()))


def section(result: Result) -> str:
    """Return what a claim is about: who states it, the system, the loss."""
    claim = result.claim
    loss = f", loss {claim.loss}" if claim.loss else ""
    owner = claim.id.rpartition(".")[0] or claim.topic
    return f"{owner}: {claim.system}{loss}" if claim.system else owner


def claim_text(result: Result, view: View) -> str:
    """Return the claim with its assumptions."""
    assumed = ", ".join((result.assumed if view.unicode else ()) or result.claim.assumes)
    return mathematics(result, view) + (f"  if {assumed}" if assumed else "")


def proof(result: Result, view: View) -> Cell:
    """Return the verdict as the proof column shows it; the kind of proof where there is room."""
    verdict = result.verdict
    if verdict.name == "proved":
        kind = verdict.kind if view.width >= WIDE and verdict.kind != "identity" else ""
        scope = verdict.scope.removesuffix(f" ({verdict.kind})")
        return Cell(", ".join(filter(None, (scope, kind))), "good")
    if verdict.name == "refuted":
        return Cell("false, as stated", "good")
    if verdict.name == "undecided":
        return Cell("undecided", "dim")
    return Cell(verdict.name, "good")


def oracle(result: Result, kind: str) -> Cell:
    """Return one oracle's largest error; a star where it shares code with what it checks."""
    found = [e for e in result.evidence if e.kind == kind]
    if not found:
        return Cell("")
    errors = [e.max_error for e in found if e.max_error is not None]
    text = error_text(kind, max(errors)) if errors else f"{sum(e.count for e in found)} agree"
    return Cell(text + ("" if all(e.independent for e in found) else "*"), tone_of(found))


def oracles(result: Result) -> Cell:
    """Return all oracles in one cell: how many agree, and the error closest to its tolerance."""
    found = [e for e in result.evidence if e.kind in ORACLES]
    if not found:
        return Cell("")
    worst = max(found, key=lambda e: (e.max_error or 0) / (e.tolerance or 1))
    star = "" if all(e.independent for e in found) else "*"
    error = " agree" if worst.max_error is None else f" ≤ {error_text(worst.kind, worst.max_error)}"
    return Cell(f"{sum(e.passed for e in found)}{error}{star}", tone_of(found))


def error_text(kind: str, error: float) -> str:
    """Return an error with two digits; a sample's in standard errors."""
    if kind == "monte_carlo":
        return f"{error:.1f} s.e."
    return "0" if error == 0 else f"{error:.1e}"


def tone_of(found: Iterable[Evidence]) -> str:
    """Return good if everything passed."""
    return "good" if all(e.passed for e in found) else "bad"


def certified(printed: tuple[Printed, ...]) -> Cell:
    """Return ``16 of 16``."""
    good = sum(p.certified for p in printed)
    tone = "good" if good == len(printed) else "bad"
    return Cell(f"{good} of {len(printed)}" if printed else "", tone)


# one row a slide


def number_table(numbers: list[tuple[Printed, Expected]], view: View) -> Table:
    """Return the table of printed numbers by slide."""
    slides: dict[str, list[tuple[Printed, Expected]]] = {}
    for p, expected in numbers:
        slides.setdefault(p.where, []).append((p, expected))
    room = QUANTITIES[view.width >= WIDE]
    rows = tuple(
        (
            Cell(where or "(no place given)"),
            Cell(quantities([p for p, _ in found], room), "dim"),
            slide_cell(found),
        )
        for where, found in slides.items()
    )
    columns = (("printed on the slide", False), ("quantities", False), ("certified", True))
    return Table(columns, (("", rows),))


def slide_cell(found: list[tuple[Printed, Expected]]) -> Cell:
    """Return ``16 of 16``, and how many are recorded as undecided or as wrong."""
    cell = certified(tuple(p for p, expected in found if expected == "holds"))
    others = [expected for _, expected in found if expected != "holds"]
    said = {"undecided": "undecided", "fails": "wrong"}
    parts = [f"{others.count(e)} {said[e]}" for e in dict.fromkeys(others)]
    return Cell(", ".join(filter(None, (cell.text, *parts))), cell.tone)


def quantities(found: list[Printed], room: int) -> str:
    """Return the quantities on a slide, each once, plain names first, as many as fit."""
    names = list(dict.fromkeys(without_place(p.quantity) for p in found if p.quantity))
    names.sort(key=lambda name: not name.isidentifier())
    shown = ""
    for place, name in enumerate(names):
        longer = f"{shown}, {name}" if shown else name
        if len(longer) > room - 3 * (place + 1 < len(names)):
            return f"{shown}, …" if shown else longer[: room - 1] + "…"
        shown = longer
    return shown


def without_place(name: str) -> str:
    """Return a quantity's name without the entry; a derivative keeps what it is by."""
    short = PLACE.sub("", name)
    return name if re.search(r"/d\w+$", short) else short


# the last lines


def footnotes(results: list[Result], tables: list[Table]) -> Iterable[str]:
    """Yield what the marks in the tables mean."""
    if any(name == "oracles" for table in tables for name, _ in table.columns):
        yield "oracles: how many agree, and the error that comes closest to its tolerance"
    if any(e.kind == "monte_carlo" for r in results for e in r.evidence):
        yield "s.e.: standard errors of a mean over samples"
    if any(not e.independent for r in results for e in r.evidence):
        yield "* shares code with what it checks: a cross-check, not independent evidence"


def counts(report: Report) -> Iterable[Cell]:
    """Yield the parts of the last line; the counts that matter are there even when zero."""
    s = report.summary
    yield Cell(f"{s.claims} claim{'' if s.claims == 1 else 's'}: ")
    yield Cell(f"{s.proved_all_sizes} proved for all sizes", "good" if s.proved_all_sizes else "")
    if s.proved_at_sizes:
        yield Cell(f", {s.proved_at_sizes} proved at given sizes")
    if s.certified_claims:
        yield Cell(f", {s.certified_claims} certified")
    yield Cell(f", {s.confirmed} confirmed")
    unexpected = s.refuted - s.refuted_as_expected
    expected = f" ({s.refuted_as_expected} as expected)" if s.refuted_as_expected else ""
    yield Cell(f", {s.refuted} refuted{expected}", "bad" if unexpected else "")
    of = "" if s.certified_numbers == s.numbers else f" of {s.numbers}"
    number = "number" if s.numbers == 1 else "numbers"
    yield Cell(f" · {s.certified_numbers}{of} printed {number} certified", "bad" if of else "")
    if s.wrong_as_expected:
        yield Cell(f", {s.wrong_as_expected} wrong as expected")
    known = f" ({s.undecided_as_expected} as expected)" if s.undecided_as_expected else ""
    yield Cell(f" · {s.undecided} undecided{known}", "warn" if s.undecided else "")
    yield Cell(f" · {s.seconds:.1f} s")
