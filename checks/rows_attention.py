"""The rows of torch code for attention, masks and heads."""

from __future__ import annotations

from derive.checks import forwards_attention as F
from derive.checks.rows import Module, Row

CORE = (
    "S[t,s] = sum(k, Q[t,k]*K[s,k])/sqrt(d_k)",
    "A[t,s] = softmax(s, S[t,s])",
    "O[t,v] = sum(s, A[t,s]*V[s,v])",
)
LINEAR = {"linear": "sum(t, v, G[t,v]*O[t,v])"}
SDPA = "torch.nn.functional.scaled_dot_product_attention"
OUT = frozenset({"O"})


def projected(source: str, right: bool = False) -> tuple[str, ...]:
    """Return the equations of attention over projected rows."""
    w = "[i,{}]" if right else "[{},i]"
    return (
        f"Q[t,k] = sum(i, W_Q{w.format('k')}*X[t,i])",
        f"K[s,k] = sum(i, W_K{w.format('k')}*{source}[s,i])",
        f"V[s,v] = sum(i, W_V{w.format('v')}*{source}[s,i])",
        *CORE,
    )


def masked(mask: str, more: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the equations of attention under a mask."""
    return (CORE[0], f"A[t,s] = softmax(s, {mask})", CORE[2], *more)


def stacked(mask: str) -> tuple[str, ...]:
    """Return the equations of N layers of residual attention under a mask."""
    return (
        "q[l,t,a] = sum(i, W_q[l,a,i]*h[l-1,t,i])",
        "k[l,t,a] = sum(i, W_k[l,a,i]*h[l-1,t,i])",
        "v[l,t,b] = sum(i, W_v[l,b,i]*h[l-1,t,i])",
        f"A[l,t,s] = softmax(s, where({mask}, sum(a, q[l,t,a]*k[l,s,a])/sqrt(d_k), -oo))",
        "h[l,t,b] = h[l-1,t,b] + sum(s, A[l,t,s]*v[l,s,b])",
    )


PADDED = "where(m[s] > 0, S[t,s], -oo)"
LAST = {"linear": "sum(t, b, G[t,b]*h[N-1,t,b])"}
SELF = Row(F.attention, projected("X"), LINEAR, (Module(SDPA, F.sdpa, OUT),))

ATTENTION: dict[str, Row] = {
    "attention": Row(F.attention, projected("M"), LINEAR, (Module(SDPA, F.sdpa, OUT),)),
    "self_attention": SELF,
    "attention_column": SELF,
    "attention_right": Row(
        F.attention_right, projected("X", True), LINEAR, (Module(SDPA, F.sdpa_right, OUT),)
    ),
    "additive": Row(
        F.additive,
        (
            "Z[t,s,j] = sum(q, W_a[j,q]*Q[t,q]) + sum(k, U_a[j,k]*K[s,k])",
            "R[t,s,j] = tanh(Z[t,s,j])",
            "S[t,s] = sum(j, w_a[j]*R[t,s,j])",
            *CORE[1:],
        ),
        LINEAR,
    ),
    "two_scores": Row(
        F.two_scores,
        (CORE[0], "E[t,s] = sum(j, w_a[j]*tanh(sum(k, W_a[j,k]*Q[t,k]) + K[s,j]))"),
    ),
    "attention_permuted": Row(
        F.permuted,
        (
            *CORE,
            "Kp[s,k] = sum(r, P[s,r]*K[r,k])",
            "Vp[s,v] = sum(r, P[s,r]*V[r,v])",
            "Sp[t,s] = sum(k, Q[t,k]*Kp[s,k])/sqrt(d_k)",
            "Ap[t,s] = softmax(s, Sp[t,s])",
            "Op[t,v] = sum(s, Ap[t,s]*Vp[s,v])",
            "On[t,v] = sum(s, Ap[t,s]*V[s,v])",
        ),
    ),
    "bounded": Row(F.bounded, CORE[1:]),
    "same_width": Row(
        F.same_width,
        tuple(e.replace("d_k", "d") for e in CORE),
        {},
        (Module(SDPA, F.sdpa_plain, OUT),),
    ),
    "causal": Row(
        F.causal,
        masked("where(s <= t, S[t,s], -oo)"),
        LINEAR,
        (Module(SDPA, F.sdpa_causal, OUT), Module(SDPA, F.sdpa_masked, OUT)),
    ),
    "padded": Row(
        F.padded,
        masked(PADDED, ("F[t,s] = softmax(s, S[t,s])", "C[t,s] = softmax(s, m[s]*S[t,s])")),
        LINEAR,
        (Module(SDPA, F.sdpa_padded, OUT),),
    ),
    "both": Row(
        F.both,
        masked(f"where(s <= t, {PADDED}, -oo)"),
        LINEAR,
        (Module(SDPA, F.sdpa_masked, OUT),),
    ),
    "causal_stack": Row(F.stack, stacked("s <= t"), LAST),
    "padded_stack": Row(F.stack, stacked("m[s] > 0"), LAST),
}
