"""The tables of a case file that stand on their own: skips, coverage, replays, lines of givens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from derive import case_keys as keys
from derive import case_tensors as tensors
from derive.case import UNRECORDED, CaseClaim, Drawn, Replay, Skip
from derive.case_read import MAX_SCALARS, Entry, read_table
from derive.equation import System
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


def known(entry: Entry, key: str, name: str, names: Iterable[str]) -> None:
    """Refuse a reference to something that the file does not hold."""
    if name not in names:
        raise entry.child(key).error(f"no {key} {name!r} in this file", nearest(name, names))


def replay(name: str, entry: Entry) -> Replay:
    """Read a recipe; every other key is one of its settings, an exact number."""
    settings = {k: e for k, e in entry.table().items() if k not in keys.REPLAY}
    values = read_table(entry, keys.REPLAY, settings)
    numbers = {key: setting.number() for key, setting in settings.items()}
    if values["recipe"] == UNRECORDED and not values.get("reason", "").strip():
        raise entry.error(
            "an unrecorded run says in its reason what the lecture leaves out",
            "reason = 'the learning rate and the seed are not printed'",
        )
    return Replay(name, values["recipe"], numbers, values.get("line"), values.get("reason", ""))


def drawn_given(
    system: System, name: str, entry: Entry, sizes: Mapping[str, int], replays: Iterable[str]
) -> Drawn:
    """Read a given that a recorded seed yields."""
    values = read_table(entry, keys.DRAWN)
    known(entry, "replay", values["replay"], replays)
    start = values.get("start", 0)
    if not 0 <= start <= MAX_SCALARS:
        raise entry.child("start").error(f"expected 0 to {MAX_SCALARS} draws; found {start}")
    axes = tensors.axes_of(system, name)
    missing = [a for a in axes if not a.isdigit() and a not in sizes]
    if missing:
        raise entry.error(
            f"a seed does not say how many values to draw: size {missing[0]} is unknown",
            f"sizes = {{ {missing[0]} = 50 }}",
        )
    shape = tuple(int(a) if a.isdigit() else sizes[a] for a in axes)
    tensors.check_count(entry, shape)
    return Drawn(values["replay"], start, shape)
