"""Residual routes and saturated weights in torch; conventions as in `.forwards`."""

from __future__ import annotations

from typing import Any

from derive.checks.forwards import Keep, Values
from derive.checks.forwards_blocks import closing


def branch(value: Any, jacobian: Any, x: Any) -> Any:
    """Return a function with this value and Jacobian at x."""
    import torch

    return value + torch.einsum("btisj,bsj->bti", jacobian, x - x.detach())


def route(v: Values, keep: Keep, loss: str) -> None:
    """Two residual branches, one after the other."""
    u = keep("U", v["h"] + keep("F", branch(v["V"], v["J"], v["h"])))
    closing(v, keep, loss, keep("Y", u + keep("E", branch(v["W"], v["K"], u))))


def depth(v: Values, keep: Keep, loss: str) -> None:
    """Residual layers, one after the other."""
    import torch

    h = v["h_init"][:, -1]
    for value, jacobian in zip(v["V"].unbind(1), v["J"].unbind(1), strict=True):
        h = keep("h", h + value + torch.einsum("bij,bj->bi", jacobian, h - h.detach()))
    closing(v, keep, loss, h)


def norms(v: Values, keep: Keep, loss: str) -> None:
    """One branch in a pre-norm and in a post-norm block."""

    def normed(x: Any, sd: str, to: str) -> Any:
        var = x.var(-1, unbiased=False)
        root = keep(sd, (var + v["eps"][:, None]).sqrt())
        unit = (x - x.mean(-1, keepdim=True)) / root[..., None]
        return keep(to, v["gamma"][:, None] * unit + v["beta"][:, None])

    n = normed(v["h"], "sd_h", "n")
    keep("U", v["h"] + keep("F", branch(v["V"], v["J"], n)))
    normed(keep("r", v["h"] + branch(v["V"], v["J"], v["h"])), "sd_r", "y")


def scalar(v: Values, keep: Keep, loss: str) -> None:
    """One number and a branch of slope a."""
    keep("U", v["x"] + v["a"] * v["x"])


def shares(first: Any, others: Any, keep: Keep) -> None:
    """Keep the share of one number among several, and those of the others."""
    import torch

    every = torch.cat([first[:, None], others], 1)
    every = every / every.sum(1, keepdim=True)
    keep("p_w", every[:, 0])
    keep("p", every[:, 1:])


def saturation(v: Values, keep: Keep, loss: str) -> None:
    """The shares of given numbers."""
    shares(v["v"], v["u"], keep)


def gap_scores(v: Values, keep: Keep, loss: str) -> None:
    """The shares of the exponentials of scores."""
    import torch

    others = keep("u", torch.exp(v["z"]))
    shares(keep("v", torch.exp(v["a"])), others, keep)
