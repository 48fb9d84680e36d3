"""The rules of the normal form, in the order in which they are tried.

Each takes the normalizer and a term, and returns None where it does not apply, else the terms that
replace the term. Every rule is an identity that holds wherever its guards hold.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from derive.abstract import NAMED
from derive.angles import reduce_cosines, turn_on
from derive.folding import (
    fold_denominators,
    open_constant_units,
    open_named_values,
    reduce_inverses,
    reduce_roots,
    reduce_steps,
    rewrite_inside,
)
from derive.guards import _from_zero, anchor_positions, close_guards, count_unused, settle_guards
from derive.naming import inverse
from derive.normal import Normalizer
from derive.short_sums import open_short_sums
from derive.support import out_of_reach
from derive.terms import (
    Atom,
    Ix,
    Term,
    fresh,
    multiply,
    renamed,
    substitute,
)

Rule = Callable[[Normalizer, Term], "list[Term] | None"]


MAX_LAG = 8


def contract_deltas(self: Normalizer, term: Term) -> list[Term] | None:
    """delta(i, j) with a bound index substitutes; delta(i, i) is one."""
    for atom, power in term.factors.items():
        if atom[0] != "δ":
            continue
        (a, m), (b, n) = atom[1]
        rest = term.copy()
        del rest.factors[atom]
        if power != 1:
            rest.times(atom)
            return [rest]
        if a not in term.bound and b in term.bound:
            (a, m), (b, n) = (b, n), (a, m)
        if (a, m) == (b, n):
            return [rest]
        if a in term.bound:
            moved = substitute(rest, {a: (b, n - m)})
            return [moved] if moved is not None else []
        if a == b:
            return []
        if b < a:
            rest.times(("δ", ((b, n), (a, m))))
            return [rest]
        if any(base == b for _, places in rest.factors for base, _ in places):
            # under delta(i, j) of free indices every j is written i
            moved = substitute(rest, {b: (a, m - n)})
            if moved is None:
                return []
            moved.times(atom)
            return [moved]
    return None


def apply_rewrites(self: Normalizer, term: Term) -> list[Term] | None:
    """Use an assumption, lemma or hypothesis where its side conditions follow.

    Where a condition on a bound position is open, the sum is split at it: the part where it holds
    is rewritten, the other part stays.
    """
    for rule in self.rewrites:
        for atom, power in term.factors.items():
            found = rule.match(atom) if power > 0 else None
            rest = rule.without(term, found) if found is not None else None
            if found is None or rest is None:
                continue
            open_at = _open_conditions(self, term, rule.conditions, found)
            if open_at is None or (open_at and not _splits(term, open_at)):
                continue
            inside, outside = _split(rest, open_at)
            if rule.beside and outside:
                continue  # what stands beside belongs to the part that stays
            body = [s for t in map(renamed, rule.terms) if (s := substitute(t, found)) is not None]
            return [*(self.expand(inside, atom, body) if inside else ()), *outside]
    return None


def zero_initial(self: Normalizer, term: Term) -> list[Term] | None:
    """A state that starts at zero is zero before position 0."""
    for (name, places), power in term.factors.items():
        base, offset = places[0] if places else ("#", 0)
        if power > 0 and base == "" and offset < 0 and name in self.algebra.zeros:
            return []
    return None


Condition = tuple[Ix, Ix]


def _open_conditions(
    self: Normalizer, term: Term, conditions: tuple[Condition, ...], found: dict[str, Ix]
) -> list[Condition] | None:
    """Return the side conditions of an instance that do not follow; None if one is false."""

    def place(ix: Ix) -> Ix:
        base, offset = found.get(ix[0], (ix[0], 0))
        return (base, offset + ix[1])

    closure = self.closure(term) if conditions else self.context
    left = []
    for low, high in conditions:
        (a, m), (b, n) = place(low), place(high)
        if (m <= n) if a == b else closure.implies((a, m), (b, n)):
            continue
        if a == b or closure.implies((b, n + 1), (a, m)):
            return None
        left.append(((a, m), (b, n)))
    return left


def _splits(term: Term, conditions: list[Condition]) -> bool:
    """Tell whether a sum may be split: one open condition, on a bound position."""
    return len(conditions) == 1 and any(base in term.bound for base, _ in conditions[0])


def _split(term: Term, conditions: list[Condition]) -> tuple[Term | None, list[Term]]:
    """Return the term where the condition holds and where it does not."""
    if not conditions:
        return term, []
    ((low, high),) = conditions
    inside, outside = term.copy(), term.copy()
    kept = inside.guard(low, high)
    other = outside.guard((high[0], high[1] + 1), low)
    return (inside if kept else None), ([outside] if other else [])


def unfold_definitions(self: Normalizer, term: Term) -> list[Term] | None:
    """Replace an atom by its defining equation, unless that is a recurrence."""
    for atom, power in term.factors.items():
        name, places = atom
        if ":" not in name and name not in self.algebra.system.tensors:
            continue
        if self.frozen and name.startswith(("g:", "d:")):
            continue
        if name.startswith("d:") and out_of_reach(self.algebra.system, atom):
            return []
        definition = self.algebra.definition(name)
        if definition is None or not _may_unfold(self, term, atom):
            continue
        mapping = dict(zip(definition.params, places, strict=True))
        body = [
            s for t in map(renamed, definition.terms) if (s := substitute(t, mapping)) is not None
        ]
        if power > 0:
            return self.expand(term, atom, body)
        return _expand_inverse(self, term, atom, body)
    return None


def _may_unfold(self: Normalizer, term: Term, atom: Atom) -> bool:
    """Tell whether an atom unfolds: no recurrence, or a known lag, or asked for here."""
    name, places = atom
    if self.algebra.cut(name) and not _constant_lag(self, atom) and not self.unfold(atom):
        return False
    if ":" in name or not self.algebra.needs_position(name):
        return True
    return _from_zero(self, term, places[0])


def _constant_lag(self: Normalizer, atom: Atom) -> bool:
    """Tell whether a total derivative spans a known number of positions."""
    name, places = atom
    if not name.startswith("d:"):
        return False
    left, right = (self.algebra.system.tensors[n].dims for n in name[2:].split("/"))
    if not (left and right and left[0].ordered and right[0].ordered):
        return False
    (t, m), (s, n) = places[0], places[len(left)]
    return t == s and 0 <= m - n <= MAX_LAG


def _expand_inverse(self: Normalizer, term: Term, atom: Atom, body: list[Term]) -> list[Term]:
    """Replace a negative power of an atom by the named inverse of its definition."""
    rest = term.copy()
    rest.times(atom)
    out = (multiply(rest, renamed(f)) for f in inverse(self, body))
    return [t for t in out if t is not None]


def unfold_products(self: Normalizer, term: Term) -> list[Term] | None:
    """Peel one factor off an ordered product of known length, or where asked."""
    for atom, power in term.factors.items():
        name, places = atom
        if name[:2] not in ("P:", "Q:") or power != 1:
            continue
        (a, m), (b, n) = places[2:4] if name[0] == "P" else (places[3], places[2])
        if a == b and n - m + 1 <= MAX_LAG:
            return self.expand(term, atom, _identity(places) if n < m else _peeled(atom, 2))
        for end in (2, 3):
            if self.unfold((name, (places[end],))):
                return self.expand(term, atom, [*_empty_case(atom), *_peeled(atom, end)])
    return None


def _identity(places: tuple[Ix, ...]) -> list[Term]:
    """Return delta(row, col); a scalar product is one."""
    row, col = places[:2]
    term = Term(Fraction(1))
    if row != col:
        term.times(("δ", (row, col)))
    return [term]


def _empty_case(atom: Atom) -> list[Term]:
    """Return the identity where the range is empty (first and last cross by exactly one)."""
    (term,) = _identity(atom[1])
    low, high = (atom[1][2], atom[1][3]) if atom[0][0] == "P" else (atom[1][3], atom[1][2])
    after = (high[0], high[1] + 1)
    return [term] if term.guard(low, after) and term.guard(after, low) else []


def _peeled(atom: Atom, end: int) -> list[Term]:
    """Return one end's factor times the rest of the product, where the range is not empty.

    Slot 2 is the leftmost factor, at position ``first`` both ascending (P) and descending (Q);
    slot 3 the rightmost, at ``last``.
    """
    name, (row, col, first, last, *extra) = atom
    named, middle = NAMED[name], fresh()
    dim = name.split(":")[2]  # the size of the matrices, "" for scalars
    step = 1 if name[0] == "P" else -1
    low, high = (first, last) if step == 1 else (last, first)
    inner: Ix = (middle, 0) if dim else row
    if end == 2:
        outer, rest_places = (row, inner), (inner, col, (first[0], first[1] + step), last)
    else:
        outer, rest_places = (inner, col), (row, inner, first, (last[0], last[1] - step))
    out = []
    for body in map(renamed, named.terms):
        at = atom[1][end]
        params = {f"?{n}": ix for n, ix in enumerate(extra)}
        factor = substitute(body, {"?r": outer[0], "?c": outer[1], "?k": at, **params})
        if factor is None or not factor.guard(low, high):
            continue
        factor.times((name, (*rest_places, *extra)))
        if dim:
            factor.bound[middle] = dim
        out.append(factor)
    return out


def onehot_rows(self: Normalizer, term: Term) -> list[Term] | None:
    """Y_c Y_d = delta(c, d) Y_c and sum_c Y_c = 1 for a one-hot row, or a permutation's column."""
    seen: dict[tuple[str, int, tuple[Ix, ...]], Ix] = {}
    for atom, power in term.factors.items():
        tensor = self.algebra.system.tensors.get(atom[0])
        if tensor is None or not tensor.onehot or power < 0:
            continue
        rest = term.copy()
        if power > 1:
            rest.factors[atom] = 1
            return [rest]
        for slot in (-1, -2) if tensor.permutation else (-1,):
            places = list(atom[1])
            here = places.pop(slot)
            other = seen.setdefault((atom[0], slot, tuple(places)), here)
            if other != here:
                del rest.factors[atom]
                if tensor.dims[slot].ordered:
                    kept = rest.guard(other, here) and rest.guard(here, other)
                    return [rest] if kept else []
                rest.times(("δ", (other, here)))
                return [rest]
            if _stands_alone(term, atom, here[0], tensor.dims[slot].ordered):
                del rest.factors[atom], rest.bound[here[0]]
                return [rest]
    return None


