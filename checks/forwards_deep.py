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


def sinusoid(v: Values, keep: Keep, loss: str) -> None:
    """Sines and cosines of positions times frequencies."""
    import torch

    steps = torch.arange(v["#F"], dtype=v["rho"].dtype)
    w = torch.stack([keep("w", x) for x in (v["rho"][:, None] ** steps).unbind(1)], 1)
    for t in range(v["#T"]):
        keep("s", torch.sin(t * w))
        keep("c", torch.cos(t * w))


def rope(v: Values, keep: Keep, loss: str) -> None:
    """Pairs of features as complex numbers, multiplied by exp(i t w)."""
    import torch

    for t in range(v["#T"]):
        turn = torch.complex(torch.cos(t * v["w"]), torch.sin(t * v["w"]))
        for first, second in (("q", "u"), ("k", "v")):
            turned = torch.complex(v[first], v[second]) * turn
            keep(f"{first}_r", turned.real)
            keep(f"{second}_r", turned.imag)


def head(v: Values, keep: Keep, h: Any) -> Any:
    """Keep the logits of a row and its class probabilities."""
    import torch

    a = keep("a", torch.einsum("bci,bi->bc", v["W"], h) + v["b"])
    return keep("p", torch.softmax(a, -1))


def token_head(v: Values, keep: Keep, loss: str) -> None:
    """A head a token, its loss averaged over the real rows."""
    import torch

    rows = []
    for t in range(v["#T"]):
        p = head(v, keep, v["h"][:, t])
        rows.append(keep("l", -(v["Y"][:, t] * torch.log(p)).sum(-1)))
    n = keep("n", v["m"].sum(1))
    if loss:
        keep("L", (torch.stack(rows, 1) * v["m"]).sum(1) / n)


def pooled_head(v: Values, keep: Keep, loss: str) -> None:
    """A head on the mean of the real rows."""
    import torch

    n = keep("n", v["m"].sum(1))
    r = keep("r", (v["h"] * v["m"][..., None]).sum(1) / n[:, None])
    p = head(v, keep, r)
    if loss:
        keep("L", -(v["Y"] * torch.log(p)).sum(-1))


def next_token(v: Values, keep: Keep, loss: str) -> None:
    """A head that predicts the next token."""
    import torch

    rows = [head(v, keep, v["h"][:, t]) for t in range(v["#T"])]
    if loss:
        picked = [-(v["X"][:, t + 1] * torch.log(p)).sum(-1) for t, p in enumerate(rows[:-1])]
        keep("L", torch.stack(picked, 1).mean(1))


def patches(v: Values, keep: Keep, loss: str) -> None:
    """Patches flattened, then one affine map."""
    image, weight = v["I"], v["W"]
    flat = image.permute(0, 1, 3, 2, 4, 5).flatten(3)
    e = keep("E", flat @ weight.flatten(2)[:, None].transpose(-1, -2) + v["b"][:, None, None])
    closing(v, keep, loss, e)


def convolution(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.functional.conv2d with a stride of the patch size."""
    import torch
    from torch.nn import functional as F

    side, out = v["W"].shape[2], []
    for i, image in enumerate(v["I"]):
        pixels = image.flatten(2, 3).flatten(0, 1).permute(2, 0, 1)
        kernel = v["W"][i].permute(0, 3, 1, 2)
        out.append(F.conv2d(pixels[None], kernel, v["b"][i], stride=side)[0].permute(1, 2, 0))
    closing(v, keep, loss, keep("E", torch.stack(out)))


def attention_products(v: Values, keep: Keep, loss: str) -> None:
    """Every product of an attention layer, then their sums."""
    import math

    import torch

    x, made = v["X"], {}
    for n in "QKV":
        m = keep(f"M_{n}", v[f"W_{n}"][:, None] * x[:, :, None])
        made[n] = keep(n, m.sum(-1))
    s = keep("M_S", made["Q"][:, :, None] * made["K"][:, None]).sum(-1)
    a = keep("A", torch.softmax(s / math.sqrt(made["Q"].shape[-1]), -1))
    mixed = keep("M_A", a[..., None] * made["V"][:, None]).sum(2)
    keep("M_O", v["W_O"][:, None] * mixed[:, :, None])


def longer(v: Values, keep: Keep, loss: str) -> None:
    """Products over a sequence, and over one that is several times as long."""
    w = v["W_Q"]
    long = keep("L_Q", w[:, None, None] * v["H"][:, :, :, None]).sum(-1)
    keep("L_S", long[:, :, :, None, None] * long[:, None, None])
    plain = keep("M_Q", w[:, None] * v["X"][:, :, None]).sum(-1)
    keep("M_S", plain[:, :, None] * plain[:, None])
    keep("R", v["W_h"][:, None] * v["X"][:, :, None])
