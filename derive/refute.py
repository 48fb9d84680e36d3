"""Refutation: a small point at which a false claim is false, certified by balls.

The values are short decimals drawn from a seed, so that a reader can check them. Sizes go from one
upward and end unequal: a claim that holds at size one and fails at three is found too.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache
from itertools import product

import flint

from derive.claim import Counterexample
from derive.equation import System
from derive.errors import DeriveError
from derive.explicit import Explicit
from derive.instances import Env, instances
from derive.nodes import kind
from derive.rings import Balls
from derive.statement import Identity
from derive.worlds import Worlds

PRECISION = 128
DRAWS = 2
"""How many points are tried at each size: an equation that fails, fails almost everywhere."""
WIDE_DRAWS = 24
"""An inequality fails on one side only, and a point must satisfy what is assumed: more points."""
WIDE_FOURTH = 10_000
"""What a fourth moment is above: more than any drawn variance and skewness need."""
SHARE_ALLOWED = 0.6
"""How many entries of a mask are 1, roughly."""
MAX_SECONDS = 3.0
"""Time after which no further points are tried, once each size was tried twice."""
SCALES = (Fraction(1), Fraction(4), Fraction(1, 4), Fraction(16))


def size_ladder(system: System) -> Iterator[dict[str, int]]:
    """Yield sizes, small first: all ones, one axis larger at a time, then unequal ones."""
    names = list(system.dims)
    positions = [n for n in names if system.dims[n].ordered]
    seen: set[tuple[int, ...]] = set()

    def rows() -> Iterator[dict[str, int]]:
        ones = dict.fromkeys(names, 1)
        yield ones
        yield {**ones, **dict.fromkeys(positions, 2)}
        for name in names:
            yield {**ones, **dict.fromkeys(positions, 2), name: 2}
        yield {**dict.fromkeys(names, 2), **dict.fromkeys(positions, 3)}
        for shift in range(2):
            yield {n: 2 + (i + shift) % 3 for i, n in enumerate(names)}
        yield {n: (4 if n in positions else 3 - i % 2) for i, n in enumerate(names)}

    for row in rows():
        key = tuple(row[n] for n in names)
        if key not in seen:
            seen.add(key)
            yield row


class Values:
    """Given entries drawn from a seed as decimals with two digits in (-1, 1); one-hot rows too."""

    def __init__(self, system: System, sizes: Mapping[str, int], seed: int):
        self.system, self.sizes, self.seed = system, sizes, seed
        self.used: dict[str, dict[tuple[int, ...], Fraction]] = {}

    def scale(self, name: str) -> Fraction:
        """Return how large a tensor's entries are: of order one at first, then of other orders."""
        rng = random.Random(f"{self.seed}:{name}")
        return SCALES[0] if self.seed % WIDE_DRAWS < DRAWS else rng.choice(SCALES)

    @cache  # noqa: B019 - one instance per search
    def __call__(self, name: str, index: tuple[int, ...]) -> Fraction:
        """Return one entry."""
        tensor = self.system.tensors[name]
        if tensor.permutation:
            order = list(range(self.sizes[tensor.dims[-1].name]))
            random.Random(f"{self.seed}:{name}:{index[:-2]}").shuffle(order)
            value = Fraction(int(order[index[-2]] == index[-1]))
        elif tensor.onehot:
            rng = random.Random(f"{self.seed}:{name}:{index[:-1]}")
            value = Fraction(int(rng.randrange(self.sizes[tensor.dims[-1].name]) == index[-1]))
        elif tensor.binary:
            value = Fraction(int(self.allowed(name, index)))
        else:
            rng = random.Random(f"{self.seed}:{name}:{index}")
            value = Fraction(rng.choice([-1, 1]) * rng.randint(11, 97), 100) * self.scale(name)
            if tensor.nonnegative:
                value = abs(value)
            if name in self.system.variances:
                value = abs(value) + (WIDE_FOURTH if name in self.system.fourths else 0)
        self.used.setdefault(name, {})[index] = value
        return value

    def allowed(self, name: str, index: tuple[int, ...]) -> bool:
        """Tell whether an entry of a mask is 1; in each row at least one is."""
        dims = self.system.tensors[name].dims
        row = random.Random(f"{self.seed}:{name}:{index[:-1]}")
        if dims and row.randrange(self.sizes[dims[-1].name]) == index[-1]:
            return True
        return random.Random(f"{self.seed}:{name}:{index}").random() < SHARE_ALLOWED


