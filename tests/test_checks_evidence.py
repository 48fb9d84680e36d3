"""The evidence for every shipped claim, and sabotage: what is planted must be caught."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from sampling import taken

from derive import topics
from derive.building import build_system
from derive.calculus import adjoint_equations
from derive.checks import autograd, bench, evidence, modules, monte_carlo, sides, table
from derive.checks.evidence import evidence_for
from derive.errors import DeriveError
from derive.holding import premises
from derive.nodes import kind, walk
from derive.statement import read_statement

CLAIMS = [(t, c) for t in map(topics.load, topics.names()) for c in t.claims if c.statement]
SYSTEMS = {s.name: s for n in topics.names() for s in topics.load(n).systems.values()}
NEEDS_ADJOINT = {"bptt.first-use-zero-signal"}
"""Assumes something of a computed value: no point is made for it."""
MEETS_EQUALITY = {"clipping.below"}
"""Strict, and an equality at some points: floats cannot tell them apart."""


def read(topic, claim):
    given = premises(topic.system_of(claim), claim.assumes)
    return read_statement(given.system, claim.statement), given.assumed


@pytest.fixture
def fresh(monkeypatch):
    """Empty caches, so that what a test plants is seen here and nowhere else."""
    for module, name in ((table, "_programs"), (table, "_values"), (table, "_seeded"),
                         (bench, "_benches"), (bench, "_canonical"),
                         (bench, "_shared")):  # fmt: skip
        monkeypatch.setattr(module, name, {})
    sides.side.cache_clear()
    yield monkeypatch
    sides.side.cache_clear()


SOME = [(t, c) for t, c in CLAIMS if taken(t.system_of(c), c.id)]


@pytest.mark.parametrize(("topic", "claim"), SOME, ids=[c.id for _, c in SOME])
def test_every_oracle_agrees_with_what_is_expected(topic, claim):
    identity, assumes = read(topic, claim)
    found = evidence_for(identity, assumes=assumes)
    if claim.id in NEEDS_ADJOINT or claim.id in MEETS_EQUALITY or not reads_anything(identity):
        assert found == []
        return
    kinds = [e.kind for e in found]
    assert len(kinds) == len(set(kinds))
    assert all(e.count > 0 and e.independent for e in found)
    if claim.expected == "holds":
        assert all(e.passed for e in found), found
    elif not partly_true(identity):
        assert not any(e.passed for e in found), found
    else:
        assert any(fails_at(identity, assumes, seed) for seed in range(SEEDS))
    if "count(" in claim.statement:
        assert kinds == ["module"]
    elif monte_carlo.is_random(identity):
        assert kinds == ["monte_carlo"]
    elif identity.system.loss and sides.has_derivative(identity.lhs):
        assert {"autograd", "complex_step", "finite_difference", "random_sizes"} <= set(kinds)
    else:
        assert {"autograd", "random_sizes"} <= set(kinds)


def reads_anything(identity):
    """Tell whether a statement reads a value: numbers, and counts of positions, read none."""
    shaped = "count(" in identity.text
    return (
        shaped
        or any(sides.entries(s) for s in (identity.lhs, identity.rhs))
        or (monte_carlo.is_random(identity))
    )


SEEDS = 60
"""Most points that are tried for one at which a partly true statement is false."""


def fails_at(identity, assumes, seed):
    """Tell whether every oracle contradicts a statement at the point of a seed."""
    found = [e for e in evidence_for(identity, assumes=assumes, seed=seed) if fixed(e)]
    return bool(found) and not any(e.passed for e in found)


def fixed(e):
    """Tell whether evidence is of the statement's own point, and exact but for rounding."""
    return e.kind not in ("random_sizes", "finite_difference", "monte_carlo")


def partly_true(identity):
    """Tell whether a false statement may hold at a drawn point: an inequality, or beside a kink.

    Its evidence is then not all bad at each point, but must be at one of several.
    """
    parts = [identity.lhs, identity.rhs, *(e.rhs for e in identity.system.equations)]
    kinked = any(kind(n) in ("abs", "step") for p in parts for n in walk(p))
    return identity.relation != "=" or kinked


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_shipped_system_has_torch_code_of_its_own(name):
    system = SYSTEMS[name]
    for loss in ("", *system.losses):
        selected = system.with_loss(loss) if loss else system
        if system.equations:
            assert modules.handwritten(selected) is not None


