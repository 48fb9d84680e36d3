"""The rows of torch code for residual routes, saturated weights, positions, heads and patches."""

from __future__ import annotations

from derive.checks import forwards_deep as F
from derive.checks.rows import Module, Row
from derive.topics import costs, heads, positions, vision
from derive.topics.residual import DEPTH, NORMS, ROUTE

SHARES = ("p_w = v/(v + sum(c, u[c]))", "p[c] = u[c]/(v + sum(d, u[d]))")
LAST = {"linear": "sum(i, G[i]*h[N-1,i])"}

DEEP: dict[str, Row] = {
    "residual": Row(F.route, ROUTE, {"linear": "sum(t, i, G[t,i]*Y[t,i])"}),
    "residual_depth": Row(F.depth, DEPTH, LAST),
    "residual_column": Row(F.depth, DEPTH, LAST),
    "residual_norms": Row(F.norms, NORMS),
    "residual_scalar": Row(F.scalar, ("U = x + a*x",)),
    "saturation": Row(F.saturation, SHARES),
    "sinusoid": Row(F.sinusoid, positions.SINUSOID),
    "rope": Row(F.rope, positions.ROPE),
    "token_head": Row(F.token_head, heads.TOKEN, {"kept": "sum(t, m[t]*l[t])/n"}),
    "pooled_head": Row(F.pooled_head, heads.POOLED, {"cross_entropy": "-sum(c, Y[c]*log(p[c]))"}),
    "next_token": Row(F.next_token, heads.NEXT, {"next": heads.SHIFTED}),
    "patches": Row(
        F.patches,
        vision.PATCHES,
        {"linear": "sum(j, k, i, G[j,k,i]*E[j,k,i])"},
        (Module("torch.nn.functional.conv2d", F.convolution, frozenset({"E"})),),
    ),
    "attention_products": Row(F.attention_products, costs.LAYER),
    "longer": Row(F.longer, costs.LONGER),
    "gap_scores": Row(F.gap_scores, ("u[c] = exp(z[c])", "v = exp(a)", *SHARES)),
}
