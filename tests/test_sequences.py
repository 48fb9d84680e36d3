"""Sequence systems against torch's own modules, where a row of torch code cannot say it."""

import numpy as np
import torch

from derive import topics
from derive.checks.sizes import random_givens
from derive.checks.table import forward_values

SIZES = {"T": 5, "D": 3, "H": 2, "C": 4}


def bidirectional():
    """Return the states of both directions by our equations and by nn.RNN(bidirectional=True)."""
    system = topics.load("sequence").systems["bidirectional"]
    givens = random_givens(system, SIZES, 7)
    givens["rev"] = givens["x"][::-1].copy()
    ours = forward_values(system, givens, SIZES)
    module = torch.nn.RNN(3, 2, bias=False, bidirectional=True, dtype=torch.float64)
    names = {"weight_ih_l0": "W_x", "weight_hh_l0": "W_h", "weight_ih_l0_reverse": "U_x",
             "weight_hh_l0_reverse": "U_h"}  # fmt: skip
    module.load_state_dict({n: torch.from_numpy(givens[g]) for n, g in names.items()})
    start = np.stack([givens["h_init"].reshape(-1), givens["b_init"].reshape(-1)])
    out, _ = module(torch.from_numpy(givens["x"]), torch.from_numpy(start))
    return ours, out.detach().numpy()


def test_both_directions_are_those_of_torchs_bidirectional_network():
    ours, out = bidirectional()
    np.testing.assert_allclose(ours["h"][-5:], out[:, :2], atol=1e-15)
    np.testing.assert_allclose(ours["b"][-5:][::-1], out[:, 2:], atol=1e-15)


def test_the_backward_states_stand_at_the_mirrored_positions():
    ours, out = bidirectional()
    assert not np.allclose(ours["b"][-5:], out[:, 2:])
