"""Forward functions of gated networks and embeddings in torch; conventions as in `.forwards`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from derive.checks.forwards import Keep, Values, layer

Map = Callable[[Any], Any]


class Head:
    """The output head and the losses over a sequence."""

    def __init__(self, v: Values, keep: Keep):
        self.v, self.keep = v, keep
        self.losses: list[Any] = []
        self.logits = layer(v["W_o"], v["b_o"]) if "W_o" in v else None

    def see(self, h: Any) -> None:
        """Take the next state."""
        import torch

        if self.logits is not None:
            target = self.v["Y"][:, len(self.losses)]
            p = self.keep("p", torch.softmax(self.keep("a", self.logits(h)), -1))
            self.losses.append(self.keep("l", -(target * torch.log(p)).sum(-1)))

    def close(self, loss: str, h: Any) -> None:
        """Keep the loss: of the last state, or the mean over the positions."""
        import torch

        if loss == "final":
            self.keep("L", ((h - self.v["y"]) ** 2).sum(-1) / 2)
        elif loss == "per_position":
            self.keep("L", torch.stack(self.losses, 1).mean(1))


def maps(v: Values, gate: str) -> tuple[Map, Map]:
    """Return a gate's two affine maps, of the input and of the previous state."""
    return (layer(v[f"W_x{gate}"], v[f"b_x{gate}"]), layer(v[f"W_h{gate}"], v[f"b_h{gate}"]))


# gated recurrent units


def gru_step(v: Values, keep: Keep, before: bool = False) -> Callable[[Any, Any], Any]:
    """Return (x, h) -> h'; the reset gate after the recurrent map, or before it."""
    import torch

    (x_r, h_r), (x_z, h_z), (x_n, h_n) = (maps(v, g) for g in "rzn")

    def step(x: Any, h: Any) -> Any:
        r = keep("r", torch.sigmoid(keep("s_r", x_r(x) + h_r(h))))
        z = keep("z", torch.sigmoid(keep("s_z", x_z(x) + h_z(h))))
        inner = h_n(r * h) if before else r * keep("m", h_n(h))
        n = keep("n", torch.tanh(keep("s_n", x_n(x) + inner)))
        return keep("h", (1 - z) * n + z * h)

    return step


def gru(v: Values, keep: Keep, loss: str, before: bool = False) -> None:
    """The GRU over a sequence."""
    h, step, head = v["h_init"][:, -1], gru_step(v, keep, before), Head(v, keep)
    for x in v["x"].unbind(1):
        h = step(x, h)
        head.see(h)
    head.close(loss, h)


def gru_reset_before(v: Values, keep: Keep, loss: str) -> None:
    """The GRU of the 2014 paper."""
    gru(v, keep, loss, before=True)


def gru_cell(v: Values, keep: Keep, loss: str) -> None:
    """One step of the GRU."""
    gru_step(v, keep)(v["x"], v["h_prev"])


def gru_resets(v: Values, keep: Keep, loss: str) -> None:
    """Both candidates of one step."""
    import torch

    u, r, h = v["u"], v["r"], v["h_prev"]
    mapped = layer(v["W_hn"], v["b_hn"])
    keep("n_after", torch.tanh(keep("after", u + r * mapped(h))))
    keep("n_before", torch.tanh(keep("before", u + mapped(r * h))))


def gru_blends(v: Values, keep: Keep, loss: str) -> None:
    """Both blends of one step."""
    import torch

    n, h = v["n"], v["h_prev"]
    z, u = keep("z", torch.sigmoid(v["s"])), keep("u", torch.sigmoid(-v["s"]))
    keep("h", torch.lerp(n, h, z))
    keep("k", torch.lerp(h, n, u))


def gru_gates(v: Values, keep: Keep, loss: str) -> None:
    """The blend over a sequence, its preactivations given."""
    import torch

    h = v["h_init"][:, -1]
    for s_z, s_n in zip(v["s_z"].unbind(1), v["s_n"].unbind(1), strict=True):
        z, n = keep("z", torch.sigmoid(s_z)), keep("n", torch.tanh(s_n))
        h = keep("h", torch.lerp(n, h, z))


# long short-term memory


def lstm_step(v: Values, keep: Keep) -> Callable[[Any, Any, Any], tuple[Any, Any]]:
    """Return (x, h, c) -> (h', c'); peepholes and coupled gates where their weights say so."""
    import torch

    pairs = {g: maps(v, g) for g in "ifgo" if f"W_x{g}" in v}

    def gate(name: str, x: Any, h: Any, c: Any) -> Any:
        if name not in pairs:
            return None
        inward, again = pairs[name]
        s = inward(x) + again(h)
        if f"p_{name}" in v:
            s = s + v[f"p_{name}"] * c
        squash = torch.tanh if name == "g" else torch.sigmoid
        return keep(name, squash(keep(f"s_{name}", s)))

    def step(x: Any, h: Any, c: Any) -> tuple[Any, Any]:
        i, f, g = (gate(name, x, h, c) for name in "ifg")
        if i is None:
            i = keep("i", 1 - f)
        c = keep("c", f * c + i * g)
        return keep("h", gate("o", x, h, c) * torch.tanh(c)), c

    return step


def lstm(v: Values, keep: Keep, loss: str) -> None:
    """The LSTM over a sequence, in each of its variants."""
    h, c = v["h_init"][:, -1], v["c_init"][:, -1]
    step, head = lstm_step(v, keep), Head(v, keep)
    for x in v["x"].unbind(1):
        h, c = step(x, h, c)
        head.see(h)
    head.close(loss, h)


def lstm_cell(v: Values, keep: Keep, loss: str) -> None:
    """One step of the LSTM."""
    lstm_step(v, keep)(v["x"], v["h_prev"], v["c_prev"])


def lstm_gates(v: Values, keep: Keep, loss: str) -> None:
    """The states over a sequence, the preactivations given."""
    import torch

    c = v["c_init"][:, -1]
    squash = {g: torch.tanh if g == "g" else torch.sigmoid for g in "ifgo"}
    for at in range(v["s_f"].shape[1]):
        i, f, g, o = (keep(n, map_(v[f"s_{n}"][:, at])) for n, map_ in squash.items())
        c = keep("c", torch.addcmul(i * g, f, c))
        keep("h", o * torch.tanh(c))


def lstm_stacked(v: Values, keep: Keep, loss: str) -> None:
    """One gate with one weight over the stacked state and input."""
    placed = [layer(v["P"])(v["h_prev"]), layer(v["Q"])(v["x"])]
    keep("W_h", v["W"] @ v["P"])
    keep("W_x", v["W"] @ v["Q"])
    keep("s", layer(v["W"])(keep("v", placed[0] + placed[1])))


# embeddings


def embedding(v: Values, keep: Keep, loss: str) -> None:
    """Embedded tokens read by a tanh network."""
    import torch

    h, head = v["h_init"][:, -1], Head(v, keep)
    inward, again = layer(v["W_x"], v["b_h"]), layer(v["W_h"])
    for row in v["Y"].unbind(1):
        e = keep("e", (row[:, None] @ v["E"])[:, 0])
        h = keep("h", torch.tanh(keep("z", inward(e) + again(h))))
    head.close(loss, h)
