"""Attention: scores, weights, outputs, every gradient; additive scores; permuted sources.

Source: Vaswani et al. (2017), Attention Is All You Need, section 3.2.1; Bahdanau, Cho & Bengio
(2015), Neural Machine Translation by Jointly Learning to Align and Translate, appendix A.1.2.
"""

from __future__ import annotations

from derive.building import build_system
from derive.claim import Claim
from derive.equation import System
from derive.topics import Topic, claim

MEANINGS = {
    "X": "rows that ask",
    "M": "rows that answer (the memory)",
    "W_Q": "query projection",
    "W_K": "key projection",
    "W_V": "value projection",
    "Q": "queries",
    "K": "keys",
    "V": "values",
    "S": "scores",
    "A": "weights: row t over its sources",
    "O": "outputs",
    "G": "dL/dO from above",
    "P": "permutation of the sources",
    "L": "the loss",
}
LOSS = {"linear": "sum(t, v, G[t,v]*O[t,v])"}
WEIGHTS = {"W_Q": ("d_k", "D"), "W_K": ("d_k", "D"), "W_V": ("d_v", "D")}
CORE = (
    "S[t,s] = sum(k, Q[t,k]*K[s,k])/sqrt(d_k)",
    "A[t,s] = softmax(s, S[t,s])",
    "O[t,v] = sum(s, A[t,s]*V[s,v])",
)


def projections(source: str, right: bool = False) -> tuple[str, ...]:
    """Return queries from X, keys and values from a source, weights (out, in) or (in, out)."""
    return tuple(
        f"{to}[{t},{k}] = sum(i, W_{to}[{'i,' + k if right else k + ',i'}]*{of}[{t},i])"
        for to, t, k, of in (("Q", "t", "k", "X"), ("K", "s", "k", source), ("V", "s", "v", source))
    )


def attention_system() -> System:
    """Return cross-attention: T rows of X ask, T_s rows of M answer; Q = X W_Q^T."""
    return build_system(
        "attention",
        ("T", "T_s", "D", "d_k", "d_v"),
        {"X": ("T", "D"), "M": ("T_s", "D"), **WEIGHTS, "G": ("T", "d_v")},
        projections("M") + CORE,
        losses=LOSS,
        meanings=MEANINGS,
        positions=(),
    )


def self_system(name: str = "self_attention", right: bool = False, convention: str = "row",
                sharp: str = "d_k") -> System:  # fmt: skip
    """Return self-attention: the rows of X ask and answer.

    Args:
        name: Of the system.
        right: Whether Q = X W_Q, weights (in, out), in place of Q = X W_Q^T.
        convention: ``row`` or ``column``: how a vector stands in matrix notation.
        sharp: The size whose root divides the scores.
    """
    weights = {n: (s[::-1] if right else s) for n, s in WEIGHTS.items()}
    score = CORE[0].replace("d_k)", f"{sharp})")
    return build_system(
        name,
        ("T", "D", "d_k", "d_v"),
        {"X": ("T", "D"), **weights, "G": ("T", "d_v")},
        (*projections("X", right), score, *CORE[1:]),
        losses=LOSS,
        meanings=MEANINGS,
        positions=(),
        convention=convention,
    )


def additive_system() -> System:
    """Return additive attention: score w . tanh(W q + U k) for every query and source."""
    return build_system(
        "additive",
        ("T", "T_s", "d_q", "d_k", "d_v", "H"),
        {
            "Q": ("T", "d_q"),
            "K": ("T_s", "d_k"),
            "V": ("T_s", "d_v"),
            "W_a": ("H", "d_q"),
            "U_a": ("H", "d_k"),
            "w_a": ("H",),
            "G": ("T", "d_v"),
        },
        (
            "Z[t,s,j] = sum(q, W_a[j,q]*Q[t,q]) + sum(k, U_a[j,k]*K[s,k])",
            "R[t,s,j] = tanh(Z[t,s,j])",
            "S[t,s] = sum(j, w_a[j]*R[t,s,j])",
            *CORE[1:],
        ),
        losses=LOSS,
        meanings=MEANINGS,
        positions=(),
    )


