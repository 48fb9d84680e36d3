"""Exact linear feasibility over the rationals: non-negative multiples of columns that add up.

A certificate of an inequality is such a combination. The columns are sparse; presolve removes the
columns that a sign alone excludes, and Bland's rule keeps the simplex method from cycling.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

Column = Mapping[Any, Fraction]
MAX_CELLS = 40_000
"""Largest tableau that is tried."""
STEEP = 300


def combine(columns: Sequence[Column], target: Column,
            end: float = float("inf")) -> dict[int, Fraction] | None:  # fmt: skip
    """Return non-negative numbers x with sum x_j columns_j = target, None if there are none.

    Args:
        columns: Sparse columns, by row key.
        target: The sparse right side.
        end: Clock time (`time.perf_counter`) at which it gives up.

    Returns:
        The positive x_j by column number; None also where the problem is larger than is tried.
    """
    alive = presolve(columns, target)
    if alive is None:
        return None
    rows = list(dict.fromkeys([*target, *(k for j in alive for k in columns[j])]))
    if len(rows) * (len(alive) + 1) > MAX_CELLS:
        return None
    return _simplex([columns[j] for j in alive], alive, rows, target, end)


def presolve(columns: Sequence[Column], target: Column) -> list[int] | None:
    """Return the columns that signs do not exclude, None if a row of the target is out of reach."""
    alive = set(range(len(columns)))
    rows: dict[Hashable, set[int]] = {}
    for j, column in enumerate(columns):
        for key in column:
            rows.setdefault(key, set()).add(j)
    waiting = set(rows) | set(target)
    while waiting:
        key = waiting.pop()
        there = rows.get(key, set()) & alive
        signs = {columns[j][key] > 0 for j in there}
        want = target.get(key, Fraction(0))
        if want and (want > 0) not in signs:
            return None
        if want or not there or len(signs) == 2:
            continue
        alive -= there  # one sign only, and nothing to reach: all of them are zero
        waiting |= {k for j in there for k in columns[j]}
    return sorted(alive)


def _simplex(columns: Sequence[Column], names: Sequence[int], rows: Sequence[Hashable],
             target: Column, end: float) -> dict[int, Fraction] | None:  # fmt: skip
    """Drive the artificial variables of phase one to zero."""
    zero, width = Fraction(0), len(columns)
    table: list[dict[int, Fraction]] = []
    for key in rows:
        value = target.get(key, zero)
        sign = -1 if value < 0 else 1
        row = {j: sign * c[key] for j, c in enumerate(columns) if c.get(key)}
        row[-1] = sign * value
        table.append(row)
    basis = [width + i for i in range(len(rows))]
    cost: dict[int, Fraction] = {}
    for row in table:
        for j, value in row.items():
            cost[j] = cost.get(j, zero) + value
    pivots = 0
    while cost.get(-1, zero) > 0:
        pivots += 1
        if time.perf_counter() > end:
            return None
        able = [(v, -j) for j, v in cost.items() if 0 <= j < width and v > 0]
        # the steepest column is quick; Bland's rule, the first one, never cycles
        entering = (-max(able)[1] if pivots < STEEP else min(-j for _, j in able)) if able else None
        if entering is None:
            return None
        ratios = [(row.get(-1, zero) / row[entering], basis[i], i)
                  for i, row in enumerate(table) if row.get(entering, zero) > 0]  # fmt: skip
        if not ratios:
            return None
        _, _, leaving = min(ratios)
        _pivot(table, cost, leaving, entering)
        basis[leaving] = entering
    return {names[b]: row[-1] for b, row in zip(basis, table, strict=True)
            if b < width and row.get(-1)}  # fmt: skip


def _pivot(table: list[dict[int, Fraction]], cost: dict[int, Fraction], at: int, by: int) -> None:
    """Make one row's entry one and clear the column elsewhere."""
    scale = table[at][by]
    pivot = {j: v / scale for j, v in table[at].items()}
    table[at] = pivot
    for row in (*(r for i, r in enumerate(table) if i != at), cost):
        factor = row.get(by)
        if not factor:
            continue
        for j, value in pivot.items():
            left = row.get(j, Fraction(0)) - factor * value
            if left:
                row[j] = left
            else:
                row.pop(j, None)
