"""Positions as angles: sinusoids, their shifts as rotations, rotary embeddings.

Source: Vaswani et al. (2017), Attention Is All You Need, section 3.5; Su et al. (2021), RoFormer:
Enhanced Transformer with Rotary Position Embedding, section 3.
"""

from __future__ import annotations

from derive.building import build_system
from derive.equation import System
from derive.topics import Topic, claim

MEANINGS = {
    "rho": "ratio of two neighbouring frequencies, 10000^(-2/D) in the paper",
    "w": "frequency of each pair of features",
    "s": "sine feature of each position",
    "c": "cosine feature of each position",
    "n": "a number of positions",
    "q": "first feature of each query pair",
    "u": "second feature of each query pair",
    "k": "first feature of each key pair",
    "v": "second feature of each key pair",
    "q_r": "q, rotated",
    "u_r": "u, rotated",
    "k_r": "k, rotated",
    "v_r": "v, rotated",
}
SINUSOID = ("w[f] = rho^f", "s[t,f] = sin(t*w[f])", "c[t,f] = cos(t*w[f])")
ROPE = (
    "q_r[t,f] = q[f]*cos(t*w[f]) - u[f]*sin(t*w[f])",
    "u_r[t,f] = q[f]*sin(t*w[f]) + u[f]*cos(t*w[f])",
    "k_r[t,f] = k[f]*cos(t*w[f]) - v[f]*sin(t*w[f])",
    "v_r[t,f] = k[f]*sin(t*w[f]) + v[f]*cos(t*w[f])",
)
SCORE = "sum(f, q_r[t,f]*k_r[s,f] + u_r[t,f]*v_r[s,f])"
LATER = "sum(f, q_r[t+1,f]*k_r[s+1,f] + u_r[t+1,f]*v_r[s+1,f])"
INNER = "sum(f, s[t,f]*s[u,f] + c[t,f]*c[u,f])"


def sinusoid_system() -> System:
    """Return F sines and cosines of each of T positions, D = 2 F features."""
    return build_system(
        "sinusoid",
        ("T", "F"),
        {"rho": (), "n": (), "w": ("F",), "s": ("T", "F"), "c": ("T", "F")},
        SINUSOID,
        parameters=(),
        meanings=MEANINGS,
        positions=("T", "F"),
    )


def rope_system() -> System:
    """Return a query and a key of F pairs of features, rotated by their positions."""
    return build_system(
        "rope",
        ("T", "F"),
        {
            **{n: ("F",) for n in ("w", "q", "u", "k", "v")},
            **{n: ("T", "F") for n in ("q_r", "u_r", "k_r", "v_r")},
        },
        ROPE,
        parameters=(),
        meanings=MEANINGS,
    )


CLAIMS = (
    claim("positions.first-sine", "s[0,f] = 0", "Position 0: every sine is zero", "sinusoid"),
    claim("positions.first-cosine", "c[0,f] = 1", "And every cosine one", "sinusoid"),
    claim("positions.first-frequency", "w[0] = 1", "The first frequency is one", "sinusoid"),
    claim("positions.geometric", "w[f+1] = rho*w[f] for f <= F-2",
          "Frequencies are a geometric sequence", "sinusoid"),
    claim("positions.circle", "s[t,f]^2 + c[t,f]^2 = 1", "Each pair lies on a circle", "sinusoid"),
    claim("positions.length", "sum(f, s[t,f]^2 + c[t,f]^2) = F",
          "Every position has the same length, the root of D/2", "sinusoid"),
    claim("positions.next-sine", "s[t+1,f] = s[t,f]*cos(w[f]) + c[t,f]*sin(w[f]) for t <= T-2",
          "The next position is a rotation that does not depend on t: its sine", "sinusoid"),
    claim("positions.next-cosine", "c[t+1,f] = c[t,f]*cos(w[f]) - s[t,f]*sin(w[f]) for t <= T-2",
          "And its cosine", "sinusoid"),
    claim("positions.shift-sine",
          "sin((t + n)*w[f]) = s[t,f]*cos(n*w[f]) + c[t,f]*sin(n*w[f])",
          "A shift by n is a rotation by n w, at every t", "sinusoid"),
    claim("positions.shift-cosine",
          "cos((t + n)*w[f]) = c[t,f]*cos(n*w[f]) - s[t,f]*sin(n*w[f])", "Its cosine", "sinusoid"),
    claim("positions.inner", f"{INNER} = sum(f, cos((t - u)*w[f]))",
          "Inner products depend on the offset alone", "sinusoid"),
    claim("positions.inner-moved", "sum(f, s[t+1,f]*s[u+1,f] + c[t+1,f]*c[u+1,f]) = "
          f"{INNER} for t <= T-2, u <= T-2", "Moving both changes nothing", "sinusoid"),
    claim("positions.shift-added", "s[t+1,f] = s[t,f] + sin(w[f]) for t <= T-2",
          "A shift adds no vector", "sinusoid", expected="fails", reason="it rotates"),
    claim("positions.shift-any", "sin((t + n)*w[f]) = s[t,f]*cos(w[f]) + c[t,f]*sin(w[f])",
          "The rotation depends on the shift", "sinusoid", expected="fails",
          reason="its angle is n w"),
    claim("positions.inner-sum", f"{INNER} = sum(f, cos((t + u)*w[f]))",
          "The offset, not the sum", "sinusoid", expected="fails",
          reason="cos(a) cos(b) + sin(a) sin(b) is cos(a - b)"),
    claim("positions.first-swapped", "s[0,f] = 1", "Sines and cosines are not interchangeable",
          "sinusoid", expected="fails", reason="sin 0 is 0"),
    claim("positions.linear-frequencies", "w[f+1] = w[f] + rho for f <= F-2",
          "Frequencies are not evenly spaced", "sinusoid", expected="fails",
          reason="each is a multiple of the one before"),
    claim("positions.rope-first", "q_r[0,f] = q[f]", "Rotary: position 0 changes nothing", "rope"),
    claim("positions.rope-length", "q_r[t,f]^2 + u_r[t,f]^2 = q[f]^2 + u[f]^2",
          "A rotation keeps lengths", "rope"),
    claim("positions.rope-relative", f"{SCORE} = sum(f, (q[f]*k[f] + u[f]*v[f])*cos((s - t)*w[f])"
          " + (u[f]*k[f] - q[f]*v[f])*sin((s - t)*w[f]))",
          "A rotary score depends on the offset alone", "rope"),
    claim("positions.rope-moved", f"{LATER} = {SCORE} for t <= T-2, s <= T-2",
          "Moving query and key together changes no score", "rope"),
    claim("positions.rope-same", f"{SCORE} = sum(f, q[f]*k[f] + u[f]*v[f])",
          "It does depend on the offset", "rope", expected="fails",
          reason="only at offset 0 the rotations cancel"),
    claim("positions.rope-sign", "u_r[t,f]*k_r[s,f] - q_r[t,f]*v_r[s,f] = u[f]*k[f] - q[f]*v[f]",
          "Nor does the area of a pair survive", "rope", expected="fails",
          reason="query and key turn by different angles"),
)  # fmt: skip


def topic() -> Topic:
    """Return the topic."""
    systems = (sinusoid_system(), rope_system())
    return Topic(
        "positions",
        "Positions as angles",
        {s.name: s for s in systems},
        CLAIMS,
        "Vaswani et al. (2017), section 3.5; Su et al. (2021), section 3",
    )
