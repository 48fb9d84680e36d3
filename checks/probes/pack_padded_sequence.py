"""Sequences of unequal length in one batch: packed, or with their padding processed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from derive.checks.probes import Observation
from derive.checks.storage import Array

_LENGTHS = (5, 2, 4)
_WIDTH, _INPUTS = 4, 3
_CELLS = ("RNN", "GRU", "LSTM")
_NAME = "torch.nn.utils.rnn.pack_padded_sequence"
_SCOPE = f"float64, RNN, GRU and LSTM, lengths {', '.join(map(str, _LENGTHS))}"
Read = Callable[[Any, Any], Any]
"""From a module and a padded batch (T, N, D) to states (N, H)."""


def gives_last_true_state() -> Observation:
    """Packed, the final state is that of each sequence alone, after its true last step."""

    def read(module: Any, batch: Any) -> Any:
        import torch

        packed = torch.nn.utils.rnn.pack_padded_sequence(
            batch, torch.tensor(_LENGTHS), enforce_sorted=False
        )
        return _final(module, packed)

    return _compared(read, _NAME)


def padding_is_harmless() -> Observation:
    """With the pads processed as input, the final state is that of each sequence alone."""
    return _compared(_final, "torch.nn.RNN, GRU, LSTM on padded input")


def reading_at_last_true_step() -> Observation:
    """With the pads processed, the output at each sequence's true last step is the true one."""

    def read(module: Any, batch: Any) -> Any:
        return module(batch)[0][[n - 1 for n in _LENGTHS], range(len(_LENGTHS))]

    return _compared(read, "torch.nn.RNN, GRU, LSTM on padded input")


# Running it


def _final(module: Any, batch: Any) -> Any:
    """Return the hidden state after a batch (an LSTM returns its cell state beside it)."""
    state = module(batch)[1]
    return (state[0] if isinstance(state, tuple) else state)[0]


def _compared(read: Read, against: str) -> Observation:
    """Compare what is read from a batch with each sequence run alone, in every cell."""
    import torch

    sequences = [torch.randn(n, _INPUTS, dtype=torch.float64) for n in _LENGTHS]
    batch = torch.nn.utils.rnn.pad_sequence(sequences)
    observed, expected = list[Array](), list[Array]()
    with torch.no_grad():
        for name in _CELLS:
            module = getattr(torch.nn, name)(_INPUTS, _WIDTH, dtype=torch.float64)
            observed.append(read(module, batch).numpy())
            expected.append(np.stack([_final(module, s[:, None]).numpy()[0] for s in sequences]))
    return Observation(np.stack(observed), np.stack(expected), against, _SCOPE)
