"""Wrong variants of every claim: all refuted, none undecided, none proved that is false."""

import pytest
from sampling import LARGE, taken

from derive import topics
from derive.edits import edits, equivalent_or_false, suggest
from derive.errors import DeriveError
from derive.prove import prove
from derive.refute import refute
from derive.second import decide
from derive.statement import read_statement

CLAIMS = [
    (t, c)
    for t in map(topics.load, topics.names())
    for c in t.claims
    if c.expected == "holds" and not c.assumes and c.statement
    if taken(t.system_of(c), c.id)
]
# variants that an operator happens to leave true, with the reason
EQUIVALENT = {
    "dh[t]/dh[s] = prod(k=s+1..t, W_h) for s <= t": "equal factors commute",
    "dh[t]/dh[s] = prod(k=s+1..t, f[k]) for s <= t": "numbers commute",
    "dL/dW_Q[n,k,i] = sum(t=1..T-1, g_Q[n,t,k]*X[t,i])": "the first query has one source alone",
    "dL/dW_Q[n,k,i] = sum(t=1..T-1, g_Q[n,t,k]*h[t,i])": "the first query has one source alone",
    "dL/db_Q[n,k] = sum(t=1..T-1, g_Q[n,t,k])": "the first query has one source alone",
    "dL/dW_h = sum(t=1..T-1, g_z[t].T @ h[t-1])": "the state before position 0 is zero here",
}
# every variant for three topics; a sample of each claim's for the others, to keep the suite short
WHOLE, SAMPLE = {"rnn", "softmax_ce", "bptt"}, 2


def variants(topic, claim):
    """Return the edits of a claim: all, or a fixed sample that is spread over them."""
    found = list(edits(read_statement(topic.system_of(claim), claim.statement)))
    if topic.name in WHOLE:
        return found
    step = max(1, len(found) // SAMPLE)
    return found[len(claim.id) % step :: step]


@pytest.mark.parametrize(("topic", "claim"), CLAIMS, ids=[c.id for _, c in CLAIMS])
def test_every_variant_is_refuted_or_equivalent(topic, claim):
    system = topic.system_of(claim)
    for edit in variants(topic, claim):
        outcome = equivalent_or_false(system, edit.text)
        if outcome == "refuted" and topic.name in WHOLE:
            assert not proved(system, edit.text)
        if claim_is_inequality(system, claim):
            # a weaker bound is true too, and may be too weak a hypothesis for its own induction
            true = outcome in ("equivalent", "undecided")
            assert not true or refute(read_statement(system, edit.text)) is None
        elif outcome == "equivalent":
            assert edit.text in EQUIVALENT
            assert refute(read_statement(system, edit.text)) is None
        elif outcome == "undecided" and len(system.equations) >= LARGE:
            assert not proved(system, edit.text)  # a whole block may take longer than is looked
        else:
            assert outcome in ("refuted", "ill-formed"), edit.text


def proved(system, text):
    """Tell whether a variant is proved (one that the prover refuses is not)."""
    try:
        return prove(read_statement(system, text)).proved
    except DeriveError:
        return False


def claim_is_inequality(system, claim):
    """Tell whether a claim is an inequality."""
    return read_statement(system, claim.statement).relation != "="


def test_there_are_enough_variants():
    whole = [(t, c) for t, c in CLAIMS if t.name in WHOLE]
    assert sum(len(variants(t, c)) for t, c in whole) >= 500


def test_neither_prover_proves_a_refuted_variant():
    topic = topics.load("bptt")
    claim = next(c for c in topic.claims if c.id == "bptt.direct-and-future")
    system = topic.system_of(claim)
    sizes = {"T": 2, "D": 1, "H": 2, "C": 2}
    checked = 0
    for edit in edits(read_statement(system, claim.statement)):
        try:
            identity = read_statement(system, edit.text)
            proved = prove(identity).proved
        except DeriveError:
            continue
        if refute(identity, sizes=sizes) is not None:
            checked += 1
            assert not proved
            assert decide(identity, sizes) == "different"
    assert checked >= 5


@pytest.mark.parametrize(
    ("text", "after"),
    (
        ("dL/dW_h = sum(t, g_z[t].T @ h[t])", "h[t-1]"),
        ("dL/dW_h = sum(t, h[t-1].T @ g_z[t])", "g_z[t].T @ h[t-1]"),
        ("g_h[t-1] = g_z[t] @ W_h.T", "W_h"),
        ("g_z[t] = g_h[t]*(1 + h[t]^2)", "-"),
        ("dL/db_h = sum(t=1..T-1, g_z[t])", None),
    ),
)
def test_one_edit_repairs(text, after):
    system = topics.load("bptt").systems["rnn"].with_loss("final")
    edit = suggest(read_statement(system, text))
    assert (edit.after if edit else None) == after or (edit is not None and after is None)
