"""Transformer blocks through torch.nn, with torch's packing of queries, keys and values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from derive.checks.forwards import Keep, Values
from derive.checks.forwards_attention import each
from derive.checks.forwards_blocks import closing

NORMS = {"encoder": {"norm1": 1, "norm2": 2}, "decoder": {"norm1": 1, "norm2": 2, "norm3": 3}}


def divided(sizes: Mapping[str, int]) -> bool:
    """Tell whether heads divide the width and keys are as wide as values, as torch needs it."""
    return sizes["N"] * sizes["d_k"] == sizes["D"] and sizes["d_k"] == sizes["d_v"]


def attention(v: Values, row: int, at: str = "") -> dict[str, Any]:
    """Return the parameters of torch.nn.MultiheadAttention: queries, keys, values one by one."""
    import torch

    flat = [v[f"W_{n}{at}"][row].flatten(0, 1) for n in "QKV"]
    biases = [v[f"b_{n}{at}"][row].flatten() for n in "QKV"]
    return {
        "in_proj_weight": torch.cat(flat),
        "in_proj_bias": torch.cat(biases),
        "out_proj.weight": v[f"W_O{at}"][row].flatten(1),
        "out_proj.bias": v[f"b_O{at}"][row],
    }


def parameters(v: Values, row: int, kind: str) -> dict[str, Any]:
    """Return the parameters of a layer under torch's names."""
    named = {f"self_attn.{n}": p for n, p in attention(v, row).items()}
    if kind == "decoder":
        named |= {f"multihead_attn.{n}": p for n, p in attention(v, row, "m").items()}
    for name, at in NORMS[kind].items():
        named |= {f"{name}.weight": v[f"gamma_{at}"][row], f"{name}.bias": v[f"beta_{at}"][row]}
    for name, at in (("linear1", 1), ("linear2", 2)):
        named |= {f"{name}.weight": v[f"W_{at}"][row], f"{name}.bias": v[f"b_{at}"][row]}
    return named


def made(v: Values, kind: str, first: bool) -> Any:
    """Return torch's layer in the sizes of the parameters."""
    import torch

    heads, inner, width = v["W_Q"].shape[1], v["W_1"].shape[1], v["W_1"].shape[2]
    layer = getattr(torch.nn, f"Transformer{kind.title()}Layer")
    return layer(width, heads, inner, 0.0, batch_first=True, norm_first=first,
                 layer_norm_eps=v["eps"][0].item(), dtype=v["h"].dtype)  # fmt: skip


def run(v: Values, keep: Keep, loss: str, kind: str, first: bool) -> None:
    """Run a layer, row by row of the batch with the row's own parameters."""
    import torch
    from torch.func import functional_call

    layer, rows = made(v, kind, first), []
    size = v["h"].shape[1]
    later = torch.ones(size, size).triu(1).bool()
    for i, h in enumerate(v["h"]):
        args = (h[None], v["M"][i][None]) if kind == "decoder" else (h[None],)
        more = {"tgt_mask": later} if kind == "decoder" else {}
        rows.append(functional_call(layer, parameters(v, i, kind), args, more)[0])
    out = torch.stack(rows)
    out = each(keep, "Y", out) if kind == "decoder" else keep("Y", out)
    closing(v, keep, loss, out)


def encoder_pre(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.TransformerEncoderLayer, norm first."""
    run(v, keep, loss, "encoder", True)


def encoder_post(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.TransformerEncoderLayer, norm last."""
    run(v, keep, loss, "encoder", False)


def decoder_pre(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.TransformerDecoderLayer, norm first."""
    run(v, keep, loss, "decoder", True)


def decoder_post(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.TransformerDecoderLayer, norm last."""
    run(v, keep, loss, "decoder", False)


def multihead(v: Values, keep: Keep, loss: str) -> None:
    """torch.nn.MultiheadAttention with biases."""
    import torch
    from torch.func import functional_call

    heads, width = v["W_Q"].shape[1], v["X"].shape[-1]
    layer = torch.nn.MultiheadAttention(width, heads, batch_first=True, dtype=v["X"].dtype)
    rows = []
    for i, x in enumerate(v["X"]):
        m = v["M"][i][None]
        more = {"need_weights": False}
        rows.append(functional_call(layer, attention(v, i), (x[None], m, m), more)[0][0])
    closing(v, keep, loss, keep("Y", torch.stack(rows)))
