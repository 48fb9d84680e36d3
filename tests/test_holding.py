"""The assumption ``f, i held``: what it removes, what it leaves, how it fails."""

import pytest

from derive import holding, topics
from derive.case_load import load_text
from derive.checks.evidence import evidence_for
from derive.checks.modules import handwritten, row_of
from derive.claim import Claim
from derive.duality import duality
from derive.errors import DeriveError
from derive.holding import held, held_names, premises
from derive.judging import Judge
from derive.prove import _proofs, prove
from derive.refute import refute
from derive.second import decide
from derive.statement import read_statement

TOPIC = topics.load("lstm")
LSTM = TOPIC.systems["lstm"].with_loss("final")
SIZES = {"T": 2, "D": 1, "H": 2, "C": 1}
PATH = "dc[t]/dc[t-1] = diag(f[t])"


def judged(statement, *assumes, system=LSTM, using=(), lookup=None):
    claim = Claim("x.y", "x", statement, "t", system.name, system.loss, assumes=assumes,
                  using=using)  # fmt: skip
    return Judge(lookup or (lambda name: (claim, system))).judge(claim, system)


@pytest.mark.parametrize("text", ("f, i, g held", "  f ,i,\tg   held ", "h held"))
def test_the_direct_path_is_left_and_the_need_is_shown(text):
    made = judged(PATH, text)
    assert (made.verdict.name, made.verdict.scope) == ("proved", "all sizes")
    need = made.evidence[-1]
    assert need.kind == "counterexample"
    assert need.passed
    assert f"without {text} it fails at" in need.detail


def test_an_assumption_that_is_not_needed_is_not_in_order():
    made = judged("c[t] = f[t]*c[t-1] + i[t]*g[t]", "f held")
    assert made.verdict.name == "proved"
    assert not made.evidence[-1].passed
    assert "could not be shown to be needed" in made.evidence[-1].detail


@pytest.mark.parametrize("text", ("f held", "f, i held", "i, g, o held", "o held", "c held"))
def test_holding_too_little_or_another_thing_is_refuted(text):
    assert judged(PATH, text).verdict.name == "refuted"


def test_two_assumptions_hold_together_and_beside_equations():
    assert judged(PATH, "f, i held", "g held").verdict.name == "proved"
    first = "dc[0,j]/dx[0,k] = 0"
    assert judged(first, "i, g held", "c[-1,j] = 0").verdict.name == "proved"
    assert judged(first, "i, g held").verdict.name == "refuted"
    assert judged(first, "c[-1,j] = 0").verdict.name == "refuted"


@pytest.mark.parametrize(
    ("text", "message"),
    (
        ("f, q held", r"cannot hold q: lstm has no intermediate 'q'"),
        ("W_hf held", r"cannot hold W_hf: W_hf of lstm has no equation of its own"),
        ("x held", r"x of lstm has no equation of its own"),
        ("L held", r"lstm has no intermediate 'L'"),
        ("f i held", r"lstm has no intermediate 'f i'"),
        ("f,, i held", r"lstm has no intermediate ''"),
    ),
)
def test_what_cannot_be_held_is_named(text, message):
    with pytest.raises(DeriveError, match=message):
        judged(PATH, text)


def test_the_nearest_name_is_offered():
    gru = topics.load("gru").systems["gru"]
    with pytest.raises(DeriveError, match="did you mean 's_z'"):
        premises(gru, ("sz held",))


def test_an_equation_is_no_such_assumption():
    assert held_names("h[-1,r] = 0") == ()
    given = premises(LSTM, ("h[-1,r] = 0",))
    assert given.system is LSTM
    assert given.equations == ("h[-1,r] = 0",)


