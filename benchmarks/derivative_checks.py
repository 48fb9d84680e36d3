"""Finite differences and complex step against torch.autograd.gradcheck on the same function."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from timing import best, row

from derive import topics
from derive.checks import complex_step, finite_difference
from derive.checks.autograd import Kept
from derive.checks.forwards import rnn
from derive.checks.perturb import Perturbed
from derive.checks.sizes import default_sizes, random_givens
from derive.checks.table import Ours

PARAMETERS = ("W_x", "W_h", "b_h", "W_o", "b_o")
SYSTEM = topics.load("bptt").systems["rnn"].with_loss("per_position")
POINTS = ({"T": 4, "D": 2, "H": 3, "C": 5}, {"T": 16, "D": 4, "H": 6, "C": 5})


def gradcheck(givens: dict[str, np.ndarray]) -> bool:
    """Run torch's check of the hand-written forward, by every parameter."""
    g = {n: torch.from_numpy(a) for n, a in givens.items()}
    leaves = [g[n].clone().requires_grad_() for n in PARAMETERS]

    def loss(*weights: torch.Tensor) -> torch.Tensor:
        values = {**g, **dict(zip(PARAMETERS, weights, strict=True))}
        kept = Kept()
        rnn({n: v[None] for n, v in values.items()}, kept, "per_position")
        total: torch.Tensor = kept.made["L"][0][0]
        return total

    return bool(torch.autograd.gradcheck(loss, leaves))


def check(make: Callable[..., Perturbed], givens: dict[str, np.ndarray], sizes: dict[str, int],
          tolerance: float) -> float:  # fmt: skip
    """Run ours: every parameter perturbed, the derived gradients compared."""
    point = dict(givens)  # a point of its own, so that nothing is remembered
    theirs, ours = make(SYSTEM, point, sizes), Ours(SYSTEM, point, sizes)
    worst = max(np.abs(theirs.total("L", n) - ours.total("L", n)).max() for n in PARAMETERS)
    assert worst < tolerance, worst
    return float(worst)


def main() -> None:
    """Print how many times faster the checks are."""
    kinds = (
        ("central differences", finite_difference.table, 1e-7),
        ("complex step", complex_step.table, 1e-12),
    )
    for sizes in POINTS:
        sizes = default_sizes(SYSTEM, sizes)
        givens = random_givens(SYSTEM, sizes, 0)
        slow = best(partial(gradcheck, givens), 3)
        scope = " ".join(f"{n}={v}" for n, v in sizes.items())
        for name, make, tolerance in kinds:
            fast = best(partial(check, make, givens, sizes, tolerance))
            row(f"gradcheck / {name}, {scope}", slow / fast, "at least 20")


if __name__ == "__main__":
    main()
