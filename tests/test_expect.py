"""Expected values: the cumulant expansion, its second reading by moments, and Monte Carlo."""

import numpy as np
import pytest

from derive.building import build_system
from derive.checks import monte_carlo
from derive.checks.evidence import evidence_for
from derive.errors import DeriveError
from derive.expect import partitions
from derive.prove import prove
from derive.refute import refute
from derive.second import decide
from derive.statement import read_statement

DRAWN = build_system(
    "drawn",
    ("N", "M"),
    {"x": ("N",), "y": ("N",), "z": ("N", "M"), "m": ("N",), "v": ("N",), "w": ("N",),
     "skew": (), "four": (), "k": (), "b": (), "one": ()},
    ("s = sum(i, w[i]*x[i])", "d = sum(i, x[i]*y[i])", "t = tanh(s)"),
    parameters=(),
    random={
        "x": {"mean": "m", "variance": "v"},
        "y": {"mean": "0", "variance": "1", "third": "skew", "fourth": "four"},
        "z": {"mean": "1/2", "variance": "2"},
        "one": {"mean": "k"},
    },
)  # fmt: skip
TRUE = (
    ("E(s) = sum(i, w[i]*m[i])", ()),
    ("Var(s) = sum(i, w[i]^2*v[i])", ()),
    ("Cov(x[i], x[j]) = delta(i,j)*v[i]", ()),
    ("Cov(x[i], y[j]) = 0", ()),
    ("E(x[i]*x[j]) = m[i]*m[j] + delta(i,j)*v[i]", ()),
    ("E(d) = 0", ()),
    ("Var(d) = sum(i, v[i] + m[i]^2)", ()),
    ("Var(d) = N", ("m[i] = 0", "v[i] = 1")),
    ("Var(d/sqrt(N)) = 1", ("m[i] = 0", "v[i] = 1")),
    ("Var(d/N) = 1/N", ("m[i] = 0", "v[i] = 1")),
    ("E(y[i]^3) = skew", ()),
    ("E(y[i]^4) = four", ()),
    ("Var(y[i]^2) = four - 1", ()),
    ("E(y[i]^2*y[j]^2) = 1 + delta(i,j)*(four - 1)", ()),
    ("Var(sum(i, j, z[i,j])) = 2*N*M", ()),
    ("E(mean(i, z[i,j])) = 1/2", ()),
    ("E(b*x[i] + k) = b*m[i] + k", ()),
    ("E(b) = b", ()),
    ("E(x[i]*E(x[j])) = m[i]*m[j]", ()),
    ("E(one) = k", ()),
    ("Var(s) >= 0", ()),
    ("E(s)^2 <= E(s^2)", ()),
)
FALSE = (
    ("E(s) = 0", ()),
    ("Var(s) = sum(i, w[i]*v[i])", ()),
    ("Var(s) = sum(i, w[i]^2*v[i]) + 1", ()),
    ("Cov(x[i], x[j]) = v[i]", ()),
    ("E(x[i]*x[j]) = m[i]*m[j]", ()),
    ("Var(d) = N", ()),
    ("Var(d) = N", ("m[i] = 0",)),
    ("Var(d) = N", ("v[i] = 1",)),
    ("Var(d) = N^2", ("m[i] = 0", "v[i] = 1")),
    ("Var(d/sqrt(N)) = 1/N", ("m[i] = 0", "v[i] = 1")),
    ("E(y[i]^4) = 3", ()),
    ("E(z[i,j]*z[i,j]) = 1/4", ()),
    ("E(s^2) <= E(s)^2", ()),
)


def read(text, assumes=()):
    return read_statement(DRAWN, text), tuple(read_statement(DRAWN, a) for a in assumes)


@pytest.mark.parametrize(("text", "assumes"), TRUE)
def test_true_expectations_hold_in_every_reading(text, assumes):
    identity, assumed = read(text, assumes)
    assert prove(identity, assumes).proved
    assert refute(identity, assumed) is None
    if identity.relation == "=" and "sqrt" not in text:
        assert decide(identity, {"N": 3, "M": 2}, assumed) == "proved"
    (found,) = evidence_for(identity, assumes=assumed)
    assert found.kind == "monte_carlo"
    assert found.passed, found


@pytest.mark.parametrize(("text", "assumes"), FALSE)
def test_false_expectations_are_refuted_in_every_reading(text, assumes):
    identity, assumed = read(text, assumes)
    assert not prove(identity, assumes).proved
    assert refute(identity, assumed) is not None
    (found,) = evidence_for(identity, assumes=assumed)
    assert not found.passed


@pytest.mark.parametrize(
    ("text", "reason"),
    (
        ("E(t) = 0", "E(...) of t, which depends on random x"),
        ("E(1/x[i]) = 0", "does not follow from moments"),
        ("E(one^2) = k", "needs the variance of one"),
        ("E(x[i]^3) = 0", "needs the third central moment of x"),
        ("E(x[i]^7) = 0", "a product of 7 random entries"),
    ),
)
def test_what_moments_do_not_tell_is_undecided(text, reason):
    identity, _ = read(text)
    proof = prove(identity)
    assert not proof.proved
    assert reason in proof.detail


def test_partitions_keep_tensors_apart():
    a, b, c = ("x", ()), ("x", ()), ("y", ())
    found = list(partitions([a, b, c]))
    assert len(found) == 2
    assert [len(list(partitions([a] * n))) for n in range(6)] == [1, 1, 2, 5, 15, 52]


def test_an_assumption_fixes_no_random_entry():
    with pytest.raises(DeriveError, match="an assumption cannot fix a random entry; x is random"):
        prove(read("E(s) = 0")[0], ("x[i] = 0",))


@pytest.mark.parametrize(
    ("random", "message"),
    (
        ({"u": {"mean": "0"}}, "random 'u' is not a given tensor"),
        ({"x": {"variance": "1"}}, "random x takes mean, variance, third, fourth (mean at least)"),
        ({"x": {"mean": "0", "median": "1"}}, "(mean at least); found ['mean', 'median']"),
        ({"x": {"mean": "y"}}, "a moment of x is a scalar or has shape (N); found (M,)"),
    ),
)
def test_bad_declarations_are_errors(random, message):
    with pytest.raises(DeriveError) as error:
        build_system("bad", ("N", "M"), {"x": ("N",), "y": ("M",)}, (), random=random)
    assert message in error.value.message


@pytest.mark.parametrize(
    "moments",
    ((2.0, None, None), (2.0, 1.5, None), (2.0, None, 9.0), (2.0, 0.0, 4.0), (2.0, 1.0, 20.0)),
)
def test_samples_have_the_declared_moments(moments):
    values = monte_carlo.centred(np.random.default_rng(1), *moments)
    size = values.size
    assert abs(values.mean()) < 5 * np.sqrt(2.0 / size)
    for order, want in zip((2, 3, 4), moments, strict=True):
        if want is not None:
            error = 5 * values.std() ** order * 10 / np.sqrt(size)
            assert abs((values**order).mean() - want) < error


def test_moments_of_no_distribution_are_refused():
    with pytest.raises(DeriveError, match="no distribution has these moments"):
        monte_carlo.centred(np.random.default_rng(1), 2.0, None, 3.0)


@pytest.mark.parametrize(("shift", "passes"), ((0.0, True), (1e-2, False), (np.nan, False)))
def test_monte_carlo_sees_what_is_beyond_its_standard_error(shift, passes):
    gaps = np.random.default_rng(2).standard_normal((32, 1)) * 1e-3 + shift
    assert (monte_carlo.deviation(gaps, "=", 1.0) <= monte_carlo.ERRORS) == passes
