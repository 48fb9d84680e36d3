"""Counts of parameters against the tensors that modules of torch.nn hold, at unequal sizes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np

from derive import syntax as S
from derive.checks.bench import Bench, bench, canonical
from derive.checks.compare import compare
from derive.checks.modules import ROWS
from derive.checks.sizes import random_sizes
from derive.claim import Evidence
from derive.equation import System
from derive.errors import DeriveError
from derive.statement import Identity

DRAWS = 5
"""How many sets of random sizes are counted, beside the sizes at hand."""
KINDS = {"W_x": "weight_ih_l0", "W_h": "weight_hh_l0", "b_x": "bias_ih_l0", "b_h": "bias_hh_l0"}
PACKED = {"RNN": ("",), "GRU": ("r", "z", "n"), "LSTM": ("i", "f", "g", "o")}
"""The gates of torch's layers, in the order in which they are packed."""
Sizes = Mapping[str, int]
Numels = dict[str, int]


def recurrent(kind: str, sizes: Sizes) -> Numels:
    """Return the numbers of scalars in the parts of a recurrent layer of torch.nn."""
    import torch

    held = dict(getattr(torch.nn, kind)(sizes["D"], sizes["H"], device="meta").named_parameters())
    gates = PACKED[kind]
    return {
        name + gate: part.numel()
        for name, parameter in KINDS.items()
        for gate, part in zip(gates, held[parameter].chunk(len(gates)), strict=True)
    }


def head(sizes: Sizes, weight: str, bias: str) -> Numels:
    """Return the numbers of scalars in torch.nn.Linear."""
    import torch

    made = torch.nn.Linear(sizes["H"], sizes["C"], device="meta")
    return {weight: made.weight.numel(), bias: made.bias.numel()}


def layers(sizes: Sizes) -> Numels:
    """Return those of every layer."""
    import torch

    found = {n: k for kind in PACKED for n, k in recurrent(kind, sizes).items()}
    table = torch.nn.Embedding(
        sizes["V"], sizes["D"]
    )  # its initialisation on meta imports a compiler
    return found | head(sizes, "W_out", "b_out") | {"E": table.weight.numel()}


def two_biases(sizes: Sizes) -> Numels:
    """Return those of torch.nn.RNN under the names of the network with two biases."""
    found = recurrent("RNN", sizes)
    return found | {"b_ih": found.pop("b_x"), "b_hh": found.pop("b_h")}


MODULES: dict[str, tuple[str, Callable[[Sizes], Numels]]] = {
    "layers": ("torch.nn layers", layers),
    "rnn": ("torch.nn.RNN", lambda n: recurrent("RNN", n) | head(n, "W_o", "b_o")),
    "rnn_two_biases": ("torch.nn.RNN", two_biases),
    "gru": ("torch.nn.GRU", lambda n: recurrent("GRU", n) | head(n, "W_o", "b_o")),
    "transformer": ("torch.nn.TransformerEncoderLayer", lambda n: transformer(n)),
    "square_heads": ("torch.nn.MultiheadAttention", lambda n: heads(n)),
    "lstm": ("torch.nn.LSTM", lambda n: recurrent("LSTM", n) | head(n, "W_o", "b_o")),
}


def transformer(sizes: Sizes) -> Numels:
    """Return those of torch.nn.TransformerEncoderLayer, embeddings and a head."""
    import torch

    made = torch.nn.TransformerEncoderLayer(sizes["D"], 1, sizes["F"], device="meta")
    named = {n: p.numel() for n, p in made.named_parameters()}
    table, places = (torch.nn.Embedding(sizes[n], sizes["D"]).weight.numel() for n in "VT")
    head = torch.nn.Linear(sizes["D"], sizes["C"], device="meta")
    found = {"E": table, "pos": places, "W_c": head.weight.numel(), "b_c": head.bias.numel()}
    for kind, packed in (("W", "weight"), ("b", "bias")):
        joined = dict(made.self_attn.named_parameters())[f"in_proj_{packed}"]
        parts = joined.chunk(3)
        found |= {f"{kind}_{n}": p.numel() for n, p in zip("QKV", parts, strict=True)}
        found[f"{kind}_O"] = named[f"self_attn.out_proj.{packed}"]
        found |= {f"{kind}_{at}": named[f"linear{at}.{packed}"] for at in (1, 2)}
    for at in (1, 2):
        found |= {f"gamma_{at}": named[f"norm{at}.weight"], f"beta_{at}": named[f"norm{at}.bias"]}
    return found


def heads(sizes: Sizes) -> Numels:
    """Return those of torch.nn.MultiheadAttention with N heads of width d."""
    import torch

    width = sizes["N"] * sizes["d"]
    made = torch.nn.MultiheadAttention(width, sizes["N"], device="meta")
    named = {n: p for n, p in made.named_parameters()}
    found = {f"{kind}_{n}": p.numel() for kind, packed in (("W", "weight"), ("b", "bias"))
             for n, p in zip("QKV", named[f"in_proj_{packed}"].chunk(3), strict=True)}  # fmt: skip
    return found | {f"{kind}_O": named[f"out_proj.{packed}"].numel()
                    for kind, packed in (("W", "weight"), ("b", "bias"))}  # fmt: skip


