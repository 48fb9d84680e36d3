"""Denominators at an end: the sum over the sources of the first position has one term."""

from __future__ import annotations

from derive.abstract import NAMED
from derive.algebra import Algebra
from derive.normal import Normalizer
from derive.terms import Atom, Ix, Term, renamed, substitute


def open_short_sums(self: Normalizer, term: Term) -> list[Term] | None:
    """A denominator at the first or last position, whose sum has one term there, is that term."""
    for atom, power in term.factors.items():
        if atom[0].startswith("den:") and any(is_fixed(b) for b, _ in atom[1]):
            short = short_sum(self.algebra, atom)
            if short is None:
                continue
            rest = term.copy()
            del rest.factors[atom]
            rest.coef *= short.coef**power
            for inner, exponent in short.factors.items():
                rest.times(inner, exponent * power)
            return [rest]
    return None


def is_fixed(base: str) -> bool:
    """Tell whether a base is a number or a size, and no index."""
    return not base or base.startswith("#")


def short_sum(algebra: Algebra, atom: Atom) -> Term | None:
    """Return the one term without a bound index to which a denominator comes down, if it does."""
    named = NAMED[atom[0]]
    guarded = {x for t in named.terms for pair in t.guards for x in pair}
    mapping: dict[str, Ix] = dict(zip(named.params, atom[1], strict=True))
    if not any(p in guarded and is_fixed(b) for p, (b, _) in mapping.items()):
        return None
    moved = [m for t in named.terms if (m := substitute(renamed(t), mapping)) is not None]
    # unfolded: folded, the sum would be this denominator again
    found = list(Normalizer(algebra, [], folding=False).normal(moved).values())
    if len(found) != 1 or found[0].bound or found[0].guards or found[0].pinned:
        return None
    return found[0]
