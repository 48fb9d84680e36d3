"""The long short-term memory: adjoint recursions, gradient sums of all blocks."""

from __future__ import annotations

from derive.claim import Claim
from derive.topics import claim
from derive.topics._lstm_systems import GATES

FINAL, EACH = "final", "per_position"
FUTURE = " + ".join(f"g_s_{g}[{{t}}] @ W_h{g}" for g in GATES)


def recursions() -> tuple[Claim, ...]:
    """Return the adjoint recursions of both losses."""
    s, rows = "lstm", []
    for loss, tag in ((FINAL, ""), (EACH, "-per-position")):
        rows += [
            claim(f"lstm.cell-recursion{tag}",
                  "g_c[t] = g_h[t]*o[t]*(1 - tanh(c[t])^2) + g_c[t+1]*f[t+1] for t <= T-2",
                  "The cell state receives the signal of its output and the kept part of the next",
                  s, loss),
            claim(f"lstm.input-signal{tag}", "g_s_i[t] = g_c[t]*g[t]*i[t]*(1 - i[t])",
                  "The signal of the input gate's preactivation", s, loss),
            claim(f"lstm.forget-signal{tag}", "g_s_f[t] = g_c[t]*c[t-1]*f[t]*(1 - f[t])",
                  "The signal of the forget gate's preactivation", s, loss),
            claim(f"lstm.candidate-signal{tag}", "g_s_g[t] = g_c[t]*i[t]*(1 - g[t]^2)",
                  "The signal of the candidate's preactivation", s, loss),
            claim(f"lstm.output-signal{tag}", "g_s_o[t] = g_h[t]*tanh(c[t])*o[t]*(1 - o[t])",
                  "The signal of the output gate's preactivation", s, loss),
        ]  # fmt: skip
    future = FUTURE.format(t="t+1")
    rows += [
        claim("lstm.final-seed", "g_h[T-1] = h[T-1] - y", "The final state's gradient", s, FINAL),
        claim("lstm.cell-boundary", "g_c[T-1] = g_h[T-1]*o[T-1]*(1 - tanh(c[T-1])^2)",
              "At the last position no next cell state is there", s, FINAL),
        claim("lstm.final-recursion", f"g_h[t] = {future} for t <= T-2",
              "A state receives the signal through all four gates", s, FINAL),
        claim("lstm.recursion-per-position", f"g_h[t] = g_a[t] @ W_o + {future}",
              "With a loss at each position there is a direct signal too", s, EACH),
        claim("lstm.cell-recursion-kept-only", "g_c[t] = g_c[t+1]*f[t+1] for t <= T-2",
              "The kept part alone loses the signal through the output", s, FINAL, expected="fails",
              reason="h[t] reads c[t] and the gates of the next position read h[t]"),
        claim("lstm.forget-signal-value", "g_s_f[t] = g_c[t]*c[t-1]*f[t]",
              "The gate's value in place of its slope is wrong", s, FINAL, expected="fails",
              reason="the slope of the logistic function is f(1 - f)"),
        claim("lstm.forget-signal-late", "g_s_f[t] = g_c[t]*c[t]*f[t]*(1 - f[t])",
              "The forget gate meets the previous cell state", s, FINAL, expected="fails",
              reason="f[t] multiplies c[t-1]"),
    ]  # fmt: skip
    return tuple(rows)


def sums() -> tuple[Claim, ...]:
    """Return the gradients of all sixteen blocks, the input and the initial states, twice."""
    s, rows = "lstm", []
    for loss, tag in ((FINAL, ""), (EACH, "-per-position")):
        for g, what in GATES.items():
            name = what.split()[0]
            rows += [
                claim(f"lstm.{name}-input-weights{tag}",
                      f"dL/dW_x{g} = sum(t, g_s_{g}[t].T @ x[t])",
                      f"Input weights of the {what}", s, loss),
                claim(f"lstm.{name}-hidden-weights{tag}",
                      f"dL/dW_h{g} = sum(t, g_s_{g}[t].T @ h[t-1])",
                      f"Recurrent weights of the {what}", s, loss),
                claim(f"lstm.{name}-input-bias{tag}", f"dL/db_x{g} = sum(t, g_s_{g}[t])",
                      f"Input bias of the {what}", s, loss),
                claim(f"lstm.{name}-hidden-bias{tag}", f"dL/db_h{g} = sum(t, g_s_{g}[t])",
                      f"Recurrent bias of the {what}", s, loss),
            ]  # fmt: skip
        rows += [
            claim(f"lstm.input-gradient{tag}",
                  "dL/dx[t] = " + " + ".join(f"g_s_{g}[t] @ W_x{g}" for g in GATES),
                  "The gradient by an input", s, loss),
            claim(f"lstm.initial-state-gradient{tag}", f"dL/dh[-1] = {FUTURE.format(t='0')}",
                  "The gradient by the initial state", s, loss),
            claim(f"lstm.initial-cell-gradient{tag}", "dL/dc[-1] = g_c[0]*f[0]",
                  "The gradient by the initial cell state", s, loss),
        ]  # fmt: skip
    rows += [
        claim(f"lstm.{what.split()[0]}-biases", f"dL/db_x{g} = dL/db_h{g}",
              f"The two biases of the {what} receive equal gradients", s, FINAL)
        for g, what in GATES.items()
    ]  # fmt: skip
    rows += [
        claim("lstm.head-weights", "dL/dW_o = sum(t, g_a[t].T @ h[t])", "The head's weights", s,
              EACH),
        claim("lstm.forget-weights-closed",
              "dL/dW_hf[j,r] = sum(t, g_c[t,j]*c[t-1,j]*f[t,j]*(1 - f[t,j])*h[t-1,r])",
              "The forget gate's recurrent weights, written out", s, FINAL),
        claim("lstm.forget-weights-only-last", "dL/dW_hf = g_s_f[T-1].T @ h[T-2]",
              "The last use alone is not the gradient", s, FINAL, expected="fails",
              reason="earlier uses reach the loss through the states"),
    ]  # fmt: skip
    return tuple(rows)
