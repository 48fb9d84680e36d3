"""What ``torch.nn.LSTMCell`` computes, and in which order it stacks its gates."""

from __future__ import annotations

import numpy as np

from derive.checks.jacobians import Weights, draw, lstm_step
from derive.checks.probes import Observation
from derive.checks.storage import Array

_SIZES = {"D": 3, "H": 4}
_SCOPE = "float64, D=3 H=4, a state that is not zero"


def follows_the_plain_update() -> Observation:
    """It computes c' = f c + i g and h' = o tanh(c'), its gates stacked as i, f, g, o."""
    weights, x, state = _point()
    return _compared(weights, lstm_step(weights, x, state)[0])


def stacks_output_before_candidate() -> Observation:
    """Its gates are stacked as i, f, o, g."""
    weights, x, state = _point()
    return _compared(weights, lstm_step(_swapped(weights), x, state)[0])


def two_biases_add() -> Observation:
    """Its two bias vectors act as one, their sum."""
    w, x, state = _point()
    return _compared(w, lstm_step(Weights(w.w_x, w.w_h, w.b_x + w.b_h, 0 * w.b_h), x, state)[0])


def _swapped(w: Weights) -> Weights:
    """Return weights whose last two gate blocks have changed places."""
    parts = (np.split(v, 4) for v in (w.w_x, w.w_h, w.b_x, w.b_h))
    return Weights(*(np.concatenate([i, f, o, g]) for i, f, g, o in parts))


def _point() -> tuple[Weights, Array, Array]:
    """Return weights, an input and the stacked state (h, c)."""
    rng = np.random.default_rng(0)
    return draw(4, _SIZES, rng), rng.standard_normal(3), rng.uniform(-0.9, 0.9, 8)


def _compared(weights: Weights, expected: Array) -> Observation:
    """Run the cell at the point; the state and the cell state stand below one another."""
    import torch

    _, x, state = _point()
    cell = torch.nn.LSTMCell(_SIZES["D"], _SIZES["H"], dtype=torch.float64)
    with torch.no_grad():
        values = (weights.w_x, weights.w_h, weights.b_x, weights.b_h)
        for parameter, value in zip(cell.parameters(), values, strict=True):
            parameter.copy_(torch.from_numpy(value))
        h, c = torch.from_numpy(state).chunk(2)
        found = torch.cat(cell(torch.from_numpy(x), (h, c))).numpy()
    return Observation(found, expected, "torch.nn.LSTMCell", _SCOPE)
