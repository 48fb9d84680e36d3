"""Multi-head attention: heads side by side, their sum, their gradients; shared keys; counts.

Source: Vaswani et al. (2017), Attention Is All You Need, section 3.2.2; Ainslie et al. (2023), GQA:
Training Generalized Multi-Query Transformer Models.
"""

from __future__ import annotations

from derive.building import build_system
from derive.claim import Claim
from derive.equation import System
from derive.topics import Topic, claim
from derive.topics._block_claims import Writer, answered, asked
from derive.topics._blocks import MEANINGS as BLOCK
from derive.topics._blocks import attention

SIZES = ("T", "T_s", "D", "N", "d_k", "d_v")
PRODUCT = "H[n,t,i] = sum(v, W_O[i,n,v]*O[n,t,v])"
MEANINGS = BLOCK | {
    "X": "rows that ask",
    "M": "rows that answer",
    "H": "a head's share of the output",
    "Y": "output rows",
}
GROUPED = (
    "Q[g,r,t,k] = sum(i, W_Q[g,r,k,i]*X[t,i])",
    "K[g,s,k] = sum(i, W_K[g,k,i]*M[s,i])",
    "V[g,s,v] = sum(i, W_V[g,v,i]*M[s,i])",
    "S[g,r,t,s] = sum(k, Q[g,r,t,k]*K[g,s,k])/sqrt(d_k)",
    "A[g,r,t,s] = softmax(s, S[g,r,t,s])",
    "O[g,r,t,v] = sum(s, A[g,r,t,s]*V[g,s,v])",
    "Y[t,i] = sum(g, r, v, W_O[i,g,r,v]*O[g,r,t,v])",
)
LINEAR = {"linear": "sum(t, i, G[t,i]*Y[t,i])"}


def multihead_system() -> System:
    """Return N heads with biases, queries from X, keys and values from M."""
    part = attention("X", "Y", source="M")
    return build_system(
        "multihead",
        SIZES,
        {"X": ("T", "D"), "M": ("T_s", "D"), **part.shapes, "G": ("T", "D")},
        (*part.equations, PRODUCT),
        losses=LINEAR,
        parameters=tuple(part.shapes),
        meanings=MEANINGS,
        positions=(),
    )


def grouped_system() -> System:
    """Return J groups of R queries that share keys and values."""
    return build_system(
        "grouped",
        ("T", "T_s", "D", "J", "R", "d_k", "d_v"),
        {
            "X": ("T", "D"),
            "M": ("T_s", "D"),
            "W_Q": ("J", "R", "d_k", "D"),
            "W_K": ("J", "d_k", "D"),
            "W_V": ("J", "d_v", "D"),
            "W_O": ("D", "J", "R", "d_v"),
            "G": ("T", "D"),
        },
        GROUPED,
        losses=LINEAR,
        parameters=("W_Q", "W_K", "W_V", "W_O"),
        meanings=MEANINGS,
        positions=(),
    )


def square_system() -> System:
    """Return the parameters where D = N d: an axis of width D is one of heads and one inside."""
    maps: dict[str, tuple[str, ...]] = {f"W_{n}": ("N", "d", "N", "d") for n in "QKVO"}
    biases: dict[str, tuple[str, ...]] = {f"b_{n}": ("N", "d") for n in "QKVO"}
    return build_system(
        "square_heads",
        ("N", "d"),
        maps | biases,
        (),
        parameters=(*maps, *biases),
        meanings=MEANINGS,
        positions=(),
    )


def gradients() -> tuple[Claim, ...]:
    """Return every gradient of multi-head attention."""
    w = Writer("multihead", "multihead")
    return (
        *w.attention("X", "Y", source="M"),
        w.gradient("X", "t,i", asked(), "The rows that ask: a sum over heads"),
        w.gradient("M", "s,i", answered("s"), "The rows that answer: keys and values"),
    )


