"""A system at explicit sizes: every entry evaluated, every derivative by a scalar tape.

This is the second reading of the equations. It shares nothing with the normal form or the symbolic
deriver: it walks the typed expressions entry by entry over a `derive.rings.Ring`, keeps the local
derivatives of each entry, and sweeps them backward. Printed digits, counterexamples and the second
prover come from here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cached_property

from derive.draws import Drawn, expected
from derive.equation import System
from derive.errors import DeriveError
from derive.functions import TABLE
from derive.index import Expr
from derive.instances import Env, instances
from derive.nodes import entry_indices, kind, tensor_name
from derive.rings import SLOPES, Element, Ring
from derive.statement import Identity

Entry = tuple[str, tuple[int, ...]]


Partials = dict[Entry, Element]


Dual = tuple[Element, Partials]


# a stack of blocks is a long chain of values, each read by the next; MAX_ENTRIES bounds it
sys.setrecursionlimit(max(sys.getrecursionlimit(), 20_000))
MAX_ENTRIES, MAX_FACTORS = 200_000, 20_000


class Explicit:
    """A system at explicit sizes over a ring.

    Args:
        system: With its loss selected if ``L`` is read.
        sizes: A positive integer for each size name.
        ring: Constants, given entries, functions.
        overrides: Entries whose value an assumption fixes.
        shared: Values of the claim's own indices that the assumptions use by name.
    """

    def __init__(
        self,
        system: System,
        sizes: Mapping[str, int],
        ring: Ring,
        overrides: tuple[Identity, ...] = (),
        shared: Env | None = None,
    ):
        self.system, self.sizes, self.ring = system, dict(sizes), ring
        self.size_env: Env = {d.symbol: sizes[n] for n, d in system.dims.items()}
        self.entries: dict[Entry, Dual] = {}
        self.order: list[Entry] = []
        self.busy: set[Entry] = set()
        self.sweeps: dict[Entry, Partials] = {}
        self.assumed: dict[tuple[Entry, Entry], tuple[Expr, Env]] = {}
        self.overrides, self.shared = overrides, shared or {}
        self.fixed = self._fixed(overrides, self.shared)

    @cached_property
    def drawn(self) -> Explicit:
        """The same system over polynomials in its random entries."""
        ring = Drawn(self.ring, frozenset(self.system.random))
        return Explicit(self.system, self.sizes, ring, self.overrides, self.shared)

    def _fixed(self, overrides: tuple[Identity, ...], shared: Env) -> dict[Entry, tuple[Expr, Env]]:
        """Return the entries that assumptions fix, with their right sides."""
        found: dict[Entry, tuple[Expr, Env]] = {}
        for identity in overrides:
            name, derivative = tensor_name(identity.lhs), kind(identity.lhs) == "Total"
            if name is None and not derivative:
                raise DeriveError(
                    f"an assumption at explicit sizes fixes one entry; found {identity.text!r}"
                )
            for env in instances(identity, self.sizes):
                if any(env[s] != i for s, i in shared.items() if s in env):
                    continue
                full = {**self.size_env, **env}
                if derivative:
                    of, wrt = (self.place(a, full) for a in identity.lhs.args)
                    self.assumed[of, wrt] = (identity.rhs, full)
                else:
                    found[self.place(identity.lhs, full)] = (identity.rhs, full)
        return found

    # entries

    def entry(self, name: str, index: tuple[int, ...]) -> Element:
        """Return the value of an entry.

        Raises:
            DeriveError: Outside the tensor's positions, or on an unknown name.
        """
        return self.local((name, index))[0]

    def local(self, entry: Entry) -> Dual:
        """Return an entry's value and its derivatives by the entries that it reads directly."""
        known = self.entries.get(entry)
        if known is not None:
            return known
        if len(self.entries) > MAX_ENTRIES:
            raise DeriveError(f"more than {MAX_ENTRIES} entries at these sizes")
        if entry in self.busy:
            raise DeriveError(f"{entry[0]} is assumed in terms of itself")
        self.busy.add(entry)
        try:
            dual = self._computed(entry)
        finally:
            self.busy.discard(entry)
        self.entries[entry] = dual
        self.order.append(entry)
        return dual

    def _computed(self, entry: Entry) -> Dual:
        name, index = entry
        if entry in self.fixed:
            expr, env = self.fixed[entry]
            return self.dual(expr, env)[0], {}
        self.check_index(name, index)
        equation = self.system.by_name.get(name) or self.system.derived_by_name.get(name)
        if equation is None or (index and equation.tensor.first < 0 and index[0] < 0):
            if self.system.initial.get(name) == "zeros":
                return self.ring.zero, {}
            return self.ring.given(name, index), {}
        env = dict(zip(equation.indices, index, strict=True))
        return self.dual(equation.rhs, {**self.size_env, **env})

    def check_index(self, name: str, index: tuple[int, ...]) -> None:
        """Refuse an index outside the tensor."""
        tensor = self.system.tensors.get(name)
        if tensor is None:
            raise DeriveError(f"unknown tensor {name!r}")
        for slot, (i, dim) in enumerate(zip(index, tensor.dims, strict=True)):
            first = tensor.first if slot == 0 else 0
            if not first <= i < self.sizes[dim.name]:
                shown = ",".join(map(str, index))
                raise DeriveError(
                    f"{name}[{shown}] is outside {tensor.shape} at "
                    f"{dim.name}={self.sizes[dim.name]} (positions from {first})"
                )

    def index(self, expr: Expr, env: Env) -> int:
        """Evaluate an index expression."""
        if expr.is_Integer:
            return int(expr)
        if expr.is_Symbol:
            return env[expr]
        if expr.is_Add:
            return sum(self.index(a, env) for a in expr.args)
        if expr.is_Mul and len(expr.args) == 2 and expr.args[0] == -1:
            return -self.index(expr.args[1], env)
        raise DeriveError(f"cannot read {expr} as an index")

    # derivatives

    def sweep(self, entry: Entry) -> Partials:
        """Return the derivative of one entry by every entry below it (reverse accumulation)."""
        if entry not in self.sweeps:
            self.local(entry)
            adjoint: Partials = {entry: self.ring.one}
            for node in reversed(self.order[: self.order.index(entry) + 1]):
                if node in adjoint:
                    for read, slope in self.entries[node][1].items():
                        part = adjoint[node] * slope
                        adjoint[read] = adjoint[read] + part if read in adjoint else part
            self.sweeps[entry] = adjoint
        return self.sweeps[entry]

    def total(
        self, of: str, of_index: tuple[int, ...], wrt: str, wrt_index: tuple[int, ...]
    ) -> Element:
        """Return a total derivative, zero where there is no path."""
        self.check_boundary(wrt, wrt_index)
        if ((of, of_index), (wrt, wrt_index)) in self.assumed:
            expr, env = self.assumed[(of, of_index), (wrt, wrt_index)]
            return self.dual(expr, env)[0]
        return self.sweep((of, of_index)).get((wrt, wrt_index), self.ring.zero)

    def check_boundary(self, name: str, index: tuple[int, ...]) -> None:
        """Check an adjoint's index: one past the last position is the zero boundary."""
        tensor = self.system.tensors[name]
        if index and tensor.dims[0].ordered and index[0] == self.sizes[tensor.dims[0].name]:
            index = (index[0] - 1, *index[1:])
        self.check_index(name, index)

    # expressions

    def value(self, expr: Expr, env: Env) -> Element:
        """Evaluate an expression with its index symbols given."""
        return self.dual(expr, {**self.size_env, **env})[0]

    def dual(self, expr: Expr, env: Env) -> Dual:
        """Evaluate an expression and its derivatives by the entries that it reads."""
        name = tensor_name(expr)
        if name is not None:
            entry = (name, tuple(self.index(i, env) for i in entry_indices(expr)))
            return self.local(entry)[0], {entry: self.ring.one}
        if expr.is_Rational:
            return self.ring.constant(Fraction(int(expr.p), int(expr.q))), {}
        if expr.is_Symbol:
            return self.ring.constant(Fraction(env[expr])), {}
        if kind(expr) in TABLE:
            return self.applied(kind(expr), self.dual(expr.args[0], env))
        row = ROWS.get(kind(expr))
        if row is None:
            raise DeriveError(f"no rule to evaluate {kind(expr)}")
        return row(self, expr, env)

    def applied(self, function: str, inner: Dual) -> Dual:
        """Apply an elementwise function with its slope."""
        x, partials = inner
        f = self.ring.apply(function, x)
        if not partials:
            return f, {}
        slope = SLOPES[function](x, f, self.ring)
        return f, {e: slope * p for e, p in partials.items()}

    def derivative(self, expr: Expr, env: Env) -> Element:
        """Evaluate a total derivative node."""
        (of, i), (wrt, j) = (self.place(a, env) for a in expr.args)
        return self.total(of, i, wrt, j)

    def place(self, expr: Expr, env: Env) -> Entry:
        """Return the entry that an expression is."""
        return str(tensor_name(expr)), tuple(self.index(i, env) for i in entry_indices(expr))

    def local_derivative(self, expr: Expr, env: Env) -> Element:
        """Evaluate a local derivative node."""
        of, wrt = (self.place(a, env) for a in expr.args)
        return self.local(of)[1].get(wrt, self.ring.zero)


