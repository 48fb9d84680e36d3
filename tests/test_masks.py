"""Masks: minus infinity under softmax as guards and weights; what leaves a row empty is refused."""

import numpy as np
import pytest

from derive.building import build_system
from derive.checks import bench
from derive.checks.mask_draws import every_row
from derive.errors import DeriveError
from derive.prove import prove
from derive.refute import refute
from derive.second import decide
from derive.statement import read_statement

SHAPES = {"Q": ("T", "d"), "K": ("S", "d"), "V": ("S", "w"), "m": ("S",), "G": ("T", "w")}
SIZES = {"T": 2, "S": 3, "d": 1, "w": 2}


def attention(mask, same=False, binary=("m",)):
    """Return attention under a mask; T queries and S sources, or T of both."""
    shapes = {n: tuple("T" if same and z == "S" else z for z in s) for n, s in SHAPES.items()}
    return build_system(
        "masked",
        ("T", "d", "w") if same else ("T", "S", "d", "w"),
        shapes,
        (
            "E[t,s] = sum(k, Q[t,k]*K[s,k])/sqrt(d)",
            f"A[t,s] = softmax(s, {mask})",
            "O[t,v] = sum(s, A[t,s]*V[s,v])",
        ),
        losses={"linear": "sum(t, v, G[t,v]*O[t,v])"},
        binary=binary,
        positions=("T",) if same else ("T", "S"),
    ).with_loss("linear")


PADDINGS = (
    "where(m[s] > 0, E[t,s], -oo)",
    "where(m[s] >= 1, E[t,s], -oo)",
    "where(m[s] < 1, -oo, E[t,s])",
    "where(m[s] <= 0, -oo, E[t,s])",
    "E[t,s] + where(m[s] > 0, 0, -oo)",
)
SOFTMAX = "dL/dE[t,s] = A[t,s]*(g_A[t,s] - sum(r, A[t,r]*g_A[t,r]))"
RENORMALISED = "A[t,s] = m[s]*exp(E[t,s])/sum(r, m[r]*exp(E[t,r]))"


@pytest.mark.parametrize("mask", PADDINGS)
def test_every_way_to_write_padding_is_the_same(mask):
    system = attention(mask)
    for text in (RENORMALISED, "sum(s, A[t,s]) = 1", SOFTMAX):
        identity = read_statement(system, text)
        assert prove(identity).proved
        assert decide(identity, SIZES, ()) == "proved"
        assert refute(identity) is None


TRUE = (
    ("where(s <= t, E[t,s], -oo)", "A[t,s] = 0 for s > t"),
    ("where(s <= t, E[t,s], -oo)", "sum(s=0..t, A[t,s]) = 1"),
    ("where(t >= s, E[t,s], -oo)", "A[0,0] = 1"),
    ("where(s >= t, E[t,s], -oo)", "A[T-1,T-1] = 1"),
    ("where(s <= t, where(t - s <= 2, E[t,s], -oo), -oo)", "A[t,s] = 0 for s <= t-3"),
    ("where(s <= t, where(t - s <= 2, E[t,s], -oo), -oo)", SOFTMAX),
    ("where(s <= t, E[t,s], -oo)", "dO[t,v]/dV[s,w_] = 0 for s > t"),
)
FALSE = (
    ("where(s <= t, E[t,s], -oo)", "A[t,s] = softmax(s, E[t,s])"),
    ("where(s <= t, E[t,s], -oo)", "A[t,s] = where(s <= t, softmax(s, E[t,s]), 0)"),
    ("where(s <= t, E[t,s], -oo)", "A[t,s] = softmax(s, where(s >= t, E[t,s], -oo))"),
    ("where(s <= t, E[t,s], -oo)", "A[t,s] = 0 for s < t"),
    ("where(s <= t, where(t - s <= 2, E[t,s], -oo), -oo)", "A[t,s] = 0 for s <= t-2"),
    ("where(m[s] > 0, E[t,s], -oo)", "A[t,s] = m[s]*softmax(s, E[t,s])"),
    ("where(m[s] > 0, E[t,s], -oo)", "A[t,s] = softmax(s, m[s]*E[t,s])"),
)


@pytest.mark.parametrize(("mask", "text"), TRUE)
def test_what_holds_under_a_mask_is_proved(mask, text):
    identity = read_statement(attention(mask, same=True), text.replace("w_", "u"))
    assert prove(identity).proved
    assert refute(identity) is None


