"""Sequence models through torch.nn; conventions as in `.forwards`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from derive.checks.forwards import (
    Keep,
    Values,
    cell_step,
    functional_head,
    nn_rnn,
    nn_rnn_cell,
    pushed,
    recurrent,
    weights,
)


def embedded(v: Values, keep: Keep) -> Values:
    """Return the values with what torch.nn.functional.embedding looks up as inputs."""
    import torch
    import torch.nn.functional as F

    tokens = v["S"].argmax(-1)
    found = torch.stack([F.embedding(tokens[i], table) for i, table in enumerate(v["E"])])
    read = [keep("e", e) for e in found.unbind(1)]
    return {**v, "x": torch.stack(read, 1), "W_x": v["W_e"]}


def nn_lm(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.Embedding, torch.nn.RNN and torch.nn.Linear."""
    nn_rnn(embedded(v, keep), keep, loss)


def nn_lm_steps(v: Values, keep: Keep, loss: str) -> None:
    """The same, position by position."""
    nn_rnn_cell(embedded(v, keep), keep, loss)


def started(v: Values) -> Values:
    """Return the values with inputs that are zero after the first position."""
    import torch

    first = v["start"][:, None]
    rest = torch.zeros_like(first).expand(-1, v["#T"] - 1, -1)
    return {**v, "x": torch.cat([first, rest], 1)}


def nn_one_to_many(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.RNN over one vector and zeros."""
    nn_rnn(started(v), keep, loss)


def nn_one_to_many_steps(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.RNNCell over one vector and zeros."""
    nn_rnn_cell(started(v), keep, loss)


def nn_seq2seq(v: Values, keep: Keep, loss: str) -> None:
    """Two of torch.nn.RNN, the second started from the last state of the first."""
    import torch
    from torch.func import functional_call

    def run(part: Values, start: Any) -> Any:
        made = recurrent(part, "RNN")
        rows = zip(part["x"], start, strict=True)
        outs = [functional_call(made, weights(part, i, "_l0"), (x, h[None]))[0]
                for i, (x, h) in enumerate(rows)]  # fmt: skip
        return torch.stack(outs)

    encoder = {n: v[n] for n in ("x", "W_x", "W_h")}
    decoder = {"x": v["u"], "W_x": v["V_y"], "W_h": v["V_d"]}
    last = [keep("h", h) for h in run(encoder, v["h_init"][:, -1]).unbind(1)][-1]
    states = [keep("d", d) for d in run(decoder, v["d_init"][:, -1] + last).unbind(1)]
    functional_head({"W_o": v["V_o"], "Y": v["Y"]}, keep, loss, states)


def nn_seq2seq_steps(v: Values, keep: Keep, loss: str) -> None:
    """Two of torch.nn.RNNCell; the rows are their batch and share one weight."""
    h, step = v["h_init"][:, -1], cell_step({"W_x": v["W_x"], "W_h": v["W_h"]})
    for x in v["x"].unbind(1):
        h = keep("h", step(x, h))
    states, step = [], cell_step({"W_x": v["V_y"], "W_h": v["V_d"]})
    carried = v["d_init"][:, -1] + h
    for u in v["u"].unbind(1):
        carried = keep("d", step(u, keep("c", carried)))
        states.append(carried)
    functional_head({"W_o": v["V_o"], "Y": v["Y"]}, keep, loss, states)


def nn_bidirectional(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.RNN(bidirectional=True), which turns the inputs of its second direction itself.

    A point may hold any ``rev``, so the module reads x for the states of its first direction, and
    ``rev`` turned back for those of its second.
    """
    import torch
    from torch.func import functional_call

    made, width = recurrent({"W_x": v["W_x"]}, "RNN", bidirectional=True), v["W_h"].shape[-1]

    def run(inputs: Any) -> Any:
        outs = []
        for i, x in enumerate(inputs):
            named = weights(v, i, "_l0")
            named |= {"weight_ih_l0_reverse": v["U_x"][i], "weight_hh_l0_reverse": v["U_h"][i]}
            start = torch.stack([v["h_init"][i, -1], v["b_init"][i, -1]])
            outs.append(functional_call(made, named, (x, start))[0])
        return torch.stack(outs)

    h = [keep("h", s) for s in run(v["x"])[..., :width].unbind(1)][-1]
    b = [keep("b", s) for s in run(v["rev"].flip(1))[..., width:].flip(1).unbind(1)][-1]
    both = torch.cat([v["W_o"], v["W_b"]], -1)
    rows = zip(torch.cat([h, b], -1), both, strict=True)
    a = keep("a", torch.stack([torch.nn.functional.linear(s, w) for s, w in rows]))
    if loss:
        mse, pairs = torch.nn.functional.mse_loss, zip(a, v["y"], strict=True)
        keep("L", torch.stack([mse(x, y, reduction="sum") / 2 for x, y in pairs]))


def nn_masked(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.RNNCell, its state held by torch.lerp; the rows share one weight."""
    import torch

    h, step = v["h_init"][:, -1], cell_step(v)
    for x, m in zip(v["x"].unbind(1), v["m"].unbind(1), strict=True):
        h = keep("h", torch.lerp(h, step(x, h), m[:, None]))
    functional_head(v, keep, loss, [h])


def nn_tangent(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.RNNCell with a perturbation that torch.autograd.functional.jvp pushes through it."""
    h, moved, step = v["h_init"][:, -1], v["v_init"][:, -1], cell_step(v)

    def at(x: Any) -> Callable[[Any], Any]:
        return lambda state: step(x, state)

    for x in v["x"].unbind(1):
        new, carried = pushed(at(x), h, moved)
        h, moved = keep("h", new), keep("v", carried)
