"""How many numbers the recurrent modules of torch hold, against the count of their equations."""

from __future__ import annotations

import numpy as np

from derive.checks.probes import Observation

_SIZES = ((1, 1), (4, 3), (32, 32), (7, 64))
"""Inputs D and width H."""
_SCOPE = f"(D, H) = {', '.join(map(str, _SIZES))}"


def rnn() -> Observation:
    """torch.nn.RNN holds HD + HH + 2H numbers: two biases."""
    return _counted("RNN", 1, 2)


def gru() -> Observation:
    """torch.nn.GRU holds 3(HD + HH + 2H) numbers: three blocks, two biases each."""
    return _counted("GRU", 3, 2)


def lstm() -> Observation:
    """torch.nn.LSTM holds 4(HD + HH + 2H) numbers: four blocks, two biases each."""
    return _counted("LSTM", 4, 2)


def lstm_with_one_bias() -> Observation:
    """torch.nn.LSTM holds 4(HD + HH + H) numbers: four blocks, one bias each."""
    return _counted("LSTM", 4, 1)


def _counted(name: str, blocks: int, biases: int) -> Observation:
    """Count the flattened parameters at several sizes."""
    import torch

    modules = [getattr(torch.nn, name)(d, h) for d, h in _SIZES]
    flat = [torch.nn.utils.parameters_to_vector(m.parameters()).numel() for m in modules]
    want = [blocks * (h * d + h * h + biases * h) for d, h in _SIZES]
    return Observation(np.array(flat, float), np.array(want, float), f"torch.nn.{name}", _SCOPE,
                       float(max(want)), 0.0)  # fmt: skip
