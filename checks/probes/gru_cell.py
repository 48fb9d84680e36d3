"""Which of the published GRUs ``torch.nn.GRUCell`` is, against each written out in numpy."""

from __future__ import annotations

import numpy as np

from derive.checks.jacobians import Weights, draw, gru_step, sigmoid
from derive.checks.probes import Observation
from derive.checks.storage import Array

_SIZES = {"D": 3, "H": 4}
_SCOPE = "float64, D=3 H=4, a state that is not zero"


def resets_after_affine_map() -> Observation:
    """The reset gate multiplies W_hn h + b_hn: it resets after the recurrent affine map."""
    weights, x, h = _point()
    return _compared(gru_step(weights, x, h)[0])


def resets_before_affine_map() -> Observation:
    """The reset gate multiplies the state: it resets before the recurrent matrix, as in 2014."""
    weights, x, h = _point()
    z, r, a_n, u_n, b_n = _gates(weights, x, h)
    n = np.tanh(a_n + u_n @ (r * h) + b_n)
    return _compared((1 - z) * n + z * h)


def update_gate_writes_candidate() -> Observation:
    """The update gate multiplies the candidate, and one minus it the old state."""
    weights, x, h = _point()
    z, r, a_n, u_n, b_n = _gates(weights, x, h)
    n = np.tanh(a_n + r * (u_n @ h + b_n))
    return _compared(z * n + (1 - z) * h)


def _gates(w: Weights, x: Array, h: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Return update and reset gate, and the parts of the candidate."""
    a_r, a_z, a_n = np.split(w.w_x @ x + w.b_x, 3)
    s_r, s_z, _ = np.split(w.w_h @ h + w.b_h, 3)
    return sigmoid(a_z + s_z), sigmoid(a_r + s_r), a_n, np.split(w.w_h, 3)[2], np.split(w.b_h, 3)[2]


def _point() -> tuple[Weights, Array, Array]:
    """Return weights, an input and a state."""
    rng = np.random.default_rng(0)
    return draw(3, _SIZES, rng), rng.standard_normal(3), rng.uniform(-0.9, 0.9, 4)


def _compared(expected: Array) -> Observation:
    """Run the cell at the point."""
    import torch

    weights, x, h = _point()
    cell = torch.nn.GRUCell(_SIZES["D"], _SIZES["H"], dtype=torch.float64)
    with torch.no_grad():
        values = (weights.w_x, weights.w_h, weights.b_x, weights.b_h)
        for parameter, value in zip(cell.parameters(), values, strict=True):
            parameter.copy_(torch.from_numpy(value))
        found = cell(torch.from_numpy(x), torch.from_numpy(h)).numpy()
    return Observation(found, expected, "torch.nn.GRUCell", _SCOPE)