def refute(
    identity: Identity,
    assumes: tuple[Identity, ...] = (),
    seed: int = 0,
    sizes: Mapping[str, int] | None = None,
    draws: int | None = None,
) -> Counterexample | None:
    """Search for a counterexample.

    Args:
        identity: The statement.
        assumes: Assumptions that the points satisfy.
        seed: Which values.
        sizes: Only these sizes, or the ladder.
        draws: How many points at each size; by default as many as the statement's kind needs.

    Returns:
        A point at which the balls of both sides are disjoint, or None.
    """
    if any(kind(a.lhs) == "Total" for a in assumes if a.relation == "="):
        return None  # an assumption about a derivative picks out no point that could be drawn
    ladder = [dict(sizes)] if sizes else list(size_ladder(identity.system))
    unequal = [s for s in (identity, *assumes) if s.relation != "="]
    draws, start = draws or (WIDE_DRAWS if unequal else DRAWS), time.perf_counter()
    for draw, row in product(range(draws), ladder):
        if draw >= DRAWS and time.perf_counter() - start > MAX_SECONDS:
            return None
        found = at_point(identity, assumes, row, WIDE_DRAWS * seed + draw)
        if found is not None:
            return found
    return None


def at_point(
    identity: Identity, assumes: tuple[Identity, ...], sizes: Mapping[str, int], seed: int
) -> Counterexample | None:
    """Evaluate both sides at every instance of one point."""
    values = Values(identity.system, sizes, seed)
    old = flint.ctx.prec
    flint.ctx.prec = PRECISION
    try:
        fixed = tuple(a for a in assumes if a.relation == "=")
        wanted = [a for a in assumes if a.relation != "="]
        worlds = Worlds(identity, sizes, Balls(values, PRECISION), fixed)
        for env in instances(identity, sizes):
            pair = sides(worlds.at(env), identity, env)
            if pair is None or not contradicts(identity.relation, *pair):
                continue
            own = {s: env[s] for s, d in identity.free if d.ordered}
            if all(satisfied(a, worlds.at(env), own, sizes) for a in wanted):
                return _found(identity, sizes, env, pair, values)
    finally:
        flint.ctx.prec = old
    return None


def contradicts(relation: str, left: flint.arb, right: flint.arb) -> bool:
    """Tell whether two balls certainly do not stand in a relation."""
    if relation == "=":
        return not left.overlaps(right)
    if relation[0] == ">":
        left, right = right, left
    return bool(left >= right if len(relation) == 1 else left > right)


def satisfied(assumed: Identity, world: Explicit, env: Env, sizes: Mapping[str, int]) -> bool:
    """Tell whether an assumed inequality certainly holds wherever it speaks.

    A position that it shares with the claim is the claim's own (``env`` holds those).
    """
    opposite = {"<=": ">", "<": ">=", ">=": "<", ">": "<="}[assumed.relation]
    for here in instances(assumed, sizes):
        if any(env.get(s, i) != i for s, i in here.items()):
            continue
        pair = sides(world, assumed, here)
        if pair is None or not contradicts(opposite, *pair):
            return False
    return True


def sides(world: Explicit, identity: Identity, env: Env) -> tuple[flint.arb, flint.arb] | None:
    """Return both sides at one instance; None where the sizes are too small for it."""
    try:
        return world.value(identity.lhs, env), world.value(identity.rhs, env)
    except DeriveError:
        return None


def _found(
    identity: Identity,
    sizes: Mapping[str, int],
    env: Env,
    pair: tuple[flint.arb, flint.arb],
    values: Values,
) -> Counterexample:
    index = {s.name: i for s, i in env.items()}
    point = {name: {",".join(map(str, i)): str(float(v)) for i, v in sorted(entries.items())}
             for name, entries in sorted(values.used.items())}  # fmt: skip
    derived, claimed = (show(x) for x in pair)
    if identity.relation != "=":
        claimed = f"{identity.relation} {claimed}"
    return Counterexample(dict(sizes), index, claimed, derived, dict(point))


def show(ball: flint.arb, digits: int = 6) -> str:
    """Return certified digits of a ball; 0 if it is exactly zero."""
    return "0" if ball == 0 else str(ball.str(digits, radius=False))
