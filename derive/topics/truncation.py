"""Truncated backpropagation through time: windows, detached carry, what has a gradient path.

A stream is read once; at a cut (keep = 0) the state is carried on with its value and without its
gradient. A window runs from one cut to the next.
Source: Williams & Peng (1990); torch.Tensor.detach.
"""

from __future__ import annotations

from derive.building import build_system
from derive.claim import Claim
from derive.equation import System
from derive.topics import Topic, claim
from derive.topics.rnn import HEAD, MEANINGS, SHAPES

STREAM = "stream"


def stream_system() -> System:
    """Return the network over a stream with cuts, a loss at every position."""
    shapes = {n: SHAPES[n] for n in ("x", "W_x", "W_h", "b_h", "W_o", "b_o", "Y")}
    return build_system(
        "rnn_stream",
        ("T", "D", "H", "C"),
        shapes | {"keep": ("T",)},
        (
            "z[t,j] = sum(k, W_x[j,k]*x[t,k]) + b_h[j] + sum(r, W_h[j,r]*"
            "(keep[t]*h[t-1,r] + (1 - keep[t])*detach(h[t-1,r])))",
            "h[t,j] = tanh(z[t,j])",
            *HEAD,
        ),
        losses={STREAM: "sum(t, l[t])"},
        onehot=("Y",),
        meanings=MEANINGS | {"keep": "1 where the state is carried with its gradient, 0 at a cut"},
    )


def window_system() -> System:
    """Return one window by itself: its first state is given, as a detached one is."""
    shapes = {n: SHAPES[n] for n in ("x", "W_x", "W_h", "b_h", "W_o", "b_o", "Y")}
    return build_system(
        "rnn_window",
        ("T", "D", "H", "C"),
        shapes,
        (
            "z[t,j] = sum(k, W_x[j,k]*x[t,k]) + sum(r, W_h[j,r]*h[t-1,r]) + b_h[j]",
            "h[t,j] = tanh(z[t,j])",
            *HEAD,
        ),
        losses={STREAM: "sum(t, l[t])"},
        onehot=("Y",),
        meanings=MEANINGS,
    )


def topic() -> Topic:
    """Return the topic."""
    return Topic(
        "truncation",
        "Truncated backpropagation through time",
        {"rnn_stream": stream_system(), "rnn_window": window_system()},
        (*stream(), *paths(), *window(), *learning()),
        "Williams & Peng (1990); torch.Tensor.detach",
    )


def stream() -> tuple[Claim, ...]:
    """Return the recursion over a stream with cuts."""
    s = "rnn_stream"
    return (
        claim("truncation.forward", "z[t] = x[t] @ W_x.T + h[t-1] @ W_h.T + b_h",
              "Detaching changes no value", s, STREAM),
        claim("truncation.recursion",
              "g_h[t] = g_a[t] @ W_o + keep[t+1]*(g_z[t+1] @ W_h) for t <= T-2",
              "A state receives its own loss, and the future one unless a cut follows", s, STREAM),
        claim("truncation.every-use", "dL/dW_h = sum(t, g_z[t].T @ h[t-1])",
              "Every use contributes, with the signal that the cuts let through", s, STREAM),
        claim("truncation.input-weights", "dL/dW_x = sum(t, g_z[t].T @ x[t])",
              "Every input too", s, STREAM),
        claim("truncation.bias", "dL/db_h = sum(t, g_z[t])", "and every bias", s, STREAM),
        claim("truncation.without-cuts",
              "g_h[t] = g_a[t] @ W_o + g_z[t+1] @ W_h for t <= T-2",
              "Without cuts it is full backpropagation through time", s, STREAM,
              assumes=("keep[k] = 1",)),
        claim("truncation.ignored-cut",
              "g_h[t] = g_a[t] @ W_o + g_z[t+1] @ W_h for t <= T-2",
              "With a cut the future term is lost", s, STREAM, expected="fails",
              reason="no signal passes a detached state"),
    )  # fmt: skip


def paths() -> tuple[Claim, ...]:
    """Return which dependencies have a gradient path."""
    s, cut = "rnn_stream", ("keep[b] = 0",)
    return (
        claim("truncation.no-state-path", "dh[t,i]/dh[s,r] = 0 for s+1 <= b, b <= t",
              "No gradient path crosses a cut", s, STREAM, assumes=cut),
        claim("truncation.no-input-path", "dh[t,i]/dx[s,k] = 0 for s+1 <= b, b <= t",
              "A target after a cut has no path to an input before it", s, STREAM, assumes=cut),
        claim("truncation.long-dependency", "dh[t,i]/dx[s,k] = 0 for s <= e, e+1 <= b, b <= t",
              "With windows of w positions one of e+1..t, e = t-w, is a cut: a dependency at least "
              "as long as the window (s <= e) has no path", s, STREAM, assumes=cut),
        claim("truncation.short-dependency", "dh[t,i]/dx[s,k] = 0 for s <= b, b <= t",
              "A source at the cut itself is inside the window", s, STREAM, assumes=cut,
              expected="fails", reason="the input at a cut is read after it"),
        claim("truncation.inside", "dh[t]/dh[t-1] = diag(1 - h[t]^2) @ W_h for t >= 1",
              "Inside a window the Jacobian is the one without cuts", s, STREAM,
              assumes=("keep[k] = 1",)),
    )  # fmt: skip


def window() -> tuple[Claim, ...]:
    """Return what one window of T positions holds."""
    s = "rnn_window"
    return (
        claim("truncation.targets-with-path", "sum(t=lag..T-1, 1) = T - lag",
              "Of a window's T targets T - lag have their source, lag positions back, inside it", s,
              STREAM),
        claim("truncation.window-sum", "dL/dW_h = sum(t, g_z[t].T @ h[t-1])",
              "A window's gradient sums over its own uses, the first of the carried state", s,
              STREAM),
        claim("truncation.window-paths",
              "dh[t]/dh[s] = prod(k=t..s+1, diag(1 - h[k]^2) @ W_h) for s <= t",
              "and multiplies the Jacobians between", s, STREAM),
        claim("truncation.all-targets", "sum(t=lag..T-1, 1) = T",
              "Not every target has one", s, STREAM, expected="fails",
              reason="the first targets look into an earlier window"),
    )  # fmt: skip


def learning() -> tuple[Claim, ...]:
    """Return what no gradient path does not mean."""
    s, alone = "rnn_stream", ("keep[k] = 0",)
    return (
        claim("truncation.head-gradient", "dL/dW_o = sum(t, g_a[t].T @ h[t])",
              "The readout's gradient reads the carried states themselves: it needs no path", s,
              STREAM),
        claim("truncation.head-gradient-cut", "dL/dW_o = 0*W_o",
              "so with a cut at every position a readout still learns from what the states carry: "
              "no gradient path is not never learned", s, STREAM, assumes=alone, expected="fails",
              reason="a fixed recurrence carries its inputs forward, and a readout can use them"),
        claim("truncation.one-step-signal", "g_z[t] = (g_a[t] @ W_o)*(1 - h[t]^2)",
              "With a cut at every position a signal comes from its own loss alone", s, STREAM,
              assumes=alone),
        claim("truncation.recurrent-gradient-cut",
              "dL/dW_h = sum(t, ((g_a[t] @ W_o)*(1 - h[t]^2)).T @ h[t-1])",
              "and W_h learns from one step", s, STREAM, assumes=alone,
              using=("truncation.one-step-signal",)),
    )  # fmt: skip
