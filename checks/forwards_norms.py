"""Normalisations in torch; conventions as in `.forwards`."""

from __future__ import annotations

from typing import Any

from derive.checks.forwards import Keep, Values
from derive.checks.forwards_attention import each, linear_loss


def centred(v: Values, keep: Keep, loss: str) -> tuple[Any, Any]:
    """LayerNorm, its affine map where there is one; return its two statistics."""
    import torch

    x, eps = v["x"], v["eps"][:, None, None]
    mu = each(keep, "mu", x.mean(-1))
    var = each(keep, "v", ((x - mu[..., None]) ** 2).mean(-1))
    sd = each(keep, "sd", torch.sqrt(var + eps[..., 0]))
    n = each(keep, "n", (x - mu[..., None]) / sd[..., None])
    if "gamma" in v:
        y = each(keep, "y", v["gamma"][:, None] * n + v["beta"][:, None])
        if loss:
            linear_loss(v, keep, y)
    return mu, var


def normed(v: Values, keep: Keep, loss: str) -> None:
    """LayerNorm, its statistics shown."""
    centred(v, keep, loss)


def variance(v: Values, keep: Keep, loss: str) -> None:
    """LayerNorm, and the variance of what it returns."""
    seen: list[Any] = []

    def kept(name: str, value: Any) -> Any:
        found = keep(name, value)
        if name == "n":
            seen.append(found)
        return found

    centred(v, kept, loss)
    for n in seen:
        keep("s", n.var(-1, unbiased=False))


def beside(v: Values, keep: Keep, moved: Any) -> None:
    """Keep the normalised rows of x and of a moved x."""
    import torch

    centred(v, keep, "")
    z = each(keep, "z", moved)
    mu = each(keep, "mu_z", z.mean(-1))
    sd = each(keep, "sd_z", torch.sqrt(z.var(-1, unbiased=False) + v["eps"][:, None]))
    each(keep, "n_z", (z - mu[..., None]) / sd[..., None])


def shifted(v: Values, keep: Keep, loss: str) -> None:
    """Rows shifted."""
    beside(v, keep, v["x"] + v["c"][..., None])


def scaled(v: Values, keep: Keep, loss: str) -> None:
    """Rows times a factor."""
    beside(v, keep, v["a"][:, None, None] * v["x"])


def root_mean_square(x: Any, eps: Any) -> Any:
    """Return the root of the mean square of each row."""
    import torch

    return torch.sqrt((x**2).mean(-1) + eps[:, None])


def rms(v: Values, keep: Keep, loss: str) -> None:
    """RMSNorm."""
    r = each(keep, "r", root_mean_square(v["x"], v["eps"]))
    n = each(keep, "n", v["x"] / r[..., None])
    if "gamma" in v:
        y = each(keep, "y", v["gamma"][:, None] * n)
        if loss:
            linear_loss(v, keep, y)


def rms_moved(v: Values, keep: Keep, loss: str) -> None:
    """RMSNorm of scaled and of shifted rows."""
    rms(v, keep, "")
    z = each(keep, "z", v["a"][:, None, None] * v["x"])
    each(keep, "n_z", z / root_mean_square(z, v["eps"])[..., None])
    w = each(keep, "w", v["x"] + v["c"][..., None])
    each(keep, "n_w", w / root_mean_square(w, v["eps"])[..., None])


def batch(v: Values, keep: Keep, loss: str) -> None:
    """BatchNorm in training: statistics of each feature over the rows."""
    import torch

    x = v["x"]
    mu = keep("mu", x.mean(1))
    var = keep("v", ((x - mu[:, None]) ** 2).mean(1))
    sd = keep("sd", torch.sqrt(var + v["eps"][:, None]))
    n = each(keep, "n", (x - mu[:, None]) / sd[:, None])
    y = each(keep, "y", v["gamma"][:, None] * n + v["beta"][:, None])
    if loss:
        linear_loss(v, keep, y)


def functional(v: Values, keep: Keep, loss: str, kind: str) -> None:
    """A normalisation of torch.nn.functional, row by row of the batch."""
    import torch
    from torch.nn import functional as F

    rows = []
    for i, x in enumerate(v["x"]):
        eps, gamma = v["eps"][i].item(), v["gamma"][i]
        if kind == "layer":
            rows.append(F.layer_norm(x, gamma.shape, gamma, v["beta"][i], eps))
        elif kind == "rms":
            rows.append(F.rms_norm(x, gamma.shape, gamma, eps))
        else:
            rows.append(F.batch_norm(x, None, None, gamma, v["beta"][i], True, 0.0, eps))
    y = each(keep, "y", torch.stack(rows))
    if loss:
        linear_loss(v, keep, y)


def layer_norm(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.functional.layer_norm."""
    functional(v, keep, loss, "layer")


def rms_norm(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.functional.rms_norm."""
    functional(v, keep, loss, "rms")


def batch_norm(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.functional.batch_norm, training."""
    functional(v, keep, loss, "batch")


def variants(v: Values, keep: Keep, loss: str) -> None:
    """LayerNorm, and three functions that are taken for it."""
    import torch

    x, eps = v["x"], v["eps"][:, None, None]
    mu, var = centred(v, keep, "")
    apart = x - mu[..., None]
    each(keep, "u", apart / torch.sqrt((apart**2).sum(-1, keepdim=True) / (x.shape[-1] - 1) + eps))
    each(keep, "o", apart / (torch.sqrt(var) + v["eps"][:, None])[..., None])
    each(keep, "q", x / root_mean_square(x, v["eps"])[..., None])


def layer_and_batch(v: Values, keep: Keep, loss: str) -> None:
    """LayerNorm, and the same over the other axis."""
    import torch

    centred(v, keep, "")
    apart = v["x"] - v["x"].mean(1, keepdim=True)
    b = apart / torch.sqrt((apart**2).mean(1, keepdim=True) + v["eps"][:, None, None])
    each(keep, "b", b)
