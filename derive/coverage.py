"""Coverage of a case: every lecture line with a formula or a number is accounted for.

The case holds the inventory, the numbers of those lines. A line is accounted for by a given, a
printed number, a claim, a replay, or a skip with its reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from derive.case import Case

FORMULA = re.compile(
    r"""[$=≈≤≥<>×∑∂√∞±→←⊙]   # TeX, relations and operators
    |\\[(\[]                    # TeX in \( \) or \[ \]
    |\d                          # a digit
    |\\[A-Za-z]+                 # a TeX command
    |\b[A-Za-z]+(?:_|\^)[{(A-Za-z\d\\-]  # a subscript or superscript
    """,
    re.VERBOSE,
)


def formula_lines(text: str) -> list[int]:
    """Return the numbers of the lines that hold a formula or a number, counted from 1."""
    return [n for n, line in enumerate(text.split("\n"), 1) if FORMULA.search(line)]


@dataclass(frozen=True)
class Coverage:
    """How a case accounts for its lecture.

    Args:
        case: The case's id.
        lines: How many lines hold a formula or a number.
        givens: How many givens have a line there.
        expects: How many printed entries.
        claims: How many stated formulas.
        skips: How many lines are skipped with a reason.
        unaccounted: Lines that nothing accounts for.
        doubled: Skipped lines that something else accounts for too.
    """

    case: str
    lines: int
    givens: int
    expects: int
    claims: int
    skips: int
    unaccounted: tuple[int, ...]
    doubled: tuple[int, ...]

    @property
    def complete(self) -> bool:
        """Whether there is an inventory, and nothing of it is unaccounted for."""
        return self.lines > 0 and not self.unaccounted

    def __str__(self) -> str:
        """Totals, and what is unaccounted for."""
        left = ", ".join(map(str, self.unaccounted)) or "nothing"
        if not self.lines:
            left = "unknown: the case has no [coverage] with the lines of its lecture"
        return (
            f"{self.case}: {self.lines} lines with a formula or a number\n"
            f"  givens {self.givens} · printed entries {self.expects} · claims {self.claims} · "
            f"skipped lines {self.skips}\n"
            f"  unaccounted for: {left}"
        )


def coverage(case: Case) -> Coverage:
    """Return how a case accounts for the lines of its lecture."""
    givens = [line for g in case.groups.values() for lines in g.lines.values() for line in lines]
    stated = {
        *givens,
        *(e.line for e in case.expects),
        *(c.line for c in case.claims),
        *(r.line for r in case.replays.values()),
    } - {None}
    skipped = [line for skip in case.skips for line in skip.lines]
    accounted = stated | set(skipped)
    return Coverage(
        case.id,
        len(case.inventory),
        sum(len(g.lines) for g in case.groups.values()),
        len(case.expects),
        len(case.claims),
        len(skipped),
        tuple(line for line in case.inventory if line not in accounted),
        tuple(sorted(set(skipped) & stated)),
    )
