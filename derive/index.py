"""Sizes, indices and tensors in index notation: the typed leaves of every SymPy expression here.

A SymPy expression in this package is built from `Dim` symbols (sizes), `Index` symbols and
`Indexed` tensor entries. Expressions are only ever walked: never `doit`, `subs`, `diff` or
`simplify`, which capture bound names and rewrite what a lecturer wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeAlias

import sympy as sp

from derive.errors import DeriveError

Expr: TypeAlias = Any  # a SymPy expression: SymPy ships no types


@cache
def index_symbol(name: str) -> sp.Symbol:
    """Return the one integer symbol of an index name."""
    return sp.Symbol(name, integer=True)


@cache
def size_symbol(name: str) -> sp.Symbol:
    """Return the one positive integer symbol of a size name."""
    return sp.Symbol(name, integer=True, positive=True)


@dataclass(frozen=True)
class Dim:
    """A symbolic size. An ordered one is a position axis: its indices have offsets (t-1, T-1)."""

    name: str
    ordered: bool = False

    @property
    def symbol(self) -> sp.Symbol:
        """The size as a positive integer symbol."""
        return size_symbol(self.name)


@dataclass(frozen=True)
class Index:
    """An index name that runs over a size, from 0 to size - 1."""

    name: str
    dim: Dim

    @property
    def symbol(self) -> sp.Symbol:
        """The index as an integer symbol."""
        return index_symbol(self.name)


@dataclass(frozen=True)
class Affine:
    """An index expression ``base + offset``; base is an index or size symbol, or None."""

    base: sp.Symbol | None
    offset: int

    @property
    def expr(self) -> Expr:
        """The SymPy form."""
        return sp.Integer(self.offset) if self.base is None else self.base + self.offset


def affine(expr: Expr) -> Affine:
    """Split an index expression into base and integer offset.

    Raises:
        DeriveError: If it is not ``name``, ``name + integer`` or ``integer``.
    """
    expr = sp.S(expr)
    if expr.is_Symbol:
        return Affine(expr, 0)
    if expr.is_Integer:
        return Affine(None, int(expr))
    if expr.is_Add and len(expr.args) == 2:
        number, symbol = expr.args
        if number.is_Integer and symbol.is_Symbol:
            return Affine(symbol, int(number))
    raise DeriveError(
        f"an index must be a name, a name plus or minus an integer, or an integer; found {expr}"
    )


@dataclass(frozen=True)
class Tensor:
    """A named array with one size per axis.

    Args:
        name: As written in statements.
        dims: One `Dim` per axis; () is a scalar.
        first: Lowest position on the leading ordered axis; -1 where an initial value is given.
        role: ``input``, ``parameter``, ``state`` (has an equation), ``target`` or ``loss``.
        meaning: One line for `derive list quantities`.
        onehot: The last axis is a one-hot row (sums to one, idempotent).
        permutation: One-hot along the last axis and along the one before it.
        binary: Every entry is 0 or 1.
        nonnegative: No entry is negative; drawn ones are positive.
    """

    name: str
    dims: tuple[Dim, ...]
    first: int = 0
    role: str = "input"
    meaning: str = ""
    onehot: bool = False
    permutation: bool = False
    binary: bool = False
    nonnegative: bool = False

    def __post_init__(self) -> None:
        """Refuse a name that the statement language could not read."""
        if not self.name.isidentifier():
            raise DeriveError(f"a tensor's name must be an identifier; found {self.name!r}")
        if self.first and not (self.dims and self.dims[0].ordered):
            raise DeriveError(f"{self.name} has an initial value but no position axis")
        if self.permutation and (len(self.dims) < 2 or self.dims[-1] != self.dims[-2]):
            raise DeriveError(
                f"a permutation is a square matrix; {self.name} has shape {self.shape}"
            )

    @cached_property
    def base(self) -> sp.IndexedBase:
        """The SymPy base."""
        return sp.IndexedBase(self.name)

    @property
    def shape(self) -> str:
        """The shape as written in reports: ``(T, H)``, or ``scalar``."""
        return "(" + ", ".join(d.name for d in self.dims) + ")" if self.dims else "scalar"

    def __getitem__(self, indices: Index | Expr | int | tuple[Index | Expr | int, ...]) -> Expr:
        """Return an entry; indices that are `Index` are checked against the axis they stand on."""
        given = indices if isinstance(indices, tuple) else (indices,)
        return self.at(*given)

    def at(self, *given: Index | Expr | int) -> Expr:
        """Return the entry at these indices (none for a scalar).

        Raises:
            DeriveError: On a wrong number of indices, or an index of another size.
        """
        if len(given) != len(self.dims):
            raise DeriveError(
                f"{self.name} has shape {self.shape} and takes {len(self.dims)} indices; "
                f"found {len(given)}"
            )
        for place, dim in zip(given, self.dims, strict=True):
            if isinstance(place, Index) and place.dim.name != dim.name:
                raise DeriveError(
                    f"index {place.name} runs over {place.dim.name}, but this axis of "
                    f"{self.name} {self.shape} has size {dim.name}"
                )
        if not given:
            return scalar_symbol(self.name)
        return self.base[tuple(g.symbol if isinstance(g, Index) else g for g in given)]


@cache
def scalar_symbol(name: str) -> sp.Symbol:
    """Return the one real symbol of a scalar tensor."""
    return sp.Symbol(name, real=True)
