"""The gated recurrent unit: adjoint recursions, gradient sums of all blocks, which biases merge."""

from __future__ import annotations

from derive.claim import Claim
from derive.topics import claim
from derive.topics._gru_systems import GATES

FINAL, EACH = "final", "per_position"
GATED = "g_s_r[{t}] @ W_hr + g_s_z[{t}] @ W_hz + g_m[{t}] @ W_hn"


def recursions() -> tuple[Claim, ...]:
    """Return the adjoint recursions of both losses."""
    s, rows = "gru", []
    back = f"g_h[t+1]*z[t+1] + {GATED.format(t='t+1')}"
    for loss, tag in ((FINAL, ""), (EACH, "-per-position")):
        rows += [
            claim(f"gru.update-signal{tag}", "g_s_z[t] = g_h[t]*(h[t-1] - n[t])*z[t]*(1 - z[t])",
                  "The signal of the update gate's preactivation", s, loss),
            claim(f"gru.candidate-signal{tag}", "g_s_n[t] = g_h[t]*(1 - z[t])*(1 - n[t]^2)",
                  "The signal of the candidate's preactivation", s, loss),
            claim(f"gru.reset-signal{tag}", "g_s_r[t] = g_s_n[t]*m[t]*r[t]*(1 - r[t])",
                  "The signal of the reset gate's preactivation", s, loss),
            claim(f"gru.memory-signal{tag}", "g_m[t] = g_s_n[t]*r[t]",
                  "The signal of the recurrent part of the candidate", s, loss),
        ]  # fmt: skip
    rows += [
        claim("gru.final-seed", "g_h[T-1] = h[T-1] - y", "The final state's gradient", s, FINAL),
        claim("gru.final-recursion", f"g_h[t] = {back} for t <= T-2",
              "A state receives the signal along four paths", s, FINAL),
        claim("gru.final-recursion-closed",
              "g_h[t-1] = g_h[t]*z[t] + (g_h[t]*(h[t-1] - n[t])*z[t]*(1 - z[t])) @ W_hz"
              " + (g_h[t]*(1 - z[t])*(1 - n[t]^2)*r[t]) @ W_hn"
              " + (g_h[t]*(1 - z[t])*(1 - n[t]^2)*m[t]*r[t]*(1 - r[t])) @ W_hr",
              "The same with every local derivative written out", s, FINAL),
        claim("gru.recursion-per-position", f"g_h[t] = g_a[t] @ W_o + {back} for t <= T-2",
              "With a loss at each position there is a direct signal too", s, EACH),
        claim("gru.recursion-direct-only", "g_h[t] = g_h[t+1]*z[t+1] for t <= T-2",
              "The direct path alone loses three of the four", s, FINAL, expected="fails",
              reason="the gates and the candidate read the state"),
    ]  # fmt: skip
    return tuple(rows)


def sums() -> tuple[Claim, ...]:
    """Return the gradients of all twelve blocks, the input and the initial state, twice."""
    s, rows = "gru", []
    # what multiplies the recurrent weights of the candidate is m, not its preactivation
    inner = {"r": "s_r", "z": "s_z", "n": "m"}
    for loss, tag in ((FINAL, ""), (EACH, "-per-position")):
        for g, what in GATES.items():
            name = what.split()[0]
            rows += [
                claim(f"gru.{name}-input-weights{tag}",
                      f"dL/dW_x{g} = sum(t, g_s_{g}[t].T @ x[t])",
                      f"Input weights of the {what}", s, loss),
                claim(f"gru.{name}-hidden-weights{tag}",
                      f"dL/dW_h{g} = sum(t, g_{inner[g]}[t].T @ h[t-1])",
                      f"Recurrent weights of the {what}", s, loss),
                claim(f"gru.{name}-input-bias{tag}", f"dL/db_x{g} = sum(t, g_s_{g}[t])",
                      f"Input bias of the {what}", s, loss),
                claim(f"gru.{name}-hidden-bias{tag}", f"dL/db_h{g} = sum(t, g_{inner[g]}[t])",
                      f"Recurrent bias of the {what}", s, loss),
            ]  # fmt: skip
        rows += [
            claim(f"gru.input-gradient{tag}",
                  "dL/dx[t] = g_s_r[t] @ W_xr + g_s_z[t] @ W_xz + g_s_n[t] @ W_xn",
                  "The gradient by an input", s, loss),
            claim(f"gru.initial-state-gradient{tag}",
                  f"dL/dh[-1] = g_h[0]*z[0] + {GATED.format(t='0')}",
                  "The gradient by the initial state", s, loss),
        ]  # fmt: skip
    rows += [
        claim("gru.head-weights", "dL/dW_o = sum(t, g_a[t].T @ h[t])", "The head's weights", s,
              EACH),
        claim("gru.candidate-weights-no-reset", "dL/dW_hn = sum(t, g_s_n[t].T @ h[t-1])",
              "Without the reset gate the candidate's recurrent gradient is wrong", s, FINAL,
              expected="fails", reason="W_hn stands behind the reset gate: its signal is g_s_n*r"),
        claim("gru.update-weights-only-last", "dL/dW_hz = g_s_z[T-1].T @ h[T-2]",
              "The last use alone is not the gradient", s, FINAL, expected="fails",
              reason="earlier uses reach the loss through the states"),
    ]  # fmt: skip
    return tuple(rows)


def biases() -> tuple[Claim, ...]:
    """Return which of the two biases of a gate merge, and why one pair does not."""
    s = "gru"
    return (
        claim("gru.reset-biases-merge",
              "s_r[t] = x[t] @ W_xr.T + h[t-1] @ W_hr.T + (b_xr + b_hr)",
              "The reset gate's two biases act as their sum", s),
        claim("gru.update-biases-merge",
              "s_z[t] = x[t] @ W_xz.T + h[t-1] @ W_hz.T + (b_xz + b_hz)",
              "and so do the update gate's", s),
        claim("gru.reset-biases-gradient", "dL/db_xr = dL/db_hr",
              "so that they receive equal gradients", s, FINAL),
        claim("gru.update-biases-gradient", "dL/db_xz = dL/db_hz",
              "so that they receive equal gradients", s, FINAL),
        claim("gru.candidate-bias-gradient", "dL/db_hn = sum(t, r[t]*g_s_n[t])",
              "The candidate's recurrent bias stands behind the reset gate", s, FINAL),
        claim("gru.candidate-bias-gradient-per-position", "dL/db_hn = sum(t, r[t]*g_s_n[t])",
              "whatever the loss", s, EACH),
        claim("gru.candidate-biases-gradient", "dL/db_hn = dL/db_xn",
              "The candidate's two biases do not receive equal gradients", s, FINAL,
              expected="fails", reason="one is scaled by r, the other is not"),
        claim("gru.candidate-biases-merge",
              "s_n[t] = x[t] @ W_xn.T + r[t]*(h[t-1] @ W_hn.T) + (b_xn + b_hn)",
              "so that they cannot be merged", s, expected="fails",
              reason="b_hn stands behind the reset gate"),
    )  # fmt: skip