def scores_system() -> System:
    """Return both scores of the same queries and keys."""
    return build_system(
        "two_scores",
        ("T", "T_s", "d_k"),
        {"Q": ("T", "d_k"), "K": ("T_s", "d_k"), "W_a": ("d_k", "d_k"), "w_a": ("d_k",)},
        (
            CORE[0],
            "E[t,s] = sum(j, w_a[j]*tanh(sum(k, W_a[j,k]*Q[t,k]) + K[s,j]))",
        ),
        meanings=MEANINGS | {"E": "additive scores"},
        positions=(),
    )


def permuted_system() -> System:
    """Return attention over sources, and over the same sources in another order."""
    return build_system(
        "attention_permuted",
        ("T", "T_s", "d_k", "d_v"),
        {"Q": ("T", "d_k"), "K": ("T_s", "d_k"), "V": ("T_s", "d_v"), "P": ("T_s", "T_s")},
        (
            *CORE,
            "Kp[s,k] = sum(r, P[s,r]*K[r,k])",
            "Vp[s,v] = sum(r, P[s,r]*V[r,v])",
            "Sp[t,s] = sum(k, Q[t,k]*Kp[s,k])/sqrt(d_k)",
            "Ap[t,s] = softmax(s, Sp[t,s])",
            "Op[t,v] = sum(s, Ap[t,s]*Vp[s,v])",
            "On[t,v] = sum(s, Ap[t,s]*V[s,v])",
        ),
        permutations=("P",),
        meanings=MEANINGS
        | {n + "p": MEANINGS[n] + ", sources permuted" for n in "KVSAO"}
        | {"On": "outputs from permuted keys and values in the old order"},
        positions=(),
    )


def gradients(name: str, sources: str) -> tuple[Claim, ...]:
    """Return the vector-Jacobian products from outputs to parameters."""
    return (
        claim(f"attention.{name}-dV", "dL/dV = A.T @ g_O",
              "A value hears from every query, by its weight", name, "linear"),
        claim(f"attention.{name}-dA", "dL/dA = g_O @ V.T", "The gradient of the weights", name,
              "linear"),
        claim(f"attention.{name}-dS", "dL/dS[t,s] = A[t,s]*(g_A[t,s] - sum(r, A[t,r]*g_A[t,r]))",
              "Through softmax: minus the row's mean under its weights", name, "linear"),
        claim(f"attention.{name}-dS-output",
              "dL/dS[t,s] = A[t,s]*(g_A[t,s] - sum(v, g_O[t,v]*O[t,v]))",
              "That mean is the inner product of the output and its gradient", name, "linear"),
        claim(f"attention.{name}-dQ", "dL/dQ = g_S @ K/sqrt(d_k)", "The gradient of the queries",
              name, "linear"),
        claim(f"attention.{name}-dK", "dL/dK = g_S.T @ Q/sqrt(d_k)", "The gradient of the keys",
              name, "linear"),
        claim(f"attention.{name}-dW_Q", "dL/dW_Q = g_Q.T @ X", "The query projection", name,
              "linear"),
        claim(f"attention.{name}-dW_K", f"dL/dW_K = g_K.T @ {sources}", "The key projection", name,
              "linear"),
        claim(f"attention.{name}-dW_V", f"dL/dW_V = g_V.T @ {sources}", "The value projection",
              name, "linear"),
    )  # fmt: skip


