"""Systems that a user would write: gated, normalised, attending, residual, pooled.

Each row is one statement; the true ones are proved for all sizes, the false ones have a
counterexample.
"""

import pytest

from derive.building import build_system
from derive.duality import duality
from derive.errors import DeriveError
from derive.prove import prove
from derive.refute import refute
from derive.statement import read_statement

FINAL = {"loss": "1/2*sum(j, (h[T-1,j] - y[j])^2)"}
GRU = build_system(
    "gru",
    ("T", "D", "H"),
    {
        "x": ("T", "D"),
        "y": ("H",),
        **{f"W_x{g}": ("H", "D") for g in "urn"},
        **{f"W_h{g}": ("H", "H") for g in "urn"},
        **{f"b_{s}{g}": ("H",) for g in "urn" for s in "xh"},
    },
    (
        *(
            f"{g}[t,j] = sigmoid(sum(k, W_x{g}[j,k]*x[t,k]) + b_x{g}[j]"
            f" + sum(i, W_h{g}[j,i]*h[t-1,i]) + b_h{g}[j])"
            for g in "ur"
        ),
        "m[t,j] = sum(i, W_hn[j,i]*h[t-1,i]) + b_hn[j]",
        "n[t,j] = tanh(sum(k, W_xn[j,k]*x[t,k]) + b_xn[j] + r[t,j]*m[t,j])",
        "h[t,j] = u[t,j]*h[t-1,j] + (1 - u[t,j])*n[t,j]",
    ),
    losses=FINAL,
    targets=("y",),
)
LSTM = build_system(
    "lstm",
    ("T", "D", "H"),
    {
        "x": ("T", "D"),
        "y": ("H",),
        **{f"W_x{g}": ("H", "D") for g in "ifog"},
        **{f"W_h{g}": ("H", "H") for g in "ifog"},
        **{f"b_{g}": ("H",) for g in "ifog"},
    },
    (
        *(
            f"{g}[t,j] = {f}(sum(k, W_x{g}[j,k]*x[t,k]) + sum(r, W_h{g}[j,r]*h[t-1,r]) + b_{g}[j])"
            for g, f in zip("ifog", ("sigmoid", "sigmoid", "sigmoid", "tanh"), strict=True)
        ),
        "c[t,j] = f[t,j]*c[t-1,j] + i[t,j]*g[t,j]",
        "h[t,j] = o[t,j]*tanh(c[t,j])",
    ),
    losses=FINAL,
    targets=("y",),
)
NORM = build_system(
    "layer_norm",
    ("T", "D"),
    {"x": ("T", "D"), "gamma": ("D",), "beta": ("D",), "eps": (), "G": ("T", "D")},
    (
        "mu[t] = mean(k, x[t,k])",
        "v[t] = mean(k, (x[t,k] - mu[t])^2)",
        "s[t] = sqrt(v[t] + eps)",
        "n[t,k] = (x[t,k] - mu[t])/s[t]",
        "y[t,k] = gamma[k]*n[t,k] + beta[k]",
    ),
    losses={"loss": "sum(t, k, G[t,k]*y[t,k])"},
)
ATTENTION = build_system(
    "attention",
    ("T", "S", "K", "V"),
    {"Q": ("T", "K"), "Keys": ("S", "K"), "Values": ("S", "V"), "G": ("T", "V")},
    (
        "s[t,j] = sum(k, Q[t,k]*Keys[j,k])/sqrt(K)",
        "A[t,j] = softmax(j, s[t,j])",
        "o[t,v] = sum(j, A[t,j]*Values[j,v])",
    ),
    losses={"loss": "sum(t, v, G[t,v]*o[t,v])"},
    positions=(),
)
RESIDUAL = build_system(
    "residual",
    ("T", "H"),
    {"W": ("H", "H"), "y": ("H",), "x": ("T", "H")},
    ("z[t,j] = sum(i, W[j,i]*h[t-1,i]) + x[t,j]", "h[t,j] = tanh(z[t,j]) + h[t-1,j]"),
    losses=FINAL,
    targets=("y",),
)
POOLED = build_system(
    "pooled",
    ("T", "D", "H"),
    {"x": ("T", "D"), "W": ("H", "D"), "y": ("H",)},
    ("z[t,j] = sum(k, W[j,k]*x[t,k])", "q[j] = mean(t, tanh(z[t,j]))"),
    losses={"loss": "1/2*sum(j, (q[j] - y[j])^2)"},
    targets=("y",),
)
WINDOWED = build_system(
    "windowed",
    ("T",),
    {"x": ("T",), "w": (), "v": ()},
    ("u[t] = 2*tanh(sum(s=t..T-1, x[s])*v + w*u[t-1])", "e[t] = (1 - w)*e[t-1] + w*x[t]"),
    losses={"loss": "u[T-1] + e[T-1]"},
)
SYSTEMS = (WINDOWED, GRU, LSTM, NORM, ATTENTION, RESIDUAL, POOLED)

