"""The recurrent cells in ball arithmetic: states forward, the gradient at the first input backward.

Written by hand after torch's documentation of RNNCell and LSTMCell (biases of both, gates in the
order input, forget, cell, output); shares nothing with torch but its inputs and parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from flint import arb, arb_mat, ctx

Rows = Sequence[Sequence[float]]
Column = list[arb]
GUARD = 3
"""Bits that one step may cost: a row of a weight matrix sums to less than 8 in absolute value."""


class Cell:
    """Weights of one cell as exact matrices, at the precision of their making.

    Args:
        parameters: ``weight_ih``, ``weight_hh``, ``bias_ih``, ``bias_hh`` as exact floats.
        inputs: One row a position.
    """

    def __init__(self, parameters: Mapping[str, Rows], inputs: Rows):
        self.weight_ih = arb_mat([list(row) for row in parameters["weight_ih"]])
        self.weight_hh = arb_mat([list(row) for row in parameters["weight_hh"]])
        biases = (parameters["bias_ih"][0], parameters["bias_hh"][0])
        # exact floats, but their sum may need more bits than one float holds: as balls
        self.bias = [arb(a) + arb(b) for a, b in zip(*biases, strict=True)]
        self.inputs = [times(self.weight_ih, map(arb, x)) for x in inputs]
        self.size = self.weight_hh.ncols()

    def preactivations(self, t: int, h: Column) -> Column:
        """Return W_ih x_t + b_ih + W_hh h + b_hh."""
        kept = times(self.weight_hh, h)
        return [a + b + c for a, b, c in zip(self.inputs[t], kept, self.bias, strict=True)]


def times(matrix: arb_mat, column: Iterable[arb]) -> Column:
    """Multiply a matrix by a column."""
    product: Column = (matrix * arb_mat([[x] for x in column])).entries()
    return product


def sigmoid(x: arb) -> arb:
    """Return 1 / (1 + exp(-x))."""
    return 1 / (1 + (-x).exp())


def rnn_gradient(cell: Cell) -> Column:
    """Return the gradient of the sum of the last state by the first input."""
    h, states = [arb(0)] * cell.size, list[Column]()
    for t in range(len(cell.inputs)):
        h = [z.tanh() for z in cell.preactivations(t, h)]
        states.append(h)
    back, g_h = cell.weight_hh.transpose(), [arb(1)] * cell.size
    g_z: Column = []
    for h in reversed(states):
        g_z = [g * (1 - s * s) for g, s in zip(g_h, h, strict=True)]
        g_h = times(back, g_z)
    return times(cell.weight_ih.transpose(), g_z)


def lstm_gradient(cell: Cell) -> Column:
    """Return the gradient of the sum of the last state by the first input."""
    n = cell.size
    h, c, steps = [arb(0)] * n, [arb(0)] * n, list[tuple[Column, ...]]()
    for t in range(len(cell.inputs)):
        z = cell.preactivations(t, h)
        i, f, o = ([sigmoid(x) for x in z[k * n : (k + 1) * n]] for k in (0, 1, 3))
        g = [x.tanh() for x in z[2 * n : 3 * n]]
        old, c = c, [f[j] * c[j] + i[j] * g[j] for j in range(n)]
        s = [x.tanh() for x in c]
        h = [o[j] * s[j] for j in range(n)]
        steps.append((i, f, g, o, old, s))
    back, g_h, g_c, g_z = cell.weight_hh.transpose(), [arb(1)] * n, [arb(0)] * n, Column()
    for i, f, g, o, old, s in reversed(steps):
        g_c = [g_c[j] + g_h[j] * o[j] * (1 - s[j] * s[j]) for j in range(n)]
        g_z = [
            *(g_c[j] * g[j] * i[j] * (1 - i[j]) for j in range(n)),
            *(g_c[j] * old[j] * f[j] * (1 - f[j]) for j in range(n)),
            *(g_c[j] * i[j] * (1 - g[j] * g[j]) for j in range(n)),
            *(g_h[j] * s[j] * o[j] * (1 - o[j]) for j in range(n)),
        ]
        g_h, g_c = times(back, g_z), [g_c[j] * f[j] for j in range(n)]
    return times(cell.weight_ih.transpose(), g_z)


GRADIENTS: Mapping[str, Callable[[Cell], Column]] = {"rnn": rnn_gradient, "lstm": lstm_gradient}


def gradient_norm(kind: str, parameters: Mapping[str, Rows], inputs: Rows, bits: int) -> arb:
    """Return the Euclidean norm of the gradient at the first input, to about ``bits`` bits."""
    before = ctx.prec
    ctx.prec = bits + GUARD * len(inputs)
    try:
        gradient = GRADIENTS[kind](Cell(parameters, inputs))
        return sum((g * g for g in gradient), arb(0)).sqrt()
    finally:
        ctx.prec = before
