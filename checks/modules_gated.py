"""Gated networks and embeddings through torch.nn, with torch's packing of gates and its biases."""

from __future__ import annotations

from typing import Any

from derive.checks.forwards import Keep, Values, functional_head

GRU, LSTM = "rzn", "ifgo"
"""The order in which torch packs the gates."""


def packed(v: Values, row: int, gates: str, suffix: str = "") -> dict[str, Any]:
    """Return one row's parameters under torch's names, the gates one below another."""
    import torch

    kinds = {"weight_ih": "W_x", "weight_hh": "W_h", "bias_ih": "b_x", "bias_hh": "b_h"}
    return {
        name + suffix: torch.cat([v[kind + gate][row] for gate in gates])
        for name, kind in kinds.items()
    }


def module(v: Values, kind: str) -> Any:
    """Return a module of torch.nn by its name, in the size of the weights."""
    import torch

    first = next(n for n in ("W_xr", "W_xi", "W_x") if n in v)
    hidden, inputs = v[first].shape[-2:]
    return getattr(torch.nn, kind)(inputs, hidden, dtype=v[first].dtype)


def call(made: Any, named: dict[str, Any], *args: Any) -> Any:
    """Run a module with these parameters."""
    from torch.func import functional_call

    return functional_call(made, named, args)


def nn_gru(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.GRU over the whole sequence."""
    import torch

    made = module(v, "GRU")
    outs = [
        call(made, packed(v, i, GRU, "_l0"), x, v["h_init"][i])[0] for i, x in enumerate(v["x"])
    ]
    functional_head(v, keep, loss, [keep("h", h) for h in torch.stack(outs).unbind(1)])


def nn_gru_steps(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.GRUCell, position by position; the rows are its batch and share one weight."""
    made, named, h, states = module(v, "GRUCell"), packed(v, 0, GRU), v["h_init"][:, -1], []
    for x in v["x"].unbind(1):
        h = keep("h", call(made, named, x, h))
        states.append(h)
    functional_head(v, keep, loss, states)


def nn_gru_cell(v: Values, keep: Keep, loss: str) -> None:
    """One step of torch.nn.GRUCell, row by row with the row's parameters."""
    import torch

    made = module(v, "GRUCell")
    rows = zip(v["x"], v["h_prev"], strict=True)
    steps = [call(made, packed(v, i, GRU), x, h) for i, (x, h) in enumerate(rows)]
    keep("h", torch.stack(steps))


def nn_lstm(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.LSTM over the whole sequence; of the cell states it shows the last one only."""
    import torch

    made = module(v, "LSTM")
    outs = [
        call(made, packed(v, i, LSTM, "_l0"), x, (v["h_init"][i], v["c_init"][i]))[0]
        for i, x in enumerate(v["x"])
    ]
    functional_head(v, keep, loss, [keep("h", h) for h in torch.stack(outs).unbind(1)])


def nn_lstm_steps(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.LSTMCell, position by position; the rows are its batch and share one weight."""
    made, named, states = module(v, "LSTMCell"), packed(v, 0, LSTM), []
    h, c = v["h_init"][:, -1], v["c_init"][:, -1]
    for x in v["x"].unbind(1):
        h, c = call(made, named, x, (h, c))
        h, c = keep("h", h), keep("c", c)
        states.append(h)
    functional_head(v, keep, loss, states)


def nn_lstm_cell(v: Values, keep: Keep, loss: str) -> None:
    """One step of torch.nn.LSTMCell, row by row with the row's parameters."""
    import torch

    made = module(v, "LSTMCell")
    rows = zip(v["x"], v["h_prev"], v["c_prev"], strict=True)
    pairs = [call(made, packed(v, i, LSTM), x, (h, c)) for i, (x, h, c) in enumerate(rows)]
    keep("h", torch.stack([h for h, _ in pairs]))
    keep("c", torch.stack([c for _, c in pairs]))


def nn_embedding(v: Values, keep: Keep, loss: str) -> None:
    """Look-ups by torch.nn.functional.embedding, then torch.nn.RNNCell on what they give."""
    import torch
    import torch.nn.functional as F

    tokens = v["Y"].argmax(-1)
    found = torch.stack([F.embedding(tokens[i], table) for i, table in enumerate(v["E"])])
    made, h, zero = module(v, "RNNCell"), v["h_init"][:, -1], torch.zeros_like(v["b_h"][0])
    named = [{"weight_ih": v["W_x"][i], "weight_hh": v["W_h"][i], "bias_ih": b, "bias_hh": zero}
             for i, b in enumerate(v["b_h"])]  # fmt: skip
    for at in found.unbind(1):
        e = keep("e", at)
        h = keep("h", torch.stack([call(made, n, e[i], h[i]) for i, n in enumerate(named)]))
    functional_head(v, keep, loss, [h])
