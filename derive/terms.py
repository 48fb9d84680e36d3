"""Terms of the normal form: monomials of indexed atoms under bound indices and position guards.

An index is a pair (base, offset). A base is a name, ``""`` (the number zero) or ``#T`` (the size of
an ordered axis), so t-1, T-1 and -1 are one kind of thing. A guard (a, b) -> c means a - b <= c.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from typing import Any

Ix = tuple[str, int]
Atom = tuple[str, tuple[Ix, ...]]
Guards = dict[tuple[str, str], int]
Key = tuple[Any, ...]

ZERO: Ix = ("", 0)
_counter = count()


def fresh() -> str:
    """Return a new bound name; the tilde keeps it apart from every free name."""
    return f"~{next(_counter)}"


@dataclass
class Term:
    """A coefficient times atoms to integer powers, summed over bound names where guards hold.

    ``bound`` maps a bound name to its size name. ``pinned`` holds equations between free positions
    (base -> (base, offset)) under which the term lives; elsewhere it is zero.
    """

    coef: Fraction
    factors: dict[Atom, int] = field(default_factory=dict)
    bound: dict[str, str] = field(default_factory=dict)
    guards: Guards = field(default_factory=dict)
    pinned: dict[str, Ix] = field(default_factory=dict)
    closed: Closure | None = field(default=None, compare=False, repr=False)

    def copy(self) -> Term:
        """Return a copy that can be changed."""
        return Term(self.coef, dict(self.factors), dict(self.bound), dict(self.guards),
                    dict(self.pinned))  # fmt: skip

    def times(self, atom: Atom, power: int = 1) -> None:
        """Multiply by an atom in place."""
        total = self.factors.get(atom, 0) + power
        if total:
            self.factors[atom] = total
        else:
            self.factors.pop(atom, None)

    def guard(self, low: Ix, high: Ix) -> bool:
        """Add ``low <= high`` in place; tell whether the term can still be non-zero."""
        (a, m), (b, n) = low, high
        if a == b:
            return m <= n
        self.guards[a, b] = min(self.guards.get((a, b), n - m), n - m)
        return True

    def pin(self, base: str, target: Ix) -> bool:
        """Add ``base = target`` in place; tell whether the term can still be non-zero."""
        known = self.pinned.setdefault(base, target)
        return known == target or (self.guard(known, target) and self.guard(target, known))

    def names(self) -> set[str]:
        """Return every base that occurs."""
        used = {base for _, places in self.factors for base, _ in places}
        return used | {b for pair in self.guards for b in pair}


def renamed(term: Term) -> Term:
    """Return a copy whose bound names are fresh."""
    if not term.bound:
        return term.copy()
    mapping = {name: fresh() for name in term.bound}

    def name(base: str) -> str:
        return mapping.get(base, base)

    return Term(
        term.coef,
        {(a, tuple((name(b), o) for b, o in places)): p for (a, places), p in term.factors.items()},
        {mapping[n]: d for n, d in term.bound.items()},
        {(name(a), name(b)): c for (a, b), c in term.guards.items()},
        dict(term.pinned),
    )


def multiply(left: Term, right: Term) -> Term | None:
    """Return the product (bound names of the two must differ), None if the guards contradict."""
    out = left.copy()
    out.coef *= right.coef
    for atom, power in right.factors.items():
        out.times(atom, power)
    out.bound.update(right.bound)
    for pair, c in right.guards.items():
        out.guards[pair] = min(out.guards.get(pair, c), c)
    for base, target in right.pinned.items():
        if not out.pin(base, target):
            return None
    return out


def substitute(term: Term, mapping: Mapping[str, Ix]) -> Term | None:
    """Replace bases by indices, all at once; None if a guard becomes false."""

    def place(ix: Ix) -> Ix:
        target = mapping.get(ix[0])
        return ix if target is None else (target[0], target[1] + ix[1])

    out = Term(term.coef, {}, {n: d for n, d in term.bound.items() if n not in mapping})
    for (name, places), power in term.factors.items():
        out.times((name, tuple(place(i) for i in places)), power)
    for (a, b), c in term.guards.items():
        (a2, m), (b2, n) = place((a, 0)), place((b, 0))
        if not out.guard((a2, m), (b2, n + c)):
            return None
    for base, target in term.pinned.items():
        if base not in mapping:
            if not out.pin(base, place(target)):
                return None
            continue
        here, there = mapping[base], place(target)
        if not (out.guard(here, there) and out.guard(there, here)):
            return None
    return out


class Closure:
    """All pairwise bounds a - b <= c that follow from some guards (shortest paths)."""

    def __init__(self, edges: Iterable[tuple[tuple[str, str], int]]):
        self.best: dict[str, dict[str, int]] = {}
        for (a, b), c in edges:
            row = self.best.setdefault(a, {})
            self.best.setdefault(b, {})
            row[b] = min(row.get(b, c), c)
        for k, from_k in self.best.items():
            for a, row in self.best.items():
                a_to_k = row.get(k)
                if a_to_k is None or a == k:
                    continue
                for b, c in from_k.items():
                    if row.get(b, a_to_k + c + 1) > a_to_k + c:
                        row[b] = a_to_k + c
        self.consistent = all(row.get(a, 0) >= 0 for a, row in self.best.items())

    def bound(self, a: str, b: str) -> int | None:
        """Return the least c with a - b <= c, None if there is none."""
        return 0 if a == b else self.best.get(a, {}).get(b)

    def implies(self, low: Ix, high: Ix) -> bool:
        """Tell whether low <= high follows."""
        c = self.bound(low[0], high[0])
        return c is not None and c <= high[1] - low[1]

    def equalities(self) -> list[tuple[str, str, int]]:
        """Return triples (a, b, c) with a = b + c."""
        return [
            (a, b, c)
            for a, row in self.best.items()
            for b, c in row.items()
            if a < b and self.best[b].get(a) == -c
        ]


# Canonical keys


def canonical_key(term: Term) -> Key:
    """Return a key that is equal for terms that differ in bound names only.

    Factors fall into components that share bound names; each is named on its own (permuting all
    bound names at once would be factorial). Ties are broken by trying every member of a tie.
    """
    parts: list[Key] = []
    for factors, bound, guards in _components(term):
        parts.append(_component_key(factors, bound, guards, {}))
    free_guards = sorted((a, b, c) for (a, b), c in term.guards.items()
                         if a not in term.bound and b not in term.bound)  # fmt: skip
    return (tuple(sorted(parts)), tuple(free_guards), tuple(sorted(term.pinned.items())))


Factor = tuple[str, int, tuple[Ix, ...]]
GuardRow = tuple[str, str, int]
Component = tuple[list[Factor], dict[str, str], list[GuardRow]]


def _components(term: Term) -> list[Component]:
    """Split a term into groups of factors and guards that share bound names."""
    parent = {name: name for name in term.bound}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = name = parent[parent[name]]
        return name

    links = [[b for b, _ in places if b in parent] for _, places in term.factors]
    links += [[b for b in pair if b in parent] for pair in term.guards]
    for group in links:
        for other in group[1:]:
            parent[root(other)] = root(group[0])
    parts: dict[str, Component] = {}
    for name, dim in term.bound.items():
        parts.setdefault(root(name), ([], {}, []))[1][name] = dim
    out: list[Component] = []
    for (name, places), power in term.factors.items():
        factor = (name, power, places)
        inside = [b for b, _ in places if b in parent]
        if inside:
            parts[root(inside[0])][0].append(factor)
        else:
            out.append(([factor], {}, []))
    for (a, b), c in term.guards.items():
        inside = [x for x in (a, b) if x in parent]
        if inside:
            parts[root(inside[0])][2].append((a, b, c))
    return out + list(parts.values())


def _component_key(
    factors: list[Factor], bound: dict[str, str], guards: list[GuardRow], fixed: dict[str, str]
) -> Key:
    """Return the least key over the namings that the structure leaves open."""
    colors = _refine(factors, bound, guards, fixed)
    classes: dict[str, list[str]] = {}
    for name in bound:
        classes.setdefault(colors[name], []).append(name)
    tied = min((c for c, members in classes.items() if len(members) > 1), default=None)
    if tied is None:
        return _key_under(factors, bound, guards, colors)
    first, *others = classes[tied]
    # a member that can change places with the first gives the same key
    tries = [first, *(m for m in others if not _exchangeable(factors, guards, first, m))]
    return min(
        _component_key(factors, bound, guards, {**fixed, member: f"!{len(fixed)}"})
        for member in tries
    )


def _exchangeable(factors: list[Factor], guards: list[GuardRow], a: str, b: str) -> bool:
    """Tell whether swapping two names leaves a component as it is."""
    swap = {a: b, b: a}
    moved = sorted(
        (n, p, tuple((swap.get(x, x), o) for x, o in places)) for n, p, places in factors
    )
    rows = sorted((swap.get(x, x), swap.get(y, y), c) for x, y, c in guards)
    return moved == sorted(factors) and rows == sorted(guards)


def _refine(
    factors: list[Factor], bound: dict[str, str], guards: list[GuardRow], fixed: dict[str, str]
) -> dict[str, str]:
    """Color bound names by where they stand until no color splits further."""
    colors = {n: f"{d}{fixed.get(n, '')}" for n, d in bound.items()}
    for _ in range(len(bound) + 1):
        marks: dict[str, list[Any]] = {n: [] for n in bound}
        for name, power, places in factors:
            view = [(colors.get(b, b), o) for b, o in places]
            for slot, (b, _) in enumerate(places):
                if b in marks:
                    marks[b].append((name, power, slot, view))
        for a, b, c in guards:
            for side, (x, y) in enumerate(((a, b), (b, a))):
                if x in marks:
                    marks[x].append(("<=", side, c, [(colors.get(y, y), 0)]))
        for n in marks:
            marks[n].sort()
        order = sorted({(colors[n], repr(marks[n])) for n in bound})
        rank = {view: f"{place:03d}" for place, view in enumerate(order)}
        new = {n: rank[colors[n], repr(marks[n])] for n in bound}
        if len(set(new.values())) == len(set(colors.values())):
            return new
        colors = new
    return colors


def _key_under(
    factors: list[Factor], bound: dict[str, str], guards: list[GuardRow], colors: dict[str, str]
) -> Key:
    """Return the key of a component once every bound name has its own color."""
    order = sorted(bound, key=lambda n: colors[n])
    names = {n: f"~{i}:{bound[n]}" for i, n in enumerate(order)}
    rows = sorted(
        (name, power, tuple((names.get(b, b), o) for b, o in places))
        for name, power, places in factors
    )
    rules = sorted((names.get(a, a), names.get(b, b), c) for a, b, c in guards)
    return (tuple(rows), tuple(rules), tuple(bound[n] for n in order))
