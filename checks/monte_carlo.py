"""Monte Carlo: expected values by seeded samples, held to the standard error of their means.

The samples come from distributions that have the declared moments and nothing else in common with
a normal one: uniform, or on two or three points. Entries are evaluated one by one over arrays of
samples, so this shares no expansion into moments with the proof.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from fractions import Fraction
from time import perf_counter
from typing import Any

import numpy as np

from derive.checks.sizes import default_sizes, random_givens
from derive.checks.storage import Array
from derive.claim import Evidence, Worst
from derive.equation import System, moment_indices
from derive.errors import DeriveError
from derive.explicit import Dual, Explicit
from derive.index import Expr
from derive.instances import Env, instances
from derive.nodes import kind, walk
from derive.statement import Identity

BATCHES, SAMPLES = 32, 8000
"""Both sides are estimated once a batch; the spread over the batches gives the standard error.

A product of means is off by a variance over SAMPLES on average, a small part of that error."""
ERRORS = 5.0
"""How many standard errors a mean may be off: with 31 degrees of freedom the chance that a true
statement's instance is further off is about 2e-5."""
MAX_INSTANCES, ATTEMPTS, WIDE = 40, 60, 20.0


def is_random(identity: Identity) -> bool:
    """Tell whether a statement holds an expected value."""
    return any(kind(n) == "Expect" for s in (identity.lhs, identity.rhs) for n in walk(s))


class Samples:
    """A ring of arrays of samples, one row a batch.

    Args:
        system: Whose random tensors are drawn.
        sizes: By name.
        givens: The other entries.
        seed: For the draws.
    """

    one, zero = 1.0, 0.0

    def __init__(self, system: System, sizes: Mapping[str, int], givens: Mapping[str, Array],
                 seed: int):  # fmt: skip
        self.system, self.sizes, self.givens, self.seed = system, sizes, givens, seed
        self.drawn: dict[tuple[str, tuple[int, ...]], Array] = {}
        self.world: Explicit | None = None

    def constant(self, value: Fraction) -> float:
        """Return a number."""
        return float(value)

    def given(self, name: str, index: tuple[int, ...]) -> Any:
        """Return a given entry, or the samples of a random one."""
        if name not in self.system.random:
            return float(self.givens[name][index])
        if (name, index) not in self.drawn:
            self.drawn[name, index] = self.draw(name, index)
        return self.drawn[name, index]

    def apply(self, function: str, x: Any) -> Any:
        """Apply a function."""
        if function == "sigmoid":
            return 1.0 / (1.0 + np.exp(-x))
        if function == "step":
            return np.where(x >= 0, 1.0, 0.0)
        return getattr(np, function)(x)

    def draw(self, name: str, index: tuple[int, ...]) -> Array:
        """Draw an entry's samples from a distribution with its declared moments.

        Raises:
            DeriveError: If no such distribution is known here.
        """
        tensor, moments = self.system.tensors[name], self.system.random[name]
        assert self.world is not None
        world = self.world
        env: Env = dict(zip(moment_indices(tensor), index, strict=True))
        mean = float(world.value(moments.mean, env))
        orders = [moments.central(n) for n in (2, 3, 4)]
        variance, third, fourth = (None if m is None else float(world.value(m, env))
                                   for m in orders)  # fmt: skip
        place = zlib.crc32(f"{name}{index}".encode())
        rng = np.random.default_rng([self.seed, place])
        return mean + centred(rng, variance, third, fourth)


def centred(rng: np.random.Generator, variance: float | None, third: float | None,
            fourth: float | None) -> Array:  # fmt: skip
    """Draw from a distribution of mean zero with these central moments (None: any).

    Raises:
        DeriveError: If there is none.
    """
    shape, spread = (BATCHES, SAMPLES), 1.0 if variance is None else variance
    tail = 0.0 if not third or not spread else third**2 / spread
    if spread < 0 or (third and not spread) or (fourth is not None and fourth < spread**2 + tail):
        raise DeriveError("no distribution has these moments")
    if third is None and fourth is None:
        half = np.sqrt(3 * spread)  # a uniform on [-half, half] has variance half^2 / 3
        return rng.uniform(-half, half, shape) if spread else np.zeros(shape)
    # 0, else two points a > 0 > b with probabilities -b/(a-b) and a/(a-b), of variance -ab, third
    # moment -ab(a+b) and fourth moment variance^2 + third^2/variance; p is how often it is not 0
    often = 1.0 if fourth is None else spread**2 / (fourth - tail)
    total = (third or 0.0) / spread
    root = np.sqrt(total**2 + 4 * spread / often)
    high, low = (total + root) / 2, (total - root) / 2
    side = np.where(rng.random(shape) < -low / (high - low), high, low)
    values: Array = np.where(rng.random(shape) < often, side, 0.0)
    return values


