"""The rows of torch code for gated networks and embeddings."""

from __future__ import annotations

from derive.checks import forwards_gated as G
from derive.checks import modules_gated as N
from derive.checks.rows import BOTH, FINAL, HEAD, Module, Row

SEQUENCE = "sum(k, W_x{g}[j,k]*x[t,k]) + b_x{g}[j] + sum({i}, W_h{g}[j,{i}]*h[t-1,{i}]) + b_h{g}[j]"


def over_time(gate: str, letter: str, more: str = "") -> str:
    """Return a gate's preactivation over a sequence; a letter runs over the previous state."""
    return f"s_{gate}[t,j] = " + SEQUENCE.format(g=gate, i=letter) + more


def single(equation: str) -> str:
    """Return an equation of a sequence for one step, the previous states inputs."""
    for state in "hc":
        equation = equation.replace(f"{state}[t-1,", f"{state}_prev[")
    return equation.replace("[t,", "[")


GRU_GATES = (
    over_time("r", "i"),
    "r[t,j] = sigmoid(s_r[t,j])",
    over_time("z", "i"),
    "z[t,j] = sigmoid(s_z[t,j])",
)
GRU_STATES = ("n[t,j] = tanh(s_n[t,j])", "h[t,j] = (1 - z[t,j])*n[t,j] + z[t,j]*h[t-1,j]")
GRU = (
    *GRU_GATES,
    "m[t,j] = sum(i, W_hn[j,i]*h[t-1,i]) + b_hn[j]",
    "s_n[t,j] = sum(k, W_xn[j,k]*x[t,k]) + b_xn[j] + r[t,j]*m[t,j]",
    *GRU_STATES,
)
INPUT = (over_time("i", "r"), "i[t,j] = sigmoid(s_i[t,j])")
FORGET = (over_time("f", "r"), "f[t,j] = sigmoid(s_f[t,j])")
CANDIDATE = (over_time("g", "r"), "g[t,j] = tanh(s_g[t,j])")
OUTPUT = (over_time("o", "r"), "o[t,j] = sigmoid(s_o[t,j])")
CELL, SHOWN = "c[t,j] = f[t,j]*c[t-1,j] + i[t,j]*g[t,j]", "h[t,j] = o[t,j]*tanh(c[t,j])"
LSTM = (*INPUT, *FORGET, *CANDIDATE, *OUTPUT, CELL, SHOWN)

GATED: dict[str, Row] = {
    "gru": Row(
        G.gru,
        GRU + HEAD,
        BOTH,
        (
            Module("torch.nn.GRU", N.nn_gru, frozenset({"h", "p"})),
            Module("torch.nn.GRUCell", N.nn_gru_steps, frozenset({"p"}), shared=True),
        ),
    ),
    "gru_cell": Row(
        G.gru_cell,
        tuple(map(single, GRU)),
        {},
        (Module("torch.nn.GRUCell", N.nn_gru_cell),),
    ),
    "gru_reset_before": Row(
        G.gru_reset_before,
        (
            *GRU_GATES,
            "s_n[t,j] = sum(k, W_xn[j,k]*x[t,k]) + b_xn[j]"
            " + sum(i, W_hn[j,i]*r[t,i]*h[t-1,i]) + b_hn[j]",
            *GRU_STATES,
        ),
        FINAL,
    ),
    "gru_resets": Row(
        G.gru_resets,
        (
            "after[j] = u[j] + r[j]*(sum(i, W_hn[j,i]*h_prev[i]) + b_hn[j])",
            "before[j] = u[j] + sum(i, W_hn[j,i]*r[i]*h_prev[i]) + b_hn[j]",
            "n_after[j] = tanh(after[j])",
            "n_before[j] = tanh(before[j])",
        ),
    ),
    "gru_blends": Row(
        G.gru_blends,
        (
            "z[j] = sigmoid(s[j])",
            "u[j] = sigmoid(-s[j])",
            "h[j] = (1 - z[j])*n[j] + z[j]*h_prev[j]",
            "k[j] = u[j]*n[j] + (1 - u[j])*h_prev[j]",
        ),
    ),
    "gru_gates": Row(G.gru_gates, (GRU_GATES[3], *GRU_STATES)),
    "lstm_gates": Row(G.lstm_gates, (INPUT[1], FORGET[1], CANDIDATE[1], OUTPUT[1], CELL, SHOWN)),
    "lstm": Row(
        G.lstm,
        LSTM + HEAD,
        BOTH,
        (
            # the cell state of a position is computed inside, beside the state that reads it
            Module("torch.nn.LSTM", N.nn_lstm, frozenset({"h", "c", "p"})),
            Module("torch.nn.LSTMCell", N.nn_lstm_steps, frozenset({"c", "p"}), shared=True),
        ),
    ),
    "lstm_cell": Row(
        G.lstm_cell,
        tuple(map(single, LSTM)),
        {},
        (Module("torch.nn.LSTMCell", N.nn_lstm_cell, frozenset({"c"})),),
    ),
    "lstm_peephole": Row(
        G.lstm,
        (
            over_time("i", "r", " + p_i[j]*c[t-1,j]"),
            INPUT[1],
            over_time("f", "r", " + p_f[j]*c[t-1,j]"),
            FORGET[1],
            *CANDIDATE,
            CELL,
            over_time("o", "r", " + p_o[j]*c[t,j]"),
            OUTPUT[1],
            SHOWN,
        ),
        FINAL,
    ),
    "lstm_coupled": Row(
        G.lstm,
        (*FORGET, "i[t,j] = 1 - f[t,j]", *CANDIDATE, *OUTPUT, CELL, SHOWN),
        FINAL,
    ),
    "lstm_stacked": Row(
        G.lstm_stacked,
        (
            "v[k] = sum(r, P[k,r]*h_prev[r]) + sum(d, Q[k,d]*x[d])",
            "W_h[j,r] = sum(k, W[j,k]*P[k,r])",
            "W_x[j,d] = sum(k, W[j,k]*Q[k,d])",
            "s[j] = sum(k, W[j,k]*v[k])",
        ),
    ),
    "embedding": Row(
        G.embedding,
        (
            "e[t,k] = sum(v, Y[t,v]*E[v,k])",
            "z[t,j] = sum(k, W_x[j,k]*e[t,k]) + sum(r, W_h[j,r]*h[t-1,r]) + b_h[j]",
            "h[t,j] = tanh(z[t,j])",
        ),
        FINAL,
        (Module("torch.nn.Embedding", N.nn_embedding, frozenset({"Y"})),),
    ),
}
