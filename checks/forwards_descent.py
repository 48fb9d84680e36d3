"""Forward functions in torch of functions that are differentiated and descended.

Written from the models' definitions with torch alone; conventions as in `.forwards`.
"""

from __future__ import annotations

from typing import Any

from derive.checks.forwards import Keep, Values, layer


def power(v: Values, keep: Keep, loss: str) -> None:
    """Y = x^T."""
    keep("y", v["x"] ** v["#T"])


def form(x: Any, matrix: Any, b: Any) -> Any:
    """Return x' A x / 2 - b' x, row by row."""
    import torch

    return torch.einsum("ri,rij,rj->r", x, matrix, x) / 2 - (b * x).sum(-1)


def quadratic(v: Values, keep: Keep, loss: str) -> None:
    """A quadratic, its gradient, and its value a step away."""
    import torch

    x, matrix, b = v["x"], v["A"], v["b"]
    value = keep("value", form(x, matrix, b))
    keep("G", torch.einsum("rij,rj->ri", (matrix + matrix.transpose(1, 2)) / 2, x) - b)
    keep("moved", form(x + v["e"], matrix, b))
    if loss:
        keep("L", value)


def maps(v: Values, keep: Keep, loss: str) -> None:
    """Y = V tanh(W x + b)."""
    import torch

    u = keep("u", torch.tanh(layer(v["W"], v["b"])(v["x"])))
    keep("y", layer(v["V"])(u))


def descent(v: Values, keep: Keep, loss: str) -> None:
    """Gradient descent on sum_i lambda_i theta_i^2 / 2, T steps."""
    theta = v["theta_init"][:, -1]
    for _ in range(v["#T"]):
        theta = keep("theta", theta - v["eta"][:, None] * v["lam"] * theta)
        keep("f", (v["lam"] * theta**2).sum(-1) / 2)


def sgd(v: Values, keep: Keep, loss: str) -> None:
    """The losses of N samples under a linear model, and their mean."""
    import torch

    theta = v["theta"]
    gaps = torch.einsum("rni,ri->rn", v["X"], theta) - v["y"]
    losses = keep("l", gaps**2 / 2)
    if loss:
        penalty = v["decay"] * (theta**2).sum(-1) / 2 if loss == "penalised" else 0
        keep("L", losses.mean(-1) + penalty)
