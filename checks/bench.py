"""A system at one point with every table of numbers about it, shared by all statements.

Whatever depends on the system and its givens alone is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from derive.checks import autograd, complex_step, finite_difference, modules
from derive.checks.assumptions import assume, pinned, pins
from derive.checks.mask_draws import every_row, full_masks
from derive.checks.sides import measured, positions
from derive.checks.sizes import default_sizes, random_givens
from derive.checks.storage import Array, infer_sizes
from derive.checks.table import Givens, Ours, Table, UnavailableError
from derive.equation import System
from derive.errors import DeriveError, nearest
from derive.index import Expr
from derive.statement import Identity

PINS = 3
"""How many values of an index that an assumption fixes are checked; one at random sizes."""
DTYPES = ("float32", "float64")


@dataclass
class Bench:
    """A system at one point, with every table that was asked for."""

    system: System
    givens: dict[str, Array]
    sizes: dict[str, int]
    dtype: np.dtype[Any]
    tables: dict[str, Table | None] = field(default_factory=dict)
    measures: dict[Any, tuple[Array, float]] = field(default_factory=dict)
    scales: dict[Any, float] = field(default_factory=dict)
    assumed: dict[Any, Bench | None] = field(default_factory=dict)

    @property
    def scope(self) -> str:
        """The sizes as shown in reports."""
        return " ".join(f"{n}={v}" for n, v in self.sizes.items())

    def table(self, name: str) -> Table | None:
        """Return a table by its kind of evidence, or ``ours``."""
        if name not in self.tables:
            make = TABLES[name]
            self.tables[name] = make(self.system, self.givens, self.sizes)
        return self.tables[name]

    def under(self, assumes: Sequence[Identity], pin: Mapping[Any, int]) -> Bench | None:
        """Return the bench at which assumptions hold, None if they fix no given entries."""
        key = (*(a.text for a in assumes), *sorted((str(s), n) for s, n in pin.items()))
        if key not in self.assumed:
            givens = assume(assumes, pin, self.givens, self.sizes)
            if givens is not None and not every_row(self.system, self.sizes, givens):
                full = {**self.givens, **full_masks(self.system, givens)}
                givens = assume(assumes, pin, full, self.sizes)
            made = None if givens is None else Bench(self.system, givens, self.sizes, self.dtype)
            self.assumed[key] = made
        return self.assumed[key]

    def converted(self, dtype: Any) -> Bench:
        """Return a bench with the same givens in floats of another length."""
        givens = {n: a.astype(dtype) for n, a in self.givens.items()}
        return Bench(self.system, givens, self.sizes, np.dtype(dtype))

    def where(self, identity: Identity) -> Array:
        """Return where a statement speaks at these sizes."""
        key = ("where", identity.lhs, identity.rhs, identity.free, identity.conditions)
        if key not in self.measures:
            self.measures[key] = positions(identity, self.sizes), 0.0
        return self.measures[key][0]

    def side(self, expr: Expr, identity: Identity, name: str) -> tuple[Array, float] | None:
        """Return a side's values and magnitude by a table, None if the table cannot say."""
        key = (expr, identity.free, name)
        if key not in self.measures:
            table = self.table(name)
            if table is None:
                return None
            # intermediates are as large for every oracle: they are measured for the first
            scaled = ("scale", expr, identity.free, name == "ours")
            try:
                value, scale = measured(
                    expr, identity.free, table, self.sizes, scaled not in self.scales
                )
            except UnavailableError:
                return None
            self.measures[key] = value, max(scale, self.scales.setdefault(scaled, scale))
        return self.measures[key]


TABLES: Mapping[str, Callable[[System, Givens, Mapping[str, int]], Table | None]] = {
    "ours": Ours,
    "module": modules.module,
    "module_steps": lambda system, givens, sizes: modules.module(system, givens, sizes, 1),
    "autograd": autograd.table,
    "complex_step": complex_step.table,
    "finite_difference": finite_difference.table,
}
_benches: dict[Any, Bench] = {}


