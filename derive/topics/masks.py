"""Masks: minus infinity before softmax, causal, padded and both; gradients; whole stacks.

Source: Vaswani et al. (2017), Attention Is All You Need, section 3.2.3.
"""

from __future__ import annotations

from derive.building import build_system
from derive.equation import System
from derive.topics import Topic, claim
from derive.topics.attention import MEANINGS as PLAIN

MEANINGS = {
    **{n: PLAIN[n] for n in ("Q", "K", "V", "S", "A", "O", "G", "L")},
    "F": "weights without a mask",
    "C": "weights of the masked scores times zero",
    "m": "1 for a real source, 0 for padding",
    "h": "rows of each layer, h[-1] the input",
    "q": "queries of a layer",
    "k": "keys of a layer",
    "v": "values of a layer",
    "W": "a layer's query, key and value maps",
}
SCORES = "S[t,s] = sum(k, Q[t,k]*K[s,k])/sqrt(d_k)"
OUTPUT = "O[t,v] = sum(s, A[t,s]*V[s,v])"
LOSS = {"linear": "sum(t, v, G[t,v]*O[t,v])"}
CAUSAL = "where(s <= t, {}, -oo)"
PADDED = "where(m[s] > 0, {}, -oo)"
BOTH = CAUSAL.format(PADDED)


def masked_system(name: str, mask: str, more: tuple[str, ...] = ()) -> System:
    """Return self-attention of T rows under a mask, a text that holds the score."""
    mask = mask.format("S[t,s]")
    return build_system(
        name,
        ("T", "d_k", "d_v"),
        {
            "Q": ("T", "d_k"),
            "K": ("T", "d_k"),
            "V": ("T", "d_v"),
            "G": ("T", "d_v"),
            **({"m": ("T",)} if "m[" in mask else {}),
        },
        (SCORES, f"A[t,s] = softmax(s, {mask})", OUTPUT, *more),
        losses=LOSS,
        parameters=(),
        binary=("m",) if "m[" in mask else (),
        meanings=MEANINGS,
    )


def stack_system(name: str, mask: str) -> System:
    """Return N layers of residual attention over T rows under a mask."""
    score = "sum(a, q[l,t,a]*k[l,s,a])/sqrt(d_k)"
    padded = "m[" in mask
    return build_system(
        name,
        ("N", "T", "D", "d_k"),
        {
            "h": ("N", "T", "D"),
            **{n: ("N", "T", "d_k") for n in ("q", "k")},
            "v": ("N", "T", "D"),
            "A": ("N", "T", "T"),
            **{n: ("N", "d_k", "D") for n in ("W_q", "W_k")},
            "W_v": ("N", "D", "D"),
            "G": ("T", "D"),
            **({"m": ("T",)} if padded else {}),
        },
        (
            "q[l,t,a] = sum(i, W_q[l,a,i]*h[l-1,t,i])",
            "k[l,t,a] = sum(i, W_k[l,a,i]*h[l-1,t,i])",
            "v[l,t,b] = sum(i, W_v[l,b,i]*h[l-1,t,i])",
            f"A[l,t,s] = softmax(s, {mask.format(score)})",
            "h[l,t,b] = h[l-1,t,b] + sum(s, A[l,t,s]*v[l,s,b])",
        ),
        losses={"linear": "sum(t, b, G[t,b]*h[N-1,t,b])"},
        parameters=("W_q", "W_k", "W_v"),
        binary=("m",) if padded else (),
        positions=("N", "T"),
        meanings=MEANINGS,
    )


