"""What stands on the last layer: a head a token, a pooled head, the next token, what counts.

Source: Vaswani et al. (2017), Attention Is All You Need, section 3.4; Devlin et al. (2019), BERT;
Radford et al. (2018), Improving Language Understanding by Generative Pre-Training.
"""

from __future__ import annotations

from derive.building import build_system
from derive.equation import System
from derive.topics import Topic, claim

MEANINGS = {
    "h": "last layer's rows",
    "W": "head weights",
    "b": "head bias",
    "a": "logits",
    "p": "class probabilities",
    "Y": "one-hot target",
    "X": "one-hot tokens",
    "l": "cross-entropy in nats",
    "m": "1 for a real row, 0 for padding",
    "n": "number of real rows",
    "r": "pooled row",
    "L": "the loss",
}
ROW = "a[t,c] = sum(i, W[c,i]*h[t,i]) + b[c]"
PROBABILITY = "p[t,c] = softmax(c, a[t,c])"
HEAD = {"h": ("T", "D"), "W": ("C", "D"), "b": ("C",)}
TOKEN = (ROW, PROBABILITY, "l[t] = -sum(c, Y[t,c]*log(p[t,c]))", "n = sum(t, m[t])")
POOLED = (
    "n = sum(t, m[t])",
    "r[i] = sum(t, m[t]*h[t,i])/n",
    "a[c] = sum(i, W[c,i]*r[i]) + b[c]",
    "p[c] = softmax(c, a[c])",
)
NEXT = (ROW, PROBABILITY)
SHIFTED = "-sum(t=0..T-2, sum(c, X[t+1,c]*log(p[t,c])))/(T - 1)"


def token_system() -> System:
    """Return a head a token, its loss averaged over the real rows."""
    return build_system(
        "token_head",
        ("T", "D", "C"),
        {**HEAD, "Y": ("T", "C"), "m": ("T",)},
        TOKEN,
        losses={"kept": "sum(t, m[t]*l[t])/n"},
        parameters=("W", "b"),
        onehot=("Y",),
        binary=("m",),
        meanings=MEANINGS,
    )


def pooled_system() -> System:
    """Return a head on the mean of the real rows."""
    return build_system(
        "pooled_head",
        ("T", "D", "C"),
        {**HEAD, "Y": ("C",), "m": ("T",)},
        POOLED,
        losses={"cross_entropy": "-sum(c, Y[c]*log(p[c]))"},
        parameters=("W", "b"),
        onehot=("Y",),
        binary=("m",),
        meanings=MEANINGS,
    )


def next_system() -> System:
    """Return a head that predicts the next token at every position but the last."""
    return build_system(
        "next_token",
        ("T", "D", "C"),
        {**HEAD, "X": ("T", "C")},
        NEXT,
        losses={"next": SHIFTED},
        parameters=("W", "b"),
        onehot=("X",),
        meanings=MEANINGS,
    )


CLAIMS = (
    claim("heads.token-gradient", "dL/da[t,c] = m[t]*(p[t,c] - Y[t,c])/n",
          "A head a token: the gradient of its logits over the real rows", "token_head", "kept"),
    claim("heads.token-dW", "dL/dW[c,i] = sum(t, g_a[t,c]*h[t,i])", "Its weights", "token_head",
          "kept"),
    claim("heads.token-dh", "dL/dh[t,i] = sum(c, g_a[t,c]*W[c,i])", "Its rows", "token_head",
          "kept"),
    claim("heads.token-padded", "dL/dh[t,i] = 0", "A padded row has no gradient from its head",
          "token_head", "kept", assumes=("m[t] = 0",)),
    claim("heads.token-all", "dL/da[t,c] = (p[t,c] - Y[t,c])/T",
          "The mean is over real rows, not over all", "token_head", "kept", expected="fails",
          reason="padded rows do not count"),
    claim("heads.token-unmasked", "dL/da[t,c] = (p[t,c] - Y[t,c])/n",
          "Padded rows have no gradient", "token_head", "kept", expected="fails",
          reason="their loss is left out of the sum"),
    claim("heads.pooled", "dL/dh[t,i] = m[t]/n*g_r[i]", "Pooling: each real row has an equal share",
          "pooled_head", "cross_entropy"),
    claim("heads.pooled-dr", "dL/dr[i] = sum(c, (p[c] - Y[c])*W[c,i])", "The pooled row",
          "pooled_head", "cross_entropy"),
    claim("heads.pooled-dW", "dL/dW[c,i] = (p[c] - Y[c])*r[i]", "The head's weights",
          "pooled_head", "cross_entropy"),
    claim("heads.pooled-padded", "dr[i]/dh[t,j] = 0", "A padded row is not pooled", "pooled_head",
          assumes=("m[t] = 0",)),
    claim("heads.pooled-full", "r[i] = mean(t, h[t,i])", "Without padding it is the mean",
          "pooled_head", assumes=("m[t] = 1",)),
    claim("heads.pooled-over-all", "r[i] = sum(t, m[t]*h[t,i])/T",
          "It divides by the number of real rows", "pooled_head", expected="fails",
          reason="T counts the padding"),
    claim("heads.next-gradient", "dL/da[t,c] = (p[t,c] - X[t+1,c])/(T - 1) for t <= T-2",
          "Next token: a position is judged by the one after it", "next_token", "next"),
    claim("heads.next-last", "dL/da[T-1,c] = 0", "The last position has no target", "next_token",
          "next"),
    claim("heads.next-dW", "dL/dW[c,i] = sum(t=0..T-2, g_a[t,c]*h[t,i])",
          "The head hears from every position but the last", "next_token", "next"),
    claim("heads.next-unshifted", "dL/da[t,c] = (p[t,c] - X[t,c])/(T - 1) for t <= T-2",
          "The target is shifted by one", "next_token", "next", expected="fails",
          reason="position t predicts token t + 1"),
    claim("heads.next-over-T", "dL/da[t,c] = (p[t,c] - X[t+1,c])/T for t <= T-2",
          "T - 1 targets are averaged", "next_token", "next", expected="fails",
          reason="the last position has none"),
)  # fmt: skip


def topic() -> Topic:
    """Return the topic."""
    systems = (token_system(), pooled_system(), next_system())
    return Topic(
        "heads",
        "Heads on the last layer",
        {s.name: s for s in systems},
        CLAIMS,
        "Vaswani et al. (2017), section 3.4; Devlin et al. (2019); Radford et al. (2018)",
    )
