"""Statements about numbers alone: balls decide them, for these numbers."""

import pytest

from derive.arithmetic import decide_numbers, is_arithmetic
from derive.errors import DeriveError
from derive.statement import read_statement
from derive.topics import load

SYSTEM = load("vanishing").systems["scalar_tanh"]
POINT = "fixed(h=0.5..1, tanh(2*h))"


@pytest.mark.parametrize(
    ("text", "outcome"),
    (
        ("0.5^4 = 0.0625", "holds"),
        ("0.5^4 = 0.062", "fails"),
        ("tanh(2) < 0.9641", "holds"),
        ("tanh(2) < 0.964", "fails"),
        ("tanh(2) >= 0.964", "holds"),
        ("tanh(2) = 0.964", "fails"),
        ("exp(1)*exp(-1) = 1", "undecided"),
        ("1/3 <= 1/3", "holds"),
        ("1/3 < 1/3", "fails"),
        (f"abs({POINT} - 0.957504) < 0.000001", "holds"),
        (f"abs({POINT} - 0.957514) < 0.000001", "fails"),
        (f"{POINT} = tanh(2*0.9575)", "fails"),
    ),
)
def test_balls_decide_numbers(text, outcome):
    identity = read_statement(SYSTEM, text)
    assert is_arithmetic(identity)
    assert decide_numbers(identity)[0] == outcome


@pytest.mark.parametrize("text", ("w*1 = w", "T >= 1", "h[t] <= 1", "1 - h[t]^2 <= 1"))
def test_what_reads_anything_is_no_number(text):
    assert not is_arithmetic(read_statement(SYSTEM, text))


@pytest.mark.parametrize(
    ("text", "message"),
    (
        ("fixed(h=0.5..1, tanh(h/2)) < 1", "has no fixed point from 0.5 to 1"),
        ("fixed(h=-1..1, tanh(2*h)) < 1", "fixed point"),
    ),
)
def test_a_fixed_point_that_is_not_enclosed_is_an_error(text, message):
    with pytest.raises(DeriveError, match=message):
        decide_numbers(read_statement(SYSTEM, text))


def test_a_fixed_point_stands_among_numbers_only():
    with pytest.raises(DeriveError, match="or in a statement about numbers alone"):
        read_statement(SYSTEM, f"h[t] <= {POINT}")
