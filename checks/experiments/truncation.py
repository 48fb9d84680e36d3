"""How far truncated backpropagation learns: the symbol of four steps ago, by window length.

A target whose source lies in an earlier window has no gradient path to it. The same experiment
shows what does not follow: a recurrence that gets no gradient through time at all, fixed at random,
carries that symbol as well, and a linear readout that is trained one step at a time finds it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

from derive.checks.experiments import Expectation, Outcome
from derive.checks.seeding import seeded
from derive.options import Progress

TITLE = "truncated backpropagation on a delayed copy: which windows learn the lag"
COLUMNS = ("recurrence", "window", "path", "accuracy", "verdict")
SIGMAS = 3.0
"""Standard errors that an accuracy may lie off: one false alarm in 700."""


@dataclass(frozen=True)
class Setup:
    """Sizes of the runs.

    Args:
        windows: Window lengths.
        lag: How many steps back the target lies.
        symbols: How many kinds.
        hidden: Width of the LSTM.
        reservoir: Width of the fixed random recurrence.
        streams: Sequences read side by side.
        updates: Optimiser steps.
        counted: The last updates, over which the accuracy is taken.
        rate: Learning rate of Adam.
    """

    windows: tuple[int, ...] = (2, 4, 8, 16)
    lag: int = 4
    symbols: int = 4
    hidden: int = 32
    reservoir: int = 64
    streams: int = 16
    updates: int = 600
    counted: int = 100
    rate: float = 1e-2

    @property
    def chance(self) -> float:
        """The accuracy of guessing."""
        return 1 / self.symbols

    def error(self, rate: float) -> float:
        """Return the binomial standard error of an accuracy.

        The predictions between two updates share weights and, across streams, their mistakes; so
        an update counts as one observation, not its streams times window predictions.
        """
        return sqrt(rate * (1 - rate) / self.counted)

    @property
    def near(self) -> float:
        """The highest accuracy that is still near chance."""
        return self.chance + SIGMAS * self.error(self.chance)

    def path(self, window: int) -> float:
        """Return the share of targets whose source lies in the same window."""
        return max(0, window - self.lag) / window

    def learned(self, window: int) -> float:
        """Return the lowest accuracy at which a window has learned what has a path.

        Targets with a path right, the others guessed; less the standard error of that.
        """
        exact = self.path(window) + (1 - self.path(window)) * self.chance
        return exact - SIGMAS * self.error(exact)

    @property
    def solved(self) -> float:
        """The lowest accuracy that solves the task.

        By the rule of three: no error in n observations is compatible with a rate of 3/n.
        """
        return 1 - 3 / self.counted


Step = Callable[[Any, Any], tuple[Any, Any]]


def run(seed: int, progress: Progress, setup: Setup | None = None) -> Outcome:
    """Train each window, then readouts of two recurrences that are never trained."""
    start, setup = time.perf_counter(), setup or Setup()
    runs = {
        **{("LSTM", window): lstm for window in setup.windows},
        ("LSTM, frozen", setup.lag): frozen,
        ("random, fixed", 1): reservoir,
    }
    found = dict[tuple[str, int], float]()
    for done, ((name, window), model) in enumerate(runs.items()):
        progress(done, len(runs), f"{name}, window {window}")
        with seeded(seed):
            found[name, window] = train(model(setup), window, setup)
    rows = tuple(
        (name, window, setup.path(window) if name == "LSTM" else 0.0, a, verdict(a, setup))
        for (name, window), a in found.items()
    )
    return Outcome("truncation", TITLE, seed, settings(setup), COLUMNS, rows,
                   tuple(expected(found, setup)), notes(setup),
                   time.perf_counter() - start)  # fmt: skip


def settings(setup: Setup) -> str:
    """Return what was run."""
    return (
        f"lag {setup.lag}, {setup.symbols} symbols, hidden {setup.hidden}, {setup.streams} streams,"
        f" {setup.updates} updates by Adam at {setup.rate:g}, accuracy over the last "
        f"{setup.counted}"
    )


def notes(setup: Setup) -> tuple[str, ...]:
    """Return what the columns mean."""
    return (
        f"path: share of the targets whose source, {setup.lag} steps back, lies in the same window",
        "frozen, fixed: only the linear readout is trained; no gradient goes through time",
        f"chance is {setup.chance:.3f}; near chance ends {SIGMAS:g} standard errors above it, at "
        f"{setup.near:.3f}",
    )


def verdict(accuracy: float, setup: Setup) -> str:
    """Return an accuracy in words."""
    if accuracy >= setup.solved:
        return "solved"
    return "near chance" if accuracy <= setup.near else "above chance"


def expected(found: Mapping[tuple[str, int], float], setup: Setup) -> Iterator[Expectation]:
    """Yield what each run is expected to reach, against what it reached."""
    lag = setup.lag
    for window in setup.windows:
        accuracy, low = found["LSTM", window], max(setup.learned(window), setup.near)
        if window > lag:
            yield at_least(f"window {window} > lag {lag}: learns", accuracy, low)
        else:
            yield at_most(f"window {window} <= lag {lag}: stays near chance", accuracy, setup.near)
    best = max((found["LSTM", w] for w in setup.windows if w <= lag), default=0.0)
    untrained = found["LSTM, frozen", lag]
    yield at_most(
        "without a path, training the recurrence gains nothing over freezing it",
        best,
        untrained + SIGMAS * sqrt(2) * setup.error(untrained),
    )
    yield at_least(
        "no gradient path is not 'never learned': a fixed random recurrence with a trained linear "
        f"readout solves lag {lag} at window 1",
        found["random, fixed", 1],
        setup.solved,
    )


def at_least(text: str, accuracy: float, bound: float) -> Expectation:
    """Return the expectation that an accuracy reaches a bound."""
    return Expectation(text, accuracy, f"at least {bound:.3f}", accuracy >= bound)


def at_most(text: str, accuracy: float, bound: float) -> Expectation:
    """Return the expectation that an accuracy stays below a bound."""
    return Expectation(text, accuracy, f"at most {bound:.3f}", accuracy <= bound)


# What is trained


@dataclass(frozen=True)
class Model:
    """A recurrence, a linear readout, and what the optimiser may change.

    Args:
        step: From one-hot inputs (window, streams, symbols) and a state to logits and a state,
            through which no gradient passes on.
        parameters: What is trained.
    """

    step: Step
    parameters: tuple[Any, ...]


def frozen(setup: Setup) -> Model:
    """Return an LSTM that stays as it was initialised; only its readout is trained."""
    return lstm(setup, trained=False)


def lstm(setup: Setup, trained: bool = True) -> Model:
    """Return an LSTM whose state is carried from window to window without its gradient."""
    import torch

    cell = torch.nn.LSTM(setup.symbols, setup.hidden).requires_grad_(trained)
    head = torch.nn.Linear(setup.hidden, setup.symbols)

    def step(x: Any, state: Any) -> tuple[Any, Any]:
        out, state = cell(x, state)
        return head(out), tuple(part.detach() for part in state)

    return Model(step, (*(cell.parameters() if trained else ()), *head.parameters()))


def reservoir(setup: Setup) -> Model:
    """Return a fixed random recurrence (an echo state network) with a trained readout.

    The recurrent matrix is 0.9 times an orthogonal one, so that every direction fades at one known
    rate: after four steps 0.9^4 = 0.66 is left. Inputs of size 0.3 keep tanh near its linear part.
    """
    import torch

    width = setup.reservoir
    mixing = 0.9 * torch.linalg.qr(torch.randn(width, width)).Q
    reading = 0.3 * torch.randn(setup.symbols, width)
    head = torch.nn.Linear(width, setup.symbols)

    def step(x: Any, state: Any) -> tuple[Any, Any]:
        h, states = torch.zeros(x.shape[1], width) if state is None else state, []
        with torch.no_grad():
            for row in x:
                h = torch.tanh(h @ mixing + row @ reading)
                states.append(h)
        return head(torch.stack(states)), h

    return Model(step, tuple(head.parameters()))


def train(model: Model, window: int, setup: Setup) -> float:
    """Train on a stream cut into windows; return the accuracy over the last updates."""
    import torch

    optimiser = torch.optim.Adam(model.parameters, setup.rate)
    state, right, seen = None, 0, 0
    for update, (x, target) in enumerate(stream(window, setup)):
        logits, state = model.step(x, state)
        loss: Any = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if update >= setup.updates - setup.counted:
            right += int((logits.argmax(-1) == target).sum())
            seen += target.numel()
    return right / seen


def stream(window: int, setup: Setup) -> Iterator[tuple[Any, Any]]:
    """Yield windows of one-hot symbols, and as targets the symbols of lag steps before."""
    import torch

    symbols = torch.randint(setup.symbols, (setup.lag + window * setup.updates, setup.streams))
    for update in range(setup.updates):
        start = setup.lag + update * window
        rows = symbols[start : start + window]
        one_hot = torch.nn.functional.one_hot(rows, setup.symbols).float()
        yield one_hot, symbols[start - setup.lag : start - setup.lag + window]
