"""The tables of a case file that stand on their own: skips, coverage, lines of the givens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from derive import case_keys as keys
from derive import case_tensors as tensors
from derive.case import CaseClaim, Skip
from derive.case_read import Entry, read_table
from derive.errors import nearest


def named(top: Mapping[str, Entry], kind: str) -> list[tuple[str, Entry]]:
    """Return the tables ``[kind.NAME]``."""
    return list(top[kind].table().items()) if kind in top else []


def listed(top: Mapping[str, Entry], kind: str) -> list[tuple[int, Entry]]:
    """Return the tables ``[[kind]]``."""
    return list(enumerate(top[kind].array())) if kind in top else []


def skip(entry: Entry) -> Skip:
    """Read one skip."""
    values = read_table(entry, keys.SKIP)
    lines = (*values.get("lines", ()), *([values["line"]] if "line" in values else []))
    if not lines or not values["reason"].strip():
        raise entry.error("a skip names its line or lines, and the reason")
    return Skip(lines, values["reason"])


def inventory(top: Mapping[str, Entry]) -> tuple[int, ...]:
    """Read the lecture lines that hold a formula or a number."""
    if "coverage" not in top:
        return ()
    lines: tuple[int, ...] = read_table(top["coverage"], keys.COVERAGE)["lines"]
    return lines


def given_lines(entries: Mapping[str, Entry], givens: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Read the lecture lines of the givens."""
    known, lines = set(givens), {}
    for written, entry in entries.items():
        name = tensors.canonical(written)
        if name not in known:
            raise entry.error("not given in this group", nearest(written, known))
        lines[name] = entry.integers()
    return lines


def unique(claims: Iterable[CaseClaim]) -> tuple[CaseClaim, ...]:
    """Give claims of one line different ids: line-118, line-118-2."""
    counts: dict[str, int] = {}
    out = []
    for claim in claims:
        name = claim.claim.id
        counts[name] = counts.get(name, 0) + 1
        if counts[name] > 1:
            name = f"{name}-{counts[name]}"
        out.append(replace(claim, claim=replace(claim.claim, id=name)))
    return tuple(out)
