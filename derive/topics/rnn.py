"""The recurrent cell: forward equations, local Jacobians, parameter count, conventions.

Source: Goodfellow, Bengio & Courville (2016), Deep Learning, chapter 10; torch.nn.RNN.
"""

from __future__ import annotations

from derive.building import build_system
from derive.equation import System
from derive.topics import Topic, claim

MEANINGS = {
    "x": "input row at each position",
    "W_x": "input weights, one row per state unit",
    "W_h": "recurrent weights, one row per state unit",
    "b_h": "bias of the state",
    "z": "preactivation",
    "h": "recurrent state; h[-1] is the initial state",
    "y": "target of the final state",
    "W_o": "output head weights",
    "b_o": "output head bias",
    "a": "logits",
    "p": "class probabilities",
    "Y": "one-hot rows of the target classes",
    "l": "cross-entropy at each position, in nats",
    "G": "contribution of the use of W_h at one position",
    "L": "the loss",
}
CELL = (
    "z[t,j] = sum(k, W_x[j,k]*x[t,k]) + sum(r, W_h[j,r]*h[t-1,r]) + b_h[j]",
    "h[t,j] = tanh(z[t,j])",
)
HEAD = (
    "a[t,c] = sum(i, W_o[c,i]*h[t,i]) + b_o[c]",
    "p[t,c] = softmax(c, a[t,c])",
    "l[t] = -sum(c, Y[t,c]*log(p[t,c]))",
)
LOSSES = {"final": "1/2*sum(j, (h[T-1,j] - y[j])^2)", "per_position": "mean(t, l[t])"}
SHAPES = {
    "x": ("T", "D"),
    "W_x": ("H", "D"),
    "W_h": ("H", "H"),
    "b_h": ("H",),
    "y": ("H",),
    "W_o": ("C", "H"),
    "b_o": ("C",),
    "Y": ("T", "C"),
}


def rnn_system(name: str = "rnn", convention: str = "row") -> System:
    """Return the tanh recurrent network with both losses, over T, D, H, C."""
    return build_system(
        name,
        ("T", "D", "H", "C"),
        SHAPES,
        CELL + HEAD,
        losses=LOSSES,
        derived=("G[t,j,r] = g_z[t,j]*h[t-1,r]",),
        targets=("y",),
        onehot=("Y",),
        meanings=MEANINGS,
        convention=convention,
    )


def cell_system() -> System:
    """Return one step, with the previous state an input of its own."""
    return build_system(
        "rnn_cell",
        ("D", "H"),
        {"x": ("D",), "h_prev": ("H",), "W_x": ("H", "D"), "W_h": ("H", "H"), "b_h": ("H",)},
        (
            "z[j] = sum(k, W_x[j,k]*x[k]) + sum(r, W_h[j,r]*h_prev[r]) + b_h[j]",
            "h[j] = tanh(z[j])",
        ),
        parameters=("W_x", "W_h", "b_h"),
        meanings={**MEANINGS, "h_prev": "previous state, held"},
    )


def torch_system() -> System:
    """Return the network with PyTorch's two biases."""
    shapes = {n: SHAPES[n] for n in ("x", "W_x", "W_h", "y")} | {"b_ih": ("H",), "b_hh": ("H",)}
    return build_system(
        "rnn_two_biases",
        ("T", "D", "H"),
        shapes,
        (
            "z[t,j] = sum(k, W_x[j,k]*x[t,k]) + b_ih[j] + sum(r, W_h[j,r]*h[t-1,r]) + b_hh[j]",
            CELL[1],
        ),
        losses={"final": LOSSES["final"]},
        targets=("y",),
        meanings=MEANINGS | {"b_ih": "input bias", "b_hh": "recurrent bias"},
    )


