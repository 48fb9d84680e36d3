"""Points to check at: sizes that differ from each other, and seeded values for what is given."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from derive.checks.mask_draws import draw_masks
from derive.equation import System
from derive.errors import DeriveError, nearest

DEFAULTS = {"T": 4, "D": 2, "H": 3, "C": 5}
"""Unequal, so that a transposed factor does not fit by chance."""
SCALES = (0.1, 0.3, 1.0, 3.0, 10.0)
HEADS = {"T": 4, "T_s": 7, "D": 6, "N": 2, "d_k": 3, "d_v": 3, "F": 5}
"""Where there are heads: torch's modules take N heads of width D/N, keys as wide as values."""
PATCHES = {"J": 3, "K": 4, "P": 2, "C": 5, "D": 6}
"""An image of J by K patches of P by P pixels: small, so that each pixel can be moved."""
OTHERS = (3, 2, 4, 5, 6, 7, 8, 9)


def default_sizes(system: System, sizes: Mapping[str, int] | None = None) -> dict[str, int]:
    """Return a number for each size of a system: the user's, else the defaults.

    Raises:
        DeriveError: On an unknown size, or one below 1.
    """
    check_sizes(system, sizes or {})
    known = set(system.dims)
    usual = HEADS if {"N", "d_k", "d_v", "D"} <= known else DEFAULTS
    usual = PATCHES if {"J", "K", "P"} <= known else usual
    found = {n: usual[n] for n in system.dims if n in usual} | dict(sizes or {})
    spare = [n for n in OTHERS if n not in found.values()] or list(OTHERS)
    for place, name in enumerate(n for n in system.dims if n not in found):
        found[name] = spare[place % len(spare)]
    return {n: found[n] for n in system.dims}


def check_sizes(system: System, sizes: Mapping[str, int]) -> None:
    """Refuse sizes that a system does not have, and numbers below 1.

    Raises:
        DeriveError: On either.
    """
    for name, number in sizes.items():
        if name not in system.dims:
            raise DeriveError(
                f"{system.name} has no size {name!r}", hint=nearest(name, system.dims)
            )
        if number < 1:
            raise DeriveError(f"size {name} is at least 1; found {number}")


def random_sizes(system: System, seed: int) -> dict[str, int]:
    """Return small unequal sizes drawn from a seed."""
    rng = random.Random(f"sizes:{system.name}:{seed}")
    names = list(system.dims)
    pool = range(2, len(names) + 3)
    return dict(zip(names, rng.sample(pool, len(names)), strict=True))


def random_givens(
    system: System, sizes: Mapping[str, int], seed: int, dtype: Any = np.float64, attempt: int = 0
) -> dict[str, np.ndarray[Any, Any]]:
    """Return seeded values for every given tensor and every given initial row.

    Parameters are scaled by the root of their last size, so that states stay of order one at any
    size; the last axis of a one-hot tensor holds one 1. From the second attempt on each tensor has
    an order of magnitude of its own, and mixed signs or a single one: what is assumed of every
    entry at once is then met at any size, sooner or later.
    """
    rng = np.random.default_rng([seed, attempt] if attempt else seed)
    found = draw_masks(system, sizes, rng, dtype)
    for tensor in system.givens:
        shape = tuple(sizes[d.name] for d in tensor.dims)
        if tensor.binary:
            continue
        if tensor.permutation:
            rows = rng.permuted(np.broadcast_to(np.arange(shape[-1]), shape[:-1]), axis=-1)
            found[tensor.name] = np.eye(shape[-1], dtype=dtype)[rows]
            continue
        if tensor.onehot:
            rows = rng.integers(0, shape[-1], size=shape[:-1])
            found[tensor.name] = np.eye(shape[-1], dtype=dtype)[rows]
            continue
        values = rng.standard_normal(shape)
        if tensor.role == "parameter" and len(shape) > 1:
            values /= np.sqrt(shape[-1])
        if attempt:
            sign = rng.choice((-1, 0, 1))
            values = rng.choice(SCALES) * (sign * np.abs(values) if sign else values)
        if tensor.nonnegative:
            values = np.abs(values)
        found[tensor.name] = np.asarray(values, dtype)
    for name, how in system.initial.items():
        tensor = system.tensors[name]
        shape = (-tensor.first, *(sizes[d.name] for d in tensor.dims[1:]))
        start = rng.standard_normal(shape) * 0.5 if how == "given" else np.zeros(shape)
        found[f"{name}_init"] = np.asarray(start, dtype)
    return found
