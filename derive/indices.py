"""Names and indices of a statement: which axis each runs over, what stands in each slot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import sympy as sp

from derive import syntax as S
from derive.errors import DeriveError, nearest
from derive.index import Dim, Expr, Tensor, affine, index_symbol
from derive.scope import Env, Scope, bound_names, names_of


@dataclass
class IndexReader:
    """Reads the names and indices of one text; bound names come out globally fresh."""

    scope: Scope
    text: str
    counter: list[int] = field(default_factory=lambda: [0])
    ordered: set[tuple[str, str]] = field(default_factory=set)
    compared: set[S.Condition] = field(default_factory=set)
    binding: set[str] = field(default_factory=set)
    masks: list[tuple[S.Node, Expr, sp.Symbol, Env]] = field(default_factory=list)

    def fail(self, node: S.Node, message: str, hint: str = "") -> DeriveError:
        """Return an error that points at a node."""
        return DeriveError(message, text=self.text, at=node.span[0], hint=hint)

    def fresh(self, stem: str) -> sp.Symbol:
        """Return an index symbol that nothing else uses; the apostrophe keeps it out of texts."""
        self.counter[0] += 1
        return index_symbol(f"{stem}'{self.counter[0]}")

    def renewed(self, symbol: sp.Symbol) -> sp.Symbol:
        """Return a fresh symbol with the letter of this one."""
        return self.fresh(symbol.name.split("'")[0])

    def check_names(self, node: S.Node) -> None:
        """Refuse indexed names that are not tensors, before their indices are looked at."""
        for item in S.descend(node):
            if isinstance(item, S.Item):
                self.lookup(item, item.name)

    def dims_of(
        self, name: str, nodes: Iterable[S.Node], env: Env, links: bool = False
    ) -> list[Dim]:
        """Return the sizes of the axes that index ``name`` stands on in these nodes.

        With `links`, those too that a comparison or a range passes on: where it stands on no axis.
        """
        found: list[Dim] = []
        for node in nodes:
            if isinstance(node, S.Call):
                self.compared.update(a for a in node.args if isinstance(a, S.Condition))
            if isinstance(node, S.Call) and any(b == name for b in bound_names(node)):
                continue
            if isinstance(node, S.Item):
                found += self.slots(name, node)
            if isinstance(node, S.Call) and node.func == "delta":
                others = [a.name for a in node.args if isinstance(a, S.Name)]
                if name in others:
                    found += [env[o][1] for o in others if o in env and o != name]
            # a comparison in where(...) is of values; one after "for" is of positions
            if links and not (isinstance(node, S.Condition) and node in self.compared):
                found += self.linked(name, node, env)
            found += self.dims_of(name, S.children(node), env, links)
        return found

    def axes_of(self, name: str, nodes: list[S.Node], env: Env) -> list[Dim]:
        """Return the sizes of the axes of an index: where it stands, else what passes one on."""
        return self.dims_of(name, nodes, env) or self.dims_of(name, nodes, env, links=True)

    def linked(self, name: str, node: S.Node, env: Env) -> list[Dim]:
        """Return the sizes that a comparison or a range passes on: ``s <= t``, ``t=b..T-1``."""
        if isinstance(node, S.Condition) and name in names_of(node):
            return self.sizes_of(names_of(node) - {name}, env)
        found: list[Dim] = []
        if not isinstance(node, S.Call):
            return found
        for arg in node.args[:-1]:
            if isinstance(arg, S.Range) and name in names_of(arg):
                inside = self.dims_of(arg.name, [node.args[-1]], env, links=True)
                found += inside or self.sizes_of(names_of(arg) - {name}, env)
        return found

    def sizes_of(self, names: set[str], env: Env) -> list[Dim]:
        """Return the position axes that these index or size names belong to.

        Where they tell nothing (``s=0..t``) and there is one position axis, it is that.
        """
        ordered = [d for d in self.scope.dims.values() if d.ordered]
        found = [env[n][1] for n in names if n in env] + [d for d in ordered if d.name in names]
        return found or (ordered if len(ordered) == 1 else [])

    def slots(self, name: str, item: S.Item) -> list[Dim]:
        """Return the sizes of the slots of one item in which the index stands."""
        tensor = self.scope.tensor(item.name)
        if tensor is None:
            return []
        pairs = zip(item.args, tensor.dims, strict=False)
        return [d for a, d in pairs if any(isinstance(n, S.Name) and n.name == name
                                           for n in S.descend(a))]  # fmt: skip

    def bind(self, name: str, nodes: Iterable[S.Node], env: Env, where: S.Node) -> Dim:
        """Return the size that an index runs over, inferred from where it stands.

        Raises:
            DeriveError: If it stands nowhere, or on axes of two sizes.
        """
        nodes = list(nodes)
        dims = self.axes_of(name, nodes, env)
        if not dims and isinstance(where, S.Range):
            dims = self.sizes_of(names_of(where), env)
        names = sorted({d.name for d in dims})
        if not names and name in self.binding:
            message = f"nothing tells which axis {name} runs over"
            raise self.fail(
                where, message, f"use {name} as an index, or give a range: {name}=0..T-1"
            )
        if not names:
            known = [*self.scope.tensors, *self.scope.dims]
            raise self.fail(where, f"unknown name {name!r}", nearest(name, known))
        if len(names) > 1:
            raise self.fail(
                where, f"index {name} runs over {names[0]} in one place and {names[1]} in another"
            )
        return dims[0]

    def index(self, node: S.Node, env: Env) -> Expr:
        """Elaborate an index: a name, a size or an integer, plus or minus integers."""
        expr = self.position(node, env)
        try:
            affine(expr)
        except DeriveError as error:
            raise self.fail(node, error.message) from None
        return expr

    def position(self, node: S.Node, env: Env) -> Expr:
        """Elaborate integer arithmetic on positions (an exponent such as ``T-t`` too)."""
        if isinstance(node, S.Num) and node.value.denominator == 1:
            return sp.Integer(node.value.numerator)
        if isinstance(node, S.Name) and node.name in env:
            return env[node.name][0]
        if isinstance(node, S.Name) and node.name in self.scope.dims:
            return self.scope.dims[node.name].symbol
        if isinstance(node, S.Neg):
            return -self.position(node.arg, env)
        if isinstance(node, S.Bin) and node.op in "+-":
            left, right = self.position(node.left, env), self.position(node.right, env)
            return left + right if node.op == "+" else left - right
        if isinstance(node, S.Name):
            known = [*env, *self.scope.dims]
            raise self.fail(node, f"unknown index {node.name!r}", nearest(node.name, known))
        raise self.fail(node, "an index is a name plus or minus an integer, such as t-1")

    def lookup(self, node: S.Node, name: str) -> Tensor:
        """Return the tensor of a name or fail with the nearest known one."""
        tensor = self.scope.tensor(name)
        if tensor is None:
            known = [*self.scope.tensors, *("g_" + t for t in self.scope.tensors)]
            raise self.fail(node, f"unknown name {name!r}", nearest(name, known))
        return tensor

    def check_slot(self, node: S.Node, expr: Expr, dim: Dim, env: Env, what: str) -> None:
        """Refuse an index that runs over another size than the axis, or an offset on features."""
        place = affine(expr)
        sizes = {sym: d for sym, d in env.values()}
        if place.base in sizes and sizes[place.base].name != dim.name:
            other = sizes[place.base].name
            raise self.fail(node, f"this axis of {what} has size {dim.name}; "
                            f"the index here runs over {other}")  # fmt: skip
        if place.base is not None and place.base not in sizes and place.base != dim.symbol:
            raise self.fail(node, f"this axis of {what} has size {dim.name}; found {place.base}")
        if place.base is None and place.offset < 0 and not dim.ordered:
            raise self.fail(node, f"axis {dim.name} of {what} starts at 0; found {place.offset}")
        if place.base is not None and place.offset and not dim.ordered:
            raise self.fail(node, f"axis {dim.name} of {what} has no order: {expr} means nothing")
