"""Recipes that draw the entries of a given: a recorded generator, its seed, its scale."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from derive.checks.recipes import MAX_SEED, Request


def normal(request: Request, start: int, count: int) -> list[Fraction]:
    """Return ``scale * numpy.random.randn()`` after ``numpy.random.seed(seed)``, in float64.

    `numpy.random.RandomState` is that stream without its global state; numpy keeps it frozen
    (NEP 19). A draw of many is the same stream as many draws of one. The factor is applied in
    float64, as the recorded script does, and the product is then exact.
    """
    request.known("seed", "scale")
    stream = np.random.RandomState(request.whole("seed", top=MAX_SEED))
    factor = request.setting("scale", Fraction(1))
    draws = (factor.numerator / factor.denominator) * stream.randn(start + count)
    return [Fraction(float(x)) for x in draws[start:]]


DRAWS = {"numpy-normal-draws": normal}
