"""Nonlinearities and denominators, named by content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from derive.abstract import NAMED, abstract, names_in
from derive.algebra import Algebra, lead_of
from derive.errors import DeriveError
from derive.index import Expr, affine
from derive.mirrors import MIRROR, ZERO, mirrored, one
from derive.normal import Normalizer
from derive.signs import at_least_zero, function_of, term_at_least_zero
from derive.support import size_base
from derive.terms import (
    Atom,
    Guards,
    Ix,
    Term,
    canonical_key,
    fresh,
    multiply,
    renamed,
    substitute,
)


@dataclass(frozen=True)
class Frame:
    """Where an expression is lowered: what its index symbols stand for, what holds of them."""

    algebra: Algebra
    env: dict[Expr, Ix]
    edges: Guards

    def ix(self, expr: Expr) -> Ix:
        """Return an index expression as (base, offset)."""
        at = affine(expr)
        if at.base is None:
            return ("", at.offset)
        if at.base in self.env:
            base, offset = self.env[at.base]
            return (base, offset + at.offset)
        if at.base.is_positive:
            return (size_base(at.base.name), at.offset)
        raise DeriveError(f"index {at.base} is not bound here")

    def normalizer(self) -> Normalizer:
        """Return a normalizer in this context, for the arguments of nonlinearities."""
        return Normalizer(self.algebra, list(self.edges.items()))


def bind(term: Term, name: str, dim: str) -> Term:
    """Sum a term over a name."""
    term.bound[name] = dim
    return term


def is_one(terms: list[Term]) -> bool:
    """Tell whether a sum is the number one."""
    return len(terms) == 1 and terms[0] == one()


def name_of(algebra: Algebra, kind_: str, terms: list[Term]) -> Atom:
    """Name a sum of terms by its content, the same wherever it stands.

    Its free positions are shifted so that the least offset of each is 0 and normalised again, since
    guards have their standard place relative to a position's own zero.
    """
    moved: dict[str, int] = {}
    for _ in range(MAX_SHIFTS):
        shifts = {b: low for b in names_in(terms) if (low := least(terms, b)) and is_name(b)}
        if not shifts:
            break
        mapping: dict[str, Ix] = {b: (b, -low) for b, low in shifts.items()}
        parts = [m for t in terms if (m := substitute(t, mapping)) is not None]
        terms = list(Normalizer(algebra, []).normal(parts).values())
        moved = {b: moved.get(b, 0) + shifts.get(b, 0) for b in {*moved, *shifts}}
    name, places = abstract(kind_, terms)
    return name, tuple((b, o + moved.get(b, 0)) for b, o in places)


MAX_SHIFTS = 4


def is_name(base: str) -> bool:
    """Tell whether a base is an index name (not zero, not a size)."""
    return base != "" and not base.startswith("#")


def least(terms: list[Term], base: str) -> int:
    """Return the least offset of a base among the atoms of some terms."""
    offsets = (o for t in terms for _, places in t.factors for b, o in places if b == base)
    return min(offsets, default=0)


def named_function(frame: Frame, name: str, argument: list[Term]) -> list[Term]:
    """Name f(argument); log opens products and exponentials, one-hot sums select."""
    # named in no context: a name must not depend on where the argument stands
    normalizer = Normalizer(frame.algebra, [])
    terms = list(normalizer.normal(argument).values())
    if name == "sqrt":
        # nor on the denominators named so far, whose sums may be under it
        whole = [p for t in terms for p in opened(t, sums=True)]
        terms = list(Normalizer(frame.algebra, [], folding=False).normal(whole).values())
    picked = select_onehot(frame, terms, lambda rest: named_function(frame, name, rest))
    if picked is not None:
        return picked
    if name == "step":
        exact = step_of_binary(frame.algebra, terms)
        if exact is not None:
            return exact
    if name in ("sin", "cos"):
        from derive.angles import apart as angles_apart

        turned_sum = angles_apart(frame, name, terms)
        if turned_sum is not None:
            return turned_sum
    if name == "log":
        return logarithm(normalizer, terms)
    if name == "exp":
        return exponential(frame.algebra, terms)
    if name in ("abs", "sqrt") and terms:
        if name == "abs" and never_negative(frame, terms):
            return terms
        apart = content(frame.algebra, terms, 1 if name == "abs" else 2)
        if apart is not None:
            inner = [one()] if is_one(apart[1]) else named_function(frame, name, apart[1])
            return [p for t in inner if (p := multiply(apart[0], t)) is not None]
    if not terms and name in ZERO:
        return [one(ZERO[name])] if ZERO[name] else []
    terms = terms or [Term(Fraction(0))]
    plain, turned = turned_name(frame.algebra, name, terms)
    atom, other = frame.algebra.alias(plain)
    if atom[0] in frame.algebra.system.tensors and frame.algebra.needs_position(atom[0]):
        # at an initial position the state is given, not computed by its equation
        if not frame.normalizer().context.implies(("", 0), atom[1][0]):
            atom, other = plain, False
    return mirrored(name, atom) if turned != other else [one(1, atom)]


def step_of_binary(algebra: Algebra, terms: list[Term]) -> list[Term] | None:
    """Return step(a + b m) of an entry m that is 0 or 1: its two values, chosen by m."""
    constant = sum((t.coef for t in terms if is_number(t)), Fraction(0))
    rest = [t for t in terms if not is_number(t)]
    if len(rest) != 1 or rest[0].bound or rest[0].guards or rest[0].pinned:
        return None
    ((atom, power),) = rest[0].factors.items() if len(rest[0].factors) == 1 else ((("", ()), 0),)
    tensor = algebra.system.tensors.get(atom[0])
    if power != 1 or tensor is None or not tensor.binary:
        return None
    zero, one_ = (int(constant + rest[0].coef * m >= 0) for m in (0, 1))
    parts = [one(zero), one(one_ - zero, atom)]
    return [p for p in parts if p.coef]


def is_number(term: Term) -> bool:
    """Tell whether a term is a number."""
    return not (term.factors or term.bound or term.guards or term.pinned)


def turned_name(algebra: Algebra, name: str, terms: list[Term]) -> tuple[Atom, bool]:
    """Name f(argument), or f(-argument) where f(-x) follows from f(x); tell which.

    It is turned if the argument leads with a minus. Which term leads depends on the content alone,
    so that x and -x meet in one name.
    """
    atom = name_of(algebra, name, terms)
    if name not in MIRROR or min(NAMED[atom[0]].terms, key=canonical_key).coef >= 0:
        return atom, False
    other = name_of(algebra, name, [replace_coef(t, -t.coef) for t in terms])
    # v[i] - v[j] and its negative have one name, at places in another order
    return (min(atom, other), other < atom) if other[0] == atom[0] else (other, True)


BELOW_ONE = {"tanh": (1, 2), "sigmoid": (1,), "step": (1,)}
"""Powers of a function's values that are at most one."""


