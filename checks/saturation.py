"""How softmax saturates, measured: its largest slope over the width of queries and keys."""

from __future__ import annotations

from typing import Any

import numpy as np

WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
DRAWS = 400
Array = np.ndarray[Any, Any]


def largest_slopes(sources: int, seed: int) -> tuple[Array, Array]:
    """Return mean largest slope p (1 - p) and its standard error, shape (3, widths).

    Queries and keys are standard normal, the weights torch's softmax. Rows: scores q.k, divided by
    the root of their width, divided by their width.
    """
    import torch

    made = torch.Generator().manual_seed(seed)
    means, errors = np.zeros((3, len(WIDTHS))), np.zeros((3, len(WIDTHS)))
    for column, width in enumerate(WIDTHS):
        q = torch.randn(DRAWS, 1, width, generator=made, dtype=torch.float64)
        k = torch.randn(DRAWS, sources, width, generator=made, dtype=torch.float64)
        scores = (q * k).sum(-1)
        for row, scale in enumerate((1.0, width**0.5, float(width))):
            p = torch.softmax(scores / scale, -1)
            slope = (p * (1 - p)).amax(-1).numpy()
            means[row, column] = slope.mean()
            errors[row, column] = slope.std(ddof=1) / np.sqrt(DRAWS)
    return means, errors
