"""Proofs for all sizes: identity, support, induction. Small, trusted, tested with false claims.

A claim is proved when the difference of its sides has the empty normal form, or when an induction
over one position has an empty base and an empty step. Anything else is not proved (which is not the
same as false: see `derive.refute`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from derive.algebra import Algebra, Edges
from derive.calculus import adjoint_equations, tangent
from derive.engine import algebra_of
from derive.equation import System
from derive.errors import DeriveError
from derive.index import Expr
from derive.lower import lower
from derive.nodes import kind, tensor_name, walk
from derive.normal import NormalForm, Normalizer, Rewrite, UndecidedError
from derive.ranges import check_ranges, context_edges
from derive.statement import Identity, read_statement
from derive.terms import Atom, Closure, Ix, Term, substitute

MAX_ROUNDS = 3


@dataclass(frozen=True)
class Proof:
    """The outcome of an attempt.

    Args:
        proved: Whether the statement holds at every size.
        kind: ``identity``, ``support`` or ``induction``.
        detail: What was done, in words.
        terms: Number of terms of the difference before it cancelled.
        seconds: Wall time.
        rules: Names of the normal form's rules that were used.
        residual: How many terms are left if it is not proved.
    """

    proved: bool
    kind: str
    detail: str
    terms: int
    seconds: float
    rules: tuple[str, ...] = ()
    residual: int = 0


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
    key = (identity.system, identity.lhs, identity.rhs, identity.free, identity.conditions,
           assumes, tuple(u.text for u in using))  # fmt: skip
    if key not in _proofs:
        check_ranges(identity)
        _proofs[key] = _prove(identity, assumes, using)
    return _proofs[key]


# statements that differ in their text only are proved once a process
_proofs: dict[tuple[object, ...], Proof] = {}


def _prove(identity: Identity, assumes: tuple[str, ...], using: tuple[Identity, ...]) -> Proof:
    """Try each kind of proof in turn."""
    start = time.perf_counter()
    attempt = _Attempt(identity, assumes, using)
    methods = (attempt.by_identity, attempt.by_induction, attempt.by_other_names, attempt.by_lemmas)
    for method in methods:
        try:
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


class _Attempt:
    """One statement in its context, with its assumptions as rewrites."""

    def __init__(self, identity: Identity, assumes: tuple[str, ...], using: tuple[Identity, ...]):
        self.identity = identity
        self.algebra: Algebra = algebra_of(identity.system)
        self.edges: Edges = context_edges(identity)
        # an assumption speaks of the claim's own index where it uses its name (keep[b] = 0)
        self.fixed = frozenset(s.name for s, d in identity.free if d.ordered)
        self.assumed = tuple(
            rewrite_of(self.algebra, read_statement(identity.system, text), self.fixed)
            for text in assumes
        )
        self.assumed_at = {s.name for text in assumes
                           for s, _ in read_statement(identity.system, text).free}  # fmt: skip
        self.using = using
        self.env: dict[Expr, Ix] = {s: (s.name, 0) for s, _ in identity.free}
        self.rules: set[str] = set()
        self.size, self.residual, self.reason = 0, 0, ""

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
               unfold: Callable[[Atom], bool] = lambda _: False) -> NormalForm:  # fmt: skip
        """Return the normal form of the difference in a context."""
        normalizer = Normalizer(self.algebra, edges, (*self.assumed, *rewrites), unfold)
        folds = sum(map(len, self.algebra.folds.values()))
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
        first, self.algebra = self.algebra, self.algebra.preferring(wanted)
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
            self.residual = len(left)
            if not left:
                zero = self.identity.rhs == 0 and "close_guards" in self.rules
                kind = "support" if zero else "identity"
                return kind, f"the difference of the sides cancels to nothing ({self.size} terms)"
            more = self.outermost(left) - chosen
            if not more:
                return None
            chosen |= more
        return None

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
        if len(pattern) != 1 or list(pattern[0].factors.values()) != [1] or pattern[0].coef != 1:
            return None
        carried = {b for a in pattern[0].factors for b, _ in a[1]}
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
        lemmas = [rewrite_of(self.algebra, u, self.fixed, True, (n, new)) for u in self.using]
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
        ((name, places),) = pattern.factors
        right = lower(self.algebra, self.identity.rhs, env, dict(edges))
        # an index that the left side does not carry is fixed throughout the induction
        params = frozenset(b for b, _ in places) & {s.name for s, _ in self.identity.free} - {at[0]}
        conditions = [((a, 0), (b, c)) for (a, b), c in edges if {a, b} & (params | {at[0]})]
        return Rewrite(name, places, params, tuple(right), tuple(conditions))


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


def rewrite_of(
    algebra: Algebra,
    identity: Identity,
    fixed: frozenset[str],
    lemma: bool = False,
    exactly: Ix | None = None,
) -> Rewrite:
    """Turn a proved or assumed statement into a rewrite of its left side.

    Args:
        algebra: Of the system.
        identity: The statement.
        fixed: Position names of the claim. An assumption that uses one speaks of the claim's own
            index; a lemma does where its left side does not carry the name.
        lemma: Whether the statement is proved (for every index) rather than assumed.
        exactly: A place at which alone it is used (so that it is used finitely often): the last
            position index of its left side.

    Raises:
        DeriveError: If its left side is not one entry.
    """
    plain: dict[Expr, Ix] = {s: (s.name, 0) for s, _ in identity.free}
    pattern = lower(algebra, identity.lhs, plain, {})
    if len(pattern) != 1 or list(pattern[0].factors.values()) != [1] or pattern[0].coef != 1:
        raise DeriveError(f"an assumption rewrites one entry; found {identity.text!r}")
    ((name, places),) = pattern[0].factors
    if not lemma:
        check_assumption(algebra, identity.text, name, places)
    own = fixed - {b for b, _ in places} if lemma else fixed
    env: dict[Expr, Ix] = {
        s: (s.name if s.name in own else s.name + "=", 0) for s, _ in identity.free
    }
    places = tuple((_mark(b, env), o) for b, o in places)
    edges = [((_mark(a, env), _mark(b, env)), c) for (a, b), c in context_edges(identity)]
    right = lower(algebra, identity.rhs, env, dict(edges))
    params = frozenset(b for b, _ in env.values()) - own
    conditions = [((a, 0), (b, c)) for (a, b), c in edges if {a, b} & params]
    if exactly is None:
        return Rewrite(name, places, params, tuple(right), tuple(conditions))
    positions = [s.name + "=" for s, d in identity.free if d.ordered]
    last = next(b for b, _ in reversed(places) if b in positions)
    pinned = {last: exactly}

    def pin(ix: Ix) -> Ix:
        return (exactly[0], exactly[1] + ix[1]) if ix[0] == last else ix

    pinned_right = tuple(t for t in (substitute(t, pinned) for t in right) if t is not None)
    sides = tuple((pin(low), pin(high)) for low, high in conditions)
    return Rewrite(name, tuple(map(pin, places)), params - {last}, pinned_right, sides)


def check_assumption(algebra: Algebra, text: str, name: str, places: tuple[Ix, ...]) -> None:
    """Refuse to assume a value that an equation computes: its derivative would stay another."""
    computed = name in algebra.system.by_name or name in algebra.system.derived_by_name
    initial = bool(places) and places[0][0] == "" and places[0][1] < 0
    if computed and not initial:
        raise DeriveError(
            f"an assumption fixes a given entry or an adjoint; {name} is computed by an equation",
            text=text,
            at=0,
            hint="assume it of an input, a parameter, an initial state or a derivative g_X",
        )


def _mark(base: str, env: dict[Expr, Ix]) -> str:
    """Return the name that an environment gives to a free index."""
    return next((b for s, (b, _) in env.items() if s.name == base), base)


# The adjoint theorem


@lru_cache(maxsize=64)
def duality(system: System) -> Proof:
    """Check <g, J S> = <J^T g, S> for free adjoints g and tangents S: forward equals reverse.

    The left side comes from `tangent` (product rule), the right from `adjoint_equations` (uses and
    deltas): different code. By the adjoint theorem the derived adjoints are then dL/dX, for a
    causal single-assignment system, for every number of positions.
    """
    start = time.perf_counter()
    algebra = algebra_of(system)
    reached = {"L", *(e.tensor.name[2:] for e in adjoint_equations(system))}
    names = [e.tensor.name for e in system.equations if e.tensor.name in reached]
    left = sp.Add(*(_paired_tangent(system, name) for name in names))
    right = sp.Add(*(_paired_adjoint(system, i) for i in range(len(adjoint_equations(system)))))
    normalizer = Normalizer(algebra, [], frozen=True)
    terms = lower(algebra, left, {}, {})
    for term in lower(algebra, right, {}, {}):
        term.coef = -term.coef
        terms.append(term)
    rest = normalizer.normal(terms)
    seconds = time.perf_counter() - start
    if rest:
        detail = "tangent and adjoint equations disagree"
        return Proof(False, "duality", detail, len(terms), seconds, residual=len(rest))
    return Proof(True, "duality", "<g, J S> = <Jᵀ g, S> for free g and S", len(terms), seconds)


def _paired_tangent(system: System, name: str) -> Expr:
    """Return the sum over one equation of g_v times its tangent in free S."""
    equation = system.by_name[name]
    body = tangent(equation.rhs, lambda read: _free_tangent(system, read))
    if name != "L":
        body = sp.IndexedBase("g_" + name)[equation.indices] * body if equation.indices else (
            sp.Symbol("g_" + name, real=True) * body)  # fmt: skip
    for symbol, dim in zip(equation.indices, equation.tensor.dims, strict=True):
        body = sp.Sum(body, (symbol, 0, dim.symbol - 1))
    return body


def _paired_adjoint(system: System, place_: int) -> Expr:
    """Return the sum of S_X times the derived adjoint of X."""
    equation = adjoint_equations(system)[place_]
    name = equation.tensor.name[2:]
    entry = equation.tensor.at(*equation.indices)
    free = sp.IndexedBase("S_" + name)[entry.indices] if equation.indices else (
        sp.Symbol("S_" + name, real=True))  # fmt: skip
    body = free * equation.rhs
    for slot, (symbol, dim) in enumerate(zip(equation.indices, equation.tensor.dims, strict=True)):
        first = equation.tensor.first if slot == 0 else 0
        body = sp.Sum(body, (symbol, first, dim.symbol - 1))
    return body


def _free_tangent(system: System, read: Expr) -> Expr:
    """Return the free tangent entry S_X at a read; zero where the loss does not reach X."""
    name = str(tensor_name(read))
    reached = {e.tensor.name[2:] for e in adjoint_equations(system)}
    if name not in reached:
        return sp.Integer(0)
    if isinstance(read, sp.Indexed):
        return sp.IndexedBase("S_" + name)[tuple(read.indices)]
    return sp.Symbol("S_" + name, real=True)
