"""Random systems with random statements: what is proved has no counterexample.

Two readings of the same text that share nothing after elaboration: the normal form and the scalar
tape. Seeds are fixed, so a failure can be repeated.
"""

import random

import pytest

from derive.building import build_system
from derive.duality import duality
from derive.errors import DeriveError
from derive.prove import prove
from derive.refute import at_point
from derive.second import decide
from derive.statement import read_statement

SHAPES = {"x": ("T", "D"), "W": ("H", "D"), "V": ("H", "H"), "b": ("H",), "w": (), "y": ("H",)}
POINTS = ({"T": 1, "D": 2, "H": 1}, {"T": 3, "D": 1, "H": 2}, {"T": 2, "D": 2, "H": 3})
FUNCTIONS = ("tanh", "sigmoid", "exp", "")


def part(rng, states):
    """Return one term of a right side at [t,j]."""
    own = states[-1]
    before = [s for s in states[:-1]]
    options = [
        "sum(k, W[j,k]*x[t,k])",
        f"sum(i, V[j,i]*{own}[t-1,i])",
        f"w*{own}[t-1,j]",
        "b[j]",
        "w*sum(s=0..t, sum(k, W[j,k]*x[s,k]))",
        *(f"sum(i, V[i,j]*{s}[t,i])" for s in before),
        *(f"b[j]*{s}[t,j]" for s in before),
        *(f"{s}[t-1,j]" for s in before),
        *(f"softmax(j, {s}[t,j])" for s in before),
        *(f"detach({s}[t,j])" for s in before),
    ]
    return rng.choice(options)


def system_of(rng, name):
    """Return a random system of one or two states."""
    states, equations = [], []
    for state in ("h", "z")[: rng.randint(1, 2)]:
        states.append(state)
        terms = " + ".join(part(rng, states) for _ in range(rng.randint(1, 2)))
        function = rng.choice(FUNCTIONS)
        equations.append(f"{state}[t,j] = {function}({terms})")
    last = states[-1]
    loss = rng.choice(
        [f"1/2*sum(j, ({last}[T-1,j] - y[j])^2)", f"mean(t, sum(j, {last}[t,j]*y[j]))"]
    )
    shapes = {**SHAPES, **dict.fromkeys(states, ("T", "H"))}
    system = build_system(name, ("T", "D", "H"), shapes, tuple(equations), losses={"l": loss},
                          targets=("y",))  # fmt: skip
    return system.with_loss("l"), states


def term(rng, states):
    """Return an entry, adjoint, derivative or sum with free indices t, s, i, j."""
    s, place = rng.choice(states), rng.choice(["t", "t", "t-1", "0", "T-1", "t+1"])
    i = rng.choice(["i", "j"])
    return rng.choice([
        f"{s}[{place},{i}]",
        f"g_{s}[{place},{i}]",
        f"d{s}[t,i]/d{rng.choice(states)}[{rng.choice(['s', 't', 't-1'])},j]",
        f"dL/dV[{i},j]",
        f"sum(r, g_{s}[r,i]*{s}[{rng.choice(['r', 'r-1'])},j])",
        f"sum(r=0..t, {s}[r,{i}])",
        f"d{s}[t,i]/db[j]",
        f"partial {s}[{place},i]/partial b[j]",
        f"sum(k, g_{s}[t,k]*V[k,{i}])",
        "0*w",
        f"delta(i,j)*{s}[t,i]",
    ])  # fmt: skip


def statements(rng, states, count):
    """Yield random statements: a term against a term, or against itself slightly changed."""
    changes = (("t-1", "t"), ("i", "j"), ("r-1", "r"), ("T-1", "0"), ("t,", "s,"), ("[t", "[0"))
    for _ in range(count):
        left = term(rng, states)
        right = rng.choice([term(rng, states), left.replace(*rng.choice(changes)), left])
        scale = rng.choice(["", "", "w*", "2*"])
        where = rng.choice(["", " for s <= t", " for t >= 1", " for t <= T-2", " for t+1 <= s"])
        yield f"{scale}{left} = {scale}{right}{where}"


def attempts(rng, system, states, count):
    """Yield each statement that can be read, with whether it is proved."""
    for text in statements(rng, states, count):
        try:
            identity = read_statement(system, text)
            yield identity, prove(identity).proved
        except DeriveError:
            continue


@pytest.mark.parametrize("seed", range(12))
def test_what_is_proved_has_no_counterexample(seed):
    rng, proved = random.Random(seed), 0
    for number in range(3):
        system, states = system_of(rng, f"random{seed}_{number}")
        for identity, holds in attempts(rng, system, states, 14):
            proved += holds
            for point in POINTS if holds else ():
                assert at_point(identity, (), point, seed) is None, identity.text
    assert proved


@pytest.mark.parametrize("seed", range(6))
def test_the_second_prover_contradicts_no_proof(seed):
    rng = random.Random(1000 + seed)
    system, states = system_of(rng, f"twice{seed}")
    for identity, holds in attempts(rng, system, states, 20):
        outcome = decide(identity, {"T": 2, "D": 1, "H": 2}, (), 1.0)
        assert not (holds and outcome == "different"), identity.text


@pytest.mark.parametrize("seed", range(20))
def test_forward_and_reverse_agree_on_random_systems(seed):
    system, _ = system_of(random.Random(2000 + seed), f"dual{seed}")
    assert duality(system).proved, system.equations
