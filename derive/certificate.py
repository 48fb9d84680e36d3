"""Certificates of inequalities: the difference as a sum of products that are not negative.

The search is not trusted: it proposes products of facts (`derive.facts`) times monomials that are
never negative, and asks for non-negative multiples that add up to the difference. What is trusted
is short: each fact, the sign of each monomial, and `adds_up`, an identity of normal forms.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from derive.facts import Fact, binomials, one_of, one_of_sum, ranges_of
from derive.lp import combine
from derive.naming import opened
from derive.normal import NormalForm, Normalizer, UndecidedError
from derive.signs import above_zero, at_least_zero, term_above_zero, term_at_least_zero
from derive.terms import Atom, Ix, Key, Term, canonical_key, multiply, renamed, substitute

MAX_ITEMS, MAX_TERMS, MAX_STEPS = 300, 60, 1500
SCHEDULE = ((1, 4), (2, 1), (3, 1), (2, 4), (3, 4))
"""How many facts a product holds, and how many rounds of new monomials follow, cheapest first."""


@dataclass(frozen=True)
class Item:
    """One product of a certificate: a monomial that is not negative times facts.

    Args:
        form: Its normal form.
        why: The reasons of its factors.
        strict: Whether it is above zero.
    """

    form: NormalForm
    why: tuple[str, ...]
    strict: bool


@dataclass(frozen=True)
class Certificate:
    """Positive multiples of products that add up to what is claimed not to be negative."""

    items: tuple[tuple[Fraction, Item], ...]

    @property
    def why(self) -> str:
        """The reasons, each once, in words."""
        reasons = dict.fromkeys(w for _, item in self.items for w in item.why)
        return "; ".join(reasons) or "every term is a square or a product of non-negative factors"

    @property
    def strict(self) -> bool:
        """Whether one of the products is above zero."""
        return any(item.strict for _, item in self.items)


def certify(
    normalizer: Normalizer,
    gap: NormalForm,
    facts: Sequence[Fact],
    strict: bool = False,
    end: float = float("inf"),
    rows: int = len(SCHEDULE),
    nonzero: frozenset[str] = frozenset(),
) -> Certificate | None:
    """Search for a certificate that a normal form is not negative (or above zero).

    Args:
        normalizer: The context, with its assumptions.
        gap: The normal form.
        facts: What is known beside the ranges of functions.
        strict: Whether it must be above zero.
        end: Clock time (`time.perf_counter`) after which it looks no deeper.
        rows: How far down the schedule it goes.
        nonzero: Names of atoms that are written denominators (`facts.written_denominators`).
    """
    if not gap:
        return None if strict else Certificate(())
    gap = cleared(normalizer, gap, nonzero)
    found = _searched(normalizer, gap, facts, strict, end, rows, nonzero)
    if found is None and any(a[0].startswith("den:") for t in gap.values() for a in t.factors):
        # a sum that stands as its denominator less the rest hides from the facts about its terms
        plain = copy.copy(normalizer)
        plain.folding = False
        open_gap = plain.normal(p for t in gap.values() for p in opened(t, sums=True))
        found = _searched(plain, open_gap, facts, strict, end, rows, nonzero)
    return found


def _searched(
    normalizer: Normalizer,
    gap: NormalForm,
    facts: Sequence[Fact],
    strict: bool,
    end: float,
    rows: int,
    nonzero: frozenset[str],
) -> Certificate | None:
    """Search in one writing of the sums."""
    if not gap:
        return None if strict else Certificate(())
    if len(gap) > MAX_TERMS:
        return None
    dens = dict.fromkeys(a for t in gap.values() for a in t.factors if a[0].startswith("den:"))
    shares = [fact for den in dens for fact in one_of(normalizer.algebra, den)]
    shares += [f for t in gap.values() for f in one_of_sum(normalizer.algebra, t)]
    search = _Search(normalizer, (*facts, *shares), end, nonzero - bases(gap))
    for most, rounds in SCHEDULE[:rows]:
        if time.perf_counter() > end:
            continue
        search.most, search.steps = most, 0
        found = _certify(search, gap, strict, rounds)
        if found is not None:
            return found
    return None


def _certify(search: _Search, gap: NormalForm, strict: bool, rounds: int) -> Certificate | None:
    """Propose products around the monomials of the difference, then around what they add."""
    wanted, seen = dict(gap), set[Key]()
    for _ in range(rounds):
        fresh = [k for k in wanted if k not in seen]
        seen |= set(fresh)
        for key in fresh:
            search.around(wanted[key])
            if len(search.items) > MAX_ITEMS:
                break
        found = search.solve(gap, strict)
        if found is not None and adds_up(found, gap):
            return found
        wanted |= {k: t for item in search.items for k, t in item.form.items()}
        if len(search.items) > MAX_ITEMS:
            return None
    return None


def cleared(normalizer: Normalizer, gap: NormalForm, nonzero: frozenset[str]) -> NormalForm:
    """Multiply denominators out that are never negative, and not zero.

    A form is as positive as its product with a positive number. An inverse that is no written
    denominator (a power of unknown length taken apart, a sum that may be empty) may be of zero.
    """
    algebra = normalizer.algebra
    certain = nonzero - bases(gap)
    lowest: dict[Atom, int] = {}
    for term in gap.values():
        for atom, power in term.factors.items():
            if power >= 0 or any(b in term.bound for b, _ in atom[1]):
                continue
            positive = above_zero(algebra, atom) or (
                atom[0] in certain and at_least_zero(algebra, atom)
            )
            if positive:
                lowest[atom] = min(power, lowest.get(atom, 0))
    if not lowest:
        return gap
    parts = []
    for term in gap.values():
        whole = term.copy()
        for atom, power in lowest.items():
            whole.times(atom, -power)
        parts += opened(whole)
    return normalizer.normal(parts)


def bases(form: NormalForm) -> set[str]:
    """Return the names of the bases of powers of unknown length."""
    return {a[0][2:] for t in form.values() for a in t.factors if a[0].startswith("^:")}


def adds_up(certificate: Certificate, gap: NormalForm) -> bool:
    """Check that the products of a certificate add up to a normal form exactly."""
    left = {key: term.coef for key, term in gap.items()}
    for factor, item in certificate.items:
        if factor <= 0:
            return False
        for key, term in item.form.items():
            left[key] = left.get(key, Fraction(0)) - factor * term.coef
    return not any(left.values())


Instances = tuple[tuple[Fact, dict[str, Ix]], ...]


class _Search:
    """Proposes products around the monomials of a difference."""

    def __init__(self, normalizer: Normalizer, facts: Sequence[Fact], end: float,
                 nonzero: frozenset[str]):  # fmt: skip
        self.normalizer, self.facts = normalizer, list(facts)
        self.most, self.steps, self.end, self.nonzero = 1, 0, end, nonzero
        self.items: list[Item] = []
        self.proposed: set[Key] = set()
        self.contents: dict[object, int] = {}
        self.known: set[tuple[tuple[Key, Fraction], ...]] = set()
        for fact in self.facts:
            if fact.stated and not fact.params:
                self.propose(Term(Fraction(1)), ((fact, {}),))

    def solve(self, gap: NormalForm, strict: bool) -> Certificate | None:
        """Ask for multiples of the items that add up to the difference."""
        columns = [{k: t.coef for k, t in item.form.items()} for item in self.items]
        target = {k: t.coef for k, t in gap.items()}
        found = combine(columns, target, self.end)
        if found is None:
            return None
        certificate = self.certificate(found)
        if not strict or certificate.strict:
            return certificate
        # force some of a product that is above zero
        for j, item in enumerate(self.items):
            for amount in (Fraction(1), Fraction(1, 2), Fraction(1, 4)) if item.strict else ():
                less = dict(target)
                for key, value in columns[j].items():
                    less[key] = less.get(key, Fraction(0)) - amount * value
                found = combine(columns, {k: v for k, v in less.items() if v}, self.end)
                if found is not None:
                    found[j] = found.get(j, Fraction(0)) + amount
                    return self.certificate(found)
        return None

    def certificate(self, found: dict[int, Fraction]) -> Certificate:
        """Return a certificate from multiples by number."""
        return Certificate(tuple((x, self.items[j]) for j, x in sorted(found.items())))

    def around(self, term: Term) -> None:
        """Propose every product of facts one of whose monomials is this one."""
        algebra = self.normalizer.algebra
        ranges = (f for atom, p in term.factors.items() for f in ranges_of(algebra, atom, p))
        facts = (*self.facts, *ranges, *binomials(algebra, term))
        # a number divides everything: it is no head, unless the monomial is a number too
        heads = [(fact, head) for fact in facts for head in fact.terms
                 if head.factors or not term.factors]  # fmt: skip
        self.extend(term.copy(), (), heads, 0)

    def extend(self, rest: Term, chosen: Instances, heads: Sequence[tuple[Fact, Term]],
               start: int) -> None:  # fmt: skip
        """Divide a monomial by heads of facts, and propose what comes out."""
        self.propose(rest, chosen)
        self.steps += 1
        spent = self.steps > MAX_STEPS or time.perf_counter() > self.end
        if len(chosen) == self.most or len(self.items) > MAX_ITEMS or spent:
            return
        for number in range(start, len(heads)):
            fact, head = heads[number]
            for mapping, left in divide(rest, head, fact.params):
                if fact.params <= set(mapping):
                    self.extend(left, (*chosen, (fact, mapping)), heads, number)

    def fits(self, rest: Term, fact: Fact, mapping: dict[str, Ix]) -> bool:
        """Tell whether an instance's conditions follow where the rest of the product lives."""
        if not fact.conditions:
            return True
        closure = self.normalizer.closure(rest)

        def place(ix: Ix) -> Ix:
            base, offset = mapping.get(ix[0], (ix[0], 0))
            return base, offset + ix[1]

        for low, high in fact.conditions:
            (a, m), (b, n) = place(low), place(high)
            if not (m <= n if a == b else closure.implies((a, m), (b, n))):
                return False
        return True

    def defined(self, term: Term) -> bool:
        """Tell whether a monomial has a value wherever the statement has: it divides by no zero."""
        return all(
            power > 0 or atom[0] in self.nonzero or above_zero(self.normalizer.algebra, atom)
            for atom, power in term.factors.items()
        )

    def product_key(self, base: Term, chosen: Instances) -> Key:
        """Return a key that is equal for products of the same instances and rest."""
        whole = base.copy()
        for fact, mapping in chosen:
            name = f"fact{id(fact)}" if fact.params else f"fact{fact.why}:{self.content(fact)}"
            whole.times((name, tuple(mapping[p] for p in sorted(fact.params))))
        return canonical_key(whole)

    def content(self, fact: Fact) -> int:
        """Return a number for a fact without params: the same facts come from many monomials."""
        rows = tuple(sorted((canonical_key(t), t.coef) for t in fact.terms))
        return self.contents.setdefault(rows, len(self.contents))

    def propose(self, rest: Term, chosen: Instances) -> None:
        """Normalise one product and keep it, if it is not negative."""
        base = rest.copy()
        base.coef, base.closed = Fraction(1), None
        if not (term_at_least_zero(self.normalizer.algebra, base) and self.defined(base)):
            return
        product = self.product_key(base, chosen)
        if product in self.proposed:
            return
        self.proposed.add(product)
        if not all(self.fits(base, fact, mapping) for fact, mapping in chosen):
            return
        terms = [base]
        for fact, mapping in chosen:
            parts = [s for t in fact.terms if (s := substitute(renamed(t), mapping)) is not None]
            terms = [p for a in terms for b in parts if (p := multiply(a, renamed(b))) is not None]
            if len(terms) > 400:
                return
        if not all(closed(t) for t in terms):
            return  # a name that one fact reads was summed over in another
        try:
            form = self.normalizer.normal(terms)
        except UndecidedError:
            return
        key = tuple(sorted((k, t.coef) for k, t in form.items()))
        if not form or key in self.known:
            return
        self.known.add(key)
        strict = term_above_zero(self.normalizer.algebra, base) and all(f.strict for f, _ in chosen)
        self.items.append(Item(form, tuple(f.why for f, _ in chosen), strict))


