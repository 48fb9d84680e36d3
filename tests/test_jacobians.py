"""The Jacobian products of the figure, against torch's cells and autograd."""

from typing import Any

import numpy as np
import pytest
import torch

from derive.checks import jacobians as J
from derive.errors import DeriveError

SIZES = {"T": 6, "H": 5, "D": 3}
CELLS: dict[str, Any] = {
    "RNN": torch.nn.RNNCell,
    "GRU": torch.nn.GRUCell,
    "LSTM": torch.nn.LSTMCell,
}


def torch_cell(name: str, w: J.Weights) -> Any:
    cell = CELLS[name](SIZES["D"], SIZES["H"], dtype=torch.float64)
    with torch.no_grad():
        for parameter, value in zip(cell.parameters(), (w.w_x, w.w_h, w.b_x, w.b_h), strict=True):
            parameter.copy_(torch.from_numpy(value))
    return cell


def by_autograd(name: str, w: J.Weights, inputs: Any) -> np.ndarray[Any, Any]:
    """Return dh_T/dh_{T-n} by autograd through torch's cell; an LSTM's c is held at T-n."""
    cell, rows = torch_cell(name, w), torch.from_numpy(inputs)
    lstm = name == "LSTM"
    zero = torch.zeros(SIZES["H"], dtype=torch.float64)
    states: list[Any] = [(zero, zero) if lstm else zero]
    for x in rows:
        states.append(cell(x, states[-1]))

    def last(h: Any, start: int) -> Any:
        state = (h, states[start][1].detach()) if lstm else h
        for x in rows[start:]:
            state = cell(x, state)
        return state[0] if lstm else state

    found = []
    for start in range(SIZES["T"], 0, -1):
        h = (states[start][0] if lstm else states[start]).detach()
        found.append(torch.autograd.functional.jacobian(lambda v, s=start: last(v, s), h))
    return np.stack([f.numpy() for f in found])


@pytest.fixture
def inputs() -> Any:
    return np.random.default_rng(1).standard_normal((SIZES["T"], SIZES["D"]))


@pytest.mark.parametrize("name", CELLS)
def test_products_agree_with_autograd(name: str, inputs: Any) -> None:
    weights = J.draw(J.CELLS[name][1], SIZES, np.random.default_rng(2))
    if name == "LSTM":
        weights = J.with_forget_bias(weights, 1.0)
    want = by_autograd(name, weights, inputs)
    _, jacobians = J.trajectory(name, weights, inputs)
    got = J.sensitivities(jacobians, SIZES["H"])
    # six steps of sums of at most 2H products below 1: a few hundred units in the last place
    assert np.abs(got - want).max() < 1e-13
    assert np.abs(got * (1 + 1e-9) - want).max() > 1e-13  # a planted error is seen
    assert np.linalg.norm(got[0] - np.eye(SIZES["H"])) == 0


def test_a_missing_gate_path_is_seen(inputs: Any) -> None:
    weights = J.draw(3, SIZES, np.random.default_rng(2))
    want = by_autograd("GRU", weights, inputs)
    h = np.full(SIZES["H"], 0.3)
    step, jacobian = J.gru_step(weights, inputs[0], h)
    assert step.shape == h.shape
    carry_only = np.diag(np.diag(jacobian))
    assert np.abs(carry_only - want[1]).max() > 1e-3


def test_the_bound_is_one(inputs: Any) -> None:
    weights = J.draw(1, SIZES, np.random.default_rng(3))
    states, jacobians = J.trajectory("RNN", weights, inputs)
    norms = J.norms(jacobians, SIZES["H"])
    limit = J.bound(weights, states[1:], SIZES["T"])
    assert (norms <= limit * (1 + 1e-12)).all() and norms[1] < limit[1] < 10


def test_weights_are_drawn_like_torchs() -> None:
    sizes = {"T": 1, "H": 64, "D": 32}
    ours = J.draw(4, sizes, np.random.default_rng(0))
    theirs = torch.nn.LSTMCell(32, 64)
    for mine, parameter in zip((ours.w_x, ours.w_h, ours.b_x, ours.b_h),
                               theirs.parameters(), strict=True):  # fmt: skip
        assert mine.shape == tuple(parameter.shape)
        assert np.abs(mine).max() <= 1 / 8 and abs(mine.std() - 1 / 8 / np.sqrt(3)) < 0.006


def test_a_larger_forget_bias_reaches_further() -> None:
    curves, bound = J.fading({"T": 40}, 0)
    last = {c.name: c.norms[-1] for c in curves}
    assert last["RNN"] < last["LSTM, forget bias 1"] < last["LSTM, forget bias 2"]
    assert len(bound.norms) == 40 and bound.norms[0] == 1


def test_sizes_are_checked() -> None:
    with pytest.raises(DeriveError, match="a plot has no size 'C'"):
        J.fading({"C": 3}, 0)
    with pytest.raises(DeriveError, match="--size T is 2 to 2000 in a plot; found 1"):
        J.fading({"T": 1}, 0)
