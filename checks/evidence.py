"""All numeric evidence for a statement: its left side by an oracle, its right side by us.

Whatever depends on the system and its givens alone is computed once and shared by all statements
about them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from derive import syntax as S
from derive.checks import autograd, complex_step, finite_difference, modules
from derive.checks.assumptions import assume, pinned, pins
from derive.checks.compare import compare, rounding
from derive.checks.sides import entries, has_derivative, measured, positions
from derive.checks.sizes import default_sizes, random_givens, random_sizes
from derive.checks.storage import Array, infer_sizes
from derive.checks.table import Givens, Ours, Table, UnavailableError
from derive.claim import Evidence
from derive.equation import System
from derive.errors import DeriveError, nearest
from derive.index import Expr
from derive.nodes import entry_indices, kind, tensor_name
from derive.statement import Identity

DRAWS = 2
"""How many sets of random sizes are checked."""
PINS = 3
"""How many values of an index that an assumption fixes are checked; one at random sizes."""
DIRECTIONS = 8
"""How many random directions stand for a tensor that is too large to perturb entry by entry."""
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
            made = None if givens is None else Bench(self.system, givens, self.sizes, self.dtype)
            self.assumed[key] = made
        return self.assumed[key]

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
            try:
                self.measures[key] = measured(expr, identity.free, table, self.sizes)
            except UnavailableError:
                return None
        return self.measures[key]


TABLES: Mapping[str, Callable[[System, Givens, Mapping[str, int]], Table | None]] = {
    "ours": Ours,
    "module": modules.module,
    "module_steps": lambda system, givens, sizes: modules.module(system, givens, sizes, 1),
    "autograd": autograd.table,
    "complex_step": complex_step.table,
    "finite_difference": finite_difference.table,
}
DERIVATIVE_KINDS = ("module", "autograd", "complex_step", "finite_difference")
FORWARD_KINDS = ("module", "autograd")
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
        parts.append((bench_there, pinned(identity, here.sizes, pin)))
    return Point(here, tuple(parts))


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
          dtype: str) -> Bench:  # fmt: skip
    """Return the shared bench of a system at a point.

    Args:
        system: With its loss selected.
        givens: Arrays or nested numbers by tensor name; what is missing is drawn from the seed.
        sizes: Numbers for sizes that the givens do not show.
        seed: For what is drawn.
        dtype: ``float64`` or ``float32``.

    Raises:
        DeriveError: On an unknown dtype or size, or shapes that do not fit.
    """
    system = canonical(system)
    if dtype not in DTYPES:
        raise DeriveError(f"dtype is {' or '.join(DTYPES)}; found {dtype!r}")
    arrays = {n: np.array(v, dtype) for n, v in (givens or {}).items()}
    marks = tuple((n, a.shape, a.tobytes()) for n, a in sorted(arrays.items()))
    key = (id(system), marks, tuple(sorted((sizes or {}).items())), seed, dtype)
    if key not in _benches or _benches[key].system is not system:
        shown = infer_sizes(system.tensors, arrays)
        full = default_sizes(system, {**(sizes or {}), **shown})
        filled = random_givens(system, full, seed, dtype)
        filled |= {n: fitted(n, a, filled) for n, a in arrays.items()}
        _benches[key] = Bench(system, filled, full, np.dtype(dtype))
    return _benches[key]


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


def evidence_for(
    identity: Identity,
    givens: Givens | None = None,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    dtype: str = "float64",
    assumes: Sequence[Identity] = (),
    kinds: Sequence[str] | None = None,
) -> list[Evidence]:
    """Return every kind of numeric evidence that speaks about a statement.

    Args:
        identity: The statement.
        givens: The point; by default seeded random values.
        sizes: Sizes by name; by default the givens', else unequal defaults.
        seed: For everything drawn.
        dtype: ``float64`` or ``float32``.
        assumes: Statements that fix given entries (``h[-1,r] = 0``).
        kinds: Only these kinds.

    Returns:
        One `Evidence` a kind. None for a statement about sizes alone, or under an assumption about
        computed values.

    Raises:
        DeriveError: On bad input, or a statement that cannot be evaluated.
    """
    here = bench(identity.system, givens, sizes, seed, dtype)
    counted = counts(identity, here)
    if counted is not None:
        return [counted]
    turned, there = oriented(identity), point(here, identity, assumes)
    if turned is None or there is None:
        return []
    found = list[Evidence]()
    for name in DERIVATIVE_KINDS if has_derivative(turned[0]) else FORWARD_KINDS:
        if kinds is None or name in kinds:
            evidence = against(name, identity, turned, there, seed)
            found += [] if evidence is None else [evidence]
    if kinds is None or "random_sizes" in kinds:
        found += at_random_sizes(identity, turned, seed, dtype, assumes)
    return found


def oriented(identity: Identity) -> tuple[Expr, Expr] | None:
    """Return the oracle's side and ours: the oracle's holds the derivative, or reads something."""
    left, right = identity.lhs, identity.rhs
    if has_derivative(left) != has_derivative(right):
        return (left, right) if has_derivative(left) else (right, left)
    if entries(left):
        return left, right
    return (right, left) if entries(right) else None


def against(name: str, identity: Identity, turned: tuple[Expr, Expr], there: Point,
            seed: int) -> Evidence | None:  # fmt: skip
    """Return the evidence of one oracle, None if it cannot say anything here."""
    start = perf_counter()
    for source in ("module", "module_steps") if name == "module" else (name,):
        theirs = there.side(turned[0], identity, source)
        if theirs is not None:
            break
    if theirs is None:
        if name == "finite_difference":
            return along_directions(identity, turned, there.main, seed, start)
        return None
    ours, table = there.side(turned[1], identity, "ours"), there.table(source)
    if ours is None or table is None:
        return None
    scale, tolerance = max(theirs[1], ours[1]), rounding(there.main.dtype)
    if name == "finite_difference":
        scale = max([scale, *(table.scale(k[1]) for k, _ in entries(turned[0]) if len(k) == 3)])
        tolerance = finite_difference.tolerance(there.main.dtype)
    forward = not has_derivative(turned[0])
    label = table.name.replace("autograd", "forward") if forward else table.name

    def held(values: Array, detail: str) -> Evidence:
        return compare(name, label, values, theirs[0], scale, tolerance, there.main.scope,
                       perf_counter() - start, where=there.where(identity),
                       independent=table.independent, detail=detail)  # fmt: skip

    claimed = held(ours[0], "")
    if not any(key[:2] == ("Total", "L") for key, _ in entries(turned[0])):
        return claimed
    derived = there.side(turned[0], identity, "ours")
    if derived is None:
        return claimed
    # the adjoint equations that were derived must give the oracle's left side as well
    other = held(derived[0], "the derived adjoint equations")
    return max(claimed, other, key=lambda e: (not e.passed, e.max_error or 0.0))


def along_directions(identity: Identity, turned: tuple[Expr, Expr], here: Bench, seed: int,
                     start: float) -> Evidence | None:  # fmt: skip
    """Compare a whole gradient with central differences along random directions."""
    node, symbols = turned[0], tuple(s for s, _ in identity.free)
    if kind(node) != "Total" or tensor_name(node.args[0]) != "L" or identity.conditions:
        return None
    if tuple(entry_indices(node.args[1])) != symbols:
        return None
    wrt = str(tensor_name(node.args[1]))
    ours = here.side(turned[1], identity, "ours")
    if ours is None or not here.where(identity).all():
        return None
    signs, slopes = finite_difference.directional(
        here.system, here.givens, here.sizes, wrt, DIRECTIONS, seed
    )
    got = (signs * ours[0]).reshape(DIRECTIONS, -1).sum(1)
    loss = here.table("finite_difference")
    assert loss is not None
    # a step of fixed length along a direction moves the loss by its slope over the root of n
    scale = max(ours[1], float(np.abs(got).max()), loss.scale("L") * float(np.sqrt(ours[0].size)))
    return compare("finite_difference", f"central differences along {DIRECTIONS} directions", got,
                   slopes, scale, finite_difference.tolerance(here.dtype), here.scope,
                   perf_counter() - start)  # fmt: skip


def at_random_sizes(identity: Identity, turned: tuple[Expr, Expr], seed: int, dtype: str,
                    assumes: Sequence[Identity]) -> list[Evidence]:  # fmt: skip
    """Compare with autograd at unequal sizes drawn from the seed; the worst draw is reported."""
    start, found = perf_counter(), list[Evidence]()
    for draw in range(DRAWS):
        number = 1000 * (seed + 1) + draw
        sizes = random_sizes(identity.system, number)
        there = point(bench(identity.system, None, sizes, number, dtype), identity, assumes, 1)
        evidence = None if there is None else against("autograd", identity, turned, there, number)
        if evidence is not None:
            found.append(evidence)
    found = [e for e in found if e.count] or found
    if not found:
        return []
    worst = max(found, key=lambda e: (not e.passed, e.max_error or 0.0))
    return [
        Evidence(
            "random_sizes",
            worst.against,
            sum(e.count for e in found),
            worst.max_error,
            worst.tolerance,
            "; ".join(e.scope for e in found),
            perf_counter() - start,
            all(e.passed for e in found),
            worst.worst,
            f"worst at {worst.scope}",
            worst.independent,
        )
    ]


def counts(identity: Identity, here: Bench) -> Evidence | None:
    """Compare ``count(W, b) = ...`` with the number of scalars that the torch tensors hold."""
    call, other = identity.syntax.lhs, identity.rhs
    if not (isinstance(call, S.Call) and call.func == "count"):
        call, other = identity.syntax.rhs, identity.lhs
    if not (isinstance(call, S.Call) and call.func == "count"):
        return None
    import torch

    start = perf_counter()
    names = [a.name for a in call.args if isinstance(a, S.Name)]
    if not all(n in here.givens for n in names):
        return None
    want = sum(torch.from_numpy(here.givens[n]).numel() for n in names)
    ours = here.side(other, identity, "ours")
    assert ours is not None
    return compare("module", "numel of the torch tensors", ours[0], np.asarray(float(want)),
                   float(want), 0.0, here.scope, perf_counter() - start)  # fmt: skip
