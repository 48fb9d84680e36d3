"""Statements about numbers alone: decided by ball arithmetic, for these numbers and no others."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Literal

import flint
from flint import arb

from derive.case_world import World
from derive.nodes import tensor_name, walk
from derive.refute import contradicts
from derive.statement import Identity

PRECISIONS = (128, 256, 512)
EXACT: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt,
}  # fmt: skip
OPPOSITE = {"<=": ">", "<": ">=", ">=": "<", ">": "<="}


def is_arithmetic(identity: Identity) -> bool:
    """Tell whether a statement reads no tensor, no size and no index."""
    sides = (identity.lhs, identity.rhs)
    sizes = {d.symbol for d in identity.system.dims.values()}
    reads = any(tensor_name(n) is not None for side in sides for n in walk(side))
    return not (reads or identity.free or any(s.free_symbols & sizes for s in sides))


def decide_numbers(
    identity: Identity,
) -> tuple[Literal["holds", "fails", "undecided"], str, str]:
    """Decide a statement about numbers.

    Args:
        identity: The statement.

    Returns:
        The outcome, and the digits of both sides. Equal numbers that are not rational are
        undecided: balls cannot tell equality from a small difference.

    Raises:
        DeriveError: If a fixed point in it cannot be enclosed.
    """
    old = flint.ctx.prec
    shown: tuple[str, str] = ("", "")
    try:
        for precision in PRECISIONS:
            flint.ctx.prec = precision
            world = World(identity.system, {}, {})
            left, right = (world.value(side, {}) for side in (identity.lhs, identity.rhs))
            shown = (arb(left).str(8, radius=False), arb(right).str(8, radius=False))
            if not isinstance(left, arb) and not isinstance(right, arb):
                return ("holds" if EXACT[identity.relation](left, right) else "fails"), *shown
            if contradicts(identity.relation, arb(left), arb(right)):
                return "fails", *shown
            opposite = OPPOSITE.get(identity.relation)
            if opposite is not None and contradicts(opposite, arb(left), arb(right)):
                return "holds", *shown
    finally:
        flint.ctx.prec = old
    return "undecided", *shown