def _stands_alone(term: Term, atom: Atom, base: str, ordered: bool) -> bool:
    """Tell whether a bound index runs over its whole axis under this atom alone.

    Over positions a range may be part of the axis: then nothing is known.
    """
    if base not in term.bound or ordered:
        return False
    others = [b for a in term.factors if a != atom for b, _ in a[1]]
    return base not in others and [b for b, _ in atom[1]].count(base) == 1


def merge_powers(self: Normalizer, term: Term) -> list[Term] | None:
    """w^(lag + c) = w^c w^lag, w^0 = 1, and w^(n-m) w^(m-s) = w^(n-s)."""
    seen: list[tuple[str, tuple[Ix, ...], Ix, Ix]] = []
    for atom, power in term.factors.items():
        if not atom[0].startswith("^:"):
            continue
        *index, (a, m), (b, n) = atom[1]
        base: Atom = (atom[0][2:], tuple(index))
        rest = term.copy()
        del rest.factors[atom]
        if a == b or m != n or m:
            rest.times(base, (m - n) * power)
            if a != b:
                rest.times((atom[0], (*index, (a, 0), (b, 0))), power)
            return [rest]
        for other, where, c, d in seen:
            if (other, where) == base and power == 1 and (d == (a, 0) or c == (b, 0)):
                first, last = (c, (b, 0)) if d == (a, 0) else ((a, 0), d)
                rest.times((atom[0], (*index, c, d)), -1)
                rest.times((atom[0], (*index, first, last)))
                return [rest]
        if power == 1:
            seen.append((*base, (a, 0), (b, 0)))
    return None


def index_values(self: Normalizer, term: Term) -> list[Term] | None:
    """An index used as a number: i + c is the number i plus c; a constant is a coefficient."""
    for atom, power in term.factors.items():
        if atom[0] != "@" or power < 0:
            continue
        ((base, offset),) = atom[1]
        if base and not base.startswith("#") and not offset:
            continue
        rest = term.copy()
        rest.times(atom, -1)
        parts = [rest.copy()]
        parts[0].coef *= offset
        if base:
            rest.times((base, ()) if base.startswith("#") else ("@", ((base, 0),)))
            parts.append(rest)
        return parts
    return None


RULES: tuple[Rule, ...] = (
    contract_deltas,
    apply_rewrites,
    zero_initial,
    rewrite_inside,
    unfold_definitions,
    open_constant_units,
    open_named_values,
    open_short_sums,
    reduce_inverses,
    unfold_products,
    onehot_rows,
    merge_powers,
    reduce_roots,
    reduce_steps,
    turn_on,
    reduce_cosines,
    index_values,
    anchor_positions,
    close_guards,
    settle_guards,
    count_unused,
    fold_denominators,
)
