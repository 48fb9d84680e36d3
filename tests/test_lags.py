"""How far ahead a path goes at least: sharp where it is claimed, and needed to be right."""

import pytest

from derive import engine, support, topics
from derive.building import build_system
from derive.prove import _proofs, prove
from derive.refute import refute
from derive.statement import read_statement

GRU = topics.load("gru").systems["gru"]
TWO = build_system(
    "two_back",
    ("T",),
    {"x": ("T",), "w": ()},
    ("q[t] = tanh(w*h[t-2])", "h[t] = q[t] + x[t]*h[t-1]", "k[t] = q[t]*h[t-1]"),
    losses={"loss": "k[T-1]"},
).with_loss("loss")


@pytest.mark.parametrize(
    ("system", "source", "name", "lag"),
    (
        (GRU, "h", "h", 0),
        (GRU, "h", "z", 1),
        (GRU, "h", "n", 1),
        (GRU, "z", "h", 0),
        (GRU, "r", "z", 1),
        (GRU, "x", "h", 0),
        (TWO, "h", "q", 2),
        (TWO, "h", "k", 1),
        (TWO, "q", "k", 0),
        (TWO, "x", "q", 2),
    ),
)
def test_the_least_lag(system, source, name, lag):
    assert support.least_lags(system, source)[name] == lag


TRUE = (
    (GRU, "dz[t,j]/dh[t,i] = 0"),
    (GRU, "dz[t,j]/dh[t-1,i] = z[t,j]*(1 - z[t,j])*W_hz[j,i]"),
    (TWO, "dq[t]/dh[t-1] = 0"),
    (TWO, "dq[t]/dh[t-2] = w*(1 - q[t]^2) for t >= 1"),
    (TWO, "dk[t]/dh[t-1] = q[t]"),
    (TWO, "dh[t]/dh[t-2] = w*(1 - q[t]^2) + x[t]*x[t-1] for t >= 1"),
)
FALSE = (
    (GRU, "dz[t,j]/dh[t-1,i] = 0"),
    (TWO, "dq[t]/dh[t-2] = 0 for t >= 1"),
    (TWO, "dk[t]/dh[t-1] = 0"),
)


@pytest.mark.parametrize(("system", "text"), TRUE)
def test_true_statements_about_lags_are_proved(system, text):
    identity = read_statement(system, text)
    assert prove(identity).proved
    assert refute(identity) is None


@pytest.mark.parametrize(("system", "text"), FALSE)
def test_false_statements_about_lags_are_refused(system, text):
    identity = read_statement(system, text)
    assert not prove(identity).proved
    assert refute(identity) is not None


def test_a_lag_that_is_too_large_would_prove_a_false_statement(monkeypatch):
    honest = support.least_lags

    def late(system, source):
        return {n: lag + 1 if n != source else lag for n, lag in honest(system, source).items()}

    identity = read_statement(TWO, "dk[t]/dh[t-1] = 0")
    monkeypatch.setattr(support, "least_lags", late)
    for cache in (support._support, engine.made):
        cache.cache_clear()
    _proofs.clear()
    assert prove(identity).proved  # the sabotage
    assert refute(identity) is not None  # and the second reading sees it
    for cache in (support._support, engine.made):
        cache.cache_clear()
    _proofs.clear()