def test_a_model_of_the_same_name_is_not_compared_with_ours():
    other = build_system(
        "linear", ("T",), {"x": ("T",), "w": (), "u": ()}, ("h[t] = w*h[t-1] - u*x[t]",)
    )
    assert modules.handwritten(other) is None
    found = evidence_for(read_statement(other, "dh[t]/du = w*dh[t-1]/du - x[t]"))
    assert all(e.passed for e in found)
    assert [e.independent for e in found if e.kind == "autograd"] == [False]
    assert "our own lowering" in found[0].against


# An inequality has slack, so a small error in a side need not make it false. Moved beyond the slack
# at its point it is false there, and moved by less it is not.

TRUE = [(t, c) for t, c in CLAIMS if c.expected == "holds" and c.id not in NEEDS_ADJOINT]
INEQUALITIES = [(t, c) for t, c in TRUE if read(t, c)[0].relation != "=" and
                reads_anything(read(t, c)[0])]  # fmt: skip
EXPECTATIONS = [(t, c) for t, c in TRUE if monte_carlo.is_random(read(t, c)[0])]


def slack(identity, assumes):
    """Return how far the sides are apart at the closest, and the largest intermediate."""
    there = evidence.reachable(identity, None, None, 0, "float64", assumes, bench.PINS)
    left, right = (there.side(s, identity, "ours") for s in (identity.lhs, identity.rhs))
    gap = (right[0] - left[0]) * (1 if identity.relation[0] == "<" else -1)
    return float(gap[there.where(identity)].min()), max(left[1], right[1])


def raised(identity, by):
    """Return an inequality with its smaller side raised."""
    side = "lhs" if identity.relation[0] == "<" else "rhs"
    return replace(identity, **{side: getattr(identity, side) + sp.Rational(by)})


@pytest.mark.parametrize(("topic", "claim"), INEQUALITIES, ids=[c.id for _, c in INEQUALITIES])
def test_an_inequality_fails_beyond_its_gap_and_not_within(topic, claim):
    identity, assumes = read(topic, claim)
    gap, scale = slack(identity, assumes)
    for by, passes in ((gap + 1e-9 * scale, False), (gap - 1e-9 * scale, True)):
        found = evidence_for(raised(identity, by), assumes=assumes)
        kinds = [e for e in found if fixed(e)]
        assert kinds
        assert all(e.passed == passes for e in kinds), (gap, kinds)


@pytest.mark.parametrize(("topic", "claim"), EXPECTATIONS, ids=[c.id for _, c in EXPECTATIONS])
def test_an_expected_value_fails_beyond_its_tolerance(topic, claim):
    """The standard error is what a known shift is measured in; a true claim is off by 5 at most."""
    identity, assumes = read(topic, claim)
    moved = replace(identity, rhs=identity.rhs + 1000)
    (far,) = evidence_for(moved, assumes=assumes)
    error = 1000 / (far.max_error - monte_carlo.ERRORS)
    moved = replace(identity, rhs=identity.rhs + sp.Rational(3 * monte_carlo.ERRORS * error))
    (near,) = evidence_for(moved, assumes=assumes)
    assert not near.passed
    assert near.max_error < 5 * monte_carlo.ERRORS


# Planted errors. Each adjoint in turn is off by 1e-9 and nothing else.

LOSSES = [(s, loss) for s in SYSTEMS.values() for loss in s.losses]
ROUNDING = 1e-14
"""Below this a gradient is what rounding leaves of zero."""
PLANTED = [
    (s.with_loss(loss), e.tensor.name)
    for s, loss in LOSSES
    for e in adjoint_equations(s.with_loss(loss))
    if not s.tensors[e.tensor.name[2:]].binary and taken(s, e.tensor.name)
]
ONE = 1 + sp.Rational(1, 10**9)


def planted(name):
    """Return adjoint equations of which one is off by a relative 1e-9."""

    def equations(system):
        return tuple(replace(e, rhs=ONE * e.rhs) if e.tensor.name == name else e
                     for e in adjoint_equations(system))  # fmt: skip

    return equations


