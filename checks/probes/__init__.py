"""Statements about torch's own programs: each probe runs one and says what it observed.

What a program does is no identity that could be proved. A probe is a function of a module here; its
docstring states what is expected, and it returns what it observed beside that. Its name on a claim
is ``module.function`` with hyphens: ``clip_grad_norm.returns-norm-before``.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter

import numpy as np

from derive.checks.compare import compare, rounding
from derive.checks.seeding import seeded
from derive.checks.storage import Array
from derive.claim import Evidence
from derive.errors import DeriveError, nearest


@dataclass(frozen=True)
class Observation:
    """What a program did beside what is expected of it.

    Args:
        observed: Any shape.
        expected: The same shape, from the definition; never from the program itself.
        against: The program, as reported.
        scope: On what it was run.
        scale: The largest intermediate; a difference counts relative to it.
        tolerance: What the largest difference is held to; by default the rounding of float64, and
            0 for what is counted.
    """

    observed: Array
    expected: Array
    against: str
    scope: str
    scale: float = 1.0
    tolerance: float = rounding(np.float64)


Probe = Callable[[], Observation]


@lru_cache(maxsize=1)
def probes() -> Mapping[str, Probe]:
    """Return every probe by its name: the public functions of this folder's modules."""
    found: dict[str, Probe] = {}
    for info in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
        module = importlib.import_module(f"{__name__}.{info.name}")
        for name, function in vars(module).items():
            own = inspect.isfunction(function) and function.__module__ == module.__name__
            if own and not name.startswith("_"):
                found[f"{info.name}.{name.replace('_', '-')}"] = function
    return found


def find(name: str) -> Probe:
    """Return a probe.

    Raises:
        DeriveError: On an unknown name, with the nearest known one.
    """
    if name not in probes():
        raise DeriveError(f"unknown probe {name!r}", hint=nearest(name, probes()))
    return probes()[name]


def words(name: str) -> str:
    """Return what a probe expects, in its own words: the first paragraph."""
    return " ".join((inspect.getdoc(find(name)) or name).partition("\n\n")[0].split())


def evidence(name: str, seed: int = 0) -> Evidence:
    """Run a probe; what torch draws in it comes from the seed.

    Raises:
        DeriveError: On an unknown name, or shapes that differ.
    """
    start = perf_counter()
    with seeded(seed):
        seen = find(name)()
    if seen.observed.shape != seen.expected.shape:
        raise DeriveError(
            f"probe {name} observed shape {seen.observed.shape}, expected {seen.expected.shape}"
        )
    return compare("module", seen.against, seen.observed, seen.expected, seen.scale,
                   seen.tolerance, seen.scope, perf_counter() - start,
                   detail=words(name))  # fmt: skip