def topic() -> Topic:
    """Return the topic."""
    row, column = "rnn", "rnn_column"
    return Topic(
        "rnn",
        "The recurrent cell",
        {
            row: rnn_system(),
            "rnn_cell": cell_system(),
            "rnn_two_biases": torch_system(),
            column: rnn_system(column, "column"),
        },
        (
            claim("rnn.scalar-form",
                  "h[t,j] = tanh(sum(k, W_x[j,k]*x[t,k]) + sum(r, W_h[j,r]*h[t-1,r]) + b_h[j])",
                  "One unit is a tanh of its input, its memory and its bias", row),
            claim("rnn.row-form", "h[t] = tanh(x[t] @ W_x.T + h[t-1] @ W_h.T + b_h)",
                  "The row-vector form is the scalar form of every unit", row),
            claim("rnn.preactivation", "z[t] = x[t] @ W_x.T + h[t-1] @ W_h.T + b_h",
                  "The preactivation in row form", row),
            claim("rnn.column-form", "h[t] = tanh(W_h @ h[t-1] + W_x @ x[t] + b_h)",
                  "The column form is the same system transposed", column),
            claim("rnn.activation-slope",
                  "partial h[t,i]/partial z[t,j] = delta(i,j)*(1 - h[t,j]^2)",
                  "The activation acts on each coordinate", row),
            claim("rnn.state-jacobian", "dh[t]/dh[t-1] = diag(1 - h[t]^2) @ W_h",
                  "Jacobian of a state by the previous state", row),
            claim("rnn.state-jacobian-entries", "dh[t,i]/dh[t-1,r] = (1 - h[t,i]^2)*W_h[i,r]",
                  "The same, entry by entry", row),
            claim("rnn.state-jacobian-column", "dh[t]/dh[t-1] = diag(1 - h[t]^2) @ W_h",
                  "The Jacobian is the same matrix in the column convention", column),
            claim("rnn.input-jacobian", "dh[t]/dx[t] = diag(1 - h[t]^2) @ W_x",
                  "Jacobian of a state by its own input", row),
            claim("rnn.input-weights-jacobian",
                  "dh[i]/dW_x[j,k] = (1 - h[i]^2)*delta(i,j)*x[k]",
                  "One use of W_x, the previous state held", "rnn_cell"),
            claim("rnn.hidden-weights-jacobian",
                  "dh[i]/dW_h[j,r] = (1 - h[i]^2)*delta(i,j)*h_prev[r]",
                  "One use of W_h, the previous state held", "rnn_cell"),
            claim("rnn.bias-jacobian", "dh/db_h = diag(1 - h^2)",
                  "Jacobian by the bias, the previous state held", "rnn_cell"),
            claim("rnn.use-of-hidden-weights",
                  "partial z[t,i]/partial W_h[j,r] = delta(i,j)*h[t-1,r]",
                  "The local derivative of one use in the sequence", row),
            claim("rnn.parameter-count", "count(W_x, W_h, b_h) = H*(D + H + 1)",
                  "Parameters of the cell, whatever the length T", row),
            claim("rnn.parameter-count-head", "count(W_o, b_o) = C*(H + 1)",
                  "Parameters of the output head", row),
            claim("rnn.two-biases-merge", "z[t] = x[t] @ W_x.T + h[t-1] @ W_h.T + (b_ih + b_hh)",
                  "PyTorch's two biases act as their sum", "rnn_two_biases"),
            claim("rnn.two-biases-gradient", "dL/db_ih = dL/db_hh",
                  "and receive the same gradient", "rnn_two_biases", "final"),
            claim("rnn.count-two-biases", "count(W_x, W_h, b_ih, b_hh) = H*(D + H + 2)",
                  "PyTorch's count, with both biases", "rnn_two_biases"),
            claim("rnn.jacobian-transposed", "dh[t]/dh[t-1] = W_h.T @ diag(1 - h[t]^2)",
                  "The transposed Jacobian is another matrix", row, expected="fails",
                  reason="numerator layout: rows are the later state"),
        ),
        "Goodfellow, Bengio & Courville (2016), chapter 10; torch.nn.RNN",
    )  # fmt: skip
