"""Statements that once fooled a prover: products, ranges, supports, names, assumptions, bombs."""

import time

import pytest

from derive.building import build_system
from derive.claim import Claim
from derive.errors import DeriveError
from derive.judging import Judge
from derive.prove import prove
from derive.refute import refute
from derive.statement import read_statement

WORLD = build_system(
    "world",
    ("T", "H"),
    {
        "x": ("T",),
        "M": ("T", "H", "H"),
        "W": ("H", "H"),
        "b": ("H",),
        "w": (),
        "S": ("T", "T"),
        "c0": (),
    },
    (
        "u[t] = 2*tanh(sum(k=0..t, x[k]))",
        "r[t] = x[t]/(1 + exp(sum(k=0..t, x[k])))",
        "h[t,j] = tanh(sum(i, W[j,i]*h[t-1,i]) + b[j])",
        "q[t,j] = tanh(sum(i, W[j,i]*h[t-1,i]) + b[j])",
        "c[t] = w*c[t-1] + x[t]",
    ),
    losses={"loss": "sum(j, h[T-1,j]) + c[T-1] + u[T-1] + r[T-1] + sum(j, q[T-1,j])"},
).with_loss("loss")
EMBED = build_system(
    "embed",
    ("T", "C", "H"),
    {"Y": ("T", "C"), "E": ("C", "H")},
    ("h[t,i] = tanh(sum(c, Y[t,c]*E[c,i]))",),
    losses={"loss": "sum(i, h[T-1,i])"},
    onehot=("Y",),
).with_loss("loss")

FALSE = (
    "u[t] = u[s]",
    "u[0] = u[T-1]",
    "sum(s, u[s]) = T*u[0]",
    "r[t]*x[s] = r[s]*x[t]",
    "prod(k=0..0, exp(W)) = exp(W)*eye(H)",
    "prod(k=0..1, exp(M[k])) = exp(M[0])*exp(M[1])*eye(H) for 1 <= T-1",
    "prod(k=0..0, tanh(W)) = tanh(W)*eye(H)",
    "partial h[t-1,i]/partial b[i] = 1 - h[t-1,i]^2",
)
TRUE = (
    "prod(k=0..1, exp(M[k])) = exp(M[0]) @ exp(M[1]) for 1 <= T-1",
    "prod(k=t..t+1, x[k]) = x[t]*x[t+1] for t <= T-2",
    "prod(k=t..t-1, x[k]) = x[t]*x[t-1] for t >= 1",
    "partial h[-1,i]/partial b[i] = 0",
    "q[t,j] = h[t,j]",
    "logsumexp(s, S[t,s]) = log(sum(s, exp(S[t,s])))",
    "sum(k, softmax(k, S[t,k])) = 1",
    "prod(k=0..t, x[k]*eye(H)) = prod(k=0..t, x[k])*eye(H)",
)
REFUSED = (
    ("sum(i, delta(i,-1)*b[i]) = 0", "may not be one of its values"),
    ("sum(i, delta(i,1)*b[i]) = b[0]", "may not be one of its values"),
    ("sum(i, delta(i,T-1)*b[i]) = b[0]", "may not be one of its values"),
    ("b[-1] = b[-1]", "starts at 0"),
    ("dh[t]/dh[s] = prod(k=t..s+1, diag(1 - h[k]^2) @ W)", "may have passed each other"),
    ("prod(k=s+1..t, x[k]) = 0 for t <= s-2", "may have passed each other"),
    ("1/0 = w", "division by zero"),
    ("w/(1 - 1) = w", "division by zero"),
    ("((((w^64)^64)^64)^64) = w", "degree"),
    ("((((2^64)^64)^64)^64) = w", "thousands of digits"),
    ("W = W" + ".T" * 600, "transposes in a row"),
    ("w = " + "+".join(["w"] * 700), "operators in a row"),
    ("(" * 300 + "w" + ")" * 300 + " = w", "nested deeper"),
    ("w = " + "9" * 60, "digits"),
    ("w " * 2100, "characters"),
    ("w = w = w", "end of the statement"),
    ("w = w $ w", "unexpected character"),
    ("w = W", "shapes"),
    ("W @ b.T = b", "a row and the other a column"),
)
ASSUMED = (
    ("h[t,j] = 0", "is computed by an equation"),
    ("c[s] = 0", "is computed by an equation"),
    ("W + W = W", "rewrites one entry"),
)


@pytest.mark.parametrize("text", FALSE)
def test_false_statements_are_refuted(text):
    identity = read_statement(WORLD, text)
    assert not prove(identity).proved
    assert refute(identity) is not None


@pytest.mark.parametrize("text", TRUE)
def test_true_statements_are_not_refuted(text):
    identity = read_statement(WORLD, text)
    assert refute(identity) is None


@pytest.mark.parametrize("text", TRUE[:-1])
def test_true_statements_are_proved(text):
    assert prove(read_statement(WORLD, text)).proved


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_means_nothing_is_refused(text, message):
    with pytest.raises(DeriveError, match=message):
        prove(read_statement(WORLD, text))


@pytest.mark.parametrize(("text", "message"), ASSUMED)
def test_assumptions_that_would_mean_two_things_are_refused(text, message):
    with pytest.raises(DeriveError, match=message):
        prove(read_statement(WORLD, "dh[t,i]/db[i] = 1"), (text,))


@pytest.mark.parametrize("assumed", ("W[i,j] = W[j,i]", "b[i] = b[i] + 1", "x[t] = x[0] + x[t]"))
def test_an_assumption_in_terms_of_itself_ends(assumed):
    claim = Claim("w.x", "w", "c[t] = 0", "t", assumes=(assumed,))
    try:
        made = Judge(lambda name: (claim, WORLD)).judge(claim, WORLD)
    except DeriveError as error:
        assert "itself" in str(error)
    else:
        assert made.verdict.name != "proved"


def test_lemmas_that_use_each_other_prove_nothing():
    pair = {
        "w.a": Claim("w.a", "w", "dc[t]/dc[s] = 5 for s <= t", "a", using=("w.b",)),
        "w.b": Claim("w.b", "w", "dc[t]/dc[s] = 5 for s <= t", "b", using=("w.a",)),
    }
    made = Judge(lambda name: (pair[name], WORLD)).judge(pair["w.a"], WORLD)
    assert made.verdict.name == "refuted"


def test_a_lemma_that_rewrites_no_entry_is_passed_over():
    composite = Claim("w.n", "w", "sqnorm(b) = sqnorm(b)", "n")
    claim = Claim("w.s", "w", "sin(w)^2 + cos(w)^2 = 1", "s")
    made = Judge(lambda name: (composite, WORLD)).judge(claim, WORLD, hints=("w.n",))
    assert made.verdict.name in ("proved", "undecided")


def test_a_one_hot_embedding_is_read():
    identity = read_statement(EMBED, "dL/dE[c,i] = Y[T-1,c]*(1 - h[T-1,i]^2)")
    assert refute(identity) is None
    assert prove(read_statement(EMBED, "h[t,i] = sum(c, Y[t,c]*tanh(E[c,i]))")).proved


def test_symmetric_powers_do_not_explode():
    start = time.perf_counter()
    text = "sum(j, sum(i, W[j,i])^9) = sum(j, sum(i, W[j,i])^4*sum(i, W[j,i])^5)"
    assert prove(read_statement(WORLD, text)).proved
    assert time.perf_counter() - start < 20  # factorial growth took minutes
