"""The second prover: both sides as rational functions of free generators, at explicit sizes.

Fully mechanical, by python-flint polynomials; it shares no lowering with the normal form. It
decides at the sizes given and says nothing of others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Literal

from derive.errors import DeriveError, UndefinedError
from derive.index import Tensor
from derive.instances import instances
from derive.nodes import tensor_name, walk
from derive.rational import Functions, NeedMoreError
from derive.statement import Identity
from derive.worlds import Worlds

Outcome = Literal["proved", "different", "undecided", "no instance"]
MAX_GENERATORS, MAX_CLASSES = 512, 100


def decide(
    identity: Identity,
    sizes: Mapping[str, int],
    assumes: tuple[Identity, ...] = (),
    seconds: float = 5.0,
) -> Outcome:
    """Decide a statement at explicit sizes, for all values of the given entries.

    Args:
        identity: The statement.
        sizes: A positive integer for each size.
        assumes: Assumptions that fix entries.
        seconds: Time after which it gives up.

    Returns:
        ``proved`` (equal as rational functions, for every class of a one-hot row),
        ``different``, ``undecided`` (out of time, too many generators or classes), or
        ``no instance``.
    """
    if identity.relation != "=" or any(a.relation != "=" for a in assumes):
        return "undecided"  # rational functions have no order
    end, size = time.perf_counter() + seconds, 48
    if not any(True for _ in instances(identity, sizes)):
        return "no instance"
    while size <= MAX_GENERATORS:
        try:
            return _decide(identity, sizes, assumes, size, end)
        except NeedMoreError:
            size *= 2
        except (TimeoutError, DeriveError):
            return "undecided"
    return "undecided"


def _decide(
    identity: Identity,
    sizes: Mapping[str, int],
    assumes: tuple[Identity, ...],
    size: int,
    end: float,
) -> Outcome:
    """Compare the sides for rows that sum to one, then for every class of each row."""
    seen = upstream(identity)
    tensors = [t for t in identity.system.tensors.values() if t.name in seen]
    targets = [t for t in tensors if t.onehot or t.binary]
    onehot = {t.name: sizes[t.dims[-1].name] for t in targets if t.onehot}
    for split in (False, True):
        ring = Functions(size, onehot, split=split, end=end)
        try:
            if _equal(identity, sizes, assumes, ring):
                return "proved"
        except UndefinedError:
            return "no instance"
        if ring.kinked:
            return "undecided"
    if not targets:
        return "different"
    many = prod(prod(len(p) for p in _places(t, sizes)) for t in targets)
    if many > MAX_CLASSES:
        return "undecided"
    defined = False
    for chosen in product(*(list(_choices(t, sizes)) for t in targets)):
        choice = {t.name: row for t, row in zip(targets, chosen, strict=True)}
        try:
            equal = _equal(identity, sizes, assumes, Functions(size, onehot, choice, True, end))
        except UndefinedError:
            continue  # a mask that hides every source of a row: neither side has a value
        defined = True
        if not equal:
            return "different"
    return "proved" if defined else "undecided"


def _places(tensor: Tensor, sizes: Mapping[str, int]) -> list[range]:
    """Return for each row of a one-hot tensor its classes, for each entry of a mask 0 and 1."""
    shape = [sizes[d.name] for d in tensor.dims]
    if tensor.binary:
        return [range(2)] * prod(shape)
    return [range(shape[-1])] * prod(shape[:-1])


def _choices(tensor: Tensor, sizes: Mapping[str, int]) -> Iterator[dict[tuple[int, ...], int]]:
    """Yield the class of each row of a one-hot tensor, or the entries of a mask, in every way."""
    dims = tensor.dims if tensor.binary else tensor.dims[:-1]
    places = list(product(*(range(sizes[d.name]) for d in dims)))
    for picked in product(*_places(tensor, sizes)):
        chosen = dict(zip(places, picked, strict=True))
        # a permutation uses every class once in each of its matrices
        used = {(*row[:-1], c) for row, c in chosen.items()}
        if not tensor.permutation or len(used) == len(places):
            yield chosen


def _equal(
    identity: Identity,
    sizes: Mapping[str, int],
    assumes: tuple[Identity, ...],
    ring: Functions,
) -> bool:
    """Tell whether the sides are equal rational functions at every instance."""
    worlds, missing, defined = Worlds(identity, sizes, ring, assumes), None, False
    for env in instances(identity, sizes):
        world = worlds.at(env)
        try:
            difference = world.value(identity.lhs, env) - world.value(identity.rhs, env)
        except UndefinedError as nothing:
            # a row without a source: an equation says nothing where a side has no value
            missing = nothing
            continue
        defined = True
        if not difference.is_zero:
            return False
    if missing is not None and not defined:
        raise missing
    return True


def upstream(identity: Identity) -> frozenset[str]:
    """Return every tensor on which the statement's values depend."""
    system = identity.system
    waiting = [
        n for side in (identity.lhs, identity.rhs) for n in map(tensor_name, walk(side)) if n
    ]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            equation = system.by_name.get(name) or system.derived_by_name.get(name)
            nodes = walk(equation.rhs) if equation else ()
            waiting += [n for n in map(tensor_name, nodes) if n]
    return frozenset(seen)
