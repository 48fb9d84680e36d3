"""The Transformer encoder: pre-norm and post-norm blocks, every gradient, permuted rows, stacks.

Source: Vaswani et al. (2017), Attention Is All You Need, section 3; Xiong et al. (2020), On Layer
Normalization in the Transformer Architecture, section 3; Lee et al. (2019), Set Transformer.
"""

from __future__ import annotations

from dataclasses import replace

from derive.claim import Claim
from derive.topics import Topic, claim
from derive.topics._block_claims import Writer, answered, asked, carried, layered
from derive.topics._block_systems import (
    block,
    both_norms,
    post_norm,
    pre_norm,
    stack,
    two_copies,
)
from derive.topics._blocks import added, attention

CAUSAL = "where(s <= t, {}, -oo)"
PADDED = "where(m[s] > 0, {}, -oo)"


def pre_norm_claims() -> tuple[Claim, ...]:
    """Return the gradients of the pre-norm block."""
    w = Writer("encoder", "pre_norm")
    return (
        w.gradient("B_mlp", "t,i", "g_Y[t,i]", "The sum passes its gradient to the MLP branch"),
        *w.mlp("R", "B_mlp"),
        w.gradient("R", "t,i", w.mlp_input(), "The rows that enter the MLP"),
        *w.norm("U", "R", 2, "g_Y[t,i] + "),
        w.gradient("B_att", "t,i", "g_U[t,i]", "And to the attention branch"),
        *w.attention("X", "B_att"),
        w.gradient("X", "t,i", f"{asked()} + {answered('t')}", "Normalised rows: three paths"),
        *w.norm("h", "X", 1, "g_U[t,i] + "),
    )


def post_norm_claims() -> tuple[Claim, ...]:
    """Return the gradients of the post-norm block."""
    w = Writer("encoder", "post_norm")
    return (
        *w.norm("R", "Y", 2),
        w.gradient("B_mlp", "t,i", "g_R[t,i]", "The sum passes its gradient to the MLP branch"),
        *w.mlp("X", "B_mlp"),
        w.gradient("X", "t,i", f"g_R[t,i] + {w.mlp_input()}", "Past the MLP and through it"),
        *w.norm("U", "X", 1),
        w.gradient("B_att", "t,i", "g_U[t,i]", "And to the attention branch"),
        *w.attention("h", "B_att"),
        w.gradient("h", "t,i", f"g_U[t,i] + {asked()} + {answered('t')}",
                   "Past the attention and through its three paths"),
    )  # fmt: skip


def stack_claims() -> tuple[Claim, ...]:
    """Return the gradients of every layer of a stack."""
    return tuple(
        replace(c, id=c.id.replace("pre_norm", "stack"), statement=layered(c.statement),
                title=c.title + ", in every layer", system="stack")
        for c in pre_norm_claims()
    )  # fmt: skip


def pooled(system: str) -> Claim:
    """Return that mean pooling is invariant."""
    return claim(f"encoder.{system}-pooled", "mean(t, Yp[t,i]) = mean(t, Y[t,i])",
                 "Mean pooling forgets the order", system,
                 using=(f"encoder.{system}-rows-Y",))  # fmt: skip


WRONG = (
    claim("encoder.invariant", "Yp[t,i] = Y[t,i]", "A block is not invariant", "pre_norm_rows",
          expected="fails", reason="its output rows are permuted along: it is equivariant"),
    claim("encoder.attention-invariant", "Op[n,t,v] = O[n,t,v]", "Nor is self-attention",
          "post_norm_rows", expected="fails", reason="its rows are permuted along"),
    claim("encoder.weights-one-side", "Ap[n,t,s] = sum(u, P[t,u]*A[n,u,s])",
          "Weights are permuted on both sides", "post_norm_rows", expected="fails",
          reason="the sources are permuted too"),
    claim("encoder.causal-rows", "Bp[t,i] = sum(s, P[t,s]*B[s,i])",
          "A causal mask is not equivariant", "causal_rows", expected="fails",
          reason="the mask knows the order"),
    claim("encoder.position-rows", "Bp[t,i] = sum(s, P[t,s]*B[s,i])",
          "Nor are rows with positions added", "position_rows", expected="fails",
          reason="the positions stay where they are"),
    claim("encoder.norms-agree", "Y[t,i] = Y_post[t,i]",
          "Pre-norm and post-norm are different functions", "both_norms", expected="fails",
          reason="post-norm normalises the sum, the bypass included"),
    claim("encoder.pre_norm-no-bypass", "dL/dU[t,i] = (gamma_2[i]*g_R[t,i] - mean(j, gamma_2[j]"
          "*g_R[t,j]) - H_2[t,i]*mean(j, gamma_2[j]*g_R[t,j]*H_2[t,j]))/sd_2[t]",
          "The bypass has a gradient of its own", "pre_norm", "linear", expected="fails",
          reason="U reaches Y directly as well"),
    claim("encoder.pre_norm-raw-queries", "dL/dW_Q[n,k,i] = sum(t, g_Q[n,t,k]*h[t,i])",
          "The projections see normalised rows", "pre_norm", "linear", expected="fails",
          reason="Q = X W_Q^T with X = LN(h)"),
    claim("encoder.pre_norm-key-bias", "dL/db_K[n,k] = sum(s, g_K[n,s,k]) + 1",
          "The key bias has no gradient", "pre_norm", "linear", expected="fails",
          reason="it shifts each row of scores"),
)  # fmt: skip


def topic() -> Topic:
    """Return the topic."""
    pre, post = pre_norm(), post_norm()
    padded = pre_norm(PADDED)
    systems = (
        block("pre_norm", pre),
        block("post_norm", post),
        two_copies("pre_norm_rows", pre),
        two_copies("post_norm_rows", post),
        two_copies("padded_rows", padded, binary=True),
        two_copies("causal_rows", attention("h", "B", mask=CAUSAL), positions=("T",)),
        two_copies("position_rows", added("X", "h", "E") + attention("X", "B")),
        both_norms(),
        stack(),
    )
    return Topic(
        "encoder",
        "The Transformer encoder",
        {s.name: s for s in systems},
        (
            *pre_norm_claims(),
            *post_norm_claims(),
            *carried("encoder", "pre_norm_rows", pre, ("h",)),
            pooled("pre_norm_rows"),
            *carried("encoder", "post_norm_rows", post, ("h",)),
            pooled("post_norm_rows"),
            *carried("encoder", "padded_rows", padded, ("h", "m")),
            *stack_claims(),
            *WRONG,
        ),
        "Vaswani et al. (2017), section 3; Xiong et al. (2020), section 3",
    )
