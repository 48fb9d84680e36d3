"""Expectation of polynomials in independent random entries, for all sizes at once.

By the moment-cumulant formula (Leonov & Shiryaev 1959) the mean of a product is the sum over the
partitions of its factors of products of joint cumulants, and of independent entries every joint
cumulant vanishes unless all of its factors are one entry. So each block of a partition is one
cumulant times the deltas that make its indices equal. Independence is enough: no distribution is
assumed, only the moments that a system declares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from derive.abstract import NAMED
from derive.algebra import Algebra
from derive.equation import Moments, System, moment_indices
from derive.index import Expr
from derive.naming import Frame
from derive.nodes import tensor_name
from derive.normal import UndecidedError
from derive.terms import Atom, Ix, Term, multiply, renamed

MAX_DEGREE = 6
"""Most random factors of a term: six have 203 partitions."""
ORDINALS = ("", "mean", "variance", "third", "fourth")


def expectation(frame: Frame, expr: Expr) -> list[Term]:
    """Return the expected value of an expression over the system's random tensors.

    Raises:
        UndecidedError: If it is no polynomial in random entries, or needs a moment that is not
            declared.
    """
    from derive.lower import lower_in

    inner = frame.normalizer().normal(lower_in(frame, expr))
    return [part for term in inner.values() for part in _of_term(frame, term)]


def _of_term(frame: Frame, term: Term) -> Iterator[Term]:
    """Yield the expected value of one term."""
    random = frame.algebra.system.random
    fixed, draws = term.copy(), list[Atom]()
    for atom, power in term.factors.items():
        if atom[0] not in random:
            check_fixed(frame.algebra, atom)
            continue
        if power < 0:
            raise UndecidedError(f"E(...) of 1/{atom[0]} does not follow from moments")
        del fixed.factors[atom]
        draws += [atom] * power
    if len(draws) > MAX_DEGREE:
        raise UndecidedError(f"E(...) of a product of {len(draws)} random entries; at most "
                             f"{MAX_DEGREE} are expanded")  # fmt: skip
    for blocks in partitions(draws):
        parts = [fixed]
        for block in blocks:
            pieces = _cumulant(frame, block)
            parts = [m for p in parts for q in pieces if (m := multiply(p, renamed(q))) is not None]
        yield from parts


def partitions(items: list[Atom]) -> Iterator[list[list[Atom]]]:
    """Yield the set partitions whose blocks hold entries of one tensor (others are zero)."""
    if not items:
        yield []
        return
    first, *rest = items
    for blocks in partitions(rest):
        yield [[first], *blocks]
        for i, block in enumerate(blocks):
            if block[0][0] == first[0]:
                yield [*blocks[:i], [first, *block], *blocks[i + 1 :]]


def _cumulant(frame: Frame, block: list[Atom]) -> list[Term]:
    """Return a joint cumulant of entries of one tensor: one entry's, where all are the same."""
    from derive.lower import lower_in

    name, places = block[0]
    system = frame.algebra.system
    tensor, moments = system.tensors[name], system.random[name]
    same = Term(Fraction(1))
    for _, other in block[1:]:
        for dim, a, b in zip(tensor.dims, places, other, strict=True):
            if not dim.ordered:
                same.times(("\N{GREEK SMALL LETTER DELTA}", (a, b)))
            elif not (same.guard(a, b) and same.guard(b, a)):
                return []
    env: dict[Expr, Ix] = dict(zip(moment_indices(tensor), places, strict=True))
    value = lower_in(replace(frame, env={**frame.env, **env}), cumulant(name, moments, len(block)))
    return [m for t in value if (m := multiply(same, t)) is not None]


def cumulant(name: str, moments: Moments, order: int) -> Expr:
    """Return a cumulant of one entry from its mean and central moments.

    Raises:
        UndecidedError: If the moment is not declared.
    """
    if order == 1:
        return moments.mean
    central = moments.central(order)
    if central is None:
        known = ORDINALS[order] + (" central moment" if order > 2 else "") if order < 5 else ""
        raise UndecidedError(f"E(...) needs the {known or f'moment of order {order}'} of {name}, "
                             "which is not declared")  # fmt: skip
    if order == 4:
        assert moments.variance is not None
        return central - 3 * moments.variance**2
    return central


def check_fixed(algebra: Algebra, atom: Atom) -> None:
    """Refuse a factor that depends on a random tensor otherwise than as its entry.

    Raises:
        UndecidedError: Naming it.
    """
    waiting, random = [atom[0]], frozenset(algebra.system.random)
    while waiting:
        name = waiting.pop()
        head, _, tail = name.partition(":")
        named = NAMED.get(name)
        if named is not None:
            waiting += [a[0] for t in named.terms for a in t.factors]
        parts = {"g": ["L", tail], "d": tail.split("/"), "^": [tail]}.get(head, [name])
        for part in parts:
            upstream = computed_from(algebra.system).get(part, frozenset())
            if upstream & random:
                what = f"a function of {part}" if ":" in atom[0] else part
                raise UndecidedError(
                    f"E(...) of {what}, which depends on random {sorted(upstream & random)[0]} and "
                    "is no polynomial in its entries"
                )


@lru_cache(maxsize=64)
def computed_from(system: System) -> dict[str, frozenset[str]]:
    """Return what each tensor's value is computed from, itself included, detached reads too."""
    reads = {e.tensor.name: {str(tensor_name(r)) for r in e.reads}
             for e in (*system.equations, *system.derived)}  # fmt: skip
    found = {n: {n} for n in {*system.tensors, *reads}}
    grown = True
    while grown:
        sizes = [len(f) for f in found.values()]
        for name, names in reads.items():
            found[name].update(*(found.get(n, {n}) for n in names))
        grown = sizes != [len(f) for f in found.values()]
    return {n: frozenset(f) for n, f in found.items()}
