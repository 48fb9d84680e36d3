"""The equations of the long short-term memory: a sequence, a single step, and its variants."""

from __future__ import annotations

from derive.building import build_system
from derive.equation import System
from derive.topics.rnn import HEAD, LOSSES
from derive.topics.rnn import MEANINGS as PLAIN
from derive.topics.rnn import SHAPES as PLAIN_SHAPES

GATES = {"i": "input gate", "f": "forget gate", "g": "candidate", "o": "output gate"}
WEIGHTS = {
    **{f"W_x{g}": ("H", "D") for g in GATES},
    **{f"W_h{g}": ("H", "H") for g in GATES},
    **{f"b_x{g}": ("H",) for g in GATES},
    **{f"b_h{g}": ("H",) for g in GATES},
}
MEANINGS = {
    **{n: PLAIN[n] for n in ("x", "h", "y", "W_o", "b_o", "a", "p", "Y", "l", "L")},
    **{f"W_x{g}": f"input weights of the {what}" for g, what in GATES.items()},
    **{f"W_h{g}": f"recurrent weights of the {what}" for g, what in GATES.items()},
    **{f"b_x{g}": f"input bias of the {what}" for g, what in GATES.items()},
    **{f"b_h{g}": f"recurrent bias of the {what}" for g, what in GATES.items()},
    **{f"s_{g}": f"preactivation of the {what}" for g, what in GATES.items()},
    **GATES,
    "c": "cell state; c[-1] is the initial one",
    **{f"p_{g}": f"peephole weights of the {GATES[g]}" for g in "ifo"},
    "c_prev": "previous cell state, an input of its own",
    "h_prev": "previous state, an input of its own",
}


def gate(name: str, peephole: str = "", step: bool = False) -> tuple[str, str]:
    """Return a gate's preactivation with both biases, and the gate.

    Args:
        name: i, f, g or o.
        peephole: Which cell state it sees, if any.
        step: Whether it is a single step, its previous state an input.
    """
    at, before = ("", "h_prev[r]") if step else ("t,", "h[t-1,r]")
    seen = f" + p_{name}[j]*{peephole}" if peephole else ""
    return (
        f"s_{name}[{at}j] = sum(k, W_x{name}[j,k]*x[{at}k]) + b_x{name}[j]"
        f" + sum(r, W_h{name}[j,r]*{before}) + b_h{name}[j]{seen}",
        f"{name}[{at}j] = {'tanh' if name == 'g' else 'sigmoid'}(s_{name}[{at}j])",
    )


STATES = ("c[t,j] = f[t,j]*c[t-1,j] + i[t,j]*g[t,j]", "h[t,j] = o[t,j]*tanh(c[t,j])")
CELL = (*gate("i"), *gate("f"), *gate("g"), *gate("o"), *STATES)


def lstm_system() -> System:
    """Return the network with both losses, over T, D, H, C."""
    shapes = {n: PLAIN_SHAPES[n] for n in ("x", "y", "W_o", "b_o", "Y")} | WEIGHTS
    return build_system(
        "lstm",
        ("T", "D", "H", "C"),
        shapes,
        CELL + HEAD,
        losses=LOSSES,
        targets=("y",),
        onehot=("Y",),
        meanings=MEANINGS,
    )


def cell_system() -> System:
    """Return one step, the previous state and cell state inputs of their own."""
    gates = (text for name in GATES for text in gate(name, step=True))
    return build_system(
        "lstm_cell",
        ("D", "H"),
        {"x": ("D",), "h_prev": ("H",), "c_prev": ("H",), **WEIGHTS},
        (*gates, "c[j] = f[j]*c_prev[j] + i[j]*g[j]", "h[j] = o[j]*tanh(c[j])"),
        parameters=tuple(WEIGHTS),
        meanings=MEANINGS,
    )


def variant(name: str, shapes: dict[str, tuple[str, ...]], equations: tuple[str, ...]) -> System:
    """Return a variant over a sequence, with the final loss."""
    return build_system(
        name,
        ("T", "D", "H"),
        {n: PLAIN_SHAPES[n] for n in ("x", "y")} | shapes,
        equations,
        losses={"final": LOSSES["final"]},
        targets=("y",),
        meanings=MEANINGS,
    )


def peephole_system() -> System:
    """Return the variant of Gers et al.: gates see the cell state, the output gate the new one."""
    before = "c[t-1,j]"
    return variant(
        "lstm_peephole",
        WEIGHTS | {f"p_{g}": ("H",) for g in "ifo"},
        (
            *gate("i", before),
            *gate("f", before),
            *gate("g"),
            STATES[0],
            *gate("o", "c[t,j]"),
            STATES[1],
        ),
    )


def coupled_system() -> System:
    """Return the variant whose input gate is what the forget gate leaves."""
    shapes = {n: s for n, s in WEIGHTS.items() if not n.endswith("i")}
    return variant(
        "lstm_coupled",
        shapes,
        (
            *gate("f"),
            "i[t,j] = 1 - f[t,j]",
            *gate("g"),
            *gate("o"),
            *STATES,
        ),
    )


def gates_system() -> System:
    """Return the states over a sequence with the preactivations given.

    What is claimed holds for every way to compute them; nothing but the direct path is left.
    """
    given = {f"s_{g}": ("T", "H") for g in GATES}
    rules = {g: "tanh" if g == "g" else "sigmoid" for g in GATES}
    return build_system(
        "lstm_gates",
        ("T", "H"),
        given | {"q": ()},
        (*(f"{g}[t,j] = {rule}(s_{g}[t,j])" for g, rule in rules.items()), *STATES),
        parameters=(),
        meanings={**MEANINGS, "q": "a bound of the forget gates"},
    )


def stacked_system() -> System:
    """Return one gate with one weight matrix over the previous state and the input, stacked.

    The language has no concatenation. P and Q place the two in a vector of K entries; with P the
    upper and Q the lower rows of the identity (K = H + D) it is [h; x]. What is claimed holds for
    every placement.
    """
    return build_system(
        "lstm_stacked",
        ("D", "H", "K"),
        {"x": ("D",), "h_prev": ("H",), "P": ("K", "H"), "Q": ("K", "D"), "W": ("H", "K")},
        (
            "v[k] = sum(r, P[k,r]*h_prev[r]) + sum(d, Q[k,d]*x[d])",
            "W_h[j,r] = sum(k, W[j,k]*P[k,r])",
            "W_x[j,d] = sum(k, W[j,k]*Q[k,d])",
            "s[j] = sum(k, W[j,k]*v[k])",
        ),
        parameters=("W",),
        meanings={
            "x": MEANINGS["x"],
            "h_prev": MEANINGS["h_prev"],
            "P": "places the previous state in the stacked vector",
            "Q": "places the input in the stacked vector",
            "W": "one weight matrix over the stacked vector",
            "v": "stacked vector",
            "W_h": "block of W that meets the previous state",
            "W_x": "block of W that meets the input",
            "s": "preactivation of a gate",
        },
    )
