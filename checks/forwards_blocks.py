"""Transformer blocks in torch: heads, norms and the MLP; conventions as in `.forwards`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from derive.checks.forwards import Keep, Values
from derive.checks.forwards_attention import each, linear_loss

Put = Callable[[str, Any], Any]


class Block:
    """The parts of a block; a name ends as the part says.

    Args:
        v: The givens.
        keep: Records a value.
        ordered: Whether rows are positions: then a tensor with rows first is kept row by row.
    """

    def __init__(self, v: Values, keep: Keep, ordered: bool = False):
        self.v, self.keep, self.ordered = v, keep, ordered

    def put(self, name: str, value: Any) -> Any:
        """Keep a value whose first axis are the rows."""
        return each(self.keep, name, value) if self.ordered else self.keep(name, value)

    def norm(self, x: Any, to: str, at: int, end: str = "") -> Any:
        """LayerNorm number `at`."""
        import torch

        mu = self.put(f"mu_{at}{end}", x.mean(-1))
        var = ((x - x.mean(-1, keepdim=True)) ** 2).mean(-1)
        sd = self.put(f"sd_{at}{end}", torch.sqrt(var + self.v["eps"][:, None]))
        unit = self.put(f"H_{at}{end}", (x - mu[..., None]) / sd[..., None])
        gamma, beta = self.v[f"gamma_{at}"][:, None], self.v[f"beta_{at}"][:, None]
        return self.put(to + end, gamma * unit + beta)

    def attention(self, x: Any, to: str, at: str = "", source: Any = None, hidden: Any = None,
                  end: str = "") -> Any:  # fmt: skip
        """Multi-head attention with biases; `hidden` says which scores are minus infinity."""
        import torch

        v, source, tail = self.v, x if source is None else source, at + end
        q, k, value = (
            self.keep(n + tail, rows[:, None] @ v[f"W_{n}{at}"].transpose(-1, -2)
                      + v[f"b_{n}{at}"][:, :, None])
            for n, rows in (("Q", x), ("K", source), ("V", source))
        )  # fmt: skip
        s = self.keep("S" + tail, q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]))
        s = s if hidden is None else s.masked_fill(hidden, -math.inf)
        out = self.keep("O" + tail, self.keep("A" + tail, torch.softmax(s, -1)) @ value)
        mixed = torch.einsum("binv,bntv->bti", v[f"W_O{at}"], out) + v[f"b_O{at}"][:, None]
        return self.put(to + end, mixed)

    def mlp(self, x: Any, to: str, end: str = "") -> Any:
        """The MLP with ReLU."""
        import torch

        v = self.v
        z = self.put("Z" + end, x @ v["W_1"].transpose(-1, -2) + v["b_1"][:, None])
        j = self.put("J" + end, torch.relu(z))
        return self.put(to + end, j @ v["W_2"].transpose(-1, -2) + v["b_2"][:, None])

    def pre(self, h: Any, hidden: Any = None, end: str = "") -> Any:
        """The pre-norm encoder block."""
        x = self.norm(h, "X", 1, end)
        u = self.put("U" + end, h + self.attention(x, "B_att", hidden=hidden, end=end))
        return self.put("Y" + end, u + self.mlp(self.norm(u, "R", 2, end), "B_mlp", end))

    def post(self, h: Any, end: str = "") -> Any:
        """The post-norm encoder block."""
        u = self.put("U" + end, h + self.attention(h, "B_att", end=end))
        x = self.norm(u, "X", 1, end)
        return self.norm(self.put("R" + end, x + self.mlp(x, "B_mlp", end)), "Y", 2, end)


def closing(v: Values, keep: Keep, loss: str, out: Any) -> None:
    """Keep the loss, if there is one."""
    if loss:
        linear_loss(v, keep, out)


def pre_norm(v: Values, keep: Keep, loss: str) -> None:
    """The pre-norm encoder block."""
    closing(v, keep, loss, Block(v, keep).pre(v["h"]))


def post_norm(v: Values, keep: Keep, loss: str) -> None:
    """The post-norm encoder block."""
    closing(v, keep, loss, Block(v, keep).post(v["h"]))


def both_norms(v: Values, keep: Keep, loss: str) -> None:
    """Both, with the same parameters."""
    made = Block(v, keep)
    out = made.pre(v["h"])
    made.post(v["h"], "_post")
    closing(v, keep, loss, out)


def pre_norm_rows(v: Values, keep: Keep, loss: str) -> None:
    """The pre-norm block of rows, and of the same rows in another order."""
    made = Block(v, keep)
    made.pre(v["h"])
    made.pre(keep("hp", v["P"] @ v["h"]), end="p")


def post_norm_rows(v: Values, keep: Keep, loss: str) -> None:
    """The post-norm block of rows, and of the same rows in another order."""
    made = Block(v, keep)
    made.post(v["h"])
    made.post(keep("hp", v["P"] @ v["h"]), "p")


def padded_rows(v: Values, keep: Keep, loss: str) -> None:
    """The pre-norm block over real sources, the padding permuted with the rows."""
    made = Block(v, keep)
    made.pre(v["h"], (v["m"] == 0)[:, None, None])
    h, m = keep("hp", v["P"] @ v["h"]), keep("mp", (v["P"] @ v["m"][..., None])[..., 0])
    made.pre(h, (m == 0)[:, None, None], "p")


def causal_rows(v: Values, keep: Keep, loss: str) -> None:
    """Causal attention of rows, and of the same rows in another order."""
    import torch

    made, size = Block(v, keep, ordered=True), v["h"].shape[1]
    later = torch.ones(size, size).triu(1).bool()
    made.attention(v["h"], "B", hidden=later)
    made.attention(each(keep, "hp", v["P"] @ v["h"]), "B", hidden=later, end="p")


def position_rows(v: Values, keep: Keep, loss: str) -> None:
    """Attention of rows with positions added, and of the same rows in another order."""
    made = Block(v, keep)
    made.attention(keep("X", v["h"] + v["E"]), "B")
    made.attention(keep("Xp", keep("hp", v["P"] @ v["h"]) + v["E"]), "B", end="p")


def stack(v: Values, keep: Keep, loss: str) -> None:
    """Pre-norm blocks one after the other, each with parameters of its own."""
    h = v["h_init"][:, -1]
    for i in range(v["W_1"].shape[1]):
        mine = {n: x[:, i] if n[0] in "Wbg" else x for n, x in v.items()}

        def put(name: str, value: Any) -> Any:
            return keep("h" if name == "Y" else name, value)

        h = Block(mine, put).pre(h)
    closing(v, keep, loss, h)


def pre_decoder(v: Values, keep: Keep, loss: str) -> None:
    """The pre-norm decoder block."""
    import torch

    h, size = v["h"], v["h"].shape[1]
    made, later = Block(v, keep, ordered=True), torch.ones(size, size).triu(1).bool()
    u = made.put("U", h + made.attention(made.norm(h, "X", 1), "B_att", hidden=later))
    asks = made.norm(u, "C", 2)
    e = made.put("E", u + made.attention(asks, "B_mem", "m", v["M"]))
    closing(v, keep, loss, made.put("Y", e + made.mlp(made.norm(e, "R", 3), "B_mlp")))


def post_decoder(v: Values, keep: Keep, loss: str) -> None:
    """The post-norm decoder block."""
    import torch

    h, size = v["h"], v["h"].shape[1]
    made, later = Block(v, keep, ordered=True), torch.ones(size, size).triu(1).bool()
    x = made.norm(made.put("U", h + made.attention(h, "B_att", hidden=later)), "X", 1)
    e = made.put("E", x + made.attention(x, "B_mem", "m", v["M"]))
    c = made.norm(e, "C", 2)
    closing(v, keep, loss, made.norm(made.put("R", c + made.mlp(c, "B_mlp")), "Y", 3))


def multihead(v: Values, keep: Keep, loss: str) -> None:
    """Multi-head attention by concatenation, and each head's share of its output."""
    import torch

    made = Block(v, keep)
    shown: dict[str, Any] = {}

    def kept(name: str, value: Any) -> Any:
        shown[name] = keep(name, value)
        return shown[name]

    made.keep = kept
    y = made.attention(v["X"], "Y", source=v["M"])
    keep("H", torch.einsum("binv,bntv->bnti", v["W_O"], shown["O"]))
    closing(v, keep, loss, y)


