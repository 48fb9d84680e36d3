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

from derive.errors import DeriveError
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
    targets = [t for t in identity.system.tensors.values() if t.onehot and t.name in seen]
    onehot = {t.name: sizes[t.dims[-1].name] for t in targets}
    rows = {t.name: [sizes[d.name] for d in t.dims[:-1]] for t in targets}
    for split in (False, True):
        ring = Functions(size, onehot, split=split, end=end)
        if _equal(identity, sizes, assumes, ring):
            return "proved"
        if ring.kinked:
            return "undecided"
    if not targets:
        return "different"
    many = prod(onehot[t.name] ** prod(rows[t.name]) for t in targets)
    if many > MAX_CLASSES:
        return "undecided"
    each = [list(_choices(t, onehot[t.name], rows[t.name])) for t in targets]
    for chosen in product(*each):
        choice = {t.name: row for t, row in zip(targets, chosen, strict=True)}
        if not _equal(identity, sizes, assumes, Functions(size, onehot, choice, True, end)):
            return "different"
    return "proved"


def _choices(tensor: Tensor, classes: int, rows: list[int]) -> Iterator[dict[tuple[int, ...], int]]:
    """Yield the class of each row of a one-hot tensor, in every way that it allows."""
    places = list(product(*map(range, rows)))
    for picked in product(range(classes), repeat=len(places)):
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
    worlds = Worlds(identity, sizes, ring, assumes)
    for env in instances(identity, sizes):
        world = worlds.at(env)
        difference = world.value(identity.lhs, env) - world.value(identity.rhs, env)
        if not difference.is_zero:
            return False
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
