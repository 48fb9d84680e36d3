"""Proofs about a part of a large system: names left free prove nothing that is false."""

import pytest

from derive.prove import prove
from derive.refute import refute
from derive.statement import read_statement
from derive.topics import load
from derive.views import breadth, graph_of, views

SYSTEM = load("encoder").systems["pre_norm"].with_loss("linear")
FALSE = (
    "dL/dX[t,i] = sum(n, k, g_Q[n,t,k]*W_Q[n,k,i]) + sum(n, v, g_V[n,t,v]*W_V[n,v,i])",
    "dL/dS[n,t,s] = A[n,t,s]*g_A[n,t,s]",
)


@pytest.mark.parametrize("text", FALSE)
def test_no_view_proves_what_is_false(text):
    identity = read_statement(SYSTEM, text)
    assert not prove(identity).proved
    assert refute(identity) is not None


def test_what_is_mentioned_is_looked_into_first():
    identity = read_statement(SYSTEM, "dL/dW_2[i,f] = sum(t, g_Y[t,i]*J[t,f])")
    first, *others = views(identity)
    looked = graph_of(SYSTEM).names(frozenset()) - first
    assert "g:W_2" not in first and "X" in first
    assert len(looked) < len(graph_of(SYSTEM).names(frozenset())) / 2
    assert all(first - free for free in others)


def test_breadth_counts_what_a_statement_leads_to():
    narrow = read_statement(SYSTEM, "mu_1[t] = mean(i, h[t,i])")
    assert breadth(narrow) < 4 < breadth(read_statement(SYSTEM, "dL/dh[t,i] = g_h[t,i]"))


def test_a_lemma_stands_for_what_it_states_only():
    topic = load("encoder")
    system = topic.systems["pre_norm_rows"]
    known = {c.id.rpartition("-")[2]: c for c in topic.claims if "pre_norm_rows-rows" in c.id}
    lemmas = tuple(read_statement(system, known[n].statement) for n in ("A", "V"))
    true = read_statement(system, known["O"].statement)
    assert prove(true, (), lemmas).proved
    wrong = read_statement(system, "Op[n,t,v] = O[n,t,v]")
    assert not prove(wrong, (), lemmas).proved
    turned = read_statement(system, "Op[n,t,v] = sum(u, P[u,t]*O[n,u,v])")
    assert not prove(turned, (), lemmas).proved
