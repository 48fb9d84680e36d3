"""The assumption ``f, i held``: reads of named intermediates count as constant under derivatives.

It is no equation: it asks about another system, in which every read of such a tensor is detached.
Values stay, paths through the named tensors go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from derive.equation import Equation, System
from derive.errors import DeriveError, nearest
from derive.nodes import Detach, rebuild, tensor_name
from derive.statement import Identity, read_statement

HELD = re.compile(r"\s*(?P<names>\S.*?)\s+held\s*\Z", re.DOTALL)


@dataclass(frozen=True)
class Premises:
    """What a claim stands on.

    Args:
        system: Its system, with what is held detached.
        equations: The assumptions that are equations, as written.
        assumed: The same, read.
    """

    system: System
    equations: tuple[str, ...] = ()
    assumed: tuple[Identity, ...] = ()


@lru_cache(maxsize=1024)
def premises(system: System, assumes: tuple[str, ...]) -> Premises:
    """Return what a claim stands on, from its assumptions.

    Raises:
        DeriveError: If one cannot be read, or holds what no equation computes.
    """
    names = tuple(n for text in assumes for n in held_names(text))
    there = held(system, names)
    equations = tuple(text for text in assumes if not HELD.match(text))
    return Premises(there, equations, tuple(read_statement(there, text) for text in equations))


def held_names(text: str) -> tuple[str, ...]:
    """Return the names that an assumption such as ``f, i held`` holds; () for an equation."""
    found = HELD.match(text)
    return tuple(n.strip() for n in found["names"].split(",")) if found else ()


def held(system: System, names: Iterable[str]) -> System:
    """Return a system in which every read of the named intermediates is constant.

    Args:
        system: The system, with its loss selected if it has one.
        names: Tensors with an equation.

    Raises:
        DeriveError: On a name that is unknown, or given rather than computed.
    """
    chosen = frozenset(names)
    if not chosen:
        return system
    check_names(system, sorted(chosen))
    return _held(system, chosen | set(system.held))


def check_names(system: System, names: Iterable[str]) -> None:
    """Refuse to hold what is not an intermediate of the system."""
    known = [e.tensor.name for e in system.equations if e.tensor.name != "L"]
    for name in names:
        if name in known:
            continue
        what = f"{system.name} has no intermediate {name!r}"
        if name in system.tensors and name != "L":
            what = f"{name} of {system.name} has no equation of its own"
        raise DeriveError(f"cannot hold {name}: {what}", hint=nearest(name, known))


@lru_cache(maxsize=256)
def _held(system: System, names: frozenset[str]) -> System:
    """Detach the reads, in every equation and loss; what is defined from adjoints has none."""
    return replace(
        system,
        equations=tuple(detached(e, names) for e in system.equations),
        losses={n: detached(e, names) for n, e in system.losses.items()},
        held=tuple(sorted(names)),
    )


def detached(equation: Equation, names: frozenset[str]) -> Equation:
    """Return an equation with its reads of some tensors detached."""
    reads = {r: Detach(r) for r in equation.reads if tensor_name(r) in names}
    return replace(equation, rhs=rebuild(equation.rhs, reads)) if reads else equation
