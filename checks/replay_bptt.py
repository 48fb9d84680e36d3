"""The recipe of gradient-error tables: manual BPTT, central differences, autograd, in float64.

Every function fixes one order of float operations; `ORDER` says which. A figure of such a table is
a difference of nearly equal floats and changes with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial

import numpy as np

from derive.checks.recipes import Array, Arrays, Figure, Recipe, Request
from derive.errors import DeriveError

CELL = ("W_x", "W_h", "b_h")
HEAD = ("W_o", "b_o")
ORDER = (
    "z = (x W_x^T + h W_h^T) + b_h; the final loss as half the squared norm; log-sum-exp shifted "
    "by the maximum, minus the target logit, then the mean; the logit gradient as p/T - onehot/T; "
    "gradients summed from the last position to the first; (L(+eps) - L(-eps))/(2 eps)"
)


def forward(p: Arrays) -> list[Array]:
    """Return the states h[-1], h[0], ..., each of shape (H,), float64."""
    states = [p["h_init"]]
    for x in p["x"]:
        states.append(np.tanh((x @ p["W_x"].T + states[-1] @ p["W_h"].T) + p["b_h"]))
    return states


def loss_final(p: Arrays) -> float:
    """Half the squared norm of the final state's error; the norm's root is taken and squared."""
    return float(0.5 * np.linalg.norm(forward(p)[-1] - p["y"]) ** 2)


def loss_per_position(p: Arrays) -> float:
    """Mean cross-entropy; log-sum-exp shifted by the maximum, minus the target logit."""
    terms = []
    for h, onehot in zip(forward(p)[1:], p["Y"], strict=True):
        a = h @ p["W_o"].T + p["b_o"]
        top = a.max()
        terms.append((top + np.log(np.exp(a - top).sum())) - a[onehot.argmax()])
    return float(np.mean(terms))


def manual(p: Arrays, loss: str) -> Arrays:
    """Return the gradients by backpropagation through time as a lecture writes it."""
    states, length = forward(p), len(p["x"])
    grads = {name: np.zeros_like(p[name]) for name in PARAMETERS[loss]}
    g_z = np.zeros_like(p["h_init"])
    for t in reversed(range(length)):
        h = states[t + 1]
        if loss == "final":
            g_h = h - p["y"] if t == length - 1 else g_z @ p["W_h"]
        else:
            g_a = logit_gradient(p, h, t)
            g_h = g_a @ p["W_o"] + g_z @ p["W_h"]
            grads["W_o"] += np.outer(g_a, h)
            grads["b_o"] += g_a
        g_z = g_h * (1 - h**2)
        grads["W_x"] += np.outer(g_z, p["x"][t])
        grads["W_h"] += np.outer(g_z, states[t])
        grads["b_h"] += g_z
    return grads


def logit_gradient(p: Arrays, h: Array, t: int) -> Array:
    """Return p/T - onehot/T at one position: two quotients, then their difference."""
    a = h @ p["W_o"].T + p["b_o"]
    weights = np.exp(a - a.max())
    gradient: Array = weights / weights.sum() / len(p["x"]) - p["Y"][t] / len(p["x"])
    return gradient


PARAMETERS = {"final": CELL, "per_position": CELL + HEAD}
LOSSES: dict[str, Callable[[Arrays], float]] = {
    "final": loss_final,
    "per_position": loss_per_position,
}


def central(p: Arrays, loss: str, eps: float, noise: Callable[[float], float]) -> Arrays:
    """Return central differences, one parameter at a time, the others held.

    Args:
        p: The tensors.
        loss: Which loss.
        eps: The step.
        noise: Applied to each loss value; the identity for the recipe itself.
    """
    grads = {name: np.zeros_like(p[name]) for name in PARAMETERS[loss]}
    for name, grad in grads.items():
        for index in np.ndindex(grad.shape):
            sides = []
            for step in (eps, -eps):
                moved = {**p, name: p[name].copy()}
                moved[name][index] = p[name][index] + step
                sides.append(noise(LOSSES[loss](moved)))
            grad[index] = (sides[0] - sides[1]) / (2 * eps)
    return grads


def autograd(p: Arrays, loss: str) -> Arrays:
    """Return torch's gradients of an independently written loop, float64."""
    import torch

    q = {name: torch.tensor(value) for name, value in p.items()}
    for name in PARAMETERS[loss]:
        q[name].requires_grad_()
    h, logits = q["h_init"], []
    for x in q["x"]:
        h = torch.tanh(x @ q["W_x"].T + h @ q["W_h"].T + q["b_h"])
        if loss == "per_position":
            logits.append(h @ q["W_o"].T + q["b_o"])
    if loss == "final":
        value = 0.5 * ((h - q["y"]) ** 2).sum()
    else:
        value = torch.nn.functional.cross_entropy(torch.stack(logits), q["Y"].argmax(1))
    value.backward()  # type: ignore[no-untyped-call]
    return {name: np.asarray(q[name].grad) for name in PARAMETERS[loss]}


def largest(a: Arrays, b: Arrays) -> float:
    """Return the largest absolute difference; NaN stays NaN."""
    return float(max(np.abs(a[name] - b[name]).max() for name in a))


NEIGHBOURS = 16
"""Enough draws for the range of a maximum over ten or more scalars to show its magnitude."""


def gradient_errors(p: Arrays, loss: str, settings: Mapping[str, Fraction]) -> dict[str, Figure]:
    """Return the maximal errors of central differences and of autograd against manual gradients.

    Raises:
        DeriveError: If the recipe has no such loss, a tensor or a setting is missing.
    """
    needed = {"x", "h_init", "y" if loss == "final" else "Y", *PARAMETERS.get(loss, ())}
    if loss not in LOSSES or not needed <= set(p):
        raise DeriveError(
            f"the recipe runs the losses {' and '.join(LOSSES)} on {', '.join(sorted(needed))}; "
            f"found loss {loss!r} and {', '.join(sorted(p))}"
        )
    if settings.keys() != {"eps"} or settings["eps"] <= 0:
        raise DeriveError("the recipe has one setting, eps > 0", hint='eps = "1e-6"')
    eps, grads, torch_grads = float(settings["eps"]), manual(p, loss), autograd(p, loss)
    count = sum(grad.size for grad in grads.values())

    def differences(noise: Callable[[float], float]) -> float:
        return largest(grads, central(p, loss, eps, noise))

    def moved(noise: Callable[[float], float]) -> float:
        return largest({n: np.vectorize(noise)(g) for n, g in grads.items()}, torch_grads)

    return {
        "finite_difference": Figure(
            differences(lambda v: v), count, lambda: [differences(w) for w in wobbles()]
        ),
        "autograd": Figure(
            largest(grads, torch_grads), count, lambda: [moved(w) for w in wobbles()]
        ),
    }


def wobbles() -> Iterator[Callable[[float], float]]:
    """Yield functions that move each value they see by up to one unit in the last place."""
    for seed in range(NEIGHBOURS):
        rng = np.random.default_rng(seed)
        yield lambda v, rng=rng: float(v + rng.integers(-1, 2) * np.spacing(v))  # type: ignore[misc]


def table(request: Request) -> Mapping[str, Callable[[], Figure]]:
    """Return both figures of a group's gradient table."""
    found = gradient_errors(request.givens, request.loss, request.replay.settings)
    return {name: partial(found.__getitem__, name) for name in found}


RECIPES: Mapping[str, Recipe] = {"bptt-gradient-errors": table}
