"""Cases: what is known on either side of a kink, and where a normal form has one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from derive.algebra import Algebra
from derive.facts import Fact
from derive.folding import argument_of
from derive.functions import TABLE
from derive.naming import replace_coef
from derive.normal import Normalizer, Rewrite
from derive.signs import KINKED, function_of
from derive.terms import Atom, Term


@dataclass(frozen=True)
class Case:
    """One side of a case split: what is known there, and what an atom is there.

    Args:
        fact: The sign that is assumed.
        rewrite: The atom's value.
    """

    fact: Fact
    rewrite: Rewrite


def cases_of(algebra: Algebra, atom: Atom) -> list[Case]:
    """Return the two cases of |x| or of a step at x, which together cover every x.

    At the kink both cases hold for |x|; a step is 1 from 0 on, so its other case is x < 0.
    """
    name, places = atom
    function = function_of(algebra, name)
    if function not in ("abs", "step") or algebra.needs_position(name):
        return []
    inner = argument_of(algebra, atom)
    found = []
    for sign, word in ((1, ">="), (-1, "<=" if function == "abs" else "<")):
        side = [replace_coef(t, sign * t.coef) for t in inner]
        value = side if function == "abs" else [Term(Fraction(1))] if sign == 1 else []
        fact = Fact(tuple(side), f"where what stands under the {KINKED[function]} is {word} 0",
                    strict=word == "<")  # fmt: skip
        found.append(Case(fact, Rewrite(name, places, frozenset(), tuple(value))))
    return found


def kinks(algebra: Algebra, terms: Iterable[Term]) -> list[Atom]:
    """Return the steps and absolute values at free indices in some terms, steps first.

    What stands under a root or a denominator counts; a state's own recurrence is not opened.
    """
    found: dict[Atom, str] = {}
    waiting = [a for t in terms for a in t.factors]
    seen = set(waiting)
    while waiting:
        atom = waiting.pop(0)
        function = function_of(algebra, atom[0])
        state = ":" not in atom[0] and algebra.needs_position(atom[0])
        if state or function not in (*TABLE, "den"):
            continue
        if function in KINKED and not any(b.startswith("~") for b, _ in atom[1]):
            found[atom] = function
        inner = Normalizer(algebra, []).normal(argument_of(algebra, atom))
        new = {a for t in inner.values() for a in t.factors} - seen
        seen |= new
        waiting += sorted(new)
    return sorted(found, key=lambda a: found[a] != "step")
