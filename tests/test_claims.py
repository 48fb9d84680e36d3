"""Every claim of every topic: both provers, and a counterexample where it is false."""

import importlib

import pytest
from sampling import taken

from derive import topics
from derive.arithmetic import is_arithmetic
from derive.duality import duality
from derive.holding import premises
from derive.judging import Judge
from derive.nodes import kind, walk
from derive.refute import refute
from derive.second import decide
from derive.statement import read_statement

CLAIMS = [(t, c) for t in map(topics.load, topics.names()) for c in t.claims if c.statement]
SOME = [(t, c) for t, c in CLAIMS if taken(t.system_of(c), c.id)]
SIZES = (
    {"T": 2, "D": 1, "H": 3, "C": 2, "B": 2, "K": 2, "V": 3},
    {"T": 3, "D": 2, "H": 1, "C": 2, "B": 1, "K": 3, "V": 2, "N": 3},
    {"T": 1, "D": 3, "H": 2, "C": 4, "B": 3, "K": 1, "V": 4},
    {"T": 4, "D": 1, "H": 2, "C": 3, "B": 2, "K": 1, "V": 2},
)
# a gated step is a polynomial of several hundred monomials: its powers grow with T and H
SMALL = (
    {"T": 2, "D": 1, "H": 2, "C": 3, "K": 3, "N": 1, "d_k": 1, "d_v": 2, "F": 2},
    {"T": 3, "D": 2, "H": 1, "C": 1, "K": 2, "N": 1, "d_k": 2, "d_v": 1, "F": 1},
    {"T": 1, "D": 3, "H": 2, "C": 2, "K": 1, "N": 2, "d_k": 1, "d_v": 1, "F": 1},
    {"T": 2, "D": 2, "H": 2, "C": 2, "K": 1, "N": 2, "d_k": 1, "d_v": 1, "F": 1},
)
GATED = {"gru", "lstm", "masks", "multihead", "encoder", "decoder"}
# what the second prover leaves undecided, by name: nothing
UNDECIDED: set[str] = set()
# assumes a derivative, which no drawn point satisfies: a stronger assumption stands in for it
ADJOINT = {"bptt.first-use-zero-signal"}


def lookup(name):
    topic = topics.load(name.split(".")[0])
    claim = next(c for c in topic.claims if c.id == name)
    return claim, topic.system_of(claim)


@pytest.mark.parametrize(("topic", "claim"), CLAIMS, ids=[c.id for _, c in CLAIMS])
def test_verdict_is_the_expected_one(topic, claim):
    made = Judge(lookup).judge(claim, topic.system_of(claim))
    names = {"holds": "proved", "fails": "refuted", "undecided": "undecided"}
    assert made.verdict.name == names[claim.expected]
    if claim.expected == "holds":
        numbers = is_arithmetic(made.identity)
        assert made.verdict.scope == ("these numbers" if numbers else "all sizes")
        assert all(e.passed for e in made.evidence)


def is_ordered(identity, assumes):
    """Tell whether an inequality is stated or assumed."""
    return any(s.relation != "=" for s in (identity, *assumes))


def is_kinked(identity):
    """Tell whether a statement or its system computes roots, absolute values or steps."""
    sides = [identity.lhs, identity.rhs, *(e.rhs for e in identity.system.equations)]
    nodes = (n for side in sides for n in walk(side))
    return any(kind(n) in ("sqrt", "abs", "step", "relu") for n in nodes)


@pytest.mark.parametrize(("topic", "claim"), SOME, ids=[c.id for _, c in SOME])
def test_second_prover_agrees_at_unequal_sizes(topic, claim):
    given = premises(topic.system_of(claim), claim.assumes)
    system, assumes = given.system, given.assumed
    identity = read_statement(system, claim.statement)
    chosen = SMALL if topic.name in GATED else SIZES
    rows = [{n: sizes.get(n, 2 + i % 2) for i, n in enumerate(system.dims)} for sizes in chosen]
    if is_ordered(identity, assumes):
        return  # order is no matter of rational functions
    if claim.expected == "fails":
        outcome = (decide(identity, row, assumes, 5.0) for row in rows)
        assert is_kinked(identity) or "different" in outcome
        return
    if is_kinked(identity):
        # kinks are no rational functions either: it may say nothing, and must not contradict
        assert decide(identity, rows[0], assumes, 2.0) != "different"
        return
    outcomes = [decide(identity, row, assumes, 5.0) for row in rows]
    if claim.id in UNDECIDED:
        assert set(outcomes) == {"undecided"}
    else:
        assert set(outcomes) <= {"proved", "no instance"}
        assert "proved" in outcomes


@pytest.mark.parametrize(("topic", "claim"), SOME, ids=[c.id for _, c in SOME])
def test_only_false_claims_have_counterexamples(topic, claim):
    given = premises(topic.system_of(claim), claim.assumes)
    system, assumes = given.system, given.assumed
    if claim.id in ADJOINT:
        assumes = (read_statement(system, "y[j] = h[T-1,j]"),)  # no final error, no signal
        assert refute(read_statement(system, "g_z[0,j] = 0"), assumes) is None
    identity = read_statement(system, claim.statement)
    if is_arithmetic(identity):
        return  # numbers are no point that could be drawn
    found = refute(identity, assumes)
    assert (found is not None) == (claim.expected == "fails")


SYSTEMS = {
    (s.name, loss): s.with_loss(loss)
    for t in map(topics.load, topics.names())
    for s in t.systems.values()
    for loss in s.losses
}


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=map(str, SYSTEMS))
def test_forward_and_reverse_derivatives_are_transposes(system):
    assert duality(system).proved


def test_a_wrong_adjoint_breaks_the_duality(monkeypatch):
    module = importlib.import_module("derive.duality")
    system = topics.load("bptt").systems["rnn"].with_loss("final")
    honest = module.adjoint_equations(system)
    wrong = [e for e in honest if e.tensor.name != "g_z"]
    monkeypatch.setattr(module, "adjoint_equations", lambda _: tuple(wrong))
    assert not module.duality.__wrapped__(system).proved
