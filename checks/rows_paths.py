"""The rows of torch code for paths, clipping, sequence models and descent."""

from __future__ import annotations

from derive.checks import forwards as F
from derive.checks import forwards_descent as D
from derive.checks import forwards_paths as P
from derive.checks import forwards_sequences as Q
from derive.checks import modules_descent as M
from derive.checks import modules_sequences as N
from derive.checks.rows import HEAD, INPUT, SEQUENCE, STEPS, TANH, Module, Row

CUT = "sum(r, W_h[j,r]*(keep[t]*h[t-1,r] + (1 - keep[t])*detach(h[t-1,r])))"
AGAIN = "sum(r, W_h[j,r]*h[t-1,r])"
WORDS = (
    "a[t,v] = sum(i, W_o[v,i]*h[t,i]) + b_o[v]",
    "p[t,v] = softmax(v, a[t,v])",
    "l[t] = -sum(v, Y[t,v]*log(p[t,v]))",
)
STREAM = {"stream": "sum(t, l[t])"}
FINAL = "1/2*sum(j, (h[T-1,j] - y[j])^2)"
JVP = "torch.autograd.functional.jvp of torch.nn.RNNCell"


def whole(forward: F.Forward, *closed: str) -> Module:
    """Return a run of torch.nn.RNN, whose states nothing but the head reads again."""
    return Module("torch.nn.RNN", forward, SEQUENCE.closed | set(closed))


def steps(forward: F.Forward, *closed: str) -> Module:
    """Return a run of torch.nn.RNNCell, whose rows share their parameters."""
    return Module("torch.nn.RNNCell", forward, STEPS.closed | set(closed), shared=True)