def add(parts: list[Dual], zero: Element) -> Dual:
    """Add duals."""
    total, partials = zero, Partials()
    for value, slopes in parts:
        total = total + value
        for entry, slope in slopes.items():
            partials[entry] = partials[entry] + slope if entry in partials else slope
    return total, partials


def multiply(left: Dual, right: Dual) -> Dual:
    """Multiply duals."""
    (a, da), (b, db) = left, right
    partials = {e: p * b for e, p in da.items()}
    for entry, slope in db.items():
        part = a * slope
        partials[entry] = partials[entry] + part if entry in partials else part
    return a * b, partials


def _sum(world: Explicit, expr: Expr, env: Env) -> Dual:
    """Sum over every value of the bound indices (an empty range is zero)."""
    envs = [env]
    for symbol, first, last in reversed(expr.limits):
        envs = [{**e, symbol: i} for e in envs
                for i in range(world.index(first, e), world.index(last, e) + 1)]  # fmt: skip
    return add([world.dual(expr.function, e) for e in envs], world.ring.zero)


def _product(world: Explicit, expr: Expr, env: Env) -> Dual:
    out: Dual = (world.ring.one, {})
    for arg in expr.args:
        out = multiply(out, world.dual(arg, env))
    return out


def _power(world: Explicit, expr: Expr, env: Env) -> Dual:
    """Raise to an integer or half-integer power, or to the value of an index expression."""
    exponent = expr.args[1]
    if exponent.is_Rational and not exponent.is_Integer:
        root = world.applied("sqrt", world.dual(expr.args[0], env))
        return _repeated(world, root, int(exponent * 2))
    power = int(exponent) if exponent.is_Integer else world.index(exponent, env)
    return _repeated(world, world.dual(expr.args[0], env), power)


