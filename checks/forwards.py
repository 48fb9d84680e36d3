"""Forward functions in torch: hand-written loops, and the same models through torch.nn.

Written from the models' definitions with torch alone: they share no code with the equations that
`derive` reads. Every tensor has a leading axis of rows, each with its own copy of the parameters;
``keep(name, value)`` records the next position of a tensor and returns what is read from then on.
A size T stands under ``#T``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Values = Mapping[str, Any]
Keep = Callable[[str, Any], Any]
Forward = Callable[[Values, Keep, str], None]


def layer(weight: Any, bias: Any = None) -> Callable[[Any], Any]:
    """Return x -> x W' + b for one vector or B vectors a row, each row with its own weight."""
    import torch

    turned = weight.transpose(1, 2)

    def apply(x: Any) -> Any:
        flat = x[:, None] if x.ndim == 2 else x
        many = flat @ turned if bias is None else torch.baddbmm(bias[:, None], flat, turned)
        return many[:, 0] if x.ndim == 2 else many

    return apply


def spread(x: Any) -> Any:
    """Return the mean over everything but the rows."""
    return x.reshape(x.shape[0], -1).mean(1)


def rnn(v: Values, keep: Keep, loss: str) -> None:
    """h_t = tanh(x_t W_x' + h_{t-1} W_h' + b) with its head and losses, for one or B sequences."""
    import torch

    h, losses = v["h_init"][:, -1], []
    total = v["b_h"] if "b_h" in v else v["b_ih"] + v["b_hh"]
    inward, again = layer(v["W_x"], total), layer(v["W_h"])
    head = layer(v["W_o"], v["b_o"]) if "W_o" in v else None
    for t, x in enumerate(v["x"].unbind(1)):
        h = keep("h", torch.tanh(keep("z", inward(x) + again(carried(v, h, t)))))
        if head is not None:
            p = keep("p", torch.softmax(keep("a", head(h)), -1))
            losses.append(keep("l", -(v["Y"][:, t] * torch.log(p)).sum(-1)))
    if loss == "final":
        keep("L", spread(((h - v["y"]) ** 2).sum(-1) / 2))
    elif loss == "per_position":
        keep("L", spread(torch.stack(losses, 1)))
    elif loss == "stream":
        keep("L", torch.stack(losses, 1).sum(1))


def carried(v: Values, h: Any, t: int) -> Any:
    """Return the state that is carried into t: detached where ``keep`` is 0."""
    if "keep" not in v:
        return h
    gate = v["keep"][:, t, None]
    return gate * h + (1 - gate) * h.detach()


def cell(v: Values, keep: Keep, loss: str) -> None:
    """One step, the previous state an input."""
    import torch

    inward, again = layer(v["W_x"], v["b_h"]), layer(v["W_h"])
    keep("h", torch.tanh(keep("z", inward(v["x"]) + again(v["h_prev"]))))


def linear(v: Values, keep: Keep, loss: str) -> None:
    """h_t = w h_{t-1} + u x_t, the last state the loss."""
    h = v["h_init"][:, -1]
    for x in v["x"].unbind(1):
        h = keep("h", v["w"] * h + v["u"] * x)
    if loss:
        keep("L", h)


def linear_matrix(v: Values, keep: Keep, loss: str) -> None:
    """h_t = x_t W_x' + h_{t-1} W_h', half the squared distance of the last state the loss."""
    h, inward, again = v["h_init"][:, -1], layer(v["W_x"]), layer(v["W_h"])
    for x in v["x"].unbind(1):
        h = keep("h", inward(x) + again(h))
    if loss:
        keep("L", ((h - v["y"]) ** 2).sum(-1) / 2)


def softmax(v: Values, keep: Keep, loss: str) -> None:
    """Softmax, log-sum-exp and cross-entropy of each row of logits."""
    import torch

    losses = []
    for t in range(v["a"].shape[1]):
        a = v["a"][:, t]
        keep("p", torch.exp(a) / torch.exp(a).sum(-1, keepdim=True))
        lse = keep("lse", torch.log(torch.exp(a).sum(-1)))
        losses.append(keep("l", lse - (v["Y"][:, t] * a).sum(-1)))
    if loss:
        every = torch.stack(losses, 1)
        keep("L", every.sum(1) if loss == "sum" else every.mean(1))


def softmax_kept(v: Values, keep: Keep, loss: str) -> None:
    """Cross-entropy averaged over the positions whose weight is 1."""
    import torch

    losses = []
    for t in range(v["a"].shape[1]):
        a = v["a"][:, t]
        p = keep("p", torch.exp(a) / torch.exp(a).sum(-1, keepdim=True))
        losses.append(keep("l", -(v["Y"][:, t] * torch.log(p)).sum(-1)))
    count = keep("n_kept", v["m"].sum(1))
    if loss:
        keep("L", (v["m"] * torch.stack(losses, 1)).sum(1) / count)


# the same through torch.nn