@dataclass(frozen=True)
class Point:
    """Where a statement is evaluated: a bench, or one for each value of a pinned index."""

    main: Bench
    parts: tuple[tuple[Bench, Array], ...] = ()

    def side(self, expr: Expr, identity: Identity, name: str) -> tuple[Array, float] | None:
        """Return a side by a table, put together from the parts."""
        if not self.parts:
            return self.main.side(expr, identity, name)
        out: Array | None = None
        scale = 0.0
        for part, mask in self.parts:
            found = part.side(expr, identity, name)
            if found is None:
                return None
            out = found[0] if out is None else np.where(mask, found[0], out)
            scale = max(scale, found[1])
        assert out is not None
        return out, scale

    def where(self, identity: Identity) -> Array:
        """Return which positions are evaluated."""
        inside = self.main.where(identity)
        if not self.parts:
            return inside
        covered = np.logical_or.reduce([mask for _, mask in self.parts])
        return np.asarray(inside & covered)

    def converted(self, dtype: Any) -> Point:
        """Return the same point in floats of another length."""
        return Point(
            self.main.converted(dtype), tuple((b.converted(dtype), m) for b, m in self.parts)
        )

    def table(self, name: str) -> Table | None:
        """Return a table of the first part, for its name and scales."""
        return (self.parts[0][0] if self.parts else self.main).table(name)


def point(
    here: Bench, identity: Identity, assumes: Sequence[Identity], most: int = PINS
) -> Point | None:
    """Return the point of a statement under its assumptions, None if they fix no given entries."""
    if not assumes:
        return Point(here)
    parts = []
    for pin in pins(identity, assumes, here.sizes, most):
        bench_there = here.under(assumes, pin)
        if bench_there is None:
            return None
        if every_row(here.system, here.sizes, bench_there.givens):
            parts.append((bench_there, pinned(identity, here.sizes, pin)))
    # where an assumption hides the last source of a row, nothing has a value
    return Point(here, tuple(parts)) if parts else None


_canonical: dict[int, tuple[System, System]] = {}
_shared: dict[Any, System] = {}


def canonical(system: System) -> System:
    """Return the first system seen with these equations: a convention changes no number."""
    made = _canonical.get(id(system))
    if made is None or made[0] is not system:
        key = (
            tuple((e.tensor.name, e.indices, e.rhs) for e in (*system.equations, *system.derived)),
            tuple(system.tensors.values()),
            tuple(system.dims),
            tuple(system.initial.items()),
            system.loss,
            id(modules.row_of(system)),
        )
        made = system, _shared.setdefault(key, system)
        _canonical[id(system)] = made
    return made[1]


def bench(system: System, givens: Givens | None, sizes: Mapping[str, int] | None, seed: int,
          dtype: str, attempt: int = 0) -> Bench:  # fmt: skip
    """Return the shared bench of a system at a point.

    Args:
        system: With its loss selected.
        givens: Arrays or nested numbers by tensor name; what is missing is drawn from the seed.
        sizes: Numbers for sizes that the givens do not show.
        seed: For what is drawn.
        dtype: ``float64`` or ``float32``.
        attempt: Another set of drawn values, of other orders of magnitude.

    Raises:
        DeriveError: On an unknown dtype or size, or shapes that do not fit.
    """
    system = canonical(system)
    if dtype not in DTYPES:
        raise DeriveError(f"dtype is {' or '.join(DTYPES)}; found {dtype!r}")
    arrays, marks = converted(givens, dtype)
    key = (id(system), marks, tuple(sorted((sizes or {}).items())), seed, dtype, attempt)
    if key not in _benches or _benches[key].system is not system:
        shown = infer_sizes(system.tensors, arrays)
        full = default_sizes(system, {**(sizes or {}), **shown})
        filled = random_givens(system, full, seed, dtype, attempt)
        filled |= {n: fitted(n, a, filled) for n, a in arrays.items()}
        _benches[key] = Bench(system, filled, full, np.dtype(dtype))
    return _benches[key]


_converted: dict[tuple[int, str], tuple[Givens | None, dict[str, Array], Any]] = {}


def converted(givens: Givens | None, dtype: str) -> tuple[dict[str, Array], Any]:
    """Return givens as arrays, with what tells them apart from others."""
    found = _converted.get((id(givens), dtype))
    if found is None or found[0] is not givens:
        arrays = {n: np.array(v, dtype) for n, v in (givens or {}).items()}
        marks = tuple((n, a.shape, a.tobytes()) for n, a in sorted(arrays.items()))
        found = givens, arrays, marks
        _converted[id(givens), dtype] = found
    return found[1], found[2]


def fitted(name: str, array: Array, filled: Givens) -> Array:
    """Return a given in the shape that is drawn for it; one initial row may stand alone.

    Raises:
        DeriveError: If the given has another shape, or is none.
    """
    if name not in filled:
        raise DeriveError(f"{name} is computed, not given", hint=nearest(name, filled))
    want = filled[name].shape
    if array.shape not in (want, want[1:]) or (array.shape != want and want[0] != 1):
        raise DeriveError(f"{name} has shape {want} at these sizes; found {array.shape}")
    return array.reshape(want)
