"""Sides and tables: ours against the explicit reader, the oracles against ours, and sabotage."""

import numpy as np
import pytest
from numeric import explicit, point, rows_of
from sampling import LARGE, taken
from test_checks_evaluate import ATTENTION, GATED, TWO_BACK

from derive import topics
from derive.arithmetic import is_arithmetic
from derive.checks import autograd, complex_step, finite_difference, modules, monte_carlo
from derive.checks.mask_draws import weights
from derive.checks.sides import positions, side_values
from derive.checks.table import Ours, UnavailableError, own
from derive.errors import DeriveError
from derive.holding import premises
from derive.instances import instances
from derive.nodes import tensor_name, walk
from derive.statement import read_statement

CLAIMS = [(t, c) for t in map(topics.load, topics.names()) for c in t.claims if c.statement]
EXTRA = [
    (ATTENTION, "square", "S[t,t] = sum(k, Q[t,k]*R[t,k])/sqrt(K)"),
    (ATTENTION, "square", "dL/dS[t,t] = P[t,t]*(g_P[t,t] - sum(u, P[t,u]*g_P[t,u]))"),
    (ATTENTION, "square", "dP[t,s]/dS[t,u] = P[t,s]*(delta(s,u) - P[t,u])"),
    (ATTENTION, "square", "softmax(s, S[t,s] + 1) = P[t,s]"),
    (ATTENTION, "square", "sum(s=0..t, P[t,s]) = sum(s=0..T-1, P[t,s]) - sum(s=t+1..T-1, P[t,s])"),
    (GATED, "sum", "dL/dV[i,j] = sum(t, g_n[t,i]*(1-n[t,i]^2)*r[t,i]*h[t-1,j])"),
    (GATED, "sum", "dL/dn[t] = g_h[t]*(1 - r[t])"),
    (TWO_BACK, "all", "dL/dV[i,j] = sum(t, g_z[t,i]*h[t-2,j])"),
    (TWO_BACK, "all", "dh[t,i]/dh[t-2,j] = dh[t,i]/dh[t-2,j]"),
    (TWO_BACK, "all", "sum(t=1..T-1, h[t,i]*t^2) = sum(t, h[t,i]*t^2)"),
    (TWO_BACK, "all", "prod(k=0..t, 1 + h[k,i]^2) = prod(k=t..0, 1 + h[k,i]^2)"),
    (TWO_BACK, "all", "logsumexp(i, h[t,i] - h[t-1,i]) = q[t]"),
    (TWO_BACK, "all", "partial z[t,i]/partial h[t-2,j] = V[i,j]"),
    (TWO_BACK, "all", "dL/dh[t-1] = g_z[t] @ U + g_z[t+1] @ V + 0*h[t] for t <= T-2"),
]
IDENTITIES = [
    read_statement(premises(t.system_of(c), c.assumes).system, c.statement) for t, c in CLAIMS
]
IDENTITIES = [i for i in IDENTITIES if taken(i.system, i.text)]
IDENTITIES = [i for i in IDENTITIES if not (is_arithmetic(i) or monte_carlo.is_random(i))]
IDENTITIES += [read_statement(s.with_loss(loss), text) for s, loss, text in EXTRA]


def text(identity):
    return f"{identity.system.name}: {identity.text}"


@pytest.mark.parametrize("sizes", [{}, {"T": 2, "H": 2}], ids=str)
@pytest.mark.parametrize("identity", IDENTITIES, ids=text)
def test_sides_are_those_of_the_explicit_reader(identity, sizes):
    system = identity.system
    sizes, givens = point(system, 2, {n: v for n, v in sizes.items() if n in system.dims})
    world, table = explicit(system, givens, sizes), Ours(system, givens, sizes)
    where = positions(identity, sizes)
    count = 0
    for side in (identity.lhs, identity.rhs):
        got = side_values(side, identity.free, table, sizes)
        for env in instances(identity, sizes):
            place = tuple(env[s] for s, _ in identity.free)
            if where[place]:
                assert got[place] == pytest.approx(world.value(side, env), rel=1e-9, abs=1e-12)
                count += 1
    assert count == 2 * int(where.sum())


SYSTEMS = {
    **{s.name: s for n in topics.names() for s in topics.load(n).systems.values() if s.equations},
    "attention": ATTENTION,
    "gated": GATED,
    "two_back": TWO_BACK,
}
CASES = [(s, loss) for s in SYSTEMS.values() for loss in (*s.losses, "") if s.losses or not loss]
ORACLES = {
    "autograd": (autograd.table, 1e-12),
    "lowered": (lambda s, g, z: autograd.Autograd(s, g, z, autograd.lowered(s, g, z)), 1e-12),
    "complex step": (complex_step.table, 1e-12),
    "differences": (finite_difference.table, 1e-7),
    "module": (modules.module, 1e-12),
    "module steps": (lambda s, g, z: modules.module(s, g, z, 1), 1e-12),
}


