"""Range errors: every read of a statement is inside the positions of its tensor.

Adjoints are zero-extended in the normal form, and a read past the end would pass silently: so each
read is checked before anything is proved. An adjoint may be read one past the end (the boundary of
a backward recursion, zero), nothing else may.
"""

from __future__ import annotations

import re

import sympy as sp

from derive.equation import System
from derive.errors import DeriveError
from derive.index import Expr, affine
from derive.nodes import entry_indices, kind, tensor_name
from derive.statement import Identity
from derive.support import Edges, size_base
from derive.terms import Closure, Ix


def context_edges(identity: Identity) -> Edges:
    """Return what holds of the free positions: their domain and the statement's conditions."""
    edges: Edges = [(("", size_base(d.name)), -1)
                    for d in identity.system.dims.values() if d.ordered]  # fmt: skip
    for symbol, dim in identity.free:
        if dim.ordered:
            edges += [(("", symbol.name), 0), ((symbol.name, size_base(dim.name)), -1)]
    for low, high in identity.conditions:
        (a, m), (b, n) = place(low), place(high)
        edges.append(((a, b), n - m))
    return edges


def place(expr: Expr) -> Ix:
    """Return a position expression as (base, offset), free and bound names as they are."""
    at = affine(expr)
    if at.base is None:
        return ("", at.offset)
    return (size_base(at.base.name) if at.base.is_positive else at.base.name, at.offset)


def check_ranges(identity: Identity) -> None:
    """Refuse a statement that reads outside a tensor's positions, or that speaks of nothing.

    Raises:
        DeriveError: Naming the read, when it happens, and the positions that exist.
    """
    edges = context_edges(identity)
    if not Closure(edges).consistent:
        raise DeriveError(
            "no values of the indices satisfy the conditions, at any size",
            text=identity.text,
            at=max(0, identity.text.find(" for ")),
        )
    for side in (identity.lhs, identity.rhs):
        _check(identity, side, edges)


def _check(identity: Identity, expr: Expr, edges: Edges) -> None:
    """Walk an expression, adding the range of each bound position on the way down."""
    if kind(expr) in ("Total", "Partial"):
        loss = tensor_name(expr.args[0]) == "L"
        for arg in expr.args:
            _check_read(identity, arg, edges, 1 if loss else 0)
    elif tensor_name(expr) is not None:
        _check_read(identity, expr, edges, 0)
    elif kind(expr) == "Sum":
        inner = list(edges)
        for symbol, first, last in reversed(expr.limits):
            inner += _range_edges(symbol.name, place(first), place(last))
        _check(identity, expr.function, inner)
    elif kind(expr) in ("Product", "DProduct"):
        body, _, _, symbol, first, last, *_ = expr.args
        low, high = (first, last) if kind(expr) == "Product" else (last, first)
        _check_product(identity, place(low), place(high), edges)
        _check(identity, body, [*edges, *_range_edges(symbol.name, place(low), place(high))])
    elif kind(expr) in ("Softmax", "LogSumExp"):
        body, bound, size = expr.args[0], expr.args[1], expr.args[-1]
        first, last = sp.Integer(0), size - 1
        if kind(body) == "Masked":
            _, body, _, first, last = body.args
        _check(identity, body, [*edges, *_range_edges(bound.name, place(first), place(last))])
    else:
        for arg in expr.args:
            if not arg.is_Symbol or tensor_name(arg) is not None:
                _check(identity, arg, edges)


def _check_product(identity: Identity, low: Ix, high: Ix, edges: Edges) -> None:
    """Refuse a product that could have a negative number of factors."""
    end = (high[0], high[1] + 1)
    holds = low[1] <= end[1] if low[0] == end[0] else Closure(edges).implies(low, end)
    if not holds:
        raise DeriveError(
            "the ends of this product may have passed each other, and then it means nothing",
            text=identity.text,
            at=max(0, identity.text.find("prod(")),
            hint="add a condition on its ends, as in: for s <= t",
        )


def _range_edges(name: str, low: Ix, high: Ix) -> Edges:
    """Return low <= name <= high."""
    return [((low[0], name), -low[1]), ((name, high[0]), high[1])]


def _check_read(identity: Identity, read: Expr, edges: Edges, past: int) -> None:
    """Check the position axes of one read."""
    tensor = identity.system.tensors[str(tensor_name(read))]
    closure = Closure(edges)
    if not closure.consistent:
        return  # an empty sum reads nothing
    for slot, (index, dim) in enumerate(zip(entry_indices(read), tensor.dims, strict=True)):
        if not dim.ordered:
            continue
        first = tensor.first if slot == 0 else 0
        at, end = place(index), (size_base(dim.name), past - 1)
        low_ok = at[1] >= first if at[0] == "" else closure.implies(("", first), at)
        high_ok = at[1] <= end[1] if at[0] == end[0] else closure.implies(at, end)
        if not (low_ok and high_ok):
            raise range_error(
                identity.system, read, index, tensor.name, first, low_ok, identity.text
            )


def range_error(system: System, read: Expr, index: Expr, name: str, first: int, low_ok: bool,
                text: str) -> DeriveError:  # fmt: skip
    """Return the error for one read outside its positions."""
    shown, place_ = (re.sub(r"'\w+", "", str(e)) for e in (read, index))
    side = "past the last" if low_ok else "before the first"
    hint = (
        "restrict the index, as in: for t <= T-2"
        if low_ok
        else "start the range later, as in t=1..T-1, or add: for t >= 1"
    )
    return DeriveError(
        f"{shown} reads a position {side}: {name} has positions {first}..T-1 "
        f"and {place_} can leave them",
        text=text,
        at=max(0, text.find(f"{name}[")),
        hint=hint,
    )
