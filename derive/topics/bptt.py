"""Backpropagation through time: adjoint recursions, gradient sums, paths, truncation, batches.

Only the claims are written here; every adjoint is derived from the equations.
Source: Goodfellow, Bengio & Courville (2016), section 10.2.2; Pascanu, Mikolov & Bengio (2013), 2.
"""

from __future__ import annotations

from derive.building import build_system
from derive.claim import Claim
from derive.equation import System
from derive.topics import Topic, claim
from derive.topics.rnn import CELL, LOSSES, MEANINGS, SHAPES, rnn_system

FINAL, EACH = "final", "per_position"


def truncated_system() -> System:
    """Return the network with the carried state detached where keep[t] = 0."""
    shapes = {n: SHAPES[n] for n in ("x", "W_x", "W_h", "b_h", "y")} | {"keep": ("T",)}
    return build_system(
        "rnn_truncated",
        ("T", "D", "H"),
        shapes,
        (
            "z[t,j] = sum(k, W_x[j,k]*x[t,k]) + b_h[j] + sum(r, W_h[j,r]*"
            "(keep[t]*h[t-1,r] + (1 - keep[t])*detach(h[t-1,r])))",
            CELL[1],
        ),
        losses={FINAL: LOSSES[FINAL]},
        targets=("y",),
        meanings=MEANINGS | {"keep": "1 where the state is carried with its gradient, 0 at a cut"},
    )


def linear_system() -> System:
    """Return the scalar linear recurrence."""
    return build_system(
        "linear",
        ("T",),
        {"x": ("T",), "w": (), "u": ()},
        ("h[t] = w*h[t-1] + u*x[t]",),
        losses={FINAL: "h[T-1]"},
        meanings={"x": "input", "w": "recurrent weight", "u": "input weight", "h": "state"},
    )


def linear_matrix_system() -> System:
    """Return the linear recurrence in H dimensions."""
    return build_system(
        "linear_matrix",
        ("T", "D", "H"),
        {n: SHAPES[n] for n in ("x", "W_x", "W_h", "y")},
        ("h[t,j] = sum(k, W_x[j,k]*x[t,k]) + sum(r, W_h[j,r]*h[t-1,r])",),
        losses={FINAL: LOSSES[FINAL]},
        targets=("y",),
        meanings=MEANINGS,
    )


def batch_system() -> System:
    """Return B sequences (position first), losses averaged over the batch."""
    shapes = {
        "x": ("T", "B", "D"),
        "W_x": ("H", "D"),
        "W_h": ("H", "H"),
        "b_h": ("H",),
        "y": ("B", "H"),
        "W_o": ("C", "H"),
        "b_o": ("C",),
        "Y": ("T", "B", "C"),
    }
    return build_system(
        "rnn_batch",
        ("T", "B", "D", "H", "C"),
        shapes,
        (
            "z[t,n,j] = sum(k, W_x[j,k]*x[t,n,k]) + sum(r, W_h[j,r]*h[t-1,n,r]) + b_h[j]",
            "h[t,n,j] = tanh(z[t,n,j])",
            "a[t,n,c] = sum(i, W_o[c,i]*h[t,n,i]) + b_o[c]",
            "p[t,n,c] = softmax(c, a[t,n,c])",
            "l[t,n] = -sum(c, Y[t,n,c]*log(p[t,n,c]))",
        ),
        losses={
            FINAL: "mean(n, 1/2*sum(j, (h[T-1,n,j] - y[n,j])^2))",
            EACH: "mean(n, mean(t, l[t,n]))",
        },
        parameters=("W_x", "W_h", "b_h", "W_o", "b_o"),
        targets=("y",),
        onehot=("Y",),
        meanings=MEANINGS,
    )


def topic() -> Topic:
    """Return the topic."""
    return Topic(
        "bptt",
        "Backpropagation through time",
        {
            "rnn": rnn_system(),
            "rnn_column": rnn_system("rnn_column", "column"),
            "rnn_truncated": truncated_system(),
            "linear": linear_system(),
            "linear_matrix": linear_matrix_system(),
            "rnn_batch": batch_system(),
        },
        (*recursions(), *sums(), *uses(), *column(), *paths(), *linear(), *truncated(), *batch()),
        "Goodfellow, Bengio & Courville (2016), section 10.2.2; Pascanu et al. (2013), section 2",
    )


