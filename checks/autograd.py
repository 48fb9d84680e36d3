"""Derivatives by torch autograd, of a forward function that knows nothing of our derivations.

A forward function takes torch tensors with a leading axis of rows and passes every value that it
computes through ``keep``. One run with a row for each entry of X, and one backward pass, give all
derivatives of X. Systems without a hand-written forward (`derive.checks.modules`) are run by our
own lowering of their equations; such a table says that it is not independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from derive.checks.forwards import Forward, Keep
from derive.checks.runtime import torch_helpers
from derive.checks.sides import tensor_of
from derive.checks.storage import Array
from derive.checks.table import Givens, Table, UnavailableError, own, program
from derive.equation import System
from derive.index import Tensor

SMALL = 200
"""Most rows of a run whose graph is kept for the next question."""
LIMIT = 300_000
"""Most scalars in the rows of one run: entries of X times everything that they may depend on."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread: at these sizes waiting for others costs more than the work."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Kept:
    """The values that a forward function computes.

    Args:
        cut: Whether each value is replaced by a leaf, so that derivatives are local.
    """

    def __init__(self, cut: bool = False):
        self.cut = cut
        self.made: dict[str, list[Any]] = {}
        self.leaf: dict[str, list[Any]] = {}

    def __call__(self, name: str, value: Any) -> Any:
        """Record the next position of a tensor and return what is read from then on."""
        if any(value is other for other in chain.from_iterable(self.leaf.values())):
            value = value.clone()  # a tensor that only renames another is still one of its own
        seen = value
        if self.cut:
            seen = value.detach().requires_grad_()
        elif not value.requires_grad:
            seen = value = value.requires_grad_()
        self.made.setdefault(name, []).append(value)
        self.leaf.setdefault(name, []).append(seen)
        return seen


class Autograd(Table):
    """A table from torch: the forward of one function, and autograd through it.

    Args:
        system: As for `Table`.
        givens: As for `Table`.
        sizes: As for `Table`.
        forward: The forward function; by default the registered one, else our own lowering.
    """

    def __init__(self, system: System, givens: Givens, sizes: Mapping[str, int],
                 forward: Forward | None = None):  # fmt: skip
        from derive.checks.modules import handwritten

        super().__init__(system, givens, sizes)
        self.runs: dict[tuple[int, bool], tuple[dict[str, Any], Kept]] = {}
        found = forward or handwritten(system)
        self.independent = found is not None
        self.forward = found or lowered(system, givens, self.sizes)
        self.name = "torch autograd" + ("" if found else " of our own lowering")

    def leaves(self, rows: int) -> dict[str, Any]:
        """Return the givens as leaves with a leading axis of equal rows."""
        import torch

        out = {}
        for name, value in self.givens.items():
            tensor = torch.from_numpy(np.array(value))
            if name.endswith("_init") and tensor.ndim < len(self.dims(name)):
                tensor = tensor[None]
            out[name] = tensor.expand(rows, *tensor.shape).clone().requires_grad_()
        return out

    def dims(self, name: str) -> tuple[Any, ...]:
        """Return the dims of a given, or of the state whose initial rows it holds."""
        return tensor_of(self.system, name.removesuffix("_init")).dims

    def run(self, rows: int, cut: bool = False) -> tuple[dict[str, Any], Kept]:
        """Run the forward function on equal rows; small runs are kept, graph and all."""
        if (rows, cut) in self.runs:
            return self.runs[rows, cut]
        leaves, kept = self.leaves(rows), Kept(cut)
        with one_thread():
            sizes = {f"#{name}": number for name, number in self.sizes.items()}
            self.forward({**leaves, **sizes}, kept, self.system.loss)
        if rows <= SMALL:
            self.runs[rows, cut] = leaves, kept
        return leaves, kept

    @cached_property
    def values(self) -> Mapping[str, Array]:
        """The computed tensors."""
        leaves, kept = self.run(1)
        return {n: self.whole(n, leaves, v) for n, v in kept.made.items()}

    def whole(self, name: str, leaves: Mapping[str, Any], made: list[Any]) -> Array:
        """Put a tensor together from its positions, its initial rows first."""
        tensor, parts = tensor_of(self.system, name), [v.detach().numpy()[0] for v in made]
        if not positional(tensor):
            return np.asarray(parts[0])
        rows = [p[None] for p in parts]
        if tensor.first:
            rows.insert(0, leaves[f"{name}_init"].detach().numpy()[0])
        return np.concatenate(rows)

    def gradients(self, of: str, cut: bool) -> dict[str, Array]:
        """Return the derivatives of every entry of a tensor, by everything.

        Shapes: the entries of ``of`` flat, then the axes of the other tensor.
        """
        key = ("gradients", of, str(cut))
        if key not in self.known:
            import torch

            shape = tuple(self.sizes[d.name] for d in tensor_of(self.system, of).dims)
            count = int(np.prod(shape))
            if count > 1 and count * sum(np.size(g) for g in self.givens.values()) > LIMIT:
                raise UnavailableError(f"{of} has {count} entries")
            leaves, kept = self.run(count, cut)
            made = kept.made[of]
            stacked = torch.stack(made, 1) if positional(tensor_of(self.system, of)) else made[0]
            picked = stacked.reshape(count, count).diagonal().sum()
            named = [(n, [t]) for n, t in leaves.items()] + list(kept.leaf.items())
            flat = [t for _, ts in named for t in ts]
            # a leaf that nothing reads has no gradient: zero
            with one_thread():
                found = torch.autograd.grad(
                    picked, flat, retain_graph=True, allow_unused=True, materialize_grads=True
                )
            grads = iter(found)
            by_name = {n: [next(grads) for _ in ts] for n, ts in named}
            out = {}
            for name, parts in by_name.items():
                out[name] = self.gathered(name, by_name, parts)
            self.known[key] = out  # type: ignore[assignment]
        return self.known[key]  # type: ignore[return-value]

    def gathered(self, name: str, by_name: Mapping[str, list[Any]], parts: list[Any]) -> Array:
        """Return one tensor's gradients with the batch axis first."""
        known = name in self.system.tensors
        if not known or name in self.givens or not positional(tensor_of(self.system, name)):
            out: Array = parts[0].numpy()
            return out
        rows = [p.numpy()[:, None] for p in parts]
        if tensor_of(self.system, name).first:
            rows.insert(0, by_name[f"{name}_init"][0].numpy())
        return np.concatenate(rows, axis=1)

    def total(self, of: str, wrt: str) -> Array:
        """Return derivatives by autograd."""
        return self.derivative(of, wrt, cut=False)

    def partial(self, of: str, wrt: str) -> Array:
        """Return derivatives by autograd with every value cut off from its inputs."""
        return self.derivative(of, wrt, cut=True)

    def derivative(self, of: str, wrt: str, cut: bool) -> Array:
        """Return derivatives of one tensor by another."""
        if of not in self.values:
            if of not in self.givens:
                raise UnavailableError(f"{self.name} does not compute {of}")
            return own(self.shape(of), self.shape(wrt), of == wrt and not cut)
        found = self.gradients(of, cut).get(wrt)
        if found is None:
            raise UnavailableError(f"{self.name} does not keep {wrt}")
        shape = tuple(self.sizes[d.name] for d in tensor_of(self.system, of).dims)
        return self.rows(of, found.reshape(shape + self.shape(wrt)), wrt, local=cut)