def _repeated(world: Explicit, base: Dual, power: int) -> Dual:
    out: Dual = (world.ring.one, {})
    for _ in range(abs(power)):
        out = multiply(out, base)
    if power >= 0:
        return out
    inverse = world.ring.one / out[0]
    return inverse, {e: 0 - inverse * inverse * p for e, p in out[1].items()}


def _exponential(world: Explicit, body: Expr, env: Env) -> Dual:
    """Return exp of a body; a hidden source has none, whatever its value."""
    if kind(body) != "Masked":
        return world.applied("exp", world.dual(body, env))
    weight = world.dual(body.args[0], env)
    return multiply(weight, world.applied("exp", world.dual(body.args[1], env)))


def _softmax(world: Explicit, expr: Expr, env: Env) -> Dual:
    body, bound, at, size = expr.args
    weights = [_exponential(world, body, {**env, bound: i})
               for i in range(world.index(size, env))]  # fmt: skip
    return multiply(
        weights[world.index(at, env)], _repeated(world, add(weights, world.ring.zero), -1)
    )


def _logsumexp(world: Explicit, expr: Expr, env: Env) -> Dual:
    body, bound, size = expr.args
    weights = [_exponential(world, body, {**env, bound: i})
               for i in range(world.index(size, env))]  # fmt: skip
    return world.applied("log", add(weights, world.ring.zero))


def _matrix_product(world: Explicit, expr: Expr, env: Env) -> Dual:
    """Multiply the matrices out, leftmost first; an empty range is the identity."""
    body, row, col, symbol, first, last, i, j, side = expr.args
    a, b = world.index(first, env), world.index(last, env)
    step = 1 if kind(expr) == "Product" else -1
    positions = range(a, b + step, step)
    count = (b - a) * step + 1
    if not 0 <= count <= MAX_FACTORS:
        raise DeriveError(
            f"a product from {a} to {b} has {count} factors; 0 to {MAX_FACTORS} can be multiplied"
        )
    at_row, at_col = world.index(i, env), world.index(j, env)
    size = world.index(side, env)
    line: list[Dual] = [
        (world.ring.one if k == at_row else world.ring.zero, {}) for k in range(size)
    ]
    for position in positions:
        here = {**env, symbol: position}
        line = [add([multiply(line[r], world.dual(body, {**here, row: r, col: c}))
                     for r in range(size)], world.ring.zero) for c in range(size)]  # fmt: skip
    return line[at_col]


def _delta(world: Explicit, expr: Expr, env: Env) -> Dual:
    same = world.index(expr.args[0], env) == world.index(expr.args[1], env)
    return (world.ring.one if same else world.ring.zero), {}


def _leq(world: Explicit, expr: Expr, env: Env) -> Dual:
    holds = world.index(expr.args[0], env) <= world.index(expr.args[1], env)
    return (world.ring.one if holds else world.ring.zero), {}


ROWS: dict[str, Callable[[Explicit, Expr, Env], Dual]] = {
    "Add": lambda w, e, env: add([w.dual(a, env) for a in e.args], w.ring.zero),
    "Mul": _product,
    "Pow": _power,
    "Power": _power,
    "Sum": _sum,
    "KroneckerDelta": _delta,
    "Leq": _leq,
    "Softmax": _softmax,
    "LogSumExp": _logsumexp,
    "Detach": lambda w, e, env: (w.dual(e.args[0], env)[0], {}),
    "Total": lambda w, e, env: (w.derivative(e, env), {}),
    "Partial": lambda w, e, env: (w.local_derivative(e, env), {}),
    "Product": _matrix_product,
    "DProduct": _matrix_product,
    "Expect": lambda w, e, env: (expected(w, e, env), {}),
}
