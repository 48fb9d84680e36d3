"""Denominators, roots and named values: sums fold into their names, powers come down."""

from __future__ import annotations

from fractions import Fraction

from derive.abstract import NAMED, Named
from derive.algebra import Algebra, fold_signature, lead_of
from derive.functions import TABLE
from derive.guards import _from_zero
from derive.index import Expr
from derive.naming import Frame, inverse, named_function
from derive.nodes import tensor_name
from derive.normal import Normalizer
from derive.signs import function_of
from derive.terms import (
    Atom,
    Ix,
    Term,
    canonical_key,
    multiply,
    renamed,
    substitute,
)


def open_named_values(self: Normalizer, term: Term) -> list[Term] | None:
    """The base of a symbolic power is named; standing alone it is what it names."""
    for atom, power in term.factors.items():
        if atom[0].startswith("val:") and power > 0:
            named = NAMED[atom[0]]
            mapping = dict(zip(named.params, atom[1], strict=True))
            parts = (substitute(renamed(t), mapping) for t in named.terms)
            return self.expand(term, atom, [p for p in parts if p is not None])
    return None


def reduce_inverses(self: Normalizer, term: Term) -> list[Term] | None:
    """Under 1/D with D = c a + rest, a is (D - rest)/c: a/D comes down to 1/c - rest/(c D)."""
    for atom, power in term.factors.items():
        if power >= 0 or not atom[0].startswith(("val:", "den:")):
            continue
        named = NAMED[atom[0]]
        mapping = dict(zip(named.params, atom[1], strict=True))
        lead = _single_atom(named.terms)
        if lead is None:
            continue
        ((place, _),) = lead.factors.items()
        moved = substitute(Term(Fraction(1), {place: 1}), mapping)
        if moved is None or term.factors.get(next(iter(moved.factors)), 0) < 1:
            continue
        whole = Term(1 / lead.coef, {atom: 1})
        rest = [substitute(renamed(t), mapping) for t in named.terms if t is not lead]
        for part in rest:
            if part is not None:
                part.coef /= -lead.coef
        body = [whole, *(p for p in rest if p is not None)]
        return self.expand(term, next(iter(moved.factors)), body)
    return None


def _single_atom(terms: tuple[Term, ...]) -> Term | None:
    """Return the term of a sum that is one atom, which no other term holds, if there is one."""
    found = []
    for term in terms:
        if term.bound or term.guards or list(term.factors.values()) != [1]:
            continue
        (atom,) = term.factors
        if not any(atom in t.factors for t in terms if t is not term):
            found.append(term)
    return max(found, key=canonical_key, default=None)


def open_constant_units(self: Normalizer, term: Term) -> list[Term] | None:
    """Write h[t,0] as tanh(z[t,0]): at a numbered unit the function's own name is canonical.

    A nonlinearity is named by its argument as a function of its free indices; a number in place of
    an index gives another function, which the equation's name does not stand for.
    """
    for atom, power in term.factors.items():
        name, places = atom
        equation = self.algebra.system.by_name.get(name)
        if equation is None or power < 1 or not self.algebra.names_nonlinearity(equation):
            continue
        dims = equation.tensor.dims
        if all(b or d.ordered for (b, _), d in zip(places, dims, strict=True)):
            continue
        if self.algebra.needs_position(name) and not _from_zero(self, term, places[0]):
            continue
        env = dict(zip(equation.indices, places, strict=True))
        body = self.algebra.lower(self.algebra, equation.rhs, env, {})
        if all(atom not in t.factors for t in body):
            return self.expand(term, atom, body)
    return None


