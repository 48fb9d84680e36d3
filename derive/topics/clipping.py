"""Gradient clipping by norm: the ideal, PyTorch's own definition, and clipping entry by entry.

Source: Pascanu, Mikolov & Bengio (2013), section 3.2; torch.nn.utils.clip_grad_norm_ and
clip_grad_value_.
"""

from __future__ import annotations

from derive.building import build_system
from derive.claim import Claim
from derive.equation import System
from derive.topics import Topic, claim

MEANINGS = {
    "g": "gradient, all parameters as one vector",
    "c": "threshold",
    "eps": "what PyTorch adds to the norm",
    "eta": "learning rate",
    "n": "norm of the gradient",
    "s": "clipping factor",
    "q": "clipped gradient",
    "m": "norm of the clipped gradient",
    "again": "the clipped gradient, clipped again",
    "s_t": "PyTorch's clipping factor",
    "q_t": "gradient clipped by PyTorch's factor",
    "m_t": "its norm",
    "again_t": "the same, clipped again",
    "e": "gradient clipped entry by entry",
}
POSITIVE = ("c > 0",)
TORCH = ("c > 0", "eps > 0")


def clip_system() -> System:
    """Return a gradient of N entries, clipped in three ways."""
    return build_system(
        "clip",
        ("N",),
        {"g": ("N",), "c": (), "eps": (), "eta": ()},
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
        parameters=(),
        meanings=MEANINGS,
    )


def topic() -> Topic:
    """Return the topic."""
    return Topic(
        "clipping",
        "Gradient clipping",
        {"clip": clip_system()},
        (*ideal(), *torchs(), *entrywise(), *programs()),
        "Pascanu, Mikolov & Bengio (2013), section 3.2; torch.nn.utils",
    )


def ideal() -> tuple[Claim, ...]:
    """Return what norm clipping does."""
    s = "clip"
    return (
        claim("clipping.two-forms", "where(n <= c, g[i], c/n*g[i]) = q[i]",
              "Cases and the minimum are one function", s),
        claim("clipping.third-form", "c*g[i]/max(c, n) = q[i]",
              "and so is the quotient by the larger of both, which divides by no zero norm", s),
        claim("clipping.norm-at-most-c", "m <= c", "The clipped norm is at most c", s,
              assumes=POSITIVE),
        claim("clipping.norm", "m = min(n, c)", "It is the smaller of the norm and c", s,
              assumes=POSITIVE),
        claim("clipping.below", "m < c", "It need not be below c", s, assumes=POSITIVE,
              expected="undecided",
              reason="both sides agree exactly where clipping acts, which balls cannot tell from "
              "a small difference"),
        claim("clipping.direction", "q[i]*n = m*g[i]",
              "The direction is kept: both unit vectors agree", s, assumes=POSITIVE),
        claim("clipping.factor-not-negative", "s >= 0", "No sign turns", s, assumes=POSITIVE),
        claim("clipping.factor-at-most-one", "s <= 1",
              "Clipping never raises a gradient: it cannot undo vanishing", s),
        claim("clipping.never-raises", "m <= n", "The norm never grows", s, assumes=POSITIVE),
        claim("clipping.step", "norm(eta*q) <= eta*c", "No step of descent is longer than eta c",
              s, assumes=(*POSITIVE, "eta > 0")),
        claim("clipping.small-unchanged", "q[i] = g[i]", "A gradient below c stays as it is", s,
              assumes=(*POSITIVE, "c >= norm(g)")),
        claim("clipping.idempotent", "again[i] = q[i]", "Clipping twice is clipping once", s,
              assumes=POSITIVE),
        claim("clipping.zero-gradient", "c*g[i]/max(c, n) = 0", "A zero gradient stays zero", s,
              assumes=(*POSITIVE, "g[i] = 0")),
        claim("clipping.unclipped", "q[i] = g[i]", "Not every gradient stays as it is", s,
              assumes=POSITIVE, expected="fails", reason="a norm above c is rescaled"),
        claim("clipping.unit", "m = c", "The clipped norm is not always c", s, assumes=POSITIVE,
              expected="fails", reason="a small gradient is not raised to c"),
        claim("clipping.factor-inverted", "m = norm(g)*min(1, n/c)",
              "The quotient stands the other way round", s, assumes=POSITIVE, expected="fails",
              reason="n/c grows with the norm"),
    )  # fmt: skip


