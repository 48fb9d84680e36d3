"""Attention, masks and heads in torch; conventions as in `.forwards`."""

from __future__ import annotations

import math
from typing import Any

from derive.checks.forwards import Keep, Values


def linear_loss(v: Values, keep: Keep, out: Any) -> None:
    """Keep the loss sum(G * out)."""
    keep("L", (v["G"] * out).flatten(1).sum(1))


def each(keep: Keep, name: str, value: Any) -> Any:
    """Keep a tensor position by position."""
    import torch

    return torch.stack([keep(name, x) for x in value.unbind(1)], 1)


def project(x: Any, weight: Any, right: bool = False) -> Any:
    """Return x W', or x W where the weights stand (in, out)."""
    return x @ (weight if right else weight.transpose(-1, -2))


def weigh(keep: Keep, q: Any, k: Any, value: Any) -> Any:
    """Return softmax(q k'/sqrt(width)) value, its parts kept."""
    import torch

    s = keep("S", q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]))
    return keep("O", keep("A", torch.softmax(s, -1)) @ value)


def attention(v: Values, keep: Keep, loss: str, right: bool = False) -> None:
    """Self-attention, or cross-attention where there is a memory."""
    x, source = v["X"], v.get("M", v["X"])
    q = keep("Q", project(x, v["W_Q"], right))
    k = keep("K", project(source, v["W_K"], right))
    out = weigh(keep, q, k, keep("V", project(source, v["W_V"], right)))
    if loss:
        linear_loss(v, keep, out)


def attention_right(v: Values, keep: Keep, loss: str) -> None:
    """Self-attention, weights (in, out)."""
    attention(v, keep, loss, right=True)


def additive(v: Values, keep: Keep, loss: str) -> None:
    """Additive attention, its score computed for every pair."""
    import torch

    asks, answers = project(v["Q"], v["W_a"]), project(v["K"], v["U_a"])
    z = keep("Z", asks[:, :, None] + answers[:, None])
    s = keep("S", (keep("R", torch.tanh(z)) * v["w_a"][:, None, None]).sum(-1))
    out = keep("O", keep("A", torch.softmax(s, -1)) @ v["V"])
    if loss:
        linear_loss(v, keep, out)


def two_scores(v: Values, keep: Keep, loss: str) -> None:
    """A dot-product and an additive score of the same queries and keys."""
    import torch

    keep("S", v["Q"] @ v["K"].transpose(-1, -2) / math.sqrt(v["Q"].shape[-1]))
    hidden = torch.tanh(project(v["Q"], v["W_a"])[:, :, None] + v["K"][:, None])
    keep("E", (hidden * v["w_a"][:, None, None]).sum(-1))


def permuted(v: Values, keep: Keep, loss: str) -> None:
    """Attention over sources, and over the same sources in another order."""
    import torch

    q = v["Q"]
    weigh(keep, q, v["K"], v["V"])
    k, value = keep("Kp", v["P"] @ v["K"]), keep("Vp", v["P"] @ v["V"])
    a = keep("Ap", torch.softmax(keep("Sp", q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])), -1))
    keep("Op", a @ value)
    keep("On", a @ v["V"])


def bounded(v: Values, keep: Keep, loss: str) -> None:
    """Weights of given scores, and the mixed values."""
    import torch

    keep("O", keep("A", torch.softmax(v["S"], -1)) @ v["V"])


def same_width(v: Values, keep: Keep, loss: str) -> None:
    """Attention over given queries, keys and values."""
    weigh(keep, v["Q"], v["K"], v["V"])


def sdpa(v: Values, keep: Keep, loss: str, right: bool = False) -> None:
    """torch.nn.functional.scaled_dot_product_attention on the projected rows."""
    from torch.nn import functional as F

    x, source = v["X"], v.get("M", v["X"])
    q = keep("Q", project(x, v["W_Q"], right))
    k = keep("K", project(source, v["W_K"], right))
    out = F.scaled_dot_product_attention(q, k, keep("V", project(source, v["W_V"], right)))
    keep("O", out)
    if loss:
        linear_loss(v, keep, out)


