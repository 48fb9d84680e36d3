"""A `System` as a numpy program: vectorised over positions, looping only where it recurs.

Equations that read each other across positions form a group and loop; everything else, and inside a
group every term without a recurrent part, is computed over the whole position axis at once. The
derived adjoint equations run through the same compiler, backward in the positions.

Arrays of tensors whose leading axis is a position axis are stored with positions first, then the
batch axis, with rows of zeros around them wherever an equation reads beyond the positions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from derive.checks.build import Builder, Code
from derive.checks.runtime import numpy_helpers
from derive.checks.storage import Array, Storage, infer_sizes, size_of
from derive.equation import Equation, System
from derive.index import Tensor
from derive.nodes import tensor_name


@dataclass(frozen=True)
class Program:
    """Equations ready to run.

    Args:
        system: Where the tensors come from.
        equations: What is computed; all other tensors are given.
        variants: Compiled code by (batched, listed).
    """

    system: System
    equations: tuple[Equation, ...]
    variants: dict[tuple[bool, bool], Code] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def tensors(self) -> dict[str, Tensor]:
        """Every tensor by name."""
        return {**self.system.tensors, **{e.tensor.name: e.tensor for e in self.equations}}

    @cached_property
    def outputs(self) -> dict[str, Equation]:
        """The equation of each computed tensor."""
        return {e.tensor.name: e for e in self.equations}

    def code(self, batched: bool = False, listed: bool = False) -> Code:
        """Return the compiled lines of a variant."""
        key = batched, listed
        if key not in self.variants:
            self.variants[key] = Builder(self.tensors, self.equations, batched, listed).build()
        return self.variants[key]

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The names of the tensors that must be given."""
        names = {str(tensor_name(r)): None for e in self.equations for r in e.reads}
        return tuple(n for n in names if n not in self.outputs)

    @cached_property
    def initials(self) -> tuple[str, ...]:
        """The computed states with initial rows, given as ``X_init``."""
        return tuple(n for n, e in self.outputs.items() if e.tensor.first < 0
                     and e.tensor.role != "adjoint")  # fmt: skip

    def sizes(self, givens: Mapping[str, Array]) -> dict[str, int]:
        """Return the sizes that the givens have.

        Raises:
            DeriveError: If two axes of one size differ.
        """
        wanted = {*self.reads, *(f"{n}_init" for n in self.initials)}
        return infer_sizes(self.tensors, {n: a for n, a in givens.items() if n in wanted})

    def run(self, givens: Mapping[str, Array], injections: Mapping[str, Array] | None = None,
            *, sizes: Mapping[str, int] | None = None,
            stop: Callable[..., Any] | None = None) -> dict[str, Array]:  # fmt: skip
        """Compute every tensor.

        Args:
            givens: Arrays by tensor name, each with any leading batch shape; ``X_init`` holds the
                rows of a state X before position 0, shape (rows, ...) or, for one row, (...).
            injections: What is added to a computed tensor, by name, over its equation's positions.
            sizes: Sizes that the givens do not show.
            stop: What a detached value becomes (see `derive.checks.runtime`).

        Returns:
            The computed tensors, a state with its initial rows, batch axes leading.

        Raises:
            DeriveError: On a missing given or a wrong shape.
        """
        sizes = {**self.sizes(givens), **(sizes or {})}
        store = Storage(self, sizes, givens, injections or {})
        code = self.code(store.batched)
        arrays = store.load(code)
        numbers = [size_of(s, sizes) for s in code.sizes]
        with np.errstate(all="ignore"):  # a NaN goes on to the comparison, which refuses it
            code.run(numpy_helpers(store.dtype, stop), numbers, arrays)
        return store.results(code, arrays)


def compile_system(system: System, equations: Sequence[Equation] | None = None) -> Program:
    """Return the program of a system, or of other equations over its tensors.

    Args:
        system: The system; select a loss to have ``L`` computed.
        equations: By default the system's own; pass ``(*system.equations, *adjoints)`` for both.
    """
    return Program(system, tuple(system.equations if equations is None else equations))
