"""Token embeddings: a lookup is a one-hot product; a row's gradient adds its uses.

Source: Goodfellow, Bengio & Courville (2016), section 12.4.2; torch.nn.Embedding.
"""

from __future__ import annotations

from derive.building import build_system
from derive.equation import System
from derive.topics import Topic, claim

MEANINGS = {
    "Y": "one-hot rows of the tokens",
    "E": "embedding table, one row per token of the vocabulary",
    "e": "embedded token at each position",
    "W_x": "input weights",
    "W_h": "recurrent weights",
    "b_h": "bias of the state",
    "z": "preactivation",
    "h": "recurrent state; h[-1] is the initial state",
    "y": "target of the final state",
    "L": "the loss",
}


def embedding_system() -> System:
    """Return embedded tokens read by a recurrent network, so that their gradients differ."""
    return build_system(
        "embedding",
        ("T", "V", "K", "H"),
        {
            "Y": ("T", "V"),
            "E": ("V", "K"),
            "W_x": ("H", "K"),
            "W_h": ("H", "H"),
            "b_h": ("H",),
            "y": ("H",),
        },
        (
            "e[t,k] = sum(v, Y[t,v]*E[v,k])",
            "z[t,j] = sum(k, W_x[j,k]*e[t,k]) + sum(r, W_h[j,r]*h[t-1,r]) + b_h[j]",
            "h[t,j] = tanh(z[t,j])",
        ),
        losses={"final": "1/2*sum(j, (h[T-1,j] - y[j])^2)"},
        targets=("y",),
        onehot=("Y",),
        meanings=MEANINGS,
    )


def topic() -> Topic:
    """Return the topic."""
    s, loss = "embedding", "final"
    return Topic(
        "embedding",
        "Token embeddings",
        {s: embedding_system()},
        (
            claim("embedding.lookup", "e = Y @ E", "A lookup is a product with one-hot rows", s),
            claim("embedding.own-row", "Y[t,v]*e[t,k] = Y[t,v]*E[v,k]",
                  "Where the token is v, the embedding is row v", s),
            claim("embedding.other-row", "Y[t,v]*e[t,k] = Y[t,v]*E[w,k]",
                  "and no other row", s, expected="fails",
                  reason="the one-hot row selects the token's own row"),
            claim("embedding.jacobian", "de[t,k]/dE[v,q] = Y[t,v]*delta(k,q)",
                  "An embedding depends on its token's own row only", s),
            claim("embedding.jacobian-all-rows", "de[t,k]/dE[v,q] = delta(k,q)",
                  "not on every row", s, expected="fails", reason="other rows are not looked up"),
            claim("embedding.use", "g_e[t] = g_z[t] @ W_x",
                  "Each use receives a signal of its own", s, loss),
            claim("embedding.gradient", "dL/dE[v,k] = sum(t, Y[t,v]*g_e[t,k])",
                  "A row's gradient adds the signals of all its uses", s, loss),
            claim("embedding.gradient-matrix", "dL/dE = Y.T @ g_e", "The same as a product", s,
                  loss),
            claim("embedding.gradient-closed", "dL/dE = sum(t, Y[t].T @ (g_z[t] @ W_x))",
                  "and with the signals written out", s, loss),
            claim("embedding.gradient-total", "sum(v, dL/dE[v,k]) = sum(t, g_e[t,k])",
                  "The rows together receive every signal once", s, loss),
            claim("embedding.only-last-use", "dL/dE[v,k] = Y[T-1,v]*g_e[T-1,k]",
                  "The last use alone is not the gradient", s, loss, expected="fails",
                  reason="a token that occurs twice is used twice"),
            claim("embedding.every-row", "dL/dE[v,k] = sum(t, g_e[t,k])",
                  "A row receives nothing from other tokens", s, loss, expected="fails",
                  reason="the one-hot factor is lost"),
            claim("embedding.averaged", "dL/dE[v,k] = mean(t, Y[t,v]*g_e[t,k])",
                  "The uses add, they are not averaged", s, loss, expected="fails",
                  reason="the table is shared, not averaged, over positions"),
        ),
        "Goodfellow, Bengio & Courville (2016), section 12.4.2; torch.nn.Embedding",
    )  # fmt: skip
