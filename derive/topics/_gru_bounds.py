"""The gated recurrent unit: where gates and states lie, and what that leaves of the direct path."""

from __future__ import annotations

from derive.claim import Claim
from derive.topics import claim


def gates() -> tuple[Claim, ...]:
    """Return the ranges of the gates and of the candidate."""
    s = "gru"
    return (
        claim("gru.reset-above-zero", "0 < r[t,j]", "The reset gate lies above 0", s),
        claim("gru.reset-below-one", "r[t,j] < 1", "and below 1", s),
        claim("gru.update-above-zero", "0 < z[t,j]", "The update gate lies above 0", s),
        claim("gru.update-below-one", "z[t,j] < 1", "and below 1: no step copies exactly", s),
        claim("gru.candidate-below-one", "abs(n[t,j]) < 1", "The candidate lies within (-1, 1)", s),
        claim("gru.update-below-half", "z[t,j] <= 1/2", "The update gate may keep most", s,
              expected="fails", reason="its preactivation may be positive"),
    )  # fmt: skip


def states() -> tuple[Claim, ...]:
    """Return that the blend is convex coordinate by coordinate, and what that bounds."""
    cell, s = "gru_cell", "gru_gates"
    return (
        claim("gru.blend-above-lower", "min(n[j], h_prev[j]) <= h[j]",
              "Each coordinate of the new state lies between candidate and memory", cell),
        claim("gru.blend-below-upper", "h[j] <= max(n[j], h_prev[j])", "from above too", cell),
        claim("gru.blend-below-candidate", "h[j] <= n[j]", "It may lie on either side of one", cell,
              expected="fails", reason="the memory may lie above the candidate"),
        claim("gru.state-at-most-larger", "h[t,j] <= q",
              "What bounds the candidate and the state before bounds the state: |h_t| is at most "
              "the larger of |n_t| and |h_(t-1)|", s, assumes=("n[t,i] <= q", "h[t-1,i] <= q")),
        claim("gru.state-at-least-smaller", "h[t,j] >= -q", "from below too", s,
              assumes=("n[t,i] >= -q", "h[t-1,i] >= -q")),
        claim("gru.state-at-most-memory", "abs(h[t,j]) <= abs(h[t-1,j])",
              "A state may exceed the one before", s, expected="fails",
              reason="the candidate may be larger"),
        claim("gru.state-at-most-one", "h[t,j] <= 1",
              "From an initial state of at most 1 no state exceeds 1", s,
              assumes=("h[-1,i] <= 1",)),
        claim("gru.state-at-least-minus-one", "h[t,j] >= -1", "nor falls below -1", s,
              assumes=("h[-1,i] >= -1",)),
        claim("gru.state-at-most-one-from-anywhere", "h[t,j] <= 1",
              "From a larger initial state it does", s, expected="fails",
              reason="the memory keeps a part of it"),
    )  # fmt: skip


def paths() -> tuple[Claim, ...]:
    """Return the product of the update gates entry by entry, and its decay."""
    full, s, direct = "gru", "gru_gates", "dh[t,j]/dh[s,j]"
    return (
        claim("gru.direct-path-entries",
              f"{direct} = prod(k=s+1..t, z[k,j]) for s <= t",
              "Entry by entry the direct path is a product of numbers", full,
              assumes=("z, n held",)),
        claim("gru.direct-path-decays", f"{direct} <= q^(t-s) for s <= t",
              "Gates of at most q < 1 make it decay exponentially", s,
              assumes=("z[k,i] <= q", "q > 0")),
        claim("gru.direct-path-not-negative", f"{direct} >= 0 for s <= t",
              "The direct path never turns a sign", s),
        claim("gru.direct-path-half", f"{direct} >= 1/2 for s <= t",
              "The direct path does not keep a half", full, assumes=("z, n held",),
              expected="fails", reason="a gate may be small, and many gates multiply"),
    )  # fmt: skip
