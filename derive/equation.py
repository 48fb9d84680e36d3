"""Equations and systems: single assignment, recurrences over positions, checked when built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import sympy as sp

from derive.errors import DeriveError, nearest
from derive.index import Dim, Expr, Tensor, affine, index_symbol
from derive.nodes import entry_indices, tensor_name, walk
from derive.scope import Scope


@dataclass(frozen=True)
class Equation:
    """``name[indices] = rhs``, for every value of the indices.

    Args:
        tensor: The tensor that it defines.
        indices: One fresh index symbol per axis.
        rhs: The SymPy expression in index notation.
        text: As written.
    """

    tensor: Tensor
    indices: tuple[sp.Symbol, ...]
    rhs: Expr
    text: str

    @property
    def lhs(self) -> Expr:
        """The entry on the left."""
        return self.tensor.at(*self.indices)

    @cached_property
    def reads(self) -> tuple[Expr, ...]:
        """Every tensor entry on the right, once each, in order."""
        found = (n for n in walk(self.rhs) if tensor_name(n) is not None)
        return tuple(dict.fromkeys(found))


def moment_indices(tensor: Tensor) -> tuple[sp.Symbol, ...]:
    """Return the index symbols at which the moments of a tensor's entries are written."""
    return tuple(index_symbol(f"entry{i}'") for i in range(len(tensor.dims)))


@dataclass(frozen=True)
class Moments:
    """What is known of a random tensor, whose entries are independent of all others.

    Args:
        mean: A number, or a given scalar or tensor of the same shape.
        variance: Likewise; None if it is not known (then no product of entries has a known mean).
        third: Third central moment.
        fourth: Fourth central moment.
    """

    mean: Expr
    variance: Expr | None = None
    third: Expr | None = None
    fourth: Expr | None = None

    def central(self, order: int) -> Expr | None:
        """Return a central moment, None if it is not known."""
        return (None, None, self.variance, self.third, self.fourth)[order] if order < 5 else None


@dataclass(frozen=True)
class System:
    """A model in index notation.

    Args:
        name: Its identifier.
        dims: Sizes by name.
        tensors: All tensors by name, inputs and states.
        equations: In order; each tensor has at most one.
        losses: Scalar expressions by name, as equations for the scalar ``L``.
        derived: Quantities defined from adjoints (such as the contribution of one use).
        initial: ``zeros`` or ``given`` by state; a state that reads t-1 has one.
        random: What is known of the tensors whose entries are random and independent. A moment is a
            number, or names a given scalar or a given tensor of the same shape.
        convention: ``row`` or ``column``.
        loss: The selected loss, whose ``L`` the equations hold; "" if none.
        held: Tensors whose reads an assumption holds constant (`derive.holding`).
    """

    name: str
    dims: Mapping[str, Dim]
    tensors: Mapping[str, Tensor]
    equations: tuple[Equation, ...]
    losses: Mapping[str, Equation] = field(default_factory=dict)
    derived: tuple[Equation, ...] = ()
    initial: Mapping[str, str] = field(default_factory=dict)
    convention: str = "row"
    loss: str = ""
    random: Mapping[str, Moments] = field(default_factory=dict)
    held: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check single assignment and causality."""
        seen: set[str] = set()
        for equation in self.equations:
            name = equation.tensor.name
            if name in seen:
                raise DeriveError(f"{self.name}: {name} has two equations; each tensor has one")
            seen.add(name)
            self.check_reads(equation, seen)

    def check_reads(self, equation: Equation, done: set[str]) -> None:
        """Refuse a read of something that is not computed yet (the causality hypothesis).

        The adjoint theorem needs it: a state is read at the same position only after its equation,
        and at an earlier position anywhere.
        """
        defined = {e.tensor.name for e in self.equations}
        for read in equation.reads:
            name = str(tensor_name(read))
            lag = self.lag(equation, read)
            late = name in defined and (name not in done or name == equation.tensor.name)
            if late and (lag is None or lag < 1):
                raise DeriveError(
                    f"{self.name}: {equation.text!r} reads {read} before it is computed",
                    hint="order the equations, or read an earlier position such as t-1",
                )

    def lag(self, equation: Equation, read: Expr) -> int | None:
        """Return how many positions back a read reaches, None if it does not follow the index."""
        tensor, indices = self.tensors[str(tensor_name(read))], entry_indices(read)
        if not (tensor.dims and tensor.dims[0].ordered and equation.indices):
            return None
        place = affine(indices[0])
        return -place.offset if place.base == equation.indices[0] else None

    @cached_property
    def scope(self) -> Scope:
        """The names that statements about this system may use."""
        return Scope(self.dims, self.tensors, self.convention)

    @cached_property
    def variances(self) -> frozenset[str]:
        """The given tensors that are even central moments: never negative."""
        named = (m for r in self.random.values() for m in (r.variance, r.fourth) if m is not None)
        names = (tensor_name(n) for m in named for n in walk(m))
        return frozenset(n for n in names if n is not None)

    @cached_property
    def fourths(self) -> frozenset[str]:
        """The given tensors that are fourth central moments."""
        named = (n for r in self.random.values() if r.fourth is not None for n in walk(r.fourth))
        return frozenset(name for n in named if (name := tensor_name(n)) is not None)

    @cached_property
    def by_name(self) -> dict[str, Equation]:
        """The equation of each state."""
        return {e.tensor.name: e for e in self.equations}

    @cached_property
    def derived_by_name(self) -> dict[str, Equation]:
        """The defining equation of each quantity that is defined from adjoints."""
        return {e.tensor.name: e for e in self.derived}

    @cached_property
    def parameters(self) -> tuple[Tensor, ...]:
        """The trainable tensors."""
        return tuple(t for t in self.tensors.values() if t.role == "parameter")

    @cached_property
    def givens(self) -> tuple[Tensor, ...]:
        """The tensors without an equation: inputs, parameters and targets."""
        known = {*self.by_name, *self.derived_by_name, "L"}
        return tuple(t for n, t in self.tensors.items() if n not in known)

    @lru_cache(maxsize=32)  # noqa: B019 - systems are few and live as long as the process
    def with_loss(self, loss: str) -> System:
        """Return this system with ``L`` defined as one of its losses.

        Raises:
            DeriveError: On an unknown loss.
        """
        if loss not in self.losses:
            raise DeriveError(f"{self.name} has no loss {loss!r}", hint=nearest(loss, self.losses))
        return replace(self, equations=(*self.equations, self.losses[loss]), loss=loss)

    def __hash__(self) -> int:
        """Hash by identity of content that is cheap to compare."""
        return hash((self.name, self.loss, self.held, len(self.equations)))
