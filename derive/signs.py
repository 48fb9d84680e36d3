"""Which atoms and terms of the normal form cannot be negative, whatever the given values are."""

from __future__ import annotations

from collections.abc import Sequence

from derive.abstract import NAMED
from derive.algebra import Algebra
from derive.nodes import kind
from derive.terms import Atom, Term

POSITIVE = ("exp", "sigmoid")
"""Functions whose values are above zero."""
NONNEGATIVE = (*POSITIVE, "sqrt", "abs", "step")
"""Functions whose values are at least zero."""
KINKED = {"abs": "absolute value", "step": "step"}
"""Functions with a kink or a jump, in words."""


def function_of(algebra: Algebra, name: str) -> str:
    """Return the elementwise function whose values an atom's name stands for, "" if none."""
    head, colon, _ = name.partition(":")
    if colon:
        return head
    equation = algebra.system.by_name.get(name)
    if equation is None or not algebra.names_nonlinearity(equation):
        return ""
    return kind(equation.rhs)


def at_least_zero(algebra: Algebra, atom: Atom) -> bool:
    """Tell whether an atom is never negative: exp, sigmoid, roots, sizes, deltas, one-hot rows."""
    name = atom[0]
    if name == "δ" or name in algebra.signs.nonnegative or above_zero(algebra, atom):
        return True
    if name.startswith(("den:", "val:")):
        return sum_at_least_zero(algebra, NAMED[name].terms)
    if name.startswith("^:"):
        return at_least_zero(algebra, (name[2:], atom[1][:-2]))
    tensor = algebra.system.tensors.get(name)
    if tensor is not None and (
        tensor.onehot or tensor.binary or tensor.nonnegative or name in algebra.system.variances
    ):
        return True
    return computed(algebra, atom) and function_of(algebra, name) in NONNEGATIVE


def above_zero(algebra: Algebra, atom: Atom) -> bool:
    """Tell whether an atom is always positive: exp, sigmoid, sizes, sums with such a term."""
    name = atom[0]
    if name.startswith("#") or name in algebra.signs.positive:
        return True
    if name.startswith(("den:", "val:")):
        terms = NAMED[name].terms
        return sum_at_least_zero(algebra, terms) and any(term_above_zero(algebra, t) for t in terms)
    if name.startswith("^:"):
        return above_zero(algebra, (name[2:], atom[1][:-2]))
    return computed(algebra, atom) and function_of(algebra, name) in POSITIVE


def computed(algebra: Algebra, atom: Atom) -> bool:
    """Tell whether an atom is a value of its function: at an initial position a state is given."""
    name, places = atom
    if ":" in name or not algebra.needs_position(name):
        return True
    base, offset = places[0]
    return base == "" and offset >= 0


def term_at_least_zero(algebra: Algebra, term: Term) -> bool:
    """Tell whether a term is never negative: a positive multiple of even powers and such atoms."""
    return term.coef > 0 and all(
        p % 2 == 0 or at_least_zero(algebra, a) for a, p in term.factors.items()
    )


def term_above_zero(algebra: Algebra, term: Term) -> bool:
    """Tell whether a term is always positive (its sums are not empty: no guards)."""
    if term.guards or term.pinned or term.coef <= 0:
        return False
    return all(above_zero(algebra, a) for a in term.factors)


def sum_at_least_zero(algebra: Algebra, terms: Sequence[Term]) -> bool:
    """Tell whether a sum is of terms that are never negative."""
    return all(term_at_least_zero(algebra, t) for t in terms)
