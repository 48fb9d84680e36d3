"""The rules of the normal form, in the order in which they are tried.

Each takes the normalizer and a term, and returns None where it does not apply, else the terms that
replace the term. Every rule is an identity that holds wherever its guards hold.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from derive.algebra import NAMED, fold_signature, lead_of
from derive.lower import inverse
from derive.nodes import kind
from derive.normal import Normalizer, UndecidedError
from derive.terms import (
    Atom,
    Closure,
    Ix,
    Term,
    canonical_key,
    fresh,
    multiply,
    renamed,
    substitute,
)

Rule = Callable[[Normalizer, Term], "list[Term] | None"]
MAX_PEEL, MAX_LAG = 64, 8


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
            if found is None:
                continue
            open_at = _open_conditions(self, term, rule.conditions, found)
            if open_at is None or (open_at and not _splits(term, open_at)):
                continue
            inside, outside = _split(term, open_at)
            body = [s for t in map(renamed, rule.terms) if (s := substitute(t, found)) is not None]
            return [*(self.expand(inside, atom, body) if inside else ()), *outside]
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


def open_named_values(self: Normalizer, term: Term) -> list[Term] | None:
    """The base of a symbolic power is named; standing alone it is what it names."""
    for atom, power in term.factors.items():
        if atom[0].startswith("val:") and power > 0:
            named = NAMED[atom[0]]
            mapping = dict(zip(named.params, atom[1], strict=True))
            parts = (substitute(renamed(t), mapping) for t in named.terms)
            return self.expand(term, atom, [p for p in parts if p is not None])
    return None


def reduce_inverses(self: Normalizer, term: Term) -> list[Term] | None:
    """Under 1/D with D = c a + rest, a is (D - rest)/c: a/D comes down to 1/c - rest/(c D)."""
    for atom, power in term.factors.items():
        if power >= 0 or not atom[0].startswith(("val:", "den:")):
            continue
        named = NAMED[atom[0]]
        mapping = dict(zip(named.params, atom[1], strict=True))
        lead = _single_atom(named.terms)
        if lead is None:
            continue
        ((place, _),) = lead.factors.items()
        moved = substitute(Term(Fraction(1), {place: 1}), mapping)
        if moved is None or term.factors.get(next(iter(moved.factors)), 0) < 1:
            continue
        whole = Term(1 / lead.coef, {atom: 1})
        rest = [substitute(renamed(t), mapping) for t in named.terms if t is not lead]
        for part in rest:
            if part is not None:
                part.coef /= -lead.coef
        body = [whole, *(p for p in rest if p is not None)]
        return self.expand(term, next(iter(moved.factors)), body)
    return None


def _single_atom(terms: tuple[Term, ...]) -> Term | None:
    """Return the term of a sum that is one atom, which no other term holds, if there is one."""
    found = []
    for term in terms:
        if term.bound or term.guards or list(term.factors.values()) != [1]:
            continue
        (atom,) = term.factors
        if not any(atom in t.factors for t in terms if t is not term):
            found.append(term)
    return max(found, key=canonical_key, default=None)


def open_constant_units(self: Normalizer, term: Term) -> list[Term] | None:
    """Write h[t,0] as tanh(z[t,0]): at a numbered unit the function's own name is canonical.

    A nonlinearity is named by its argument as a function of its free indices; a number in place of
    an index gives another function, which the equation's name does not stand for.
    """
    for atom, power in term.factors.items():
        name, places = atom
        equation = self.algebra.system.by_name.get(name)
        if equation is None or power < 1 or not self.algebra.names_nonlinearity(equation):
            continue
        dims = equation.tensor.dims
        if all(b or d.ordered for (b, _), d in zip(places, dims, strict=True)):
            continue
        if self.algebra.needs_position(name) and not _from_zero(self, term, places[0]):
            continue
        env = dict(zip(equation.indices, places, strict=True))
        body = self.algebra.lower(self.algebra, equation.rhs, env, {})
        if all(atom not in t.factors for t in body):
            return self.expand(term, atom, body)
    return None


def _from_zero(self: Normalizer, term: Term, place: Ix) -> bool:
    """Tell whether a position is known to be at least 0."""
    return place[1] >= 0 if place[0] == "" else self.closure(term).implies(("", 0), place)


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
    name, (row, col, first, last) = atom
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
        factor = substitute(body, {"?r": outer[0], "?c": outer[1], "?k": at})
        if factor is None or not factor.guard(low, high):
            continue
        factor.times((name, rest_places))
        if dim:
            factor.bound[middle] = dim
        out.append(factor)
    return out


def onehot_rows(self: Normalizer, term: Term) -> list[Term] | None:
    """Y_c Y_d = delta(c, d) Y_c and sum_c Y_c = 1 for a one-hot row."""
    rows: dict[tuple[str, tuple[Ix, ...]], Ix] = {}
    for atom, power in term.factors.items():
        tensor = self.algebra.system.tensors.get(atom[0])
        if tensor is None or not tensor.onehot or power < 0:
            continue
        row, last = (atom[0], atom[1][:-1]), atom[1][-1]
        rest = term.copy()
        if power > 1:
            rest.factors[atom] = 1
            return [rest]
        if row in rows:
            del rest.factors[atom]
            rest.times(("δ", (rows[row], last)))
            return [rest]
        rows[row] = last
        others = [b for a in term.factors if a != atom for b, _ in a[1]]
        if last[0] in term.bound and last[0] not in others:
            del rest.factors[atom], rest.bound[last[0]]
            return [rest]
    return None


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


def reduce_roots(self: Normalizer, term: Term) -> list[Term] | None:
    """s^2 is the argument of s = sqrt(argument): powers of a root come down to s^0 and s^1."""
    for atom, power in term.factors.items():
        if power in (0, 1):
            continue
        argument = _under_root(self, atom)
        if argument is None:
            continue
        rest = term.copy()
        rest.times(atom, (power % 2) - power)
        for part in [argument if power > 1 else inverse(self, argument)] * abs(power // 2):
            return _times_each(rest, part, atom, power)
    return None


def _times_each(rest: Term, part: list[Term], atom: Atom, power: int) -> list[Term]:
    """Multiply by one argument (or its inverse); the powers still to reduce stay on the root."""
    left = abs(power // 2) - 1
    rest.times(atom, 2 * left if power > 1 else -2 * left)
    out = (multiply(rest, renamed(t)) for t in part)
    return [t for t in out if t is not None]


def _under_root(self: Normalizer, atom: Atom) -> list[Term] | None:
    """Return the argument of a root, None for other atoms."""
    name, places = atom
    if name.startswith("sqrt:"):
        named = NAMED[name]
        mapping = dict(zip(named.params, places, strict=True))
        moved = (substitute(renamed(t), mapping) for t in named.terms)
        return [t for t in moved if t is not None]
    equation = self.algebra.system.by_name.get(name)
    if equation is None or kind(equation.rhs) != "sqrt" or self.algebra.needs_position(name):
        return None
    env = dict(zip(equation.indices, places, strict=True))
    return self.algebra.lower(self.algebra, equation.rhs.args[0], env, {})


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


def close_guards(self: Normalizer, term: Term) -> list[Term] | None:
    """Drop contradictory terms; substitute positions that the guards make equal."""
    if not _has_positions(self, term):
        return None
    closure = self.closure(term)
    if not closure.consistent:
        return []
    for a, b, c in closure.equalities():
        moved = _equal(self, term, a, b, c)
        if moved is not None:
            return moved
    return None


def _has_positions(self: Normalizer, term: Term) -> bool:
    """Tell whether guards, pins, bound positions or supports matter for a term."""
    return bool(
        term.guards
        or term.pinned
        or any(self.ordered(term, n) for n in term.bound)
        or any(":" in name for name, _ in term.factors)
    )


def _equal(self: Normalizer, term: Term, a: str, b: str, c: int) -> list[Term] | None:
    """Use a = b + c: replace a bound name, or write the later free name by the earlier one."""
    if a in term.bound or b in term.bound:
        name, target = (a, (b, c)) if a in term.bound else (b, (a, -c))
        moved = substitute(term, {name: target})
        return [moved] if moved is not None else []
    if b in ("",) or (b.startswith("#") and a):
        name, target = a, (b, c)
    else:
        name, target = b, (a, -c)
    known = self.context.bound(a, b) == c and self.context.bound(b, a) == -c
    used = any(base == name for _, places in term.factors for base, _ in places) or any(
        name in pair for pair in term.guards
    )
    if not used and (known or name in term.pinned):
        return None
    moved = substitute(term, {name: target})
    if moved is None:
        return []
    moved.pinned = dict(term.pinned)
    if not known:
        moved.pinned[name] = target
    return [moved]


def anchor_positions(self: Normalizer, term: Term) -> list[Term] | None:
    """Shift each bound position so that its least offset among the atoms is 0."""
    for name in term.bound:
        if not self.ordered(term, name):
            continue
        low = min((o for _, places in term.factors for b, o in places if b == name), default=0)
        if low:
            twin = renamed(term)
            old = list(twin.bound)[list(term.bound).index(name)]
            dim = twin.bound[old]
            moved = substitute(twin, {old: (old + "a", -low)})
            if moved is None:
                return []
            moved.bound[old + "a"] = dim
            return [moved]
    return None


def settle_guards(self: Normalizer, term: Term) -> list[Term] | None:
    """Drop implied guards; peel the others to their standard place.

    [a - b <= c] differs from the standard [a - b <= s] by the terms with a - b = k between: these
    are the boundary terms. Where a support bounds a - b, the guard goes altogether.
    """
    if not term.guards:
        return None
    base = self.closure(term, guards=False)
    # first what the supports bound: a guard that only other guards imply must not go before them
    for pair, c in sorted(term.guards.items()):
        limit = base.bound(*pair)
        if limit is not None:
            return _peeled_to(_spelled_out(self, term, pair, base), pair, c, limit, False)
    for pair, c in sorted(term.guards.items()):
        implied = self.closure(term, without=pair).bound(*pair)
        if implied is not None and implied <= c:
            rest = term.copy()
            del rest.guards[pair]
            return [rest]
    for pair, c in sorted(term.guards.items()):
        if c != _standard(pair):
            return _peeled_to(term, pair, c, _standard(pair), True)
    return None


def _spelled_out(self: Normalizer, term: Term, pair: tuple[str, str], base: Closure) -> Term:
    """Return a term with the guards on bound positions that follow from one guard made explicit.

    That guard is about to go; what it implied of positions that no support bounds must not go
    with it.
    """
    full, less = self.closure(term), self.closure(term, without=pair)
    out = term.copy()
    for a, row in full.best.items():
        for b, c in row.items():
            loose = a != b and base.bound(a, b) is None
            if (a, b) != pair and loose and (a in term.bound or b in term.bound):
                weaker = less.bound(a, b)
                if weaker is None or weaker > c:
                    out.guards[a, b] = min(c, out.guards.get((a, b), c))
    return out


def _peeled_to(term: Term, pair: tuple[str, str], c: int, standard: int, keep: bool) -> list[Term]:
    """Return a term with one guard moved to its standard place, and the boundary terms."""
    if c > standard and not keep:
        c = standard  # the support implies it
    if abs(c - standard) > MAX_PEEL:
        raise UndecidedError(f"a range reaches {abs(c - standard)} positions past its place")
    rest = term.copy()
    del rest.guards[pair]
    return _peel(rest, pair, c, standard, keep)


def _standard(pair: tuple[str, str]) -> int:
    """Return the standard place of a guard: 0 <= t, t <= T-1, s <= t."""
    return -1 if pair[1].startswith("#") else 0


def _peel(rest: Term, pair: tuple[str, str], c: int, standard: int, keep: bool) -> list[Term]:
    """Return the guard at its standard place plus or minus the terms between."""
    (a, b), sign = pair, 1 if c > standard else -1
    main = rest.copy()
    if keep:
        main.guards[pair] = standard
    out = [main]
    for k in range(min(c, standard) + 1, max(c, standard) + 1):
        edge = rest.copy()
        edge.coef *= sign
        if edge.guard((a, 0), (b, k)) and edge.guard((b, k), (a, 0)):
            out.append(edge)
    return out


def count_unused(self: Normalizer, term: Term) -> list[Term] | None:
    """A bound index that nothing reads becomes its number of values."""
    used = {b for _, places in term.factors for b, _ in places}
    for name, dim in term.bound.items():
        if name in used:
            continue
        rest = term.copy()
        del rest.bound[name]
        if not self.ordered(term, name):
            rest.times(("#" + dim, ()))
            return [rest]
        counted = _count_range(self, rest, name)
        if counted is not None:
            return counted
    return None


def _count_range(self: Normalizer, rest: Term, name: str) -> list[Term] | None:
    """Return last - first + 1 copies of a term, for a position with one guard at each end."""
    lows = [(a, c) for (a, b), c in rest.guards.items() if b == name]
    highs = [(b, c) for (a, b), c in rest.guards.items() if a == name]
    if len(lows) != 1 or len(highs) != 1:
        return None
    (a, c), (b, d) = lows[0], highs[0]
    del rest.guards[a, name], rest.guards[name, b]
    closure: Closure = self.closure(rest)
    if a != b and not closure.implies((a, -c), (b, d + 1)):
        return None
    out = []
    for base, sign in ((b, 1), (a, -1)):
        part = rest.copy()
        part.coef *= sign
        part.times(("@", ((base, 0),)))
        out.append(part)
    rest.coef *= d + c + 1
    return [*out, rest]


def fold_denominators(self: Normalizer, term: Term) -> list[Term] | None:
    """A sum that is the leading term of a named denominator becomes the denominator minus the rest.

    It must be the whole sum: the same factors, the same guards, nothing else reads its index.
    """
    for name in term.bound:
        inside = {a: p for a, p in term.factors.items() if any(b == name for b, _ in a[1])}
        if not inside:
            continue
        guards = {pair: c for pair, c in term.guards.items() if name in pair}
        signature = fold_signature(Term(Fraction(1), inside))
        for den in self.algebra.folds.get(signature, ()):
            replaced = _fold(term, name, inside, guards, den)
            if replaced is not None:
                return replaced
    return None


def _fold(term: Term, bound: str, inside: dict[Atom, int], guards: dict[tuple[str, str], int],
          den: str) -> list[Term] | None:  # fmt: skip
    """Fold one sum into one denominator, if it matches exactly."""
    named = NAMED[den]
    lead = lead_of(named.terms)
    if lead is None:
        return None
    (pattern_bound,) = lead.bound
    found = _match(list(lead.factors.items()), list(inside.items()), {pattern_bound: (bound, 0)})
    if found is None or found[pattern_bound] != (bound, 0) or set(named.params) - set(found):
        return None
    expected = {}
    for (a, b), c in lead.guards.items():
        (x, m), (y, n) = found.get(a, (a, 0)), found.get(b, (b, 0))
        expected[x, y] = c + n - m
    if expected != guards or term.bound[bound] != lead.bound[pattern_bound]:
        return None
    rest = term.copy()
    del rest.bound[bound]
    rest.coef /= lead.coef
    rest.factors = {a: p for a, p in rest.factors.items() if a not in inside}
    rest.guards = {pair: c for pair, c in rest.guards.items() if bound not in pair}
    place = tuple(found[p] for p in named.params)
    out = []
    whole = rest.copy()
    whole.times((den, place))
    out.append(whole)
    for other in named.terms:
        if other is not lead:
            moved = substitute(renamed(other), found)
            product = multiply(rest, moved) if moved is not None else None
            if product is not None:
                product.coef = -product.coef
                out.append(product)
    return out


def _match(pattern: list[tuple[Atom, int]], target: list[tuple[Atom, int]],
           found: dict[str, Ix]) -> dict[str, Ix] | None:  # fmt: skip
    """Match factors one to one; placeholders ``?i`` stand for any index."""
    if not pattern:
        return found if not target else None
    (name, places), power = pattern[0]
    for i, ((other, at), p) in enumerate(target):
        if other != name or p != power:
            continue
        trial = dict(found)
        good = all(
            trial.setdefault(b, (x, n - o)) == (x, n - o)
            if b.startswith("?") or b in found
            else (b, o) == (x, n)
            for (b, o), (x, n) in zip(places, at, strict=True)
        )
        rest = _match(pattern[1:], target[:i] + target[i + 1 :], trial) if good else None
        if rest is not None:
            return rest
    return None


RULES: tuple[Rule, ...] = (
    contract_deltas,
    apply_rewrites,
    unfold_definitions,
    open_constant_units,
    open_named_values,
    reduce_inverses,
    unfold_products,
    onehot_rows,
    merge_powers,
    reduce_roots,
    index_values,
    anchor_positions,
    close_guards,
    settle_guards,
    count_unused,
    fold_denominators,
)
