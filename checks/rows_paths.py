"""The rows of torch code for paths, clipping, sequence models and descent."""

from __future__ import annotations

from derive.checks import forwards as F
from derive.checks import forwards_descent as D
from derive.checks import forwards_paths as P
from derive.checks import forwards_sequences as Q
from derive.checks.rows import HEAD, INPUT, TANH, Module, Row

CUT = "sum(r, W_h[j,r]*(keep[t]*h[t-1,r] + (1 - keep[t])*detach(h[t-1,r])))"
AGAIN = "sum(r, W_h[j,r]*h[t-1,r])"
WORDS = (
    "a[t,v] = sum(i, W_o[v,i]*h[t,i]) + b_o[v]",
    "p[t,v] = softmax(v, a[t,v])",
    "l[t] = -sum(v, Y[t,v]*log(p[t,v]))",
)
STREAM = {"stream": "sum(t, l[t])"}
FINAL = "1/2*sum(j, (h[T-1,j] - y[j])^2)"

PATHS: dict[str, Row] = {
    "scalar_tanh": Row(
        P.scalar_tanh,
        ("z[t] = w*h[t-1] + x[t]", "h[t] = tanh(z[t])", "f[t] = w*(1 - h[t]^2)"),
        {"final": "h[T-1]"},
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
    ),
    "rnn_stream": Row(
        F.rnn,
        (f"{INPUT} + b_h[j] + {CUT}", TANH, *HEAD),
        STREAM,
        (Module("torch.nn.RNNCell", F.nn_rnn_cell, frozenset({"p"}), shared=True),),
    ),
    "rnn_window": Row(
        F.rnn,
        (f"{INPUT} + {AGAIN} + b_h[j]", TANH, *HEAD),
        STREAM,
        (Module("torch.nn.RNN", F.nn_rnn, frozenset({"h", "p"})),),
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
    ),
    "one_to_many": Row(
        Q.one_to_many,
        (f"z[t,j] = delta(t,0)*sum(k, W_x[j,k]*start[k]) + {AGAIN} + b_h[j]", TANH, *WORDS),
        {"every": "mean(t, l[t])"},
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
        (Module("torch.nn.RNN", Q.nn_bidirectional, frozenset({"h", "b"})),),
    ),
    "rnn_masked": Row(
        Q.rnn_masked,
        (f"{INPUT} + {AGAIN}", "h[t,j] = m[t]*tanh(z[t,j]) + (1 - m[t])*h[t-1,j]"),
        {"final": FINAL},
    ),
    "power": Row(D.power, ("y = x^T",)),
    "quadratic": Row(
        D.quadratic,
        (
            "value = 1/2*sum(i, j, x[i]*A[i,j]*x[j]) - sum(i, b[i]*x[i])",
            "G[i] = 1/2*sum(j, (A[i,j] + A[j,i])*x[j]) - b[i]",
            "moved = 1/2*sum(i, j, (x[i] + e[i])*A[i,j]*(x[j] + e[j]))"
            " - sum(i, b[i]*(x[i] + e[i]))",
        ),
        {"quadratic": "value"},
    ),
    "maps": Row(
        D.maps,
        ("u[j] = tanh(sum(i, W[j,i]*x[i]) + b[j])", "y[k] = sum(j, V[k,j]*u[j])"),
        {},
        (Module("torch.nn.functional", D.nn_maps),),
    ),
    "descent": Row(
        D.descent,
        (
            "theta[t,i] = theta[t-1,i] - eta*lam[i]*theta[t-1,i]",
            "f[t] = 1/2*sum(i, lam[i]*theta[t,i]^2)",
        ),
        {},
        (Module("torch.autograd.grad", D.nn_descent),),
    ),
    "sgd": Row(
        D.sgd,
        ("l[n] = 1/2*(sum(i, X[n,i]*theta[i]) - y[n])^2",),
        {
            "mean": "mean(n, l[n])",
            "penalised": "mean(n, l[n]) + 1/2*decay*sum(i, theta[i]^2)",
        },
    ),
}