def recursions() -> tuple[Claim, ...]:
    """Return the adjoint recursions of both losses."""
    s = "rnn"
    return (
        claim("bptt.final-seed", "g_h[T-1] = h[T-1] - y", "The final state's gradient", s, FINAL),
        claim("bptt.gate", "g_z[t] = g_h[t]*(1 - h[t]^2)", "The activation gates the signal", s,
              FINAL),
        claim("bptt.final-recursion", "g_h[t-1] = g_z[t] @ W_h",
              "The previous state receives the signal through W_h", s, FINAL),
        claim("bptt.final-recursion-gated",
              "g_z[t-1] = (g_z[t] @ W_h)*(1 - h[t-1]^2) for t >= 1",
              "Both steps of the recursion at once", s, FINAL),
        claim("bptt.logit-gradient", "g_a[t] = (p[t] - Y[t])/T",
              "The logit gradient divides by T once", s, EACH),
        claim("bptt.direct-and-future", "g_h[t] = g_a[t] @ W_o + g_z[t+1] @ W_h",
              "A state receives a direct and a future gradient", s, EACH),
        claim("bptt.gate-per-position", "g_z[t] = g_h[t]*(1 - h[t]^2)",
              "The gate is the same for every loss", s, EACH),
        claim("bptt.boundary", "g_h[T-1] = g_a[T-1] @ W_o",
              "At the last position the future term is zero", s, EACH),
        claim("bptt.no-direct-terms", "g_a[t,c] = 0",
              "With a final-state loss the direct terms are zero", s, FINAL),
        claim("bptt.future-only", "g_h[t] = g_z[t+1] @ W_h for t <= T-2",
              "so the recursion is the special case without them", s, FINAL),
        claim("bptt.lost-direct-term", "g_h[t] = g_z[t+1] @ W_h for t <= T-2",
              "With a loss at each position the direct term is needed", s, EACH, expected="fails",
              reason="the head reads every state"),
        claim("bptt.second-division", "g_a[t] = (p[t] - Y[t])/T^2",
              "A second division by T is wrong", s, EACH, expected="fails",
              reason="the mean divides once"),
    )  # fmt: skip


def sums() -> tuple[Claim, ...]:
    """Return the gradient sums, for both losses."""
    s, rows = "rnn", []
    for loss, tag in ((FINAL, ""), (EACH, "-per-position")):
        rows += [
            claim(f"bptt.input-weights-gradient{tag}", "dL/dW_x = sum(t, g_z[t].T @ x[t])",
                  "W_x collects an outer product from every use", s, loss),
            claim(f"bptt.hidden-weights-gradient{tag}", "dL/dW_h = sum(t, g_z[t].T @ h[t-1])",
                  "W_h collects an outer product from every use", s, loss),
            claim(f"bptt.bias-gradient{tag}", "dL/db_h = sum(t, g_z[t])",
                  "b_h collects the signals", s, loss),
            claim(f"bptt.input-gradient{tag}", "dL/dx[t] = g_z[t] @ W_x",
                  "The gradient by an input", s, loss),
            claim(f"bptt.initial-state-gradient{tag}", "dL/dh[-1] = g_z[0] @ W_h",
                  "The gradient by the initial state", s, loss),
        ]  # fmt: skip
    rows += [
        claim("bptt.hidden-weights-entries", "dL/dW_h[j,r] = sum(t, g_z[t,j]*h[t-1,r])",
              "The same, entry by entry", s, FINAL),
        claim("bptt.head-weights-gradient", "dL/dW_o = sum(t, g_a[t].T @ h[t])",
              "The head shares its weights too", s, EACH),
        claim("bptt.head-bias-gradient", "dL/db_o = sum(t, g_a[t])", "and its bias", s, EACH),
    ]  # fmt: skip
    return tuple(rows)


