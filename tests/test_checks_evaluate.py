"""The compiled program against the entry-by-entry reader, which shares no code with it."""

import numpy as np
import pytest
from numeric import explicit, point, rows_of

from derive import topics
from derive.building import build_system
from derive.calculus import adjoint_equations
from derive.checks.build import groups
from derive.checks.evaluate import compile_system
from derive.checks.table import forward_values
from derive.errors import DeriveError

ATTENTION = build_system(
    "attention",
    ("T", "K", "M"),
    {"X": ("T", "M"), "W_Q": ("K", "M"), "W_K": ("K", "M"), "W_V": ("M", "M")},
    (
        "Q[t,k] = sum(m, W_Q[k,m]*X[t,m])",
        "R[t,k] = sum(m, W_K[k,m]*X[t,m])",
        "V[t,m] = sum(n, W_V[m,n]*X[t,n])",
        "S[t,s] = sum(k, Q[t,k]*R[s,k])/sqrt(K)",
        "P[t,s] = softmax(s, S[t,s])",
        "O[t,m] = sum(s, P[t,s]*V[s,m])",
    ),
    losses={"square": "1/2*sum(t, sum(m, O[t,m]^2))"},
)
GATED = build_system(
    "gated",
    ("T", "H"),
    {"x": ("T", "H"), "U": ("H", "H"), "V": ("H", "H")},
    (
        "r[t,i] = sigmoid(x[t,i] + sum(j, U[i,j]*h[t-1,j]))",
        "n[t,i] = tanh(x[t,i] + r[t,i]*sum(j, V[i,j]*h[t-1,j]))",
        "h[t,i] = (1 - r[t,i])*n[t,i] + r[t,i]*h[t-1,i]",
    ),
    losses={"sum": "sum(t, sum(i, h[t,i]^2))"},
    initial={"h": "zeros"},
)
TWO_BACK = build_system(
    "two_back",
    ("T", "H"),
    {"x": ("T", "H"), "U": ("H", "H"), "V": ("H", "H")},
    (
        "z[t,i] = x[t,i] + sum(j, U[i,j]*h[t-1,j]) + sum(j, V[i,j]*h[t-2,j])",
        "h[t,i] = sin(z[t,i])",
        "q[t] = logsumexp(i, h[t,i] - h[t-1,i])",
        "u[i] = sum(t, t*h[t,i]) + h[T-1,i]^3/(1 + exp(h[0,i]))",
    ),
    losses={"all": "sum(t, q[t]) + sum(i, u[i]*h[T-1,i]) + sum(t=1..T-1, sum(i, h[t,i]*h[t-1,i]))"},
)
SHIPPED = [
    system.with_loss(loss)
    for name in topics.names()
    for system in topics.load(name).systems.values()
    for loss in system.losses
]
SYSTEMS = [
    *SHIPPED,
    ATTENTION.with_loss("square"),
    GATED.with_loss("sum"),
    TWO_BACK.with_loss("all"),
]
SIZES = ({}, {"T": 1}, {"T": 2, "H": 1}, {"T": 5, "D": 1})


def own(system, sizes):
    return {n: v for n, v in sizes.items() if n in system.dims}


def label(system):
    return f"{system.name}-{system.loss}"


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("system", SYSTEMS, ids=label)
def test_values_and_adjoints_are_those_of_the_explicit_reader(system, sizes):
    if system.name == "next_token" and sizes.get("T") == 1:
        return  # one token has no next one: the mean is of nothing
    sizes, givens = point(system, 1, own(system, sizes))
    values, world = forward_values(system, givens, sizes), explicit(system, givens, sizes)
    for equation in system.equations:
        name = equation.tensor.name
        for place, index in rows_of(system, name, sizes):
            assert values[name][place] == pytest.approx(world.entry(name, index), rel=1e-12)
    for equation in adjoint_equations(system):
        name = equation.tensor.name.removeprefix("g_")
        for place, index in rows_of(system, name, sizes):
            want = world.total("L", (), name, index)
            assert values[f"g_{name}"][place] == pytest.approx(want, rel=1e-10, abs=1e-13)


@pytest.mark.parametrize("system", SYSTEMS, ids=label)
def test_a_batch_is_the_runs_one_by_one(system):
    sizes, _ = point(system)
    rows = [point(system, seed)[1] for seed in range(6)]
    shape = (2, 3)
    together = {n: np.stack([r[n] for r in rows]).reshape(*shape, *a.shape)
                for n, a in rows[0].items()}  # fmt: skip
    program = compile_system(system, (*system.equations, *adjoint_equations(system)))
    batch = program.run(together)
    for number, givens in enumerate(rows):
        alone = program.run(givens)
        for name, value in alone.items():
            got = batch[name][divmod(number, 3)]
            assert got.shape == value.shape
            np.testing.assert_allclose(got, value, rtol=1e-10, atol=1e-13)
    assert compile_system(system).run(rows[0], sizes=sizes).keys() <= batch.keys()


