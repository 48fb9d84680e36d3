"""False inequalities and expectations that were once proved, and true ones once refuted."""

import time

import pytest

from derive import prove as module
from derive.building import build_system
from derive.case_quantity import read_quantity
from derive.case_world import World
from derive.errors import DeriveError
from derive.judging import Judge
from derive.prove import prove
from derive.refute import refute
from derive.statement import read_statement
from derive.topics import claim

S = build_system(
    "attacked",
    ("T", "N"),
    {"x": ("T",), "b": ("N",), "q": (), "w": (), "c": (), "a": (), "p": ("T",)},
    ("h[t] = tanh(w*h[t-1] + x[t])", "A[t] = abs(x[t])", "i[t] = sigmoid(x[t])"),
    parameters=(),
)
R = build_system(
    "random",
    ("T",),
    {"x": ("T",), "mu": (), "v": (), "four": (), "a": ()},
    ("u[t] = tanh(detach(x[t]))", "y[t] = a*x[t]", "k[t] = tanh(a*y[t])"),
    parameters=(),
    random={"x": {"mean": "mu", "variance": "v", "third": "0", "fourth": "four"}},
)


def attempt(system, text, assumes=(), using=()):
    module._proofs.clear()
    return prove(read_statement(system, text), assumes,
                 tuple(read_statement(system, u) for u in using))  # fmt: skip


@pytest.mark.parametrize(
    ("system", "text", "assumes", "using"),
    (
        # an inequality rewrites nothing
        (S, "q = w", (), ("q <= w",)),
        (S, "p[t] = p[s] for s <= t", (), ("p[t] <= p[s] for s <= t",)),
        # two pins of one position
        (R, "E(x[t]*delta(t,s))*E(x[t]*delta(t,r)) = mu^2*delta(t,s)", (), ()),
        # a detached value is random all the same
        (R, "E(u[t]) = u[t]", (), ()),
        (R, "E(tanh(detach(x[t]))) = tanh(x[t])", (), ()),
        # a power of zero is one at length zero
        (S, "0^(t-s) = 0 for s <= t", (), ()),
        (S, "w^(t-s) = 0 for s <= t", ("w = 0",), ()),
        (S, "w^(t-s-1) <= c*w^(t-s-1) for s+1 <= t",
         ("w >= 0", "w^(t-s) <= c*w^(t-s) for s+1 <= t"), ()),
        # a denominator under a sum that may be empty
        (S, "q <= sum(k=1..T-1, 1/c)", ("c >= 0", "c*q <= T-1"), ()),
    ),
)  # fmt: skip
def test_false_statements_are_not_proved(system, text, assumes, using):
    assert not attempt(system, text, assumes, using).proved


def test_a_lemma_that_is_an_inequality_makes_no_equation():
    lemma = claim("attacked.bound", "i[t] <= 1", "", "attacked")
    false = claim("attacked.one", "i[t] = 1", "", "attacked", using=("attacked.bound",))
    judge = Judge(lambda name: (lemma, S))
    assert judge.judge(false, S).verdict.name == "refuted"


def test_what_is_held_is_random_all_the_same():
    held = claim("random.held", "E(k[t]) = k[t]", "", "random", assumes=("y held",))
    assert Judge(lambda name: (held, R)).judge(held, R).verdict.name != "proved"


@pytest.mark.parametrize(
    ("random", "message"),
    (
        ({"x": {"mean": "0", "variance": "-1"}}, "no distribution has the moments of x"),
        ({"x": {"mean": "0", "variance": "2", "fourth": "3"}}, "no distribution has"),
        ({"x": {"mean": "y"}, "y": {"mean": "0"}}, "a moment of x reads random y"),
        ({"x": {"mean": "x"}}, "a moment of x reads random x"),
        ({"Y": {"mean": "1/2"}}, "Y is one-hot: its entries are not independent"),
    ),
)
def test_impossible_random_tensors_are_refused(random, message):
    with pytest.raises(DeriveError, match=message):
        build_system("bad", ("T",), {"x": ("T",), "y": ("T",), "Y": ("T", "T")}, (),
                     onehot=("Y",), random=random)  # fmt: skip


def test_an_equation_holds_no_expected_value():
    with pytest.raises(DeriveError, match="an expected value stands in statements"):
        build_system("bad", ("T",), {"x": ("T",)}, ("e[t] = E(x[t])",),
                     random={"x": {"mean": "0"}})  # fmt: skip


@pytest.mark.parametrize(
    ("system", "text", "assumes"),
    (
        (S, "sum(i, b[i]) >= b[j]", ("b[j] >= 0",)),
        (S, "sum(i, b[i]) + b[j]^2 >= 0", ("b[j] >= 0",)),
        (S, "x[t]^2 >= 0", ("x >= 0",)),
        (S, "abs(q) >= q", ("q >= sum(k, x[k])^2",)),
        (R, "E((x[t] - mu)^4) >= v^2", ()),
    ),
)
def test_true_statements_are_not_refuted(system, text, assumes):
    assumed = tuple(read_statement(system, a) for a in assumes)
    assert refute(read_statement(system, text), assumed) is None


@pytest.mark.parametrize("assumption", ("x[k+1] >= x[k]", "x[k+1] <= c"))
def test_an_assumption_reads_inside_its_tensors(assumption):
    with pytest.raises(DeriveError, match="reads a position past the last"):
        prove(read_statement(S, "x[T-1] <= c"), (assumption,))


def test_an_inequality_about_random_entries_is_no_assumption():
    with pytest.raises(DeriveError, match="an assumption cannot speak of random entries"):
        prove(read_statement(R, "mu >= 0"), ("x[k] >= 0",))


@pytest.mark.parametrize("text", ("2^(1/3) > 1", "2^0.1 = 1", "q^(3/4) = q"))
def test_other_roots_are_refused(text):
    with pytest.raises(DeriveError, match="an exponent is a whole number or a half"):
        read_statement(S, text)


def test_the_root_of_a_square_is_a_magnitude():
    assert attempt(S, "(w^2)^(1/2) = abs(w)").proved
    assert not attempt(S, "(w^2)^(1/2) = w").proved


@pytest.mark.parametrize(
    ("text", "assumes"),
    (
        ("sum(k=1..t, w) <= x[t]", ()),
        ("w <= c", ("sum(k=1..T-1, c) >= w",)),
        ("dh[t]/dh[s] > 0 for s <= t", ("w > 0",)),
        ("dh[t]/dx[s]*dh[t]/dx[r] >= 0 for s <= t, r <= t", ()),
    ),
)
def test_nothing_crashes_or_hangs(text, assumes):
    start = time.perf_counter()
    attempt(S, text, assumes)
    assert time.perf_counter() - start < 20


@pytest.mark.parametrize("text", ("exp(10^9)", "tanh(10^30)", "exp(-10^9)"))
def test_exponentials_of_millions_of_digits_are_refused(text):
    quantity = read_quantity(S, text, {})
    with pytest.raises(DeriveError, match="in size can be computed"):
        World(S, {}, {}).value(quantity.expr, {})


def test_products_of_too_many_factors_are_refused():
    quantity = read_quantity(S, "prod(k=0..1000000, 1/2)", {})
    with pytest.raises(DeriveError, match="has 1000001 factors"):
        World(S, {"T": 2}, {}).value(quantity.expr, {})
