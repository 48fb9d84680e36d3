"""The gated recurrent unit in its other forms: where the reset acts, which way the blend goes.

torch resets after the recurrent map (ONNX: linear_before_reset = 1), the 2014 paper and ONNX's
default before it. torch and ONNX keep the memory where z is 1, other texts where it is 0.
"""

from __future__ import annotations

from derive.claim import Claim
from derive.topics import claim

FINAL = "final"


def resets() -> tuple[Claim, ...]:
    """Return how the candidates with the reset after and before the recurrent map differ.

    Where the preactivations agree, the candidates do: an assumption reaches into tanh.
    """
    s, difference = "gru_resets", "sum(j, W_hn[i,j]*(r[i] - r[j])*h_prev[j])"
    return (
        claim("gru.resets-differ", "n_after = n_before",
              "A reset after the recurrent map is not a reset before it", s, expected="fails",
              reason="the map mixes units whose reset gates differ"),
        claim("gru.resets-difference",
              f"after[i] - before[i] = {difference} - (1 - r[i])*b_hn[i]",
              "They differ by the inequality of the gates under the map, and by the bias", s),
        claim("gru.resets-agree-where", "n_after[i] = n_before[i]",
              "At every point where that difference vanishes they agree", s,
              assumes=(f"b_hn[i] = {difference}/(1 - r[i])",)),
        claim("gru.resets-agree-equal-gates", "n_after[i] = n_before[i]",
              "With one gate for all units and no recurrent bias they agree", s,
              assumes=("r[i] = c", "b_hn[i] = 0")),
        claim("gru.resets-agree-from-zero", "n_after[i] = n_before[i]",
              "From a zero state without recurrent bias they agree: such a test sees nothing", s,
              assumes=("h_prev[i] = 0", "b_hn[i] = 0")),
        claim("gru.resets-from-zero-with-bias", "n_after[i] = n_before[i]",
              "From a zero state with a recurrent bias they differ", s, expected="fails",
              assumes=("h_prev[i] = 0",), reason="one form puts the bias behind the reset gate"),
    )  # fmt: skip


def reset_before() -> tuple[Claim, ...]:
    """Return the form of the 2014 paper over a sequence: what changes, and what does not."""
    s, through = "gru_reset_before", "diag((1 - z[t])*(1 - n[t]^2))"
    return (
        claim("gru.reset-before-candidate",
              "n[t] = tanh(x[t] @ W_xn.T + b_xn + (r[t]*h[t-1]) @ W_hn.T + b_hn)",
              "The reset gate scales the state that the map reads", s),
        claim("gru.reset-before-is-not-torch",
              "n[t] = tanh(x[t] @ W_xn.T + b_xn + r[t]*(h[t-1] @ W_hn.T + b_hn))",
              "The candidate of torch is another function", s, expected="fails",
              reason="the reset gate and the recurrent map do not commute"),
        claim("gru.reset-before-jacobian",
              "dh[t]/dh[t-1] = diag(z[t]) + diag((h[t-1] - n[t])*z[t]*(1 - z[t])) @ W_hz"
              f" + {through} @ W_hn @ (diag(r[t]) + diag(h[t-1]*r[t]*(1 - r[t])) @ W_hr)",
              "Its Jacobian has the map and the reset gate in the other order", s),
        claim("gru.reset-before-hidden-weights",
              "dL/dW_hn = sum(t, g_s_n[t].T @ (r[t]*h[t-1]))",
              "The recurrent weights see the state after the reset", s, FINAL),
        claim("gru.reset-before-reset-weights",
              "dL/dW_hr = sum(t, ((g_s_n[t] @ W_hn)*h[t-1]*r[t]*(1 - r[t])).T @ h[t-1])",
              "The reset gate's signal comes through the map", s, FINAL),
        claim("gru.reset-before-biases-gradient", "dL/db_hn = dL/db_xn",
              "Here the candidate's two biases do merge", s, FINAL),
    )  # fmt: skip


def blends() -> tuple[Claim, ...]:
    """Return that the two blends are one family: the gate's preactivation changes its sign."""
    s = "gru_blends"
    return (
        claim("gru.opposite-gate", "u = 1 - z",
              "The gate of the opposite preactivation is the complement", s),
        claim("gru.opposite-blend", "k = h",
              "so that the opposite blend with it is the same function", s),
        claim("gru.opposite-blend-slope", "dk/ds = diag((h_prev - n)*u*(1 - u))",
              "with the same derivative by the preactivation", s),
        claim("gru.opposite-blend-same-gate", "k[j] = z[j]*n[j] + (1 - z[j])*h_prev[j]",
              "With the same gate it is another", s, expected="fails",
              reason="the weights of candidate and memory are exchanged"),
    )  # fmt: skip


def programs() -> tuple[Claim, ...]:
    """Return which of the forms torch.nn.GRUCell computes, run beside each."""
    return (
        claim("gru.program-resets-after", "", "PyTorch resets after the recurrent map", "",
              probe="gru_cell.resets-after-affine-map"),
        claim("gru.program-resets-before", "", "and not before it", "",
              probe="gru_cell.resets-before-affine-map", expected="fails",
              reason="the reset gate multiplies what the map returns, its bias included"),
        claim("gru.program-update-writes", "",
              "Its update gate keeps the memory: it does not write the candidate", "",
              probe="gru_cell.update-gate-writes-candidate", expected="fails",
              reason="where the gate is 1, the memory stays"),
    )  # fmt: skip
