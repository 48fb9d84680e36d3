"""What attention costs: its multiplications, counted as the entries of the products it sums.

A matrix product sums products; there is one multiplication for each, and the tensor that holds them
all has as many entries. So every count follows from shapes.
Source: Vaswani et al. (2017), Attention Is All You Need, section 4, table 1.
"""

from __future__ import annotations

from derive.building import build_system
from derive.equation import System
from derive.topics import Topic, claim

MEANINGS = {
    "X": "rows",
    "W_Q": "query projection",
    "W_K": "key projection",
    "W_V": "value projection",
    "W_O": "output projection",
    "A": "weights",
    "Q": "queries",
    "K": "keys",
    "V": "values",
    "M_Q": "products of the query projection",
    "M_K": "products of the key projection",
    "M_V": "products of the value projection",
    "M_S": "products of the scores",
    "M_A": "products of weights and values",
    "M_O": "products of the output projection",
    "H": "rows of a sequence B times as long",
    "L_Q": "its queries' products",
    "L_S": "its scores' products",
    "R": "products of one recurrent step a row",
    "W_h": "recurrent weights",
}
LAYER = (
    "M_Q[t,k,i] = W_Q[k,i]*X[t,i]",
    "M_K[t,k,i] = W_K[k,i]*X[t,i]",
    "M_V[t,v,i] = W_V[v,i]*X[t,i]",
    "Q[t,k] = sum(i, M_Q[t,k,i])",
    "K[t,k] = sum(i, M_K[t,k,i])",
    "V[t,v] = sum(i, M_V[t,v,i])",
    "M_S[t,s,k] = Q[t,k]*K[s,k]",
    "A[t,s] = softmax(s, sum(k, M_S[t,s,k])/sqrt(d_k))",
    "M_A[t,s,v] = A[t,s]*V[s,v]",
    "M_O[t,i,v] = W_O[i,v]*sum(s, M_A[t,s,v])",
)
LONGER = (
    "L_Q[b,t,k,i] = W_Q[k,i]*H[b,t,i]",
    "L_S[b,t,c,s,k] = sum(i, L_Q[b,t,k,i])*sum(i, L_Q[c,s,k,i])",
    "M_Q[t,k,i] = W_Q[k,i]*X[t,i]",
    "M_S[t,s,k] = sum(i, M_Q[t,k,i])*sum(i, M_Q[s,k,i])",
    "R[t,i,j] = W_h[i,j]*X[t,j]",
)
EVERY = "count(M_Q, M_K, M_V, M_S, M_A, M_O)"


def layer_system() -> System:
    """Return the products of one attention layer over T rows."""
    return build_system(
        "attention_products",
        ("T", "D", "d_k", "d_v"),
        {
            "X": ("T", "D"),
            "W_Q": ("d_k", "D"),
            "W_K": ("d_k", "D"),
            "W_V": ("d_v", "D"),
            "W_O": ("D", "d_v"),
        },
        LAYER,
        meanings=MEANINGS,
        positions=(),
    )


def longer_system() -> System:
    """Return the products over T rows, and over B T rows."""
    return build_system(
        "longer",
        ("B", "T", "D", "d_k"),
        {"H": ("B", "T", "D"), "X": ("T", "D"), "W_Q": ("d_k", "D"), "W_h": ("D", "D")},
        LONGER,
        meanings=MEANINGS,
        positions=(),
    )


CLAIMS = (
    claim("costs.projections", "count(M_Q, M_K, M_V) = T*D*(2*d_k + d_v)",
          "Three projections: T D times their widths", "attention_products"),
    claim("costs.scores", "count(M_S) = T^2*d_k", "Scores: every query with every key",
          "attention_products"),
    claim("costs.values", "count(M_A) = T^2*d_v", "Weights times values", "attention_products"),
    claim("costs.output", "count(M_O) = T*D*d_v", "The output projection", "attention_products"),
    claim("costs.layer", f"{EVERY} = 2*T*D*(d_k + d_v) + T^2*(d_k + d_v)",
          "All six products of a layer", "attention_products"),
    claim("costs.outputs", "sum(i, M_Q[t,k,i]) = Q[t,k]", "What is counted is what is added up",
          "attention_products"),
    claim("costs.longer-scores", "count(L_S) = B^2*count(M_S)",
          "A sequence B times as long has B^2 times the scores: four times for twice", "longer"),
    claim("costs.longer-projections", "count(L_Q) = B*count(M_Q)",
          "And B times the projections", "longer"),
    claim("costs.recurrent", "count(R) = T*D^2", "A recurrence: T D^2", "longer"),
    claim("costs.difference", "T*D^2 - T^2*D = T*D*(D - T)",
          "T^2 D is below T D^2 exactly where T is below D", "longer"),
    claim("costs.scores-linear", "count(L_S) = B*count(M_S)", "Scores are not linear in the length",
          "longer", expected="fails", reason="every row is scored with every row"),
    claim("costs.no-values", f"{EVERY} = 2*T*D*(d_k + d_v) + T^2*d_k",
          "Weights times values cost as much again", "attention_products", expected="fails",
          reason="T^2 d_v multiplications"),
    claim("costs.always-less", "T^2*D <= T*D^2", "Attention is not always cheaper", "longer",
          expected="fails", reason="only where the sequence is shorter than it is wide"),
)  # fmt: skip


def topic() -> Topic:
    """Return the topic."""
    systems = (layer_system(), longer_system())
    return Topic(
        "costs",
        "What attention costs",
        {s.name: s for s in systems},
        CLAIMS,
        "Vaswani et al. (2017), section 4, table 1",
    )