TRUE = (
    (WINDOWED, "g_x[s] = sum(t=0..s, 2*g_u[t]*(1 - (u[t]/2)^2)*v) + g_e[s]*w"),
    (WINDOWED, "e[t] = (1-w)^(t+1)*e[-1] + w*sum(s=0..t, (1-w)^(t-s)*x[s])"),
    (WINDOWED, "de[t]/dx[s] = w*(1-w)^(t-s) for s <= t"),
    (WINDOWED, "exp(log(x[t])) = x[t]"),
    (WINDOWED, "sum(s=0..t, 1)*w = (t+1)*w"),
    (GRU, "h[t] = u[t]*h[t-1] + (1 - u[t])*n[t]"),
    (GRU, "dL/dW_hn[j,i] = sum(t, g_h[t,j]*(1 - u[t,j])*(1 - n[t,j]^2)*r[t,j]*h[t-1,i])"),
    (GRU, "dL/db_hn = sum(t, g_m[t])"),
    (GRU, "dL/db_xu = dL/db_hu"),
    (GRU, "dh[t]/dh[t-1] = diag(u[t]) + diag((h[t-1] - n[t])*u[t]*(1 - u[t])) @ W_hu"
     " + diag((1 - u[t])*(1 - n[t]^2)) @ (diag(r[t]) @ W_hn"
     " + diag(m[t]*r[t]*(1 - r[t])) @ W_hr)"),
    (LSTM, "c[t] = f[t]*c[t-1] + i[t]*g[t]"),
    (LSTM, "partial c[t]/partial c[t-1] = diag(f[t])"),
    (LSTM, "dL/dW_hf[j,r] = sum(t, g_c[t,j]*c[t-1,j]*f[t,j]*(1 - f[t,j])*h[t-1,r])"),
    (LSTM, "g_c[t,j] = g_h[t,j]*o[t,j]*(1 - tanh(c[t,j])^2) + g_c[t+1,j]*f[t+1,j] for t <= T-2"),
    (LSTM, "dL/db_o[j] = sum(t, g_h[t,j]*tanh(c[t,j])*o[t,j]*(1 - o[t,j]))"),
    (NORM, "sum(k, n[t,k]) = 0"),
    (NORM, "mean(k, n[t,k]^2) = v[t]/(v[t] + eps)"),
    (NORM, "dn[t,i]/dx[t,j] = (delta(i,j) - 1/D - n[t,i]*n[t,j]/D)/s[t]"),
    (NORM, "dL/dx[t,i] = (G[t,i]*gamma[i] - mean(k, G[t,k]*gamma[k])"
     " - n[t,i]*mean(k, G[t,k]*gamma[k]*n[t,k]))/s[t]"),
    (NORM, "var(k, x[t,k]) = v[t]"),
    (NORM, "dL/dgamma = sum(t, G[t]*n[t])"),
    (ATTENTION, "sum(j, A[t,j]) = 1"),
    (ATTENTION, "dL/dValues = A.T @ G"),
    (ATTENTION, "g_s[t,j] = A[t,j]*(g_A[t,j] - sum(i, A[t,i]*g_A[t,i]))"),
    (ATTENTION, "dL/dQ = g_s @ Keys/sqrt(K)"),
    (ATTENTION, "dL/dKeys = g_s.T @ Q/sqrt(K)"),
    (RESIDUAL, "dh[t]/dh[t-1] = eye(H) + diag(1 - tanh(z[t])^2) @ W"),
    (RESIDUAL, "dh[t]/dh[s] = prod(k=t..s+1, eye(H) + diag(1 - tanh(z[k])^2) @ W) for s <= t"),
    (RESIDUAL, "g_h[t-1] = g_h[t] + g_z[t] @ W"),
    (POOLED, "dL/dW[j,k] = sum(t, (q[j] - y[j])*(1 - tanh(z[t,j])^2)*x[t,k])/T"),
)  # fmt: skip
FALSE = (
    (WINDOWED, "sum(t=0..T-1, tanh(delta(t,0)*v)) = T*tanh(v)"),
    (WINDOWED, "sum(t, x[t]*tanh(delta(t,0)*v)) = tanh(v)*sum(t, x[t])"),
    (WINDOWED, "de[t]/dx[s] = w*(1-w)^(t-s+1) for s <= t"),
    (GRU, "dL/db_xn = dL/db_hn"),
    (GRU, "h[t] = (1 - u[t])*h[t-1] + u[t]*n[t]"),
    (LSTM, "dc[t,j]/dc[t-1,q] = delta(j,q)*f[t,j]"),
    (LSTM, "dL/dW_hf[j,r] = sum(t, g_c[t,j]*c[t-1,j]*f[t,j]*h[t-1,r])"),
    (NORM, "mean(k, n[t,k]^2) = 1"),
    (NORM, "dn[t,i]/dx[t,j] = delta(i,j)/s[t]"),
    (ATTENTION, "dL/dQ = g_s @ Keys/sqrt(V)"),
    (ATTENTION, "dL/dQ = g_s @ Keys"),
    (RESIDUAL, "dh[t]/dh[t-1] = diag(1 - tanh(z[t])^2) @ W"),
    (POOLED, "dL/dW[j,k] = sum(t, (q[j] - y[j])*(1 - tanh(z[t,j])^2)*x[t,k])"),
)


