"""Inequalities: true ones are proved, false ones are not, and each part of the proof matters."""

from fractions import Fraction

import pytest

from derive import certificate, facts, inequality
from derive import prove as module
from derive.building import build_system
from derive.errors import DeriveError
from derive.lp import combine
from derive.prove import prove
from derive.refute import refute
from derive.statement import read_statement

FREE = build_system(
    "free",
    ("N", "K"),
    {"a": (), "b": (), "c": (), "x": ("N",), "y": ("N",), "W": ("N", "K"), "v": ("K",)},
    (
        "n = norm(x)",
        "s = min(1, c/n)",
        "q[i] = s*x[i]",
        "u[i] = tanh(x[i])",
        "r[i] = sigmoid(y[i])",
    ),
    parameters=(),
)
RNN = build_system(
    "rnn_small",
    ("T", "H"),
    {"x": ("T", "H"), "W": ("H", "H"), "f": ("T", "H"), "g": (), "e": ()},
    (
        "h[t,j] = tanh(x[t,j] + sum(r, W[j,r]*h[t-1,r]))",
        "c[t,j] = f[t,j]*c[t-1,j] + x[t,j]",
        "v[t,j] = (1 - h[t,j]^2)*sum(r, W[j,r]*v[t-1,r])",
    ),
)
THIRD = Fraction(1, 3)
GAIN = "sqnorm(W @ v[k]) <= e^2*sqnorm(v[k])"
TRUE = (
    (FREE, "a^2 >= 0", ()),
    (FREE, "2*a*b <= a^2 + b^2", ()),
    (FREE, "abs(a*b) <= 1/2*(a^2 + b^2)", ()),
    (FREE, "abs(a + b) <= abs(a) + abs(b)", ()),
    (FREE, "abs(abs(a) - abs(b)) <= abs(a - b)", ()),
    (FREE, "min(a, b) <= max(a, b)", ()),
    (FREE, "min(a, b) <= 1/2*a + 1/2*b", ()),
    (FREE, "relu(a) >= a", ()),
    (FREE, "exp(a) > 0", ()),
    (FREE, "0 < r[i]", ()),
    (FREE, "r[i] < 1", ()),
    (FREE, "r[i]*(1 - r[i]) > 0", ()),
    (FREE, "-1 < u[i]", ()),
    (FREE, "u[i]^2 < 1", ()),
    (FREE, "abs(a*(1 - u[i]^2)) <= abs(a)", ()),
    (FREE, "min(a, b) <= r[i]*a + (1 - r[i])*b", ()),
    (FREE, "r[i]*a + (1 - r[i])*b <= max(a, b)", ()),
    (FREE, "n >= 0", ()),
    (FREE, "norm(q) <= c", ("c > 0",)),
    (FREE, "norm(q) <= n", ("c > 0",)),
    (FREE, "a <= c", ("a <= b", "b <= c")),
    (FREE, "a*c <= b*c", ("a <= b", "c >= 0")),
    (FREE, "a^2 <= b^2", ("a <= b", "a >= 0")),
    (FREE, "a/b <= 1", ("a <= b", "b > 0", "a >= 0")),
    (FREE, "sum(i, x[i]^2) >= 0", ()),
    (FREE, "sum(i, x[i]^2*r[i]) <= sum(i, x[i]^2)", ()),
    (FREE, "var(i, x[i]) >= 0", ()),
    (RNN, "abs(h[t,j]) <= 1", ()),
    (RNN, "abs(dc[t,j]/dc[s,j]) <= g^(t-s) for s <= t", ("abs(f[k,j]) <= g",)),
    (RNN, "prod(k=s+1..t, f[k,j]) >= 0 for s <= t", ("f[k,j] >= 0",)),
    (RNN, "sqnorm(v[t]) <= ((g*e)^(t-s))^2*sqnorm(v[s]) for s <= t",
     (GAIN, "1 - h[k,i]^2 <= g")),
)  # fmt: skip
FALSE = (
    (FREE, "a^2 > 0", ()),
    (FREE, "a <= abs(b)", ()),
    (FREE, "3*a*b <= a^2 + b^2", ()),
    (FREE, "abs(a) + abs(b) <= abs(a + b)", ()),
    (FREE, "max(a, b) <= 1/2*a + 1/2*b", ()),
    (FREE, "exp(a) >= 1", ()),
    (FREE, "r[i] <= 1/2", ()),
    (FREE, "u[i] >= 0", ()),
    (FREE, "norm(q) <= c", ()),
    (FREE, "norm(q) <= 9/10*c", ("c > 0",)),
    (FREE, "norm(q) >= c", ("c > 0",)),
    (FREE, "norm(x) <= sum(i, x[i])", ()),
    (FREE, "a*c <= b*c", ("a <= b",)),
    (FREE, "a^2 <= b^2", ("a <= b",)),
    (FREE, "a/b <= 1", ("a <= b",)),
    (FREE, "a <= c", ("a <= b",)),
    (FREE, "sum(i, x[i]) >= 0", ()),
    # the value before the first position is given: it may be anything
    (RNN, "abs(h[t-1,j]) <= 1", ()),
    (RNN, "1 - h[t-1,j]^2 >= 0", ()),
    (RNN, "abs(c[t,j]) <= abs(c[t-1,j])", ()),
    (RNN, "abs(dc[t,j]/dc[s,j]) <= g^(t-s) for s <= t", ()),
    (RNN, "abs(dc[t,j]/dc[s,j]) <= g^(t-s+1) for s <= t", ("abs(f[k,j]) <= g",)),
    (RNN, "prod(k=s+1..t, f[k,j]) <= 1/2 for s+1 <= t", ("f[k,j] >= 0", "f[k,j] <= 1")),
    (RNN, "sqnorm(v[t]) <= 1/4*((g*e)^(t-s))^2*sqnorm(v[s]) for s <= t",
     (GAIN, "1 - h[k,i]^2 <= g")),
)  # fmt: skip


