"""Proved and assumed statements as rewrites of their left side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from derive.algebra import Algebra
from derive.equation import Equation, System
from derive.errors import DeriveError
from derive.index import Expr
from derive.lower import lower
from derive.nodes import entry_indices, kind, tensor_name, walk
from derive.normal import Rewrite
from derive.ranges import context_edges
from derive.statement import Identity
from derive.terms import Ix, substitute


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


def lemmas_at(
    algebra: Algebra, using: Iterable[Identity], fixed: frozenset[str], at: Ix
) -> list[Rewrite]:
    """Return lemmas as rewrites at one place; one that speaks of no position has none there."""
    return [rewrite_of(algebra, u, fixed, True, at) for u in using if has_position(u)]


def restated(identity: Identity, using: tuple[Identity, ...]) -> Identity:
    """Put lemmas in the place of the equations of the states whose values they say.

    A proved ``X[t,i] = ...`` gives X the value that its equation gives it, so a statement about
    values holds in the one system where it holds in the other. Derivatives are read off equations:
    a statement that has one is left alone.
    """
    sides = (identity.lhs, identity.rhs)
    if any(kind(n) == "Total" for side in sides for n in walk(side)):
        return identity
    system = identity.system
    for lemma in using:
        system = _restated(system, lemma)
    return replace(identity, system=system)


def _restated(system: System, lemma: Identity) -> System:
    """Return the system with one equation replaced by a lemma, itself where it says none."""
    name, places = tensor_name(lemma.lhs), entry_indices(lemma.lhs)
    equation = system.by_name.get(str(name))
    every = [s for s, _ in lemma.free]
    whole = len(set(places)) == len(places) and set(places) == set(every)
    values = not any(kind(n) == "Total" for n in walk(lemma.rhs))
    if equation is None or not whole or lemma.conditions or lemma.relation != "=" or not values:
        return system
    if equation.tensor.first < 0:
        return system  # its initial values are given
    other = Equation(equation.tensor, tuple(places), lemma.rhs, lemma.text)
    equations = tuple(other if e is equation else e for e in system.equations)
    try:
        return replace(system, equations=equations)
    except DeriveError:
        return system  # it would read something that is computed later


def has_position(identity: Identity) -> bool:
    """Tell whether the left side is at a position that the statement leaves free."""
    return any(d.ordered and s in identity.lhs.free_symbols for s, d in identity.free)


def check_assumption(algebra: Algebra, text: str, name: str, places: tuple[Ix, ...]) -> None:
    """Refuse to assume a value that an equation computes: its derivative would stay another."""
    if name in algebra.system.random:
        raise DeriveError(f"an assumption cannot fix a random entry; {name} is random", text=text,
                          at=0, hint="assume its mean or its variance")  # fmt: skip
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
