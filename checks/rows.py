"""What stands in a row of torch code, and the rows of the plain networks.

A row is used only where a system's equations and loss read as the row says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from derive.checks import forwards as F


@dataclass(frozen=True)
class Module:
    """A forward through torch.nn.

    Args:
        name: As reported.
        forward: The function.
        closed: No derivative by these: values that it shows but does not read again, class targets.
        shared: Its rows share parameters: no derivative of many entries by a parameter.
        inplace: It writes in place: it shows values, and no derivative.
        takes: Whether it can be made at these sizes.
    """

    name: str
    forward: F.Forward
    closed: frozenset[str] = frozenset()
    shared: bool = False
    inplace: bool = False
    takes: Callable[[Mapping[str, int]], bool] = lambda _: True


@dataclass(frozen=True)
class Row:
    """The torch code of one system.

    Args:
        forward: Hand-written.
        equations: What it implements, as the system writes it.
        losses: Its losses, likewise.
        modules: The same through torch.nn, best first.
    """

    forward: F.Forward
    equations: tuple[str, ...]
    losses: Mapping[str, str] = field(default_factory=dict)
    modules: tuple[Module, ...] = ()


TANH = "h[t,j] = tanh(z[t,j])"
INPUT = "z[t,j] = sum(k, W_x[j,k]*x[t,k])"
CELL = (f"{INPUT} + sum(r, W_h[j,r]*h[t-1,r]) + b_h[j]", TANH)
HEAD = (
    "a[t,c] = sum(i, W_o[c,i]*h[t,i]) + b_o[c]",
    "p[t,c] = softmax(c, a[t,c])",
    "l[t] = -sum(c, Y[t,c]*log(p[t,c]))",
)
BATCH = (
    "z[t,n,j] = sum(k, W_x[j,k]*x[t,n,k]) + sum(r, W_h[j,r]*h[t-1,n,r]) + b_h[j]",
    "h[t,n,j] = tanh(z[t,n,j])",
    "a[t,n,c] = sum(i, W_o[c,i]*h[t,n,i]) + b_o[c]",
    "p[t,n,c] = softmax(c, a[t,n,c])",
    "l[t,n] = -sum(c, Y[t,n,c]*log(p[t,n,c]))",
)
FINAL = {"final": "1/2*sum(j, (h[T-1,j] - y[j])^2)"}
BOTH = FINAL | {"per_position": "mean(t, l[t])"}
SEQUENCE = Module("torch.nn.RNN", F.nn_rnn, frozenset({"h", "p"}))
STEPS = Module("torch.nn.RNNCell", F.nn_rnn_cell, frozenset({"p"}), shared=True)
SOFTMAX = Module("torch.nn.functional", F.functional_softmax, frozenset({"p", "l", "lse", "Y"}))

RNN = Row(F.rnn, CELL + HEAD, BOTH, (SEQUENCE, STEPS))

PLAIN: dict[str, Row] = {
    "rnn": RNN,
    "rnn_column": RNN,
    "rnn_batch": Row(
        F.rnn,
        BATCH,
        {
            "final": "mean(n, 1/2*sum(j, (h[T-1,n,j] - y[n,j])^2))",
            "per_position": "mean(n, mean(t, l[t,n]))",
        },
        (SEQUENCE, STEPS),
    ),
    "rnn_two_biases": Row(
        F.rnn,
        (f"{INPUT} + b_ih[j] + sum(r, W_h[j,r]*h[t-1,r]) + b_hh[j]", TANH),
        FINAL,
        (SEQUENCE, STEPS),
    ),
    "rnn_truncated": Row(
        F.rnn,
        (
            f"{INPUT} + b_h[j] + sum(r, W_h[j,r]*"
            "(keep[t]*h[t-1,r] + (1 - keep[t])*detach(h[t-1,r])))",
            TANH,
        ),
        FINAL,
        (STEPS,),
    ),
    "rnn_cell": Row(
        F.cell,
        (
            "z[j] = sum(k, W_x[j,k]*x[k]) + sum(r, W_h[j,r]*h_prev[r]) + b_h[j]",
            "h[j] = tanh(z[j])",
        ),
        {},
        (Module("torch.nn.RNNCell", F.nn_cell),),
    ),
    "linear": Row(F.linear, ("h[t] = w*h[t-1] + u*x[t]",), {"final": "h[T-1]"}),
    "linear_matrix": Row(
        F.linear_matrix,
        ("h[t,j] = sum(k, W_x[j,k]*x[t,k]) + sum(r, W_h[j,r]*h[t-1,r])",),
        FINAL,
    ),
    "softmax": Row(
        F.softmax,
        (
            "p[t,c] = softmax(c, a[t,c])",
            "lse[t] = logsumexp(c, a[t,c])",
            "l[t] = lse[t] - sum(c, Y[t,c]*a[t,c])",
        ),
        {"sum": "sum(t, l[t])", "mean": "mean(t, l[t])"},
        (SOFTMAX,),
    ),
    "softmax_kept": Row(
        F.softmax_kept,
        (
            "p[t,c] = softmax(c, a[t,c])",
            "l[t] = -sum(c, Y[t,c]*log(p[t,c]))",
            "n_kept = sum(t, m[t])",
        ),
        {"mean_kept": "sum(t, m[t]*l[t])/n_kept"},
        (SOFTMAX,),
    ),
}
