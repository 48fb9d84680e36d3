"""SymPy expressions to terms: a whitelist of nodes, everything else refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction

import sympy as sp

from derive.abstract import NAMED, Named, abstract, digest
from derive.algebra import Algebra
from derive.calculus import partial_derivative
from derive.errors import DeriveError
from derive.expect import expectation
from derive.functions import TABLE
from derive.index import Expr, affine
from derive.mirrors import one
from derive.naming import Frame, bind, inverse, name_of, named_function
from derive.nodes import entry_indices, exponential, exponentials, kind, tensor_name, walk
from derive.normal import Normalizer, UndecidedError
from derive.support import size_base
from derive.terms import (
    Guards,
    Ix,
    Term,
    canonical_key,
    fresh,
    multiply,
    renamed,
    substitute,
)


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
    if kind(expr) == "relu":
        (x,) = expr.args
        return lower_in(frame, (x + TABLE["abs"](x)) / 2)
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
    name, dim = fresh(), axis_of(frame, first, last, symbol, body)
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


def axis_of(frame: Frame, first: Expr, last: Expr, symbol: Expr, body: Expr) -> str:
    """Return the size name of a bound index from its limits, else from where it stands."""
    at = affine(last)
    dims = frame.algebra.system.dims
    if at.base is not None and at.base.is_positive and at.base.name in dims:
        return str(at.base.name)
    ordered = [d.name for d in dims.values() if d.ordered]
    if len(ordered) == 1:
        return ordered[0]
    for read in (n for n in walk(body) if tensor_name(n) is not None):
        tensor = frame.algebra.system.tensors.get(str(tensor_name(read)).removeprefix("g_"))
        slots = zip(entry_indices(read), tensor.dims if tensor else (), strict=False)
        found = next((d.name for i, d in slots if affine(i).base == symbol), None)
        if found is not None:
            return found
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
    extra = extras(frame, nf.values(), size == 1)
    constant = all(b != "?k" for t in nf.values() for _, places in t.factors for b, _ in places)
    # equal factors commute: the ascending product of a constant is written as the descending one
    # (and so do the numbers of a product without axes)
    descending = kind(expr) == "DProduct" or constant
    mapping: dict[str, Ix] = {b: (f"?{n}", 0) for n, b in enumerate(extra)}
    terms = [t for s in nf.values() if (t := substitute(s, mapping)) is not None]
    tag = content_name("Q" if descending else "P", terms)
    name = f"{tag}:{'' if size == 1 else size.name}"
    NAMED.setdefault(
        name, Named(("?r", "?c", "?k", *(b for b, _ in mapping.values())), tuple(terms))
    )
    ends = (high, low) if descending else (low, high)
    return [one(1, (name, (frame.ix(i), frame.ix(j), *ends, *((b, 0) for b in extra))))]


def extras(frame: Frame, terms: Iterable[Term], scalar: bool) -> list[str]:
    """Return the free indices that the factors of a product depend on, in a canonical order.

    Raises:
        DeriveError: If the factors of a matrix product have any, or if one is a position.
    """
    terms = list(terms)
    _, places = abstract("product", terms)
    free = [b for b, _ in places if b not in ("?r", "?c", "?k")]
    if any(not scalar or is_position(frame, (b, 0)) for b in free):
        raise DeriveError("the factors of a product may depend on its own index only")
    return free


def content_name(tag: str, terms: list[Term]) -> str:
    """Name terms by content without abstracting their free indices."""
    return f"{tag}:{digest(tuple(sorted((canonical_key(t), t.coef) for t in terms)))}"


def on_softmax(frame: Frame, expr: Expr) -> list[Term]:
    """exp(x_at) / Z with Z the named sum of exp(x)."""
    body, bound, at, size = expr.args
    top = replace(frame, env={**frame.env, bound: frame.ix(at)})
    below = inverse(Normalizer(frame.algebra, []), partition(frame, body, bound, size))
    return products(frame, [lower_in(top, exponential(body, TABLE["exp"])), below])


def partition(frame: Frame, body: Expr, bound: Expr, size: Expr) -> list[Term]:
    """Return the sum of exp over the bound index, as terms."""
    return on_sum(frame, exponentials(body, bound, size, TABLE["exp"]))


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
    "Expect": lambda f, e: expectation(f, e.args[0]),
    "Product": on_product,
    "DProduct": on_product,
    "Softmax": on_softmax,
    "LogSumExp": on_logsumexp,
}
