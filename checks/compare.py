"""The comparison of two arrays, as `Evidence`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from derive.checks.storage import Array
from derive.claim import Evidence, Worst

ULPS = 500
"""Rounding that a derivation may gather, in units of the largest intermediate's last place.

A sum of n products carries at most about n half-units; states pass T recurrent sums of H products,
so a few hundred cover the sizes that are checked here, and in float64 it is 1.1e-13: four orders
below a relative error of 1e-9.
"""


def rounding(dtype: Any) -> float:
    """Return the tolerance for values that both sides compute to the last bits."""
    return ULPS * float(np.finfo(np.dtype(dtype)).eps)


def compare(
    kind: str,
    against: str,
    got: Array,
    want: Array,
    scale: float,
    tolerance: float,
    scope: str,
    seconds: float,
    *,
    where: Array | None = None,
    independent: bool = True,
    detail: str = "",
) -> Evidence:
    """Compare our values with an oracle's.

    Args:
        kind: The kind of evidence.
        against: The oracle.
        got: Ours.
        want: The oracle's, same shape.
        scale: The largest intermediate of the comparison.
        tolerance: What the largest difference over the scale is held to.
        scope: The sizes.
        seconds: Wall time so far.
        where: Which entries count; by default all.
        independent: Whether the oracle shares no code with us.
        detail: One line in words.

    Returns:
        Evidence that passes if something was compared, nothing is NaN, and all is close.
    """
    mask = np.ones(got.shape, np.bool_) if where is None else where
    count = int(np.count_nonzero(mask))
    if not count:
        return Evidence(kind, against, 0, None, tolerance, scope, seconds, False,
                        detail="nothing was compared", independent=independent)  # fmt: skip
    with np.errstate(invalid="ignore"):
        gap = np.where(mask, np.abs(got - want), 0.0)
    gap = np.where(np.isfinite(gap), gap, np.inf)  # a NaN is the worst place, not the best
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(gap)), gap.shape))
    error = relative(float(gap[place]), scale)
    worst = Worst(place, float(got[place]), float(want[place]))
    passed = bool(error <= tolerance)
    return Evidence(kind, against, count, error, tolerance, scope, seconds, passed, worst,
                    detail, independent)  # fmt: skip


def relative(gap: float, scale: float) -> float:
    """Return a difference over the scale; a difference without a scale is infinite."""
    if gap == 0.0:
        return 0.0
    if not scale > 0.0 or not math.isfinite(scale) or not math.isfinite(gap):
        return math.inf
    return gap / scale
