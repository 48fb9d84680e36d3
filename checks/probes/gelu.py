"""torch's two forms of GELU."""

from __future__ import annotations

import numpy as np

from derive.checks.probes import Observation

_NEAR = 5e-4
"""More than the largest gap of the two forms, 4.8e-4 near |x| = 2.3."""


def forms_are_close() -> Observation:
    """The tanh form is within 0.0005 of the exact one."""
    return _count_apart(_NEAR)


def forms_are_equal() -> Observation:
    """The tanh form is the exact one to a part in 10^12."""
    return _count_apart(1e-12)


def _count_apart(near: float) -> Observation:
    """Count the points at which both forms of torch.nn.functional.gelu are further apart."""
    import torch
    from torch.nn import functional as F

    x = torch.linspace(-6, 6, 4001, dtype=torch.float64)
    gap = (F.gelu(x, approximate="tanh") - F.gelu(x)).abs().numpy()
    apart = float((gap > near).sum())
    return Observation(np.array([apart]), np.array([0.0]), "torch.nn.functional.gelu",
                       "4001 points of -6..6", 1.0, 0.0)  # fmt: skip