def never_negative(frame: Frame, terms: list[Term]) -> bool:
    """Tell whether a sum is of terms that are never negative, or is such as 1 - tanh^2."""
    algebra = frame.algebra
    if all(term_at_least_zero(algebra, t) for t in terms):
        return True
    if len(terms) != 2 or not any(t == one() for t in terms):
        return False
    (other,) = (t for t in terms if t != one())
    if other.coef != -1 or len(other.factors) != 1 or other.bound or other.guards or other.pinned:
        return False
    ((atom, power),) = other.factors.items()
    if ":" not in atom[0] and algebra.needs_position(atom[0]):
        # at an initial position the state is given, not a value of its function
        if not frame.normalizer().context.implies(("", 0), atom[1][0]):
            return False
    return power in BELOW_ONE.get(function_of(algebra, atom[0]), ())


def content(algebra: Algebra, terms: list[Term], root: int) -> tuple[Term, list[Term]] | None:
    """Take out of |x| (root 1) or of the root of x (root 2) what every term shares.

    |a b| is |a| |b|, and the root of a^2 b is |a| times the root of b. Under |x| denominators come
    out too, and the first term of a sum is made positive and monic, so that x and -x have one name.

    Returns:
        A factor and what is left under the function, or None if nothing comes out.
    """
    outside, under = one(), one()
    rooted = [as_roots(algebra, t) for t in terms]
    for atom, power in shared_powers(rooted, denominators=root == 1).items():
        if power // root:
            outside.times(magnitude(algebra, atom), power // root)
            under.times(atom, -root * (power // root))
    number = min((canonical_key(t), t.coef) for t in terms)[1]
    scale = abs(number) if root == 1 else square_root(number)
    if scale is not None:
        outside.coef, under.coef = scale, 1 / number
    if not under.factors and under.coef == 1:
        return None
    left = (multiply(t, under) for t in rooted)
    return outside, [p for t in left if t is not None for p in opened(t)]


def opened(term: Term, sums: bool = False) -> list[Term]:
    """Write a denominator that came up into the numerator as the sum that it names.

    Args:
        term: A term.
        sums: Whether also those that a sum over an index folds into.
    """
    for (name, places), power in term.factors.items():
        if not name.startswith("den:") or power <= 0:
            continue
        if sums or lead_of(NAMED[name].terms) is None:
            named, rest = NAMED[name], term.copy()
            rest.times((name, places), -1)
            mapping = dict(zip(named.params, places, strict=True))
            parts = (substitute(renamed(t), mapping) for t in named.terms)
            products = (multiply(rest, p) for p in parts if p is not None)
            return [q for p in products if p is not None for q in opened(p, sums)]
    return [term]


def as_roots(algebra: Algebra, term: Term) -> Term:
    """Write a denominator whose root has a name as the square of the root."""
    out = term.copy()
    for (name, places), power in term.factors.items():
        root = "sqrt:" + name[4:]
        if name.startswith("den:") and root in NAMED:
            out.times((name, places), -power)
            out.times(algebra.alias((root, places))[0], 2 * power)
    return out


def square_root(number: Fraction) -> Fraction | None:
    """Return the root of a rational that is a square, else None."""
    if number <= 0:
        return None
    top, bottom = isqrt(number.numerator), isqrt(number.denominator)
    return Fraction(top, bottom) if Fraction(top, bottom) ** 2 == number else None


def shared_powers(terms: list[Term], denominators: bool) -> dict[Atom, int]:
    """Return the powers that every term holds of the atoms outside its sums.

    Args:
        terms: A sum.
        denominators: Whether a negative power counts even where other terms lack it.
    """
    outside = [
        {a: p for a, p in t.factors.items() if not any(b in t.bound for b, _ in a[1])}
        for t in terms
    ]
    found = {}
    for atom in dict.fromkeys(a for factors in outside for a in factors):
        powers = [factors.get(atom, 0) for factors in outside]
        if min(powers) > 0 or max(powers) < 0 or (denominators and min(powers) < 0):
            found[atom] = min(powers) if denominators else min(powers, key=abs)
    return found


def magnitude(algebra: Algebra, atom: Atom) -> Atom:
    """Return |atom|: the atom itself where it is never negative."""
    if at_least_zero(algebra, atom):
        return atom
    return algebra.alias(name_of(algebra, "abs", [one(1, atom)]))[0]


def select_onehot(
    frame: Frame, terms: list[Term], apply: Callable[[list[Term]], list[Term]]
) -> list[Term] | None:
    """f(w + sum_c Y_c v_c) = sum_c Y_c f(w + v_c) for a one-hot row Y, w without c."""
    atoms = [a for t in terms for a in summed_atoms(frame.algebra, t)]
    for name, row in dict.fromkeys((n, places[:-1]) for n, places in atoms):
        chosen, dim, rests = fresh(), "", []
        for term in terms:
            here = (a for a in summed_atoms(frame.algebra, term) if a[0] == name)
            atom = next((a for a in here if a[1][:-1] == row), None)
            rest = term.copy()
            if atom is not None:
                rest.times(atom, -1)
                dim = rest.bound.pop(atom[1][-1][0])
                moved = substitute(rest, {atom[1][-1][0]: (chosen, 0)})
                if moved is None:
                    continue
                rest = moved
            rests.append(rest)
        picked = [multiply(one(1, (name, (*row, (chosen, 0)))), t) for t in apply(rests)]
        return [bind(t, chosen, dim) for t in picked if t is not None]
    return None


def summed_atoms(algebra: Algebra, term: Term) -> list[Atom]:
    """Return a term's entries of one-hot rows summed over the whole row, the row not bound."""
    found = []
    guarded = {b for pair in term.guards for b in pair}
    guarded |= {b for base, (to, _) in term.pinned.items() for b in (base, to)}
    for atom, power in term.factors.items():
        tensor = algebra.system.tensors.get(atom[0])
        if tensor is None or not tensor.onehot or power != 1:
            continue
        *row, (last, shift) = atom[1]
        free = last in term.bound and not any(b in term.bound for b, _ in row)
        if free and not shift and last not in guarded and not tensor.dims[-1].ordered:
            found.append(atom)
    return found


def exponential(algebra: Algebra, terms: list[Term]) -> list[Term]:
    """Exp of a sum is a product: one generator for each term, to its integer coefficient."""
    out = one()
    for term in terms:
        whole = term.coef.denominator == 1
        logged = exp_of_log(term) if whole else None
        if logged is not None:
            out.times(logged, int(term.coef))
            continue
        part = replace_coef(term, Fraction(1)) if whole else term
        out.times(name_of(algebra, "exp", [part]), int(term.coef) if whole else 1)
    return [out]


def exp_of_log(term: Term) -> Atom | None:
    """Return what stands under the log where a term is one log: exp(n log x) is x^n."""
    if term.bound or term.guards or term.pinned or list(term.factors.values()) != [1]:
        return None
    ((name, places),) = term.factors
    if not name.startswith("log:"):
        return None
    named = NAMED[name]
    mapping = dict(zip(named.params, places, strict=True))
    (inner,) = (substitute(t, mapping) for t in named.terms)
    if inner is None or list(inner.factors.values()) != [1] or inner.coef != 1:
        return None
    ((atom, _),) = inner.factors.items()
    return atom


def logarithm(normalizer: Normalizer, terms: list[Term]) -> list[Term]:
    """Log of a monomial is a sum; log exp x is x; log of a sum is the log of its name."""
    if len(terms) == 1 and not (terms[0].bound or terms[0].guards or terms[0].pinned):
        term, out = terms[0], []
        if term.coef != 1:
            out.append(one(1, name_of(normalizer.algebra, "log", [one(term.coef)])))
        for atom, power in term.factors.items():
            for part in log_atom(normalizer.algebra, atom):
                part.coef *= power
                out.append(part)
        return out
    (factor,) = inverse(normalizer, terms)
    return [replace_coef(t, -t.coef) for t in logarithm(normalizer, [factor])]


def replace_coef(term: Term, coef: Fraction) -> Term:
    """Return a copy with another coefficient."""
    out = term.copy()
    out.coef = coef
    return out


def log_atom(algebra: Algebra, atom: Atom) -> list[Term]:
    """Return log of one atom: an exponential gives back its argument."""
    if atom[0].startswith("exp:"):
        named = NAMED[atom[0]]
        mapping = dict(zip(named.params, atom[1], strict=True))
        moved = (substitute(renamed(t), mapping) for t in named.terms)
        return [t for t in moved if t is not None]
    return [one(1, name_of(algebra, "log", [one(1, atom)]))]


def shared_monomial(terms: list[Term]) -> Term:
    """Return the inverse of the monomial that every term holds outside its sums."""
    out = Term(Fraction(1))
    first, *others = terms
    for atom, power in first.factors.items():
        if any(b in first.bound for b, _ in atom[1]):
            continue
        powers = [power, *(t.factors.get(atom, 0) for t in others)]
        if min(powers) > 0 or max(powers) < 0:
            out.times(atom, -min(powers, key=abs))
    return out


def inverse(normalizer: Normalizer, terms: list[Term]) -> list[Term]:
    """Return 1 / (sum of terms): of a monomial directly, else of a named denominator."""
    found = list(normalizer.normal(terms).values())
    if not found:
        raise DeriveError("division by something that is identically zero")
    if len(found) == 1 and not (found[0].bound or found[0].guards or found[0].pinned):
        return [Term(1 / found[0].coef, {a: -p for a, p in found[0].factors.items()})]
    frame = Frame(normalizer.algebra, {}, {})
    picked = select_onehot(frame, found, lambda rest: inverse(normalizer, rest))
    if picked is not None:
        return picked
    shared = shared_monomial(found)
    if shared.factors:
        rest = [r for t in found if (r := multiply(t, shared)) is not None]
        for factor in inverse(normalizer, rest):
            return [r for r in [multiply(shared, factor)] if r is not None]
    scale = min(((t.coef, k) for k, t in normalizer.normal(terms).items()), key=lambda p: p[1])[0]
    monic = [replace_coef(t, t.coef / scale) for t in found]
    name, places = name_of(normalizer.algebra, "den", monic)
    normalizer.algebra.add_fold(name)
    return [Term(1 / scale, {(name, places): -1})]
