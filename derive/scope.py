"""The names that a statement may use, and values with open trailing axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import sympy as sp

from derive import syntax as S
from derive.index import Dim, Expr, Tensor


@dataclass(frozen=True)
class Scope:
    """The names that a statement may use.

    Args:
        dims: Sizes by name.
        tensors: Tensors by name; the loss is the scalar ``L``.
        convention: ``row`` or ``column``: how a vector stands in matrix notation.
    """

    dims: Mapping[str, Dim]
    tensors: Mapping[str, Tensor]
    convention: str = "row"

    def tensor(self, name: str) -> Tensor | None:
        """Return a tensor, or for ``g_X`` the tensor X whose adjoint it is."""
        if name in self.tensors:
            return self.tensors[name]
        return self.tensors.get(name[2:]) if name.startswith("g_") else None

    def is_adjoint(self, name: str) -> bool:
        """Tell whether the name means dL/dX by its ``g_`` prefix."""
        return name not in self.tensors and self.tensor(name) is not None

    def is_name(self, name: str) -> bool:
        """Tell whether the parser may read ``dNAME`` as a differential."""
        return self.tensor(name) is not None


MAX_DEGREE, MAX_BITS = 128, 4096


Build = Callable[[tuple[Expr, ...]], Expr]


@dataclass(frozen=True)
class Val:
    """A value with open trailing axes; ``turned`` is a transposed vector."""

    axes: tuple[Dim, ...]
    build: Build
    turned: bool = False

    @property
    def shape(self) -> str:
        """The shape for messages."""
        if not self.axes:
            return "scalar"
        names = [d.name for d in self.axes] + ([""] if len(self.axes) == 1 else [])
        return "(" + ", ".join(names).rstrip() + ")" + (".T" if self.turned else "")


Env = Mapping[str, tuple[sp.Symbol, Dim]]


def full_sum(body: Expr, symbol: sp.Symbol, dim: Dim) -> Expr:
    """Return the sum over a whole axis."""
    return sp.Sum(body, (symbol, 0, dim.symbol - 1))


def names_of(node: S.Node) -> set[str]:
    """Return every bare name below a node."""
    return {n.name for n in S.descend(node) if isinstance(n, S.Name)}


def bound_name(arg: S.Node) -> str | None:
    """Return the name that a binder's argument binds, if it is one."""
    return arg.name if isinstance(arg, S.Name | S.Range) else None


def bound_names(call: S.Call) -> list[str]:
    """Return the names that a call binds (softmax(s, ...) is an entry at s: it binds none)."""
    if call.func not in S.BINDER_CALLS or call.func == "softmax":
        return []
    return [n for a in call.args[:-1] if (n := bound_name(a)) is not None]


def free_names(
    node: S.Node, scope: Scope, bound: frozenset[str] = frozenset(), index: bool = False
) -> dict[str, S.Node]:
    """Return the index names used freely below a node, in order, with the place of each."""
    found: dict[str, S.Node] = {}
    if isinstance(node, S.Call):
        bound = bound | frozenset(bound_names(node))
        if node.func in ("count", "eye"):
            return {}
    if isinstance(node, S.Name):
        known = (scope.tensor(node.name) is not None and not index) or node.name in scope.dims
        infinite = node.name == "oo" and not index
        return {} if known or infinite or node.name in bound else {node.name: node}
    for child in S.children(node):
        # an index may have the name of a tensor: i[t, i] reads gate i at unit i
        for name, place in free_names(
            child, scope, bound, index or isinstance(node, S.Item)
        ).items():
            found.setdefault(name, place)
    return found
