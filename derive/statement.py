"""A statement about a system: two typed sides, free indices that stand for all their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from derive import syntax as S
from derive.elaborate import Elaborator
from derive.equation import System
from derive.errors import DeriveError
from derive.index import Dim, Expr, affine, index_symbol
from derive.parse import parse_statement
from derive.scope import Val, free_names


@dataclass(frozen=True)
class Identity:
    """``lhs = rhs`` for all values of the free indices that satisfy the conditions.

    Args:
        system: The system that it speaks about, with its loss selected if it reads ``L``.
        lhs: Left side in index notation.
        rhs: Right side.
        free: Free indices with their sizes; matrix notation adds one per open axis.
        conditions: Pairs (a, b) of index expressions: a <= b.
        text: As written.
        syntax: The syntax tree, for printing and for edits.

    An inequality is the same with another relation between its sides.
    """

    system: System
    lhs: Expr
    rhs: Expr
    free: tuple[tuple[sp.Symbol, Dim], ...]
    conditions: tuple[tuple[Expr, Expr], ...]
    text: str
    syntax: S.Statement

    @property
    def relation(self) -> str:
        """``=``, ``<=``, ``<``, ``>=`` or ``>``."""
        return self.syntax.relation

    @property
    def gap(self) -> Expr:
        """What an inequality says is not negative: the larger side minus the smaller."""
        return self.rhs - self.lhs if self.relation[0] == "<" else self.lhs - self.rhs

    @property
    def strict(self) -> bool:
        """Whether the sides may not be equal."""
        return self.relation in ("<", ">")


Axes = Mapping[Expr, Dim]


@lru_cache(maxsize=4096)
def read_statement(system: System, text: str) -> Identity:
    """Read a statement about a system.

    Raises:
        DeriveError: On anything that is not understood, with the place.
    """
    scope = system.scope
    syntax = parse_statement(text, scope.is_name, scope.tensors)
    elaborator = reader_of(syntax)(scope, text)
    elaborator.check_names(syntax)
    free = bind_free(elaborator, syntax)
    for condition in syntax.conditions:
        left, right = condition.left, condition.right
        if isinstance(left, S.Name) and isinstance(right, S.Name):
            elaborator.ordered.add((left.name, right.name))
    sides = [elaborator.value(side, free) for side in (syntax.lhs, syntax.rhs)]
    axes = common_axes(elaborator, syntax, *sides)
    opened = tuple((index_symbol(n), d) for n, d in zip(axis_names(axes, free), axes, strict=True))
    lhs, rhs = (side.build(tuple(s for s, _ in opened)[len(axes) - len(side.axes) :])
                for side in sides)  # fmt: skip
    lhs, rhs = elaborator.bounded(lhs), elaborator.bounded(rhs)
    conditions = tuple(
        (elaborator.index(c.left, free) + c.shift, elaborator.index(c.right, free))
        for c in syntax.conditions
    )
    check_conditions(elaborator, syntax, conditions, dict(free.values()))
    elaborator.check_masks(conditions)
    return Identity(system, lhs, rhs, (*free.values(), *opened), conditions, text, syntax)


def reader_of(syntax: S.Statement) -> type[Elaborator]:
    """Return what reads a statement: ``fixed(...)`` may stand in one about numbers alone."""
    nodes = list(S.descend(syntax))
    if any(isinstance(n, S.Call) and n.func == "fixed" for n in nodes):
        if not any(isinstance(n, S.Item | S.Deriv | S.Condition) for n in nodes):
            from derive.case_quantity import QuantityReader

            return QuantityReader
    return Elaborator


def bind_free(elaborator: Elaborator, syntax: S.Statement) -> dict[str, tuple[sp.Symbol, Dim]]:
    """Give every free index name its symbol and size."""
    env: dict[str, tuple[sp.Symbol, Dim]] = {}
    names = {n: p for side in S.children(syntax)
             for n, p in free_names(side, elaborator.scope).items()}  # fmt: skip
    waiting = dict(names)
    while waiting:
        done = []
        for name, place in waiting.items():
            if elaborator.axes_of(name, [syntax], env):
                env[name] = (index_symbol(name), elaborator.bind(name, [syntax], env, place))
                done.append(name)
        if not done:
            name, place = next(iter(waiting.items()))
            elaborator.bind(name, [syntax], env, place)
        for name in done:
            del waiting[name]
    return env


def axis_names(axes: tuple[Dim, ...], free: dict[str, tuple[sp.Symbol, Dim]]) -> list[str]:
    """Return one unused index name per open axis."""
    letters = [c for c in "ijklmnopq" if c not in free]
    if len(axes) > len(letters):
        raise DeriveError(f"a statement may have {len(letters)} open axes; found {len(axes)}")
    return letters[: len(axes)]


def common_axes(
    elaborator: Elaborator, syntax: S.Statement, left: Val, right: Val
) -> tuple[Dim, ...]:
    """Return the open axes of both sides; they must agree (a scalar right side is broadcast)."""
    names = [[d.name for d in side.axes] for side in (left, right)]
    if names[0] != names[1] and names[1]:
        raise DeriveError(
            f"the sides have shapes {left.shape} on the left and {right.shape} on the right",
            text=elaborator.text,
            at=syntax.rhs.span[0],
        )
    if left.turned != right.turned and names[1]:
        raise DeriveError(
            f"one side is a row and the other a column: {left.shape} and {right.shape}",
            text=elaborator.text,
            at=syntax.rhs.span[0],
            hint="turn one of them with .T",
        )
    return left.axes


def check_conditions(elaborator: Elaborator, syntax: S.Statement,
                     conditions: tuple[tuple[Expr, Expr], ...], axes: Axes) -> None:  # fmt: skip
    """Refuse conditions on axes without order."""
    for pair, node in zip(conditions, syntax.conditions, strict=True):
        for side in pair:
            base = affine(side).base
            if base in axes and not axes[base].ordered:
                raise elaborator.fail(
                    node,
                    f"{base} runs over {axes[base].name}, an axis without order",
                    f"make {axes[base].name} a position axis",
                )
            sizes = {s.name: d for s, d in ((index_symbol(n), d) for n, d in
                     elaborator.scope.dims.items())}  # fmt: skip
            if base is not None and base.name in sizes and not sizes[base.name].ordered:
                raise elaborator.fail(node, f"{base} is the size of an axis without order")