@pytest.mark.parametrize(
    ("given", "want"),
    [("float32", "float32"), ("float64", "float64"), ("complex128", "complex128")],
)
@pytest.mark.parametrize("system", SYSTEMS, ids=label)
def test_the_dtype_of_the_givens_is_that_of_the_results(system, given, want):
    _, givens = point(system)
    values = compile_system(system).run({n: a.astype(given) for n, a in givens.items()})
    assert {v.dtype.name for v in values.values()} == {want}
    exact = compile_system(system).run(givens)
    for name, value in values.items():
        np.testing.assert_allclose(value.real, exact[name], rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("system", SYSTEMS, ids=label)
def test_an_injection_is_added_where_the_value_is_computed(system):
    sizes, givens = point(system)
    program = compile_system(system)
    base = program.run(givens)
    for name, equation in program.outputs.items():
        if not equation.tensor.dims:
            continue
        shape = tuple(sizes[d.name] for d in equation.tensor.dims)
        moved = program.run(givens, {name: np.stack([np.zeros(shape), np.full(shape, 0.5)])})
        for other, value in moved.items():
            np.testing.assert_allclose(value[0], base[other], rtol=1e-12, atol=1e-13)
        first = -equation.tensor.first
        # nothing before the first position has changed, so there the change is the injection
        np.testing.assert_allclose(moved[name][1, first], base[name][first] + 0.5, atol=1e-12)


def test_only_recurrent_terms_stay_in_the_loop():
    system = topics.load("bptt").systems["rnn"].with_loss("per_position")
    code = compile_system(system, (*system.equations, *adjoint_equations(system))).code()
    inside = [line for line in code.lines if line.startswith(" ")]
    assert sum("dot(" in line for line in inside) == 3  # W_h h forward; W_h' g_z, and once at -1
    assert not any("exp" in line or " ** " in line for line in inside)
    assert sum(line.startswith("for t in") for line in code.lines) == 3


def test_detached_values_pass_no_perturbation():
    system = build_system(
        "cut",
        ("T",),
        {"x": ("T",)},
        ("h[t] = x[t] + detach(h[t-1])",),
        losses={"last": "h[T-1]"},
    ).with_loss("last")
    from derive.checks import complex_step, finite_difference

    sizes, givens = point(system)
    for oracle in (complex_step, finite_difference):
        slopes = oracle.table(system, givens, sizes).total("L", "x")
        np.testing.assert_allclose(slopes, np.eye(sizes["T"])[-1], atol=1e-9)


def test_groups_come_in_evaluation_order():
    system = GATED.with_loss("sum")
    found = [[e.tensor.name for e in g] for g in groups(system.equations)]
    assert found == [["r", "n", "h"], ["L"]]


BAD = [
    ({"x": None}, "no value is given for x"),
    ({"h_init": None}, "no value is given for h_init"),
    ({"W_h": np.zeros((3, 4))}, "H is"),
    ({"x": np.zeros(2)}, "x has shape"),
    ({"h_init": np.zeros((2, 3))}, "h_init has shape"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[m for _, m in BAD])
def test_bad_givens_are_refused(change, message):
    system = topics.load("bptt").systems["rnn"].with_loss("final")
    _, givens = point(system)
    broken = {n: a for n, a in {**givens, **change}.items() if a is not None}
    with pytest.raises(DeriveError, match=message):
        compile_system(system).run(broken)


def test_a_missing_size_is_named():
    system = build_system("free", ("T", "H"), {"x": ("T",)}, ("y[t] = x[t]*H",))
    with pytest.raises(DeriveError, match="size H"):
        compile_system(system).run({"x": np.ones(3)})


def test_both_directions_at_once_are_refused():
    from dataclasses import replace

    from derive.nodes import rebuild

    system = topics.load("bptt").systems["linear"]
    (equation,) = system.equations
    t = equation.indices[0]
    ahead = rebuild(equation.rhs, {equation.tensor.at(t - 1): equation.tensor.at(t + 1)})
    both = replace(equation, rhs=equation.rhs + ahead)
    with pytest.raises(DeriveError, match="no order to evaluate"):
        compile_system(system, (both,)).code()