MAPS = "W_Q, W_K, W_V, W_O"
CLAIMS = (
    claim("multihead.sum-of-heads", "Y[t,i] = sum(n, H[n,t,i]) + b_O[i]",
          "Concatenated heads times W_O are a sum of one product a head", "multihead"),
    claim("multihead.rows-sum-to-one", "sum(s, A[n,t,s]) = 1", "Each head's weights sum to one",
          "multihead"),
    claim("multihead.mean-weights", "sum(s, mean(n, A[n,t,s])) = 1",
          "So do their means over the heads", "multihead"),
    *gradients(),
    claim("multihead.one-softmax", "A[n,t,s] = softmax(s, sum(m, S[m,t,s]))",
          "Heads do not share one softmax", "multihead", expected="fails",
          reason="each head normalises its own scores"),
    claim("multihead.softmax-of-mean", "mean(n, A[n,t,s]) = softmax(s, mean(n, S[n,t,s]))",
          "A mean of weights is not the weights of a mean", "multihead", expected="fails",
          reason="softmax is not linear"),
    claim("multihead.weights-over-heads", "sum(n, A[n,t,s]) = 1",
          "Weights do not sum to one over the heads", "multihead", expected="fails",
          reason="softmax runs over the sources"),
    claim("multihead.model-width", "S[n,t,s] = sum(k, Q[n,t,k]*K[n,s,k])/sqrt(D)",
          "The head width scales, not the model width", "multihead", expected="fails",
          reason="q.k sums over d_k products"),
    claim("multihead.heads-unmixed", "Y[t,i] = sum(n, v, O[n,t,v]) + b_O[i]",
          "The heads are mixed by W_O", "multihead", expected="fails",
          reason="W_O weighs each head's features"),
    claim("multihead.grouped-dK", "dL/dK[g,s,k] = sum(r, t, g_S[g,r,t,s]*Q[g,r,t,k])/sqrt(d_k)",
          "Shared keys hear from every query of their group", "grouped", "linear"),
    claim("multihead.grouped-dV", "dL/dV[g,s,v] = sum(r, t, A[g,r,t,s]*g_O[g,r,t,v])",
          "So do shared values", "grouped", "linear"),
    claim("multihead.grouped-dW_K", "dL/dW_K[g,k,i] = sum(s, g_K[g,s,k]*M[s,i])",
          "The shared key projection", "grouped", "linear"),
    claim("multihead.grouped-dW_Q", "dL/dW_Q[g,r,k,i] = sum(t, g_Q[g,r,t,k]*X[t,i])",
          "Query projections are not shared", "grouped", "linear"),
    claim("multihead.grouped-dK-mean",
          "dL/dK[g,s,k] = mean(r, sum(t, g_S[g,r,t,s]*Q[g,r,t,k]))/sqrt(d_k)",
          "A sum over the group, not a mean", "grouped", "linear", expected="fails",
          reason="the keys are read once by each query of the group"),
    claim("multihead.grouped-keys", "count(W_Q) = R*count(W_K)",
          "R queries share a key map: a fraction 1/R of the numbers", "grouped"),
    claim("multihead.grouped-count", "count(W_K, W_V) = J*(d_k + d_v)*D",
          "Keys and values of J groups", "grouped"),
    claim("multihead.count", f"count({MAPS}) = 4*(N*d)^2",
          "Without biases 4 D^2 numbers, D = N d", "square_heads"),
    claim("multihead.count-biases", f"count({MAPS}, b_Q, b_K, b_V, b_O) = 4*(N*d)^2 + 4*N*d",
          "With torch's biases 4 D^2 + 4 D", "square_heads"),
    claim("multihead.count-by-heads", f"count({MAPS}) = 4*N*(N*d)^2",
          "More heads are no more numbers", "square_heads", expected="fails",
          reason="each head is narrower: N heads of width D/N"),
)  # fmt: skip


def topic() -> Topic:
    """Return the topic."""
    systems = (multihead_system(), grouped_system(), square_system())
    return Topic(
        "multihead",
        "Multi-head attention",
        {s.name: s for s in systems},
        CLAIMS,
        "Vaswani et al. (2017), section 3.2.2; Ainslie et al. (2023)",
    )
