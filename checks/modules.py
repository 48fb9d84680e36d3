"""What PyTorch itself computes: hand-written forward loops, and torch.nn's recurrent modules.

The forwards are written from the models' definitions with torch alone; they share no code with the
equations that `derive` reads. Each is registered by the name of its system, and used only where the
system has exactly the tensors that it knows. A row of `FORWARDS` or `MODULES` adds one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from derive.checks.autograd import Forward, Keep
from derive.checks.storage import Array
from derive.checks.table import Givens, Table, Unavailable
from derive.equation import System

Values = Mapping[str, Any]


def rnn(v: Values, keep: Keep, loss: str) -> None:
    """Tanh recurrence in rows, h_t = tanh(x_t W_x' + h_{t-1} W_h' + b), its head and both losses."""
    import torch

    h, losses = v["h_init"][:, -1], []
    for t in range(v["x"].shape[1]):
        z = affine(v["x"][:, t], v["W_x"], v["b_h"]) + affine(h, v["W_h"])
        h = keep("h", torch.tanh(keep("z", z)))
        if "W_o" in v:
            a = keep("a", affine(h, v["W_o"], v["b_o"]))
            p = keep("p", torch.softmax(a, -1))
            if "Y" in v:
                losses.append(keep("l", -torch.log((p * v["Y"][:, t]).sum(-1))))
    if loss == "final":
        keep("L", ((h - v["y"]) ** 2).sum(-1) / 2)
    elif loss == "per_position":
        keep("L", torch.stack(losses).mean(0))


def affine(x: Any, weight: Any, bias: Any = None) -> Any:
    """X W' + b for a batch of vectors, each row with its own weight."""
    import torch

    out = torch.matmul(weight, x[..., None])[..., 0]
    return out if bias is None else out + bias


@dataclass(frozen=True)
class Row:
    """A hand-written forward.

    Args:
        forward: The function.
        shapes: The shapes that it assumes, by tensor name.
        losses: The losses that it knows.
    """

    forward: Forward
    shapes: Mapping[str, tuple[str, ...]]
    losses: tuple[str, ...]


RNN_SHAPES = {
    "x": ("T", "D"), "W_x": ("H", "D"), "W_h": ("H", "H"), "b_h": ("H",), "z": ("T", "H"),
    "h": ("T", "H"), "y": ("H",), "W_o": ("C", "H"), "b_o": ("C",), "a": ("T", "C"),
    "p": ("T", "C"), "Y": ("T", "C"), "l": ("T",),
}  # fmt: skip
FORWARDS: dict[str, Row] = {"rnn": Row(rnn, RNN_SHAPES, ("final", "per_position"))}


def handwritten(system: System, givens: Givens) -> Forward | None:
    """Return the registered forward of a system, if it knows exactly this system's tensors."""
    row = FORWARDS.get(system.name)
    if row is None or (system.loss and system.loss not in row.losses):
        return None
    states = set(system.by_name) - {"L"}
    shapes = {n: tuple(d.name for d in t.dims) for n, t in system.tensors.items()
              if n in states or n in {g.name for g in system.givens}}  # fmt: skip
    known = all(row.shapes.get(n) == s for n, s in shapes.items())
    return row.forward if known else None


