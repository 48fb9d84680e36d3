"""SymPy expressions to terms: a whitelist of nodes, everything else refused by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import sympy as sp

from derive.algebra import NAMED, Algebra, Named, abstract, digest, names_in, size_base
from derive.calculus import partial_derivative
from derive.errors import DeriveError
from derive.functions import TABLE
from derive.index import Expr, affine
from derive.nodes import entry_indices, kind, tensor_name
from derive.normal import Normalizer, UndecidedError
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


def lower(algebra: Algebra, expr: Expr, env: dict[Expr, Ix], edges: Guards) -> list[Term]:
    """Lower an expression to a sum of terms (not yet normal).

    Args:
        algebra: Of the system it speaks about.
        expr: The expression.
        env: What its index symbols stand for.
        edges: What holds of the free positions.

    Raises:
        DeriveError: On a node that has no rule.
    """
    return lower_in(Frame(algebra, env, edges), expr)


def one(coef: Fraction | int = 1, *atoms: Atom) -> Term:
    """Return a term from atoms."""
    term = Term(Fraction(coef))
    for atom in atoms:
        term.times(atom)
    return term


def lower_in(frame: Frame, expr: Expr) -> list[Term]:
    """Lower in a frame, by the row of the node's kind."""
    name = tensor_name(expr)
    if name is not None:
        if name not in frame.algebra.system.tensors and name.startswith("g_"):
            name = "g:" + name[2:]
        return [one(1, (name, tuple(frame.ix(i) for i in entry_indices(expr))))]
    if expr.is_Rational:
        return [one(Fraction(int(expr.p), int(expr.q)))]
    if expr.is_Symbol:
        return number_of(frame, expr)
    if kind(expr) in TABLE:
        return named_function(frame, kind(expr), lower_in(frame, expr.args[0]))
    row = ROWS.get(kind(expr))
    if row is None:
        raise DeriveError(f"the normal form has no rule for {kind(expr)}")
    return row(frame, expr)


def number_of(frame: Frame, symbol: Expr) -> list[Term]:
    """A size or an index used as a number."""
    if symbol in frame.env:
        base, offset = frame.env[symbol]
        value = [one(offset)] if offset else []
        if base.startswith("#"):
            return [*value, one(1, (base, ()))]
        return value if base == "" else [*value, one(1, ("@", ((base, 0),)))]
    if symbol.is_positive:
        return [one(1, (size_base(symbol.name), ()))]
    raise DeriveError(f"index {symbol} is not bound here")


def products(frame: Frame, lists: list[list[Term]]) -> list[Term]:
    """Multiply sums out."""
    out = [one()]
    for terms in lists:
        pairs = ((left, right) for left in out for right in terms)
        out = [p for left, right in pairs if (p := multiply(left, renamed(right))) is not None]
        if len(out) > 5000:
            raise UndecidedError("a product of sums grows past 5000 terms")
    return out


def on_power(frame: Frame, expr: Expr) -> list[Term]:
    """An integer power multiplies out; a negative one inverts; a root is named."""
    exponent, base = expr.exp, lower_in(frame, expr.base)
    if exponent.is_Rational and not exponent.is_Integer and exponent.q == 2:
        root = named_function(frame, "sqrt", base)
        return integer_power(frame, root, int(exponent.p))
    if not exponent.is_Integer:
        raise DeriveError(f"an exponent must be an integer or a half; found {exponent}")
    return integer_power(frame, base, int(exponent))


def integer_power(frame: Frame, base: list[Term], exponent: int) -> list[Term]:
    """Raise a sum of terms to an integer power."""
    if exponent < 0:
        return products(frame, [inverse(Normalizer(frame.algebra, []), base)] * -exponent)
    return products(frame, [base] * exponent)


def on_sum(frame: Frame, expr: Expr) -> list[Term]:
    """Bind a fresh name; on a position axis its range is two guards."""
    *inner, (symbol, first, last) = expr.limits
    body = expr.function if not inner else sp.Sum(expr.function, *inner)
    name, dim = fresh(), axis_of(frame, first, last)
    if not frame.algebra.system.dims[dim].ordered:
        terms = lower_in(replace(frame, env={**frame.env, symbol: (name, 0)}), body)
        return [bind(t, name, dim) for t in terms]
    low, high = frame.ix(first), frame.ix(last)
    edges = {**frame.edges, (low[0], name): -low[1], (name, high[0]): high[1]}
    terms = lower_in(Frame(frame.algebra, {**frame.env, symbol: (name, 0)}, edges), body)
    out = []
    for term in terms:
        bind(term, name, dim)
        if term.guard(low, (name, 0)) and term.guard((name, 0), high):
            out.append(term)
    return out