@pytest.mark.parametrize(("mask", "text"), FALSE)
def test_what_does_not_is_refuted(mask, text):
    identity = read_statement(attention(mask, same=True), text)
    assert not prove(identity).proved
    assert refute(identity) is not None


@pytest.mark.parametrize(
    ("mask", "row"),
    (
        ("where(s < t, E[t,s], -oo)", "row t = 0"),
        ("where(s > t, E[t,s], -oo)", "row t = 0 \\(at T = 1\\)"),
        ("where(s <= t-2, E[t,s], -oo)", "row t = 0"),
        ("where(s <= t, where(s > t, E[t,s], -oo), -oo)", "row t = 0"),
    ),
)
def test_a_mask_that_leaves_a_row_empty_is_refused(mask, row):
    with pytest.raises(DeriveError, match=f"this mask leaves {row}.*without a source"):
        attention(mask, same=True)


def test_more_queries_than_sources_may_leave_one_empty():
    with pytest.raises(DeriveError, match=r"row t = 1 \(at T = 2, S = 1\)"):
        attention("where(s >= t, E[t,s], -oo)")


def test_a_condition_may_leave_the_empty_row_out():
    system = attention("where(s <= t, E[t,s], -oo)", same=True)
    strict = "A[t,s] = softmax(s, where(s < t, E[t,s], -oo))"
    with pytest.raises(DeriveError, match="row t = 0"):
        read_statement(system, strict)
    assert refute(read_statement(system, f"{strict} for t >= 1")) is not None


@pytest.mark.parametrize(
    ("mask", "message"),
    (
        ("E[t,s] + exp(-oo)", "-oo may be added, or chosen"),
        ("E[t,s] + 2*where(s <= t, 0, -oo)", "-oo may be added, or chosen"),
        ("E[t,s] - where(s <= t, 0, -oo)", "minus -oo is infinite"),
        ("where(E[t,s], -oo)", "where takes a comparison and two values"),
    ),
)
def test_infinity_stands_in_a_choice_or_a_sum_alone(mask, message):
    with pytest.raises(DeriveError, match=message):
        attention(mask, same=True)


def test_infinity_is_no_value():
    system = attention("where(s <= t, E[t,s], -oo)", same=True)
    with pytest.raises(DeriveError, match="infinity stands as -oo under a softmax"):
        read_statement(system, "A[t,s] = where(s <= t, E[t,s], -oo)")


def test_a_mask_has_no_derivative():
    system = attention(PADDINGS[0], same=True)
    with pytest.raises(DeriveError, match="m is 0 or 1 everywhere: no derivative by it"):
        read_statement(system, "dL/dm[s] = 0")


def test_drawn_masks_leave_every_row_a_source():
    both = "where(s <= t, where(m[s] > 0, E[t,s], -oo), -oo)"
    system = attention(both, same=True)
    for seed in range(12):
        here = bench.bench(system, None, None, seed, "float64")
        assert set(np.unique(here.givens["m"])) <= {0, 1}
        assert every_row(here.system, here.sizes, here.givens)
    dead = {**here.givens, "m": np.array([0.0, 1, 1, 1])}
    assert not every_row(here.system, here.sizes, dead)


def test_a_product_with_a_mask_carries_an_induction():
    system = build_system(
        "stack",
        ("N", "T", "D"),
        {"h": ("N", "T", "D"), "W": ("N", "D", "D"), "m": ("T",), "A": ("N", "T", "T")},
        (
            "A[l,t,s] = softmax(s, where(m[s] > 0, sum(i, h[l-1,t,i]*h[l-1,s,i]), -oo))",
            "h[l,t,i] = h[l-1,t,i] + sum(s, j, A[l,t,s]*W[l,i,j]*h[l-1,s,j])",
        ),
        binary=("m",),
        positions=("N", "T"),
    )
    text = "m[t]*dh[l,t,i]/dh[-1,s,j] = 0"
    assert prove(read_statement(system, text), ("m[s] = 0",)).kind == "induction"
    # without the factor the padded row itself is meant, without the assumption every source
    assert not prove(read_statement(system, "dh[l,t,i]/dh[-1,s,j] = 0"), ("m[s] = 0",)).proved
    assert not prove(read_statement(system, text)).proved