class RecurrentModule(Table):
    """Values and gradients of torch.nn.RNN with our weights; its two biases share ours."""

    name = "torch.nn.RNN"

    @cached_property
    def result(self) -> tuple[dict[str, Array], dict[str, Array]]:
        """The values, and the gradients of the loss."""
        import torch

        g = {n: torch.from_numpy(np.array(a)) for n, a in self.givens.items()}
        module = torch.nn.RNN(g["x"].shape[-1], g["b_h"].shape[-1], dtype=g["x"].dtype)
        with torch.no_grad():
            module.weight_ih_l0.copy_(g["W_x"])
            module.weight_hh_l0.copy_(g["W_h"])
            module.bias_ih_l0.copy_(g["b_h"] / 2)
            module.bias_hh_l0.copy_(g["b_h"] / 2)
        x = g["x"].requires_grad_()
        start = g["h_init"].reshape(1, -1).requires_grad_()
        h, _ = module(x, start)
        values = {"h": torch.cat([start, h])}
        wanted = {"x": x, "W_x": module.weight_ih_l0, "W_h": module.weight_hh_l0,
                  "b_h": module.bias_ih_l0, "second bias": module.bias_hh_l0}  # fmt: skip
        loss = self.loss(g, h, values, wanted)
        grads = dict[str, Array]()
        if loss is not None:
            values["L"] = loss
            found = torch.autograd.grad(loss, list(wanted.values()))
            grads = {n: f.numpy() for n, f in zip(wanted, found, strict=True)}
            # both biases enter as one sum, so either has the gradient of ours
            grads["b_h"] = (grads["b_h"] + grads.pop("second bias")) / 2
        return {n: v.detach().numpy() for n, v in values.items()}, grads

    def loss(self, g: Values, h: Any, values: dict[str, Any], wanted: dict[str, Any]) -> Any:
        """Return the loss by torch.nn.functional, noting the head's values and parameters."""
        import torch.nn.functional as F

        if self.system.loss == "final":
            return F.mse_loss(h[-1], g["y"], reduction="sum") / 2
        if "W_o" not in g:
            return None
        wanted |= {n: g[n].requires_grad_() for n in ("W_o", "b_o")}
        values["a"] = F.linear(h, wanted["W_o"], wanted["b_o"])
        values["p"] = F.softmax(values["a"], -1)
        if self.system.loss != "per_position":
            return None
        wanted["a"] = values["a"]
        return F.cross_entropy(values["a"], g["Y"].argmax(-1))

    @property
    def values(self) -> Mapping[str, Array]:
        """The values that the module shows."""
        return self.result[0]

    def total(self, of: str, wrt: str) -> Array:
        """Return gradients of the loss, or state Jacobians through torch.nn.RNNCell."""
        if of == "L" and wrt in self.result[1]:
            return self.result[1][wrt]
        if of == "h" and wrt in ("h", "x"):
            return self.jacobians[wrt]
        raise Unavailable

    def tensor(self, name: str) -> Array:
        """Return what the module shows; it hides the pre-activations.

        Raises:
            Unavailable: For a state that it does not show.
        """
        if name not in self.values and name not in self.givens:
            if name not in self.system.derived_by_name:
                raise Unavailable
        return super().tensor(name)

    @cached_property
    def jacobians(self) -> dict[str, Array]:
        """Derivatives of every state entry by states and inputs, through torch.nn.RNNCell."""
        import torch

        g = {n: torch.from_numpy(np.array(a)) for n, a in self.givens.items()}
        steps, width = g["x"].shape[0], g["b_h"].shape[-1]
        cell = torch.nn.RNNCell(g["x"].shape[-1], width, dtype=g["x"].dtype)
        with torch.no_grad():
            cell.weight_ih.copy_(g["W_x"])
            cell.weight_hh.copy_(g["W_h"])
            cell.bias_ih.copy_(g["b_h"] / 2)
            cell.bias_hh.copy_(g["b_h"] / 2)
        rows = steps * width
        x = [row.expand(rows, -1).clone().requires_grad_() for row in g["x"]]
        h = [g["h_init"].reshape(1, -1).expand(rows, -1).clone().requires_grad_()]
        for row in x:
            h.append(cell(row, h[-1]))
        picked = torch.stack(h[1:], 1).reshape(rows, rows).diagonal().sum()
        found = torch.autograd.grad(picked, [*h, *x])
        by = {"h": torch.stack(found[: len(h)], 1), "x": torch.stack(found[len(h) :], 1)}
        shape = (steps, width)
        return {n: self.rows("h", v.numpy().reshape(*shape, *v.shape[1:]), n) for n, v in by.items()}


MODULES: dict[str, Callable[[System, Givens, Mapping[str, int]], Table]] = {"rnn": RecurrentModule}


def module(system: System, givens: Givens, sizes: Mapping[str, int]) -> Table | None:
    """Return the table of the torch.nn module that a system describes, if there is one."""
    make = MODULES.get(system.name)
    return make(system, givens, sizes) if make and handwritten(system, givens) else None


