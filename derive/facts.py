"""What is known to be non-negative: the table that every certificate of an inequality draws on.

Each fact is a sum of terms that is never negative, with the reason. They come from three places:
the range of a function (``1 - tanh^2``), a square, and what is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, islice, product

from derive.abstract import NAMED
from derive.algebra import Algebra, Signs, lead_of
from derive.errors import DeriveError
from derive.folding import argument_of
from derive.index import Expr
from derive.lower import lower
from derive.nodes import bound_symbols, entry_indices, kind, tensor_name, walk
from derive.ranges import context_edges
from derive.signs import KINKED, at_least_zero, function_of, sum_at_least_zero
from derive.statement import Identity
from derive.support import size_base
from derive.terms import Atom, Ix, Term, multiply, renamed, substitute

Condition = tuple[Ix, Ix]


@dataclass(frozen=True)
class Fact:
    """A sum of terms that is not negative, for every value of its params that fits.

    Args:
        terms: The sum.
        why: In words.
        params: Index names that may take any value.
        conditions: Pairs (low, high) that must follow for an instance.
        strict: Whether it is above zero.
        stated: Whether it is assumed or proved, rather than a table's.
    """

    terms: tuple[Term, ...]
    why: str
    params: frozenset[str] = frozenset()
    conditions: tuple[Condition, ...] = ()
    strict: bool = False
    stated: bool = False


def atom_terms(atom: Atom, power: int = 1, sign: int = 1) -> Term:
    """Return plus or minus a power of an atom."""
    return Term(Fraction(sign), {atom: power})


def _unit() -> Term:
    return Term(Fraction(1))


def _bounded(atom: Atom, power: int) -> list[Term]:
    return [_unit(), atom_terms(atom, power, -1)]


def _beside(algebra: Algebra, atom: Atom, sign: int) -> list[Term]:
    """|x| + sign x."""
    inner = [t.copy() for t in argument_of(algebra, atom)]
    for term in inner:
        term.coef *= sign
    return [atom_terms(atom), *inner]


Row = tuple[str, str, bool, bool, Callable[[Algebra, Atom], list[Term]]]

RANGES: tuple[Row, ...] = (
    ("tanh", "1 - tanh^2 > 0", True, False, lambda _, a: _bounded(a, 2)),
    ("tanh", "1 - tanh > 0", True, True, lambda _, a: _bounded(a, 1)),
    ("tanh", "1 + tanh > 0", True, True, lambda _, a: [_unit(), atom_terms(a)]),
    ("sigmoid", "1 - sigmoid > 0", True, False, lambda _, a: _bounded(a, 1)),
    ("sin", "1 - sin^2 >= 0", False, False, lambda _, a: _bounded(a, 2)),
    ("cos", "1 - cos^2 >= 0", False, False, lambda _, a: _bounded(a, 2)),
    ("step", "1 - step >= 0", False, False, lambda _, a: _bounded(a, 1)),
    ("abs", "|x| - x >= 0", False, False, lambda g, a: _beside(g, a, -1)),
    ("abs", "|x| + x >= 0", False, False, lambda g, a: _beside(g, a, 1)),
)
"""Function, reason, whether above zero, whether for odd powers alone, the sum of terms.