def whole(system, name):
    """Return the statement that names one gradient: its left side is the oracle's, ours ours."""
    dims = system.tensors[name].dims
    letters = "tuvw" if dims and dims[0].ordered else "ijkl"
    entry = f"{name}[{','.join(letters[: len(dims)])}]" if dims else name
    return read_statement(system, f"dL/d{entry} = dL/d{entry}")


@pytest.mark.parametrize(
    ("system", "name"), PLANTED, ids=[f"{s.name}-{s.loss}-{n}" for s, n in PLANTED]
)
def test_a_relative_error_of_1e_9_in_any_gradient_is_caught(fresh, system, name):
    identity = whole(system, name.removeprefix("g_"))
    sound = evidence_for(identity)
    assert all(e.passed for e in sound)
    fresh.setattr(table, "adjoint_equations", planted(name))
    for cache in (table._programs, table._values, bench._benches):
        cache.clear()
    found = {e.kind: e for e in evidence_for(identity)}
    assert found.keys() == {e.kind for e in sound}
    if np.abs(table.forward_values(system, *point_of(system))[name]).max() < ROUNDING:
        assert all(e.passed for e in found.values())  # zero, but for the last bits
        return
    for oracle in found.keys() - {"finite_difference"}:
        assert not found[oracle].passed, oracle
        assert found[oracle].max_error > 1e-11


def point_of(system):
    here = bench.bench(system, None, None, 0, "float64")
    return here.givens, here.sizes


@pytest.mark.parametrize("factor", ["1.00001", "0.9999"])
def test_finite_differences_catch_what_they_can(factor):
    system = SYSTEMS["rnn"].with_loss("final")
    identity = read_statement(system, f"dL/dW_h = {factor}*sum(t, g_z[t].T @ h[t-1])")
    found = {e.kind: e for e in evidence_for(identity)}
    assert not any(e.passed for e in found.values())
    assert found["finite_difference"].tolerance == pytest.approx(1.5e-8, rel=0.1)


def test_the_derived_equation_is_compared_beside_the_claim(fresh):
    """The claim's right side is right; the derived g_W_h is not, and that fails it too."""
    system = SYSTEMS["rnn"].with_loss("final")
    fresh.setattr(table, "adjoint_equations", planted("g_W_h"))
    identity = read_statement(system, "dL/dW_h = sum(t, g_z[t].T @ h[t-1])")
    found = [e for e in evidence_for(identity) if e.kind != "finite_difference"]
    assert found
    assert all(not e.passed and e.detail == "the derived adjoint equations"
               for e in found if e.kind != "random_sizes")  # fmt: skip


@pytest.mark.parametrize("kind", ["module", "autograd"])
def test_a_wrong_forward_is_caught(fresh, kind):
    """An oracle that computes another model disagrees with ours, forward and backward."""
    row = modules.ROWS["rnn"]

    def wrong(forward):
        def run(v, keep, loss):
            forward({**v, "b_h": v["b_h"] * (1 + 1e-9)}, keep, loss)

        return run

    spoiled = replace(row, forward=wrong(row.forward), modules=tuple(
        replace(m, forward=wrong(m.forward)) for m in row.modules))  # fmt: skip
    fresh.setitem(modules.ROWS, "rnn", spoiled)
    for loss, text in (("final", "dL/dW_h = sum(t, g_z[t].T @ h[t-1])"),
                       ("final", "h[t] = tanh(x[t] @ W_x.T + h[t-1] @ W_h.T + b_h)")):  # fmt: skip
        identity = read_statement(SYSTEMS["rnn"].with_loss(loss), text)
        assert not any(e.passed for e in evidence_for(identity, kinds=(kind,)))


def test_nan_never_passes():
    system = SYSTEMS["rnn"].with_loss("final")
    identity = read_statement(system, "dL/dW_h = sum(t, g_z[t].T @ h[t-1])")
    givens = {"x": np.full((4, 2), np.nan)}
    found = [e for e in evidence_for(identity, givens) if e.kind != "random_sizes"]
    assert len(found) == 4
    assert not any(e.passed for e in found)


def test_conditions_that_hold_nowhere_never_pass():
    system = SYSTEMS["rnn"].with_loss("final")
    identity = read_statement(system, "dh[t]/dh[s] = dh[t]/dh[s] for s <= t, t+1 <= s")
    found = evidence_for(identity)
    assert found
    assert all(e.count == 0 and not e.passed for e in found)


