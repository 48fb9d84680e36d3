"""What clipping the gradient's norm does, and what it does not: a sum of sixty numbers.

A vanilla recurrence has to carry a running total undiminished, which pushes its weights to where
gradients explode. Unclipped, the run diverges; clipped, it survives and improves on predicting
zero, but does not learn to carry the total: clipping bounds an update and cannot raise a gradient.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf, isfinite, nan, pi, sqrt
from statistics import median
from typing import Any

from derive.checks.experiments import Expectation, Outcome
from derive.checks.seeding import seeded
from derive.options import Progress

TITLE = "a vanilla RNN sums random numbers, with and without clipping the gradient's norm"
SIGMAS = 3.0
"""Standard errors that a median may lie off: one false alarm in 700."""
FAR_FROM_SOLVED = 0.1
"""A state that carried the total would explain nine tenths of the variance, and more."""
ROUNDING = 1e-5
"""A norm of a few thousand float32 numbers: a hundred units in the last place."""


@dataclass(frozen=True)
class Setup:
    """Sizes of the runs.

    Args:
        length: How many numbers are summed; also the variance of their sum.
        hidden: Width of the RNN.
        batch: Sequences an update.
        updates: Steps of plain gradient descent.
        blocks: Parts of a run whose median loss is shown.
        rate: Learning rate.
        clip: The largest norm of a gradient.
    """

    length: int = 60
    hidden: int = 32
    batch: int = 32
    updates: int = 400
    blocks: int = 4
    rate: float = 0.1
    clip: float = 1.0

    def error(self, loss: float) -> float:
        """Return the standard error of a block's median loss.

        A batch's loss is a mean of squares of nearly normal errors: its relative standard deviation
        is sqrt(2/batch). The median of n of them has sqrt(pi/2) times the error of their mean.
        """
        count = self.updates / self.blocks
        return loss * sqrt(2 / self.batch) * sqrt(pi / 2 / count)


@dataclass(frozen=True)
class Trace:
    """One run.

    Args:
        losses: One an update; NaN from where the run has died.
        largest: The largest norm of a gradient before clipping.
        applied: The largest norm of a gradient as it was applied.
    """

    losses: tuple[float, ...]
    largest: float
    applied: float

    @property
    def died(self) -> int | None:
        """The first update whose loss is not finite."""
        return next((n for n, loss in enumerate(self.losses, 1) if not isfinite(loss)), None)

    def medians(self, blocks: int) -> list[float]:
        """Return each block's median loss; NaN for one in which the run died."""
        size = len(self.losses) // blocks
        parts = [self.losses[n * size : (n + 1) * size] for n in range(blocks)]
        return [median(part) if all(map(isfinite, part)) else nan for part in parts]


def run(seed: int, progress: Progress, setup: Setup | None = None) -> Outcome:
    """Train twice from one seed, on the same data; only the clipping differs."""
    start, setup = time.perf_counter(), setup or Setup()
    traces = {}
    for done, clip in enumerate((inf, setup.clip)):
        progress(done, 2, "no clipping" if clip == inf else f"clipped at {clip:g}")
        with seeded(seed):
            traces[clip] = train(clip, setup)
    rows = tuple(
        (
            "none" if clip == inf else f"{clip:g}",
            *trace.medians(setup.blocks),
            trace.largest,
            trace.died,
        )
        for clip, trace in traces.items()
    )
    settings = (
        f"{setup.length} standard normals, hidden {setup.hidden}, batch {setup.batch}, "
        f"{setup.updates} updates of gradient descent at {setup.rate:g}"
    )
    return Outcome("clipping", TITLE, seed, settings, columns(setup), rows,
                   expected(traces[inf], traces[setup.clip], setup), notes(setup),
                   time.perf_counter() - start)  # fmt: skip


def columns(setup: Setup) -> tuple[str, ...]:
    """Return the names of the columns: a block is named by its updates."""
    size = setup.updates // setup.blocks
    blocks = (f"{n * size + 1}-{(n + 1) * size}" for n in range(setup.blocks))
    return ("clip", *blocks, "largest norm", "died at")


def notes(setup: Setup) -> tuple[str, ...]:
    """Return what the columns mean."""
    return (
        f"a-b: median loss of the updates a to b; predicting 0 scores the variance, {setup.length}",
        "largest norm: of a gradient before clipping, while the run was finite; died at: the "
        "first update whose loss is NaN or infinite",
    )


def expected(free: Trace, clipped: Trace, setup: Setup) -> tuple[Expectation, ...]:
    """Return what the two runs are expected to show."""
    low = setup.length - SIGMAS * setup.error(setup.length)
    *_, before, last = clipped.medians(setup.blocks)
    drift = SIGMAS * sqrt(2) * setup.error(before)
    alive, bound = clipped.died is None, setup.clip * (1 + ROUNDING)
    return (
        Expectation("without clipping the run diverges", free.losses[-1],
                    "last loss not finite", free.died is not None),
        Expectation(f"clipped at {setup.clip:g} every loss stays finite", max(clipped.losses),
                    "finite", alive),
        Expectation("no update exceeds the clip, whatever the raw norm", clipped.applied,
                    f"at most {bound:.5f}", clipped.applied <= bound),
        Expectation(f"clipped, the loss falls below the variance, {setup.length}", last,
                    f"at most {low:.1f}", last <= low),
        Expectation("clipped, the loss levels off: the last two blocks agree", abs(last - before),
                    f"at most {drift:.1f}", abs(last - before) <= drift),
        Expectation("survival, not competence: the total is not learned", last,
                    f"at least {FAR_FROM_SOLVED * setup.length:.1f}",
                    last >= FAR_FROM_SOLVED * setup.length),
    )  # fmt: skip


def train(clip: float, setup: Setup) -> Trace:
    """Train one network; a run that has died stays dead, so it is not continued."""
    import torch

    rnn, head = torch.nn.RNN(1, setup.hidden), torch.nn.Linear(setup.hidden, 1)
    parameters: list[Any] = [*rnn.parameters(), *head.parameters()]
    optimiser = torch.optim.SGD(parameters, setup.rate)
    losses, largest, applied = list[float](), 0.0, 0.0
    for _ in range(setup.updates):
        x = torch.randn(setup.length, setup.batch, 1)
        loss = ((head(rnn(x)[0][-1]) - x.sum(0)) ** 2).mean()
        losses.append(loss.item())
        if not isfinite(losses[-1]):
            break
        optimiser.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(parameters, clip).item()
        largest = max(largest, norm)
        applied = max(applied, torch.nn.utils.get_total_norm([p.grad for p in parameters]).item())
        optimiser.step()
    rest = (nan,) * (setup.updates - len(losses))
    return Trace((*losses, *rest), largest, applied)