class Sampled(Explicit):
    """A system whose expected values are means over the samples of a batch."""

    def dual(self, expr: Expr, env: Env) -> Dual:
        """Evaluate an expression; an expected value is one number a batch."""
        if kind(expr) == "Expect":
            values = np.broadcast_to(super().dual(expr.args[0], env)[0], (BATCHES, SAMPLES))
            return values.mean(1, keepdims=True), {}
        return super().dual(expr, env)


def evidence(identity: Identity, sizes: Mapping[str, int] | None, seed: int,
             assumes: tuple[Identity, ...]) -> list[Evidence]:  # fmt: skip
    """Compare both sides batch by batch at every instance, in units of the standard error.

    Args:
        identity: A statement that holds expected values.
        sizes: By name; unequal defaults.
        seed: For everything drawn.
        assumes: Statements that fix given entries.
    """
    start, system = perf_counter(), identity.system
    full = default_sizes(system, dict(sizes or {}))
    world = reachable(system, full, seed, assumes)
    if world is None:
        return []
    worst: tuple[float, tuple[int, ...], float, float] = (-1.0, (), 0.0, 0.0)
    count = 0
    for env in instances(identity, full):
        if count == MAX_INSTANCES:
            break
        try:
            left, right = (np.broadcast_to(world.value(s, env), (BATCHES, 1))
                           for s in (identity.lhs, identity.rhs))  # fmt: skip
        except DeriveError:
            return []
        count += 1
        scale = max(float(np.abs(left).max()), float(np.abs(right).max()))
        off = deviation(left - right, identity.relation, scale)
        place = tuple(env[s] for s, _ in identity.free)
        if not off <= worst[0]:
            worst = (off, place, float(right.mean()), float(left.mean()))
    scope = " ".join(f"{n}={v}" for n, v in full.items())
    return [Evidence(
        "monte_carlo", f"{BATCHES} x {SAMPLES} samples, in standard errors", count, worst[0],
        ERRORS, scope, perf_counter() - start, bool(worst[0] <= ERRORS), Worst(*worst[1:]),
        "distributions with the declared moments",
    )]  # fmt: skip


def reachable(system: System, sizes: Mapping[str, int], seed: int,
              assumes: tuple[Identity, ...]) -> Sampled | None:  # fmt: skip
    """Return a world whose moments a distribution has and in which the assumptions hold."""
    fixed = tuple(a for a in assumes if a.relation == "=")
    for attempt in range(ATTEMPTS):
        givens = random_givens(system, sizes, seed, attempt=attempt)
        for name in system.variances:
            givens[name] = np.abs(givens[name])
        for name in system.fourths:
            givens[name] = givens[name] + WIDE  # at least what variance and skewness need
        samples = Samples(system, sizes, givens, seed)
        samples.world = world = Sampled(system, sizes, samples, fixed)
        try:
            for name in system.random:
                dims = [sizes[d.name] for d in system.tensors[name].dims]
                for index in np.ndindex(*dims):
                    samples.given(name, tuple(map(int, index)))
            if all(holds(world, a, sizes) for a in assumes if a.relation != "="):
                return world
        except DeriveError:
            continue
    return None


def holds(world: Explicit, assumed: Identity, sizes: Mapping[str, int]) -> bool:
    """Tell whether an assumed inequality holds wherever it speaks."""
    gaps = (float(world.value(assumed.gap, env)) for env in instances(assumed, sizes))
    return all(g > 0 if assumed.strict else g >= 0 for g in gaps)


def deviation(gaps: Array, relation: str, scale: float) -> float:
    """Return how many standard errors the mean over the batches is on the wrong side of zero.

    Rounding of the means themselves, a few ulp of the scale, is no deviation.
    """
    mean, error = float(gaps.mean()), float(gaps.std(ddof=1)) / float(np.sqrt(len(gaps)))
    wrong = {"=": abs(mean), "<": mean, ">": -mean}[relation[0]]
    floor = 64 * float(np.finfo(np.float64).eps) * scale
    return 0.0 if wrong <= floor else wrong / max(error, floor)