def attempt(system, text, assumes):
    module._proofs.clear()
    return prove(read_statement(system, text), assumes)


def counterexample(system, text, assumes):
    return refute(read_statement(system, text), tuple(read_statement(system, a) for a in assumes))


@pytest.mark.parametrize(("system", "text", "assumes"), TRUE)
def test_true_inequalities_are_proved_and_never_refuted(system, text, assumes):
    proof = attempt(system, text, assumes)
    assert proof.proved, proof
    assert "inequality" in proof.kind or proof.kind == "case split"
    assert counterexample(system, text, assumes) is None


@pytest.mark.parametrize(("system", "text", "assumes"), FALSE)
def test_false_inequalities_are_refuted_and_never_proved(system, text, assumes):
    assert not attempt(system, text, assumes).proved
    if text != "a^2 > 0":  # false at a = 0 alone, which no drawn point hits
        found = counterexample(system, text, assumes)
        assert found is not None
        assert found.claimed.split()[0] in ("<=", "<", ">=", ">")


@pytest.mark.parametrize(("system", "text", "assumes"), TRUE)
def test_without_facts_nothing_but_squares_is_proved(system, text, assumes, monkeypatch):
    monkeypatch.setattr(certificate, "ranges_of", lambda *_: ())
    monkeypatch.setattr(certificate, "binomials", lambda *_: ())
    monkeypatch.setattr(inequality, "squares", lambda *_: ())
    proof = attempt(system, text, assumes)
    assert not proof.proved or counterexample(system, text, assumes) is None


def test_a_false_fact_proves_a_false_inequality(monkeypatch):
    wrong = ("tanh", "tanh >= 0", False, False, lambda _, a: [facts.atom_terms(a)])
    monkeypatch.setattr(facts, "RANGES", (*facts.RANGES, wrong))
    assert attempt(FREE, "u[i] >= 0", ()).proved


def test_a_range_without_its_position_proves_a_false_inequality(monkeypatch):
    monkeypatch.setattr(certificate._Search, "fits", lambda *_: True)
    assert attempt(RNN, "1 - h[t-1,j]^2 >= 0", ()).proved


def test_without_the_hypothesis_the_induction_fails(monkeypatch):
    text, assumes = "abs(dc[t,j]/dc[s,j]) <= g^(t-s) for s <= t", ("abs(f[k,j]) <= g",)
    honest = facts.Fact

    def empty(terms, why, *rest, **more):
        return honest(() if "position before" in why else terms, why, *rest, **more)

    monkeypatch.setattr(inequality, "Fact", empty)
    assert not attempt(RNN, text, assumes).proved


