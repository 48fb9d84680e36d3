"""The equations of the gated recurrent unit: PyTorch's form, a single step, the other forms."""

from __future__ import annotations

from derive.building import build_system
from derive.equation import System
from derive.topics.rnn import HEAD, LOSSES
from derive.topics.rnn import MEANINGS as PLAIN
from derive.topics.rnn import SHAPES as PLAIN_SHAPES

GATES = {"r": "reset gate", "z": "update gate", "n": "candidate"}
MEANINGS = {
    **{n: PLAIN[n] for n in ("x", "h", "y", "W_o", "b_o", "a", "p", "Y", "l", "L")},
    **{f"W_x{g}": f"input weights of the {what}" for g, what in GATES.items()},
    **{f"W_h{g}": f"recurrent weights of the {what}" for g, what in GATES.items()},
    **{f"b_x{g}": f"input bias of the {what}" for g, what in GATES.items()},
    **{f"b_h{g}": f"recurrent bias of the {what}" for g, what in GATES.items()},
    **{f"s_{g}": f"preactivation of the {what}" for g, what in GATES.items()},
    **GATES,
    "m": "recurrent affine map of the candidate, before the reset gate",
}
WEIGHTS = {
    **{f"W_x{g}": ("H", "D") for g in GATES},
    **{f"W_h{g}": ("H", "H") for g in GATES},
    **{f"b_x{g}": ("H",) for g in GATES},
    **{f"b_h{g}": ("H",) for g in GATES},
}
SHAPES = {n: PLAIN_SHAPES[n] for n in ("x", "y", "W_o", "b_o", "Y")} | WEIGHTS


def gate(name: str, before: str, at: str = "t,", place: str = "") -> str:
    """Return a gate's preactivation with both biases, at a position or in a single step."""
    return (
        f"s_{name}[{at}j] = sum(k, W_x{name}[j,k]*x[{at}k]) + b_x{name}[j]"
        f" + sum(i, W_h{name}[j,i]*{before}[{place}i]) + b_h{name}[j]"
    )


CELL = (
    gate("r", "h", "t,", "t-1,"),
    "r[t,j] = sigmoid(s_r[t,j])",
    gate("z", "h", "t,", "t-1,"),
    "z[t,j] = sigmoid(s_z[t,j])",
    "m[t,j] = sum(i, W_hn[j,i]*h[t-1,i]) + b_hn[j]",
    "s_n[t,j] = sum(k, W_xn[j,k]*x[t,k]) + b_xn[j] + r[t,j]*m[t,j]",
    "n[t,j] = tanh(s_n[t,j])",
    "h[t,j] = (1 - z[t,j])*n[t,j] + z[t,j]*h[t-1,j]",
)
STEP = (
    gate("r", "h_prev", ""),
    "r[j] = sigmoid(s_r[j])",
    gate("z", "h_prev", ""),
    "z[j] = sigmoid(s_z[j])",
    "m[j] = sum(i, W_hn[j,i]*h_prev[i]) + b_hn[j]",
    "s_n[j] = sum(k, W_xn[j,k]*x[k]) + b_xn[j] + r[j]*m[j]",
    "n[j] = tanh(s_n[j])",
    "h[j] = (1 - z[j])*n[j] + z[j]*h_prev[j]",
)


def gru_system() -> System:
    """Return the network with both losses, over T, D, H, C."""
    return build_system(
        "gru",
        ("T", "D", "H", "C"),
        SHAPES,
        CELL + HEAD,
        losses=LOSSES,
        targets=("y",),
        onehot=("Y",),
        meanings=MEANINGS,
    )


def cell_system() -> System:
    """Return one step, with the previous state an input of its own."""
    return build_system(
        "gru_cell",
        ("D", "H"),
        {"x": ("D",), "h_prev": ("H",), **WEIGHTS},
        STEP,
        parameters=tuple(WEIGHTS),
        meanings={**MEANINGS, "h_prev": "previous state, an input of its own"},
    )


def reset_before_system() -> System:
    """Return the network of the 2014 paper: the reset gate acts before the recurrent map."""
    shapes = {n: PLAIN_SHAPES[n] for n in ("x", "y")} | WEIGHTS
    return build_system(
        "gru_reset_before",
        ("T", "D", "H"),
        shapes,
        (
            *CELL[:4],
            "s_n[t,j] = sum(k, W_xn[j,k]*x[t,k]) + b_xn[j]"
            " + sum(i, W_hn[j,i]*r[t,i]*h[t-1,i]) + b_hn[j]",
            *CELL[6:],
        ),
        losses={"final": LOSSES["final"]},
        targets=("y",),
        meanings=MEANINGS,
    )


def gates_system() -> System:
    """Return the blend over a sequence with its preactivations given.

    What is claimed holds for every way to compute them; nothing but the direct path is left.
    """
    return build_system(
        "gru_gates",
        ("T", "H"),
        {"s_z": ("T", "H"), "s_n": ("T", "H"), "q": ()},
        ("z[t,j] = sigmoid(s_z[t,j])", "n[t,j] = tanh(s_n[t,j])", CELL[-1]),
        parameters=(),
        meanings={**MEANINGS, "q": "a bound of the update gates"},
    )


def resets_system() -> System:
    """Return both candidates of one step, everything that they read an input of its own."""
    return build_system(
        "gru_resets",
        ("H",),
        {
            "u": ("H",),
            "r": ("H",),
            "c": (),
            "h_prev": ("H",),
            "W_hn": ("H", "H"),
            "b_hn": ("H",),
        },
        (
            "after[j] = u[j] + r[j]*(sum(i, W_hn[j,i]*h_prev[i]) + b_hn[j])",
            "before[j] = u[j] + sum(i, W_hn[j,i]*r[i]*h_prev[i]) + b_hn[j]",
            "n_after[j] = tanh(after[j])",
            "n_before[j] = tanh(before[j])",
        ),
        parameters=("W_hn", "b_hn"),
        meanings={
            "u": "the input's part of the candidate",
            "r": "reset gate, an input of its own",
            "c": "one value for the gates of all units",
            "h_prev": "previous state",
            "W_hn": MEANINGS["W_hn"],
            "b_hn": MEANINGS["b_hn"],
            "after": "preactivation with the reset after the map (torch)",
            "before": "preactivation with the reset before the map (2014 paper, ONNX default)",
            "n_after": "candidate with the reset after the map",
            "n_before": "candidate with the reset before the map",
        },
    )


def blends_system() -> System:
    """Return both blends of one step, their gates from opposite preactivations."""
    return build_system(
        "gru_blends",
        ("H",),
        {"s": ("H",), "n": ("H",), "h_prev": ("H",)},
        (
            "z[j] = sigmoid(s[j])",
            "u[j] = sigmoid(-s[j])",
            "h[j] = (1 - z[j])*n[j] + z[j]*h_prev[j]",
            "k[j] = u[j]*n[j] + (1 - u[j])*h_prev[j]",
        ),
        parameters=(),
        meanings={
            "s": "preactivation of the gate",
            "n": "candidate",
            "h_prev": "previous state",
            "z": "gate that keeps the memory where it is 1",
            "u": "gate that takes the candidate where it is 1",
            "h": "blend of torch and ONNX",
            "k": "blend of the other texts",
        },
    )
