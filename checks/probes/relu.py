"""What torch does at the kink of ReLU."""

from __future__ import annotations

import numpy as np

from derive.checks.probes import Observation


def slope_at_zero() -> Observation:
    """The gradient of relu at 0 is 0."""
    return _slope(0.0)


def slope_at_zero_of_one() -> Observation:
    """The gradient of relu at 0 is 1."""
    return _slope(1.0)


def _slope(expected: float) -> Observation:
    """Differentiate torch.relu at zero by autograd."""
    import torch

    x = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(torch.relu(x).sum(), x)
    return Observation(slope.numpy(), np.array([expected]), "torch.relu", "x = 0", 1.0, 0.0)
