"""Names for nonlinearities and denominators, by the content of their argument."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import permutations, product

from derive.terms import Ix, Key, Term, canonical_key, substitute


@dataclass(frozen=True)
class Named:
    """A nonlinearity or denominator that is named by the content of its argument."""

    params: tuple[str, ...]
    terms: tuple[Term, ...]


NAMED: dict[str, Named] = {}


def digest(key: object) -> str:
    """Return a short name for a canonical key, the same in every process."""
    return hashlib.blake2s(repr(key).encode(), digest_size=8).hexdigest()


def names_in(terms: list[Term]) -> list[str]:
    """Return the bases that are not bound, each once, sorted.

    A position that stands in a guard alone counts: the value depends on it all the same.
    """
    found = {b for t in terms for _, places in t.factors for b, _ in places if b not in t.bound}
    guarded = {b for t in terms for pair in t.guards for b in pair if b not in t.bound}
    return sorted(found | {b for b in guarded if b and not b.startswith("#")})


def unpinned(term: Term) -> Term:
    """Return a term with its pins written as guards."""
    out = term.copy()
    out.pinned = {}
    for base, (to, offset) in term.pinned.items():
        out.guard((base, 0), (to, offset))
        out.guard((to, offset), (base, 0))
    return out


def abstract(kind: str, terms: list[Term]) -> tuple[str, tuple[Ix, ...]]:
    """Name a normal form by its content, as a function of its free indices.

    Returns the name and the indices at which it is taken. The name is the same for two normal forms
    that differ in the names (and a common shift) of their free indices.
    """
    terms = [unpinned(t) for t in terms]
    bases = names_in(terms)
    low = {b: min((o for t in terms for _, places in t.factors for x, o in places if x == b),
                  default=0) for b in bases}  # fmt: skip
    groups = _groups(terms, bases, low)
    best: tuple[Key, tuple[str, ...], list[Term]] | None = None
    for order in _orders(groups):
        mapping: dict[str, Ix] = {b: (f"?{i}", -low[b]) for i, b in enumerate(order)}
        moved = [m for t in terms if (m := substitute(t, mapping)) is not None]
        key = tuple(sorted((canonical_key(t), t.coef) for t in moved))
        if best is None or key < best[0]:
            best = (key, order, moved)
    assert best is not None
    key, order, moved = best
    name = f"{kind}:{digest(key)}"
    NAMED.setdefault(name, Named(tuple(f"?{i}" for i in range(len(order))), tuple(moved)))
    return name, tuple((b, low[b]) for b in order)


def _groups(terms: list[Term], bases: list[str], low: dict[str, int]) -> list[list[str]]:
    """Group bases that their structure does not tell apart, in a canonical order."""
    marks: dict[str, str] = {}
    for base in bases:
        mapping: dict[str, Ix] = {b: ("?", -low[b]) for b in bases}
        mapping[base] = ("!", -low[base])
        views = [m for t in terms if (m := substitute(t, mapping)) is not None]
        marks[base] = repr(sorted((canonical_key(t), t.coef) for t in views))
    classes: dict[str, list[str]] = {}
    for base in bases:
        classes.setdefault(marks[base], []).append(base)
    return [classes[m] for m in sorted(classes)]


def _orders(groups: list[list[str]]) -> list[tuple[str, ...]]:
    """Return the orders to try: all permutations within small groups, the given one in large."""
    choices = [list(permutations(g)) if len(g) <= 4 else [tuple(g)] for g in groups]
    return [tuple(b for part in pick for b in part) for pick in product(*choices)]