SMALL = {"C": 2, "B": 2, "M": 2, "J": 2, "R": 3, "N_layers": 2}


def pairs(system):
    """Every (X, Y) of states and of everything that they may depend on; of a block some."""
    names = [*system.by_name]
    # what a mask compares with zero stands at a kink
    hidden = {tensor_name(n) for e in system.equations for w, *_ in weights(e.rhs) for n in walk(w)}
    given = [g.name for g in system.givens if not g.binary]
    found = [(of, wrt) for of in names for wrt in [*given, *names] if wrt not in hidden]
    return found if len(names) < LARGE else found[len(found) % 7 :: 20]


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize(("system", "loss"), CASES, ids=lambda x: getattr(x, "name", x) or "plain")
def test_oracles_agree_with_the_derived_equations(system, loss, oracle):
    system = system.with_loss(loss) if loss else system
    sizes, givens = point(system, 3, {n: v for n, v in SMALL.items() if n in system.dims})
    make, tolerance = ORACLES[oracle]
    table, ours, found = make(system, givens, sizes), Ours(system, givens, sizes), 0
    if table is None:
        assert oracle.startswith("module")
        return
    for state in table.values:
        np.testing.assert_allclose(table.tensor(state), ours.tensor(state), rtol=1e-12, atol=1e-15)
        found += 1
    for of, wrt in pairs(system):
        for kind in ("total", "partial"):
            try:
                want = getattr(table, kind)(of, wrt)
            except UnavailableError:
                continue
            got = getattr(ours, kind)(of, wrt)
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, atol=tolerance * max(1, np.abs(want).max()))
            found += got.size
    assert found > 0


@pytest.mark.parametrize("name", ["rnn", "rnn_batch", "softmax", "rnn_truncated"])
def test_values_of_oracles_are_those_of_the_program(name):
    system = SYSTEMS[name]
    sizes, givens = point(system)
    ours = Ours(system, givens, sizes)
    for make, _ in ORACLES.values():
        table = make(system, givens, sizes)
        for state in table.values if table is not None else ():
            np.testing.assert_allclose(table.tensor(state), ours.tensor(state), rtol=1e-12)


def test_a_given_depends_on_itself_alone():
    assert own((2, 3), (2, 3), True).reshape(6, 6).trace() == 6
    assert not own((2, 3), (4,), False).any()


def test_a_derived_quantity_reads_the_tables_own_adjoints():
    system = SYSTEMS["rnn"].with_loss("final")
    sizes, givens = point(system)
    table = Ours(system, givens, sizes)
    want = np.einsum("tj,tr->tjr", table.tensor("g_z"), table.tensor("h")[:-1])
    np.testing.assert_allclose(table.tensor("G"), want, rtol=1e-12)


def test_random_directions_stand_for_a_large_tensor():
    system = SYSTEMS["rnn"].with_loss("per_position")
    sizes, givens = point(system)
    for wrt in ("W_h", "x", "z"):
        signs, slopes = finite_difference.directional(system, givens, sizes, wrt, 5, 0)
        want = Ours(system, givens, sizes).total("L", wrt)
        np.testing.assert_allclose(slopes, (signs * want).reshape(5, -1).sum(1), atol=1e-8)


def test_too_many_scalars_are_not_perturbed_one_by_one(monkeypatch):
    monkeypatch.setattr("derive.checks.perturb.LIMIT", 5)
    system = SYSTEMS["rnn"].with_loss("final")
    sizes, givens = point(system)
    with pytest.raises(UnavailableError):
        finite_difference.table(system, givens, sizes).total("L", "W_h")
    assert finite_difference.table(system, givens, sizes).total("L", "b_h").shape == (3,)


def test_unknown_names_are_refused():
    system = SYSTEMS["rnn"].with_loss("final")
    sizes, givens = point(system)
    del givens["Y"]
    with pytest.raises(DeriveError, match="no value is given for Y"):
        Ours(system, givens, sizes).tensor("Y")


def test_every_initial_row_has_a_place():
    places = dict(rows_of(TWO_BACK, "h", {"T": 3, "H": 1}))
    assert [i[0] for i in places.values()] == [-2, -1, 0, 1, 2]
