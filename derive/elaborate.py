"""Syntax tree to typed SymPy expression: names resolved, shapes checked, matrix notation opened.

Every value has trailing axes (none, one or two) and a function from their indices to an entry.
Matrix notation is over the trailing axes, as in NumPy. A vector is a row in the row convention and
a column in the column convention; ``.T`` turns it, ``turned.T @ vector`` is then an outer or an
inner product as it is on paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce

import sympy as sp

from derive import syntax as S
from derive.errors import DeriveError, nearest
from derive.functions import TABLE
from derive.index import Dim, Expr, Tensor, affine, index_symbol
from derive.nodes import (
    Detach,
    DProduct,
    LogSumExp,
    Partial,
    Power,
    Product,
    Softmax,
    Total,
    degree,
    freshen,
)


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


@dataclass
class Elaborator:
    """Elaborates the nodes of one text; bound names come out globally fresh."""

    scope: Scope
    text: str
    counter: list[int] = field(default_factory=lambda: [0])
    ordered: set[tuple[str, str]] = field(default_factory=set)
    binding: set[str] = field(default_factory=set)

    def fail(self, node: S.Node, message: str, hint: str = "") -> DeriveError:
        """Return an error that points at a node."""
        return DeriveError(message, text=self.text, at=node.span[0], hint=hint)

    def fresh(self, stem: str) -> sp.Symbol:
        """Return an index symbol that nothing else uses; the apostrophe keeps it out of texts."""
        self.counter[0] += 1
        return index_symbol(f"{stem}'{self.counter[0]}")

    # names and indices

    def check_names(self, node: S.Node) -> None:
        """Refuse indexed names that are not tensors, before their indices are looked at."""
        for item in S.descend(node):
            if isinstance(item, S.Item):
                self.lookup(item, item.name)

    def dims_of(self, name: str, nodes: Iterable[S.Node], env: Env) -> list[Dim]:
        """Return the sizes of the axes that index ``name`` stands on in these nodes."""
        found: list[Dim] = []
        for node in nodes:
            if isinstance(node, S.Call) and any(b == name for b in bound_names(node)):
                continue
            if isinstance(node, S.Item):
                found += self.slots(name, node)
            if isinstance(node, S.Call) and node.func == "delta":
                others = [a.name for a in node.args if isinstance(a, S.Name)]
                if name in others:
                    found += [env[o][1] for o in others if o in env and o != name]
            found += self.linked(name, node, env)
            found += self.dims_of(name, S.children(node), env)
        return found

    def linked(self, name: str, node: S.Node, env: Env) -> list[Dim]:
        """Return the sizes that a comparison or a range passes on: ``s <= t``, ``t=b..T-1``."""
        if isinstance(node, S.Condition) and name in names_of(node):
            return self.sizes_of(names_of(node) - {name}, env)
        found: list[Dim] = []
        if not isinstance(node, S.Call):
            return found
        for arg in node.args[:-1]:
            if isinstance(arg, S.Range) and name in names_of(arg):
                inside = self.dims_of(arg.name, [node.args[-1]], env)
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
        dims = self.dims_of(name, nodes, env)
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

    # values

    def value(self, node: S.Node, env: Env) -> Val:
        """Elaborate a node to a value."""
        handler: Callable[[S.Node, Env], Val] = getattr(self, "on_" + type(node).__name__.lower())
        return handler(node, env)

    def bounded(self, expr: Expr) -> Expr:
        """Return an expression whose degree is within bounds.

        Raises:
            DeriveError: If powers of powers make it too large to expand.
        """
        if expr.has(sp.zoo, sp.nan, sp.oo):
            raise DeriveError("division by zero", text=self.text, at=0)
        if degree(expr) > MAX_DEGREE:
            raise DeriveError(
                f"powers and products reach degree {degree(expr)}; at most {MAX_DEGREE} is read",
                text=self.text,
                at=0,
            )
        return expr

    def scalar(self, node: S.Node, env: Env) -> Expr:
        """Elaborate a node that must have no open axes."""
        val = self.value(node, env)
        if val.axes:
            raise self.fail(node, f"expected a scalar here; found shape {val.shape}")
        return self.bounded(val.build(()))

    def on_num(self, node: S.Num, env: Env) -> Val:
        """An exact number."""
        number = sp.Rational(node.value.numerator, node.value.denominator)
        return Val((), lambda _: number)

    def on_name(self, node: S.Name, env: Env) -> Val:
        """A size, an index as a number, or a whole tensor."""
        if node.name in env:
            symbol = env[node.name][0]
            return Val((), lambda _: symbol)
        if node.name in self.scope.dims and self.scope.tensor(node.name) is None:
            size = self.scope.dims[node.name].symbol
            return Val((), lambda _: size)
        return self.entries(node, node.name, (), env)

    def on_item(self, node: S.Item, env: Env) -> Val:
        """A tensor with its first indices given."""
        return self.entries(node, node.name, node.args, env)

    def lookup(self, node: S.Node, name: str) -> Tensor:
        """Return the tensor of a name or fail with the nearest known one."""
        tensor = self.scope.tensor(name)
        if tensor is None:
            known = [*self.scope.tensors, *("g_" + t for t in self.scope.tensors)]
            raise self.fail(node, f"unknown name {name!r}", nearest(name, known))
        return tensor

    def entries(self, node: S.Node, name: str, args: tuple[S.Node, ...], env: Env) -> Val:
        """A tensor, or an adjoint g_X, with its first indices given."""
        tensor = self.lookup(node, name)
        if len(args) > len(tensor.dims):
            raise self.fail(
                node,
                f"{name} has shape {tensor.shape} and takes {len(tensor.dims)} indices; "
                f"found {len(args)}",
            )
        given = tuple(self.index(a, env) for a in args)
        for arg, expr, dim in zip(args, given, tensor.dims, strict=False):
            self.check_slot(arg, expr, dim, env, f"{name} {tensor.shape}")
        if not self.scope.is_adjoint(name):
            return Val(tensor.dims[len(given) :], lambda rest: tensor.at(*given, *rest))
        loss = self.lookup(node, "L").at()
        return Val(tensor.dims[len(given) :], lambda rest: Total(loss, tensor.at(*given, *rest)))

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

    def on_neg(self, node: S.Neg, env: Env) -> Val:
        """Unary minus."""
        val = self.value(node.arg, env)
        return Val(val.axes, lambda i: -val.build(i), val.turned)

    def on_transpose(self, node: S.Transpose, env: Env) -> Val:
        """``.T``: swap the axes of a matrix, turn a vector."""
        val = self.value(node.arg, env)
        if len(val.axes) == 2:
            return Val(val.axes[::-1], lambda i: val.build((i[1], i[0])))
        if len(val.axes) == 1:
            return Val(val.axes, val.build, not val.turned)
        raise self.fail(node, f".T needs a vector or a matrix; found shape {val.shape}")

    def on_bin(self, node: S.Bin, env: Env) -> Val:
        """A binary operation."""
        if node.op == "^":
            return self.power(node, env)
        left, right = self.value(node.left, env), self.value(node.right, env)
        if node.op == "@":
            return self.matmul(node, left, right)
        if node.op == "/" and isinstance(node.right, S.Num) and node.right.value == 0:
            raise self.fail(node.right, "division by zero")
        if node.op == "/" and right.axes and not left.axes:
            raise self.fail(node, "a division by an array needs an array of the same shape above")
        return self.elementwise(node, left, right)

    def elementwise(self, node: S.Bin, left: Val, right: Val) -> Val:
        """Entry by entry, the shorter shape broadcast over leading axes as in NumPy."""
        big, small = (left, right) if len(left.axes) >= len(right.axes) else (right, left)
        tail = big.axes[len(big.axes) - len(small.axes) :]
        same_turn = big.turned == small.turned or not small.axes or len(big.axes) > 1
        if [d.name for d in tail] != [d.name for d in small.axes] or not same_turn:
            raise self.fail(
                node, f"{node.op!r} needs equal shapes; found {left.shape} and {right.shape}"
            )
        apply: Callable[[Expr, Expr], Expr] = {
            "+": lambda a, b: a + b,
            "-": lambda a, b: a - b,
            "*": lambda a, b: a * b,
            "/": lambda a, b: a / b,
        }[node.op]

        def part(val: Val, i: tuple[Expr, ...]) -> Expr:
            return val.build(i[len(i) - len(val.axes) :])

        return Val(big.axes, lambda i: apply(part(left, i), part(right, i)), big.turned)

    def matmul(self, node: S.Bin, left: Val, right: Val) -> Val:
        """``@``: matrix product, with vectors as on paper in the scope's convention."""
        if not left.axes or not right.axes or len(left.axes) > 2 or len(right.axes) > 2:
            raise self.fail(node, f"'@' needs vectors or matrices; found {left.shape} "
                            f"and {right.shape}", "use * for a scalar factor")  # fmt: skip
        column = self.scope.convention == "column"
        vectors = len(left.axes) == len(right.axes) == 1
        if vectors and left.turned != right.turned and left.turned != column:
            outer_axes = left.axes + right.axes
            return Val(outer_axes, lambda i: left.build((i[0],)) * right.build((i[1],)))
        if (left.turned and not column and len(right.axes) == 2) or (
            vectors and left.turned and right.turned
        ):
            raise self.fail(node, f"shapes {left.shape} and {right.shape} do not multiply")
        return self.contract(node, left, right)

    def contract(self, node: S.Bin, left: Val, right: Val) -> Val:
        """Sum over the last axis of the left and the first of the right."""
        inner, other = left.axes[-1], right.axes[0]
        if inner.name != other.name:
            raise self.fail(
                node,
                f"'@' sums over the last axis of {left.shape} and the first of {right.shape}: "
                f"found {inner.name} and {other.name}",
            )
        rows = len(left.axes) - 1
        turned = (left.turned and rows == 0) or (right.turned and len(right.axes) == 1)
        axes = left.axes[:-1] + right.axes[1:]

        def build(i: tuple[Expr, ...]) -> Expr:
            k = self.fresh("k")
            body = left.build((*i[:rows], k)) * right.build((k, *i[rows:]))
            return full_sum(body, k, inner)

        return Val(axes, build, turned and len(axes) == 1)

    def power(self, node: S.Bin, env: Env) -> Val:
        """``x^n``, entry by entry; n an integer, or an index expression such as T-t."""
        base = self.value(node.left, env)
        exponent = self.exponent(node.right, env)
        if exponent.is_Rational:
            if abs(exponent) > 64:
                raise self.fail(node.right, f"exponents go to 64; found {exponent}")
            return Val(base.axes, lambda i: self.raised(node, base.build(i), exponent), base.turned)
        return Val(base.axes, lambda i: Power(base.build(i), exponent), base.turned)

    def raised(self, node: S.Node, base: Expr, exponent: Expr) -> Expr:
        """Return base ** exponent, unless that is a number of thousands of digits."""
        if (
            base.is_Rational
            and int(abs(exponent)) * (int(base.p) * int(base.q)).bit_length() > 4096
        ):
            raise self.fail(node, "this power is a number of thousands of digits")
        reached = degree(base) * abs(exponent)
        if reached > MAX_DEGREE:
            raise self.fail(node, f"powers of powers reach degree {reached}; at most {MAX_DEGREE}")
        return base**exponent

    def exponent(self, node: S.Node, env: Env) -> Expr:
        """Elaborate an exponent."""
        if isinstance(node, S.Num):
            return sp.Rational(node.value.numerator, node.value.denominator)
        if isinstance(node, S.Bin) and node.op == "/":
            return self.exponent(node.left, env) / self.exponent(node.right, env)
        return self.position(node, env)

    def on_deriv(self, node: S.Deriv, env: Env) -> Val:
        """``dA/dB`` or ``partial A/partial B``: axes of A, then of B (numerator layout)."""
        of, wrt = self.value(node.of, env), self.value(node.wrt, env)
        make = Total if node.kind == "total" else Partial
        cut = len(of.axes)
        return Val(of.axes + wrt.axes, lambda i: make(of.build(i[:cut]), wrt.build(i[cut:])))

    def on_range(self, node: S.Range, env: Env) -> Val:
        """A range stands only as a binder's first arguments."""
        raise self.fail(node, "a range such as t=0..T-1 belongs before the last argument")

    # calls

    def on_call(self, node: S.Call, env: Env) -> Val:
        """A function, binder or constructor."""
        if node.func in S.BINDER_CALLS:
            return self.binder(node, env)
        special: Callable[[S.Call, Env], Val] | None = getattr(self, "call_" + node.func, None)
        if special is not None:
            return special(node, env)
        if node.func in TABLE or node.func == "detach":
            apply = Detach if node.func == "detach" else TABLE[node.func]
            (val,) = self.values(node, env, 1)
            return Val(val.axes, lambda i: apply(val.build(i)), val.turned)
        known = [*TABLE, *S.BINDER_CALLS, "delta", "diag", "eye", "count", "sqnorm", "detach"]
        raise self.fail(node, f"unknown function {node.func!r}", nearest(node.func, known))

    def values(self, node: S.Call, env: Env, count: int) -> list[Val]:
        """Elaborate exactly ``count`` arguments."""
        if len(node.args) != count:
            raise self.fail(node, f"{node.func} takes {count} argument; found {len(node.args)}")
        return [self.value(a, env) for a in node.args]

    def call_delta(self, node: S.Call, env: Env) -> Val:
        """``delta(i, j)``: one where the indices agree."""
        if len(node.args) != 2:
            raise self.fail(node, f"delta takes 2 indices; found {len(node.args)}")
        i, j = (self.index(a, env) for a in node.args)
        dims = {env[n.name][1].name for n in node.args if isinstance(n, S.Name) and n.name in env}
        if len(dims) > 1:
            raise self.fail(node, f"delta compares indices of one size; found {sorted(dims)}")
        self.check_delta(node, (i, j), env)
        return Val((), lambda _: sp.KroneckerDelta(i, j))

    def check_delta(self, node: S.Call, pair: tuple[Expr, Expr], env: Env) -> None:
        """Refuse to compare a feature index with a size, or with a number that may not be there."""
        sizes = {sym: d for sym, d in env.values()}
        features = [
            sizes[b] for e in pair if (b := affine(e).base) in sizes and not sizes[b].ordered
        ]
        for expr in pair if features else ():
            place = affine(expr)
            if place.base not in sizes and not (place.base is None and place.offset == 0):
                raise self.fail(
                    node,
                    f"delta compares an index over {features[0].name} with {expr}, which may "
                    "not be one of its values",
                    "compare with another index, or with 0",
                )

    def call_diag(self, node: S.Call, env: Env) -> Val:
        """``diag(v)``: the vector on the diagonal."""
        (val,) = self.values(node, env, 1)
        if len(val.axes) != 1:
            raise self.fail(node, f"diag takes a vector; found shape {val.shape}")
        return Val(val.axes * 2, lambda i: sp.KroneckerDelta(*i) * val.build((i[0],)))

    def call_eye(self, node: S.Call, env: Env) -> Val:
        """``eye(H)``: the identity matrix."""
        (arg,) = node.args if len(node.args) == 1 else (node,)
        if not isinstance(arg, S.Name) or arg.name not in self.scope.dims:
            raise self.fail(node, "eye takes one size name")
        dim = self.scope.dims[arg.name]
        return Val((dim, dim), lambda i: sp.KroneckerDelta(*i))

    def call_sqnorm(self, node: S.Call, env: Env) -> Val:
        """``sqnorm(x)``: the sum of the squares of all entries (squared Frobenius norm)."""
        (val,) = self.values(node, env, 1)

        def build(_: tuple[Expr, ...]) -> Expr:
            names = tuple(self.fresh("i") for _ in val.axes)
            body = val.build(names) ** 2
            return reduce(lambda b, nd: full_sum(b, *nd), zip(names, val.axes, strict=True), body)

        return Val((), build)

    def call_count(self, node: S.Call, env: Env) -> Val:
        """``count(W, b)``: how many scalars these tensors hold."""
        total = sp.Integer(0)
        for arg in node.args:
            if not isinstance(arg, S.Name):
                raise self.fail(arg, "count takes tensor names")
            total += sp.prod([d.symbol for d in self.lookup(arg, arg.name).dims])
        return Val((), lambda _: total)

    # binders

    def binder(self, node: S.Call, env: Env) -> Val:
        """``sum``, ``mean``, ``var``, ``prod``, ``softmax``, ``logsumexp``."""
        *bound, body = node.args
        if not bound and node.func in ("softmax", "logsumexp"):
            return self.over_last_axis(node, self.value(body, env))
        if not bound:
            raise self.fail(node, f"{node.func} needs a bound index first: {node.func}(t, ...)")
        if node.func == "softmax" and len(bound) == 1 and isinstance(bound[0], S.Name):
            return self.softmax_at(node, bound[0], body, env)
        inner, limits = dict(env), []
        for place, arg in enumerate(bound):
            name = bound_name(arg)
            if name is None:
                raise self.fail(arg, f"expected a bound index such as t or t=0..T-1 in {node.func}")
            self.binding.add(name)
            dim = self.bind(name, [*bound[place + 1 :], body], inner, arg)
            symbol = self.fresh(name)
            limits.append((symbol, dim, *self.limits(arg, dim, inner)))
            inner[name] = (symbol, dim)
        if node.func == "prod":
            return self.product(node, limits, self.value(body, inner))
        return self.reduced(node, limits, self.value(body, inner))

    def limits(self, arg: S.Node, dim: Dim, env: Env) -> tuple[Expr, Expr]:
        """Return first and last of a bound index."""
        if isinstance(arg, S.Range) and arg.first is not None and arg.last is not None:
            if not dim.ordered:
                raise self.fail(arg, f"a range needs a position axis; {dim.name} has no order")
            return self.index(arg.first, env), self.index(arg.last, env)
        return sp.Integer(0), dim.symbol - 1

    def reduced(
        self, node: S.Call, limits: list[tuple[sp.Symbol, Dim, Expr, Expr]], val: Val
    ) -> Val:
        """Sum, mean or variance of a body over bound indices."""
        if node.func == "logsumexp":
            if len(limits) > 1:
                raise self.fail(node, "logsumexp takes one bound index")
            return Val(
                val.axes, lambda i: LogSumExp(val.build(i), limits[0][0], limits[0][1].symbol)
            )
        if node.func not in ("sum", "mean", "var") or (node.func != "sum" and len(limits) > 1):
            raise self.fail(node, f"{node.func} takes one bound index")
        full = all(first == 0 and last == dim.symbol - 1 for _, dim, first, last in limits)
        if node.func != "sum" and not full:
            raise self.fail(node, f"{node.func} is over the whole axis: no range")

        def total(body: Expr) -> Expr:
            for symbol, _, first, last in reversed(limits):
                body = sp.Sum(body, (symbol, first, last))
            return body

        size = limits[0][1].symbol
        if node.func == "sum":
            return Val(val.axes, lambda i: total(val.build(i)), val.turned)
        if node.func == "mean":
            return Val(val.axes, lambda i: total(val.build(i)) / size, val.turned)

        def variance(i: tuple[Expr, ...]) -> Expr:
            entry = val.build(i)
            return total((entry - freshen(total(entry), self.renewed) / size) ** 2) / size

        return Val(val.axes, variance, val.turned)

    def renewed(self, symbol: sp.Symbol) -> sp.Symbol:
        """Return a fresh symbol with the letter of this one."""
        return self.fresh(symbol.name.split("'")[0])

    def product(
        self, node: S.Call, limits: list[tuple[sp.Symbol, Dim, Expr, Expr]], val: Val
    ) -> Val:
        """``prod(k=a..b, M)``: ordered, leftmost factor first; descending if b is before a."""
        arg = node.args[0]
        if len(limits) != 1 or not isinstance(arg, S.Range):
            raise self.fail(node, "prod takes one range: prod(k=t..s+1, M), leftmost factor first")
        symbol, _, first, last = limits[0]
        make = DProduct if self.descends(arg, first, last) else Product
        if not val.axes:
            one, zero = sp.Integer(1), sp.Integer(0)
            row, col = self.fresh("i"), self.fresh("j")
            body = val.build(())
            return Val((), lambda _: make(body, row, col, symbol, first, last, zero, zero, one))
        if len(val.axes) != 2 or val.axes[0].name != val.axes[1].name:
            raise self.fail(node, f"prod multiplies square matrices; found shape {val.shape}")
        row, col = self.fresh("i"), self.fresh("j")
        entry, size = val.build((row, col)), val.axes[0].symbol
        return Val(val.axes, lambda i: make(entry, row, col, symbol, first, last, *i, size))

    def descends(self, arg: S.Range, first: Expr, last: Expr) -> bool:
        """Tell whether a product's factors run from late to early positions.

        ``k=t..s+1`` starts at a position and ends one past another: it goes down. ``k=s+1..t``
        goes up, and so does a start at a number or an end at T-1. A condition ``for s <= t``
        decides what the offsets leave open.
        """
        a, b = affine(first), affine(last)
        if a.base is None or (b.base is not None and b.base.is_positive):
            return False
        if b.base is None or a.base.is_positive:
            return True
        if a.base == b.base:
            return a.offset > b.offset
        if (a.base.name, b.base.name) in self.ordered:
            return False
        if (b.base.name, a.base.name) in self.ordered:
            return True
        if a.offset != b.offset:
            return a.offset < b.offset
        raise self.fail(arg, "cannot tell whether this product goes up or down",
                        f"add a condition: for {b.base.name} <= {a.base.name}")  # fmt: skip

    def softmax_at(self, node: S.Call, index: S.Name, body: S.Node, env: Env) -> Val:
        """``softmax(s, S[t, s])``: its entry at the free index s."""
        if index.name not in env:
            raise self.fail(index, f"softmax(s, ...) is an entry at s; {index.name!r} is unknown")
        at, dim = env[index.name]
        symbol = self.fresh(index.name)
        inner = {**env, index.name: (symbol, dim)}
        expr = self.scalar(body, inner)
        return Val((), lambda _: Softmax(expr, symbol, at, dim.symbol))

    def over_last_axis(self, node: S.Call, val: Val) -> Val:
        """``softmax(a[t])``, ``logsumexp(a[t])`` over the last axis."""
        if not val.axes:
            raise self.fail(node, f"{node.func}(x) needs an axis; found a scalar",
                            f"write {node.func}(c, a[t,c])")  # fmt: skip
        rest, size = val.axes[:-1], val.axes[-1].symbol

        def build(i: tuple[Expr, ...]) -> Expr:
            k = self.fresh("k")
            if node.func == "softmax":
                return Softmax(val.build((*i[:-1], k)), k, i[-1], size)
            return LogSumExp(val.build((*i, k)), k, size)

        return Val(val.axes if node.func == "softmax" else rest, build)


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
        return {} if known or node.name in bound else {node.name: node}
    for child in S.children(node):
        # an index may have the name of a tensor: i[t, i] reads gate i at unit i
        for name, place in free_names(
            child, scope, bound, index or isinstance(node, S.Item)
        ).items():
            found.setdefault(name, place)
    return found
