"""What torch's attention takes a mask to mean: which boolean hides, where a causal mask starts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from derive.checks.probes import Observation

_QUERIES, _SOURCES, _WIDTH = 3, 5, 4
_SCOPE = f"{_QUERIES} queries, {_SOURCES} sources of width {_WIDTH}"
_SDPA = "torch.nn.functional.scaled_dot_product_attention"


def sdpa_true_takes_part() -> Observation:
    """In scaled_dot_product_attention True means that a source takes part."""
    return _sdpa(_allowed(), {"attn_mask": _allowed()})


def sdpa_true_is_hidden() -> Observation:
    """In scaled_dot_product_attention True means that a source is hidden."""
    return _sdpa(~_allowed(), {"attn_mask": _allowed()})


def module_true_is_hidden() -> Observation:
    """In torch.nn.MultiheadAttention True means that a source is hidden."""
    return _module(~_allowed())


def module_true_takes_part() -> Observation:
    """In torch.nn.MultiheadAttention True means that a source takes part."""
    return _module(_allowed())


def causal_starts_at_the_first_source() -> Observation:
    """With more sources than queries is_causal lets query t see sources 0 to t."""
    return _sdpa(np.tri(_QUERIES, _SOURCES, dtype=bool), {"is_causal": True})


def causal_ends_at_the_last_source() -> Observation:
    """With more sources than queries is_causal lets the last query see every source."""
    shifted = np.tri(_QUERIES, _SOURCES, _SOURCES - _QUERIES, dtype=bool)
    return _sdpa(shifted, {"is_causal": True})


def _allowed() -> np.ndarray[Any, Any]:
    """Return a mask without an empty row, and without a symmetry that would hide a mistake."""
    return np.array([[1, 0, 1, 0, 0], [0, 1, 1, 0, 1], [0, 0, 0, 1, 0]], bool)


def _rows() -> tuple[np.ndarray[Any, Any], ...]:
    """Return queries, keys and values."""
    draw = np.random.default_rng(7)
    shapes = ((_QUERIES, _WIDTH), (_SOURCES, _WIDTH), (_SOURCES, _WIDTH))
    return tuple(draw.standard_normal(s) for s in shapes)


def _defined(allowed: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return what attention over the allowed sources is by definition."""
    q, k, v = _rows()
    weights = np.exp(q @ k.T / math.sqrt(_WIDTH)) * allowed
    return np.asarray(weights / weights.sum(1, keepdims=True) @ v)


def _sdpa(allowed: np.ndarray[Any, Any], options: dict[str, Any]) -> Observation:
    """Run torch's function with a mask."""
    import torch
    from torch.nn import functional as F

    q, k, v = (torch.from_numpy(x)[None] for x in _rows())
    made: dict[str, Any] = {n: torch.from_numpy(m) if isinstance(m, np.ndarray) else m
                            for n, m in options.items()}  # fmt: skip
    found = F.scaled_dot_product_attention(q, k, v, **made)[0].numpy()
    return Observation(found, _defined(allowed), _SDPA, _SCOPE, 4.0)


def _module(allowed: np.ndarray[Any, Any]) -> Observation:
    """Run torch's module with maps that change nothing and one head."""
    import torch

    made = torch.nn.MultiheadAttention(_WIDTH, 1, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.eye(_WIDTH).repeat(3, 1))
        made.out_proj.weight.copy_(torch.eye(_WIDTH))
        q, k, v = (torch.from_numpy(x)[None] for x in _rows())
        found = made(q, k, v, attn_mask=torch.from_numpy(_allowed()), need_weights=False)[0][0]
    return Observation(found.numpy(), _defined(allowed), "torch.nn.MultiheadAttention", _SCOPE, 4.0)
