"""What is not as expected, in full: the counterexample or the numbers, the repair, the place."""

from __future__ import annotations

from derive.claim import Evidence, Printed, Result
from derive.report import View, is_number, is_open
from derive.report._page import ORACLES, Cell, mathematics


def block(result: Result, view: View) -> tuple[Cell, ...]:
    """Return everything about a result that is not as expected."""
    tone = "warn" if is_open(result) else "bad"
    mark = "?" if is_open(result) else "✗"
    lines = [Cell(f"{mark} {mathematics(result, view)}", tone)]
    lines += [Cell(text) for text in outcome(result)]
    for e in result.evidence:
        if not e.passed and e.kind not in ("printed", "counterexample", "proof"):
            lines.append(Cell(disagreement(e), "bad"))
        elif not e.passed and e.kind == "counterexample" and result.verdict.name == "proved":
            lines.append(Cell(f"assuming {', '.join(result.claim.assumes)}: {e.detail}", "bad"))
    lines += [Cell(uncertified(p), "bad") for p in result.printed if not p.certified]
    if result.suggestion:
        lines.append(Cell(result.suggestion, "good"))
    lines.append(Cell(place(result), "dim"))
    return tuple(lines)


def outcome(result: Result) -> list[str]:
    """Return the verdict against what was expected, and the counterexample or the reason."""
    verdict, claim = result.verdict, result.claim
    expected = {"fails": "recorded as false", "undecided": "recorded as undecided"}
    said = f", but it is {expected[claim.expected]}" if claim.expected in expected else ""
    if verdict.counterexample is not None:
        return [f"{verdict.name} {verdict.counterexample}{said}"]
    if is_number(result) and verdict.name != "undecided":
        return []
    if verdict.name == "undecided":
        return [f"undecided: {verdict.reason or 'no reason was recorded'}{said}"]
    scope = f" for {verdict.scope}" if verdict.scope else ""
    reason = f": {verdict.reason}" if verdict.reason else ""
    against = said or ("" if verdict.name == "refuted" else ", but not every check agrees")
    return [f"{verdict.name}{scope}{reason}{against}"]


def disagreement(e: Evidence) -> str:
    """Return where an oracle disagrees, got over want."""
    name = ORACLES.get(e.kind, e.kind).replace("\n", " ")
    if e.count == 0:
        return f"{name}: {e.detail or 'nothing was compared'}"
    error = f"{e.max_error:.1e}" if e.max_error is not None else "no number"
    allowed = f", allowed {e.tolerance:.1e}" if e.tolerance is not None else ""
    text = f"{name} ({e.against}): error {error}{allowed}"
    if e.worst is not None:
        at = ",".join(map(str, e.worst.index))
        text += f"; at [{at}] got {e.worst.got!r}, want {e.worst.want!r}"
    return text


def uncertified(p: Printed) -> str:
    """Return a printed number that is not the rounding of the exact value."""
    what = f"{p.quantity}: " if p.quantity else ""
    text = f"{what}printed {p.printed}, exact {p.exact or 'unknown'}"
    return "  ".join(
        filter(None, (text + (f" ({p.note})" if p.note else ""), slide(p.where, p.line)))
    )


def slide(where: str, line: int | None) -> str:
    """Return a place in a lecture."""
    parts = [f'slide "{where}"' if where else "", f"line {line}" if line is not None else ""]
    return ", ".join(filter(None, parts))


def place(result: Result) -> str:
    """Return the claim's id and where it stands: a slide, or a file and line."""
    source = result.claim.source
    if source is None:
        return result.claim.id
    line = "" if source.line is None else f":{source.line}"
    where = slide(source.title, source.line) if source.title else source.file + line
    return f"{result.claim.id}  {where}".rstrip()