SHAPES = {"W_x": ("H", "D"), "W_h": ("H", "H"), "b_": ("H",), "W_o": ("C", "H"), "b_o": ("C",),
          "E": ("V", "D"), "pos": ("T", "D"), "W_1": ("F", "D"), "W_2": ("D", "F"),
          "b_1": ("F",), "b_2": ("D",), "gamma": ("D",), "beta": ("D",), "W_c": ("C", "D"),
          "b_c": ("C",), **{f"W_{n}": ("D", "D") for n in "QKV"},
          **{f"b_{n}": ("D",) for n in "QKV"}}  # fmt: skip
OWN = {
    "transformer": {"W_O": ("D", "D"), "b_O": ("D",)},
    "square_heads": {
        **{f"W_{n}": ("N", "d", "N", "d") for n in "QKVO"},
        **{f"b_{n}": ("N", "d") for n in "QKVO"},
    },
}
"""The axes of parameters whose names mean something else elsewhere."""
"""The axes of a parameter, by the longest beginning of its name that stands here."""


def shipped(system: System) -> tuple[str, Callable[[Sizes], Numels]] | None:
    """Return the module of torch.nn whose parameters a system has: by its equations and axes.

    A name says nothing: a system of a user's may be called lstm and be over other sizes.
    """
    texts = tuple(e.text for e in system.equations if e.tensor.name != "L")
    axes = {p.name: tuple(d.name for d in p.dims) for p in system.parameters}
    for name, found in MODULES.items():
        same = texts == (ROWS[name].equations if name in ROWS else ())
        fitting = all(fits(n, z, OWN.get(name, {})) for n, z in axes.items())
        if same and set(axes) == parameters_of(name) and fitting:
            return found
    return None


@lru_cache(maxsize=len(MODULES))
def parameters_of(name: str) -> frozenset[str]:
    """Return the names of a module's parameters."""
    return frozenset(MODULES[name][1](dict.fromkeys("DHCVTFNd", 1)))


def fits(name: str, axes: tuple[str, ...], own_axes: Mapping[str, tuple[str, ...]]) -> bool:
    """Tell whether a parameter has the axes of torch's."""
    if name in own_axes:
        return axes == own_axes[name]
    own = [start for start in SHAPES if name.startswith(start)]
    # b_o of an LSTM is the bias of the head: its output gate has b_xo and b_ho
    return bool(own) and axes == SHAPES[max(own, key=len)]


def has_count(node: S.Node) -> bool:
    """Tell whether a side of a statement counts scalars."""
    return any(isinstance(n, S.Call) and n.func == "count" for n in S.descend(node))


def counts(identity: Identity, here: Bench, seed: int) -> list[Evidence]:
    """Compare a statement about counts with the numbers of scalars that torch's tensors hold.

    The side that counts is torch's, at every set of sizes; the other one is the statement's.
    """
    start = perf_counter()
    theirs, ours = identity.syntax.lhs, identity.rhs
    if not has_count(theirs):
        theirs, ours = identity.syntax.rhs, identity.lhs
    system = canonical(identity.system)
    drawn = (random_sizes(system, 1000 * (seed + 1) + n) for n in range(DRAWS))
    benches = [here, *(bench(system, None, s, seed, here.dtype.name) for s in drawn)]
    label, _ = shipped(system) or ("the torch tensors", None)
    got, want = [], []
    for there in benches:
        side = there.side(ours, identity, "ours")
        if side is None:
            return []
        got.append(float(side[0]))
        want.append(float(arithmetic(theirs, held(system, there), there.sizes)))
    scope = "; ".join(there.scope for there in benches)
    return [
        compare("module", f"numel of {label}", np.asarray(got), np.asarray(want), max(want), 0.0,
                scope, perf_counter() - start)
    ]  # fmt: skip


def held(system: System, here: Bench) -> Numels:
    """Return the numbers of scalars by tensor: of a module's parameters, else of the givens."""
    import torch

    found = {n: torch.from_numpy(np.asarray(a)).numel() for n, a in here.givens.items()}
    known = shipped(system)
    made = here.table("autograd")
    computed = {} if made is None else {n: np.size(made.tensor(n)) for n in made.values}
    return found | computed | (known[1](here.sizes) if known else {})


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": operator.pow,
}


def arithmetic(node: S.Node, numels: Numels, sizes: Sizes) -> Fraction:
    """Evaluate a side that counts, with torch's numbers.

    Raises:
        DeriveError: On anything but counts, sizes and arithmetic.
    """
    if isinstance(node, S.Num):
        return Fraction(node.value)
    if isinstance(node, S.Name) and node.name in sizes:
        return Fraction(sizes[node.name])
    if isinstance(node, S.Neg):
        return -arithmetic(node.arg, numels, sizes)
    if isinstance(node, S.Call) and node.func == "count":
        return Fraction(sum(numels[a.name] for a in node.args if isinstance(a, S.Name)))
    if isinstance(node, S.Bin) and node.op in OPERATORS:
        left, right = (arithmetic(n, numels, sizes) for n in (node.left, node.right))
        return Fraction(OPERATORS[node.op](left, right))
    raise DeriveError("a statement with count(...) has sizes, numbers and arithmetic only")
