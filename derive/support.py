"""Supports: the positions outside which a derivative or an ordered product is zero."""

from __future__ import annotations

from functools import lru_cache

from derive.calculus import system_uses
from derive.equation import System
from derive.index import affine
from derive.terms import Atom, Ix

Edges = list[tuple[tuple[str, str], int]]


def size_base(dim: str) -> str:
    """Return the base that stands for the size of an ordered axis."""
    return "#" + dim


@lru_cache(maxsize=64)
def _upstream(system: System) -> dict[str, frozenset[str]]:
    """Return, for each tensor, the names that its value depends on through every equation."""
    deps: dict[str, set[str]] = {n: {n} for n in system.tensors}
    grown = True
    while grown:
        grown = False
        for name, pairs in system_uses(system).items():
            for equation, _ in pairs:
                before = len(deps[equation.tensor.name])
                deps[equation.tensor.name] |= deps[name]
                grown |= len(deps[equation.tensor.name]) > before
    return {n: frozenset(d) for n, d in deps.items()}


@lru_cache(maxsize=65536)
def _support(system: System, atom: Atom) -> tuple[tuple[tuple[str, str], int], ...]:
    """Return the support of a derivative or an ordered product; () for total functions."""
    name, places = atom
    kind, colon, rest = name.partition(":")
    if not colon:
        return ()
    if kind in ("P", "Q"):
        (a, m), (b, n) = places[2:4] if kind == "P" else (places[3], places[2])
        return (((a, b), n - m + 1),)
    if kind == "g":
        return tuple(_on_axes(system, rest, places))
    if kind != "d":
        return ()
    left, right = rest.split("/")
    cut = len(system.tensors[left].dims)
    out = [*_on_axes(system, left, places[:cut]), *_on_axes(system, right, places[cut:])]
    outer, inner = system.tensors[left].dims, system.tensors[right].dims
    if outer and outer[0].ordered:
        (t, m) = places[0]
        if inner and inner[0].ordered and inner[0].name == outer[0].name and causal(system, left):
            (s, n) = places[cut]
            out.append(((s, t), m - n - least_lags(system, right).get(left, 0)))
        elif left in system.by_name and not (inner and inner[0].ordered):
            out.append((("", t), m))
    return tuple(out)


def out_of_reach(system: System, atom: Atom) -> bool:
    """Tell whether a derivative spans fewer positions than any of its paths."""
    return any(a == b and c < 0 for (a, b), c in _support(system, atom))


@lru_cache(maxsize=1024)
def least_lags(system: System, source: str) -> dict[str, int]:
    """Return how many positions every path from a tensor to each other one goes ahead, at least.

    A gate that reads the previous state alone does not depend on the state of its own position:
    known at once, this spares unfolding every path to see it.
    """
    lags, grown = {source: 0}, True
    while grown:
        grown = False
        for name in [n for n in system_uses(system) if n in lags]:
            for equation, use in system_uses(system)[name]:
                far = lags[name] + max(system.lag(equation, use.entry) or 0, 0)
                if far < lags.get(equation.tensor.name, far + 1):
                    lags[equation.tensor.name], grown = far, True
    return lags


@lru_cache(maxsize=256)
def causal(system: System, name: str) -> bool:
    """Tell whether a state at t depends on nothing after t: every read follows its index."""
    for upstream in _upstream(system)[name]:
        equation = system.by_name.get(upstream)
        for read in equation.reads if equation else ():
            tensor = system.tensors[str(read.base.label)] if hasattr(read, "base") else None
            if tensor is None or not (tensor.dims and tensor.dims[0].ordered):
                continue
            if equation is None or not equation.indices:
                return False
            at = affine(read.indices[0])
            if at.base != equation.indices[0] or at.offset > 0:
                return False
    return True


def _on_axes(system: System, name: str, places: tuple[Ix, ...]) -> Edges:
    """Return first <= i <= size - 1 for the ordered axes of a tensor."""
    tensor, out = system.tensors[name], []
    for slot, ((base, offset), dim) in enumerate(zip(places, tensor.dims, strict=True)):
        if dim.ordered:
            first = tensor.first if slot == 0 else 0
            out += [(("", base), offset - first), ((base, size_base(dim.name)), -1 - offset)]
    return out