PATHS: dict[str, Row] = {
    "scalar_tanh": Row(
        P.scalar_tanh,
        ("z[t] = w*h[t-1] + x[t]", "h[t] = tanh(z[t])", "f[t] = w*(1 - h[t]^2)"),
        {"final": "h[T-1]"},
        (Module("torch.autograd.functional.jvp", M.nn_scalar_tanh),),
    ),
    "scalar_factors": Row(P.scalar_factors, ("h[t] = f[t]*h[t-1] + x[t]",), {"final": "h[T-1]"}),
    "rnn_tangent": Row(
        P.rnn_tangent,
        (
            f"{INPUT} + {AGAIN} + b_h[j]",
            TANH,
            "u[t,j] = sum(r, W_h[j,r]*v[t-1,r])",
            "v[t,j] = (1 - h[t,j]^2)*u[t,j]",
        ),
        {},
        (Module(JVP, N.nn_tangent, shared=True),),
    ),
    "linear_tangent": Row(P.linear_tangent, ("v[t,j] = sum(r, W_h[j,r]*v[t-1,r])",)),
    "clip": Row(
        P.clip,
        (
            "n = norm(g)",
            "s = min(1, c/n)",
            "q[i] = s*g[i]",
            "m = norm(q)",
            "again[i] = min(1, c/m)*q[i]",
            "s_t = min(1, c/(n + eps))",
            "q_t[i] = s_t*g[i]",
            "m_t = norm(q_t)",
            "again_t[i] = min(1, c/(m_t + eps))*q_t[i]",
            "e[i] = max(-c, min(c, g[i]))",
        ),
        {},
        (Module("torch.nn.utils", M.nn_clip, inplace=True),),
    ),
    "rnn_stream": Row(
        F.rnn,
        (f"{INPUT} + b_h[j] + {CUT}", TANH, *HEAD),
        STREAM,
        (STEPS,),
    ),
    "rnn_window": Row(
        F.rnn,
        (f"{INPUT} + {AGAIN} + b_h[j]", TANH, *HEAD),
        STREAM,
        (SEQUENCE, STEPS),
    ),
    "rnn_lm": Row(
        Q.rnn_lm,
        (
            "e[t,k] = sum(v, S[t,v]*E[v,k])",
            f"z[t,j] = sum(k, W_e[j,k]*e[t,k]) + {AGAIN} + b_h[j]",
            TANH,
            *WORDS,
        ),
        {"next": "mean(t, l[t])"},
        (whole(N.nn_lm, "S"), steps(N.nn_lm_steps, "S", "E")),
    ),
    "one_to_many": Row(
        Q.one_to_many,
        (f"z[t,j] = delta(t,0)*sum(k, W_x[j,k]*start[k]) + {AGAIN} + b_h[j]", TANH, *WORDS),
        {"every": "mean(t, l[t])"},
        (whole(N.nn_one_to_many), steps(N.nn_one_to_many_steps)),
    ),
    "seq2seq": Row(
        Q.seq2seq,
        (
            f"{INPUT} + {AGAIN}",
            TANH,
            "c[s,r] = d[s-1,r] + delta(s,0)*h[T-1,r]",
            "q[s,j] = sum(k, V_y[j,k]*u[s,k]) + sum(r, V_d[j,r]*c[s,r])",
            "d[s,j] = tanh(q[s,j])",
            "a[s,v] = sum(i, V_o[v,i]*d[s,i])",
            "p[s,v] = softmax(v, a[s,v])",
            "l[s] = -sum(v, Y[s,v]*log(p[s,v]))",
        ),
        {"target": "mean(s, l[s])"},
        (whole(N.nn_seq2seq, "d"), steps(N.nn_seq2seq_steps)),
    ),
    "bidirectional": Row(
        Q.bidirectional,
        (
            f"{INPUT} + {AGAIN}",
            TANH,
            "zb[t,j] = sum(k, U_x[j,k]*rev[t,k]) + sum(r, U_h[j,r]*b[t-1,r])",
            "b[t,j] = tanh(zb[t,j])",
            "a[c] = sum(i, W_o[c,i]*h[T-1,i]) + sum(i, W_b[c,i]*b[T-1,i])",
        ),
        {"last": "1/2*sum(c, (a[c] - y[c])^2)"},
        (Module("torch.nn.RNN(bidirectional=True)", N.nn_bidirectional, frozenset({"h", "b"})),),
    ),
    "rnn_masked": Row(
        Q.rnn_masked,
        (f"{INPUT} + {AGAIN}", "h[t,j] = m[t]*tanh(z[t,j]) + (1 - m[t])*h[t-1,j]"),
        {"final": FINAL},
        (steps(N.nn_masked),),
    ),
    "power": Row(D.power, ("y = x^T",), {}, (Module("torch.prod", M.nn_power),)),
    "quadratic": Row(
        D.quadratic,
        (
            "value = 1/2*sum(i, j, x[i]*A[i,j]*x[j]) - sum(i, b[i]*x[i])",
            "G[i] = 1/2*sum(j, (A[i,j] + A[j,i])*x[j]) - b[i]",
            "moved = 1/2*sum(i, j, (x[i] + e[i])*A[i,j]*(x[j] + e[j]))"
            " - sum(i, b[i]*(x[i] + e[i]))",
        ),
        {"quadratic": "value"},
        (Module("torch.autograd.grad", M.nn_quadratic),),
    ),
    "maps": Row(
        D.maps,
        ("u[j] = tanh(sum(i, W[j,i]*x[i]) + b[j])", "y[k] = sum(j, V[k,j]*u[j])"),
        {},
        (Module("torch.nn.functional", M.nn_maps),),
    ),
    "descent": Row(
        D.descent,
        (
            "theta[t,i] = theta[t-1,i] - eta*lam[i]*theta[t-1,i]",
            "f[t] = 1/2*sum(i, lam[i]*theta[t,i]^2)",
        ),
        {},
        (
            Module("torch.optim.sgd", M.nn_descent, inplace=True),
            Module("torch.autograd.grad", M.nn_descent_slopes),
        ),
    ),
    "sgd": Row(
        D.sgd,
        ("l[n] = 1/2*(sum(i, X[n,i]*theta[i]) - y[n])^2",),
        {
            "mean": "mean(n, l[n])",
            "penalised": "mean(n, l[n]) + 1/2*decay*sum(i, theta[i]^2)",
        },
        (Module("torch.nn.functional", M.nn_sgd, frozenset({"l"})),),
    ),
}
