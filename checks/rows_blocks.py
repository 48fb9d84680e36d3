"""The rows of torch code for Transformer blocks: equations as the topics put them together."""

from __future__ import annotations

from derive.checks import forwards_blocks as F
from derive.checks import modules_blocks as N
from derive.checks.rows import Module, Row
from derive.topics import _block_systems as B
from derive.topics import mlp as M
from derive.topics import multihead as H
from derive.topics._block_claims import layered, permuted, renamed, values
from derive.topics._blocks import Part, added, attention, mlp

LINEAR = {"linear": "sum(t, i, G[t,i]*Y[t,i])"}
# torch takes eps as a number: no derivative by it
SHOWN = frozenset({"Y", "eps"})
ENCODER, DECODER = "torch.nn.TransformerEncoderLayer", "torch.nn.TransformerDecoderLayer"
ROWS_MOVED = "hp[t,i] = sum(s, P[t,s]*h[s,i])"


def rows(
    part: Part, given: tuple[str, ...] = ("h",), more: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Return the equations of a block of rows, and of the same rows in another order."""
    return (*part.equations, ROWS_MOVED, *more, *permuted(part, given))


PRE, POST = B.pre_norm(), B.post_norm()
PADDED = B.pre_norm("where(m[s] > 0, {}, -oo)")
CAUSAL = attention("h", "B", mask="where(s <= t, {}, -oo)")
PLACED = added("X", "h", "E") + attention("X", "B")

BLOCKS: dict[str, Row] = {
    "multihead": Row(
        F.multihead,
        (*attention("X", "Y", source="M").equations, H.PRODUCT),
        LINEAR,
        (
            Module(
                "torch.nn.MultiheadAttention",
                N.multihead,
                frozenset({"Y"}),
                takes=N.divided,
            ),
        ),
    ),
    "grouped": Row(F.grouped, H.GROUPED, LINEAR),
    "mlp": Row(F.mlp, mlp("X", "Y").equations, LINEAR),
    "affine_twice": Row(F.affine_twice, M.AFFINE, LINEAR),
    "units": Row(
        F.units,
        (
            "r[f] = relu(z[f])",
            "e[f] = gelu(z[f])",
            "q[f] = gelu_tanh(z[f])",
            "s[f] = silu(z[f])",
        ),
    ),
    "pre_norm": Row(
        F.pre_norm, PRE.equations, LINEAR, (Module(ENCODER, N.encoder_pre, SHOWN, takes=N.divided),)
    ),
    "post_norm": Row(
        F.post_norm,
        POST.equations,
        LINEAR,
        (Module(ENCODER, N.encoder_post, SHOWN, takes=N.divided),),
    ),
    "both_norms": Row(
        F.both_norms,
        (*PRE.equations, *(renamed(e, values(POST), "_post") for e in POST.equations)),
        LINEAR,
    ),
    "pre_norm_rows": Row(F.pre_norm_rows, rows(PRE)),
    "post_norm_rows": Row(F.post_norm_rows, rows(POST)),
    "padded_rows": Row(F.padded_rows, rows(PADDED, ("h", "m"), ("mp[t] = sum(s, P[t,s]*m[s])",))),
    "causal_rows": Row(F.causal_rows, rows(CAUSAL)),
    "position_rows": Row(F.position_rows, rows(PLACED)),
    "stack": Row(
        F.stack,
        tuple(map(layered, PRE.equations)),
        {"linear": "sum(t, i, G[t,i]*h[N_layers-1,t,i])"},
    ),
    "pre_decoder": Row(
        F.pre_decoder,
        B.pre_norm_decoder().equations,
        LINEAR,
        (Module(DECODER, N.decoder_pre, SHOWN, takes=N.divided),),
    ),
    "post_decoder": Row(
        F.post_decoder,
        B.post_norm_decoder().equations,
        LINEAR,
        (Module(DECODER, N.decoder_post, SHOWN, takes=N.divided),),
    ),
}
