"""Which atoms and terms of the normal form cannot be negative, whatever the given values are."""

from __future__ import annotations

from derive.abstract import NAMED
from derive.algebra import Algebra
from derive.nodes import kind
from derive.terms import Atom, Term

POSITIVE = ("exp", "sigmoid")
"""Functions whose values are above zero."""
NONNEGATIVE = (*POSITIVE, "sqrt", "abs", "step")
"""Functions whose values are at least zero."""


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
    return _signed(algebra, atom, NONNEGATIVE)


def above_zero(algebra: Algebra, atom: Atom) -> bool:
    """Tell whether an atom is always positive: exp, sigmoid, sizes, sums of such terms."""
    return _signed(algebra, atom, POSITIVE)


def _signed(algebra: Algebra, atom: Atom, functions: tuple[str, ...]) -> bool:
    name = atom[0]
    if name.startswith("#"):
        return True
    if name == "δ":
        return functions is NONNEGATIVE
    if name.startswith("den:"):
        return all(_term(algebra, t, functions) for t in NAMED[name].terms)
    if name.startswith("^:"):
        base, at = name[2:], atom[1][:-2]
        return _signed(algebra, (base, at), functions)
    if name.startswith("val:"):
        return all(_term(algebra, t, functions) for t in NAMED[name].terms)
    tensor = algebra.system.tensors.get(name)
    if tensor is not None and tensor.onehot:
        return functions is NONNEGATIVE
    if tensor is not None and algebra.needs_position(name):
        # at an initial position the state is given, not a value of its function
        base, offset = atom[1][0]
        if base != "" or offset < 0:
            return False
    return function_of(algebra, name) in functions


def _term(algebra: Algebra, term: Term, functions: tuple[str, ...]) -> bool:
    """Tell whether a term is a product of atoms of such a sign (even powers pass if >= 0 does)."""
    even = functions is NONNEGATIVE
    return term.coef > 0 and all(
        (even and p % 2 == 0) or _signed(algebra, a, functions) for a, p in term.factors.items()
    )


def term_at_least_zero(algebra: Algebra, term: Term) -> bool:
    """Tell whether a term is never negative: a positive multiple of even powers and such atoms."""
    return _term(algebra, term, NONNEGATIVE)


def term_above_zero(algebra: Algebra, term: Term) -> bool:
    """Tell whether a term is always positive (its sums are not empty: no guards)."""
    return not term.guards and not term.pinned and _term(algebra, term, POSITIVE)