def bind(term: Term, name: str, dim: str) -> Term:
    """Sum a term over a name."""
    term.bound[name] = dim
    return term


def axis_of(frame: Frame, first: Expr, last: Expr) -> str:
    """Return the size name of a bound index from its limits."""
    at = affine(last)
    dims = frame.algebra.system.dims
    if at.base is not None and at.base.is_positive and at.base.name in dims:
        return str(at.base.name)
    ordered = [d.name for d in dims.values() if d.ordered]
    if len(ordered) == 1:
        return ordered[0]
    raise DeriveError(f"cannot tell which axis the range {first}..{last} is on")


def on_delta(frame: Frame, expr: Expr) -> list[Term]:
    """Positions: two guards. Features: an atom that contracts."""
    left, right = (frame.ix(a) for a in expr.args)
    if is_position(frame, left) or is_position(frame, right):
        term = one()
        return [term] if term.guard(left, right) and term.guard(right, left) else []
    return [one(1, ("δ", (left, right)))]


def is_position(frame: Frame, ix: Ix) -> bool:
    """Tell whether an index runs over positions (it stands in some guard, or is a size)."""
    return ix[0].startswith("#") or any(ix[0] in pair for pair in frame.edges if ix[0])


def on_leq(frame: Frame, expr: Expr) -> list[Term]:
    """A guard."""
    term = one()
    return [term] if term.guard(frame.ix(expr.args[0]), frame.ix(expr.args[1])) else []


def on_total(frame: Frame, expr: Expr) -> list[Term]:
    """dL/dX is an adjoint atom, any other total derivative a path atom."""
    of, wrt = expr.args
    left, right = str(tensor_name(of)), str(tensor_name(wrt))
    places = tuple(frame.ix(i) for i in (*entry_indices(of), *entry_indices(wrt)))
    for name in (left, right):
        if name in frame.algebra.system.derived_by_name:
            raise DeriveError(f"{name} is not part of the model: no derivative of or by it")
    if left == "L" == right:
        return [one()]
    return [one(1, (f"g:{right}" if left == "L" else f"d:{left}/{right}", places))]


def on_partial(frame: Frame, expr: Expr) -> list[Term]:
    """The local derivative of one equation."""
    of, wrt = expr.args
    equation = frame.algebra.system.by_name.get(str(tensor_name(of)))
    if equation is None:
        raise DeriveError(f"{tensor_name(of)} has no equation: no local derivative")
    slope = partial_derivative(equation, entry_indices(of), wrt, frame.algebra.system)
    return lower_in(frame, slope)


def on_symbolic_power(frame: Frame, expr: Expr) -> list[Term]:
    """w^(t-s): one atom with the lag as its exponent.

    w^(lag + c) is written w^c w^lag. Both sides of an identity are polynomials in w where the
    exponents are non-negative, so an identity for all w != 0 holds at w = 0 too.
    """
    nf = frame.normalizer().normal(lower_in(frame, expr.args[0]))
    terms = list(nf.values())
    if (
        len(terms) == 1
        and terms[0].coef == 1
        and list(terms[0].factors.values()) == [1]
        and not (terms[0].bound or terms[0].guards)
    ):
        (base,) = terms[0].factors
    else:
        base = name_of(frame.algebra, "val", terms)
    plus, minus = exponent_parts(frame, expr.args[1])
    return [one(1, ("^:" + base[0], (*base[1], plus, minus)))]


def exponent_parts(frame: Frame, expr: Expr) -> tuple[Ix, Ix]:
    """Split an exponent into plus and minus positions: T-1-t is (#T, -1), (t, 0)."""
    plus, minus, offset = ZERO_IX, ZERO_IX, 0
    for part in sp.Add.make_args(expr):
        if part.is_Integer:
            offset += int(part)
        elif part.is_Symbol and plus == ZERO_IX:
            plus = frame.ix(part)
        elif (-part).is_Symbol and minus == ZERO_IX:
            minus = frame.ix(-part)
        else:
            raise DeriveError(f"an exponent is a difference of two positions; found {expr}")
    return (plus[0], plus[1] + offset), minus


ZERO_IX: Ix = ("", 0)