def positional(tensor: Tensor) -> bool:
    """Tell whether a tensor is kept position by position."""
    return bool(tensor.dims) and tensor.dims[0].ordered


def lowered(system: System, givens: Givens, sizes: Mapping[str, int]) -> Forward:
    """Return a forward function from our own lowering of a system's equations."""
    plan = program(system, givens)
    code = plan.code(True, True)

    def forward(v: Mapping[str, Any], keep: Keep, loss: str) -> None:
        import torch

        rows = next(iter(v.values())).shape[0]
        dtype = next(iter(v.values())).dtype
        names = {slot.number: str(key) for key, slot in code.slots.items()}
        lengths = {n: tuple(sizes[d.name] for d in t.dims) for n, t in plan.tensors.items()}

        def record(number: int, position: int | None, value: Any) -> Any:
            name = names[number]
            shape = lengths[name] if position is None else lengths[name][1:]
            value = torch.as_tensor(value, dtype=dtype).expand(rows, *shape)
            return keep(name, value)

        arrays = []
        for key, slot in code.slots.items():
            name = str(key)
            arrays.append(stored(slot, name, plan.tensors[name], v, lengths[name], rows, dtype))
        code.run(torch_helpers(dtype, record), [sizes[s] for s in code.sizes], arrays)

    return forward


def stored(slot: Any, name: str, tensor: Tensor, v: Mapping[str, Any], shape: tuple[int, ...],
           rows: int, dtype: Any) -> Any:  # fmt: skip
    """Return what a slot of listed code holds: a tensor, or a list over its positions."""
    import torch

    given = v.get(name)
    if not slot.listed:
        return given
    zero = torch.zeros(rows, *shape[1:], dtype=dtype)
    if given is not None:
        parts = list(given.unbind(1))
    else:
        parts = list(v[f"{name}_init"].unbind(1)) if tensor.first else []
        parts += [zero] * shape[0]
    return [zero] * slot.low[0] + parts + [zero] * slot.high[0]


def table(system: System, givens: Givens, sizes: Mapping[str, int]) -> Autograd:
    """Return the table of torch autograd."""
    return Autograd(system, givens, sizes)