def grouped(v: Values, keep: Keep, loss: str) -> None:
    """Queries in groups that share keys and values."""
    import torch

    q = keep("Q", torch.einsum("bgrki,bti->bgrtk", v["W_Q"], v["X"]))
    k = keep("K", torch.einsum("bgki,bsi->bgsk", v["W_K"], v["M"]))
    value = keep("V", torch.einsum("bgvi,bsi->bgsv", v["W_V"], v["M"]))
    s = keep("S", q @ k[:, :, None].transpose(-1, -2) / math.sqrt(q.shape[-1]))
    out = keep("O", keep("A", torch.softmax(s, -1)) @ value[:, :, None])
    closing(v, keep, loss, keep("Y", torch.einsum("bigrv,bgrtv->bti", v["W_O"], out)))


def mlp(v: Values, keep: Keep, loss: str) -> None:
    """The MLP alone."""
    closing(v, keep, loss, Block(v, keep).mlp(v["X"], "Y"))


def affine_twice(v: Values, keep: Keep, loss: str) -> None:
    """Two affine maps without an activation."""
    z = keep("Z", v["X"] @ v["W_1"].transpose(-1, -2) + v["b_1"][:, None])
    y = keep("Y", z @ v["W_2"].transpose(-1, -2) + v["b_2"][:, None])
    closing(v, keep, loss, y)


def units(v: Values, keep: Keep, loss: str) -> None:
    """Activations of torch.nn.functional."""
    from torch.nn import functional as F

    keep("r", F.relu(v["z"]))
    keep("e", F.gelu(v["z"]))
    keep("q", F.gelu(v["z"], approximate="tanh"))
    keep("s", F.silu(v["z"]))
