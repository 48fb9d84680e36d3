"""The rows of torch code for residual routes, saturated weights, positions, heads and patches."""

from __future__ import annotations

from derive.checks import forwards_deep as F
from derive.checks.rows import Row
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
    "gap_scores": Row(F.gap_scores, ("u[c] = exp(z[c])", "v = exp(a)", *SHARES)),
}
