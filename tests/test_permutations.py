"""Permuted rows: what goes along is proved, what does not is refuted, by two readings."""

import pytest

from derive.building import build_system
from derive.errors import DeriveError
from derive.prove import prove
from derive.refute import refute
from derive.second import decide
from derive.statement import read_statement

SYSTEM = build_system(
    "rows",
    ("T", "D"),
    {"x": ("T", "D"), "P": ("T", "T"), "R": ("T", "T"), "c": ("T",)},
    (
        "y[t,i] = sum(s, P[t,s]*x[s,i])",
        "a[t,i] = tanh(x[t,i])",
        "b[t,i] = tanh(y[t,i])",
        "p[t,s] = softmax(s, sum(i, x[t,i]*x[s,i]))",
        "q[t,s] = softmax(s, sum(i, y[t,i]*y[s,i]))",
        "o[t,i] = sum(s, p[t,s]*x[s,i])",
        "u[t,i] = sum(s, q[t,s]*y[s,i])",
    ),
    permutations=("P", "R"),
    positions=(),
)
TRUE = (
    "sum(s, P[t,s]) = 1",
    "sum(t, P[t,s]) = 1",
    "P[t,s]^2 = P[t,s]",
    "sum(t, P[t,s]*P[t,r]) = delta(s,r)",
    "sum(s, P[t,s]*P[r,s]) = delta(t,r)",
    "b[t,i] = sum(s, P[t,s]*a[s,i])",
    "sum(t, y[t,i]) = sum(t, x[t,i])",
    "sum(t, b[t,i]) = sum(t, a[t,i])",
    "sum(t, c[t]*exp(sum(s, P[t,s]*c[s]))) = sum(t, s, c[t]*P[t,s]*exp(c[s]))",
)
FALSE = (
    "y[t,i] = x[t,i]",
    "P[t,s] = P[s,t]",
    "sum(s, P[t,s]*R[s,r]) = delta(t,r)",
    "P[t,s] = R[t,s]",
    "q[t,s] = sum(r, P[t,r]*p[r,s])",
    "u[t,i] = o[t,i]",
    "b[t,i] = sum(s, P[s,t]*a[s,i])",
    "sum(s, P[t,s]*P[t,s]*c[s]) = sum(s, P[s,t]*c[s])",
)


@pytest.mark.parametrize("text", TRUE)
def test_what_goes_along_is_proved(text):
    identity = read_statement(SYSTEM, text)
    assert prove(identity).proved
    assert decide(identity, {"T": 3, "D": 1}, (), 20.0) == "proved"
    assert refute(identity) is None


@pytest.mark.parametrize("text", FALSE)
def test_what_does_not_is_refuted(text):
    identity = read_statement(SYSTEM, text)
    assert not prove(identity).proved
    assert decide(identity, {"T": 3, "D": 1}, (), 5.0) != "proved"
    assert refute(identity) is not None


def test_part_of_an_ordered_axis_is_not_the_whole_row():
    system = build_system(
        "ordered", ("T",), {"x": ("T",), "P": ("T", "T")}, ("y[t] = sum(s, P[t,s]*x[s])",),
        permutations=("P",),
    )  # fmt: skip
    for text in ("sum(s=0..t, P[t,s]) = 1", "exp(sum(s=0..t, P[t,s]*x[s])) = exp(y[t])"):
        identity = read_statement(system, text)
        assert not prove(identity).proved
        assert refute(identity) is not None


def test_a_permutation_is_square():
    with pytest.raises(DeriveError, match="a permutation is a square matrix"):
        build_system("bad", ("T", "D"), {"P": ("T", "D")}, (), permutations=("P",))