def weights(v: Values, row: int, suffix: str) -> dict[str, Any]:
    """Return one row's parameters under torch's names; one bias is shared by torch's two."""
    named = {"weight_ih": v["W_x"], "weight_hh": v["W_h"]}
    if biased(v):
        pair = (v["b_ih"], v["b_hh"]) if "b_ih" in v else (v["b_h"] / 2, v["b_h"] / 2)
        named |= {"bias_ih": pair[0], "bias_hh": pair[1]}
    return {name + suffix: value[row] for name, value in named.items()}


def biased(v: Values) -> bool:
    """Tell whether a recurrence has a bias."""
    return "b_h" in v or "b_ih" in v


def recurrent(v: Values, kind: str, **more: bool) -> Any:
    """Return a recurrent module of torch.nn by its name, in the size of the weights."""
    import torch

    hidden, inputs = v["W_x"].shape[-2:]
    return getattr(torch.nn, kind)(inputs, hidden, bias=biased(v), dtype=v["W_x"].dtype, **more)


def nn_rnn(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.RNN over the whole sequence; it shows the states, not what they are made from."""
    import torch
    from torch.func import functional_call

    module = recurrent(v, "RNN")
    outs = [
        functional_call(module, weights(v, row, "_l0"), (v["x"][row], v["h_init"][row]))[0]
        for row in range(v["x"].shape[0])
    ]
    states = torch.stack(outs)
    functional_head(v, keep, loss, [keep("h", states[:, t]) for t in range(states.shape[1])])


def nn_rnn_cell(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.RNNCell, position by position; the rows are its batch and share one weight."""
    h, states = v["h_init"][:, -1], []
    step = cell_step(v)
    for t, x in enumerate(v["x"].unbind(1)):
        before = carried(v, h, t)
        flat = step(x.reshape(-1, x.shape[-1]), before.reshape(-1, before.shape[-1]))
        h = keep("h", flat.reshape(before.shape))
        states.append(h)
    functional_head(v, keep, loss, states)


def cell_step(v: Values) -> Callable[[Any, Any], Any]:
    """Return torch.nn.RNNCell with the first row's parameters."""
    from torch.func import functional_call

    module = recurrent(v, "RNNCell")
    named = weights(v, 0, "")
    return lambda x, h: functional_call(module, named, (x, h))


def pushed(function: Callable[[Any], Any], at: Any, along: Any) -> tuple[Any, Any]:
    """Return a function's value and its derivative along a direction, by torch."""
    from torch.autograd.functional import jvp

    value, slope = jvp(function, at, along, create_graph=True)  # type: ignore[no-untyped-call]
    return value, slope


def nn_cell(v: Values, keep: Keep, loss: str) -> None:
    """One step of torch.nn.RNNCell, row by row with the row's parameters."""
    import torch
    from torch.func import functional_call

    module = recurrent(v, "RNNCell")
    steps = [
        functional_call(module, weights(v, i, ""), (x, v["h_prev"][i]))
        for i, x in enumerate(v["x"])
    ]
    keep("h", torch.stack(steps))


def functional_head(v: Values, keep: Keep, loss: str, states: list[Any]) -> None:
    """Head and losses by torch.nn.functional: linear, softmax, cross_entropy, mse_loss."""
    import torch
    import torch.nn.functional as F

    rows, logits = range(states[0].shape[0]), []
    bias = v.get("b_o", [None] * len(rows))
    for h in states if "W_o" in v else ():
        a = keep("a", torch.stack([F.linear(h[i], v["W_o"][i], bias[i]) for i in rows]))
        keep("p", F.softmax(a, -1))
        logits.append(a)
    if loss == "final":
        last, count = states[-1], states[-1][0].numel() / states[-1].shape[-1]
        keep("L", torch.stack([F.mse_loss(last[i], v["y"][i], reduction="sum") for i in rows])
             / (2 * count))  # fmt: skip
    elif loss:
        every, width = torch.stack(logits, 1), logits[0].shape[-1]
        every = every.reshape(len(rows), -1, width)
        targets = v["Y"].reshape(every.shape)
        how = "sum" if loss == "stream" else "mean"
        keep("L", torch.stack([F.cross_entropy(every[i], targets[i], reduction=how)
                               for i in rows]))  # fmt: skip


def functional_softmax(v: Values, keep: Keep, loss: str) -> None:
    """torch.softmax, torch.logsumexp and torch.nn.functional.cross_entropy."""
    import torch
    import torch.nn.functional as F

    rows = range(v["a"].shape[0])
    every = torch.stack([F.cross_entropy(v["a"][i], v["Y"][i].argmax(-1), reduction="none")
                         for i in rows])  # fmt: skip
    for t in range(v["a"].shape[1]):
        keep("p", F.softmax(v["a"][:, t], -1))
        keep("l", every[:, t])
        if "m" not in v:
            keep("lse", torch.logsumexp(v["a"][:, t], -1))
    if loss == "mean_kept":
        keep("L", (every * v["m"]).sum(1) / v["m"].sum(1))
    elif loss:
        keep("L", torch.stack([F.cross_entropy(v["a"][i], v["Y"][i].argmax(-1), reduction=loss)
                               for i in rows]))  # fmt: skip
