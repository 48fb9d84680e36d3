"""What ``torch.nn.utils.clip_grad_norm_`` does, against its definition in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from derive.checks.probes import Observation
from derive.checks.storage import Array

_SHAPES = ((4, 3), (5,), (2, 2, 2))
_NORMS = (0.25, 1.0, 2.0, 60.0, 7806.4)
"""Norms below, at and above the clip, up to one that a printed run shows."""
_CLIP = 1.0
_EPSILON = 1e-6
"""Which torch adds to the norm before it divides."""
_NAME = "torch.nn.utils.clip_grad_norm_"
_SCOPE = f"float64, {len(_SHAPES)} parameters, norms {_NORMS[0]:g} to {_NORMS[-1]:g}"


def equals_definition() -> Observation:
    """It multiplies every gradient by min(1, c/(norm + 1e-6)), the norm over all parameters."""
    expected = [g * min(1.0, _CLIP / (_norm(g) + _EPSILON)) for g in _gradients()]
    return _observed([_clipped(g)[0] for g in _gradients()], expected)


def has_no_epsilon() -> Observation:
    """It multiplies every gradient by min(1, c/norm): nothing is added to the norm."""
    expected = [g * min(1.0, _CLIP / _norm(g)) for g in _gradients()]
    return _observed([_clipped(g)[0] for g in _gradients()], expected)


def returns_norm_before() -> Observation:
    """It returns the norm that the gradients had before they were clipped."""
    found = [_clipped(g)[1] for g in _gradients()]
    return _observed(found, [_norm(g) for g in _gradients()], max(_NORMS))


def returns_norm_after() -> Observation:
    """It returns the norm of the gradients after they were clipped."""
    expected = [_norm(g) * min(1.0, _CLIP / (_norm(g) + _EPSILON)) for g in _gradients()]
    return _observed([_clipped(g)[1] for g in _gradients()], expected, max(_NORMS))


def returns_zero_before_backward() -> Observation:
    """Called between zero_grad() and backward(), it finds no gradients and returns 0.0."""
    import torch

    model = torch.nn.Linear(3, 2, dtype=torch.float64)
    model(torch.ones(1, 3, dtype=torch.float64)).sum().backward()
    model.zero_grad()
    found = torch.nn.utils.clip_grad_norm_(model.parameters(), _CLIP)
    return Observation(np.array(found.item()), np.array(0.0), _NAME, "after zero_grad",
                       tolerance=0.0)  # fmt: skip


def keeps_direction() -> Observation:
    """It keeps the direction of the whole gradient: the cosine with the clipped one is 1."""
    clipped = [(_clipped(g)[0], g) for g in _gradients()]
    found = [float(a @ b) / (_norm(a) * _norm(b)) for a, b in clipped]
    return _observed(found, [1.0] * len(found))


def is_idempotent() -> Observation:
    """Clipping a second time changes nothing."""
    once = [_clipped(g)[0] for g in _gradients()]
    return _observed([_clipped(g)[0] for g in once], once)


def shrinks_again() -> Observation:
    """A second call multiplies by c/(n + 1e-6) once more, below 1 if the first norm was over c.

    The first leaves the norm n = c norm/(norm + 1e-6); n + 1e-6 is more than c where norm > c.
    """
    large = [g for g in _gradients() if _norm(g) > _CLIP + _EPSILON]
    first = [_CLIP * _norm(g) / (_norm(g) + _EPSILON) for g in large]
    expected = [_CLIP / (n + _EPSILON) for n in first]
    once = [_clipped(g)[0] for g in large]
    found = [_norm(_clipped(g)[0]) / _norm(g) for g in once]
    below = [float(f < 1) for f in found]
    return _observed([*found, *below], [*expected, *(1.0 for _ in below)])


# Running it


def _gradients() -> list[Array]:
    """Return flat gradients of the norms to clip."""
    drawn = np.random.default_rng(0).standard_normal((len(_NORMS), 25))
    return [n * g / np.linalg.norm(g) for n, g in zip(_NORMS, drawn, strict=True)]


def _norm(gradient: Array) -> float:
    """Return the Euclidean norm."""
    return float(np.sqrt((gradient**2).sum()))


def _parameters(gradient: Array) -> list[Any]:
    """Return parameters that carry a flat gradient between them."""
    import torch

    made, start = [], 0
    for shape in _SHAPES:
        parameter = torch.nn.Parameter(torch.zeros(shape, dtype=torch.float64))
        stop = start + parameter.numel()
        parameter.grad = torch.from_numpy(gradient[start:stop].copy()).reshape(shape)
        made.append(parameter)
        start = stop
    assert start == gradient.size
    return made


def _clipped(gradient: Array) -> tuple[Array, float]:
    """Return the clipped flat gradient, and what the call returned."""
    import torch

    parameters = _parameters(gradient)
    returned = torch.nn.utils.clip_grad_norm_(parameters, _CLIP).item()
    return np.concatenate([p.grad.numpy().ravel() for p in parameters]), returned


def _observed(observed: Any, expected: Any, scale: float = 1.0) -> Observation:
    """Return an observation of the calls on all gradients."""
    return Observation(np.array(observed), np.array(expected), _NAME, _SCOPE, scale)
