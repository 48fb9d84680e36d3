"""Cycles of definitions, and the names whose removal leaves none."""

from __future__ import annotations

from collections.abc import Mapping


def feedback(
    names: list[str], reads: Mapping[str, set[tuple[str, bool]]], prefer: frozenset[str]
) -> set[str]:
    """Return names whose removal leaves no cycle of reads.

    First those that read themselves; then, while a cycle is left, a preferred name on it, else the
    one that most names on cycles read, else one that is read at another position.
    """
    kept = {n for n in names if any(r == n for r, _ in reads[n])}
    below = reachable(names, reads)
    looped = [n for n in names if n in below[n]]
    degree = {n: sum(any(r == n for r, _ in reads[m]) for m in looped) for n in names}
    while True:
        cycle = find_cycle(names, reads, kept)
        if not cycle:
            return kept
        moved = {r for n in cycle for r, shifted in reads[n] if shifted}
        kept.add(min(cycle, key=lambda n: (n not in prefer, -degree[n], n not in moved, n)))


def reachable(
    names: list[str], reads: Mapping[str, set[tuple[str, bool]]]
) -> dict[str, frozenset[str]]:
    """Return, for each name, every name that its definition leads to."""
    below = {n: frozenset(r for r, _ in reads[n]) for n in names}
    for _ in names:
        grown = {n: b.union(*(below[r] for r in b if r in below)) for n, b in below.items()}
        if grown == below:
            break
        below = grown
    return below


def find_cycle(
    names: list[str], reads: Mapping[str, set[tuple[str, bool]]], kept: set[str]
) -> list[str]:
    """Return the names on one cycle of reads that avoids the kept ones, [] if there is none."""
    done: set[str] = set()
    for start in names:
        path: list[str] = []
        stack = [(start, False)]
        while stack:
            name, leaving = stack.pop()
            if leaving:
                done.add(path.pop())
            elif name in path:
                return path[path.index(name) :]
            elif name in reads and name not in kept and name not in done:
                path.append(name)
                stack.append((name, True))
                stack += [(r, False) for r in sorted({r for r, _ in reads[name]})]
    return []
