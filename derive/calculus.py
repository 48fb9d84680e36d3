"""Local derivatives, and from them the adjoint (reverse) and tangent (forward) equations.

Two separate pieces of code, so that one can test the other: `uses` collects every read of an
expression with its cofactor (reverse), `tangent` applies the product rule (forward). The adjoint
theorem, <g, J S> = <J^T g, S> for free g and S, is checked by the normal form for each system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import sympy as sp

from derive.equation import Equation, System
from derive.errors import DeriveError
from derive.functions import TABLE
from derive.index import Expr, Tensor, affine, index_symbol
from derive.nodes import Leq, Power, Softmax, entry_indices, freshen, kind, rebuild, tensor_name

Limit = tuple[sp.Symbol, Expr, Expr]
CONSTANT_KINDS = ("KroneckerDelta", "Leq", "Detach")


@dataclass(frozen=True)
class Use:
    """One read of a tensor entry inside an expression.

    The expression's derivative by this occurrence is ``cofactor``, summed over ``limits``.
    """

    entry: Expr
    cofactor: Expr
    limits: tuple[Limit, ...]


@dataclass
class Fresh:
    """Makes index symbols that nothing else uses, keeping the letter for display."""

    tag: str
    count: int = 0
    made: dict[str, int] = field(default_factory=dict)

    def __call__(self, symbol: sp.Symbol) -> sp.Symbol:
        """Return a new symbol with the letter of this one."""
        self.count += 1
        return index_symbol(f"{symbol.name.split(chr(39))[0]}'{self.tag}{self.count}")


def uses(expr: Expr, known: Mapping[Expr, Expr], fresh: Fresh) -> Iterator[Use]:
    """Yield every read with its cofactor.

    Args:
        expr: The right side of an equation.
        known: Nodes that an equation names, by node: ``tanh(z[t,j])`` is ``h[t,j]``.
        fresh: Makes bound names.

    Raises:
        DeriveError: On a node without a derivative rule.
    """
    yield from _uses(expr, sp.Integer(1), (), known, fresh)


def _uses(
    expr: Expr, cof: Expr, limits: tuple[Limit, ...], known: Mapping[Expr, Expr], fresh: Fresh
) -> Iterator[Use]:
    if tensor_name(expr) is not None:
        yield Use(expr, cof, limits)
    elif expr.is_Add:
        for arg in expr.args:
            yield from _uses(arg, cof, limits, known, fresh)
    elif expr.is_Mul:
        for place, arg in enumerate(expr.args):
            others = [a for i, a in enumerate(expr.args) if i != place]
            yield from _uses(arg, sp.Mul(cof, *others), limits, known, fresh)
    elif expr.is_Pow and expr.exp.is_Rational:
        yield from _uses(
            expr.base, cof * expr.exp * expr.base ** (expr.exp - 1), limits, known, fresh
        )
    elif kind(expr) == "Power":
        base, exponent = expr.args
        slope = exponent * Power(base, exponent - 1)
        yield from _uses(base, cof * slope, limits, known, fresh)
    elif isinstance(expr, sp.Sum):
        inner = freshen(expr, fresh)
        more = tuple((s, a, b) for s, a, b in inner.limits)
        yield from _uses(inner.function, cof, limits + more, known, fresh)
    elif kind(expr) in TABLE:
        slope = TABLE[kind(expr)].derivative(expr.args[0], known.get(expr, expr))
        yield from _uses(expr.args[0], cof * slope, limits, known, fresh)
    elif kind(expr) == "Masked":
        # where the weight is zero, so is the softmax that the cofactor holds
        yield from _uses(expr.args[1], cof, limits, known, fresh)
    elif kind(expr) == "Softmax":
        yield from _softmax_uses(expr, cof, limits, known, fresh)
    elif kind(expr) == "LogSumExp":
        body, bound, size = expr.args
        name = fresh(bound)
        at = rebuild(body, {bound: name})
        weight = _named_softmax(Softmax(body, bound, name, size), known)
        yield from _uses(at, cof * weight, (*limits, (name, sp.Integer(0), size - 1)), known, fresh)
    elif kind(expr) not in CONSTANT_KINDS and not expr.is_Number and not expr.is_Symbol:
        raise DeriveError(f"no derivative rule for {kind(expr)} in an equation")


def _softmax_uses(
    expr: Expr, cof: Expr, limits: tuple[Limit, ...], known: Mapping[Expr, Expr], fresh: Fresh
) -> Iterator[Use]:
    """D softmax(x)_at = p_at (delta(at, c) - p_c) dx_c, summed over c."""
    body, bound, at, size = expr.args
    name = fresh(bound)
    p_at = _named_softmax(expr, known)
    p_c = _named_softmax(Softmax(body, bound, name, size), known)
    weight = cof * p_at * (sp.KroneckerDelta(at, name) - p_c)
    inner = rebuild(body, {bound: name})
    yield from _uses(inner, weight, (*limits, (name, sp.Integer(0), size - 1)), known, fresh)


def _named_softmax(expr: Expr, known: Mapping[Expr, Expr]) -> Expr:
    """Return the name that an equation gives to a softmax entry, at whatever class it is read."""
    for node, name in known.items():
        if kind(node) == "Softmax" and rebuild(node, {node.args[2]: expr.args[2]}) == rebuild(
            expr, {expr.args[1]: node.args[1]}
        ):
            return rebuild(name, {node.args[2]: expr.args[2]})
    return expr


def tangent(expr: Expr, entry: Callable[[Expr], Expr]) -> Expr:
    """Return the directional derivative of an expression by the product rule.

    Args:
        expr: The right side of an equation.
        entry: The tangent of each tensor entry that it reads.

    Raises:
        DeriveError: On a node without a derivative rule.
    """
    if tensor_name(expr) is not None:
        return entry(expr)
    if expr.is_Number or expr.is_Symbol or kind(expr) in CONSTANT_KINDS:
        return sp.Integer(0)
    if expr.is_Add:
        return sp.Add(*(tangent(a, entry) for a in expr.args))
    if expr.is_Mul:
        args = expr.args
        parts = (sp.Mul(*args[:i], tangent(a, entry), *args[i + 1 :]) for i, a in enumerate(args))
        return sp.Add(*parts)
    if expr.is_Pow and expr.exp.is_Rational:
        return expr.exp * expr.base ** (expr.exp - 1) * tangent(expr.base, entry)
    if kind(expr) == "Power":
        base, exponent = expr.args
        return exponent * Power(base, exponent - 1) * tangent(base, entry)
    if isinstance(expr, sp.Sum):
        return sp.Sum(tangent(expr.function, entry), *expr.limits)
    if kind(expr) in TABLE:
        slope = TABLE[kind(expr)].derivative(expr.args[0], expr)
        return slope * tangent(expr.args[0], entry)
    if kind(expr) == "Masked":
        return tangent(expr.args[1], entry)
    if kind(expr) in ("Softmax", "LogSumExp"):
        return _softmax_tangent(expr, entry)
    raise DeriveError(f"no derivative rule for {kind(expr)} in an equation")


def _softmax_tangent(expr: Expr, entry: Callable[[Expr], Expr]) -> Expr:
    """p_at (dx_at - mean of dx under p); for log-sum-exp the mean itself."""
    body, bound, size = expr.args[0], expr.args[1], expr.args[-1]
    inner = tangent(body, entry)
    mean = sp.Sum(Softmax(body, bound, bound, size) * inner, (bound, 0, size - 1))
    if kind(expr) == "LogSumExp":
        return mean
    return expr * (rebuild(inner, {bound: expr.args[2]}) - mean)


def named_nodes(system: System) -> dict[Expr, Expr]:
    """Return the nonlinear nodes that an equation names, so that derivatives read through them."""
    return {e.rhs: e.lhs for e in system.equations if e.rhs.is_Function}


@lru_cache(maxsize=256)
def system_uses(system: System) -> dict[str, tuple[tuple[Equation, Use], ...]]:
    """Return every read of every tensor in the system's equations, by tensor name."""
    known, found = named_nodes(system), dict[str, list[tuple[Equation, Use]]]()
    for equation in system.equations:
        for use in uses(equation.rhs, known, Fresh(f"u{equation.tensor.name}")):
            found.setdefault(str(tensor_name(use.entry)), []).append((equation, use))
    return {name: tuple(reads) for name, reads in found.items()}


