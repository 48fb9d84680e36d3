"""Softmax and cross-entropy: Jacobian, sums, shift invariance, log-sum-exp, gradient, means.

Source: Goodfellow, Bengio & Courville (2016), Deep Learning, sections 4.1 and 6.2.2.
"""

from __future__ import annotations

from derive.building import build_system
from derive.equation import System
from derive.topics import Topic, claim

MEANINGS = {
    "a": "logits",
    "p": "class probabilities",
    "lse": "log-sum-exp of the logits",
    "Y": "one-hot target",
    "s": "a shift of all logits",
    "m": "weight of a position: 1 kept, 0 dropped",
    "l": "cross-entropy in nats",
    "n_kept": "number of kept positions",
    "L": "the loss",
}


def row_system() -> System:
    """Return one row of C logits with its cross-entropy."""
    return build_system(
        "softmax",
        ("T", "C"),
        {"a": ("T", "C"), "Y": ("T", "C"), "s": ("T",)},
        (
            "p[t,c] = softmax(c, a[t,c])",
            "lse[t] = logsumexp(c, a[t,c])",
            "l[t] = lse[t] - sum(c, Y[t,c]*a[t,c])",
        ),
        losses={"sum": "sum(t, l[t])", "mean": "mean(t, l[t])"},
        onehot=("Y",),
        meanings=MEANINGS,
    )


def kept_system() -> System:
    """Return cross-entropy averaged over the kept positions."""
    return build_system(
        "softmax_kept",
        ("T", "C"),
        {"a": ("T", "C"), "Y": ("T", "C"), "m": ("T",)},
        (
            "p[t,c] = softmax(c, a[t,c])",
            "l[t] = -sum(c, Y[t,c]*log(p[t,c]))",
            "n_kept = sum(t, m[t])",
        ),
        losses={"mean_kept": "sum(t, m[t]*l[t])/n_kept"},
        onehot=("Y",),
        meanings=MEANINGS,
    )


def topic() -> Topic:
    """Return the topic."""
    return Topic(
        "softmax_ce",
        "Softmax and cross-entropy",
        {"softmax": row_system(), "softmax_kept": kept_system()},
        (
            claim("softmax_ce.normalised", "sum(c, p[t,c]) = 1", "Probabilities sum to one",
                  "softmax"),
            claim("softmax_ce.jacobian", "dp[t,c]/da[t,d] = p[t,c]*(delta(c,d) - p[t,d])",
                  "The Jacobian of softmax", "softmax"),
            claim("softmax_ce.jacobian-matrix", "dp[t]/da[t] = diag(p[t]) - p[t].T @ p[t]",
                  "The Jacobian as a matrix", "softmax"),
            claim("softmax_ce.row-sums", "sum(d, dp[t,c]/da[t,d]) = 0",
                  "Each row of the Jacobian sums to zero", "softmax"),
            claim("softmax_ce.column-sums", "sum(c, dp[t,c]/da[t,d]) = 0",
                  "Each column sums to zero: the probabilities keep their sum", "softmax"),
            claim("softmax_ce.shift", "softmax(c, a[t,c] + s[t]) = p[t,c]",
                  "A common shift of the logits changes nothing", "softmax"),
            claim("softmax_ce.log-sum-exp-shift",
                  "logsumexp(c, a[t,c] - s[t]) + s[t] = lse[t]",
                  "Log-sum-exp may be shifted by any s, the maximum too", "softmax"),
            claim("softmax_ce.log-sum-exp-gradient", "dlse[t]/da[t,c] = p[t,c]",
                  "Softmax is the gradient of log-sum-exp", "softmax"),
            claim("softmax_ce.log-probability", "log(p[t,c]) = a[t,c] - lse[t]",
                  "A log-probability is a logit minus log-sum-exp", "softmax"),
            claim("softmax_ce.loss", "l[t] = -log(sum(c, Y[t,c]*p[t,c]))",
                  "Cross-entropy is minus the log-probability of the target", "softmax"),
            claim("softmax_ce.gradient", "dL/da[t,c] = p[t,c] - Y[t,c]",
                  "The gradient of summed cross-entropy", "softmax", "sum"),
            claim("softmax_ce.gradient-mean", "dL/da = (p - Y)/T",
                  "A mean divides by T once", "softmax", "mean"),
            claim("softmax_ce.gradient-sums-to-zero", "sum(c, dL/da[t,c]) = 0",
                  "The gradient of a row sums to zero", "softmax", "mean"),
            claim("softmax_ce.gradient-kept",
                  "dL/da[t,c] = m[t]*(p[t,c] - Y[t,c])/sum(u, m[u])",
                  "A mean over kept positions divides by their number", "softmax_kept",
                  "mean_kept"),
            claim("softmax_ce.diagonal-only",
                  "dp[t,c]/da[t,d] = delta(c,d)*p[t,c]*(1 - p[t,c])",
                  "The diagonal alone is not the Jacobian", "softmax", expected="fails",
                  reason="the probabilities share one denominator"),
            claim("softmax_ce.kept-over-all",
                  "dL/da[t,c] = m[t]*(p[t,c] - Y[t,c])/T",
                  "Dividing by T with dropped positions is another loss", "softmax_kept",
                  "mean_kept", expected="fails", reason="T counts the dropped positions too"),
        ),
        "Goodfellow, Bengio & Courville (2016), sections 4.1 and 6.2.2",
    )  # fmt: skip
