"""Tables: the numbers that a statement's sides read, from us or from an oracle.

A table holds every tensor of a system at one point, and derivative arrays ``total(X, Y)`` and
``partial(X, Y)`` with the axes of X, then of Y. `Ours` runs the derived equations; the oracles'
tables are in `derive.checks.autograd`, `.modules`, `.finite_difference` and `.complex_step`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import sympy as sp

from derive.calculus import adjoint_equations, partial_derivative
from derive.checks.evaluate import Program, compile_system
from derive.checks.sides import measured, side_values, tensor_of
from derive.checks.storage import Array
from derive.equation import Equation, System
from derive.errors import DeriveError
from derive.index import Tensor, index_symbol
from derive.nodes import tensor_name
from derive.support import _upstream

Givens = Mapping[str, Array]


class UnavailableError(Exception):
    """An oracle does not offer a derivative; it then says nothing about the statement."""


class Table:
    """The values of a system at one point.

    Args:
        system: With its loss selected if ``L`` is read.
        givens: As for `Program.run`.
        sizes: By name.
    """

    name = "table"
    independent = True

    def __init__(self, system: System, givens: Givens, sizes: Mapping[str, int]):
        self.system, self.givens, self.sizes = system, givens, dict(sizes)
        self.known: dict[tuple[str, ...], Array] = {}

    def read(self, key: tuple[str, ...]) -> Array:
        """Return ``(tensor, X)``, ``(Total, X, Y)`` or ``(Partial, X, Y)``, computed once."""
        if key not in self.known:
            kind, name, *wrt = key
            if kind == "tensor":
                self.known[key] = self.tensor(name)
            else:
                make = self.total if kind == "Total" else self.partial
                self.known[key] = make(name, wrt[0])
        return self.known[key]

    def tensor(self, name: str) -> Array:
        """Return a tensor, its rows from the lowest position on.

        Raises:
            DeriveError: On an unknown name or a missing given.
        """
        derived = self.system.derived_by_name.get(name)
        if derived is not None:
            free = tuple(zip(derived.indices, derived.tensor.dims, strict=True))
            return side_values(derived.rhs, free, self, self.sizes)
        if name in self.values:
            return self.values[name]
        if name not in self.givens:
            raise DeriveError(f"no value is given for {name}")
        return np.asarray(self.givens[name])

    @property
    def values(self) -> Mapping[str, Array]:
        """The computed tensors."""
        raise NotImplementedError

    def total(self, of: str, wrt: str) -> Array:
        """Return every total derivative of one tensor by another, by all paths.

        Raises:
            UnavailableError: If this table does not offer it.
        """
        raise UnavailableError(f"{self.name}: d{of}/d{wrt}")

    def partial(self, of: str, wrt: str) -> Array:
        """Return every local derivative of one tensor's equation by another tensor.

        Raises:
            UnavailableError: If this table does not offer it.
        """
        raise UnavailableError(f"{self.name}: partial {of}/partial {wrt}")

    def scale(self, of: str) -> float:
        """Return the size of the numbers whose differences make a derivative; 0 if none do."""
        return 0.0

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor with its initial rows."""
        tensor = tensor_of(self.system, name)
        lengths = [self.sizes[d.name] for d in tensor.dims]
        if tensor.first:
            lengths[0] -= tensor.first
        return tuple(lengths)

    def rows(self, of: str, core: Array, wrt: str, local: bool = False) -> Array:
        """Add the initial rows of ``of`` to a derivative of its computed rows.

        An initial row depends on itself alone; it has no equation, hence no local derivative.
        """
        tensor = tensor_of(self.system, of)
        if not tensor.first:
            return core
        out = np.zeros(self.shape(of) + self.shape(wrt), core.dtype)
        out[-tensor.first :] = core
        if of == wrt and not local:
            flat = out.reshape(int(np.prod(self.shape(of))), -1)
            count = -tensor.first * int(np.prod(self.shape(of)[1:]))
            flat[range(count), range(count)] = 1
        return out


