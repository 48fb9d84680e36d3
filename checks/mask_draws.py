"""Seeded padding masks that leave every row of a softmax a source: of none it has no value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import sympy as sp

from derive.equation import Equation, System
from derive.index import Expr
from derive.masks import number
from derive.nodes import kind, tensor_name, walk

SHARES = (0.6,) * 8 + (0.8,) * 8 + (1.0,)
"""How many entries of a mask are 1, roughly, from one attempt to the next."""
Arrays = dict[str, np.ndarray[Any, Any]]


def draw_masks(
    system: System, sizes: Mapping[str, int], rng: np.random.Generator, dtype: Any
) -> Arrays:
    """Return values for every tensor whose entries are 0 or 1."""
    found: Arrays = {}
    for share in SHARES:
        for tensor in system.givens:
            if tensor.binary:
                shape = tuple(sizes[d.name] for d in tensor.dims)
                found[tensor.name] = (rng.random(shape) < share).astype(dtype)
        if not found or every_row(system, sizes, found):
            break
    return found


def full_masks(system: System, givens: Arrays) -> Arrays:
    """Return the tensors whose entries are 0 or 1, all 1."""
    names = {t.name for t in system.givens if t.binary}
    return {n: np.ones_like(a) for n, a in givens.items() if n in names}


def every_row(system: System, sizes: Mapping[str, int], masks: Arrays) -> bool:
    """Tell whether every row of every mask, and of every masked softmax, has a source."""
    names = [t.name for t in system.givens if t.binary and t.dims]
    if not all(np.all(np.any(masks[n], axis=-1)) for n in names):
        return False
    return all(alive(e, sizes, masks) for e in system.equations)


def alive(equation: Equation, sizes: Mapping[str, int], masks: Arrays) -> bool:
    """Tell whether every row of the masked softmaxes of an equation has a source."""
    axes = dict(zip(equation.indices, equation.tensor.dims, strict=True))
    for weight, bound, size in weights(equation.rhs):
        names = {str(tensor_name(n)) for n in walk(weight)} - {"None"}
        free = [s for s in axes if weight.has(s)]
        # what other indices or values decide is left to chance
        if not names <= set(masks) or weight.free_symbols - {*free, bound} - symbols(weight):
            continue

        def entry(name: str, index: tuple[int, ...]) -> int:
            return int(masks[name][index])

        count = sizes[size.name] if size.is_Symbol else int(size)
        for row in product(*(range(sizes[axes[s].name]) for s in free)):
            at: dict[Expr, int] = dict(zip(free, row, strict=True))
            if not any(number(weight, {**at, bound: c}, entry) for c in range(count)):
                return False
    return True


def weights(expr: Expr) -> Iterator[tuple[Expr, sp.Symbol, Expr]]:
    """Yield weight, bound index and size of every masked softmax."""
    for node in walk(expr):
        if kind(node) in ("Softmax", "LogSumExp") and kind(node.args[0]) == "Masked":
            yield node.args[0].args[0], node.args[1], node.args[-1]


def symbols(expr: Expr) -> set[Expr]:
    """Return the symbols that belong to tensors, not to indices."""
    return {s for s in expr.free_symbols if not s.is_integer}
