"""The long short-term memory in PyTorch's form: gates, Jacobians, adjoints, gradient sums.

The gates are i, f, g, o in torch's order; each has two biases. Variants: peepholes, coupled gates.
Source: Hochreiter & Schmidhuber (1997); Gers et al. (2000, 2002); torch.nn.LSTM.
"""

from __future__ import annotations

from derive.claim import Claim
from derive.topics import Topic, claim
from derive.topics import _lstm_bounds as bounds
from derive.topics import _lstm_sums as gradients
from derive.topics import _lstm_systems as systems
from derive.topics._lstm_systems import GATES


def topic() -> Topic:
    """Return the topic."""
    return Topic(
        "lstm",
        "The long short-term memory",
        {
            "lstm": systems.lstm_system(),
            "lstm_cell": systems.cell_system(),
            "lstm_peephole": systems.peephole_system(),
            "lstm_coupled": systems.coupled_system(),
            "lstm_gates": systems.gates_system(),
            "lstm_stacked": systems.stacked_system(),
        },
        (
            *forward(),
            *slopes(),
            *cell(),
            *sequence(),
            *held(),
            *gradients.recursions(),
            *gradients.sums(),
            *stacked(),
            *variants(),
            *programs(),
            *bounds.gates(),
            *bounds.states(),
            *bounds.paths(),
        ),
        "Hochreiter & Schmidhuber (1997); Gers et al. (2000, 2002); torch.nn.LSTM",
    )


def forward() -> tuple[Claim, ...]:
    """Return the forward equations in row form."""
    s, rows = "lstm", []
    for g, what in GATES.items():
        f = "tanh" if g == "g" else "sigmoid"
        rows.append(
            claim(f"lstm.{what.replace(' ', '-')}",
                  f"{g}[t] = {f}(x[t] @ W_x{g}.T + b_x{g} + h[t-1] @ W_h{g}.T + b_h{g})",
                  f"The {what} reads the input and the previous state", s)
        )  # fmt: skip
    return (
        *rows,
        claim("lstm.cell-state", "c[t] = f[t]*c[t-1] + i[t]*g[t]",
              "The cell state keeps a part of itself and takes a part of the candidate", s),
        claim("lstm.output", "h[t] = o[t]*tanh(c[t])", "The state shows a part of the cell", s),
        claim("lstm.biases-merge",
              "s_f[t] = x[t] @ W_xf.T + h[t-1] @ W_hf.T + (b_xf + b_hf)",
              "The two biases of a gate act as their sum", s),
        claim("lstm.gates-swapped", "c[t] = i[t]*c[t-1] + f[t]*g[t]",
              "With the gates exchanged it is another model", s, expected="fails",
              reason="the forget gate meets the previous cell state"),
    )  # fmt: skip


def slopes() -> tuple[Claim, ...]:
    """Return the local derivatives."""
    s, rows = "lstm", []
    for g, what in GATES.items():
        slope = "1 - g[t,j]^2" if g == "g" else f"{g}[t,j]*(1 - {g}[t,j])"
        rows.append(
            claim(f"lstm.{what.split()[0]}-slope",
                  f"partial {g}[t,i]/partial s_{g}[t,j] = delta(i,j)*({slope})",
                  f"The slope of the {what}", s)
        )  # fmt: skip
    return (
        *rows,
        claim("lstm.cell-by-forget", "partial c[t]/partial f[t] = diag(c[t-1])",
              "The forget gate meets the previous cell state", s),
        claim("lstm.cell-by-input", "partial c[t]/partial i[t] = diag(g[t])",
              "The input gate meets the candidate", s),
        claim("lstm.cell-by-candidate", "partial c[t]/partial g[t] = diag(i[t])",
              "The candidate meets the input gate", s),
        claim("lstm.cell-by-cell", "partial c[t]/partial c[t-1] = diag(f[t])",
              "The local derivative by the previous cell state is the forget gate", s),
        claim("lstm.output-by-gate", "partial h[t]/partial o[t] = diag(tanh(c[t]))",
              "The output gate meets the squashed cell", s),
        claim("lstm.output-by-cell", "partial h[t]/partial c[t] = diag(o[t]*(1 - tanh(c[t])^2))",
              "The squashed cell meets the output gate", s),
    )  # fmt: skip


