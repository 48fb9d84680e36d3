"""The normal form: an identity holds at every size when the difference of its sides is empty.

`Normalizer.normal` rewrites each term until nothing applies: contract deltas, unfold definitions,
close position guards, anchor and peel them to their standard place (the deltas this makes are the
boundary terms), fold denominators, name bound indices canonically, collect.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from derive.algebra import Algebra
from derive.errors import DeriveError
from derive.support import Edges
from derive.terms import Atom, Closure, Ix, Key, Term, canonical_key, multiply, renamed, substitute

NormalForm = dict[Key, Term]
MAX_TERMS = 4_000


class UndecidedError(DeriveError):
    """The normal form gave up, with the reason."""


@dataclass(frozen=True)
class Rewrite:
    """``atom -> terms``, allowed where its side conditions follow from the term's own guards.

    Args:
        name: Name of the atom.
        places: Indices of the pattern; bases in ``params`` match anything.
        params: Bases that match.
        terms: The right side.
        conditions: Pairs (low, high) over the params: low <= high must follow.
        beside: Atoms over the params that must stand beside it: their product with it is rewritten.
    """

    name: str
    places: tuple[Ix, ...]
    params: frozenset[str]
    terms: tuple[Term, ...]
    conditions: tuple[tuple[Ix, Ix], ...] = ()
    beside: tuple[Atom, ...] = ()

    def without(self, term: Term, found: dict[str, Ix]) -> Term | None:
        """Return a term less what must stand beside a matched atom, None if it does not."""
        if not self.beside:
            return term
        rest = term.copy()
        for name, places in self.beside:
            moved = substitute(Term(Fraction(1), {(name, places): 1}), found)
            ((atom, _),) = moved.factors.items() if moved is not None else ((None, 0),)
            if atom is None or term.factors.get(atom, 0) < 1:
                return None
            rest.times(atom, -1)
        return rest

    def match(self, atom: Atom) -> dict[str, Ix] | None:
        """Return what the params stand for, None if the atom does not match."""
        if atom[0] != self.name:
            return None
        found: dict[str, Ix] = {}
        for (base, offset), (at, n) in zip(self.places, atom[1], strict=True):
            if base not in self.params:
                if (base, offset) != (at, n):
                    return None
            elif found.setdefault(base, (at, n - offset)) != (at, n - offset):
                return None
        return found


_deadline = [float("inf")]


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Let every normal form inside give up after some time."""
    _deadline.append(min(_deadline[-1], time.perf_counter() + seconds))
    try:
        yield
    finally:
        _deadline.pop()


class Normalizer:
    """Normalises terms of one system in one context.

    Args:
        algebra: Definitions and supports.
        edges: What holds of the free positions.
        rewrites: Assumptions, lemmas, an induction hypothesis.
        unfold: Extra atoms to unfold (recurrences, at exactly these places).
        frozen: Leave adjoints and tangents as free generators.
        folding: Whether sums fold into the denominators that are named so far.
        limit: How many terms it may grow to.
    """

    def __init__(
        self,
        algebra: Algebra,
        edges: Edges,
        rewrites: Iterable[Rewrite] = (),
        unfold: Callable[[Atom], bool] | None = None,
        frozen: bool = False,
        folding: bool = True,
        limit: int = MAX_TERMS,
    ):
        self.frozen, self.folding, self.limit = frozen, folding, limit
        self.algebra, self.rewrites = algebra, tuple(rewrites)
        self.unfolding, self.unfold = unfold is not None, unfold or (lambda _: False)
        self.edges = [*algebra.edges(), *edges]
        self.context = Closure(self.edges)
        self.rules_used: set[str] = set()
        self.names_rewritten = frozenset(r.name for r in self.rewrites)
        self.inside: dict[Atom, list[Term] | None] = {}

    def normal(self, terms: Iterable[Term]) -> NormalForm:
        """Return the normal form of a sum of terms.

        Raises:
            UndecidedError: When it grows past its limits.
        """
        out: NormalForm = {}
        stack, steps = list(terms), 0
        while stack:
            steps += 1
            if steps > self.limit:
                raise UndecidedError(f"the normal form grew past {self.limit} terms")
            if steps % 32 == 0 and time.perf_counter() > _deadline[-1]:
                raise UndecidedError("the search for a certificate took too long")
            term = stack.pop()
            if not term.coef:
                continue
            replaced = self.rewrite(term)
            if replaced is not None:
                stack += replaced
                continue
            key = canonical_key(term)
            kept = out.get(key)
            if kept is None:
                out[key] = term.copy()
            elif kept.coef + term.coef:
                kept.coef += term.coef
            else:
                del out[key]
        return out

    def rewrite(self, term: Term) -> list[Term] | None:
        """Apply the first rule that applies; None if the term is normal."""
        from derive.rules import RULES

        for rule in RULES:
            replaced = rule(self, term)
            if replaced is not None:
                self.rules_used.add(rule.__name__)
                return replaced
        return None

    def closure(self, term: Term, without: tuple[str, str] | None = None,
                guards: bool = True) -> Closure:  # fmt: skip
        """Return what follows from the context, the supports, pins and (some of) the guards."""
        plain = without is None and guards
        if plain and term.closed is not None:
            return term.closed
        edges = list(self.edges)
        for atom in term.factors:
            edges += self.algebra.support(atom)
        for base, (target, offset) in term.pinned.items():
            edges += [((base, target), offset), ((target, base), -offset)]
        if guards:
            edges += [(pair, c) for pair, c in term.guards.items() if pair != without]
        closure = Closure(edges)
        if plain:
            term.closed = closure  # rules never change a term that they were given
        return closure

    def ordered(self, term: Term, base: str) -> bool:
        """Tell whether a bound name runs over positions."""
        return self.algebra.system.dims[term.bound[base]].ordered

    def expand(self, term: Term, atom: Atom, body: Iterable[Term]) -> list[Term]:
        """Replace one positive power of an atom by a sum of terms (with fresh bound names)."""
        rest = term.copy()
        rest.times(atom, -1)
        products = (multiply(rest, renamed(part)) for part in body)
        return [p for p in products if p is not None]
