"""Forward functions in torch of sequence models: wirings, two directions, padding.

Written from the models' definitions with torch alone; conventions as in `.forwards`.
"""

from __future__ import annotations

from typing import Any

from derive.checks.forwards import Keep, Values, layer


class Outputs:
    """The vocabulary head and its loss, the mean over the positions."""

    def __init__(self, v: Values, keep: Keep, weight: str, bias: str = ""):
        self.v, self.keep = v, keep
        self.losses: list[Any] = []
        self.logits = layer(v[weight], v[bias] if bias else None)

    def see(self, h: Any) -> None:
        """Take the next state."""
        import torch

        target = self.v["Y"][:, len(self.losses)]
        p = self.keep("p", torch.softmax(self.keep("a", self.logits(h)), -1))
        self.losses.append(self.keep("l", -(target * torch.log(p)).sum(-1)))

    def close(self, loss: str) -> None:
        """Keep the loss."""
        import torch

        if loss:
            self.keep("L", torch.stack(self.losses, 1).mean(1))


def rnn_lm(v: Values, keep: Keep, loss: str) -> None:
    """The recurrent language model."""
    import torch

    h, out = v["h_init"][:, -1], Outputs(v, keep, "W_o", "b_o")
    inward, again = layer(v["W_e"], v["b_h"]), layer(v["W_h"])
    for token in v["S"].unbind(1):
        e = keep("e", torch.einsum("bv,bvk->bk", token, v["E"]))
        h = keep("h", torch.tanh(keep("z", inward(e) + again(h))))
        out.see(h)
    out.close(loss)


def one_to_many(v: Values, keep: Keep, loss: str) -> None:
    """A recurrence that reads one vector at its first position."""
    import torch

    h, out = v["h_init"][:, -1], Outputs(v, keep, "W_o", "b_o")
    first, again = layer(v["W_x"]), layer(v["W_h"], v["b_h"])
    for t in range(v["Y"].shape[1]):
        z = again(h) + first(v["start"]) if t == 0 else again(h)
        h = keep("h", torch.tanh(keep("z", z)))
        out.see(h)
    out.close(loss)


def seq2seq(v: Values, keep: Keep, loss: str) -> None:
    """An encoder whose last state the decoder starts from."""
    import torch

    h, inward, again = v["h_init"][:, -1], layer(v["W_x"]), layer(v["W_h"])
    for x in v["x"].unbind(1):
        h = keep("h", torch.tanh(keep("z", inward(x) + again(h))))
    out, inputs, carry = Outputs(v, keep, "V_o"), layer(v["V_y"]), layer(v["V_d"])
    d = v["d_init"][:, -1] + h
    for u in v["u"].unbind(1):
        c = keep("c", d)
        d = keep("d", torch.tanh(keep("q", inputs(u) + carry(c))))
        out.see(d)
    out.close(loss)


def bidirectional(v: Values, keep: Keep, loss: str) -> None:
    """Two recurrences, read at their last states."""
    import torch

    def run(name: str, inner: str, inputs: str, inward: Any, again: Any) -> Any:
        state = v[f"{name}_init"][:, -1]
        for x in v[inputs].unbind(1):
            state = keep(name, torch.tanh(keep(inner, inward(x) + again(state))))
        return state

    h = run("h", "z", "x", layer(v["W_x"]), layer(v["W_h"]))
    b = run("b", "zb", "rev", layer(v["U_x"]), layer(v["U_h"]))
    a = keep("a", layer(v["W_o"])(h) + layer(v["W_b"])(b))
    if loss:
        keep("L", ((a - v["y"]) ** 2).sum(-1) / 2)


def rnn_masked(v: Values, keep: Keep, loss: str) -> None:
    """A recurrence that holds its state where m = 0."""
    import torch

    h, inward, again = v["h_init"][:, -1], layer(v["W_x"]), layer(v["W_h"])
    for x, m in zip(v["x"].unbind(1), v["m"].unbind(1), strict=True):
        new = torch.tanh(keep("z", inward(x) + again(h)))
        h = keep("h", m[:, None] * new + (1 - m[:, None]) * h)
    if loss:
        keep("L", ((h - v["y"]) ** 2).sum(-1) / 2)