def gates_by_state(at: str, before: str, input_gate: bool = True) -> str:
    """Return dc/dh_prev: the paths through the gates and the candidate."""
    paths = [f"diag({before}*f{at}*(1 - f{at})) @ W_hf"]
    if input_gate:
        paths.append(f"diag(g{at}*i{at}*(1 - i{at})) @ W_hi")
    return " + ".join([*paths, f"diag(i{at}*(1 - g{at}^2)) @ W_hg"])


def cell() -> tuple[Claim, ...]:
    """Return the four blocks of one step's Jacobian, the previous states inputs of their own."""
    s, gates = "lstm_cell", gates_by_state("", "c_prev")
    return (
        claim("lstm.cell-block-cc", "dc/dc_prev = diag(f)",
              "In a single step the cell path is the forget gate, exactly", s),
        claim("lstm.cell-block-ch", f"dc/dh_prev = {gates}",
              "The cell by the previous state: through three gates", s),
        claim("lstm.cell-block-hc", "dh/dc_prev = diag(o*(1 - tanh(c)^2)*f)",
              "The state by the previous cell", s),
        claim("lstm.cell-block-hh",
              "dh/dh_prev = diag(tanh(c)*o*(1 - o)) @ W_ho"
              f" + diag(o*(1 - tanh(c)^2)) @ ({gates})",
              "The state by the previous state: through all four gates", s),
        claim("lstm.cell-input", "dc/dx = " + gates.replace("W_h", "W_x"),
              "The cell by the input", s),
    )  # fmt: skip


SHOWN = "diag(o[t-1]*(1 - tanh(c[t-1])^2))"


def sequence() -> tuple[Claim, ...]:
    """Return the total derivative of the cell state over a sequence."""
    s, gates = "lstm", gates_by_state("[t]", "c[t-1]")
    return (
        claim("lstm.cell-jacobian",
              f"dc[t]/dc[t-1] = diag(f[t]) + ({gates}) @ {SHOWN} for 1 <= t",
              "The previous cell also acts through h[t-1] and the gates that read it", s),
        claim("lstm.cell-jacobian-first", "dc[0]/dc[-1] = diag(f[0])",
              "At the first position h[-1] is given: only the forget gate is left", s),
        claim("lstm.cell-jacobian-forget-only", "dc[t]/dc[t-1] = diag(f[t])",
              "The forget gate alone is not the total derivative", s, expected="fails",
              reason="h[t-1] depends on c[t-1], and the gates of t read it"),
        claim("lstm.state-by-cell",
              "dh[t]/dc[t-1] = diag(tanh(c[t])*o[t]*(1 - o[t])) @ W_ho @ "
              f"{SHOWN} + diag(o[t]*(1 - tanh(c[t])^2)) @ (diag(f[t]) + ({gates}) @ {SHOWN})"
              " for 1 <= t",
              "The state by the previous cell, by every path", s),
    )  # fmt: skip


def held() -> tuple[Claim, ...]:
    """Return what holds when gates count as constants: the direct path of the cell."""
    s, path = "lstm", "dc[t]/dc[s] = prod(k=t..s+1, diag(f[k])) for s <= t"
    return (
        claim("lstm.direct-path", "dc[t]/dc[t-1] = diag(f[t])",
              "With the gates held the forget gate is all there is", s,
              assumes=("f, i, g, o held",)),
        claim("lstm.direct-path-needed", "dc[t]/dc[t-1] = diag(f[t])",
              "Three of them are enough: the output gate leads out of the cell", s,
              assumes=("f, i, g held",)),
        claim("lstm.direct-path-state", "dc[t]/dc[t-1] = diag(f[t])",
              "It is the same to hold the state that they read", s, assumes=("h held",)),
        claim("lstm.direct-path-product", path,
              "Over many steps the direct path is the product of the forget gates", s,
              assumes=("f, i, g held",)),
        claim("lstm.direct-path-two-gates", "dc[t]/dc[t-1] = diag(f[t])",
              "Without the candidate held it fails", s, expected="fails",
              assumes=("f, i, o held",), reason="the candidate reads h[t-1] too"),
        claim("lstm.path-product-total", path,
              "The total derivative is not the product of the forget gates", s, expected="fails",
              reason="the gates read h[t-1], which depends on c[t-1]"),
    )  # fmt: skip