@pytest.mark.parametrize(("system", "text"), TRUE)
def test_true_statements_are_proved(system, text):
    identity = read_statement(system.with_loss("loss"), text)
    assert prove(identity).proved
    assert refute(identity, sizes=dict.fromkeys(system.dims, 2)) is None


@pytest.mark.parametrize(("system", "text"), FALSE)
def test_false_statements_are_refuted(system, text):
    identity = read_statement(system.with_loss("loss"), text)
    assert not prove(identity).proved
    assert refute(identity) is not None


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: s.name)
def test_forward_and_reverse_agree(system):
    assert duality(system.with_loss("loss")).proved


@pytest.mark.parametrize(
    ("equations", "message"),
    (
        (("h[t] = w*h[t+1]",), "a later position"),
        (("a[t] = b[t]*v[t]", "b[t] = v[t]"), "before it is computed"),
        (("a[t] = v[t]", "a[t] = w*v[t]"), "two equations"),
        (("a[t] = v[q]",), "neither a known name nor an index of the left side"),
        (("a[t] = nope[t]*v[t]",), "unknown name 'nope'"),
        (("a[t,t] = v[t]",), "distinct index names"),
        (("a[t] = tanhh(v[t])",), "did you mean 'tanh'"),
        (("a[0] = v[0]",), "distinct index names"),
        (("v[t] = 1 for t >= 1",), "holds for every index"),
    ),
)
def test_a_system_that_does_not_fit_says_why(equations, message):
    with pytest.raises(DeriveError, match=message):
        build_system("s", ("T",), {"w": (), "v": ("T",)}, equations)