def uses() -> tuple[Claim, ...]:
    """Return claims on the contribution of one use."""
    s = "rnn"
    return (
        claim("bptt.one-use", "G[t] = g_z[t].T @ h[t-1]", "One use contributes an outer product", s,
              FINAL),
        claim("bptt.sum-of-uses", "dL/dW_h = sum(t, G[t])", "The gradient is the sum of all uses",
              s, FINAL),
        claim("bptt.first-use-norm", "sqnorm(G[0]) = sqnorm(g_z[0])*sqnorm(h[-1])",
              "The first use vanishes if and only if its signal or h[-1] does", s, FINAL),
        claim("bptt.first-use-zero-state", "G[0,j,r] = 0",
              "With h[-1] = 0 the first use adds nothing", s, FINAL, assumes=("h[-1,r] = 0",)),
        claim("bptt.first-use-zero-signal", "G[0,j,r] = 0",
              "With no signal at position 0 neither", s, FINAL, assumes=("g_z[0,j] = 0",)),
        claim("bptt.first-use-always-zero", "G[0,j,r] = 0", "It is not always zero", s, FINAL,
              expected="fails", reason="a non-zero initial state"),
        claim("bptt.only-last-use", "dL/dW_h = g_z[T-1].T @ h[T-2]",
              "The last use alone is not the gradient", s, FINAL, expected="fails",
              reason="earlier uses reach the loss through the states"),
        claim("bptt.all-but-first-use", "dL/dW_h = sum(t=1..T-1, g_z[t].T @ h[t-1])",
              "Nor is the sum without the first use", s, FINAL, expected="fails",
              reason="h[-1] need not be zero"),
    )  # fmt: skip


def column() -> tuple[Claim, ...]:
    """Return the same recursions and sums in the column convention."""
    s = "rnn_column"
    return (
        claim("bptt.column-recursion", "g_h[t-1] = W_h.T @ g_z[t]",
              "Column convention: the transpose on the left", s, FINAL),
        claim("bptt.column-direct-and-future", "g_h[t] = W_o.T @ g_a[t] + W_h.T @ g_z[t+1]",
              "Column convention: direct and future", s, EACH),
        claim("bptt.column-hidden-weights-gradient", "dL/dW_h = sum(t, g_z[t] @ h[t-1].T)",
              "Column convention: the outer product", s, FINAL),
        claim("bptt.column-input-weights-gradient", "dL/dW_x = sum(t, g_z[t] @ x[t].T)",
              "Column convention: W_x", s, EACH),
        claim("bptt.column-head-gradient", "dL/dW_o = sum(t, g_a[t] @ h[t].T)",
              "Column convention: the head", s, EACH),
        claim("bptt.column-path", "g_h[s] = prod(k=s+1..t, W_h.T @ diag(1 - h[k]^2)) @ g_h[t] "
              "for s <= t", "Column convention: the factors ascend", s, FINAL),
        claim("bptt.column-path-descending",
              "g_h[s] = prod(k=t..s+1, W_h.T @ diag(1 - h[k]^2)) @ g_h[t] for s <= t",
              "Column convention: descending factors are wrong", s, FINAL, expected="fails",
              reason="the transpose of a product reverses it"),
    )  # fmt: skip


def paths() -> tuple[Claim, ...]:
    """Return the products of Jacobians and the sum over paths."""
    s, product = "rnn", "diag(1 - h[k]^2) @ W_h"
    return (
        claim("bptt.path-jacobian", f"dh[t]/dh[s] = prod(k=t..s+1, {product}) for s <= t",
              "A path multiplies Jacobians from late to early", s, FINAL),
        claim("bptt.path-jacobian-ascending",
              f"dh[t]/dh[s] = prod(k=s+1..t, {product}) for s <= t",
              "The other order is another matrix", s, FINAL, expected="fails",
              reason="matrices do not commute"),
        claim("bptt.path-signal", f"g_h[s] = g_h[t] @ prod(k=t..s+1, {product}) for s <= t",
              "One final loss travels back along one path", s, FINAL),
        claim("bptt.path-first-step",
              "dh[s,q]/dh[t,r] = sum(i, dh[s,q]/dh[t+1,i]*(1 - h[t+1,i]^2)*W_h[i,r]) for t+1 <= s",
              "A path may be cut after its first step", s, EACH),
        claim("bptt.sum-of-paths",
              "g_h[t] = sum(s=t..T-1, g_a[s] @ W_o @ dh[s]/dh[t])",
              "Summing over all paths gives the recursion", s, EACH,
              using=("bptt.path-first-step",)),
        claim("bptt.parameter-paths",
              "dh[t,i]/dW_h[j,r] = sum(s=0..t, dh[t,i]/dh[s,j]*(1 - h[s,j]^2)*h[s-1,r])",
              "A state's derivative by W_h sums over its uses so far", s, FINAL),
        claim("bptt.causality", "dh[t,i]/dx[s,k] = 0 for t < s",
              "No state depends on a later input", s, FINAL),
    )  # fmt: skip