def test_values_stay_and_derivatives_go():
    there = held(LSTM, ("f", "i", "g"))
    for text in ("c[t] = f[t]*c[t-1] + i[t]*g[t]", "g_f[t,j] = 0", "dL/dW_hi[j,r] = 0",
                 "partial c[t,j]/partial f[t,j] = 0", "df[t,j]/dW_hf[j,r] = f[t,j]*(1 - f[t,j])"
                 "*h[t-1,r]"):  # fmt: skip
        identity = read_statement(there, text)
        assert prove(identity).proved, text
        assert refute(identity) is None
        assert decide(identity, SIZES) == "proved"
    assert duality(there).proved
    plain = read_statement(LSTM, "dL/dW_hi[j,r] = 0")
    assert not prove(plain).proved


def test_both_systems_are_kept_apart():
    there = held(LSTM, ("f", "i", "g"))
    assert there != LSTM
    assert there is held(LSTM, ("g", "f", "i"))
    assert held(LSTM, ()) is LSTM
    assert held(held(LSTM, ("f",)), ("i",)).held == ("f", "i")
    assert prove(read_statement(there, PATH)).proved
    assert not prove(read_statement(LSTM, PATH)).proved


def test_the_numbers_come_from_torch_with_the_same_reads_cut():
    there = held(LSTM, ("f", "i", "g"))
    assert handwritten(there) is not handwritten(LSTM)
    assert row_of(there).modules == ()
    found = evidence_for(read_statement(there, PATH))
    assert {e.kind for e in found} >= {"autograd", "complex_step", "finite_difference"}
    assert all(e.passed and e.independent for e in found)
    # nothing held: the same statement fails in torch
    assert not any(e.passed for e in evidence_for(read_statement(LSTM, PATH)))


def test_an_initial_state_is_a_read_too():
    there = held(LSTM, ("h",))
    identity = read_statement(there, "dL/dh[-1,j] = 0")
    assert prove(identity).proved
    assert refute(identity) is None
    assert all(e.passed for e in evidence_for(identity))


def test_a_reader_that_is_forgotten_is_noticed(monkeypatch):
    """Sabotage: the output gate's read of h stays; three provers and torch say no."""
    honest = holding.detached

    def forgetful(equation, names):
        return equation if equation.tensor.name == "s_f" else honest(equation, names)

    holding._held.cache_clear()
    monkeypatch.setattr(holding, "detached", forgetful)
    there = held(LSTM, ("h",))
    identity = read_statement(there, PATH)
    assert not prove(identity).proved
    assert refute(identity) is not None
    assert not all(e.passed for e in evidence_for(identity) if e.kind == "complex_step")
    holding._held.cache_clear()
    _proofs.clear()


def test_a_lemma_holds_what_its_user_holds():
    lemma = Claim("x.l", "x", PATH, "l", "lstm", "final", assumes=("f, i, g held",))
    rows = {"x.l": (lemma, LSTM)}
    judge = Judge(rows.__getitem__)
    user = Claim("x.u", "x", "dc[t]/dc[t-1] = 0*eye(H)", "u", "lstm", "final", using=("x.l",))
    assert judge.lemmas(user, LSTM, user.using) == ()
    same = Claim("x.s", "x", PATH, "s", "lstm", "final", assumes=lemma.assumes, using=("x.l",))
    (found,) = judge.lemmas(same, LSTM, same.using)
    assert found.system.held == ("f", "g", "i")


CASE = """
[case]
id = "mine"
title = "mine"
[[claim]]
topic = "lstm"
statement = "dc[t]/dc[t-1] = diag(f[t])"
assumes = ["{}"]
"""


def test_it_works_in_a_case():
    made = load_text(CASE.format("f, i, g held"), resolve=lambda t, s: LSTM).claims[0]
    assert Judge(lambda n: (made.claim, made.system)).judge(
        made.claim, made.system
    ).verdict.name == "proved"  # fmt: skip
    wrong = load_text(CASE.format("f, ii held"), resolve=lambda t, s: LSTM).claims[0]
    with pytest.raises(DeriveError, match="cannot hold ii"):
        Judge(lambda n: (wrong.claim, wrong.system)).judge(wrong.claim, wrong.system)
