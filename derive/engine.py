"""The algebra of a system, made once."""

from __future__ import annotations

from functools import lru_cache

from derive.algebra import Algebra, Signs
from derive.equation import System
from derive.lower import lower

NO_SIGNS = Signs()


def algebra_of(system: System, signs: Signs = NO_SIGNS) -> Algebra:
    """Return the algebra of a system (with its selected loss), where some signs are assumed."""
    return made(system, signs)


@lru_cache(maxsize=128)
def made(system: System, signs: Signs) -> Algebra:
    """Return an algebra, made once for a system and its signs."""
    return Algebra(system, lower, signs)