def linear() -> tuple[Claim, ...]:
    """Return the closed forms of the linear recurrence."""
    s = "linear"
    return (
        claim("bptt.linear-path", "dh[t]/dh[s] = w^(t-s) for s <= t",
              "Scalar linear case: a power of the weight", s, FINAL),
        claim("bptt.linear-signal", "g_h[t] = w^(T-1-t)", "The signal decays or grows by w a step",
              s, FINAL),
        claim("bptt.linear-weight", "dh[t]/dw = sum(s=0..t, w^(t-s)*h[s-1])",
              "Each use contributes the state before it", s, FINAL),
        claim("bptt.linear-weight-gradient", "dL/dw = sum(s, w^(T-1-s)*h[s-1])",
              "The gradient in closed form", s, FINAL, using=("bptt.linear-signal",)),
        claim("bptt.linear-weight-late-state", "dh[t]/dw = sum(s=0..t, w^(t-s)*h[s])",
              "The state after the use is wrong", s, FINAL, expected="fails",
              reason="the use at s reads h[s-1]"),
        claim("bptt.linear-signal-off-by-one", "g_h[t] = w^(T-t)",
              "One power too many, positions counted from 0", s, FINAL, expected="fails",
              reason="T-1-t steps lie between t and the last position"),
        claim("bptt.linear-matrix-path", "dh[t]/dh[s] = prod(k=t..s+1, W_h) for s <= t",
              "Matrix case: a power of W_h", "linear_matrix", FINAL),
    )  # fmt: skip


def truncated() -> tuple[Claim, ...]:
    """Return truncated BPTT: a cut at position b, where keep[b] = 0."""
    s, cut = "rnn_truncated", ("keep[b] = 0",)
    return (
        claim("bptt.truncated-forward", "z[t] = x[t] @ W_x.T + h[t-1] @ W_h.T + b_h",
              "Detaching changes no forward value", s, FINAL),
        claim("bptt.truncated-recursion",
              "g_h[t] = keep[t+1]*(g_z[t+1] @ W_h) for t <= T-2",
              "A cut stops the signal", s, FINAL),
        claim("bptt.truncated-no-crossing", "dh[t,i]/dh[s,r] = 0 for s+1 <= b, b <= t",
              "No gradient path crosses a cut", s, FINAL, assumes=cut),
        claim("bptt.truncated-silence", "g_z[t,j] = 0 for t+1 <= b",
              "Positions before the cut receive no signal", s, FINAL, assumes=cut),
        claim("bptt.truncated-sum", "dL/dW_h[j,r] = sum(t=b..T-1, g_z[t,j]*h[t-1,r])",
              "The gradient sums over the window's uses only", s, FINAL, assumes=cut,
              using=("bptt.truncated-silence",)),
        claim("bptt.truncated-all-uses", "dL/dW_h = sum(t, g_z[t].T @ h[t-1])",
              "As a sum over all positions it holds with every cut", s, FINAL),
    )  # fmt: skip


def batch() -> tuple[Claim, ...]:
    """Return the sums over a batch."""
    s = "rnn_batch"
    return (
        claim("bptt.batch-hidden-weights",
              "dL/dW_h[j,r] = sum(t, n, g_z[t,n,j]*h[t-1,n,r])",
              "With a batch the sum runs over the sequences too", s, EACH),
        claim("bptt.batch-input-weights", "dL/dW_x[j,k] = sum(t, n, g_z[t,n,j]*x[t,n,k])",
              "W_x over a batch", s, EACH),
        claim("bptt.batch-bias", "dL/db_h[j] = sum(t, n, g_z[t,n,j])", "b_h over a batch", s, EACH),
        claim("bptt.batch-logits", "g_a[t,n,c] = (p[t,n,c] - Y[t,n,c])/(B*T)",
              "The means over batch and positions divide once each", s, EACH),
        claim("bptt.batch-final-seed", "g_h[T-1,n,i] = (h[T-1,n,i] - y[n,i])/B",
              "The final-state seed with a mean over the batch", s, FINAL),
        claim("bptt.batch-one-sequence",
              "dL/dW_h[j,r] = sum(t, g_z[t,n,j]*h[t-1,n,r])",
              "One sequence alone is not the batch gradient", s, EACH, expected="fails",
              reason="the sum over the batch is lost"),
    )  # fmt: skip