def sdpa_right(v: Values, keep: Keep, loss: str) -> None:
    """The same, weights (in, out)."""
    sdpa(v, keep, loss, right=True)


def sdpa_plain(v: Values, keep: Keep, loss: str) -> None:
    """Torch's attention over given queries, keys and values."""
    from torch.nn import functional as F

    keep("O", F.scaled_dot_product_attention(v["Q"], v["K"], v["V"]))


# masks


def masked(v: Values, keep: Keep, loss: str, causal: bool, padded: bool) -> None:
    """Self-attention whose hidden scores are minus infinity."""
    import torch

    q, k, size = v["Q"], v["K"], v["Q"].shape[1]
    s = each(keep, "S", q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]))
    hidden = torch.zeros_like(s, dtype=torch.bool)
    if causal:
        hidden = hidden | torch.ones(size, size).triu(1).bool()
    if padded:
        hidden = hidden | (v["m"] == 0)[:, None]
    a = each(keep, "A", torch.softmax(s.masked_fill(hidden, -math.inf), -1))
    out = each(keep, "O", a @ v["V"])
    if padded and not causal:
        each(keep, "F", torch.softmax(s, -1))
        each(keep, "C", torch.softmax(s * v["m"][:, None], -1))
    if loss:
        linear_loss(v, keep, out)


def causal(v: Values, keep: Keep, loss: str) -> None:
    """The causal mask."""
    masked(v, keep, loss, True, False)


def padded(v: Values, keep: Keep, loss: str) -> None:
    """The padding mask, and what is often taken for it."""
    masked(v, keep, loss, False, True)


def both(v: Values, keep: Keep, loss: str) -> None:
    """Both masks."""
    masked(v, keep, loss, True, True)


def sdpa_masked(v: Values, keep: Keep, loss: str) -> None:
    """Torch's attention with a boolean mask: True takes part."""
    import torch
    from torch.nn import functional as F

    size = v["Q"].shape[1]
    allowed = torch.ones(size, size).tril().bool().expand(len(v["Q"]), size, size)
    if "m" in v:
        allowed = allowed & (v["m"] > 0)[:, None]
    out = F.scaled_dot_product_attention(v["Q"], v["K"], v["V"], attn_mask=allowed)
    each(keep, "O", out)
    if loss:
        linear_loss(v, keep, out)


def sdpa_causal(v: Values, keep: Keep, loss: str) -> None:
    """Torch's attention with ``is_causal``."""
    from torch.nn import functional as F

    out = F.scaled_dot_product_attention(v["Q"], v["K"], v["V"], is_causal=True)
    each(keep, "O", out)
    if loss:
        linear_loss(v, keep, out)


def sdpa_padded(v: Values, keep: Keep, loss: str) -> None:
    """Torch's attention with a boolean mask of real sources."""
    from torch.nn import functional as F

    allowed = (v["m"] > 0)[:, None]
    out = F.scaled_dot_product_attention(v["Q"], v["K"], v["V"], attn_mask=allowed)
    each(keep, "O", out)
    if loss:
        linear_loss(v, keep, out)


def stack(v: Values, keep: Keep, loss: str) -> None:
    """N layers of residual attention, causal or over the real sources."""
    import torch

    h = v["h_init"][:, -1]
    size = h.shape[1]
    hidden = (v["m"] == 0)[:, None] if "m" in v else torch.ones(size, size).triu(1).bool()
    for i in range(v["W_q"].shape[1]):
        q, k, value = (keep(n, project(h, v[f"W_{n}"][:, i])) for n in "qkv")
        s = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(hidden, -math.inf)
        h = keep("h", h + keep("A", torch.softmax(s, -1)) @ value)
    if loss:
        linear_loss(v, keep, h)
