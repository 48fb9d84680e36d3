"""Central differences of the forward program, every scalar in one batched run.

(f(x+s) - f(x-s)) / 2s has truncation error s^2 |f'''| / 6 and rounding error eps |f| / s; they
balance at s near eps^(1/3) |x|, where both are of order eps^(2/3): 4e-11 in float64. Steps follow
|x| down to a floor, because functions such as log bend at the scale of x; at the floor the rounding
error is 1 / FLOOR times larger.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from derive.checks.perturb import Part, Perturbed
from derive.checks.runtime import stop_base
from derive.checks.sides import measured
from derive.checks.storage import Array
from derive.checks.table import Givens, Ours, program
from derive.equation import System

FLOOR = 0.01
"""Least magnitude that a step is relative to."""


def tolerance(dtype: np.dtype[np.floating]) -> float:
    """Return what central differences give at these steps, relative to the values subtracted.

    Rounding at the smallest step is eps / (eps^(1/3) FLOOR) for each value; two values with a
    couple of roundings each make the factor 4.
    """
    return float(4 * np.finfo(dtype).eps ** (2 / 3) / FLOOR)


def step_size(dtype: np.dtype[np.floating]) -> float:
    """Return the relative step, eps^(1/3)."""
    return float(np.finfo(dtype).eps ** (1 / 3))


class Differences(Perturbed):
    """A table from central differences. Row 0 of the batch is the unperturbed run."""

    name = "central differences"

    def slopes(self, parts: list[Part]) -> dict[str, Array]:
        """Return central differences by each scalar."""
        count = sum(p.count for p in parts)
        rows = 1 + 2 * count
        width = np.zeros(count)

        def step(part: Part, block: Array, where: slice) -> Array:
            start = part.base.reshape(-1)
            size = step_size(start.dtype) * np.maximum(FLOOR, np.abs(start))
            base = block[0]
            up, down = base + size, base - size
            width[where] = up - down
            own_rows = np.arange(part.count)
            block[1 + where.start + own_rows, own_rows] = up
            block[1 + count + where.start + own_rows, own_rows] = down
            return block

        givens, added = self.laid(parts, rows, step)
        run = program(self.system, self.givens)
        found = run.run(givens, added, sizes=self.sizes, stop=stop_base)
        out = {}
        for name, value in found.items():
            change = value[1 : 1 + count] - value[1 + count :]
            out[name] = change / width.reshape(-1, *(1,) * (change.ndim - 1))
        return out

    def scale(self, of: str) -> float:
        """Return the magnitude of the values whose differences are taken.

        A loss may be a sum of terms that cancel: it is rounded as they are.
        """
        found = float(np.abs(self.values[of]).max()) if of in self.values else 1.0
        if of != "L" or of not in self.values:
            return found
        ours = Ours(self.system, self.givens, self.sizes)
        return max(found, measured(self.system.by_name["L"].rhs, (), ours, self.sizes)[1])


def directional(system: System, givens: Givens, sizes: Mapping[str, int], wrt: str,
                count: int, seed: int) -> tuple[Array, Array]:  # fmt: skip
    """Return the derivative of the loss along random directions of one tensor.

    For more scalars than can be perturbed one by one. Directions have independent signs, so that
    every entry of the gradient takes part with weight one.

    Returns:
        The directions, shape (count, ...), and the derivatives, shape (count,).
    """
    table = Differences(system, givens, sizes)
    (*_, part) = table.parts_of(wrt)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (count, *part.shape))
    size = step_size(part.base.dtype) / np.sqrt(part.count)
    start = part.base if part.key else np.zeros_like(part.base)
    moves = np.concatenate([np.zeros((1, *part.shape)), signs * size, -signs * size])
    block = np.asarray(start + moves, part.base.dtype)
    batch, added = dict(givens), dict[str, Array]()
    if part.key:
        batch[part.key] = block
    else:
        added[wrt] = block
    loss = program(system, givens).run(batch, added, sizes=sizes, stop=stop_base)["L"]
    return signs, (loss[1 : 1 + count] - loss[1 + count :]) / (2 * size)


def table(system: System, givens: Givens, sizes: Mapping[str, int]) -> Differences:
    """Return the table of central differences."""
    return Differences(system, givens, sizes)
