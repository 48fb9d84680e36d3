"""Givens that a recorded seed yields, filled in: every float is taken as the exact number it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import prod

from derive.case import Case, Drawn, Group
from derive.case_tensors import Nested
from derive.checks.recipes import Request, find
from derive.errors import DeriveError


def filled(case: Case) -> Case:
    """Return a case whose drawn givens have their values.

    Raises:
        DeriveError: If a recipe is unknown or cannot run, naming the group.
    """
    if not any(group.drawn for group in case.groups.values()):
        return case
    return replace(case, groups={n: filled_group(case, g) for n, g in case.groups.items()})


def filled_group(case: Case, group: Group) -> Group:
    """Return a group whose drawn givens have their values."""
    values = {name: drawn_values(case, group, name, d) for name, d in group.drawn.items()}
    return replace(group, givens={**group.givens, **values}, drawn={})


def drawn_values(case: Case, group: Group, name: str, drawn: Drawn) -> Nested:
    """Draw the entries of one given, the last axis fastest."""
    run = case.replays[drawn.replay]
    try:
        request = Request(run, {}, {}, group.loss)
        found = find("DRAWS", run.recipe)(request, drawn.start, prod(drawn.shape))
    except DeriveError as error:
        raise DeriveError(f"{case.path}: group {group.name}, {name}: {error.message}",
                          hint=error.hint) from error  # fmt: skip
    return nest(iter(found), drawn.shape)


def nest(entries: Iterator[Fraction], shape: tuple[int, ...]) -> Nested:
    """Arrange a run of entries as an array."""
    if not shape:
        return next(entries)
    return tuple(nest(entries, shape[1:]) for _ in range(shape[0]))
