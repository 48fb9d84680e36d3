"""Vanishing and exploding gradients: products of Jacobians, their bounds, what bounds do not say.

A perturbation v travels forward through the Jacobians as v_t = diag(1 - h_t^2) W_h v_{t-1}: the
tangent of the recurrence. A bound of its norm bounds the product of Jacobians.
Source: Pascanu, Mikolov & Bengio (2013), section 2; Bengio, Simard & Frasconi (1994).
"""

from __future__ import annotations

from derive.building import build_system
from derive.claim import Claim
from derive.equation import System
from derive.topics import Topic, claim
from derive.topics.rnn import MEANINGS, rnn_system

PATH = MEANINGS | {
    "v": "a perturbation of the state, carried forward by the Jacobians",
    "u": "the perturbation after W_h, before the activation",
    "f": "the factor by which one transition multiplies",
    "c": "a number with |W_h v| <= c |v| on the way",
    "gamma": "a number that bounds 1 - h^2",
    "w": "recurrent weight",
    "r": "a bound of each factor",
    "q": "a bound of each factor",
}


def scalar_system() -> System:
    """Return one tanh unit."""
    return build_system(
        "scalar_tanh",
        ("T",),
        {"x": ("T",), "w": (), "h": ("T",)},
        ("z[t] = w*h[t-1] + x[t]", "h[t] = tanh(z[t])", "f[t] = w*(1 - h[t]^2)"),
        losses={"final": "h[T-1]"},
        meanings=PATH,
    )


def factor_system() -> System:
    """Return a scalar recurrence whose factors are given: h_t = f_t h_{t-1} + x_t."""
    return build_system(
        "scalar_factors",
        ("T",),
        {"x": ("T",), "f": ("T",), "r": (), "q": (), "h": ("T",)},
        ("h[t] = f[t]*h[t-1] + x[t]",),
        losses={"final": "h[T-1]"},
        meanings=PATH,
    )


def tangent_system() -> System:
    """Return the tanh network with a perturbation carried along."""
    return build_system(
        "rnn_tangent",
        ("T", "D", "H"),
        {"x": ("T", "D"), "W_x": ("H", "D"), "W_h": ("H", "H"), "b_h": ("H",), "c": (),
         "gamma": ()},
        (
            "z[t,j] = sum(k, W_x[j,k]*x[t,k]) + sum(r, W_h[j,r]*h[t-1,r]) + b_h[j]",
            "h[t,j] = tanh(z[t,j])",
            "u[t,j] = sum(r, W_h[j,r]*v[t-1,r])",
            "v[t,j] = (1 - h[t,j]^2)*u[t,j]",
        ),
        parameters=("W_x", "W_h", "b_h"),
        meanings=PATH,
    )  # fmt: skip


def linear_tangent_system() -> System:
    """Return the linear recurrence's perturbation: v_t = W_h v_{t-1}."""
    return build_system(
        "linear_tangent",
        ("T", "H"),
        {"W_h": ("H", "H"), "c": (), "v": ("T", "H")},
        ("v[t,j] = sum(r, W_h[j,r]*v[t-1,r])",),
        parameters=("W_h",),
        meanings=PATH,
    )


def topic() -> Topic:
    """Return the topic."""
    return Topic(
        "vanishing",
        "Vanishing and exploding gradients",
        {
            "rnn": rnn_system(),
            "rnn_column": rnn_system("rnn_column", "column"),
            "scalar_tanh": scalar_system(),
            "scalar_factors": factor_system(),
            "rnn_tangent": tangent_system(),
            "linear_tangent": linear_tangent_system(),
        },
        (*products(), *scalars(), *bounds(), *limits_of_bounds(), *fixed_points()),
        "Pascanu, Mikolov & Bengio (2013), section 2; Bengio, Simard & Frasconi (1994)",
    )


