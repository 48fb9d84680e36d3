"""Training runs of our own that show what a lecture's runs show: one file an experiment.

A lecture often prints a run whose settings it does not print. Such digits cannot be checked, but
what they are printed for can: each experiment states it as expectations with a bound that is
derived where it stands, and either they hold or they do not.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from derive.errors import DeriveError, nearest
from derive.options import Progress


@dataclass(frozen=True)
class Expectation:
    """What a run is expected to show.

    Args:
        text: In words.
        measured: What came out.
        bound: What it is held to.
        holds: Whether it does.
    """

    text: str
    measured: float
    bound: str
    holds: bool


@dataclass(frozen=True)
class Outcome:
    """What an experiment found.

    Args:
        name: As on the command line.
        title: One line.
        seed: Of everything that is drawn.
        settings: What was run, in one line.
        columns: Names of the table's columns.
        rows: Their values.
        expectations: Each with its verdict.
        notes: Remarks for the reader.
        seconds: Wall time.
    """

    name: str
    title: str
    seed: int
    settings: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | float | None, ...], ...]
    expectations: tuple[Expectation, ...]
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether there are expectations and all of them hold."""
        return bool(self.expectations) and all(e.holds for e in self.expectations)


@dataclass(frozen=True)
class Experiment:
    """A module of this package: its title, and what runs it."""

    name: str
    title: str
    run: Callable[[int, Progress], Outcome]


def names() -> list[str]:
    """Return the names of all experiments (the files of this folder)."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__))


def load(name: str) -> Experiment:
    """Return an experiment.

    Raises:
        DeriveError: On an unknown name, with the nearest known one.
    """
    if name not in names():
        raise DeriveError(f"unknown experiment {name!r}", hint=nearest(name, names()))
    module = importlib.import_module(f"{__name__}.{name}")
    return Experiment(name, module.TITLE, module.run)
