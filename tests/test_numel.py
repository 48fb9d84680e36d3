"""Counts against torch.nn's own parameters: unequal sizes, both sides, what is refused."""

import pytest
import torch

from derive import topics
from derive.building import build_system
from derive.checks import numel
from derive.checks.evidence import evidence_for
from derive.errors import DeriveError
from derive.parse import parse_expression
from derive.statement import read_statement
from derive.topics.counts import counted

LAYERS = topics.load("counts").systems["layers"]


def evidence(text, system=LAYERS):
    (found,) = evidence_for(read_statement(system, text))
    return found


def test_a_range_of_unequal_sizes_is_counted():
    found = evidence(f"{counted('LSTM')} = 4*H*(D + H) + 8*H")
    assert found.passed
    assert found.count == numel.DRAWS + 1 == len(found.scope.split("; "))
    assert found.against == "numel of torch.nn layers"
    for scope in found.scope.split("; "):
        sizes = [int(part.partition("=")[2]) for part in scope.split()]
        assert len(set(sizes)) == len(sizes)


@pytest.mark.parametrize("kind", numel.PACKED)
def test_the_parts_make_up_the_whole_module(kind):
    sizes = {"D": 5, "H": 3}
    whole = sum(p.numel() for p in getattr(torch.nn, kind)(5, 3).parameters())
    assert sum(numel.recurrent(kind, sizes).values()) == whole


@pytest.mark.parametrize(
    ("text", "passed"),
    (
        (f"3*{counted('LSTM')} = 4*{counted('GRU')}", True),
        (f"4*{counted('LSTM')} = 3*{counted('GRU')}", False),
        (f"H*(D + H + 1) = {counted('RNN', 1)}", True),
        (f"{counted('LSTM')} = 4*H*(D + H + 1)", False),
        (f"{counted('GRU', 1)} - count(b_xr)/2 = 3*H*(D + H + 1) - H/2", True),
        ("count(E) = D^2", False),
    ),
)
def test_either_side_may_count(text, passed):
    assert evidence(text).passed == passed


def test_a_module_that_held_less_would_be_noticed(monkeypatch):
    text = f"{counted('LSTM')} = 4*H*(D + H + 2)"
    label, honest = numel.MODULES["layers"]
    monkeypatch.setitem(numel.MODULES, "layers", (label, lambda sizes: honest(sizes) | {"b_ho": 0}))
    found = evidence(text)
    assert not found.passed
    assert found.worst is not None


def test_a_system_of_ones_own_counts_its_tensors():
    system = topics.load("bptt").systems["linear_matrix"]
    found = evidence("count(W_x, W_h) = H*(D + H)", system)
    assert found.passed
    assert found.against == "numel of the torch tensors"


def renamed(name, dims):
    """Return a shipped system under a name, over sizes of other names."""
    shipped = topics.load(name).default
    shapes = {t.name: tuple(dims.get(d.name, d.name) for d in t.dims) for t in shipped.givens}
    texts = [e.text for e in shipped.equations if e.tensor.name != "L"]
    return build_system(name, tuple(dims.get(n, n) for n in shipped.dims), shapes, texts,
                        targets=("y",), onehot=("Y",), initial=shipped.initial)  # fmt: skip


@pytest.mark.parametrize("name", ["gru", "lstm"])
def test_a_name_alone_makes_no_module(name):
    weights = {"W": ("K", "M"), "U": ("K", "K")}
    text = "h[t,j] = tanh(sum(i, W[j,i]*x[t,i]) + sum(i, U[j,i]*h[t-1,i]))"
    system = build_system(name, ("T", "M", "K"), {"x": ("T", "M"), **weights}, (text,))
    found = evidence("count(W, U) = K*(M + K)", system)
    assert found.passed
    assert found.against == "numel of the torch tensors"


@pytest.mark.parametrize("name", ["gru", "lstm"])
def test_the_same_equations_over_other_sizes_are_no_module(name):
    counted_there = "count(W_o, b_o) = K*(H + 1)"
    assert evidence(counted_there, renamed(name, {"C": "K"})).against.endswith("torch tensors")
    same = evidence(counted_there.replace("K", "C"), renamed(name, {}))
    assert same.against == f"numel of torch.nn.{name.upper()}"


def test_other_mathematics_beside_a_count_is_refused():
    node = parse_expression("count(E)*tanh(D)", lambda name: False)
    with pytest.raises(DeriveError, match="sizes, numbers and arithmetic only"):
        numel.arithmetic(node, {"E": 1}, {"D": 2})
