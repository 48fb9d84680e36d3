"""Fixed points by interval Newton: proved, narrowed, refused, and what a wrong slope would do."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq

from derive import enclosure
from derive.enclosure import Function, fixed_point
from derive.errors import DeriveError


def scaled_tanh(w: Fraction) -> Function:
    factor = arb(fmpq(w.numerator, w.denominator))

    def f(x: arb) -> tuple[arb, arb]:
        t = (factor * x).tanh()
        return t, factor * (1 - t * t)

    return f


TWO, HALF = scaled_tanh(Fraction(2)), scaled_tanh(Fraction(1, 2))


def ends(low: str, high: str) -> tuple[Fraction, Fraction]:
    return Fraction(low), Fraction(high)


def test_the_saturated_state_of_weight_two() -> None:
    h = fixed_point(TWO, *ends("1/2", "1"))
    assert str(h).startswith("[0.957504")
    assert str(2 * (1 - h * h)).startswith("[0.16637")
    # what comes back is a fixed point, and its neighbours on either side are none
    for step, sign in ((Fraction(-1, 10**9), 1), (Fraction(1, 10**9), -1)):
        x = h.mid() + arb(fmpq(step.numerator, step.denominator))
        assert sign * (TWO(x)[0] - x) > 0


@pytest.mark.parametrize("bits", [64, 128, 256, 512])
def test_the_ball_is_as_narrow_as_the_precision_allows(bits: int) -> None:
    before = ctx.prec
    ctx.prec = bits
    try:
        h = fixed_point(TWO, *ends("1/2", "1"))
        assert h.rad() < arb(2) ** (12 - bits)
        assert (TWO(h)[0] - h).contains(0)
    finally:
        ctx.prec = before


def test_the_precision_is_restored() -> None:
    before = ctx.prec
    fixed_point(TWO, *ends("1/2", "1"))
    with pytest.raises(DeriveError):
        fixed_point(TWO, *ends("-1", "1"))
    assert ctx.prec == before


REFUSED: list[tuple[Function, str, str, str]] = [
    (HALF, "1/2", "1", "tanh has no fixed point from 0.5 to 1"),
    (TWO, "-1/10", "1", "a unique fixed point from -0.1 to 1 cannot be shown"),
    (TWO, "-1", "1", "a unique fixed point from -1 to 1 cannot be shown"),
    (TWO, "0", "1", "a unique fixed point from 0 to 1 cannot be shown"),
    (lambda x: (x, arb(1)), "0", "1", "a unique fixed point from 0 to 1 cannot be shown"),
    # a double zero of F: there is one fixed point, but its slope is one
    (lambda x: (x + x * x, 1 + 2 * x), "-1", "1", "from -1 to 1 cannot be shown"),
    (lambda x: (1 / x, -1 / (x * x)), "-1", "1/2", "cannot be shown"),
    (lambda x: (arb("nan"), arb("nan")), "0", "1", "from 0 to 1 cannot be shown"),
    (TWO, "1", "1/2", "expected an interval from low to high; found 1..1/2"),
]


@pytest.mark.parametrize(("f", "low", "high", "message"), REFUSED)
def test_what_is_not_shown_is_refused(f: Function, low: str, high: str, message: str) -> None:
    with pytest.raises(DeriveError) as caught:
        fixed_point(f, *ends(low, high), "tanh")
    assert message in str(caught.value)


def test_the_message_says_where_fixed_points_may_be() -> None:
    with pytest.raises(DeriveError) as caught:
        fixed_point(TWO, *ends("-1", "1"))
    assert "what is left reaches from -0.957504 to 0.957504" in str(caught.value)
    assert "give a narrower interval" in str(caught.value)


def test_pieces_with_a_gap_do_not_make_up_their_hull() -> None:
    pieces = [ends("0", "1/4"), ends("1/4", "1/2")]
    assert enclosure.adjacent(pieces)
    assert not enclosure.adjacent([*pieces, ends("3/4", "1")])


def test_a_lost_slope_would_prove_what_is_false() -> None:
    # three fixed points; this is why fixed(...) takes nothing whose slope is not kept
    found = fixed_point(lambda x: (TWO(x)[0], arb(0)), *ends("-1", "1"))
    assert abs(found) < 1e-9


def test_without_the_test_for_the_interior_nothing_is_proved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    halved: Function = lambda x: (x / 2, arb(1) / 2)  # noqa: E731 - its fixed point is the end 0
    with pytest.raises(DeriveError, match="cannot be shown"):
        fixed_point(halved, *ends("0", "1"))
    monkeypatch.setattr(enclosure, "strictly_inside", lambda *_: True)
    fixed_point(halved, *ends("0", "1"))


@pytest.mark.parametrize("w", ["3/2", "7/3", "5"])
def test_newton_agrees_with_iteration(w: str) -> None:
    f = scaled_tanh(Fraction(w))
    x = arb(1)
    for _ in range(400):
        x = f(x.mid())[0]
    assert abs(fixed_point(f, *ends("1/4", "11/10")) - x) < arb(10) ** -12