def reduce_roots(self: Normalizer, term: Term) -> list[Term] | None:
    """s^2 is the argument of s = sqrt(argument), |x|^2 is x^2: powers come down to 0 and 1."""
    for atom, power in term.factors.items():
        if power in (0, 1):
            continue
        argument = _under_root(self, atom)
        if argument is None:
            continue
        rest = term.copy()
        rest.times(atom, (power % 2) - power)
        for part in [argument if power > 1 else inverse(self, argument)] * abs(power // 2):
            return _times_each(rest, part, atom, power)
    return None


def _times_each(rest: Term, part: list[Term], atom: Atom, power: int) -> list[Term]:
    """Multiply by one argument (or its inverse); the powers still to reduce stay on the root."""
    left = abs(power // 2) - 1
    rest.times(atom, 2 * left if power > 1 else -2 * left)
    out = (multiply(rest, renamed(t)) for t in part)
    return [t for t in out if t is not None]


def _under_root(self: Normalizer, atom: Atom) -> list[Term] | None:
    """Return the argument of a root, None for other atoms."""
    name = atom[0]
    function = function_of(self.algebra, name)
    if function not in ("sqrt", "abs") or self.algebra.needs_position(name):
        return None
    inner = argument_of(self.algebra, atom)
    if function == "sqrt":
        return inner
    squares = (multiply(renamed(s), renamed(t)) for s in inner for t in inner)
    return [t for t in squares if t is not None]


def argument_of(algebra: Algebra, atom: Atom) -> list[Term]:
    """Return the argument of a nonlinearity that an atom names."""
    name, places = atom
    named = NAMED.get(name) or algebra.arguments.get(name)
    if named is None:
        equation = algebra.system.by_name[name]
        params = tuple(f"?{i}" for i in range(len(equation.indices)))
        env: dict[Expr, Ix] = {s: (p, 0) for s, p in zip(equation.indices, params, strict=True)}
        terms = tuple(algebra.lower(algebra, equation.rhs.args[0], env, {}))
        named = algebra.arguments[name] = Named(params, terms)
    mapping = dict(zip(named.params, places, strict=True))
    moved = (substitute(renamed(t), mapping) for t in named.terms)
    return [t for t in moved if t is not None]


def rewrite_inside(self: Normalizer, term: Term) -> list[Term] | None:
    """What is assumed or unfolded holds under a nonlinearity too: name it by what is left."""
    for atom, power in term.factors.items() if self.rewrites or self.unfolding else ():
        if atom not in self.inside:
            self.inside[atom] = _renamed_inside(self, atom)
        parts = self.inside[atom]
        if parts is None:
            continue
        if power > 0:
            return self.expand(term, atom, parts)
        rest = term.copy()
        rest.times(atom)
        return [t for f in inverse(self, parts) if (t := multiply(rest, renamed(f))) is not None]
    return None


def _renamed_inside(self: Normalizer, atom: Atom) -> list[Term] | None:
    """Return an atom after the rewrites in what it names, None if they change nothing.

    Recurrences unfold under magnitudes only: under a gate they would never end in one name.
    """
    name = atom[0]
    function = function_of(self.algebra, name)
    state = ":" not in name and self.algebra.needs_position(name)
    # a state is opened where a recurrence is asked to unfold, and its equation holds
    if state and not (self.unfold(atom) and self.context.implies(("", 0), atom[1][0])):
        return None
    if function not in (*TABLE, "den"):
        return None
    magnitude = state or function in ("abs", "sqrt", "step")
    if not (self.unfolding and magnitude) and not self.names_rewritten & mentions(
        self.algebra, name
    ):
        return None
    inner = argument_of(self.algebra, atom)
    folding = function != "den"
    before = Normalizer(self.algebra, [], folding=folding).normal(map(renamed, inner))
    # the context is the one of the statement, and not of the term: the value stands by itself
    context = self.edges if self.unfolding else []
    unfold = self.unfold if magnitude else None
    after = Normalizer(self.algebra, context, self.rewrites, unfold, folding=folding).normal(inner)
    if {k: t.coef for k, t in before.items()} == {k: t.coef for k, t in after.items()}:
        return None
    left = list(after.values())
    if function == "den":
        return left
    return named_function(Frame(self.algebra, {}, dict(self.edges)), function, left)


def mentions(algebra: Algebra, name: str) -> frozenset[str]:
    """Return the names of everything that a nonlinearity's value is computed from."""
    if name not in algebra.mentioned:
        algebra.mentioned[name] = frozenset()  # a recurrence comes back to itself
        named = NAMED.get(name)
        if named is None:
            equation = algebra.system.by_name.get(name)
            reads = {str(tensor_name(r)) for r in equation.reads} if equation else set()
        else:
            reads = {a[0] for t in named.terms for a in t.factors}
        inner = (mentions(algebra, r) for r in reads)
        algebra.mentioned[name] = frozenset(reads).union(*inner)
    return algebra.mentioned[name]


def is_binary(algebra: Algebra, name: str) -> bool:
    """Tell whether an atom is 0 or 1 everywhere."""
    tensor = algebra.system.tensors.get(name)
    return (tensor is not None and tensor.binary) or function_of(algebra, name) == "step"


def reduce_steps(self: Normalizer, term: Term) -> list[Term] | None:
    """A step is 0 or 1, and so is an entry of a mask: its powers are itself."""
    for atom, power in term.factors.items():
        if power > 1 and is_binary(self.algebra, atom[0]):
            rest = term.copy()
            rest.factors[atom] = 1
            return [rest]
    return None


def fold_denominators(self: Normalizer, term: Term) -> list[Term] | None:
    """A sum that is the leading term of a named denominator becomes the denominator minus the rest.

    It must be the whole sum: the same factors, the same guards, nothing else reads its index.
    """
    if not self.folding:
        return None
    for name in term.bound:
        inside = {a: p for a, p in term.factors.items() if any(b == name for b, _ in a[1])}
        if not inside:
            continue
        guards = {pair: c for pair, c in term.guards.items() if name in pair}
        signature = fold_signature(Term(Fraction(1), inside))
        for den in self.algebra.folds.get(signature, ()):
            replaced = _fold(term, name, inside, guards, den)
            if replaced is not None:
                return replaced
    return None


def _fold(term: Term, bound: str, inside: dict[Atom, int], guards: dict[tuple[str, str], int],
          den: str) -> list[Term] | None:  # fmt: skip
    """Fold one sum into one denominator, if it matches exactly."""
    named = NAMED[den]
    lead = lead_of(named.terms)
    if lead is None:
        return None
    (pattern_bound,) = lead.bound
    found = _match(list(lead.factors.items()), list(inside.items()), {pattern_bound: (bound, 0)})
    if found is None or found[pattern_bound] != (bound, 0) or set(named.params) - set(found):
        return None
    expected = {}
    for (a, b), c in lead.guards.items():
        (x, m), (y, n) = found.get(a, (a, 0)), found.get(b, (b, 0))
        expected[x, y] = c + n - m
    if expected != guards or term.bound[bound] != lead.bound[pattern_bound]:
        return None
    rest = term.copy()
    del rest.bound[bound]
    rest.coef /= lead.coef
    rest.factors = {a: p for a, p in rest.factors.items() if a not in inside}
    rest.guards = {pair: c for pair, c in rest.guards.items() if bound not in pair}
    place = tuple(found[p] for p in named.params)
    if rest.factors.get((den, place), 0) < 0 and _single_atom(named.terms) is not None:
        return None  # under 1/D that one atom is written through D and the sum: not both ways
    out = []
    whole = rest.copy()
    whole.times((den, place))
    out.append(whole)
    for other in named.terms:
        if other is not lead:
            moved = substitute(renamed(other), found)
            product = multiply(rest, moved) if moved is not None else None
            if product is not None:
                product.coef = -product.coef
                out.append(product)
    return out


def _match(pattern: list[tuple[Atom, int]], target: list[tuple[Atom, int]],
           found: dict[str, Ix]) -> dict[str, Ix] | None:  # fmt: skip
    """Match factors one to one; placeholders ``?i`` stand for any index."""
    if not pattern:
        return found if not target else None
    (name, places), power = pattern[0]
    for i, ((other, at), p) in enumerate(target):
        if other != name or p != power:
            continue
        trial = dict(found)
        good = all(
            trial.setdefault(b, (x, n - o)) == (x, n - o)
            if b.startswith("?") or b in found
            else (b, o) == (x, n)
            for (b, o), (x, n) in zip(places, at, strict=True)
        )
        rest = _match(pattern[1:], target[:i] + target[i + 1 :], trial) if good else None
        if rest is not None:
            return rest
    return None