def adjoint_tensor(tensor: Tensor) -> Tensor:
    """Return the tensor ``g_X`` that holds dL/dX, with X's shape and positions."""
    meaning = f"dL/d{tensor.name}"
    return Tensor(f"g_{tensor.name}", tensor.dims, tensor.first, role="adjoint", meaning=meaning)


@lru_cache(maxsize=256)
def adjoint_equations(system: System) -> tuple[Equation, ...]:
    """Derive ``g_X = dL/dX`` for every tensor that the loss reaches, in backward order.

    States come in reverse order of their equations, then inputs and parameters. Adjoints are zero
    outside the positions of their tensor, which is the backward boundary.

    Raises:
        DeriveError: If no loss is selected, or a node has no derivative rule.
    """
    if not system.loss:
        raise DeriveError(f"{system.name} has no selected loss", hint=f"losses: {[*system.losses]}")
    reached = _reached(system)
    order = [e.tensor.name for e in reversed(system.equations) if e.tensor.name != "L"]
    order += [t.name for t in system.givens]
    return tuple(_adjoint(system, name) for name in order if name in reached)


@lru_cache(maxsize=256)
def _reached(system: System) -> frozenset[str]:
    """Return the names of the tensors on a path to the loss."""
    reads, reached = system_uses(system), {"L"}
    grown = True
    while grown:
        more = {n for n, pairs in reads.items() if any(e.tensor.name in reached for e, _ in pairs)}
        grown = not more <= reached
        reached |= more
    return frozenset(reached)


