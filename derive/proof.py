"""The outcome of an attempt at a proof."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Proof:
    """The outcome of an attempt.

    Args:
        proved: Whether the statement holds at every size.
        kind: ``identity``, ``support`` or ``induction``.
        detail: What was done, in words.
        terms: Number of terms of the difference before it cancelled.
        seconds: Wall time.
        rules: Names of the normal form's rules that were used.
        residual: How many terms are left if it is not proved.
    """

    proved: bool
    kind: str
    detail: str
    terms: int
    seconds: float
    rules: tuple[str, ...] = ()
    residual: int = 0