def stacked() -> tuple[Claim, ...]:
    """Return that one matrix over [h; x] is two matrices side by side."""
    s = "lstm_stacked"
    return (
        claim("lstm.stacked-splits", "s = h_prev @ W_h.T + x @ W_x.T",
              "W @ [h; x] = W_h @ h + W_x @ x, wherever the two are placed", s),
        claim("lstm.stacked-state-block", "ds/dh_prev = W_h",
              "The block that meets the state is its Jacobian", s),
        claim("lstm.stacked-input-block", "ds/dx = W_x", "and so is the block of the input", s),
        claim("lstm.stacked-weights", "ds[j]/dW[q,k] = delta(j,q)*v[k]",
              "The gradient of W meets the stacked vector", s),
        claim("lstm.stacked-one-block", "s = h_prev @ W_h.T",
              "One block alone is not the product", s, expected="fails",
              reason="the input's block is lost"),
    )  # fmt: skip


def variants() -> tuple[Claim, ...]:
    """Return dc/dc_prev of the peephole and the coupled variant."""
    p, c = "lstm_peephole", "lstm_coupled"
    seen = "diag(f[t] + c[t-1]*f[t]*(1 - f[t])*p_f + g[t]*i[t]*(1 - i[t])*p_i)"
    gates, step = gates_by_state("[t]", "c[t-1]"), "dc[t]/dc[t-1]"
    shown = f"({SHOWN} + diag(tanh(c[t-1])*o[t-1]*(1 - o[t-1])*p_o))"
    blend = "diag((c[t-1] - g[t])*f[t]*(1 - f[t])) @ W_hf"
    coupled = f"({blend} + diag((1 - f[t])*(1 - g[t]^2)) @ W_hg)"
    return (
        claim("lstm.peephole-local", f"{step} = {seen}",
              "Peepholes: the gates see the cell state itself", p, assumes=("h held",)),
        claim("lstm.peephole-jacobian", f"{step} = {seen} + ({gates}) @ {shown} for 1 <= t",
              "and through the output gate of the position before", p),
        claim("lstm.peephole-forget-only", f"{step} = diag(f[t])",
              "With peepholes not even the state held leaves the forget gate alone", p,
              expected="fails", assumes=("h held",), reason="the gates read c[t-1] directly"),
        claim("lstm.peephole-output-signal", "dL/dp_o = sum(t, g_s_o[t]*c[t])",
              "The output gate's peephole sees the new cell state", p, "final"),
        claim("lstm.peephole-forget-signal", "dL/dp_f = sum(t, g_s_f[t]*c[t-1])",
              "the forget gate's the previous one", p, "final"),
        claim("lstm.peephole-input-signal", "dL/dp_i = sum(t, g_s_i[t]*c[t-1])",
              "and so the input gate's", p, "final"),
        claim("lstm.coupled-blend", "c[t] = g[t] + f[t]*(c[t-1] - g[t])",
              "Coupled gates blend the cell state and the candidate", c),
        claim("lstm.coupled-direct", f"{step} = diag(f[t])",
              "With the state held the forget gate is left", c, assumes=("h held",)),
        claim("lstm.coupled-jacobian", f"{step} = diag(f[t]) + {coupled} @ {SHOWN} for 1 <= t",
              "One gate moves the cell by c[t-1] - g", c),
        claim("lstm.coupled-forget-signal",
              "dL/dW_hf = sum(t, (g_c[t]*(c[t-1] - g[t])*f[t]*(1 - f[t])).T @ h[t-1])",
              "and its weights see both ends of the blend", c, "final"),
    )  # fmt: skip


def programs() -> tuple[Claim, ...]:
    """Return what torch.nn.LSTMCell computes, run beside these equations."""
    return (
        claim("lstm.program", "", "PyTorch's cell makes the plain update, its gates stacked as "
              "i, f, g, o", "", probe="lstm_cell.follows-the-plain-update"),
        claim("lstm.program-order", "", "and not as i, f, o, g", "",
              probe="lstm_cell.stacks-output-before-candidate", expected="fails",
              reason="the candidate stands third"),
        claim("lstm.program-biases", "", "Its two biases act as their sum", "",
              probe="lstm_cell.two-biases-add"),
    )  # fmt: skip
