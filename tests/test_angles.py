"""Sines and cosines of sums: addition, whole multiples, positions as numbers."""

import pytest

from derive.building import build_system
from derive.prove import prove
from derive.refute import refute
from derive.second import decide
from derive.statement import read_statement

SYSTEM = build_system(
    "angles",
    ("T", "F"),
    {"w": ("F",), "a": (), "b": (), "s": ("T", "F")},
    ("s[t,f] = sin(t*w[f] + a)",),
    parameters=(),
)
TRUE = (
    "sin(a + b) = sin(a)*cos(b) + cos(a)*sin(b)",
    "cos(a - b) = cos(a)*cos(b) + sin(a)*sin(b)",
    "sin(a)^2 + cos(a)^2 = 1",
    "cos(a)^4 - sin(a)^4 = cos(2*a)",
    "sin(3*a) = 3*sin(a) - 4*sin(a)^3",
    "sin(-a) + sin(a) = 0",
    "s[t+1,f] = s[t,f]*cos(w[f]) + cos(t*w[f] + a)*sin(w[f]) for t <= T-2",
    "s[0,f] = sin(a)",
    "sum(f, cos(w[f])^2) = F - sum(f, sin(w[f])^2)",
    "ds[t,f]/da = cos(t*w[f] + a)",
)
FALSE = (
    "sin(a + b) = sin(a) + sin(b)",
    "cos(a - b) = cos(a)*cos(b) - sin(a)*sin(b)",
    "cos(2*a) = 2*cos(a)",
    "sin(a)^2 + cos(b)^2 = 1",
    "s[t+1,f] = s[t,f] for t <= T-2",
    "s[0,f] = 0",
    "sin(a/2)*2 = sin(a)",
)


@pytest.mark.parametrize("text", TRUE)
def test_true_identities_are_proved(text):
    identity = read_statement(SYSTEM, text)
    assert prove(identity).proved
    assert decide(identity, {"T": 3, "F": 2}, ()) == "proved"
    assert refute(identity) is None


@pytest.mark.parametrize("text", FALSE)
def test_false_ones_are_refuted(text):
    identity = read_statement(SYSTEM, text)
    assert not prove(identity).proved
    assert decide(identity, {"T": 3, "F": 2}, ()) == "different"
    assert refute(identity) is not None


def test_a_long_sum_stays_whole():
    names = tuple("abcdefghij")
    system = build_system("long", (), dict.fromkeys(names, ()), ())
    text = f"sin({' + '.join(names)}) = sin({' + '.join(reversed(names))})"
    assert prove(read_statement(system, text)).proved
