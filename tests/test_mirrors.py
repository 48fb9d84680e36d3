"""f(-x) from f(x): both provers know it, neither turns a sign too many."""

import math
from fractions import Fraction

import pytest

from derive import naming, rational
from derive.building import build_system
from derive.duality import duality
from derive.engine import algebra_of
from derive.mirrors import MIRROR, ZERO
from derive.prove import _proofs, prove
from derive.refute import refute
from derive.second import decide
from derive.statement import read_statement

SYSTEM = build_system(
    "mirrors",
    ("T", "H"),
    {"x": ("T",), "v": ("H",), "W": ("H", "H"), "q": ("H",), "c": ()},
    (
        "a[t,j] = sum(i, W[j,i]*h[t-1,i]) - x[t]*v[j]",
        "n[t,j] = tanh(a[t,j])",
        "u[t,j] = sigmoid(-a[t,j])",
        "k[j] = sigmoid(-v[j] - q[j])",
        "h[t,j] = u[t,j]*n[t,j] + (1 - u[t,j])*h[t-1,j]",
    ),
    losses={"loss": "sum(j, h[T-1,j]*q[j]*k[j])"},
).with_loss("loss")
STATE = build_system(
    "mirrored_state",
    ("T",),
    {"x": ("T",), "w": ()},
    ("h[t] = sigmoid(-w*h[t-1] - x[t])",),
    losses={"loss": "h[T-1]"},
).with_loss("loss")
SIZES = ({"T": 2, "H": 1}, {"T": 3, "H": 2})
TRUE = (
    "sigmoid(-a[t,j]) = 1 - sigmoid(a[t,j])",
    "sigmoid(a[t,j]) = 1 - u[t,j]",
    "u[t,j] = 1 - sigmoid(a[t,j])",
    "tanh(-a[t,j]) = -n[t,j]",
    "k[j] = 1 - sigmoid(v[j] + q[j])",
    "tanh(v[j] - q[j]) = -tanh(q[j] - v[j])",
    "tanh(v[i] - v[j]) = -tanh(v[j] - v[i])",
    "sigmoid(v[i] - v[j]) + sigmoid(v[j] - v[i]) = 1",
    "cos(v[i] - v[j]) = cos(v[j] - v[i])",
    "sin(-c) = -sin(c)",
    "cos(-c) = cos(c)",
    "tanh(x[t] - x[t-1]) = -tanh(x[t-1] - x[t]) for t >= 1",
    "tanh(sum(j, v[j] - q[j])) = -tanh(sum(j, q[j] - v[j]))",
    "tanh(c - c) = 0",
    "sigmoid(c - c) = 1/2",
    "cos(c - c) = 1",
    "sin(c - c) = 0",
    "dk[j]/dq[j] = -k[j]*(1 - k[j])",
    "dh[t,j]/dh[t-1,i] = delta(i,j)*(1 - u[t,j]) + u[t,j]*(1 - n[t,j]^2)*W[j,i]"
    " - (n[t,j] - h[t-1,j])*u[t,j]*(1 - u[t,j])*W[j,i]",
    "dL/dc = 0",
)
FALSE = (
    "tanh(-c) = tanh(c)",
    "sin(-c) = sin(c)",
    "cos(-c) = -cos(c)",
    "sigmoid(-c) = -sigmoid(c)",
    "sigmoid(-c) = 1 + sigmoid(c)",
    "sigmoid(-c) = sigmoid(c)",
    "sigmoid(-2*c) = 1 - sigmoid(c)",
    "exp(-c) = -exp(c)",
    "u[t,j] = sigmoid(a[t,j])",
    "tanh(v[i] - v[j]) = tanh(v[j] - v[i])",
    "sigmoid(c - c) = 0",
    "cos(c - c) = 0",
)


@pytest.mark.parametrize("text", TRUE)
def test_both_provers_know_the_mirror_image(text):
    identity = read_statement(SYSTEM, text)
    assert prove(identity).proved
    assert {decide(identity, sizes) for sizes in SIZES} == {"proved"}
    assert refute(identity) is None


@pytest.mark.parametrize("text", FALSE)
def test_no_prover_turns_a_sign_too_many(text):
    identity = read_statement(SYSTEM, text)
    assert not prove(identity).proved
    assert "different" in {decide(identity, sizes) for sizes in SIZES}
    assert refute(identity) is not None


@pytest.mark.parametrize("system", (SYSTEM, STATE), ids=lambda s: s.name)
def test_forward_and_reverse_agree(system):
    assert duality(system).proved


@pytest.mark.parametrize(
    ("text", "true"),
    (
        ("dh[t]/dh[t-1] = -w*h[t]*(1 - h[t])", True),
        ("g_h[t] = -w*g_h[t+1]*h[t+1]*(1 - h[t+1]) for t <= T-2", True),
        ("h[t] = 1 - sigmoid(w*h[t-1] + x[t])", True),
        ("h[t-1] = 1 - sigmoid(w*h[t-2] + x[t-1]) for t >= 1", True),
        ("h[t] = sigmoid(w*h[t-1] + x[t])", False),
        ("dh[t]/dh[t-1] = w*h[t]*(1 - h[t])", False),
    ),
)
def test_a_state_that_is_a_mirror_image_keeps_its_name(text, true):
    identity = read_statement(STATE, text)
    assert prove(identity).proved == true
    assert (refute(identity) is None) == true
    assert "h" not in algebra_of(STATE).opened


@pytest.mark.parametrize("name", MIRROR)
def test_the_rows_are_true(name):
    ours = {"tanh": math.tanh, "sin": math.sin, "cos": math.cos,
            "sigmoid": lambda x: 1/(1 + math.exp(-x))}[name]  # fmt: skip
    constant, factor = MIRROR[name]
    for x in (0.3, -1.7, 2.5):
        assert math.isclose(ours(-x), constant + factor * ours(x))
    assert ours(0) == float(ZERO[name]) == float(rational.ZEROS[name])
    ring = rational.Functions(4)
    x = rational.Rational(ring, ring.gens[0])
    left = ring.apply(name, ring.zero - x) - factor * ring.apply(name, x)
    assert (left - ring.constant(Fraction(constant))).is_zero


def test_a_wrong_row_is_noticed(monkeypatch):
    monkeypatch.setitem(naming.MIRROR, "tanh", (0, 1))
    _proofs.clear()
    identity = read_statement(SYSTEM, "tanh(q[j] - 3*v[j]) = tanh(3*v[j] - q[j])")
    assert prove(identity).proved  # the sabotage: the second prover and the balls disagree
    assert decide(identity, SIZES[0]) == "different"
    assert refute(identity) is not None
    _proofs.clear()
