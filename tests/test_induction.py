"""Inductions: true ones go through, false ones are refused, and each line of the rule matters."""

from fractions import Fraction

import pytest

from derive import prove as module
from derive.algebra import Definition
from derive.building import build_system
from derive.engine import algebra_of
from derive.errors import DeriveError
from derive.lemmas import lemmas_at
from derive.normal import Rewrite
from derive.prove import prove
from derive.statement import read_statement
from derive.terms import Term
from derive.topics import load

GEOMETRIC = build_system("geometric", ("T",), {"w": (), "v": ("T",)}, ("h[t] = w*h[t-1]",))
RNN = load("rnn").systems["rnn"].with_loss("final")
CUT = load("bptt").systems["rnn_truncated"].with_loss("final")
DELAY = build_system("delay", ("T",), {"Q": ("T", "T"), "v": ("T",)}, ("s[t] = s[t-1] + v[t]",))
PATH = "dh[t]/dh[s] = prod(k=t..s+1, diag(1 - h[k]^2) @ W_h) for s <= t"


def delay_line():
    """Q[0,s] = delta(s,0), Q[t,s] = Q[t-1,s-1]: the impulse moves on, it never dies."""
    start, step = Term(Fraction(1)), Term(Fraction(1))
    for base in ("?0", "?1"):
        start.guard((base, 0), ("", 0))
        start.guard(("", 0), (base, 0))
    step.guard(("", 1), ("?0", 0))
    step.times(("Q", (("?0", -1), ("?1", -1))))
    algebra = algebra_of(DELAY)
    algebra.made["Q"] = Definition(("?0", "?1"), [start, step])
    algebra._cut["Q"] = True


def attempt(system, text, assumes=()):
    delay_line()
    module._proofs.clear()
    return prove(read_statement(system, text), assumes)


TRUE = (
    (GEOMETRIC, "h[t] = w^(t+1)*h[-1]", ()),
    (GEOMETRIC, "dh[t]/dh[s] = w^(t-s) for s <= t", ()),
    (GEOMETRIC, "h[t] = w^(t-s)*h[s] for s <= t", ()),
    (RNN, PATH, ()),
    (CUT, "dh[t,i]/dh[s,r] = 0 for s+1 <= b, b <= t", ("keep[b] = 0",)),
    (DELAY, "s[t] = s[-1] + sum(u=0..t, v[u])", ()),
    (DELAY, "Q[t,s] = 0 for t+1 <= s", ()),
)
FALSE = (
    # wrong base
    (GEOMETRIC, "h[t] = 0", ()),
    (GEOMETRIC, "dh[t]/dh[s] = 0 for s <= t", ()),
    # wrong step
    (GEOMETRIC, "h[t] = w*h[-1]", ()),
    (DELAY, "s[t] = s[-1] + v[t]", ()),
    # assuming the claim at t itself, or at any position
    (GEOMETRIC, "v[t] = 1", ("v[0] = 1",)),
    (GEOMETRIC, "w = 1", ("v[0] = 1",)),
    # off by one
    (GEOMETRIC, "h[t] = w^t*h[-1]", ()),
    (GEOMETRIC, "dh[t]/dh[s] = w^(t-s+1) for s <= t", ()),
    (DELAY, "s[t] = s[-1] + sum(u=0..t-1, v[u]) for t >= 1", ()),
    # a side condition of the instance that does not follow
    (DELAY, "Q[t,s] = 0 for s >= 1", ()),
    # order of factors
    (RNN, PATH.replace("t..s+1", "s+1..t"), ()),
    # the cut is elsewhere
    (CUT, "dh[t,i]/dh[s,r] = 0 for s <= b, b <= t", ("keep[b] = 0",)),
    (CUT, "dh[t,i]/dh[s,r] = 0 for s+1 <= b, b <= t", ()),
)


@pytest.mark.parametrize(("system", "text", "assumes"), TRUE)
def test_true_inductions_are_accepted(system, text, assumes):
    proof = attempt(system, text, assumes)
    assert (proof.proved, proof.kind) == (True, "induction"), proof


@pytest.mark.parametrize(("system", "text", "assumes"), FALSE)
def test_false_inductions_are_refused(system, text, assumes):
    assert not attempt(system, text, assumes).proved


def provable(cases):
    return [text for system, text, assumes in cases if attempt(system, text, assumes).proved]


def test_without_the_base_a_false_claim_passes(monkeypatch):
    monkeypatch.setattr(module._Attempt, "base_holds", lambda *_: True)
    assert "h[t] = 0" in provable(FALSE)


def test_without_the_step_a_false_claim_passes(monkeypatch):
    monkeypatch.setattr(module._Attempt, "step_holds", lambda *_: True)
    assert "s[t] = s[-1] + v[t]" not in provable(TRUE)
    assert "h[t] = w*h[-1]" in provable(FALSE)


def test_without_side_conditions_a_false_claim_passes(monkeypatch):
    honest = module._Attempt.hypothesis

    def careless(self, symbol, at):
        rule = honest(self, symbol, at)
        return Rewrite(rule.name, rule.places, rule.params, rule.terms)

    monkeypatch.setattr(module._Attempt, "hypothesis", careless)
    assert "Q[t,s] = 0 for s >= 1" in provable(FALSE)


def test_with_the_hypothesis_at_any_position_a_false_claim_passes(monkeypatch):
    honest = module._Attempt.hypothesis

    def careless(self, symbol, at):
        rule = honest(self, symbol, at)
        return Rewrite(rule.name, rule.places, rule.params | {at[0]}, rule.terms)

    monkeypatch.setattr(module._Attempt, "hypothesis", careless)
    assert "v[t] = 1" in provable(FALSE)


@pytest.mark.parametrize("text", ("h[t] = 2*h[t] for t <= -1", "h[t] = 0 for t+1 <= s, s <= t"))
def test_a_statement_about_nothing_is_an_error(text):
    with pytest.raises(DeriveError, match="no values of the indices satisfy the conditions"):
        attempt(GEOMETRIC, text)


@pytest.mark.parametrize(
    ("system", "text", "message"),
    (
        (GEOMETRIC, "h[t+1] = w*h[t]", r"reads a position past the last: h has positions -1..T-1"),
        (GEOMETRIC, "h[t-1] = w*h[t-2]", "reads a position before the first"),
        (GEOMETRIC, "h[t] = sum(s=-1..t, v[s])", "before the first: v has positions 0..T-1"),
        (RNN, "g_z[t+2,j] = 0", "past the last"),
    ),
)
def test_a_read_outside_its_positions_is_an_error(system, text, message):
    with pytest.raises(DeriveError, match=message):
        attempt(system, text)


def test_a_lemma_of_one_place_is_left_out_of_an_induction() -> None:
    system = load("bptt").systems["linear"]
    algebra = algebra_of(system)
    at_one_place = read_statement(system, "dh[T-1]/dh[0] = w^(T-1)")
    everywhere = read_statement(system, "dh[t]/dh[0] = w^t")
    assert lemmas_at(algebra, (at_one_place,), frozenset(), ("t", 1)) == []
    assert len(lemmas_at(algebra, (at_one_place, everywhere), frozenset(), ("t", 1))) == 1
