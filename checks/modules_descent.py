"""Functions, their gradients, clipping and descent through torch's own; as in `.forwards`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from derive.checks.forwards import Keep, Values, pushed

EPS = 1e-6
"""What torch.nn.utils.clip_grad_norm_ adds to the norm."""


def nn_scalar_tanh(v: Values, keep: Keep, loss: str) -> None:
    """One tanh unit; torch.autograd.functional.jvp gives the factor of each transition."""
    import torch

    h, once = v["h_init"][:, -1], torch.ones_like(v["w"])

    def at(x: Any) -> Callable[[Any], Any]:
        return lambda state: torch.tanh(torch.addcmul(x, v["w"], state))

    for x in v["x"].unbind(1):
        new, factor = pushed(at(x), h, once)
        h = keep("h", new)
        keep("f", factor)
    if loss:
        keep("L", h)


def nn_power(v: Values, keep: Keep, loss: str) -> None:
    """torch.prod of T copies."""
    keep("y", v["x"][:, None].expand(-1, v["#T"]).prod(1))


def nn_quadratic(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.functional.bilinear, and the gradient that torch.autograd.grad takes of it.

    The derivative of that gradient is then the Hessian.
    """
    import torch

    def form(x: Any) -> Any:
        pieces = zip(x, v["A"], v["b"], strict=True)
        twice = torch.nn.functional.bilinear
        return torch.stack([twice(p, p, a[None])[0] / 2 - torch.dot(b, p) for p, a, b in pieces])

    value = form(v["x"])
    (slope,) = torch.autograd.grad(value.sum(), v["x"], create_graph=True)
    value = keep("value", value)
    keep("G", slope)
    keep("moved", form(v["x"] + v["e"]))
    if loss:
        keep("L", value)


def nn_maps(v: Values, keep: Keep, loss: str) -> None:
    """Two maps by torch.nn.functional.linear."""
    import torch

    linear, rows = torch.nn.functional.linear, range(v["x"].shape[0])
    u = keep("u", torch.stack([linear(v["x"][i], v["W"][i], v["b"][i]).tanh() for i in rows]))
    keep("y", torch.stack([linear(u[i], v["V"][i]) for i in rows]))


def nn_clip(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.utils.clip_grad_norm_ and clip_grad_value_, which write in place: values alone.

    The quotient by the larger of norm and threshold is torch.nn.functional.normalize with the
    threshold as its eps.
    """
    import torch

    g, c, eps = v["g"].detach()[0], v["c"].item(), v["eps"].item()
    norm = torch.linalg.vector_norm

    def ideal(grad: Any) -> Any:
        return c * torch.nn.functional.normalize(grad, dim=0, eps=c)

    q = ideal(g)
    for name, value in {"n": norm(g), "q": q, "m": norm(q), "again": ideal(q)}.items():
        keep(name, value[None])
    if c > 0 and eps > 0:
        # torch's eps is fixed, and its factor stays as it is when g, c and eps grow alike
        grown = g * (EPS / eps)
        _, first = clipped(grown, c * EPS / eps)
        returned, second = clipped(first, c * EPS / eps)
        for name, value in {"q_t": first, "m_t": returned, "again_t": second}.items():
            keep(name, (value * (eps / EPS))[None])
    if c > 0:
        holder = torch.nn.Parameter(torch.zeros_like(g))
        holder.grad = g.clone()
        torch.nn.utils.clip_grad_value_(holder, c)
        keep("e", holder.grad[None])


def clipped(grad: Any, most: float) -> tuple[Any, Any]:
    """Return what torch.nn.utils.clip_grad_norm_ returns, and what it leaves."""
    import torch

    holder = torch.nn.Parameter(torch.zeros_like(grad))
    holder.grad = grad.clone()
    return torch.nn.utils.clip_grad_norm_(holder, most), holder.grad


def nn_descent(v: Values, keep: Keep, loss: str) -> None:
    """Steps of torch.optim.SGD, which writes in place: values alone.

    Its function is called and not its class, which loads torch's compiler at the first step.
    """
    import torch
    from torch.optim.sgd import sgd

    lam, theta = v["lam"].detach(), v["theta_init"].detach()[:, -1].clone()
    for _ in range(v["#T"]):
        theta.requires_grad_()
        (slope,) = torch.autograd.grad((lam * theta**2).sum() / 2, theta)
        theta = theta.detach()
        sgd([theta], [slope], [None], foreach=False, lr=v["eta"][0].item(), weight_decay=0.0,
            momentum=0.0, dampening=0.0, nesterov=False, maximize=False)  # fmt: skip
        now = keep("theta", theta.clone())
        keep("f", (lam * now**2).sum(-1) / 2)


def nn_descent_slopes(v: Values, keep: Keep, loss: str) -> None:
    """Descent steps from gradients that torch.autograd.grad takes of the quadratic."""
    import torch

    theta = v["theta_init"][:, -1]
    for _ in range(v["#T"]):
        total = (v["lam"] * theta**2).sum() / 2
        (slope,) = torch.autograd.grad(total, theta, create_graph=True)
        theta = keep("theta", theta - v["eta"][:, None] * slope)
        keep("f", (v["lam"] * theta**2).sum(-1) / 2)


def nn_sgd(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.functional.linear and mse_loss: of each sample, and their mean."""
    import torch
    import torch.nn.functional as F

    rows = zip(v["X"], v["theta"], v["y"], v["decay"], strict=True)
    each, totals = [], []
    for samples, theta, y, decay in rows:
        guess = F.linear(samples, theta)
        each.append(F.mse_loss(guess, y, reduction="none") / 2)
        penalty = decay * torch.dot(theta, theta) if loss == "penalised" else 0
        totals.append((F.mse_loss(guess, y) + penalty) / 2)
    keep("l", torch.stack(each))
    if loss:
        keep("L", torch.stack(totals))
