"""Syntax tree to typed SymPy expression: names resolved, shapes checked, matrix notation opened.

Every value has trailing axes (none, one or two) and a function from their indices to an entry.
Matrix notation is over the trailing axes, as in NumPy. A vector is a row in the row convention and
a column in the column convention; ``.T`` turns it, ``turned.T @ vector`` is then an outer or an
inner product as it is on paper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import sympy as sp

from derive import syntax as S
from derive.binders import BinderReader
from derive.errors import nearest
from derive.functions import TABLE
from derive.index import Expr, affine
from derive.masks import INFINITY
from derive.nodes import (
    Detach,
    Expect,
    Partial,
    Power,
    Total,
    degree,
    freshen,
)
from derive.scope import MAX_BITS, MAX_DEGREE, Env, Val, full_sum


@dataclass
class Elaborator(BinderReader):
    """Elaborates the nodes of one text."""

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
        if node.name == INFINITY and self.scope.tensor(node.name) is None:
            raise self.fail(node, "infinity stands as -oo under a softmax or a logsumexp alone",
                            "write softmax(s, where(s <= t, S[t,s], -oo))")  # fmt: skip
        return self.entries(node, node.name, (), env)

    def on_item(self, node: S.Item, env: Env) -> Val:
        """A tensor with its first indices given."""
        return self.entries(node, node.name, node.args, env)

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
            if exponent.q > 2:
                message = f"an exponent is a whole number or a half; found {exponent}"
                raise self.fail(node.right, message, "write exp(1/3*log(x)) for other roots")
            return Val(base.axes, lambda i: self.raised(node, base.build(i), exponent), base.turned)
        return Val(base.axes, lambda i: Power(base.build(i), exponent), base.turned)

    def raised(self, node: S.Node, base: Expr, exponent: Expr) -> Expr:
        """Return base ** exponent, unless that is a number of thousands of digits."""
        bits = (int(base.p) * int(base.q)).bit_length() if base.is_Rational else 0
        if bits * abs(exponent) > MAX_BITS:
            raise self.fail(node, "this power is a number of thousands of digits")
        if exponent.q == 2:  # SymPy would rewrite the root of a square
            return TABLE["sqrt"](base) ** int(exponent.p)
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
        by = self.scope.tensor(getattr(node.wrt, "name", ""))
        if by is not None and by.binary:
            raise self.fail(node.wrt, f"{by.name} is 0 or 1 everywhere: no derivative by it",
                            "declare it without binary")  # fmt: skip
        make = Total if node.kind == "total" else Partial
        cut = len(of.axes)
        return Val(of.axes + wrt.axes, lambda i: make(of.build(i[:cut]), wrt.build(i[cut:])))

    def on_range(self, node: S.Range, env: Env) -> Val:
        """A range stands only as a binder's first arguments."""
        raise self.fail(node, "a range such as t=0..T-1 belongs before the last argument")

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
        known = [*TABLE, *S.BINDER_CALLS, "delta", "diag", "eye", "count", "sqnorm", "norm",
                 "E", "Var", "Cov", "detach", "min", "max", "where", "gelu",
                 "gelu_tanh", "silu"]  # fmt: skip
        raise self.fail(node, f"unknown function {node.func!r}", nearest(node.func, known))

    def values(self, node: S.Call, env: Env, count: int) -> list[Val]:
        """Elaborate exactly ``count`` arguments."""
        if len(node.args) != count:
            many = "arguments" if count > 1 else "argument"
            raise self.fail(node, f"{node.func} takes {count} {many}; found {len(node.args)}")
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

    def call_norm(self, node: S.Call, env: Env) -> Val:
        """``norm(x)``: the root of the sum of the squares of all entries."""
        square = self.call_sqnorm(node, env)
        return Val((), lambda i: TABLE["sqrt"](square.build(i)))

    def call_max(self, node: S.Call, env: Env) -> Val:
        """``max(a, b)``, entry by entry: (a + b + |a - b|)/2."""
        return self.extremum(node, env, 1)

    def call_min(self, node: S.Call, env: Env) -> Val:
        """``min(a, b)``, entry by entry: (a + b - |a - b|)/2."""
        return self.extremum(node, env, -1)

    def extremum(self, node: S.Call, env: Env, sign: int) -> Val:
        """Return the larger or smaller of two values through the absolute difference."""
        left, right = self.values(node, env, 2)
        total = self.elementwise(S.Bin("+", *node.args, span=node.span), left, right)
        between = self.elementwise(S.Bin("-", *node.args, span=node.span), left, right)

        def build(i: tuple[Expr, ...]) -> Expr:
            return (total.build(i) + sign * TABLE["abs"](between.build(i))) / 2

        return Val(total.axes, build, total.turned)

    def call_where(self, node: S.Call, env: Env) -> Val:
        """``where(a <= b, x, y)``: x where the comparison holds, else y, entry by entry."""
        if len(node.args) != 3 or not isinstance(node.args[0], S.Condition):
            raise self.fail(node, "where takes a comparison and two values",
                            "write where(a <= b, x, y)")  # fmt: skip
        test, args = node.args[0], node.args[1:]
        guard = self.guard(test, env)
        if guard is not None:
            return self.between(node, Val((), lambda _: guard), *args, env=env)
        left, right = (self.value(n, env) for n in (test.left, test.right))
        if test.shift:  # a < b is what is left of b <= a
            left, right, args = right, left, args[::-1]
        apart = self.elementwise(S.Bin("-", *args, span=node.span), right, left)
        holds = Val(apart.axes, lambda i: TABLE["step"](apart.build(i)), apart.turned)
        return self.between(node, holds, *args, env=env)

    def between(self, node: S.Call, holds: Val, yes: S.Node, no: S.Node, *, env: Env) -> Val:
        """Return one value where something holds, else the other."""
        first, second = self.value(yes, env), self.value(no, env)
        minus, times, plus = (S.Bin(op, yes, no, span=node.span) for op in "-*+")
        chosen = self.elementwise(times, holds, self.elementwise(minus, first, second))
        return self.elementwise(plus, second, chosen)

    def on_condition(self, node: S.Condition, env: Env) -> Val:
        """A comparison stands in a where, or after for."""
        raise self.fail(node, "a comparison belongs in where(a <= b, x, y)")

    def call_gelu(self, node: S.Call, env: Env) -> Val:
        """``gelu(x)``: x times the probability that a standard normal number is below it."""
        half, root = sp.Rational(1, 2), TABLE["sqrt"](sp.Integer(2))
        return self.pointwise(node, env, lambda x: half * x * (1 + TABLE["erf"](x / root)))

    def call_gelu_tanh(self, node: S.Call, env: Env) -> Val:
        """``gelu_tanh(x)``: GELU's form with tanh (Hendrycks & Gimpel, 2016, section 2)."""
        # sqrt(2/pi), through erf' at zero, which is 2/sqrt(pi)
        scale = TABLE["erf_slope"](sp.Integer(0)) / TABLE["sqrt"](sp.Integer(2))
        cubic = sp.Rational(44715, 1000000)

        def form(x: Expr) -> Expr:
            return x * (1 + TABLE["tanh"](scale * (x + cubic * x**3))) / 2

        return self.pointwise(node, env, form)

    def call_silu(self, node: S.Call, env: Env) -> Val:
        """``silu(x)``: x sigmoid(x), also called swish."""
        return self.pointwise(node, env, lambda x: x * TABLE["sigmoid"](x))

    def pointwise(self, node: S.Call, env: Env, form: Callable[[Expr], Expr]) -> Val:
        """Apply a formula to each entry of the one argument."""
        (val,) = self.values(node, env, 1)
        return Val(val.axes, lambda i: form(val.build(i)), val.turned)

    def call_E(self, node: S.Call, env: Env) -> Val:  # noqa: N802 - the name in statements
        """``E(x)``: the expected value, entry by entry, over the system's random tensors."""
        (val,) = self.values(node, env, 1)
        return Val(val.axes, lambda i: Expect(val.build(i)), val.turned)

    def call_Cov(self, node: S.Call, env: Env) -> Val:  # noqa: N802 - the name in statements
        """``Cov(x, y)``: E(x y) - E(x) E(y), entry by entry."""
        left, right = self.values(node, env, 2)
        product = self.elementwise(S.Bin("*", *node.args, span=node.span), left, right)

        def build(i: tuple[Expr, ...]) -> Expr:
            x, y = (v.build(i[len(i) - len(v.axes) :]) for v in (left, right))
            again = [freshen(e, self.renewed) for e in (x, y)]
            return Expect(product.build(i)) - Expect(again[0]) * Expect(again[1])

        return Val(product.axes, build, product.turned)

    def call_Var(self, node: S.Call, env: Env) -> Val:  # noqa: N802 - the name in statements
        """``Var(x)``: E(x^2) - E(x)^2, entry by entry."""
        self.values(node, env, 1)
        return self.call_Cov(S.Call("Cov", (*node.args, *node.args), span=node.span), env)

    def call_count(self, node: S.Call, env: Env) -> Val:
        """``count(W, b)``: how many scalars these tensors hold."""
        total = sp.Integer(0)
        for arg in node.args:
            if not isinstance(arg, S.Name):
                raise self.fail(arg, "count takes tensor names")
            total += sp.prod([d.symbol for d in self.lookup(arg, arg.name).dims])
        return Val((), lambda _: total)
