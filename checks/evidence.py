"""All numeric evidence for a statement: its left side by an oracle, its right side by us."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter

import numpy as np

from derive.checks import finite_difference, monte_carlo
from derive.checks.bench import PINS, Bench, Point, bench, canonical, point
from derive.checks.compare import compare, rounding
from derive.checks.numel import counts, has_count
from derive.checks.sides import entries, has_derivative
from derive.checks.sizes import random_sizes
from derive.checks.storage import Array
from derive.checks.table import Givens, Ours
from derive.claim import Evidence
from derive.index import Expr
from derive.nodes import entry_indices, kind, tensor_name
from derive.statement import Identity

ATTEMPTS = 200
"""How many random points are tried where inequalities are assumed."""
SHAKY = 10
"""How many points at which a statement says little are passed over."""
DRAWS = 2
"""How many sets of random sizes are checked."""
DIRECTIONS = 8
"""How many random directions stand for a tensor that is too large to perturb entry by entry."""
DERIVATIVE_KINDS = ("module", "autograd", "complex_step", "finite_difference")
FORWARD_KINDS = ("module", "autograd")


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
    if has_count(identity.syntax.lhs) or has_count(identity.syntax.rhs):
        here = bench(identity.system, givens, sizes, seed, dtype)
        return counts(identity, here, seed) if kinds is None or "module" in kinds else []
    if monte_carlo.is_random(identity):
        if kinds is not None and "monte_carlo" not in kinds:
            return []
        return monte_carlo.evidence(identity, sizes, seed, tuple(assumes))
    turned = oriented(identity)
    there = reachable(identity, givens, sizes, seed, dtype, assumes, PINS)
    if turned is None or there is None:
        return []
    if identity.strict and not apart(identity, there, seed, dtype, assumes):
        return []
    found = list[Evidence]()
    for name in DERIVATIVE_KINDS if has_derivative(turned[0]) else FORWARD_KINDS:
        if kinds is None or name in kinds:
            evidence = against(name, identity, turned, there, seed)
            found += [] if evidence is None else [evidence]
    if kinds is None or "random_sizes" in kinds:
        found += at_random_sizes(identity, turned, seed, dtype, assumes)
    return found


def reachable(identity: Identity, givens: Givens | None, sizes: Mapping[str, int] | None, seed: int,
              dtype: str, assumes: Sequence[Identity], most: int) -> Point | None:  # fmt: skip
    """Return a point at which the assumptions hold; assumed inequalities are searched for.

    A point that is found may be any: one at which rounding speaks louder than the statement is used
    where there is no other.
    """
    searched, shaky = any(a.relation != "=" for a in assumes), list[Point]()
    for attempt in range(ATTEMPTS if searched else 1):
        here = bench(canonical(identity.system), givens, sizes, seed, dtype, attempt)
        found = point(here, identity, assumes, most)
        if found is not None and (not searched or steady(found, identity)):
            return found
        shaky += [] if found is None else [found]
        if len(shaky) == SHAKY:
            break
    return shaky[0] if shaky else None


def steady(there: Point, identity: Identity) -> bool:
    """Tell whether both sides agree with themselves in a longer float, and are not both zero.

    A saturated unit's slope 1 - h^2 keeps no digit, and neither does what is made of such slopes.
    """
    size = 0.0
    longer, where = there.converted(np.longdouble), there.where(identity)
    for expr in (identity.lhs, identity.rhs):
        short, long = there.side(expr, identity, "ours"), longer.side(expr, identity, "ours")
        if short is None or long is None:
            return True
        with np.errstate(invalid="ignore"):
            gap = np.where(where, np.abs(short[0] - long[0]), 0.0)
        if not np.all(2 * gap <= rounding(there.main.dtype) * short[1]):
            return False
        size = max(size, short[1])
    return size > 0.0


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
    gradients = [k[2] for k, _ in entries(turned[0]) if k[:2] == ("Total", "L")]
    derived = there.table("ours")
    if gradients and isinstance(derived, Ours):
        scale = max([scale, *map(derived.passed, gradients)])
    forward = not has_derivative(turned[0])
    label = table.name.replace("torch autograd", "torch forward") if forward else table.name

    def held(values: Array, detail: str) -> Evidence:
        if identity.relation != "=" and not detail:
            # ours may lie anywhere on the claimed side of the oracle's values
            ours_below = (identity.relation[0] == ">") == (turned[0] is identity.lhs)
            bound = np.minimum if ours_below else np.maximum
            return compared(values, bound(values, theirs[0]), "violation of the inequality")
        return compared(values, theirs[0], detail)

    def compared(values: Array, want: Array, detail: str) -> Evidence:
        return compare(name, label, values, want, scale, tolerance, there.main.scope,
                       perf_counter() - start, where=there.where(identity),
                       independent=table.independent, detail=detail)  # fmt: skip

    claimed = held(ours[0], "")
    adjoints = there.side(turned[0], identity, "ours") if gradients else None
    if adjoints is None:
        return claimed
    # the adjoint equations that were derived must give the oracle's left side as well
    other = held(adjoints[0], "the derived adjoint equations")
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


def apart(identity: Identity, there: Point, seed: int, dtype: str,
          assumes: Sequence[Identity]) -> bool:  # fmt: skip
    """Tell whether the sides of a strict inequality differ here and at the random draws.

    Floats cannot tell it from an equality where they do not, so no oracle speaks for it.
    """
    draws = (drawn(identity, seed, n, dtype, assumes)[1] for n in range(DRAWS))
    for at in (there, *(d for d in draws if d is not None)):
        left, right = (at.side(s, identity, "ours") for s in (identity.lhs, identity.rhs))
        if left is None or right is None:
            continue
        near = rounding(at.main.dtype) * max(left[1], right[1])
        if np.any((np.abs(left[0] - right[0]) <= near) & at.where(identity)):
            return False
    return True


def drawn(identity: Identity, seed: int, draw: int, dtype: str,
          assumes: Sequence[Identity]) -> tuple[int, Point | None]:  # fmt: skip
    """Return the seed and the point of one draw of random sizes."""
    number = 1000 * (seed + 1) + draw
    sizes = random_sizes(canonical(identity.system), number)
    return number, reachable(identity, None, sizes, number, dtype, assumes, 1)


def at_random_sizes(identity: Identity, turned: tuple[Expr, Expr], seed: int, dtype: str,
                    assumes: Sequence[Identity]) -> list[Evidence]:  # fmt: skip
    """Compare with autograd at unequal sizes drawn from the seed; the worst draw is reported."""
    start, found = perf_counter(), list[Evidence]()
    for draw in range(DRAWS):
        number, there = drawn(identity, seed, draw, dtype, assumes)
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
