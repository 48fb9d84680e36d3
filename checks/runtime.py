"""The helpers that generated code calls, for numpy and for torch: one namespace each."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

Note = Callable[..., None]
NAMES = ("np", "perm", "top", "num", "ar", "zeros", "stop", "pick", "chain", "erf", "dot", "tdot",
         "einsum", "stk", "keep", "note")  # fmt: skip


def chain(x: Any, sizes: tuple[int, ...], rest: int, first: Any, last: Any, start: int,
          down: bool) -> Any:  # fmt: skip
    """Multiply matrices x[k] for k = first..last, leftmost first; descending if ``down``.

    Args:
        x: Shape (K, rest..., n, n), axes of size 1 broadcast; its first entry is position start.
        sizes: (K, n, n).
        rest: How many axes stand between.
        first: First position of each product, broadcastable over the rest axes.
        last: Last position; an empty range gives the identity.
        start: The position of x[0].
        down: Whether the factors run from late to early positions.
    """
    count, size, _ = sizes
    x = np.broadcast_to(x, (max(count, 0), *x.shape[1:-2], size, size))
    out = np.eye(size, dtype=x.dtype)
    low, high = (last, first) if down else (first, last)
    for row in reversed(range(len(x))) if down else range(len(x)):
        inside = (low <= start + row) & (start + row <= high)
        out = np.where(np.reshape(inside, (*np.shape(inside), 1, 1)), out @ x[row], out)
    shape = np.broadcast_shapes(np.shape(first), np.shape(last), x.shape[1:-2])
    return np.broadcast_to(out, (*shape, size, size))


def pick(x: Any, index: Any) -> Any:
    """Take entries along the last axis at a computed index; both broadcast."""
    shape = np.broadcast_shapes(x.shape[:-1], index.shape[:-1])
    rows = np.broadcast_to(index, (*shape, 1)).real.astype(int)
    return np.take_along_axis(np.broadcast_to(x, (*shape, x.shape[-1])), rows, -1)[..., 0]


def stop_base(value: Any, axis: int | None) -> Any:
    """Freeze a value at the first row of its batch axis: the unperturbed run."""
    return value if axis is None else np.take(value, [0], axis)


def stop_real(value: Any, axis: int | None) -> Any:
    """Freeze a value at its real part: the imaginary part is the perturbation."""
    return np.real(value)


def silent(*_: Any) -> None:
    """Take note of nothing."""


_helpers: dict[Any, SimpleNamespace] = {}


def silent_helpers(dtype: np.dtype[Any]) -> SimpleNamespace:
    """Return the helpers for arrays of a dtype that take note of nothing, made once."""
    if dtype not in _helpers:
        _helpers[dtype] = numpy_helpers(dtype)
    return _helpers[dtype]


def erf(x: Any) -> Any:
    """The error function; of a complex number whose imaginary part is a step, to first order."""
    real = np.vectorize(math.erf, otypes=[float])(np.real(x)) if np.size(x) else np.real(x)
    if not np.iscomplexobj(x):
        return np.asarray(real, np.asarray(x).dtype)
    return real + 1j * np.imag(x) * 2 / np.sqrt(np.pi) * np.exp(-(np.real(x) ** 2))


def numpy_helpers(dtype: np.dtype[Any], stop: Callable[..., Any] | None = None,
                  note: Note = silent) -> SimpleNamespace:  # fmt: skip
    """Return the helpers for arrays of a dtype.

    Args:
        dtype: float32, float64, complex64 or complex128.
        stop: What a detached value becomes; by default itself.
        note: Called with the values of a contraction.
    """
    real = np.zeros(0, dtype).real.dtype
    return SimpleNamespace(
        np=np,
        perm=np.transpose,
        top=lambda x, axis: x.real.max(axis, keepdims=True),
        num=lambda x: np.asarray(x, real),
        ar=lambda start, count: np.arange(start, start + max(count, 0)),
        zeros=lambda n: np.zeros(n, real),
        stop=stop or (lambda value, _: value),
        pick=pick,
        chain=chain,
        erf=erf,
        dot=np.dot,
        tdot=np.tensordot,
        einsum=np.einsum,
        stk=None,
        keep=None,
        note=note,
    )


def torch_helpers(dtype: Any, keep: Callable[..., Any]) -> SimpleNamespace:
    """Return the helpers for tensors of a torch dtype; ``keep`` records each computed value."""
    import torch

    def num(x: Any) -> Any:
        return torch.as_tensor(x, dtype=dtype)

    return SimpleNamespace(
        np=torch,
        perm=torch.permute,
        top=lambda x, axis: x.detach().amax(axis, keepdim=True),
        num=num,
        ar=lambda start, count: torch.arange(start, start + max(count, 0)),
        zeros=lambda n: torch.zeros(n, dtype=dtype),
        stop=lambda value, _: value.detach(),
        pick=None,
        chain=None,
        erf=torch.erf,
        dot=torch.matmul,
        tdot=torch.tensordot,
        einsum=torch.einsum,
        stk=torch.stack,
        keep=keep,
        note=silent,
    )


def compiled(name: str, lines: list[str]) -> Callable[..., Any]:
    """Compile generated lines to a function ``run(k, n, x)``.

    The lines hold generated names, numbers and the helpers only (see `derive.checks.codegen`).
    """
    used = set(re.findall(r"[a-z]+", " ".join(lines)))
    head = ["def run(k, n, x):", *(f" {h} = k.{h}" for h in NAMES if h in used)]
    source = "\n".join([*head, *(" " + line for line in lines)])
    space: dict[str, Any] = {}
    exec(compile(source, f"<derive {name}>", "exec"), space)
    function: Callable[..., Any] = space["run"]
    return function
