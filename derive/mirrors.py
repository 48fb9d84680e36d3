"""Functions of which f(-x) follows from f(x), and the tensors that name a function value."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from derive.terms import Atom, Ix, Term

MIRROR: dict[str, tuple[int, int]] = {
    "tanh": (0, -1),
    "sin": (0, -1),
    "cos": (0, 1),
    "sigmoid": (1, -1),
}
"""f(-x) = constant + factor * f(x)."""
ZERO = {
    "tanh": Fraction(0),
    "sin": Fraction(0),
    "cos": Fraction(1),
    "sigmoid": Fraction(1, 2),
    "abs": Fraction(0),
    "sqrt": Fraction(0),
}
"""f(0), as the rows above imply where the factor is -1."""


def one(coef: Fraction | int = 1, *atoms: Atom) -> Term:
    """Return a term from atoms."""
    term = Term(Fraction(coef))
    for atom in atoms:
        term.times(atom)
    return term


def mirrored(name: str, atom: Atom) -> list[Term]:
    """Return f(-x) from the atom that stands for f(x)."""
    constant, factor = MIRROR[name]
    return [*([one(constant)] if constant else []), one(factor, atom)]


def unmirrored(name: str, terms: list[Term]) -> tuple[Atom, bool] | None:
    """Return the atom of a function value, and whether it is its mirror image that is meant.

    None where the terms are no function value, plain or mirrored.
    """
    if not terms or list(terms[-1].factors.values()) != [1]:
        return None
    (atom,) = terms[-1].factors
    if terms == [one(1, atom)]:
        return atom, False
    return (atom, True) if name in MIRROR and terms == mirrored(name, atom) else None


@dataclass(frozen=True)
class Alias:
    """The tensor whose equation names a nonlinearity: tanh(z[t,j]) is h[t,j].

    Args:
        tensor: The name.
        places: Where the nonlinearity is taken in the equation.
        bases: The equation's own indices.
        turned: Whether the tensor is f(-x) where the nonlinearity is named as f(x).
    """

    tensor: str
    places: tuple[Ix, ...]
    bases: tuple[str, ...]
    turned: bool