class Ours(Table):
    """Our derived equations, run by our compiler."""

    name = "derived equations"

    @cached_property
    def values(self) -> Mapping[str, Array]:
        """The tensors, and the adjoints ``g_X`` if a loss is selected."""
        return forward_values(self.system, self.givens, self.sizes)

    def total(self, of: str, wrt: str) -> Array:
        """Return derivatives from the adjoint equations."""
        if of == "L" and self.system.loss:
            found = self.values.get(f"g_{wrt}")
            if found is None and wrt == "L":
                return np.ones(())
            return np.zeros(self.shape(wrt)) if found is None else found
        if of not in self.system.by_name:
            return own(self.shape(of), self.shape(wrt), of == wrt)
        found = self.seeded(of).get(f"g_{wrt}")
        shape = self.core(of) + self.shape(wrt)
        core = np.zeros(shape) if found is None else found.reshape(shape)
        return self.rows(of, core, wrt)

    def passed(self, wrt: str) -> float:
        """Return the size of a gradient, times what cancels most on its way from the loss.

        What reaches a tensor may be what is left of larger terms, and is rounded as they are: in
        softmax and in normalisation a gradient loses its mean.
        """
        own, left = self.summed.get(wrt, (0.0, 0.0))
        upstream = _upstream(self.system)
        above = (self.summed[n] for n in self.summed if n in upstream and wrt in upstream[n])
        return max(own, left * max((s / k for s, k in above if k), default=1.0))

    @cached_property
    def summed(self) -> Mapping[str, tuple[float, float]]:
        """The largest term of each tensor's adjoint equation, and what the terms leave."""
        equations = adjoint_equations(self.system)
        tensors = {**self.system.tensors, **{e.tensor.name: e.tensor for e in equations}}
        table = Ours(replace(self.system, tensors=tensors), self.givens, self.sizes)
        table.__dict__["values"] = self.values
        out = {}
        for equation in equations:
            left = float(np.abs(self.values[equation.tensor.name]).max())
            free = tuple(zip(equation.indices, equation.tensor.dims, strict=True))
            with np.errstate(all="ignore"):  # past the last position some divide by zero
                terms = measured(equation.rhs, free, table, self.sizes)[1]
            terms = terms if np.isfinite(terms) else left
            out[equation.tensor.name[2:]] = max(terms, left), left
        return out

    def core(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor without its initial rows."""
        return tuple(self.sizes[d.name] for d in tensor_of(self.system, name).dims)

    def seeded(self, of: str) -> Mapping[str, Array]:
        """Return the adjoints of every entry of a tensor: one row of the batch for each."""
        if ("seed", of) not in self.known:
            shape = self.core(of)
            count = int(np.prod(shape))
            if count * sum(np.size(v) for v in self.values.values()) > LIMIT:
                raise UnavailableError(f"{of} has {count} entries")
            dtype = np.result_type(*(np.asarray(g) for g in self.givens.values()))
            seeds = np.eye(count, dtype=dtype).reshape(count, *shape)
            givens = {**self.givens, SEED: seeds}
            run = program(seeded_system(self.system, of), givens, True)
            self.known["seed", of] = run.run(givens, sizes=self.sizes)  # type: ignore[assignment]
        return self.known["seed", of]  # type: ignore[return-value]

    def partial(self, of: str, wrt: str) -> Array:
        """Return local derivatives from the table of rules."""
        equation = self.system.by_name.get(of)
        if equation is None:
            return np.zeros(self.shape(of) + self.shape(wrt))
        target = tensor_of(self.system, wrt)
        here = tuple((index_symbol(f"i'o{n}"), d) for n, d in enumerate(equation.tensor.dims))
        there = tuple((index_symbol(f"i'w{n}"), d) for n, d in enumerate(target.dims))
        parts = []
        for row in (*range(target.first, 0), None):
            free = there if row is None else there[1:]
            index = [s for s, _ in free] if row is None else [row, *(s for s, _ in free)]
            expr = partial_derivative(
                equation, tuple(s for s, _ in here), target.at(*index), self.system
            )
            value = side_values(expr, (*here, *free), self, self.sizes)
            parts.append(value if row is None else np.expand_dims(value, len(here)))
        core = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=len(here))
        return self.rows(of, core, wrt, local=True)


SEED = "seed"
LIMIT = 300_000
"""Most scalars in a batched run of adjoint equations."""


def own(of: tuple[int, ...], wrt: tuple[int, ...], same: bool) -> Array:
    """Return the derivative of a given tensor: the identity by itself, zero by others."""
    if same:
        return np.eye(int(np.prod(of))).reshape(of + wrt)
    return np.zeros(of + wrt)


Names = frozenset[str]
_programs: dict[tuple[int, bool, Names], tuple[System, Program]] = {}


def program(system: System, givens: Givens, adjoint: bool = False) -> Program:
    """Return the compiled equations that can be computed from these givens, once per system.

    Args:
        system: With its loss selected if the adjoints are wanted.
        givens: What is known; an equation that needs more is left out.
        adjoint: Whether the derived adjoint equations follow.
    """
    names = frozenset(givens)
    key = id(system), adjoint, names
    found = _programs.get(key)
    if found is None or found[0] is not system:
        every = system.equations
        if adjoint and system.loss:
            every = (*every, *adjoint_equations(system))
        found = system, compile_system(system, computable(system, every, names))
        _programs[key] = found
    return found[1]


_values: dict[tuple[int, int], tuple[System, Givens, dict[str, Array]]] = {}


def forward_values(system: System, givens: Givens, sizes: Mapping[str, int]) -> dict[str, Array]:
    """Return every computed tensor and adjoint at a point, once per point.

    The perturbed oracles read forward values here, to perturb them; never an adjoint.
    """
    found = _values.get((id(system), id(givens)))
    if found is None or found[0] is not system or found[1] is not givens:
        run = program(system, givens, True)
        found = system, givens, run.run(givens, sizes=sizes)
        if len(_values) > 512:
            _values.clear()
        _values[id(system), id(givens)] = found
    return found[2]


def computable(system: System, equations: Sequence[Equation], given: Names) -> tuple[Equation, ...]:
    """Return the equations whose inputs are given or computed."""
    kept = {e.tensor.name: e for e in equations}
    shrunk = True
    while shrunk:
        missing = [
            n
            for n, e in kept.items()
            if not all(r in kept or r in given for r in map(str, map(tensor_name, e.reads)))
            or (system.initial.get(n) == "given" and f"{n}_init" not in given)
        ]
        for name in missing:
            del kept[name]
        shrunk = bool(missing)
    return tuple(kept.values())


_seeded: dict[tuple[int, str], tuple[System, System]] = {}


def seeded_system(system: System, of: str) -> System:
    """Return the system whose loss is a weighted sum of a tensor's entries.

    Its adjoints at one-hot weights are the total derivatives of each entry.
    """
    found = _seeded.get((id(system), of))
    if found is None or found[0] is not system:
        equation = system.by_name[of]
        seed = Tensor(SEED, equation.tensor.dims)
        symbols = tuple(index_symbol(f"i's{n}") for n in range(len(seed.dims)))
        body = seed.at(*symbols) * equation.tensor.at(*symbols)
        for symbol, dim in reversed(list(zip(symbols, seed.dims, strict=True))):
            body = sp.Sum(body, (symbol, 0, dim.symbol - 1))
        loss = Equation(Tensor("L", (), role="loss"), (), body, "")
        kept = tuple(e for e in system.equations if e.tensor.name != "L")
        if of == "L":
            kept = system.equations
        made = replace(
            system,
            name=f"{system.name}/{of}",
            tensors={**system.tensors, SEED: seed, "L": loss.tensor},
            equations=(*kept, loss),
            loss=SEED,
        )
        found = system, made
        _seeded[id(system), of] = found
    return found[1]
