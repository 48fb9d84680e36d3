"""Recipes: named functions that repeat a recorded run from its seed and settings.

Each module ``checks/replay_*.py`` is one family. Its ``RECIPES`` yield figures, its ``DRAWS`` yield
the entries of a given. A new family is one file; nothing lists them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derive.case import Replay
from derive.case_decimals import Value
from derive.errors import DeriveError, nearest

Array = NDArray[np.float64]
Arrays = dict[str, Array]
PREFIX = "replay_"
MAX_SEED = 2**32 - 1


@dataclass(frozen=True)
class Figure:
    """One figure that is made of last bits: it has no exact value, an order of operations has.

    Args:
        value: As the recipe's operations leave it.
        count: How many scalars it is the maximum over.
        neighbours: Yields the figure under changes of one unit in the last place.
    """

    value: float
    count: int
    neighbours: Callable[[], list[float]]


@dataclass(frozen=True)
class Measured:
    """One figure, or an array of them, of a run whose inputs the seed fixes exactly.

    Args:
        values: The exact value of each scalar, at a precision.
        run: What the recipe's own float operations give for each.
        count: How many scalars were drawn or computed on the way.
        against: What ran.
        shape: () for one number.
    """

    values: tuple[Value, ...]
    run: Callable[[], Sequence[float]]
    count: int
    against: str
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class Request:
    """What a printed figure asks of a recipe.

    Args:
        replay: Its table in the case.
        at: Positions and lengths that the entry fixes.
        givens: The group's tensors as float64.
        loss: The group's loss.
    """

    replay: Replay
    at: Mapping[str, int]
    givens: Arrays
    loss: str

    def setting(self, name: str, default: Fraction | None = None) -> Fraction:
        """Return a setting.

        Raises:
            DeriveError: If it is missing.
        """
        found = self.replay.settings.get(name, default)
        if found is None:
            raise DeriveError(f"the recipe {self.replay.recipe} needs the setting {name}",
                              hint=f"{name} = 0 in [replay.{self.replay.name}]")  # fmt: skip
        return found

    def whole(self, name: str, default: int | None = None, top: int = 4096) -> int:
        """Return a setting that is a whole number from 0.

        Raises:
            DeriveError: If it is missing, or no such number.
        """
        found = self.setting(name, None if default is None else Fraction(default))
        if found.denominator != 1 or not 0 <= found <= top:
            raise DeriveError(f"{name} is a whole number from 0 to {top}; found {found}")
        return int(found)

    def known(self, *names: str) -> None:
        """Refuse a setting that the recipe does not read.

        Raises:
            DeriveError: Naming the nearest one.
        """
        for name in self.replay.settings:
            if name not in names:
                raise DeriveError(f"the recipe {self.replay.recipe} has no setting {name!r}",
                                  hint=nearest(name, names))  # fmt: skip

    def length(self, name: str, top: int) -> int:
        """Return a size that the entry fixes by ``at``.

        Raises:
            DeriveError: If it does not, or the size is out of bounds.
        """
        if set(self.at) != {name} or not 1 <= self.at[name] <= top:
            raise DeriveError(f"the figure needs at = {{ {name} = 1..{top} }}; found "
                              f"{dict(self.at)}")  # fmt: skip
        return self.at[name]


Recipe = Callable[[Request], Mapping[str, Callable[[], Figure | Measured]]]
"""What is asked to the figures that the recipe can yield, each computed when called."""
Draw = Callable[[Request, int, int], Sequence[Fraction]]
"""Settings, draws to pass over, draws to take, to exact values."""


@lru_cache(maxsize=2)
def registry(table: str) -> Mapping[str, Any]:
    """Return the rows ``RECIPES`` or ``DRAWS`` of all families, by name."""
    package = importlib.import_module("derive.checks")
    found: dict[str, Any] = {}
    for module in pkgutil.iter_modules(package.__path__):
        if module.name.startswith(PREFIX):
            loaded = importlib.import_module(f"{package.__name__}.{module.name}")
            found.update(getattr(loaded, table, {}))
    return found


def find(table: str, name: str) -> Any:
    """Return a recipe by its name.

    Raises:
        DeriveError: If there is none, naming the nearest.
    """
    known = registry(table)
    if name not in known:
        what = "recipe" if table == "RECIPES" else "recipe that draws values"
        raise DeriveError(f"unknown {what} {name!r}", hint=nearest(name, known))
    return known[name]
