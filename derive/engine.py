"""The algebra of a system, made once."""

from __future__ import annotations

from functools import lru_cache

from derive.algebra import Algebra, Signs
from derive.equation import System
from derive.lower import lower

NO_SIGNS = Signs()


def algebra_of(
    system: System, signs: Signs = NO_SIGNS, free: frozenset[str] = frozenset()
) -> Algebra:
    """Return the algebra of a system (with its loss), under some signs, some names left free."""
    return made(system, signs, free)


@lru_cache(maxsize=128)
def made(system: System, signs: Signs, free: frozenset[str]) -> Algebra:
    """Return an algebra, made once for a system, its signs and its free names."""
    return Algebra(system, lower, signs, free)
