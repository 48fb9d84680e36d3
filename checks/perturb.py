"""One batched run of the forward program in which every scalar is perturbed in its own row.

Finite differences and complex step both read derivatives off such a run; they share the givens with
our derived equations, and the forward program, but no derivative rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from derive.checks.sides import tensor_of
from derive.checks.storage import Array
from derive.checks.table import Table, UnavailableError, forward_values, own, program
from derive.equation import System

LIMIT = 2000
"""Most scalars that are perturbed one by one; beyond it, random directions."""


Step = Callable[["Part", Array, slice], Array]
Batch = tuple[dict[str, Array], dict[str, Array]]


@dataclass(frozen=True)
class Part:
    """A block of scalars that are perturbed: a given, or what is added to a computed tensor.

    Args:
        name: The tensor.
        key: The given (``X`` or ``X_init``), "" for a computed tensor.
        shape: The block's shape.
        base: The values that steps are relative to.
    """

    name: str
    key: str
    shape: tuple[int, ...]
    base: Array

    @property
    def count(self) -> int:
        """How many scalars it has."""
        return int(np.prod(self.shape))


class Perturbed(Table):
    """A table whose derivatives come from perturbed runs of the forward program."""

    @cached_property
    def values(self) -> Mapping[str, Array]:
        """The computed tensors."""
        return forward_values(self.system, self.givens, self.sizes)

    def parts_of(self, name: str) -> list[Part]:
        """Return the blocks that make up a tensor, its initial rows first."""
        tensor, parts = tensor_of(self.system, name), list[Part]()
        if name in self.values:
            value = self.values[name]
            if tensor.first:
                key = f"{name}_init"
                start = value[: -tensor.first]
                parts.append(Part(name, key, start.shape, start))
            parts.append(Part(name, "", value[-tensor.first :].shape, value[-tensor.first :])
                         if tensor.first else Part(name, "", value.shape, value))  # fmt: skip
        else:
            value = np.asarray(self.givens[name])
            parts.append(Part(name, name, value.shape, value))
        return parts

    @cached_property
    def everything(self) -> list[str]:
        """The tensors that a derivative can be by."""
        run = program(self.system, self.givens)
        return [*run.reads, *(n for n in run.outputs if n != "L")]

    def group(self, wrt: str) -> list[str]:
        """Return what is perturbed in one run with a tensor: the parameters together."""
        roles = {n: self.system.tensors[n].role for n in self.everything}
        alike = [n for n in self.everything if roles[n] == roles[wrt] == "parameter"] or [wrt]
        return alike if self.scalars(alike) <= LIMIT else [wrt]

    def scalars(self, names: list[str]) -> int:
        """Return how many scalars some tensors hold."""
        return sum(p.count for n in names for p in self.parts_of(n))

    def perturbed(self, wrt: str) -> Mapping[str, Array]:
        """Return the derivative of every computed tensor by one tensor.

        Shapes: perturbed scalars first, then the tensor's axes.
        """
        if ("run", wrt) not in self.known:
            names = self.group(wrt)
            if self.scalars(names) > LIMIT:
                raise UnavailableError(f"{wrt} has more than {LIMIT} scalars")
            slopes = self.slopes([p for n in names for p in self.parts_of(n)])
            at = 0
            for name in names:
                until = at + self.scalars([name])
                self.known["run", name] = {k: v[at:until] for k, v in slopes.items()}  # type: ignore[assignment]
                at = until
        return self.known["run", wrt]  # type: ignore[return-value]

    def slopes(self, parts: list[Part]) -> dict[str, Array]:
        """Return the derivative of every computed tensor by each scalar of the parts, in order."""
        raise NotImplementedError

    def total(self, of: str, wrt: str) -> Array:
        """Return derivatives read off the perturbed runs."""
        if of not in self.values:
            return own(self.shape(of), self.shape(wrt), of == wrt)
        if wrt not in self.everything:
            if wrt == of:
                return np.ones(())
            raise UnavailableError(f"nothing reads {wrt}")
        slope = self.perturbed(wrt)[of]
        turned = np.moveaxis(slope.reshape(self.shape(wrt) + slope.shape[1:]),
                             range(len(self.shape(wrt))), range(slope.ndim - 1, slope.ndim - 1
                             + len(self.shape(wrt))))  # fmt: skip
        return turned

    def partial(self, of: str, wrt: str) -> Array:
        """Return the derivatives of one equation, everything that it reads given."""
        if of not in self.values:
            return np.zeros(self.shape(of) + self.shape(wrt))
        alone = self.alone(of)
        if wrt in alone.everything:
            return self.rows(of, alone.total(of + ALONE, wrt), wrt, local=True)
        return np.zeros(self.shape(of) + self.shape(wrt))

    def alone(self, of: str) -> Perturbed:
        """Return the table of a system with one equation, under a new name."""
        key = ("alone", of)
        if key not in self.known:
            system = single(self.system, of)
            givens = {**self.givens, **self.values}
            self.known[key] = type(self)(system, givens, self.sizes)  # type: ignore[assignment]
        return self.known[key]  # type: ignore[return-value]

    def laid(self, parts: list[Part], rows: int, step: Step) -> Batch:
        """Return batched givens and additions with one scalar changed in each row.

        Args:
            parts: What is changed.
            rows: Batch size.
            step: Writes the changed values of a part into (rows, count) base values.
        """
        givens, added = dict[str, Array](self.givens), dict[str, Array]()
        at = 0
        for part in parts:
            start = part.base if part.key else np.zeros(part.shape, part.base.dtype)
            block = np.repeat(start.reshape(1, -1), rows, 0)
            block = step(part, block, slice(at, at + part.count)).reshape(rows, *part.shape)
            if part.key:
                givens[part.key] = block
            else:
                added[part.name] = block
            at += part.count
        return givens, added


ALONE = "_alone"
_single: dict[tuple[int, str], tuple[System, System]] = {}


def single(system: System, of: str) -> System:
    """Return the system of one equation that defines a tensor under a new name.

    What the equation reads, its own tensor included, is given.
    """
    found = _single.get((id(system), of))
    if found is None or found[0] is not system:
        equation = system.by_name[of]
        tensor = replace(equation.tensor, name=of + ALONE, first=0)
        made = replace(
            system,
            name=f"{system.name}|{of}",
            tensors={**system.tensors, tensor.name: tensor},
            equations=(replace(equation, tensor=tensor),),
            initial={},
            losses={},
            derived=(),
            loss="",
        )
        found = system, made
        _single[id(system), of] = found
    return found[1]