FORWARD = (
    claim("attention.queries", "Q = X @ W_Q.T", "Queries, rows times a transposed map",
          "attention"),
    claim("attention.keys", "K = M @ W_K.T", "Keys come from the sources", "attention"),
    claim("attention.queries-right", "Q = X @ W_Q", "The same with weights (in, out)",
          "attention_right"),
    claim("attention.query-column", "Q[t] = W_Q @ X[t]", "Vectors as columns",
          "attention_column"),
    claim("attention.scores", "S = Q @ K.T/sqrt(d_k)", "Scores", "attention"),
    claim("attention.bilinear", "S[t,s] = sum(i, j, X[t,i]*sum(k, W_Q[k,i]*W_K[k,j])*M[s,j])"
          "/sqrt(d_k)", "A score is a bilinear form of two rows", "attention"),
    claim("attention.rows-sum-to-one", "sum(s, A[t,s]) = 1", "The weights of a query sum to one",
          "attention"),
    claim("attention.weights-positive", "A[t,s] >= 0", "No weight is negative", "attention"),
    claim("attention.weights-at-most-one", "A[t,s] <= 1", "No weight is above one", "attention"),
    claim("attention.outputs", "O = A @ V", "Outputs mix value rows", "attention"),
    claim("attention.output-below", "O[t,v] <= c", "An output coordinate is at most the largest "
          "value coordinate: outputs are convex combinations", "bounded",
          assumes=("V[s,v] <= c",)),
    claim("attention.output-above", "O[t,v] >= c", "And at least the smallest", "bounded",
          assumes=("V[s,v] >= c",)),
    claim("attention.equal-scores", "O[t,v] = mean(s, V[s,v])",
          "Without preference, the output is the mean value", "attention",
          assumes=("X[t,i] = 0",)),
    claim("attention.columns-sum-to-one", "sum(t, A[t,s]) = 1", "Columns need not sum to one",
          "attention", expected="fails", reason="softmax runs over the sources of one query"),
    claim("attention.symmetric", "A[t,s] = A[s,t]", "Self-attention need not be symmetric",
          "self_attention", expected="fails",
          reason="queries and keys have projections of their own, and rows are normalised apart"),
    claim("attention.symmetric-scores", "S[t,s] = S[s,t]", "Nor are its scores", "self_attention",
          expected="fails", reason="queries and keys have projections of their own"),
    claim("attention.keys-mixed", "O = A @ K", "Weights mix values, not keys", "same_width",
          expected="fails", reason="O = A V"),
    claim("attention.unscaled", "S = Q @ K.T", "The root of the head width divides",
          "attention", expected="fails", reason="the scores are divided by sqrt(d_k)"),
    claim("attention.model-width", "S[t,s] = sum(k, Q[t,k]*K[s,k])/sqrt(D)",
          "Not the root of the model width", "attention", expected="fails",
          reason="the variance of q.k grows with the head width d_k, over which it sums"),
)  # fmt: skip
BACKWARD = (
    *gradients("attention", "M"),
    claim("attention.dX", "dL/dX = g_Q @ W_Q", "Cross-attention: the rows that ask", "attention",
          "linear"),
    claim("attention.dM", "dL/dM = g_K @ W_K + g_V @ W_V",
          "The memory hears through keys and values", "attention", "linear"),
    *gradients("self_attention", "X"),
    claim("attention.self-dX", "dL/dX = g_Q @ W_Q + g_K @ W_K + g_V @ W_V",
          "Self-attention: a row asks, answers and is mixed", "self_attention", "linear"),
    claim("attention.right-dW_Q", "dL/dW_Q = X.T @ g_Q", "The query projection, weights (in, out)",
          "attention_right", "linear"),
    claim("attention.right-dX", "dL/dX = g_Q @ W_Q.T + g_K @ W_K.T + g_V @ W_V.T",
          "The total, weights (in, out)", "attention_right", "linear"),
    claim("attention.column-dX", "dL/dX[t] = W_Q.T @ g_Q[t] + W_K.T @ g_K[t] + W_V.T @ g_V[t]",
          "The total, vectors as columns", "attention_column", "linear"),
    claim("attention.score-gradients-cancel", "sum(s, dL/dS[t,s]) = 0",
          "The gradients of a row of scores cancel: a shift of the row changes nothing",
          "attention", "linear"),
    claim("attention.jacobian", "dA[t,s]/dS[t,r] = A[t,s]*(delta(s,r) - A[t,r])",
          "The Jacobian of a row of weights", "attention"),
    claim("attention.output-by-value", "partial O[t,v]/partial V[s,v] = A[t,s]",
          "A weight is the sensitivity of the output to a value", "attention"),
    claim("attention.dX-no-keys", "dL/dX = g_Q @ W_Q + g_V @ W_V", "The key path counts too",
          "self_attention", "linear", expected="fails", reason="each row is a key as well"),
    claim("attention.dX-no-values", "dL/dX = g_Q @ W_Q + g_K @ W_K", "So does the value path",
          "self_attention", "linear", expected="fails", reason="each row is a value as well"),
    claim("attention.dQ-unscaled", "dL/dQ = g_S @ K", "The scale stays in the gradient",
          "attention", "linear", expected="fails", reason="S = Q K^T/sqrt(d_k)"),
    claim("attention.dK-transposed", "dL/dK = g_S @ Q/sqrt(d_k)",
          "The scores' gradient is transposed for the keys", "self_attention", "linear",
          expected="fails", reason="a key hears from the queries: the sum is over t"),
    claim("attention.dV-transposed", "dL/dV = A @ g_O", "The weights are transposed for the values",
          "self_attention", "linear", expected="fails", reason="the sum is over the queries"),
    claim("attention.dS-diagonal", "dL/dS = A*(1 - A)*g_A", "Softmax is not elementwise",
          "attention", "linear", expected="fails", reason="the weights of a row share their sum"),
)  # fmt: skip
OTHER = (
    claim("attention.additive-dw", "dL/dw_a[j] = sum(t, s, g_S[t,s]*R[t,s,j])",
          "Additive attention: its score vector", "additive", "linear"),
    claim("attention.additive-dZ", "dL/dZ[t,s,j] = g_S[t,s]*w_a[j]*(1 - R[t,s,j]^2)",
          "Its hidden preactivations", "additive", "linear"),
    claim("attention.additive-dW", "dL/dW_a[j,q] = sum(t, s, g_Z[t,s,j]*Q[t,q])",
          "Its query map hears from every pair", "additive", "linear"),
    claim("attention.additive-dU", "dL/dU_a[j,k] = sum(t, s, g_Z[t,s,j]*K[s,k])", "Its key map",
          "additive", "linear"),
    claim("attention.additive-dQ", "dL/dQ[t,q] = sum(s, j, g_Z[t,s,j]*W_a[j,q])", "Its queries",
          "additive", "linear"),
    claim("attention.additive-dK", "dL/dK[s,k] = sum(t, j, g_Z[t,s,j]*U_a[j,k])", "Its keys",
          "additive", "linear"),
    claim("attention.additive-is-dot", "E[t,s] = S[t,s]", "It is another score than q.k",
          "two_scores", expected="fails", reason="tanh of a sum is no product"),
    claim("attention.permuted-scores", "Sp[t,s] = sum(r, P[s,r]*S[t,r])",
          "Permuted keys permute the scores", "attention_permuted"),
    claim("attention.permuted-weights", "Ap[t,s] = sum(r, P[s,r]*A[t,r])", "And the weights",
          "attention_permuted"),
    claim("attention.permuted-output", "Op[t,v] = O[t,v]",
          "Permuting keys and values together changes no output", "attention_permuted",
          using=("attention.permuted-weights",)),
    claim("attention.permuted-keys-alone", "On[t,v] = O[t,v]", "Permuting the keys alone does",
          "attention_permuted", expected="fails", reason="weights then meet other values"),
)  # fmt: skip