def products() -> tuple[Claim, ...]:
    """Return the products of Jacobians in both conventions."""
    factor = "diag(1 - h[k]^2) @ W_h"
    return (
        claim("vanishing.factor", "dh[t]/dh[t-1] = diag(1 - h[t]^2) @ W_h",
              "One transition's Jacobian", "rnn"),
        claim("vanishing.product", f"dh[t]/dh[s] = prod(k=t..s+1, {factor}) for s <= t",
              "A path multiplies one Jacobian a transition, the latest first", "rnn"),
        claim("vanishing.product-column", f"dh[t]/dh[s] = prod(k=t..s+1, {factor}) for s <= t",
              "The same matrices for column vectors: the factors descend", "rnn_column"),
        claim("vanishing.product-ascending", f"dh[t]/dh[s] = prod(k=s+1..t, {factor}) for s <= t",
              "For column vectors the ascending order is wrong", "rnn_column", expected="fails",
              reason="numerator layout: the latest Jacobian stands on the left"),
        claim("vanishing.backward-row",
              f"g_h[s] = g_h[t] @ prod(k=t..s+1, {factor}) for s <= t",
              "A row signal passes the same product from the left", "rnn", "final"),
        claim("vanishing.backward-column",
              "g_h[s] = prod(k=s+1..t, W_h.T @ diag(1 - h[k]^2)) @ g_h[t] for s <= t",
              "A column signal passes the transposed factors, ascending", "rnn_column", "final"),
        claim("vanishing.perturbation",
              "v[t,j] = sum(r, dh[t,j]/dh[s,r]*v[s,r]) for s <= t",
              "The carried perturbation is the product of Jacobians applied to its start",
              "rnn_tangent"),
    )  # fmt: skip


def scalars() -> tuple[Claim, ...]:
    """Return the scalar cases."""
    lin, tanh = "scalar_factors", "scalar_tanh"
    return (
        claim("vanishing.constant-factor", "dh[t]/dh[s] = r^(t-s) for s <= t",
              "A constant factor r gives a power", lin, assumes=("f[k] = r",)),
        claim("vanishing.constant-factor-size", "abs(dh[t]/dh[s]) = abs(r)^(t-s) for s <= t",
              "and |r|^n in size", lin, assumes=("f[k] = r",)),
        claim("vanishing.constant-signal", "g_h[t] = r^(T-1-t)",
              "The signal from the last position", lin, "final", assumes=("f[k] = r",)),
        claim("vanishing.constant-factor-late", "dh[t]/dh[s] = r^(t-s+1) for s <= t",
              "One factor too many", lin, assumes=("f[k] = r",), expected="fails",
              reason="t-s transitions lie between"),
        claim("vanishing.tanh-factor", "dh[t]/dh[t-1] = f[t]",
              "With tanh a factor is w(1 - h^2)", tanh),
        claim("vanishing.tanh-product", "dh[t]/dh[s] = prod(k=t..s+1, f[k]) for s <= t",
              "and a path their product", tanh),
        claim("vanishing.tanh-slope-at-most-one", "1 - h[t]^2 <= 1",
              "The slope of tanh is at most 1", tanh),
        claim("vanishing.tanh-slope-positive", "1 - h[t]^2 > 0", "and above 0", tanh),
        claim("vanishing.tanh-factor-bounded", "abs(f[t]) <= abs(w)",
              "With tanh no factor exceeds |w|", tanh),
        claim("vanishing.tanh-path-bounded", "abs(dh[t]/dh[s]) <= abs(w)^(t-s) for s <= t",
              "so a path of n transitions is at most |w|^n: below 1 it vanishes", tanh),
        claim("vanishing.tanh-path-explodes", "abs(dh[t]/dh[s]) >= abs(w)^(t-s) for s <= t",
              "|w| > 1 alone makes no path explode", tanh, expected="fails",
              reason="a saturated unit has a slope near 0"),
        claim("vanishing.lower-bound", "abs(dh[t]/dh[s]) >= r^(t-s) for s <= t",
              "Factors of at least r > 1 multiply to at least r^n: the path explodes", lin,
              assumes=("abs(f[k]) >= r", "r > 1")),
        claim("vanishing.upper-bound", "abs(dh[t]/dh[s]) <= q^(t-s) for s <= t",
              "Factors of at most q multiply to at most q^n: for q < 1 the path vanishes", lin,
              assumes=("abs(f[k]) <= q",)),
        claim("vanishing.signal-upper-bound", "abs(g_h[t]) <= q^(T-1-t)",
              "so does the signal from the last position", lin, "final",
              assumes=("abs(f[k]) <= q",)),
        claim("vanishing.signal-lower-bound", "abs(g_h[t]) >= r^(T-1-t)",
              "and with factors of at least r > 1 it explodes", lin, "final",
              assumes=("abs(f[k]) >= r", "r > 1")),
        claim("vanishing.half", "abs(dh[t]/dh[s]) <= 1/2 for s+1 <= t",
              "A path is not short of a half because its factors are below 1", lin,
              assumes=("abs(f[k]) <= 1",), expected="fails", reason="a factor may be 1"),
    )  # fmt: skip