def test_a_combination_must_add_up():
    items = (certificate.Item({}, (), False),)
    wrong = certificate.Certificate(((Fraction(1), items[0]),))
    term = facts.atom_terms(("a", ()))
    assert not certificate.adds_up(wrong, {("key",): term})
    negative = certificate.Certificate(
        (
            (
                Fraction(-1),
                certificate.Item({("key",): facts.atom_terms(("a", ()), sign=-1)}, (), False),
            ),
        )
    )
    assert not certificate.adds_up(negative, {("key",): term})


@pytest.mark.parametrize(
    ("columns", "target", "found"),
    (
        ([{"r": 1}, {"r": -1}], {"r": 2}, {0: 2}),
        ([{"r": 1, "s": 1}, {"s": -1}], {"r": 1}, {0: 1, 1: 1}),
        ([{"r": 1, "s": 1}], {"r": 1}, None),
        ([{"r": -1}], {"r": 1}, None),
        ([{"r": 2, "s": 1}, {"r": 1, "s": 2}], {"r": 1, "s": 1}, dict.fromkeys((0, 1), THIRD)),
        ([], {"r": 1}, None),
        ([{"r": 1}], {}, {}),
    ),
)  # fmt: skip
def test_combinations_are_exact(columns, target, found):
    rational = [{k: Fraction(v) for k, v in c.items()} for c in columns]
    assert combine(rational, {k: Fraction(v) for k, v in target.items()}) == found


@pytest.mark.parametrize(
    ("text", "message"),
    (
        ("a <= b <= c", "expected the end of the statement"),
        ("a ! b", "unexpected character"),
        ("a b", "expected '=' (or <=, <, >=, >)"),
        ("where(a, b, c) = a", "where takes a comparison and two values"),
        ("where(a <= b, c) = a", "where takes a comparison and two values"),
        ("min(a) = a", "min takes 2 arguments"),
        ("abs(a, b) = a", "abs takes 1 argument"),
        ("min(x, v) <= x", "needs equal shapes"),
        ("(a <= b) = c", "expected ')'"),
    ),
)
def test_bad_inequalities_are_errors(text, message):
    with pytest.raises(DeriveError) as error:
        read_statement(FREE, text)
    assert message in error.value.message


def test_an_equation_is_no_inequality():
    with pytest.raises(DeriveError, match="an equation defines a name by '='; found '<='"):
        build_system("bad", ("N",), {"x": ("N",)}, ("y[i] <= x[i]",))


IDENTITIES = (
    ("abs(a)^2 = a^2", ()),
    ("abs(-2*a*b) = 2*abs(a)*abs(b)", ()),
    ("abs(a - b) = abs(b - a)", ()),
    ("sqrt(sum(i, a^2*x[i]^2)) = abs(a)*n", ()),
    ("max(a, b) + min(a, b) = a + b", ()),
    ("max(a, b)*min(a, b) = a*b", ()),
    ("relu(a)*relu(-a) = 0", ()),
    ("abs(a) = a", ("a >= 0",)),
    ("max(a, b) = b", ("a <= b",)),
    ("where(n <= c, x[i], c/n*x[i]) = q[i]", ()),
    ("where(a <= b, b, a) = max(a, b)", ()),
    ("where(a < b, a, b) = min(a, b)", ()),
    ("tanh(a) = 0", ("a = 0",)),
    ("1/(a + b) = 1/(2*b)", ("a = b",)),
)


@pytest.mark.parametrize(("text", "assumes"), IDENTITIES)
def test_kinks_and_assumptions_inside_functions(text, assumes):
    assert attempt(FREE, text, assumes).proved
    assert counterexample(FREE, text, assumes) is None


@pytest.mark.parametrize(
    ("text", "assumes"),
    (
        ("abs(a) = a", ()),
        ("max(a, b) = b", ()),
        ("max(a, b) = b", ("b <= a",)),
        ("where(a <= b, a, b) = max(a, b)", ()),
        ("relu(a) = a", ()),
        ("sqrt(sum(i, a^2*x[i]^2)) = a*n", ()),
        ("tanh(a) = 0", ("b = 0",)),
    ),
)
def test_false_identities_at_kinks_are_refuted(text, assumes):
    assert not attempt(FREE, text, assumes).proved
    assert counterexample(FREE, text, assumes) is not None