SOFTMAX = "dL/dS[t,s] = A[t,s]*(g_A[t,s] - sum(r, A[t,r]*g_A[t,r]))"
CLAIMS = (
    claim("masks.causal", "A[t,s] = where(s <= t, exp(S[t,s]), 0)/sum(r=0..t, exp(S[t,r]))",
          "Causal: minus infinity renormalises over the sources up to the query", "causal"),
    claim("masks.future-weight", "A[t,s] = 0 for s > t", "A later source has no weight", "causal"),
    claim("masks.causal-sum", "sum(s=0..t, A[t,s]) = 1", "The weights up to the query sum to one",
          "causal"),
    claim("masks.first-row", "A[0,0] = 1", "The first query has one source: itself", "causal"),
    claim("masks.first-output", "O[0,v] = V[0,v]", "So its output is its own value", "causal"),
    claim("masks.added", "softmax(s, S[t,s] + where(s <= t, 0, -oo)) = A[t,s]",
          "An additive mask of 0 and minus infinity is the same", "causal"),
    claim("masks.causal-dS", SOFTMAX, "The gradient of the scores under the causal mask", "causal",
          "linear"),
    claim("masks.causal-dS-future", "dL/dS[t,s] = 0 for s > t", "A hidden score has none",
          "causal", "linear"),
    claim("masks.causal-dV", "dL/dV[s,v] = sum(t=s..T-1, A[t,s]*G[t,v])",
          "A value hears from itself and later queries", "causal", "linear"),
    claim("masks.causal-dK", "dL/dK[s,k] = sum(t=s..T-1, g_S[t,s]*Q[t,k])/sqrt(d_k)",
          "So does a key", "causal", "linear"),
    claim("masks.causal-dQ", "dL/dQ[t,k] = sum(s=0..t, g_S[t,s]*K[s,k])/sqrt(d_k)",
          "A query hears from earlier sources and itself", "causal", "linear"),
    claim("masks.last-row", "A[T-1,s] = softmax(s, S[T-1,s])", "The last query sees everything",
          "causal"),
    claim("masks.causal-full", "A[t,s] = softmax(s, S[t,s])", "A mask changes earlier rows",
          "causal", expected="fails", reason="what is hidden no longer shares in the sum"),
    claim("masks.causal-cut", "A[t,s] = where(s <= t, softmax(s, S[t,s]), 0)",
          "Zeros after softmax are another function", "causal", expected="fails",
          reason="the row then sums to less than one"),
    claim("masks.zero-score", "A[t,s] = softmax(s, where(s <= t, S[t,s], 0))",
          "A score of zero hides nothing", "causal", expected="fails", reason="exp(0) is one"),
    claim("masks.strict", "A[t,s] = softmax(s, where(s < t, S[t,s], -oo)) for t >= 1",
          "A mask that hides the diagonal too is another one", "causal", expected="fails",
          reason="a query then cannot see itself, and the first sees nothing"),
    claim("masks.acausal", "A[t,s] = softmax(s, where(s >= t, S[t,s], -oo))",
          "A transposed mask shows the future", "causal", expected="fails",
          reason="it hides the past and shows the future"),
    claim("masks.padded", "A[t,s] = m[s]*exp(S[t,s])/sum(r, m[r]*exp(S[t,r]))",
          "Padding: the same over the real sources", "padded"),
    claim("masks.renormalised", "A[t,s] = m[s]*F[t,s]/sum(r, m[r]*F[t,r])",
          "Weights masked after softmax must be divided by what is left", "padded"),
    claim("masks.padded-weight", "A[t,s] = 0", "A padded source has no weight", "padded",
          assumes=("m[s] = 0",)),
    claim("masks.padded-sum", "sum(s, m[s]*A[t,s]) = 1", "The real ones share all of it", "padded"),
    claim("masks.padded-dS", SOFTMAX, "The gradient of the scores under padding", "padded",
          "linear"),
    claim("masks.padded-dV", "dL/dV[s,v] = 0", "A padded value has no gradient", "padded",
          "linear", assumes=("m[s] = 0",)),
    claim("masks.padded-dK", "dL/dK[s,k] = 0", "Nor has a padded key", "padded", "linear",
          assumes=("m[s] = 0",)),
    claim("masks.after-softmax", "A[t,s] = m[s]*F[t,s]", "Masking after softmax is not enough",
          "padded", expected="fails", reason="the row then sums to less than one"),
    claim("masks.score-times-mask", "A[t,s] = C[t,s]", "Nor is a score times zero", "padded",
          expected="fails", reason="exp(0) is one: a padded source keeps a weight"),
    claim("masks.padded-query", "O[t,v] = 0", "A padded query still has an output", "padded",
          assumes=("m[t] = 0",), expected="fails",
          reason="the mask hides sources; the rows of padded queries are dropped by the loss"),
    claim("masks.both", "A[t,s] = where(s <= t, m[s]*exp(S[t,s]), 0)/sum(r=0..t, m[r]*exp(S[t,r]))",
          "Causal and padded: over what both allow", "both"),
    claim("masks.both-order",
          "softmax(s, where(m[s] > 0, where(s <= t, S[t,s], -oo), -oo)) = A[t,s]",
          "The order of masks is of no matter", "both"),
    claim("masks.both-dS", SOFTMAX, "The gradient of the scores under both", "both", "linear"),
    claim("masks.both-sum", "sum(s=0..t, m[s]*A[t,s]) = 1", "All weight is on both", "both"),
    claim("masks.sdpa-true", "", "torch's function: True takes part", "",
          probe="attention_mask.sdpa-true-takes-part"),
    claim("masks.sdpa-false", "", "Not: True is hidden", "",
          probe="attention_mask.sdpa-true-is-hidden", expected="fails",
          reason="a boolean mask of the function says what is allowed"),
    claim("masks.module-true", "", "torch's module: True is hidden", "",
          probe="attention_mask.module-true-is-hidden"),
    claim("masks.module-false", "", "Not: True takes part", "",
          probe="attention_mask.module-true-takes-part", expected="fails",
          reason="a boolean mask of the module says what is hidden"),
    claim("masks.causal-start", "", "With more sources than queries is_causal starts at the first",
          "", probe="attention_mask.causal-starts-at-the-first-source"),
    claim("masks.causal-end", "", "It does not end at the last", "",
          probe="attention_mask.causal-ends-at-the-last-source", expected="fails",
          reason="torch aligns it at the upper left; with cached keys the lower right is meant"),
    claim("masks.stack", "dh[l,t,b]/dh[-1,j,c] = 0 for t < j",
          "Through a whole causal stack no later input reaches a row", "causal_stack"),
    claim("masks.stack-weights", "dL/dW_v[l,b,i] = sum(s, g_v[l,s,b]*h[l-1,s,i])",
          "A layer's value map hears from every position", "causal_stack", "linear"),
    claim("masks.stack-padding", "m[t]*dh[l,t,b]/dh[-1,j,c] = 0",
          "A padded source changes no real row, at any depth", "padded_stack",
          assumes=("m[j] = 0",)),
    claim("masks.stack-padding-all", "dh[l,t,b]/dh[-1,j,c] = 0", "Its own row it does change",
          "padded_stack", assumes=("m[j] = 0",), expected="fails",
          reason="the residual route leads from a padded input to its own row"),
    claim("masks.stack-past", "dh[l,t,b]/dh[-1,j,c] = 0 for t > j", "Earlier inputs do reach it",
          "causal_stack", expected="fails", reason="the mask allows every earlier source"),
    claim("masks.stack-bidirectional", "dh[l,t,b]/dh[-1,j,c] = 0 for t < j",
          "Without the mask later inputs reach it", "padded_stack", expected="fails",
          reason="padding hides sources that are padded, not later ones"),
)  # fmt: skip


def topic() -> Topic:
    """Return the topic."""
    more = ("F[t,s] = softmax(s, S[t,s])", "C[t,s] = softmax(s, m[s]*S[t,s])")
    systems = (
        masked_system("causal", CAUSAL),
        masked_system("padded", PADDED, more),
        masked_system("both", BOTH),
        stack_system("causal_stack", CAUSAL),
        stack_system("padded_stack", PADDED),
    )
    return Topic(
        "masks",
        "Masks: minus infinity before softmax",
        {s.name: s for s in systems},
        CLAIMS,
        "Vaswani et al. (2017), section 3.2.3",
    )
