"""How a sensitivity fades over the lag: norms of products of Jacobians, for three cells.

Explicit Jacobians in numpy, from the cells' equations as torch.nn documents them; torch is not
imported. Weights are drawn like those of torch's modules, uniform within 1/sqrt(H).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from derive.checks.storage import Array
from derive.errors import DeriveError, nearest

SIZES = {"T": 80, "H": 32, "D": 32}
"""Steps, width of the state, width of the inputs: by default."""
LARGEST = {"T": 2000, "H": 512, "D": 4096}
FORGET_BIASES = (0.0, 1.0, 2.0)


@dataclass(frozen=True)
class Curve:
    """The norm of dh_T/dh_{T-n} over the lag n = 0, 1, ..., T-1.

    Args:
        name: The cell.
        norms: Largest singular values, shape (T,).
    """

    name: str
    norms: Array


@dataclass(frozen=True)
class Weights:
    """The parameters of a cell, in torch's layout: gate blocks below one another.

    Args:
        w_x: Shape (gates*H, D).
        w_h: Shape (gates*H, H).
        b_x: Shape (gates*H,).
        b_h: Shape (gates*H,).
    """

    w_x: Array
    w_h: Array
    b_x: Array
    b_h: Array


Step = Callable[[Weights, Array, Array], tuple[Array, Array]]
"""From weights, an input and the carried state to the next state and its Jacobian."""


def sigmoid(a: Array) -> Array:
    """Return the logistic function."""
    return np.asarray(1 / (1 + np.exp(-a)))


def rows(scale: Array, matrix: Array) -> Array:
    """Return diag(scale) times a matrix."""
    return np.asarray(scale[:, None] * matrix)


def rnn_step(w: Weights, x: Array, h: Array) -> tuple[Array, Array]:
    """Return h' = tanh(W_x x + b_x + W_h h + b_h) and dh'/dh = diag(1 - h'^2) W_h."""
    new = np.tanh(w.w_x @ x + w.b_x + w.w_h @ h + w.b_h)
    return new, rows(1 - new**2, w.w_h)


def gru_step(w: Weights, x: Array, h: Array) -> tuple[Array, Array]:
    """Return torch's GRU step (reset after the affine map) and its Jacobian, gates included."""
    a_r, a_z, a_n = np.split(w.w_x @ x + w.b_x, 3)
    s_r, s_z, s_n = np.split(w.w_h @ h + w.b_h, 3)
    u_r, u_z, u_n = np.split(w.w_h, 3)
    r, z = sigmoid(a_r + s_r), sigmoid(a_z + s_z)
    n = np.tanh(a_n + r * s_n)
    d_n = rows(1 - n**2, rows(r, u_n) + rows(s_n * r * (1 - r), u_r))
    jacobian = np.diag(z) + rows(1 - z, d_n) + rows((h - n) * z * (1 - z), u_z)
    return (1 - z) * n + z * h, jacobian


def lstm_step(w: Weights, x: Array, state: Array) -> tuple[Array, Array]:
    """Return torch's LSTM step on the stacked state (h, c), and its Jacobian, gates included."""
    h, c = np.split(state, 2)
    a_i, a_f, a_g, a_o = np.split(w.w_x @ x + w.b_x + w.w_h @ h + w.b_h, 4)
    u_i, u_f, u_g, u_o = np.split(w.w_h, 4)
    i, f, g, o = sigmoid(a_i), sigmoid(a_f), np.tanh(a_g), sigmoid(a_o)
    new_c = f * c + i * g
    shown = np.tanh(new_c)
    c_h = rows(c * f * (1 - f), u_f) + rows(g * i * (1 - i), u_i) + rows(i * (1 - g**2), u_g)
    through = o * (1 - shown**2)
    h_h = rows(shown * o * (1 - o), u_o) + rows(through, c_h)
    jacobian = np.block([[h_h, np.diag(through * f)], [c_h, np.diag(f)]])
    return np.concatenate([o * shown, new_c]), jacobian


CELLS: Mapping[str, tuple[Step, int, int]] = {
    "RNN": (rnn_step, 1, 1),
    "GRU": (gru_step, 3, 1),
    "LSTM": (lstm_step, 4, 2),
}
"""By name: the step, how many gate blocks, how many vectors it carries (h first)."""


def draw(gates: int, sizes: Mapping[str, int], rng: np.random.Generator) -> Weights:
    """Draw weights as torch's recurrent modules do: all uniform within 1/sqrt(H)."""
    width, inputs = sizes["H"], sizes["D"]
    shapes: tuple[Any, ...] = ((gates * width, inputs), (gates * width, width),
                               gates * width, gates * width)  # fmt: skip
    return Weights(*(rng.uniform(-1, 1, shape) / np.sqrt(width) for shape in shapes))


def with_forget_bias(w: Weights, bias: float) -> Weights:
    """Return an LSTM's weights with the sum of its two forget biases set."""
    width = w.w_h.shape[1]
    forget = slice(width, 2 * width)
    b_x, b_h = w.b_x.copy(), w.b_h.copy()
    b_x[forget] = b_h[forget] = bias / 2
    return Weights(w.w_x, w.w_h, b_x, b_h)


def trajectory(cell: str, w: Weights, inputs: Array) -> tuple[Array, Array]:
    """Return the states (T, carried*H) and Jacobians of each step, from a zero state."""
    step, _, carried = CELLS[cell]
    state, states, jacobians = np.zeros(carried * w.w_h.shape[1]), [], []
    for x in inputs:
        state, jacobian = step(w, x, state)
        states.append(state)
        jacobians.append(jacobian)
    return np.stack(states), np.stack(jacobians)


def sensitivities(jacobians: Array, width: int) -> Array:
    """Return dh_T/dh_{T-n} for n = 0..T-1, shape (T, H, H).

    What the cell carries besides h, an LSTM's c, is held at T-n and takes part in between.
    """
    product, found = np.eye(jacobians.shape[1])[:width], []
    for jacobian in (*jacobians[:0:-1], None):
        found.append(product[:, :width])
        if jacobian is not None:
            product = product @ jacobian
    return np.stack(found)


def norms(jacobians: Array, width: int) -> Array:
    """Return the largest singular value of each sensitivity."""
    return np.asarray(np.linalg.norm(sensitivities(jacobians, width), 2, axis=(1, 2)))


def bound(w: Weights, states: Array, steps: int) -> Array:
    """Return (gamma c)^n: gamma the largest singular value of W_h, c the largest 1 - h^2."""
    gamma, slope = np.linalg.norm(w.w_h, 2), (1 - states**2).max()
    return np.asarray((gamma * slope) ** np.arange(steps))


def fading(sizes: Mapping[str, int], seed: int) -> tuple[list[Curve], Curve]:
    """Return the curves of all cells on the same inputs, and the bound of the RNN's.

    Raises:
        DeriveError: On an unknown size, or one that is too large or small.
    """
    sizes = checked(sizes)
    rng, width = np.random.default_rng(seed), sizes["H"]
    inputs = rng.standard_normal((sizes["T"], sizes["D"]))
    drawn = {name: draw(gates, sizes, rng) for name, (_, gates, _) in CELLS.items()}
    models = [("RNN", "RNN", drawn["RNN"]), ("GRU", "GRU", drawn["GRU"])]
    models += [
        (f"LSTM, forget bias {b:g}", "LSTM", with_forget_bias(drawn["LSTM"], b))
        for b in FORGET_BIASES
    ]
    curves = [Curve(n, norms(trajectory(cell, w, inputs)[1], width)) for n, cell, w in models]
    states, _ = trajectory("RNN", drawn["RNN"], inputs)
    return curves, Curve("bound", bound(drawn["RNN"], states[1:], sizes["T"]))


def checked(sizes: Mapping[str, int]) -> dict[str, int]:
    """Return all sizes, those given and the defaults.

    Raises:
        DeriveError: On an unknown size, or one outside its range.
    """
    for name, size in sizes.items():
        if name not in SIZES:
            raise DeriveError(f"--size: a plot has no size {name!r}", hint=nearest(name, SIZES))
        low = 2 if name == "T" else 1
        if not low <= size <= LARGEST[name]:
            raise DeriveError(f"--size {name} is {low} to {LARGEST[name]} in a plot; found {size}")
    return {**SIZES, **sizes}