SETTINGS = [
    {"sizes": {"T": 6, "D": 5, "H": 2}},
    {"sizes": {"T": 1, "D": 1, "H": 1, "C": 1}},
    {"seed": 11},
    {"dtype": "float32"},
    {"givens": {"x": [[1, 2], [3, 4.5], [0, 1]], "h_init": [0.1, 0.2]}},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("loss", ["final", "per_position"])
def test_sizes_seed_dtype_and_givens(settings, loss):
    identity = read_statement(SYSTEMS["rnn"].with_loss(loss), "dL/dW_h = sum(t, g_z[t].T @ h[t-1])")
    found = evidence_for(identity, **settings)
    assert [e.kind for e in found] == [
        "module", "autograd", "complex_step", "finite_difference", "random_sizes",
    ]  # fmt: skip
    assert all(e.passed for e in found)
    for name, number in settings.get("sizes", {}).items():
        assert f"{name}={number}" in found[0].scope
    plain = evidence_for(identity)
    assert found[0].worst != plain[0].worst or found[0].tolerance != plain[0].tolerance


def test_large_tensors_are_checked_along_directions():
    system = SYSTEMS["rnn"].with_loss("final")
    sizes = {"T": 3, "H": 46}
    right = read_statement(system, "dL/dW_h = sum(t, g_z[t].T @ h[t-1])")
    wrong = read_statement(system, "dL/dW_h = 1.0001*sum(t, g_z[t].T @ h[t-1])")
    for identity, passes in ((right, True), (wrong, False)):
        (found,) = evidence_for(identity, sizes=sizes, kinds=("finite_difference",))
        assert "directions" in found.against
        assert (found.count, found.passed) == (evidence.DIRECTIONS, passes)


BAD = [
    ({"dtype": "float16"}, "dtype is"),
    ({"sizes": {"Q": 3}}, "no size 'Q'"),
    ({"givens": {"nix": [1.0]}}, "unknown tensor 'nix'"),
    ({"givens": {"h": np.zeros((5, 3))}}, "is computed, not given"),
    ({"givens": {"x": np.zeros((4, 2)), "W_x": np.zeros((3, 3))}}, "D is"),
    ({"givens": {"y": np.zeros((2, 3))}}, "y has shape"),
]


@pytest.mark.parametrize(("settings", "message"), BAD, ids=[m for _, m in BAD])
def test_bad_points_are_refused(settings, message):
    identity = read_statement(SYSTEMS["rnn"].with_loss("final"), "dL/db_h = sum(t, g_z[t])")
    with pytest.raises(DeriveError, match=message):
        evidence_for(identity, **settings)


def test_statements_about_sizes_alone_have_no_numeric_evidence():
    identity = read_statement(SYSTEMS["rnn"], "H*(D + 1) = H*D + H")
    assert evidence_for(identity) == []


def test_a_wrong_count_is_caught():
    identity = read_statement(SYSTEMS["rnn"], "count(W_x, W_h) = H*(D + H + 1)")
    (found,) = evidence_for(identity)
    assert not found.passed
    sizes = dict(part.split("=") for part in found.scope.split("; ")[found.worst.index[0]].split())
    d, h = int(sizes["D"]), int(sizes["H"])
    assert (found.worst.got, found.worst.want) == (h * (d + h + 1), h * (d + h))


def test_an_assumption_is_used_for_each_value_of_its_index():
    """Carried everywhere else, so that the claim is not checked with every gate closed."""
    system = SYSTEMS["rnn_truncated"].with_loss("final")
    identity = read_statement(system, "dh[t,i]/dh[s,r] = 0 for s+1 <= b, b <= t")
    assumption = read_statement(system, "keep[b] = 0")
    assert all(e.passed for e in evidence_for(identity, assumes=(assumption,)))
    assert not any(e.passed for e in evidence_for(identity))
    here = bench.bench(system, None, None, 0, "float64")
    ((part, mask),) = [p for p in bench.point(here, identity, (assumption,)).parts[1:2]]
    assert np.count_nonzero(part.givens["keep"]) == here.sizes["T"] - 1
    assert 0 < mask.sum() < mask.size


def test_torch_keeps_its_number_of_threads():
    import torch

    before = torch.get_num_threads()
    with autograd.one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