def on_product(frame: Frame, expr: Expr) -> list[Term]:
    """An ordered matrix product of symbolic length: an atom P (ascending) or Q (descending)."""
    body, row, col, symbol, first, last, i, j, size = expr.args
    env: dict[Expr, Ix] = {row: ("?r", 0), col: ("?c", 0), symbol: ("?k", 0)}
    low, high = frame.ix(first), frame.ix(last)
    if kind(expr) == "DProduct":
        low, high = high, low
    edges: Guards = {(low[0], "?k"): -low[1], ("?k", high[0]): high[1]}
    inner = Frame(frame.algebra, {**frame.env, **env}, {**frame.edges, **edges})
    nf = inner.normalizer().normal(lower_in(inner, body))
    free = {b for t in nf.values() for _, places in t.factors for b, _ in places} - {
        "?r",
        "?c",
        "?k",
    }
    if any(b and not b.startswith(("#", "~")) for b in free):
        raise DeriveError("the factors of a product may depend on its own index only")
    constant = all(b != "?k" for t in nf.values() for _, places in t.factors for b, _ in places)
    # equal factors commute: the ascending product of a constant is written as the descending one
    descending = kind(expr) == "DProduct" or constant
    tag = content_name("Q" if descending else "P", list(nf.values()))
    name = f"{tag}:{'' if size == 1 else size.name}"
    NAMED.setdefault(name, Named(("?r", "?c", "?k"), tuple(nf.values())))
    ends = (high, low) if descending else (low, high)
    return [one(1, (name, (frame.ix(i), frame.ix(j), *ends)))]


def content_name(tag: str, terms: list[Term]) -> str:
    """Name terms by content without abstracting their free indices."""
    return f"{tag}:{digest(tuple(sorted((canonical_key(t), t.coef) for t in terms)))}"


def on_softmax(frame: Frame, expr: Expr) -> list[Term]:
    """exp(x_at) / Z with Z the named sum of exp(x)."""
    body, bound, at, size = expr.args
    top = lower_in(replace(frame, env={**frame.env, bound: frame.ix(at)}), body)
    below = inverse(Normalizer(frame.algebra, []), partition(frame, body, bound, size))
    return products(frame, [named_function(frame, "exp", top), below])


def partition(frame: Frame, body: Expr, bound: Expr, size: Expr) -> list[Term]:
    """Return the sum of exp over the bound index, as terms."""
    return on_sum(frame, sp.Sum(TABLE["exp"](body), (bound, 0, size - 1)))


def on_logsumexp(frame: Frame, expr: Expr) -> list[Term]:
    """Log of the named sum of exp."""
    return named_function(frame, "log", partition(frame, *expr.args))


ROWS: dict[str, Callable[[Frame, Expr], list[Term]]] = {
    "Add": lambda f, e: [t for a in e.args for t in lower_in(f, a)],
    "Mul": lambda f, e: products(f, [lower_in(f, a) for a in e.args]),
    "Pow": on_power,
    "Sum": on_sum,
    "KroneckerDelta": on_delta,
    "Leq": on_leq,
    "Total": on_total,
    "Partial": on_partial,
    "Detach": lambda f, e: lower_in(f, e.args[0]),
    "Power": on_symbolic_power,
    "Product": on_product,
    "DProduct": on_product,
    "Softmax": on_softmax,
    "LogSumExp": on_logsumexp,
}


# Nonlinearities and denominators, named by content


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
    picked = select_onehot(frame, terms, lambda rest: named_function(frame, name, rest))
    if picked is not None:
        return picked
    if name == "log":
        return logarithm(normalizer, terms)
    if name == "exp":
        return exponential(frame.algebra, terms)
    if not terms:
        terms = [Term(Fraction(0))]
    atom = frame.algebra.alias(name_of(frame.algebra, name, terms))
    if atom[0] in frame.algebra.system.tensors and frame.algebra.needs_position(atom[0]):
        # at an initial position the state is given, not computed by its equation
        if not frame.normalizer().context.implies(("", 0), atom[1][0]):
            atom = name_of(frame.algebra, name, terms)
    return [one(1, atom)]


def select_onehot(
    frame: Frame, terms: list[Term], apply: Callable[[list[Term]], list[Term]]
) -> list[Term] | None:
    """f(sum_c Y_c v_c) = sum_c Y_c f(v_c) for a one-hot row Y."""
    if len(terms) != 1:
        return None
    (term,) = terms
    for atom, power in term.factors.items():
        tensor = frame.algebra.system.tensors.get(atom[0])
        if tensor is None or not tensor.onehot or power != 1 or atom[1][-1][0] not in term.bound:
            continue
        chosen, rest = atom[1][-1][0], term.copy()
        rest.times(atom, -1)
        dim = rest.bound.pop(chosen)
        picked = [multiply(one(1, atom), t) for t in apply([rest])]
        return [bind(t, chosen, dim) for t in picked if t is not None]
    return None


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
