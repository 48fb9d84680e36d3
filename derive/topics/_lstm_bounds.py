"""The long short-term memory: where gates and states lie, and what is left of the direct path."""

from __future__ import annotations

from derive.claim import Claim
from derive.topics import claim
from derive.topics._lstm_systems import GATES

HELD = ("f, i, g held",)


def gates() -> tuple[Claim, ...]:
    """Return the ranges of the gates and of the candidate."""
    s, rows = "lstm", []
    for g in "ifo":
        name = GATES[g].replace(" ", "-")
        rows += [
            claim(f"lstm.{name}-above-zero", f"0 < {g}[t,j]", f"The {GATES[g]} lies above 0", s),
            claim(f"lstm.{name}-below-one", f"{g}[t,j] < 1", "and below 1", s),
        ]
    return (
        *rows,
        claim("lstm.candidate-below-one", "abs(g[t,j]) < 1",
              "The candidate lies within (-1, 1)", s),
        claim("lstm.forget-gate-half", "f[t,j] >= 1/2", "A forget gate may forget most", s,
              expected="fails", reason="its preactivation may be negative"),
    )  # fmt: skip


def states() -> tuple[Claim, ...]:
    """Return the bounds of the state and of the cell state."""
    s, coupled = "lstm", "lstm_coupled"
    return (
        claim("lstm.state-below-one", "abs(h[t,j]) <= 1", "The state lies within [-1, 1]", s),
        claim("lstm.cell-grows-by-one", "abs(c[t,j]) <= abs(c[t-1,j]) + 1",
              "The cell state grows by at most 1 a position", s),
        claim("lstm.cell-below-one", "abs(c[t,j]) <= 1", "The cell state itself may leave [-1, 1]",
              s, expected="fails", reason="the two gates need not add up to 1"),
        claim("lstm.coupled-above-lower", "min(g[t,j], c[t-1,j]) <= c[t,j]",
              "Coupled gates keep each cell between its candidate and the cell before", coupled),
        claim("lstm.coupled-below-upper", "c[t,j] <= max(g[t,j], c[t-1,j])", "from above too",
              coupled),
        claim("lstm.uncoupled-below-upper", "c[t,j] <= max(g[t,j], c[t-1,j])",
              "Two free gates do not", s, expected="fails",
              reason="both gates may be open, or both closed"),
    )  # fmt: skip


def paths() -> tuple[Claim, ...]:
    """Return the product of the forget gates entry by entry, and its decay."""
    full, s, direct = "lstm", "lstm_gates", "dc[t,j]/dc[s,j]"
    return (
        claim("lstm.direct-path-entries",
              f"{direct} = prod(k=s+1..t, f[k,j]) for s <= t",
              "Entry by entry the direct path is a product of forget gates", full, assumes=HELD),
        claim("lstm.direct-path-decays", f"{direct} <= q^(t-s) for s <= t",
              "Forget gates of at most q < 1 make it decay exponentially", s,
              assumes=("f[k,i] <= q", "q > 0")),
        claim("lstm.direct-path-not-negative", f"{direct} >= 0 for s <= t",
              "and it never turns a sign", s),
        claim("lstm.direct-path-lasts", f"{direct} >= q^(t-s) for s <= t",
              "and gates of at least q keep q^n of it: a bias that opens them slows the decay", s,
              assumes=("f[k,i] >= q", "q > 0")),
        claim("lstm.direct-path-half", f"{direct} >= 1/2 for s <= t",
              "A sum in the cell state does not stop the decay", full, assumes=HELD,
              expected="fails", reason="every step multiplies by a gate below 1"),
        claim("lstm.direct-path-one", f"{direct} = 1 for s <= t",
              "The path is no constant carousel", full, assumes=HELD, expected="fails",
              reason="that takes a forget gate of 1, which a sigmoid never is"),
    )  # fmt: skip
