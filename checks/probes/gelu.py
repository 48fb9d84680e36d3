"""torch's two forms of GELU."""

from __future__ import annotations

import numpy as np

from derive.checks.probes import Observation

_NEAR = 5e-4
"""How far apart the forms are at most: the largest gap, near |x| = 2.3, is 4.8e-4."""


def forms_are_close() -> Observation:
    """The tanh form is within 0.0005 of the exact one."""
    return _gap(_NEAR)


def forms_are_equal() -> Observation:
    """The tanh form is the exact one to the last bits."""
    return _gap(1e-12)


def _gap(tolerance: float) -> Observation:
    """Compare both forms of torch.nn.functional.gelu over -6..6."""
    import torch
    from torch.nn import functional as F

    x = torch.linspace(-6, 6, 4001, dtype=torch.float64)
    close, exact = F.gelu(x, approximate="tanh").numpy(), F.gelu(x).numpy()
    return Observation(np.asarray(close), np.asarray(exact), "torch.nn.functional.gelu",
                       "4001 points of -6..6", 1.0, tolerance)  # fmt: skip
