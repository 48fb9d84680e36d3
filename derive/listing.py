"""What ``derive list`` prints: topics, claims, cases, quantities, coverage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from derive.errors import DeriveError, nearest

if TYPE_CHECKING:
    from derive.case import Case

GAP = "  "
Row = Sequence[str]


def listing(what: str = "topics", name: str = "") -> str:
    """Return a listing as text.

    Args:
        what: ``topics``, ``claims``, ``cases``, ``quantities``, ``coverage`` or ``probes``.
        name: The topic of claims and quantities, the case of coverage.

    Raises:
        DeriveError: On an unknown or missing word.
    """
    if what not in LISTINGS:
        raise DeriveError(f"cannot list {what!r}", hint=nearest(what, LISTINGS))
    return LISTINGS[what](name)


def aligned(rows: Iterable[Row]) -> str:
    """Return rows as columns; the last one is as long as it is."""
    grid = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    widths[-1:] = [0]
    lines = (GAP.join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in grid)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def topics(name: str) -> str:
    """List the topics with their titles and how much each claims."""
    from derive.topics import load, names

    found = [load(n) for n in names() if name in ("", n)]
    if not found:
        raise DeriveError(f"unknown topic {name!r}", hint=nearest(name, names()))
    return aligned((t.name, f"{len(t.claims)} claims", t.title) for t in found)


def claims(name: str) -> str:
    """List the claims of a topic, or of all, with what is recorded as false marked."""
    from derive.topics import load, names

    found = [c for n in ([name] if name else names()) for c in load(n).claims]
    marks = {"holds": "", "fails": "false: ", "undecided": "open: "}
    return aligned(
        (c.id, marks[c.expected] + (c.statement or f"probe {c.probe}"), c.title) for c in found
    )


def cases(name: str) -> str:
    """List the shipped cases."""
    from derive.case_load import case_ids, find_case

    found = [find_case(i) for i in case_ids() if name in ("", i)]
    if not found:
        raise DeriveError(f"no case {name!r}", hint=nearest(name, case_ids()))
    return aligned(
        (c.id, subjects(c), f"{len(c.expects)} printed", f"{len(c.claims)} claims", c.title)
        for c in found
    )


def subjects(case: Case) -> str:
    """Return the topics that a case is about; its own systems are counted, not named."""
    own = [name for name in case.topics if name in case.systems]
    named = [name for name in case.topics if name not in case.systems]
    return ", ".join([*named, *([f"{len(own)} of its own"] if own else [])])


def quantities(name: str) -> str:
    """List every name that statements about a topic may use, with shape, role and meaning."""
    from derive.topics import load, names

    if not name:
        raise DeriveError(
            "whose quantities? name a topic", hint=f"derive list quantities {names()[0]}"
        )
    blocks = []
    for system in load(name).systems.values():
        rows = [
            (t.name, t.shape, t.role, t.meaning or defined(system, t.name))
            for t in system.tensors.values()
        ]
        sizes = ", ".join(system.dims)
        losses = f"; losses {', '.join(system.losses)}" if system.losses else ""
        head = f"{system.name}: sizes {sizes}{losses}; {system.convention} convention"
        blocks.append(f"{head}\n{aligned(('  ' + r[0], *r[1:]) for r in rows)}")
    blocks.append("g_X is the gradient of the loss by X, with X's shape: g_h, g_z, g_W_h, ...\n")
    return "\n".join(blocks)


def defined(system: object, name: str) -> str:
    """Return the equation that defines a quantity, if there is one."""
    from derive.equation import System

    assert isinstance(system, System)
    equation = system.by_name.get(name) or system.derived_by_name.get(name)
    return equation.text if equation else ""


def coverage(name: str) -> str:
    """List what a case does with every line of its lecture."""
    from derive.case_load import case_ids, find_case
    from derive.coverage import coverage as lines

    if not name:
        raise DeriveError("whose coverage? name a case", hint=f"known: {', '.join(case_ids())}")
    return str(lines(find_case(name)))


def probes(name: str) -> str:
    """List the probes of torch's programs, with what each expects."""
    from derive.checks.probes import probes as known
    from derive.checks.probes import words

    found = [n for n in known() if name in ("", n, n.split(".")[0])]
    if not found:
        raise DeriveError(f"no probe {name!r}", hint=nearest(name, known()))
    return aligned((n, words(n)) for n in found)


LISTINGS: dict[str, Callable[[str], str]] = {
    "topics": topics,
    "claims": claims,
    "cases": cases,
    "quantities": quantities,
    "coverage": coverage,
    "probes": probes,
}
