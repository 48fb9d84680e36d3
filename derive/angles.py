"""Sines and cosines: sums of angles come apart, a squared cosine comes down.

sin(a + b) and cos(a + b) are written through the sines and cosines of a and b, and cos^2 as
1 - sin^2: what is left are polynomials in independent sines and (to the first power) cosines.
"""

from __future__ import annotations

from fractions import Fraction

from derive.abstract import NAMED
from derive.equation import Equation
from derive.index import Expr
from derive.naming import Frame, named_function
from derive.nodes import tensor_name
from derive.normal import Normalizer
from derive.terms import Atom, Ix, Term, multiply, renamed, substitute

MAX_PARTS = 6
"""An angle of more parts stays whole: the products double with each."""


def turns_with_position(equation: Equation) -> bool:
    """Tell whether an equation is the sine or cosine of an angle that holds a position's number."""
    return equation.rhs.func.__name__ in ("sin", "cos") and reads_number(equation.rhs)


def reads_number(expr: Expr) -> bool:
    """Tell whether an index stands as a number, outside the brackets of an entry."""
    if tensor_name(expr) is not None:
        return False
    if expr.is_Symbol:
        return bool(expr.is_integer and not expr.is_positive)
    return any(reads_number(a) for a in expr.args)


def parts_of(terms: list[Term]) -> list[list[Term]] | None:
    """Return the parts of an angle, a whole multiple as so many equal ones; None if it is one."""
    parts: list[list[Term]] = []
    for term in terms:
        count = abs(term.coef)
        if count.denominator != 1:
            parts.append([term])
            continue
        one = term.copy()
        one.coef = term.coef / count
        parts += [[one]] * int(count)
        if len(parts) > MAX_PARTS:
            return None
    return parts if len(parts) > 1 else None


def apart(frame: Frame, name: str, terms: list[Term]) -> list[Term] | None:
    """Write the sine or cosine of a sum through those of its parts; None of a single part."""
    parts = parts_of(terms) if name in ("sin", "cos") else None
    if parts is None:
        return None
    first, rest = parts[0], [t.copy() for p in parts[1:] for t in p]
    whole = list(Normalizer(frame.algebra, []).normal(map(renamed, rest)).values())
    sin, cos = (named_function(frame, f, first) for f in ("sin", "cos"))
    sin_rest, cos_rest = (named_function(frame, f, whole) for f in ("sin", "cos"))
    pairs = ((sin, cos_rest, 1), (cos, sin_rest, 1)) if name == "sin" else (
        (cos, cos_rest, 1), (sin, sin_rest, -1))  # fmt: skip
    out = []
    for left, right, sign in pairs:
        for a in left:
            for b in right:
                product = multiply(a, renamed(b))
                if product is not None:
                    product.coef *= sign
                    out.append(product)
    return out


def angle_of(atom: Atom) -> list[Term]:
    """Return the angle of a sine or cosine that is named by its content."""
    named = NAMED[atom[0]]
    mapping: dict[str, Ix] = dict(zip(named.params, atom[1], strict=True))
    return [m for t in named.terms if (m := substitute(renamed(t), mapping)) is not None]


def turn_on(self: Normalizer, term: Term) -> list[Term] | None:
    """The angle at position t + 1 is that at t and one step more; at position 0 there is none."""
    for atom, power in term.factors.items():
        name = atom[0].partition(":")[0]
        if power < 1 or name not in ("sin", "cos") or all(b and not o for b, o in atom[1]):
            continue
        if not any(a[0] == "@" for t in NAMED[atom[0]].terms for a in t.factors):
            continue
        whole = named_function(Frame(self.algebra, {}, {}), name, angle_of(atom))
        if len(whole) != 1 or atom not in whole[0].factors:
            return self.expand(term, atom, whole)
    return None


def reduce_cosines(self: Normalizer, term: Term) -> list[Term] | None:
    """cos^2 = 1 - sin^2, of an angle that is named by its content."""
    for atom, power in term.factors.items():
        if power < 2 or not atom[0].startswith("cos:"):
            continue
        sine = named_function(Frame(self.algebra, {}, {}), "sin", angle_of(atom))
        rest = term.copy()
        rest.times(atom, -2)
        squares = [p for a in sine for b in sine if (p := multiply(a, renamed(b))) is not None]
        less = [p for s in squares if (p := multiply(rest, s)) is not None]
        for part in less:
            part.coef *= Fraction(-1)
        return [rest, *less]
    return None