def torchs() -> tuple[Claim, ...]:
    """Return PyTorch's definition and its gap to the ideal."""
    s = "clip"
    return (
        claim("clipping.torch-norm-at-most-c", "m_t <= c", "PyTorch's factor keeps the bound", s,
              assumes=TORCH),
        claim("clipping.torch-below-ideal", "s_t <= s",
              "PyTorch's factor is at most the ideal one", s, assumes=TORCH),
        claim("clipping.torch-gap", "n*s - n*s_t <= eps",
              "The norms differ by at most eps = 1e-6", s, assumes=TORCH),
        claim("clipping.torch-direction", "q_t[i]*n = m_t*g[i]", "The direction is kept", s,
              assumes=TORCH),
        claim("clipping.torch-ideal", "q_t[i] = q[i]", "It is not the ideal function", s,
              assumes=TORCH, expected="fails", reason="eps is added to the norm"),
        claim("clipping.torch-idempotent", "again_t[i] = q_t[i]",
              "PyTorch's clipping is not idempotent", s, assumes=TORCH, expected="fails",
              reason="a norm between c - eps and c is scaled again"),
        claim("clipping.torch-zero", "q_t[i] = 0", "A zero gradient stays zero", s,
              assumes=(*TORCH, "g[i] = 0")),
    )  # fmt: skip


def entrywise() -> tuple[Claim, ...]:
    """Return clipping entry by entry, which is another function."""
    s = "clip"
    return (
        claim("clipping.entry-at-most-c", "abs(e[i]) <= c", "Entrywise clipping bounds each entry",
              s, assumes=POSITIVE),
        claim("clipping.entry-is-norm", "e[i] = q[i]",
              "Clipping entry by entry is another function", s, assumes=POSITIVE,
              expected="fails", reason="each entry has its own factor"),
        claim("clipping.entry-direction", "e[i]*n = norm(e)*g[i]",
              "Entrywise clipping turns the direction", s, assumes=POSITIVE, expected="fails",
              reason="only the large entries shrink"),
        claim("clipping.entry-norm-at-most-c", "norm(e) <= c",
              "and does not bound the norm by c", s, assumes=POSITIVE, expected="fails",
              reason="sqrt(N) entries of size c are possible"),
    )  # fmt: skip


def programs() -> tuple[Claim, ...]:
    """Return what torch's own functions do, run beside these definitions."""
    norm, value = "clip_grad_norm", "clip_grad_value"
    return (
        claim("clipping.program", "", "PyTorch's clip multiplies by min(1, c/(norm + 1e-6)), the "
              "norm over all parameters", "", probe=f"{norm}.equals-definition"),
        claim("clipping.program-has-no-epsilon", "", "It does not divide by the norm alone", "",
              probe=f"{norm}.has-no-epsilon", expected="fails",
              reason="1e-6 is added to the norm"),
        claim("clipping.program-direction", "", "It keeps the direction of the whole gradient", "",
              probe=f"{norm}.keeps-direction"),
        claim("clipping.program-returns", "", "It returns the norm before clipping", "",
              probe=f"{norm}.returns-norm-before"),
        claim("clipping.program-returns-after", "", "and not the norm after it", "",
              probe=f"{norm}.returns-norm-after", expected="fails",
              reason="the returned norm tells whether the gradient was clipped"),
        claim("clipping.program-too-early", "", "Called before the backward pass it finds nothing",
              "", probe=f"{norm}.returns-zero-before-backward"),
        claim("clipping.program-shrinks-again", "", "A second call multiplies once more", "",
              probe=f"{norm}.shrinks-again"),
        claim("clipping.program-idempotent", "", "so that clipping twice is not clipping once", "",
              probe=f"{norm}.is-idempotent", expected="fails",
              reason="the norm lies below c by about 1e-6, and c/(norm + 1e-6) below 1"),
        claim("clipping.program-entries", "", "clip_grad_value_ clips each entry by itself", "",
              probe=f"{value}.is-elementwise"),
        claim("clipping.program-entries-direction", "", "which does not keep the direction", "",
              probe=f"{value}.keeps-direction", expected="fails",
              reason="each entry is cut at c by itself"),
        claim("clipping.program-entries-norm", "", "nor bound the norm by c", "",
              probe=f"{value}.bounds-the-norm", expected="fails",
              reason="N entries of size c have a norm of sqrt(N) c"),
    )  # fmt: skip