@dataclass(frozen=True)
class Contribution:
    """What one read passes back to the adjoint of the tensor that it reads.

    Args:
        equation: The equation that reads.
        use: The read, with its cofactor.
        expr: The contribution, in the indices of the adjoint.
    """

    equation: Equation
    use: Use
    expr: Expr


def contributions(
    system: System, name: str
) -> tuple[tuple[sp.Symbol, ...], tuple[Contribution, ...]]:
    """Return the indices of a tensor's adjoint, and what each read of it passes back."""
    tensor, reached = system.tensors[name], _reached(system)
    pairs = [(e, u) for e, u in system_uses(system).get(name, ()) if e.tensor.name in reached]
    if not pairs:
        return (), ()
    targets = _targets(tensor, pairs[0][1])
    return targets, tuple(
        Contribution(e, u, _contribution(e, u, tensor, targets)) for e, u in pairs
    )


def _adjoint(system: System, name: str) -> Equation:
    """Derive one adjoint: the sum over the reads of what each passes back."""
    targets, parts = contributions(system, name)
    rhs = sp.Add(*(p.expr for p in parts))
    return Equation(adjoint_tensor(system.tensors[name]), targets, rhs, "")


def _targets(tensor: Tensor, use: Use) -> tuple[sp.Symbol, ...]:
    """Return index symbols for an adjoint, with the letters of the first read."""
    letters: list[str] = []
    for place, dim in zip(entry_indices(use.entry), tensor.dims, strict=True):
        base = affine(place).base
        letter = "t" if dim.ordered else "i"
        if base is not None and not base.is_positive:
            letter = base.name.split("'")[0]
        while letter in letters:
            letter = chr(ord(letter) + 1)
        letters.append(letter)
    return tuple(index_symbol(f"{c}'g") for c in letters)


def _contribution(
    equation: Equation, use: Use, tensor: Tensor, targets: tuple[sp.Symbol, ...]
) -> Expr:
    """Return sum of g_v * cofactor over everything but the index equations entry = targets."""
    ranges: dict[sp.Symbol, tuple[Expr, Expr, bool]] = {
        s: (sp.Integer(0), d.symbol - 1, True)
        for s, d in zip(equation.indices, equation.tensor.dims, strict=True)
    }
    ranges |= {s: (first, last, False) for s, first, last in use.limits}
    solved: dict[Expr, Expr] = {}
    factors: list[Expr] = []
    for place, target, dim in zip(entry_indices(use.entry), targets, tensor.dims, strict=True):
        at = affine(place)
        if at.base in ranges and at.base not in solved:
            first, last, of_adjoint = ranges[at.base]
            solved[at.base] = target - at.offset
            lowest = tensor.first if dim.ordered else 0
            if not of_adjoint:
                factors += _guards(target, at.offset, first, last, dim.symbol, lowest)
            elif equation.tensor.first < 0 and lowest - at.offset < 0 and dim.ordered:
                # g_v exists at v's initial positions too, where v has no equation
                factors.append(Leq(first, target - at.offset))
        else:
            factors.append(sp.KroneckerDelta(rebuild(place, solved), target))
    cofactor = sp.Integer(1) if equation.tensor.name == "L" else _adjoint_entry(equation)
    body = rebuild(sp.Mul(cofactor, use.cofactor, *factors), solved)
    for symbol, (first, last, _) in reversed(ranges.items()):
        if symbol not in solved:
            body = sp.Sum(body, (symbol, rebuild(first, solved), rebuild(last, solved)))
    return body


def _guards(
    target: Expr, offset: int, first: Expr, last: Expr, size: Expr, lowest: int
) -> list[Expr]:
    """Return the range conditions that solving a bound index leaves behind."""
    guards = []
    if first != 0 or lowest - offset < 0:
        guards.append(Leq(first, target - offset))
    if last != size - 1 or offset < 0:
        guards.append(Leq(target - offset, last))
    return guards


def _adjoint_entry(equation: Equation) -> Expr:
    """Return g_v at the equation's own indices."""
    return adjoint_tensor(equation.tensor).at(*equation.indices)


def partial_derivative(
    equation: Equation, indices: tuple[Expr, ...], entry: Expr, system: System
) -> Expr:
    """Return the local derivative of one equation, at these indices, by a tensor entry.

    Its other inputs are held: only direct reads count.
    """
    fresh = Fresh("p")
    place = dict(zip(equation.indices, indices, strict=True))
    known = named_nodes(system)
    parts = []
    for use in uses(equation.rhs, known, fresh):
        if tensor_name(use.entry) != tensor_name(entry):
            continue
        deltas = [sp.KroneckerDelta(a, b) for a, b in
                  zip(entry_indices(use.entry), entry_indices(entry), strict=True)]  # fmt: skip
        body = sp.Mul(use.cofactor, *deltas)
        for symbol, first, last in reversed(use.limits):
            body = sp.Sum(body, (symbol, first, last))
        parts.append(body)
    # at an initial position the state is given, and its equation does not hold
    held = Leq(0, indices[0]) if equation.tensor.first < 0 else sp.Integer(1)
    return held * rebuild(freshen(sp.Add(*parts), fresh), place)
