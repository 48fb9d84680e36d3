"""What ``torch.nn.utils.clip_grad_value_`` does: another function than clipping the norm."""

from __future__ import annotations

import numpy as np

from derive.checks.probes import Observation
from derive.checks.storage import Array

_GRADIENT = (3.0, -0.25, 0.5, -8.0)
_CLIP = 1.0
_NAME = "torch.nn.utils.clip_grad_value_"
_SCOPE = "float64, one gradient of 4 entries"


def is_elementwise() -> Observation:
    """It clips each entry to [-c, c] by itself: min(max(g, -c), c)."""
    expected = [min(max(g, -_CLIP), _CLIP) for g in _GRADIENT]
    return Observation(_clipped(), np.array(expected), _NAME, _SCOPE, max(map(abs, _GRADIENT)))


def keeps_direction() -> Observation:
    """It keeps the direction of the gradient, as clipping the norm does."""
    before, after = np.array(_GRADIENT), _clipped()
    cosine = before @ after / np.sqrt((before**2).sum() * (after**2).sum())
    return Observation(np.array(cosine), np.array(1.0), _NAME, _SCOPE)


def bounds_the_norm() -> Observation:
    """It leaves a norm of at most c, as clipping the norm does."""
    norm = float(np.sqrt((_clipped() ** 2).sum()))
    return Observation(np.array(norm), np.array(min(norm, _CLIP)), _NAME, _SCOPE)


def _clipped() -> Array:
    """Return the clipped gradient."""
    import torch

    parameter = torch.nn.Parameter(torch.zeros(len(_GRADIENT), dtype=torch.float64))
    parameter.grad = torch.tensor(_GRADIENT, dtype=torch.float64)
    torch.nn.utils.clip_grad_value_([parameter], _CLIP)
    return np.asarray(parameter.grad.numpy())