Values that are never negative by themselves (exp, sigmoid, roots, ...) need no row:
`derive.signs` knows them."""


def ranges_of(algebra: Algebra, atom: Atom, power: int) -> Iterator[Fact]:
    """Yield what the range of a function says of one of its values, as a power of it needs it."""
    name, places = atom
    function = function_of(algebra, name)
    # at an initial position a state is given, not a value of its function
    state = ":" not in name and algebra.needs_position(name)
    conditions = ((("", 0), places[0]),) if state else ()
    for row, why, strict, odd, build in RANGES:
        if row == function and (power % 2 or not odd):
            yield Fact(tuple(build(algebra, atom)), why, frozenset(), conditions, strict)


def one_of(algebra: Algebra, atom: Atom) -> Iterator[Fact]:
    """Yield that a sum of terms that are not negative is at least each of them: p_c <= 1."""
    named = NAMED[atom[0]]
    lead = lead_of(named.terms)
    if lead is None or not sum_at_least_zero(algebra, named.terms):
        return
    ((bound, _),) = lead.bound.items()
    mapping: dict[str, Ix] = dict(zip(named.params, atom[1], strict=True))
    mapping[bound] = ("any=", 0)
    one = substitute(Term(-lead.coef, dict(lead.factors), {}, dict(lead.guards)), mapping)
    if one is None:
        return
    conditions = tuple(((a, 0), (b, c)) for (a, b), c in one.guards.items())
    one.guards = {}
    why = "a sum of non-negative terms is at least each of them"
    yield Fact((atom_terms(atom), one), why, frozenset({"any="}), conditions)


def one_of_sum(algebra: Algebra, term: Term) -> Iterator[Fact]:
    """Yield that a sum over an axis of what is not negative is at least each of its terms."""
    if len(term.bound) != 1 or term.guards or term.pinned:
        return
    ((bound, _),) = term.bound.items()
    inside = {a: p for a, p in term.factors.items() if any(b == bound for b, _ in a[1])}
    if not inside or not all(p > 0 and at_least_zero(algebra, a) for a, p in inside.items()):
        return
    whole = Term(Fraction(1), dict(inside), dict(term.bound))
    one = substitute(Term(Fraction(-1), dict(inside)), {bound: ("any=", 0)})
    if one is not None:
        why = "a sum of non-negative terms is at least each of them"
        yield Fact((whole, one), why, frozenset({"any="}))


def all_assumed(algebra: Algebra, identity: Identity, claim: Identity) -> Iterator[Fact]:
    """Yield what an assumed inequality says: for all its indices, and at the claim's own ones.

    Args:
        algebra: Of the system.
        identity: The inequality.
        claim: The claim. An inequality that uses the name of one of its positions means that one.
    """
    check_not_random(algebra, identity)
    fixed = {s.name for s, d in claim.free if d.ordered}
    general: dict[Expr, Ix] = {
        s: (s.name if s.name in fixed else s.name + "=", 0) for s, _ in identity.free
    }
    yield assumed(algebra, identity, general)
    choices = [[c.name for c, d in claim.free if d.name == dim.name] for _, dim in identity.free]
    for names in islice(product(*choices), MAX_INSTANCES) if choices else ():
        special = {s: (n, 0) for (s, _), n in zip(identity.free, names, strict=True)}
        if all(general[s] == ix or general[s][0].endswith("=") for s, ix in special.items()):
            yield assumed(algebra, identity, special)


MAX_INSTANCES = 6


def check_not_random(algebra: Algebra, identity: Identity) -> None:
    """Refuse to assume something of random entries outside of an expected value."""
    random = algebra.system.random
    waiting = [identity.lhs, identity.rhs]
    while waiting:
        node = waiting.pop()
        if tensor_name(node) in random:
            message = f"an assumption cannot speak of random entries; {tensor_name(node)} is random"
            hint = "assume its mean or its variance"
            raise DeriveError(message, text=identity.text, at=0, hint=hint)
        if kind(node) != "Expect":
            waiting += node.args


def assumed(algebra: Algebra, identity: Identity, env: dict[Expr, Ix]) -> Fact:
    """Return what an inequality says at given names of its indices (``i=``: at any).

    Args:
        algebra: Of the system.
        identity: The inequality.
        env: What its indices stand for.
    """
    own = {s.name: b for s, (b, _) in env.items()}

    def place(ix: Ix) -> Ix:
        return own.get(ix[0], ix[0]), ix[1]

    edges = [(place((a, 0)), place((b, c))) for (a, b), c in context_edges(identity)]
    params = frozenset(b for b, _ in env.values() if b.endswith("="))
    names = {b for b, _ in env.values()}
    conditions = tuple(pair for pair in edges if {pair[0][0], pair[1][0]} & names)
    guards = {(a, b): n - m for (a, m), (b, n) in edges}
    terms = lower(algebra, identity.gap, env, guards)
    return Fact(tuple(terms), f"{identity.text} (assumed)", params, conditions, identity.strict,
                stated=True)  # fmt: skip


def signs_of(stated: Iterable[Identity], fixed: frozenset[str]) -> Signs:
    """Return the tensors of whose sign the assumptions speak as a whole: c > 0, f[k,j] >= 0."""
    found: dict[bool, set[str]] = {False: set(), True: set()}
    for identity in stated:
        below = identity.relation[0] == "<"
        small, large = (identity.lhs, identity.rhs)[:: 1 if below else -1]
        if identity.relation == "=" or small != 0 or identity.conditions:
            continue
        name, indices = tensor_name(large), entry_indices(large)
        free = {s for s, _ in identity.free}
        if name is not None and set(indices) == free and len(indices) == len(free):
            # a state's initial values are not among the positions of a free index
            initial = identity.system.tensors[name].first < 0
            if not initial and not any(s.name in fixed for s in free):
                found[identity.strict].add(name)
    return Signs(frozenset(found[False] | found[True]), frozenset(found[True]))


def squares(algebra: Algebra, identity: Identity) -> Iterator[Fact]:
    """Yield the squares of the sums that stand as factors in the equations and in the statement."""
    for equation in algebra.system.equations:
        indices = list(zip(equation.indices, equation.tensor.dims, strict=True))
        for part in (equation.rhs, *sums_in(equation.rhs)):
            if not is_sum(part) or indices_in(part) - set(equation.indices):
                continue
            env: dict[Expr, Ix] = {s: (f"{s.name}=", 0) for s, _ in indices}
            conditions: list[Condition] = []
            for symbol, dim in indices:
                if dim.ordered:
                    here = (f"{symbol.name}=", 0)
                    conditions += [(("", 0), here), (here, (size_base(dim.name), -1))]
            yield square(algebra, part, env, tuple(conditions))
    plain: dict[Expr, Ix] = {s: (s.name, 0) for s, _ in identity.free}
    for part in sums_in(identity.gap):
        if not indices_in(part) - set(plain):
            yield square(algebra, part, plain, ())


def indices_in(expr: Expr) -> set[Expr]:
    """Return the index symbols of an expression that it does not bind itself."""
    bound = {s for node in walk(expr) for s in bound_symbols(node)}
    return {s for s in expr.free_symbols if s.is_integer and not s.is_positive} - bound


def sums_in(expr: Expr) -> Iterator[Expr]:
    """Yield the sums that are factors or squared below an expression."""
    for node in walk(expr):
        parts = node.args if node.is_Mul else (node.base,) if node.is_Pow else ()
        for part in parts:
            inner = part.base if part.is_Pow else part
            if is_sum(inner):
                yield inner


def is_sum(expr: Expr) -> bool:
    """Tell whether an expression is a sum, of two or of many, that no split into cases changes."""
    if not (expr.is_Add or kind(expr) == "Sum"):
        return False
    return not any(kind(n) in KINKED for n in walk(expr))


def binomials(algebra: Algebra, term: Term) -> Iterator[Fact]:
    """Yield squares: (a - b)^2, (a + b)^2 of odd factors of a monomial, (D - 2a)^2 of a sum D."""
    odd = [a for a, p in term.factors.items() if p % 2 and not at_least_zero(algebra, a)]
    for a, b in combinations(odd if len(odd) < 4 else (), 2):
        for sign in (1, -1):
            ends = [atom_terms(a, 2), atom_terms(b, 2)]
            cross = Term(Fraction(2 * sign), {a: 1, b: 1})
            yield Fact((*ends, cross), "a square")
    # a share of a whole: p (1 - p) is at most 1/4
    for whole in (a for a in term.factors if a[0].startswith("den:")):
        for part in (a for a in term.factors if a != whole):
            ends = [atom_terms(whole, 2), Term(Fraction(4), {part: 2})]
            yield Fact((*ends, Term(Fraction(-4), {whole: 1, part: 1})), "a square")


def square(algebra: Algebra, expr: Expr, env: dict[Expr, Ix],
           conditions: tuple[Condition, ...]) -> Fact:  # fmt: skip
    """Return the square of an expression as a fact."""
    guards = {(a, b): n - m for (a, m), (b, n) in conditions}
    terms = lower(algebra, expr, env, guards)
    pairs = (multiply(renamed(a), renamed(b)) for a in terms for b in terms)
    params = frozenset(b for b, _ in env.values() if b.endswith("="))
    return Fact(tuple(t for t in pairs if t is not None), "a square", params, conditions)
