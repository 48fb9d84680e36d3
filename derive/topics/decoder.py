"""The Transformer decoder: causal self-attention, attention to a memory, the MLP; every gradient.

Source: Vaswani et al. (2017), Attention Is All You Need, section 3.1 (post-norm); Xiong et al.
(2020), On Layer Normalization in the Transformer Architecture, section 3 (pre-norm).
"""

from __future__ import annotations

from derive.claim import Claim
from derive.topics import Topic, claim
from derive.topics._block_claims import Writer, answered, asked, causal
from derive.topics._block_systems import block, post_norm_decoder, pre_norm_decoder


def pre_norm_claims() -> tuple[Claim, ...]:
    """Return the gradients of the pre-norm block."""
    w = Writer("decoder", "pre_decoder")
    return (
        *w.mlp("R", "B_mlp"),
        w.gradient("R", "t,i", w.mlp_input(), "The rows that enter the MLP"),
        *w.norm("E", "R", 3, "g_Y[t,i] + "),
        *w.attention("C", "B_mem", "m", "M"),
        w.gradient("C", "t,i", asked("m"), "The rows that ask the memory"),
        w.gradient("M", "s,i", answered("s", "m"), "The memory: through keys and values"),
        *w.norm("U", "C", 2, "g_E[t,i] + "),
        *w.attention("X", "B_att"),
        w.gradient("X", "t,i", f"{asked()} + {answered('t')}", "Normalised rows: three paths"),
        *w.norm("h", "X", 1, "g_U[t,i] + "),
    )


def post_norm_claims() -> tuple[Claim, ...]:
    """Return the gradients of the post-norm block."""
    w = Writer("decoder", "post_decoder")
    return (
        *w.norm("R", "Y", 3),
        *w.mlp("C", "B_mlp"),
        w.gradient("C", "t,i", f"g_R[t,i] + {w.mlp_input()}", "Past the MLP and through it"),
        *w.norm("E", "C", 2),
        *w.attention("X", "B_mem", "m", "M"),
        w.gradient("M", "s,i", answered("s", "m"), "The memory: through keys and values"),
        w.gradient("X", "t,i", f"g_E[t,i] + {asked('m')}", "Past the memory and through its query"),
        *w.norm("U", "X", 1),
        *w.attention("h", "B_att"),
        w.gradient("h", "t,i", f"g_U[t,i] + {asked()} + {answered('t')}",
                   "Past the attention and through its three paths"),
    )  # fmt: skip


OTHER = (
    claim("decoder.memory-weights", "sum(s, Am[n,t,s]) = 1", "Every row reads the whole memory",
          "pre_decoder"),
    claim("decoder.memory-values-alone", "dL/dM[s,i] = sum(n, v, g_Vm[n,s,v]*W_Vm[n,v,i])",
          "The memory is also keys", "pre_decoder", "linear", expected="fails",
          reason="its keys decide the weights"),
    claim("decoder.later-rows", "dY[t,i]/dh[s,j] = 0 for s < t", "Earlier rows do reach it",
          "pre_decoder", expected="fails", reason="causal attention reads every earlier row"),
)  # fmt: skip


def topic() -> Topic:
    """Return the topic."""
    pre, post = pre_norm_decoder(), post_norm_decoder()
    systems = (
        block("pre_decoder", pre, memory=True, positions=("T",)),
        block("post_decoder", post, memory=True, positions=("T",)),
    )
    return Topic(
        "decoder",
        "The Transformer decoder",
        {s.name: s for s in systems},
        (
            *pre_norm_claims(),
            *post_norm_claims(),
            *causal("decoder", "pre_decoder", pre),
            *causal("decoder", "post_decoder", post),
            *OTHER,
        ),
        "Vaswani et al. (2017), section 3.1; Xiong et al. (2020), section 3",
    )
