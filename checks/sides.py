"""A side of a statement as array code: values at every position of the free indices.

What a side reads is a tensor or a derivative array of a `Table`; which table it is decides whose
numbers they are. Adjoints and other derivatives outside the positions are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from derive.checks.layout import Layout, Slot, whole
from derive.checks.rules import Lowering
from derive.checks.runtime import compiled, numpy_helpers, silent_helpers
from derive.checks.storage import Array, size_of
from derive.equation import System
from derive.errors import DeriveError
from derive.index import Dim, Expr, Tensor, affine
from derive.nodes import entry_indices, kind, tensor_name
from derive.statement import Identity

if TYPE_CHECKING:
    from derive.checks.table import Table

Free = tuple[tuple[sp.Symbol, Dim], ...]
Key = tuple[str, ...]
DERIVATIVES = ("Total", "Partial")


def table_entry(expr: Expr) -> tuple[object, tuple[Expr, ...]] | None:
    """Return what a node reads: ``(tensor, X)``, ``(Total, X, Y)`` or ``(Partial, X, Y)``.

    Raises:
        DeriveError: On a derivative of or by something that is no entry.
    """
    if kind(expr) in DERIVATIVES:
        names = [tensor_name(a) for a in expr.args]
        if None in names:
            raise DeriveError(f"a derivative is of an entry by an entry; found {expr}")
        return (kind(expr), *map(str, names)), tuple(i for a in expr.args for i in entry_indices(a))
    name = tensor_name(expr)
    return None if name is None else (("tensor", name), entry_indices(expr))


@lru_cache(maxsize=8192)
def entries(expr: Expr) -> tuple[tuple[Key, tuple[Expr, ...]], ...]:
    """Return everything that an expression reads, once each, a derivative as one."""
    found: Any = table_entry(expr)
    if found is not None:
        return (found,)
    return tuple(dict.fromkeys(e for a in expr.args for e in entries(a)))


def has_derivative(expr: Expr) -> bool:
    """Tell whether an expression holds a derivative."""
    return any(key[0] != "tensor" for key, _ in entries(expr))


@dataclass(frozen=True)
class Side:
    """One compiled side."""

    run: Callable[..., Any]
    slots: Mapping[object, Slot]
    sizes: tuple[str, ...]

    def load(self, table: Table) -> list[Array]:
        """Return the arrays that it reads, with zeros around their positions."""
        return [padded(table.read(key), slot) for key, slot in self.slots.items()]  # type: ignore[arg-type]


def padded(array: Array, slot: Slot) -> Array:
    """Surround an array by as many zeros as the code reads."""
    if not any(slot.low) and not any(slot.high):
        return array
    shape = [low + n + high for low, n, high in zip(slot.low, array.shape, slot.high, strict=True)]
    out = np.zeros(shape, array.dtype)
    out[tuple(slice(a, a + n) for a, n in zip(slot.low, array.shape, strict=True))] = array
    return out


@lru_cache(maxsize=4096)
def side(system: System, expr: Expr, free: Free) -> Side:
    """Compile one side."""

    def make(key: Any, number: int) -> Slot:
        tensors = [tensor_of(system, name) for name in key[1:]]
        firsts = tuple(t.first if i == 0 else 0 for t in tensors for i in range(len(t.dims)))
        return Slot(number, tuple(d for t in tensors for d in t.dims), firsts)

    layout = Layout(make)
    emitter = Lowering(layout, table_entry, noted=True)
    for symbol, dim in free:
        emitter.open(symbol, whole(dim))
    val = emitter.lower(expr)
    symbols = tuple(s for s, _ in free)
    lines = [*emitter.lines[0], *emitter.notices(), f"return {emitter.aligned(val, symbols)}"]
    if layout.slots:
        lines.insert(0, "".join(f"x{i}, " for i in range(len(layout.slots))) + "= x")
    if emitter.sizes:
        lines.insert(0, "".join(f"{v}, " for v in emitter.sizes.values()) + "= n")
    run = compiled("side", [layout.resolve(line) for line in lines])
    return Side(run, dict(layout.slots), tuple(emitter.sizes))


def tensor_of(system: System, name: str) -> Tensor:
    """Return a tensor of a system; the loss is a scalar."""
    return system.tensors[name] if name != "L" else Tensor("L", (), role="loss")


class Magnitude:
    """The largest magnitude among the values of a computation."""

    def __init__(self) -> None:
        self.value = 0.0

    def __call__(self, *arrays: Any) -> None:
        """Take note of the product of the largest magnitudes of these arrays."""
        peak = 1.0
        for array in arrays:
            peak *= float(np.abs(array).max()) if np.size(array) else 0.0
        self.value = max(self.value, peak)


def side_values(expr: Expr, free: Free, table: Table, sizes: Mapping[str, int]) -> Array:
    """Return a side's values, one axis a free index, each over its whole size.

    Which positions the statement speaks about is `positions`.
    """
    return measured(expr, free, table, sizes)[0]


def measured(
    expr: Expr, free: Free, table: Table, sizes: Mapping[str, int], inside: bool = True
) -> tuple[Array, float]:
    """Return a side's values and the largest magnitude among them and their intermediates.

    Args:
        expr: The side.
        free: The free indices.
        table: What it reads.
        sizes: By name.
        inside: Whether intermediates count, or the values alone.
    """
    code, note = side(table.system, expr, free), Magnitude()
    arrays = code.load(table)
    dtype = np.result_type(np.float32, *arrays) if arrays else np.dtype(np.float64)
    numbers = [size_of(s, sizes) for s in code.sizes]
    with np.errstate(all="ignore"):  # a NaN goes on to the comparison, which refuses it
        helpers = numpy_helpers(dtype, None, note) if inside else silent_helpers(dtype)
        value = np.asarray(code.run(helpers, numbers, arrays))
    shape = tuple(sizes[d.name] for _, d in free)
    full = value if value.shape == shape else np.broadcast_to(value, shape)
    note(full)
    return full, note.value


def positions(identity: Identity, sizes: Mapping[str, int]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return where a statement speaks: its conditions hold and what it reads exists.

    A tensor read beyond its positions is no value; an adjoint read there is zero.
    """
    shape = tuple(sizes[d.name] for _, d in identity.free)
    grid = dict(zip((s for s, _ in identity.free), np.indices(shape, sparse=True), strict=True))
    size = {d.symbol: sizes[n] for n, d in identity.system.dims.items() if n in sizes}

    def number(expr: Expr) -> Any:
        at = affine(expr)
        base = 0 if at.base is None else grid[at.base] if at.base in grid else size[at.base]
        return base + at.offset

    inside = np.ones(shape, np.bool_)
    for low, high in identity.conditions:
        inside = inside & (number(low) <= number(high))
    for expr in (identity.lhs, identity.rhs):
        for key, indices in entries(expr):
            if key[0] == "tensor" and indices and affine(indices[0]).base in grid:
                tensor = tensor_of(identity.system, key[1])
                at = number(indices[0])
                inside = inside & (tensor.first <= at) & (at < sizes[tensor.dims[0].name])
    return inside