def closed(term: Term) -> bool:
    """Tell whether a term binds every bound name that it reads."""
    return all(b in term.bound for b in term.names() if b.startswith("~"))


def divide(term: Term, head: Term, params: frozenset[str]) -> Iterator[tuple[dict[str, Ix], Term]]:
    """Yield the ways to divide a monomial by one of a fact's, with what the names stand for.

    A name that the head sums over must stand for one that the term sums over, with the same
    guards, and may not be left in the quotient.
    """
    for found in _matches(list(head.factors.items()), term, params | set(head.bound), {}):
        if not set(head.bound) <= set(found):
            continue  # a name that stands in no factor is one that nothing divides
        bound = {found[b][0]: head.bound[b] for b in head.bound}
        if any(term.bound.get(b) != d for b, d in bound.items()) or len(bound) != len(head.bound):
            continue
        if any(found[b][1] for b in head.bound):
            continue
        moved = substitute(Term(Fraction(1), dict(head.factors), {}, dict(head.guards)), found)
        if moved is None:
            continue
        left = term.copy()
        for atom, power in moved.factors.items():
            left.times(atom, -power)
        if any(b in bound for _, places in left.factors for b, _ in places):
            continue
        inside = {pair: c for pair, c in left.guards.items() if set(pair) & set(bound)}
        if inside != moved.guards:
            continue
        left.guards = {pair: c for pair, c in left.guards.items() if pair not in inside}
        left.bound = {n: d for n, d in left.bound.items() if n not in bound}
        names = {n: ix for n, ix in found.items() if n in params}
        yield names, left


def _matches(pattern: list[tuple[Atom, int]], term: Term, names: set[str] | frozenset[str],
             found: dict[str, Ix]) -> Iterator[dict[str, Ix]]:  # fmt: skip
    """Yield the ways in which the factors of a pattern divide those of a term."""
    if not pattern:
        yield found
        return
    (name, places), power = pattern[0]
    for (other, at), p in term.factors.items():
        if other != name or p * power < 0 or abs(p) < abs(power):
            continue
        trial = dict(found)
        if all(_fit(trial, names, want, have) for want, have in zip(places, at, strict=True)):
            yield from _matches(pattern[1:], term, names, trial)


def _fit(found: dict[str, Ix], names: set[str] | frozenset[str], want: Ix, have: Ix) -> bool:
    """Unify one index."""
    base, offset = want
    if base not in names:
        return want == have
    value = (have[0], have[1] - offset)
    return found.setdefault(base, value) == value
