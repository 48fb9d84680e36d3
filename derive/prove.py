"""Proofs for all sizes: identity, support, induction. Small, trusted, tested with false claims.

A claim is proved when the difference of its sides has the empty normal form, or when an induction
over one position has an empty base and an empty step. Anything else is not proved (which is not the
same as false: see `derive.refute`).
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable

from derive.algebra import Algebra
from derive.certificate import certify
from derive.denominators import written_denominators
from derive.engine import algebra_of
from derive.expect import computed_from
from derive.facts import Fact, all_assumed, signs_of
from derive.index import Expr
from derive.kinks import Case, cases_of, kinks
from derive.lemmas import lemmas_at, restated, rewrite_of
from derive.lower import lower
from derive.nodes import kind, tensor_name, walk
from derive.normal import MAX_TERMS, NormalForm, Normalizer, Rewrite, UndecidedError, limited
from derive.proof import Proof
from derive.ranges import check_ranges, context_edges
from derive.statement import Identity, read_statement
from derive.support import Edges
from derive.terms import Atom, Closure, Ix, Term, renamed
from derive.views import breadth, unrelated, views

SHORT_TERMS, MANY_NAMES = 1_000, 12
"""Terms that a look at a part of a system may take; from how many names on it comes first."""
MAX_ROUNDS, MAX_CASES = 3, 5
MAX_SECONDS = 2.0
"""Time after which a search for certificates and cases goes no further."""


def prove(
    identity: Identity, assumes: tuple[str, ...] = (), using: tuple[Identity, ...] = ()
) -> Proof:
    """Try to prove a statement at every size.

    Args:
        identity: The statement.
        assumes: Equations that may be used (``h[-1,r] = 0``).
        using: Statements that are proved already, usable in an induction step.

    Raises:
        DeriveError: If it reads outside a tensor's positions, or has no instance.
    """
    key = (identity.system, identity.lhs, identity.rhs, identity.relation, identity.free,
           identity.conditions, assumes, tuple(u.text for u in using))  # fmt: skip
    if key not in _proofs:
        check_ranges(identity)
        for text in assumes:
            check_ranges(read_statement(identity.system, text))
        _proofs[key] = _prove(identity, assumes, using)
    return _proofs[key]


# statements that differ in their text only are proved once a process
_proofs: dict[tuple[object, ...], Proof] = {}


def _prove(identity: Identity, assumes: tuple[str, ...], using: tuple[Identity, ...]) -> Proof:
    """Try each kind of proof in turn."""
    start = time.perf_counter()
    wide = breadth(identity) > MANY_NAMES
    if wide:
        with limited(MAX_SECONDS):
            part = _in_part(restated(identity, using), assumes, using)
        if part is not None:
            return part
    stated = tuple(read_statement(identity.system, text) for text in assumes)
    large = len(identity.system.equations) > MANY_NAMES
    try:
        free = unrelated(identity, (*stated, *using)) if large else frozenset()
        with limited(2 * MAX_SECONDS if wide else float("inf")):
            attempt = _attempt(identity, assumes, using, free)
    except UndecidedError as gave_up:
        return Proof(False, "", gave_up.message, 0, time.perf_counter() - start, ())
    for method in attempt.methods():
        try:
            # an equation about little is worth waiting for: its terms are bounded
            patient = identity.relation == "=" and not wide
            with limited(float("inf") if patient else MAX_SECONDS):
                found = method()
        except UndecidedError as gave_up:
            found = None
            attempt.reason = gave_up.message
        if found is not None:
            kind, detail = found
            return Proof(True, kind, detail, attempt.size, time.perf_counter() - start,
                         tuple(sorted(attempt.rules)))  # fmt: skip
    reason = attempt.reason or f"{attempt.residual} terms of the difference remain"
    return Proof(False, "", reason, attempt.size, time.perf_counter() - start,
                 tuple(sorted(attempt.rules)), attempt.residual)  # fmt: skip


def _in_part(
    identity: Identity, assumes: tuple[str, ...], using: tuple[Identity, ...]
) -> Proof | None:
    """Try to prove a statement about a large system with most of its names left free."""
    start = time.perf_counter()
    for free in views(identity, tuple(u for u in using if u.relation == "=")):
        try:
            with limited(MAX_SECONDS / 4):
                attempt = _attempt(identity, assumes, using, free)
                attempt.limit = SHORT_TERMS
                found = attempt.quickly() or attempt.by_lemmas()
        except UndecidedError:
            continue
        if found is not None:
            kind, detail = found
            return Proof(True, kind, detail, attempt.size, time.perf_counter() - start,
                         tuple(sorted(attempt.rules)))  # fmt: skip
    return None


def _attempt(identity: Identity, assumes: tuple[str, ...], using: tuple[Identity, ...],
             free: frozenset[str] = frozenset()) -> _Attempt:  # fmt: skip
    """Return the attempt at an equation or an inequality."""
    if identity.relation == "=":
        return _Attempt(identity, assumes, using, free)
    from derive.inequality import InequalityAttempt

    return InequalityAttempt(identity, assumes, using, free)


class _Attempt:
    """One statement in its context, with its assumptions as rewrites."""

    def __init__(self, identity: Identity, assumes: tuple[str, ...], using: tuple[Identity, ...],
                 free: frozenset[str] = frozenset()):  # fmt: skip
        self.identity, self.limit = identity, MAX_TERMS
        self.edges: Edges = context_edges(identity)
        # an assumption speaks of the claim's own index where it uses its name (keep[b] = 0)
        self.fixed = frozenset(s.name for s, d in identity.free if d.ordered)
        stated = [read_statement(identity.system, text) for text in assumes]
        self.algebra: Algebra = algebra_of(identity.system, signs_of(stated, self.fixed), free)
        self.assumed = tuple(rewrite_of(self.algebra, a, self.fixed)
                             for a in stated if a.relation == "=")  # fmt: skip
        self.facts: tuple[Fact, ...] = tuple(
            fact for a in stated if a.relation != "="
            for fact in all_assumed(self.algebra, a, identity)
        )  # fmt: skip
        unequal = bool(self.facts) or identity.relation != "="
        self.nonzero = written_denominators(self.algebra, identity) if unequal else frozenset()
        check_power_bases(identity, stated)
        self.assumed_at = {s.name for a in stated for s, _ in a.free}
        self.using = tuple(u for u in using if u.relation == "=")  # an inequality rewrites nothing
        self.env: dict[Expr, Ix] = {s: (s.name, 0) for s, _ in identity.free}
        self.rules: set[str] = set()
        self.size, self.residual, self.reason = 0, 0, ""
        self.left: NormalForm = {}
        self.end = time.perf_counter() + MAX_SECONDS

    def methods(self) -> tuple[Callable[[], tuple[str, str] | None], ...]:
        """Return the kinds of proof in the order in which they are tried."""
        return (self.by_identity, self.by_induction, self.by_other_names, self.by_lemmas,
                self.by_cases)  # fmt: skip

    def difference(self, env: dict[Expr, Ix], edges: Edges) -> list[Term]:
        """Lower lhs - rhs."""
        guards = dict(sorted(edges, key=lambda e: -e[1]))
        left = lower(self.algebra, self.identity.lhs, env, guards)
        right = lower(self.algebra, self.identity.rhs, env, guards)
        for term in right:
            term.coef = -term.coef
        self.size = max(self.size, len(left) + len(right))
        return [*left, *right]

    def reduce(self, env: dict[Expr, Ix], edges: Edges, rewrites: Iterable[Rewrite] = (),
               unfold: Callable[[Atom], bool] | None = None) -> NormalForm:  # fmt: skip
        """Return the normal form of the difference in a context."""
        normalizer = Normalizer(self.algebra, edges, (*self.assumed, *rewrites), unfold,
                                limit=self.limit)  # fmt: skip
        folds = sum(map(len, self.algebra.folds.values()))
        self.normalizer = normalizer
        out = normalizer.normal(self.difference(env, edges))
        if out and sum(map(len, self.algebra.folds.values())) != folds:
            # a denominator was named on the way: fold its sum everywhere
            out = normalizer.normal(out.values())
        self.rules |= normalizer.rules_used
        return out

    # identity

    def by_identity(self) -> tuple[str, str] | None:
        """Unfold definitions; then the recurrences at the outermost positions, a few times."""
        return self.rounds(())

    def by_other_names(self) -> tuple[str, str] | None:
        """As `by_identity`, keeping of each cycle of adjoints the names that the statement uses."""
        nodes = (n for side in (self.identity.lhs, self.identity.rhs) for n in walk(side))
        named = [n for n in nodes if kind(n) == "Total" and tensor_name(n.args[0]) == "L"]
        wanted = frozenset(f"g:{tensor_name(n.args[1])}" for n in named)
        if all(self.algebra.cut(n) for n in wanted):
            return None
        other, reads = self.algebra.preferring(wanted), map(self.algebra.family, wanted)
        if all(other.cut(n) == self.algebra.cut(n) for names in reads for n in names):
            return None  # nothing would unfold in another way
        first, self.algebra = self.algebra, other
        found = self.by_identity()
        self.algebra = first if found is None else self.algebra
        return found

    def by_lemmas(self) -> tuple[str, str] | None:
        """As `by_identity`, with the proved statements as rewrites anywhere."""
        lemmas = tuple(rewrite_of(self.algebra, u, self.fixed, lemma=True) for u in self.using)
        return self.rounds(lemmas) if lemmas else None

    def rounds(self, rewrites: tuple[Rewrite, ...]) -> tuple[str, str] | None:
        """Reduce, unfolding more recurrences each round."""
        chosen: set[Atom] = set()
        for _ in range(MAX_ROUNDS):
            left = self.reduce(self.env, self.edges, rewrites, chosen.__contains__)
            self.residual, self.left = len(left), left
            found = self.settled(left)
            if found is not None:
                return found
            more = self.outermost(left) - chosen
            if not more:
                return None
            chosen |= more
        return None

    def settled(self, left: NormalForm) -> tuple[str, str] | None:
        """Tell how a normal form of the difference proves the statement, if it does."""
        if left:
            return None
        zero = self.identity.rhs == 0 and "close_guards" in self.rules
        detail = f"the difference of the sides cancels to nothing ({self.size} terms)"
        return "support" if zero else "identity", detail

    def quickly(self) -> tuple[str, str] | None:
        """Try what takes little time."""
        return self.by_identity()

    # case split

    def by_cases(self, depth: int = MAX_CASES) -> tuple[str, str] | None:
        """Split on the sign of what stands under an absolute value or a step, at free indices."""
        cases = self.cases(self.left) if depth and time.perf_counter() < self.end else []
        if not cases:
            return self.by_identity() if depth < MAX_CASES else None
        for case in cases:
            branch = copy.copy(self)
            branch.assumed = (*self.assumed, case.rewrite)
            branch.facts = (*self.facts, case.fact)
            found = branch.quickly() or branch.by_cases(depth - 1)
            self.rules |= branch.rules
            if found is None:
                self.reason = f"undecided in the case {case.fact.why}"
                return None
        return "case split", " and ".join(case.fact.why for case in cases)

    def cases(self, left: NormalForm) -> list[Case]:
        """Return the cases of one atom of a normal form; one alone where what is known decides."""
        found = [b for a in kinks(self.algebra, left.values()) if (b := cases_of(self.algebra, a))]
        for both in found:
            sure = [c for c in both if self.follows(c.fact)]
            if sure:
                return sure[:1]
        return found[0] if found else []

    def follows(self, fact: Fact) -> bool:
        """Tell whether a fact has a certificate from what is known."""
        normalizer = Normalizer(self.algebra, self.edges, self.assumed)
        form = normalizer.normal(renamed(t) for t in fact.terms)
        found = certify(normalizer, form, self.facts, fact.strict, self.end, 1, self.nonzero)
        return found is not None

    def outermost(self, terms: NormalForm) -> set[Atom]:
        """Return the recurrent atoms to unfold next: latest forward, earliest adjoint."""
        best: dict[tuple[str, str], int] = {}
        atoms = [a for t in terms.values() for a in t.factors if self.recurrent(a)]
        for name, places in atoms:
            base, offset = places[0]
            sign = -1 if name.startswith("g:") else 1
            group = (name, base)
            best[group] = max(best.get(group, sign * offset), sign * offset)
        return {
            (name, places)
            for name, places in atoms
            if best[name, places[0][0]] == places[0][1] * (-1 if name.startswith("g:") else 1)
        }

    def recurrent(self, atom: Atom) -> bool:
        """Tell whether an atom at a free position has a recurrence that could be unfolded."""
        name, places = atom
        known = ":" in name or name in self.algebra.system.tensors
        return (
            known
            and bool(places)
            and not places[0][0].startswith("~")
            and self.algebra.definition(name) is not None
            and self.algebra.cut(name)
        )

    # induction

    def by_induction(self) -> tuple[str, str] | None:
        """Try each free position, upward and downward."""
        pattern = lower(self.algebra, self.identity.lhs, self.env, {})
        if len(pattern) != 1 or not is_product(pattern[0]):
            return None
        every = [b for a in pattern[0].factors for b in {b for b, _ in a[1]}]
        # of a product one factor alone is followed from position to position
        carried = {b for b in every if every.count(b) == 1}
        for symbol, dim in self.identity.free:
            # an assumption about the claim's own t says nothing of t-1: no induction over t then
            if not dim.ordered or symbol.name not in carried - self.assumed_at:
                continue
            for direction in (1, -1):
                for start in self.starts(symbol.name, direction):
                    if self.base_holds(symbol, start) and self.step_holds(symbol, start, direction):
                        way = "upward" if direction == 1 else "downward"
                        return "induction", f"over {symbol.name}, {way} from {_show(start)}"
        return None

    def starts(self, name: str, direction: int) -> list[Ix]:
        """Return the bounds of a position from which an induction can start, closest first."""
        pairs = [(a, b, c) for (a, b), c in self.edges]
        if direction == 1:
            found = [(a, -c) for a, b, c in pairs if b == name]
        else:
            found = [(b, c) for a, b, c in pairs if a == name]
        return list(reversed(dict.fromkeys(found)))

    def base_holds(self, symbol: Expr, start: Ix) -> bool:
        """(a) The context at the start is consistent, and the claim there cancels."""
        env = {**self.env, symbol: start}
        edges = move(self.edges, symbol.name, start)
        if not Closure([*self.algebra.edges(), *edges]).consistent:
            return False
        return not self.reduce(env, edges, unfold=lambda a: bool(a[1]) and a[1][0] == start)

    def step_holds(self, symbol: Expr, start: Ix, direction: int) -> bool:
        """(b) From the claim at exactly n the claim one further cancels, n anywhere from the start.

        The hypothesis rewrites only atoms at exactly n, and only where the context at n, for that
        very instance, follows from the term's own guards.
        """
        n, old, new = symbol.name, 0, direction
        edges = [*move(self.edges, n, (n, new))]
        edges += [((start[0], n), -start[1])] if direction == 1 else [((n, start[0]), start[1])]
        if not Closure([*self.algebra.edges(), *edges]).consistent:
            return False
        hypothesis = self.hypothesis(symbol, (n, old))
        lemmas = lemmas_at(self.algebra, self.using, self.fixed, (n, new))
        active = {(n, old), (n, new)} if direction == -1 else {(n, new)}
        left = self.reduce(
            {**self.env, symbol: (n, new)},
            edges,
            [hypothesis, *lemmas],
            lambda a: bool(a[1]) and a[1][0] in active,
        )
        self.residual = len(left)
        return not left

    def hypothesis(self, symbol: Expr, at: Ix) -> Rewrite:
        """Return the claim at one position as a rewrite of its left side."""
        env = {**self.env, symbol: at}
        edges = move(self.edges, symbol.name, at)
        (pattern,) = lower(self.algebra, self.identity.lhs, env, {})
        atoms = sorted(pattern.factors, key=lambda a: all(b != at[0] for b, _ in a[1]))
        (name, places), *beside = atoms
        right = lower(self.algebra, self.identity.rhs, env, dict(edges))
        # an index that the left side does not carry is fixed throughout the induction
        params = frozenset(b for b, _ in places) & {s.name for s, _ in self.identity.free} - {at[0]}
        conditions = [((a, 0), (b, c)) for (a, b), c in edges if {a, b} & (params | {at[0]})]
        return Rewrite(name, places, params, tuple(right), tuple(conditions), tuple(beside))


def is_product(term: Term) -> bool:
    """Tell whether a term is a product of entries and nothing else."""
    plain = not (term.bound or term.guards or term.pinned)
    return term.coef == 1 and plain and bool(term.factors) and set(term.factors.values()) == {1}


def check_power_bases(identity: Identity, stated: list[Identity]) -> None:
    """Refuse an assumed value of the base of a power of unknown length, unless it is not zero.

    Powers are taken apart as w^(a+c) = w^a w^c, which holds at w = 0 only as an identity in w.

    Raises:
        UndecidedError: Naming the base.
    """
    sides = (identity.lhs, identity.rhs)
    bases = [n.args[0] for side in sides for n in walk(side) if kind(n) == "Power"]
    if any(base == 0 for base in bases):
        raise UndecidedError("a power of zero of unknown length: it is 1 at length 0")
    names = {str(tensor_name(n)) for base in bases for n in walk(base)} - {"None"}
    computed = computed_from(identity.system)
    under = names.union(*(computed.get(n, frozenset()) for n in names))
    for assumed in stated:
        fixed = assumed.relation == "=" and str(tensor_name(assumed.lhs)) in under
        if fixed and not (assumed.rhs.is_Rational and assumed.rhs != 0):
            raise UndecidedError(f"{assumed.text!r} may make the base of a power zero")


def move(edges: Edges, name: str, to: Ix) -> Edges:
    """Substitute a position in a context."""
    out = []
    for (a, b), c in edges:
        (x, m) = to if a == name else (a, 0)
        (y, n) = to if b == name else (b, 0)
        out.append(((x, y), c + n - m))
    return out


def _show(ix: Ix) -> str:
    base = ix[0].lstrip("#")
    return (base + (f"{ix[1]:+d}" if ix[1] else "")) if base else str(ix[1])
