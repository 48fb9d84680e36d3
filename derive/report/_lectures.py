"""What a check says of each lecture: how much holds, what it needs, what is false and why."""

from __future__ import annotations

from derive.claim import Result
from derive.report import Report, View, is_number
from derive.report._page import Cell, Table, mathematics

COLUMNS = (
    ("lecture", False),
    ("numbers", True),
    ("hold", True),
    ("need an\nassumption", True),
    ("false", True),
    ("undecided", True),
)

HELD = ("proved", "confirmed", "certified")


def by_case(report: Report) -> dict[str, list[Result]]:
    """Return the results that come from case files, by case."""
    found: dict[str, list[Result]] = {}
    for result in report.results:
        if result.claim.source is not None:
            found.setdefault(result.claim.id.partition(".")[0], []).append(result)
    return found


def lecture_table(report: Report) -> list[Table]:
    """Return the counts of each case."""
    cases = by_case(report)
    rows = tuple(counts(name, results) for name, results in cases.items())
    return [Table(COLUMNS, (("", rows),))] if rows else []


def lecture_blocks(report: Report, view: View) -> tuple[tuple[Cell, ...], ...]:
    """Return what needs an assumption and what is false, by case, where cases alone were asked."""
    cases = by_case(report)
    if sum(map(len, cases.values())) < len(report.results):
        return ()
    found = []
    for name, results in cases.items():
        needy = [r for r in results if r.verdict.name in HELD and r.claim.assumes]
        wrong = [r for r in results if r.verdict.name == "refuted"]
        lines = [Cell(f"{told(r, view)}: if {needs(r, view)}") for r in needy]
        found += [(Cell(f"{name}: holds under an assumption"), *lines)] if lines else []
        lines = [Cell(f"{told(r, view)}: {why(r)}") for r in wrong]
        found += [(Cell(f"{name}: false"), *lines)] if lines else []
    return tuple(found)


def counts(name: str, results: list[Result]) -> tuple[Cell, ...]:
    """Return one lecture's counts."""
    printed = [p for r in results if r.claim.expected == "holds" for p in r.printed]
    claims = [r for r in results if not is_number(r)]
    held = [r for r in claims if r.verdict.name in HELD]
    needy = [r for r in held if r.claim.assumes]
    wrong = [r for r in results if r.verdict.name == "refuted"]
    opened = [r for r in results if r.verdict.name == "undecided"]
    sure = sum(p.certified for p in printed)
    return (
        Cell(name),
        Cell(f"{sure} of {len(printed)}", "good" if sure == len(printed) else "warn"),
        Cell(str(len(held) - len(needy)), "good"),
        Cell(str(len(needy))),
        Cell(str(len(wrong))),
        Cell(str(len(opened)), "dim"),
    )


def needs(result: Result, view: View) -> str:
    """Return what a statement assumes."""
    return ", ".join((result.assumed if view.unicode else ()) or result.claim.assumes)


def told(result: Result, view: View) -> str:
    """Return a statement in words, with its line; its mathematics where it has no words."""
    claim = result.claim
    line = claim.source.line if claim.source is not None else None
    words = claim.title or mathematics(result, view)
    if is_number(result):
        words = "; ".join(f"{p.quantity} printed as {p.printed}" for p in result.printed)
    return words + (f" (line {line})" if line is not None else "")


def why(result: Result) -> str:
    """Return why a statement is false: its reason, a point, and what would be true if known."""
    verdict = result.verdict
    parts = [result.claim.reason or verdict.reason]
    if verdict.counterexample is not None:
        parts.append(str(verdict.counterexample))
    parts += [f"exact {p.exact}" for p in result.printed if not p.certified and p.exact]
    parts.append(result.suggestion or "")
    return "; ".join(filter(None, parts))
