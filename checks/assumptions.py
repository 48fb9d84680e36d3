"""Points at which a statement's assumptions hold: given entries set to what is assumed.

An assumption such as ``keep[b] = 0`` with an index of the statement speaks about each value of the
index by itself, so the statement is evaluated at one point for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import sympy as sp

from derive.checks.sides import has_derivative, measured, positions
from derive.checks.storage import Array
from derive.checks.table import Givens, Ours
from derive.equation import System
from derive.index import Affine, affine
from derive.nodes import entry_indices, tensor_name
from derive.statement import Identity

Pins = Mapping[sp.Symbol, int]


def pins(identity: Identity, assumes: Sequence[Identity], sizes: Mapping[str, int],
         most: int) -> list[Pins]:  # fmt: skip
    """Return the values of the positions that the statement shares with its assumptions.

    Any other index of an assumption stands for all its values, whatever its name.

    Args:
        identity: The statement.
        assumes: Its assumptions.
        sizes: By name.
        most: How many values of each index at most, spread over its range.
    """
    inside = {s for a in assumes for s, _ in a.free}
    shared = [(s, sizes[d.name]) for s, d in identity.free if s in inside and d.ordered]
    ranges = [spread(n, most) for _, n in shared]
    return [dict(zip((s for s, _ in shared), v, strict=True)) for v in product(*ranges)]


def spread(size: int, most: int) -> list[int]:
    """Return at most so many positions of an axis, ends first, one alone in the middle."""
    if most == 1:
        return [size // 2]
    return sorted({round(i) for i in np.linspace(0, size - 1, min(size, most))})


def pinned(identity: Identity, sizes: Mapping[str, int], pin: Pins) -> Array:
    """Return which of a statement's positions have the pinned values."""
    shape = tuple(sizes[d.name] for _, d in identity.free)
    grid = np.indices(shape, sparse=True)
    mask = np.ones(shape, np.bool_)
    for (symbol, _), axis in zip(identity.free, grid, strict=True):
        if symbol in pin:
            mask = mask & (axis == pin[symbol])
    return mask


def assume(
    assumes: Sequence[Identity], pin: Pins, givens: Givens, sizes: Mapping[str, int]
) -> dict[str, Array] | None:
    """Return givens with the assumed entries set, None if an assumption fixes other entries."""
    out = {n: np.array(a) for n, a in givens.items()}
    for assumption in (a for a in assumes if a.relation == "="):
        if not assign(assumption, pin, out, sizes):
            return None
    unequal = (a for a in assumes if a.relation != "=")
    return out if all(holds(a, pin, out, sizes) for a in unequal) else None


def holds(assumption: Identity, pin: Pins, givens: Givens, sizes: Mapping[str, int]) -> bool:
    """Tell whether an assumed inequality holds wherever it speaks."""
    gap, _ = measured(
        assumption.gap, assumption.free, Ours(assumption.system, givens, sizes), sizes
    )
    where = positions(assumption, sizes) & pinned(assumption, sizes, pin)
    return bool(np.all((gap > 0 if assumption.strict else gap >= 0) | ~where))


def assign(
    assumption: Identity, pin: Pins, givens: dict[str, Array], sizes: Mapping[str, int]
) -> bool:
    """Set the entries that one assumption fixes; tell whether they are given ones."""
    system, name = assumption.system, tensor_name(assumption.lhs)
    if name is None or has_derivative(assumption.rhs):
        return False
    places = [affine(i) for i in entry_indices(assumption.lhs)]
    target = given_array(system, name, places, givens, sizes)
    if target is None:
        return False
    array, first = target
    # a copy: what is computed from these givens is remembered by the mapping, which changes here
    before = Ours(system, dict(givens), sizes)
    value, _ = measured(assumption.rhs, assumption.free, before, sizes)
    where = positions(assumption, sizes) & pinned(assumption, sizes, pin)
    symbols = [s for s, _ in assumption.free]
    for spot in np.argwhere(where):
        at = dict(zip(symbols, map(int, spot), strict=True))
        at |= {d.symbol: sizes[n] for n, d in system.dims.items()}
        index = [p.offset + (0 if p.base is None else at[p.base]) for p in places]
        if first:
            index[0] -= first
        array[tuple(index)] = value[tuple(spot)]
    return True


def given_array(system: System, name: str, places: Sequence[Affine], givens: dict[str, Array],
                sizes: Mapping[str, int]) -> tuple[Array, int] | None:  # fmt: skip
    """Return the array that holds these entries and its first position; None if computed."""
    if name in givens:
        return givens[name], 0
    tensor: Any = system.tensors[name]
    before = tensor.first and places and places[0].base is None and places[0].offset < 0
    if not before or f"{name}_init" not in givens:
        return None
    shape = (-tensor.first, *(sizes[d.name] for d in tensor.dims[1:]))
    givens[f"{name}_init"] = givens[f"{name}_init"].reshape(shape)
    return givens[f"{name}_init"], tensor.first