GAIN = "sqnorm(W_h @ v[k]) <= c^2*sqnorm(v[k])"


def bounds() -> tuple[Claim, ...]:
    """Return the norm bound of a product of Jacobians."""
    s, rate = "rnn_tangent", "((gamma*c)^(t-s))^2*sqnorm(v[s])"
    return (
        claim("vanishing.step-bound", "sqnorm(v[t]) <= sqnorm(u[t])",
              "The tanh part never lengthens a vector", s),
        claim("vanishing.norm-bound", f"sqnorm(v[t]) <= {rate} for s <= t",
              "If W_h stretches by c at most and 1 - h^2 <= gamma, n transitions stretch by "
              "(gamma c)^n at most", s, assumes=(GAIN, "1 - h[k,i]^2 <= gamma")),
        claim("vanishing.norm-bound-tanh", "sqnorm(v[t]) <= (c^(t-s))^2*sqnorm(v[s]) for s <= t",
              "With tanh gamma is 1: c < 1 makes every path vanish", s, assumes=(GAIN,)),
        claim("vanishing.needed-for-explosion", "sqnorm(v[t]) <= sqnorm(v[s]) for s <= t",
              "Without a stretch above 1 nothing grows: a spectral norm above 1 is necessary for "
              "explosion", s, assumes=("sqnorm(W_h @ v[k]) <= sqnorm(v[k])",)),
        claim("vanishing.norm-bound-half", f"sqnorm(v[t]) <= 1/4*{rate} for s <= t",
              "The bound cannot be halved", s, assumes=(GAIN, "1 - h[k,i]^2 <= gamma"),
              expected="fails", reason="at s = t both norms are equal"),
    )  # fmt: skip


def limits_of_bounds() -> tuple[Claim, ...]:
    """Return what a large or small weight does not imply."""
    return (
        claim("vanishing.not-sufficient", "abs(dh[t]/dh[s]) >= 1 for s <= t",
              "A weight (spectral norm) above 1 is not sufficient for explosion", "scalar_tanh",
              assumes=("abs(w) >= 2",), expected="fails",
              reason="a saturated unit multiplies by less than 1"),
        claim("vanishing.small-entries", "sqnorm(v[t]) <= sqnorm(v[s]) for s <= t",
              "Entries below 1 do not make a product shrink", "linear_tangent",
              assumes=("W_h[i,r] <= 0.9", "W_h[i,r] >= -0.9"), expected="fails",
              reason="the entries of W add up: with all 0.9 and H = 2 W doubles nearly"),
        claim("vanishing.linear-bound", "sqnorm(v[t]) <= (c^(t-s))^2*sqnorm(v[s]) for s <= t",
              "What bounds a product is the norm", "linear_tangent", assumes=(GAIN,)),
    )  # fmt: skip


def fixed_points() -> tuple[Claim, ...]:
    """Return the fixed points of h = tanh(w h) and the slopes there, at given weights.

    With w = 2 a state at the fixed point multiplies a gradient by 2(1 - h^2) a step.
    """
    s, point = "scalar_tanh", "fixed(h=0.5..1, tanh(2*h))"
    slope = f"2*(1 - {point}^2)"
    return (
        claim("vanishing.fixed-point", f"abs({point} - 0.957504) < 0.000001",
              "With w = 2 a state is held at 0.957504, the only fixed point from 0.5 to 1", s),
        claim("vanishing.fixed-point-slope", f"abs({slope} - 0.16637) < 0.000005",
              "The slope there is 0.16637", s),
        claim("vanishing.fixed-point-contracts", f"{slope} < 1",
              "It is below 1: the fixed point is stable, and the gradient vanishes", s),
        claim("vanishing.fixed-point-negative", "fixed(h=-1..-0.5, tanh(2*h)) + "
              f"{point} < 0.000001", "The other one is its negative", s),
        claim("vanishing.origin-expands", "2*(1 - fixed(h=-0.4..0.4, tanh(2*h))^2) > 1",
              "At the origin the slope is 2: it is unstable", s),
        claim("vanishing.fixed-point-rounded", f"abs({slope} - 0.16) < 0.005",
              "The slope does not round to 0.16", s, expected="fails",
              reason="0.16 follows from the fixed point rounded to 0.96"),
        claim("vanishing.small-weight", "fixed(h=-1..1, tanh(0.9*h)) < 0.000001",
              "With w = 0.9 there is one fixed point, the origin", s),
    )  # fmt: skip
