"""Arrays of a program run: givens in, padded and with positions first; results out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from derive.checks.build import Code
from derive.checks.layout import Slot
from derive.errors import DeriveError, nearest
from derive.index import Tensor

if TYPE_CHECKING:
    from derive.checks.evaluate import Program

Array = np.ndarray[Any, np.dtype[Any]]


def missing(name: str, givens: Mapping[str, Array]) -> DeriveError:
    """Return the error for a tensor without a value."""
    return DeriveError(f"no value is given for {name}", hint=nearest(name, givens))


def size_of(name: str, sizes: Mapping[str, int]) -> int:
    """Return the number of a size.

    Raises:
        DeriveError: If it is unknown.
    """
    if name not in sizes:
        raise DeriveError(f"no given shows the size {name}", hint="pass it with --size")
    return sizes[name]


def infer_sizes(tensors: Mapping[str, Tensor], givens: Mapping[str, Array]) -> dict[str, int]:
    """Return the sizes that arrays show; leading batch axes are passed over.

    Args:
        tensors: By name.
        givens: Arrays of tensors, or of the initial rows of one (``X_init``).

    Raises:
        DeriveError: On an unknown name, too few axes, or axes of one size that differ.
    """
    known = dict[str, int]()
    for name, given in givens.items():
        tensor = tensors.get(name) or tensors.get(name.removesuffix("_init"))
        if tensor is None:
            raise DeriveError(f"unknown tensor {name!r}", hint=nearest(name, tensors))
        # rows before position 0 do not show the size of the position axis
        dims = tensor.dims[1:] if name not in tensors or tensor.first else tensor.dims
        shape = np.shape(given)
        if len(shape) < len(dims):
            raise DeriveError(f"{name} has shape {tensor.shape}; found {shape}")
        for dim, length in zip(dims[::-1], shape[::-1], strict=False):
            if known.setdefault(dim.name, length) != length:
                raise DeriveError(
                    f"{name}: {dim.name} is {length} here and {known[dim.name]} elsewhere"
                )
    return known


class Storage:
    """The arrays of one run.

    Args:
        program: What runs.
        sizes: By name.
        givens: As for `Program.run`.
        injections: As for `Program.run`.
    """

    def __init__(self, program: Program, sizes: Mapping[str, int], givens: Mapping[str, Array],
                 injections: Mapping[str, Array]):  # fmt: skip
        self.program, self.sizes = program, sizes
        self.given = {n: self.asked(n, givens) for n in program.reads}
        self.initial = {n: self.first_rows(n, givens) for n in program.initials}
        self.added = {n: np.asarray(injections[n]) for n in injections if n in program.outputs}
        shapes = [a.shape[: a.ndim - len(self.dims(n))] for n, a in self.named()]
        self.shape = np.broadcast_shapes(*shapes)
        self.batched = bool(self.shape) or bool(self.added)
        self.count = int(np.prod(self.shape))
        self.dtype = np.result_type(np.float32, *(a for _, a in self.named()))

    def named(self) -> list[tuple[str, Array]]:
        """Return every array that comes from outside."""
        return [*self.given.items(), *self.initial.items(), *self.added.items()]

    def dims(self, name: str) -> tuple[Any, ...]:
        """Return a tensor's dims."""
        return self.program.tensors[name].dims

    def lengths(self, tensor: Tensor) -> tuple[int, ...]:
        """Return the shape of a tensor without its initial rows."""
        return tuple(size_of(d.name, self.sizes) for d in tensor.dims)

    def asked(self, name: str, givens: Mapping[str, Array]) -> Array:
        """Return a given, its shape checked."""
        if name not in givens:
            raise missing(name, givens)
        array, tensor = np.asarray(givens[name]), self.program.tensors[name]
        want = self.lengths(tensor)
        if tensor.first:  # a state given as a whole has its initial rows too
            want = (want[0] - tensor.first, *want[1:])
        if array.shape[array.ndim - len(want) :] != want or array.ndim < len(want):
            raise DeriveError(f"{name} has shape {tensor.shape} = {want}; found {array.shape}")
        return array

    def first_rows(self, name: str, givens: Mapping[str, Array]) -> Array:
        """Return the initial rows of a state, shape (..., rows, rest)."""
        tensor = self.program.tensors[name]
        want = (-tensor.first, *self.lengths(tensor)[1:])
        given = givens.get(name + "_init")
        if given is None:
            if self.program.system.initial.get(name) == "zeros":
                return np.zeros(want, np.float32)
            raise missing(name + "_init", givens)
        array = np.asarray(given)
        if array.ndim == len(want) - 1 and tensor.first == -1:
            array = array[None]
        if array.ndim < len(want) or array.shape[array.ndim - len(want) :] != want:
            raise DeriveError(f"{name}_init has shape {want}; found {array.shape}")
        return array

    def inward(self, array: Array, slot: Slot) -> Array:
        """Flatten the batch shape to one axis and move it to its place."""
        if not self.batched:
            return array
        rest = array.shape[array.ndim - len(slot.dims) :]
        own = array.shape[: array.ndim - len(slot.dims)]
        if int(np.prod(own)) != 1:
            array = np.broadcast_to(array, (*self.shape, *rest))
            array = array.reshape(self.count, *rest)
        else:
            array = array.reshape(1, *rest)
        return array.swapaxes(0, 1) if slot.batch == 1 else array

    def empty(self, slot: Slot, tensor: Tensor) -> Array:
        """Return room for a tensor with its initial rows and padding.

        An adjoint is zero outside its positions. What else is read there stands beside one, and
        must be a number that may be divided by: one.
        """
        shape = [
            n - first + low + high
            for n, first, low, high in zip(
                self.lengths(tensor), slot.firsts, slot.low, slot.high, strict=True
            )
        ]
        if slot.batch is not None:
            shape.insert(slot.batch, self.count)
        plain = tensor.role != "adjoint" and (any(slot.low) or any(slot.high))
        return np.ones(shape, self.dtype) if plain else np.zeros(shape, self.dtype)

    def load(self, code: Code) -> list[Array]:
        """Return one array a slot: givens, perturbations, and room for what is computed."""
        return [self.one(key, slot) for key, slot in code.slots.items()]

    def one(self, key: object, slot: Slot) -> Array:
        """Return the array of a slot."""
        if isinstance(key, tuple):
            added = self.added.get(key[1])
            if added is not None:
                return self.inward(added, slot)
            shape = list(self.lengths(self.program.tensors[key[1]]))
            if slot.batch is not None:
                shape.insert(slot.batch, 1)
            return np.broadcast_to(np.zeros((), self.dtype.char.lower()), shape)
        name = str(key)
        tensor = self.program.tensors[name]
        if name in self.given:
            array = self.inward(self.given[name], slot)
            if not any(slot.low) and not any(slot.high):
                return array
            out = self.empty(slot, tensor)
            out[self.inner(slot, tensor)] = array
            return out
        out = self.empty(slot, tensor)
        if name in self.initial:
            rows = slice(slot.low[0], slot.low[0] - tensor.first)
            out[(rows, *self.inner(slot, tensor)[1:])] = self.inward(self.initial[name], slot)
        return out

    def inner(self, slot: Slot, tensor: Tensor) -> tuple[slice, ...]:
        """Return the part of a padded array that holds the tensor."""
        parts = [
            slice(low, low + n - first)
            for n, first, low in zip(self.lengths(tensor), slot.firsts, slot.low, strict=True)
        ]
        if slot.batch is not None:
            parts.insert(slot.batch, slice(None))
        return tuple(parts)

    def results(self, code: Code, arrays: list[Array]) -> dict[str, Array]:
        """Return the computed tensors without padding, batch axes leading."""
        out = {}
        for name, equation in self.program.outputs.items():
            slot = code.slots[name]
            array = arrays[slot.number][self.inner(slot, equation.tensor)]
            if slot.batch == 1:
                array = array.swapaxes(0, 1)
            out[name] = array.reshape(self.shape + array.shape[1:]) if self.batched else array
        return out
