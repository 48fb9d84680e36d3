"""The algebra of a system, made once."""

from __future__ import annotations

from functools import lru_cache

from derive.algebra import Algebra
from derive.equation import System
from derive.lower import lower


@lru_cache(maxsize=64)
def algebra_of(system: System) -> Algebra:
    """Return the algebra of a system (with its selected loss)."""
    return Algebra(system, lower)
