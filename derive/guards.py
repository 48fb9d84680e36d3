"""Position guards: contradictions drop a term, ranges come to their standard place."""

from __future__ import annotations

from derive.normal import Normalizer, UndecidedError
from derive.terms import (
    Closure,
    Ix,
    Term,
    renamed,
    substitute,
)

MAX_PEEL = 64


def _from_zero(self: Normalizer, term: Term, place: Ix) -> bool:
    """Tell whether a position is known to be at least 0."""
    return place[1] >= 0 if place[0] == "" else self.closure(term).implies(("", 0), place)


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