def same_width_system() -> System:
    """Return attention with keys as wide as values."""
    return build_system(
        "same_width",
        ("T", "T_s", "d"),
        {"Q": ("T", "d"), "K": ("T_s", "d"), "V": ("T_s", "d")},
        tuple(e.replace("d_k", "d") for e in CORE),
        meanings=MEANINGS,
        positions=(),
    )


def bounded_system() -> System:
    """Return attention with a bound of all value entries."""
    return build_system(
        "bounded",
        ("T", "T_s", "d_v"),
        {"S": ("T", "T_s"), "V": ("T_s", "d_v"), "c": ()},
        CORE[1:],
        meanings=MEANINGS | {"c": "a bound of the value entries"},
        positions=(),
    )


def topic() -> Topic:
    """Return the topic."""
    systems = (
        attention_system(),
        self_system(),
        self_system("attention_right", right=True),
        self_system("attention_column", convention="column"),
        additive_system(),
        scores_system(),
        permuted_system(),
        same_width_system(),
        bounded_system(),
    )
    return Topic(
        "attention",
        "Attention: scores, weights, outputs, gradients",
        {s.name: s for s in systems},
        FORWARD + BACKWARD + OTHER,
        "Vaswani et al. (2017), section 3.2.1; Bahdanau, Cho & Bengio (2015), appendix A.1.2",
    )
