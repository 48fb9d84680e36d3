"""The statement language: its syntax nodes (`derive.parse` makes them from text).

Grammar, loosest first: ``lhs = rhs [for cond, ...]`` (or <=, <, >=, > for =); ``+ -``; ``* / @``;
unary ``-``; ``^`` or ``**``; postfix ``.T``; numbers, ``name``, ``name[i, t-1]``, ``f(...)``,
``sum(t=a..b, j, body)``, ``where(a <= b, x, y)``, ``dX[..]/dY[..]``,
``partial X[..]/partial Y[..]``, parentheses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from fractions import Fraction


@dataclass(frozen=True)
class Node:
    """A syntax node with its span in the text."""

    span: tuple[int, int] = field(kw_only=True, default=(0, 0), compare=False)


@dataclass(frozen=True)
class Num(Node):
    """An exact decimal."""

    value: Fraction
    text: str


@dataclass(frozen=True)
class Name(Node):
    """A bare name."""

    name: str


@dataclass(frozen=True)
class Item(Node):
    """A tensor with indices: ``h[t-1, r]``."""

    name: str
    args: tuple[Node, ...]


@dataclass(frozen=True)
class Range(Node):
    """A bound index with limits: ``t=a..b``; without limits both are None."""

    name: str
    first: Node | None
    last: Node | None


@dataclass(frozen=True)
class Call(Node):
    """A function or binder applied: ``tanh(x)``, ``sum(t=0..T-1, x)``."""

    func: str
    args: tuple[Node, ...]


@dataclass(frozen=True)
class Bin(Node):
    """A binary operation: + - * / @ ^."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Neg(Node):
    """Unary minus."""

    arg: Node


@dataclass(frozen=True)
class Transpose(Node):
    """``x.T``."""

    arg: Node


@dataclass(frozen=True)
class Deriv(Node):
    """``dA/dB`` (total) or ``partial A/partial B`` (local)."""

    kind: str
    of: Node
    wrt: Node


@dataclass(frozen=True)
class Condition(Node):
    """``left <= right`` between index expressions (``<`` and ``>`` are rewritten to it)."""

    left: Node
    right: Node
    shift: int


@dataclass(frozen=True)
class Statement(Node):
    """``lhs = rhs for conditions``; the relation may be an inequality."""

    lhs: Node
    rhs: Node
    conditions: tuple[Condition, ...]
    text: str = field(compare=False)
    relation: str = "="


def children(node: Node) -> Iterator[Node]:
    """Yield the direct children of a syntax node."""
    for spec in fields(node):
        value = getattr(node, spec.name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from (v for v in value if isinstance(v, Node))


def descend(node: Node) -> Iterator[Node]:
    """Yield the node and everything below it, parents first."""
    yield node
    for child in children(node):
        yield from descend(child)


RELATIONS = ("=", "<=", "<", ">=", ">")


QUANTITY_CALLS = ("fixed", "lowest", "highest")
"""Binders of printed quantities only: what they give is a number, not a term of a proof."""
BINDER_CALLS = ("sum", "mean", "var", "softmax", "logsumexp", "prod", *QUANTITY_CALLS)


RESERVED = ("sum", "mean", "var", "softmax", "logsumexp", "prod", "delta", "diag", "for", "partial")
