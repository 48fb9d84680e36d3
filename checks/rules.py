"""What each node kind becomes in array code: one function a kind, one table."""

from __future__ import annotations

import re
from collections.abc import Mapping

import sympy as sp

from derive.checks.codegen import Emitter, Rule
from derive.checks.contract import contract
from derive.checks.layout import BATCH, ZERO, Span, Val
from derive.errors import DeriveError
from derive.functions import TABLE
from derive.index import Affine, Expr, affine
from derive.nodes import Leq, kind


def add(emitter: Emitter, expr: Expr) -> Val:
    """A sum of addends: the hoisted ones are added before the loop."""
    vals = [emitter.lower(a) for a in expr.args]
    for val in vals:
        emitter.note(val)
    fixed = [v for v in vals if not v.level]
    moving = [v for v in vals if v.level]
    both = ([emitter.combine(fixed, " + ")] if fixed else []) + moving
    return emitter.combine(both, " + ")


def mul(emitter: Emitter, expr: Expr) -> Val:
    """A product."""
    return contract(emitter, list(expr.args), [])


def total(emitter: Emitter, expr: Expr) -> Val:
    """A sum over bound indices, nested sums at once."""
    masks: list[Expr] = []
    bound: list[sp.Symbol] = []
    while isinstance(expr, sp.Sum):
        for symbol, first, last in reversed(expr.limits):
            masks += open_range(emitter, symbol, first, last)
            bound.append(symbol)
        expr = expr.function
    factors = list(expr.args) if expr.is_Mul else [expr]
    return contract(emitter, factors + masks, bound)


def open_range(emitter: Emitter, symbol: sp.Symbol, first: Expr, last: Expr) -> list[Expr]:
    """Make first..last a label; limits that move with another index leave a mask each."""
    low, high = affine(first), affine(last)
    emitter.open(symbol, Span(emitter.extent(low)[0], emitter.extent(high)[1]))
    masks = [Leq(first, symbol)] if low.base in emitter.spans else []
    return masks + ([Leq(symbol, last)] if high.base in emitter.spans else [])


def power(emitter: Emitter, expr: Expr) -> Val:
    """A power with a rational exponent."""
    since = len(emitter.notes)
    val, exponent = emitter.lower(expr.base), expr.exp
    until = len(emitter.notes)
    if exponent.is_Symbol or not exponent.is_Rational:
        raise DeriveError(f"no numeric rule for the exponent {exponent}")
    forms = {2: "{0} * {0}", -1: "1 / {0}", sp.Rational(1, 2): "np.sqrt({0})"}
    form = forms.get(exponent, f"{{0}} ** ({exponent.p}/{exponent.q})"
                     if exponent.q != 1 else f"{{0}} ** ({exponent})")  # fmt: skip
    if "{0} *" in form and not val.code.isidentifier():
        val = emitter.emit(val.code, val.labels, val.level)
    out = emitter.emit(form.format(val.code), val.labels, val.level)
    if until > since:
        slope = emitter.emit(f"{out.code} / {val.code}", val.labels, val.level)
        emitter.weigh(since, until, slope)
    return out


def index_power(emitter: Emitter, expr: Expr) -> Val:
    """``w^(T-t)``: a power whose exponent is index arithmetic."""
    base, exponent = emitter.lower(expr.args[0]), index_value(emitter, expr.args[1])
    return emitter.combine([base, exponent], " ** ")


def index_value(emitter: Emitter, expr: Expr) -> Val:
    """Index arithmetic such as T-t-1 as a number."""
    parts = []
    for term in sp.Add.make_args(expr):
        coefficient, rest = term.as_coeff_Mul()
        val = emitter.position(rest) if rest != 1 else Val("1", ())
        parts.append(Val(f"({int(coefficient)} * {val.code})", val.labels, val.level))
    return emitter.combine(parts, " + ")


def compare(sign: str) -> Rule:
    """Return the rule of a 0/1 weight from two indices."""

    def rule(emitter: Emitter, expr: Expr) -> Val:
        vals = [index_value(emitter, a) for a in expr.args]
        val = emitter.combine(vals, sign)
        return emitter.emit(f"num({val.code})", val.labels, val.level)

    return rule


def elementwise(emitter: Emitter, expr: Expr) -> Val:
    """A function of one variable: the table's own numpy code."""
    val = emitter.lower(expr.args[0])
    # torch's functions take no plain number
    argument = f"num({val.code})" if expr.args[0].is_Number else val.code
    code = re.sub(r"\bx\b", lambda _: argument, TABLE[kind(expr)].numpy)
    return emitter.emit(code, val.labels, val.level)


def detach(emitter: Emitter, expr: Expr) -> Val:
    """A value whose perturbation stops here."""
    val = emitter.lower(expr.args[0])
    axis = val.labels.index(BATCH) if BATCH in val.labels else None
    return emitter.emit(f"stop({val.code}, {axis})", val.labels, val.level)


def masked(emitter: Emitter, expr: Expr) -> Val:
    """A value, minus infinity where its weight is zero: how torch masks scores."""
    weight, value = emitter.same_level([emitter.lower(a) for a in expr.args[:2]])
    labels = emitter.ordered({*weight.labels, *value.labels})
    chosen = f"{emitter.aligned(weight, labels)} > 0, {emitter.aligned(value, labels)}"
    return emitter.emit(f"np.where({chosen}, -np.inf)", labels, value.level)


def shifted(emitter: Emitter, expr: Expr) -> tuple[Val, str, str, str]:
    """Emit exp(x - max x) along the bound index; return it with the codes of max, sum and axis."""
    body, bound, size = expr.args[0], expr.args[1], expr.args[-1]
    emitter.open(bound, Span(ZERO, Affine(size, -1)))
    val = emitter.lower(body)
    if bound not in val.labels:
        val = emitter.combine([val, Val(f"zeros({emitter.size(size)})", (bound,))], " + ")
    axis = str(val.labels.index(bound))
    top = emitter.emit(f"top({val.code}, {axis})", val.labels, val.level)
    shift = emitter.emit(f"np.exp({val.code} - {top.code})", val.labels, val.level)
    return shift, top.code, f"{shift.code}.sum({axis})", axis


def softmax(emitter: Emitter, expr: Expr) -> Val:
    """Softmax, shifted by the maximum."""
    shift, _, sums, axis = shifted(emitter, expr)
    keep = ", ".join(["None" if str(i) == axis else ":" for i in range(len(shift.labels))])
    val = emitter.emit(f"{shift.code} / {sums}[{keep}]", shift.labels, shift.level)
    return emitter.retarget(val, expr.args[1], expr.args[2])


def logsumexp(emitter: Emitter, expr: Expr) -> Val:
    """The log of a sum of exponentials, shifted by the maximum."""
    shift, top, sums, axis = shifted(emitter, expr)
    drop = ", ".join(["0" if str(i) == axis else ":" for i in range(len(shift.labels))])
    rest = tuple(s for s in shift.labels if s != expr.args[1])
    return emitter.emit(f"np.log({sums}) + {top}[{drop}]", rest, shift.level)


def product(down: bool) -> Rule:
    """Return the rule of an ordered matrix product."""

    def rule(emitter: Emitter, expr: Expr) -> Val:
        body, row, column, bound, first, last, at_row, at_column, side = expr.args
        ends = [emitter.extent(affine(e)) for e in (first, last)]
        low, high = (ends[1][0], ends[0][1]) if down else (ends[0][0], ends[1][1])
        emitter.open(bound, Span(low, high))
        for symbol, at in ((row, at_row), (column, at_column)):
            emitter.open(symbol, matrix_span(emitter, at, side))
        val = emitter.lower(body)
        limits = [index_value(emitter, e) for e in (first, last)]
        rest = emitter.ordered({s for v in (val, *limits) for s in v.labels} - {bound, row, column})
        order = (bound, *rest, row, column)
        full = emitter.aligned(val, order)
        sizes = ", ".join(emitter.length(emitter.spans[s]) for s in (bound, row, column))
        codes = ", ".join(emitter.aligned(v, rest) for v in limits)
        code = f"chain({full}, ({sizes}), {len(rest)}, {codes}, {emitter.number(low)}, {down})"
        out = emitter.emit(code, (*rest, row, column), val.level)
        return emitter.retarget(emitter.retarget(out, row, at_row), column, at_column)

    return rule


def matrix_span(emitter: Emitter, at: Expr, side: Expr) -> Span:
    """Return the span of a product's row or column; a scalar product has one of each."""
    if at.is_Symbol and at in emitter.spans:
        return emitter.spans[at]
    return Span(ZERO, ZERO) if side == 1 else Span(ZERO, Affine(side, -1))


RULES: Mapping[str, Rule] = {
    "Add": add,
    "Mul": mul,
    "Sum": total,
    "Pow": power,
    "Power": index_power,
    "Leq": compare(" <= "),
    "KroneckerDelta": compare(" == "),
    "Detach": detach,
    "Masked": masked,
    "Softmax": softmax,
    "LogSumExp": logsumexp,
    "Product": product(False),
    "DProduct": product(True),
}


class Lowering(Emitter):
    """An emitter with the table of rules."""

    def rule(self, name: str) -> Rule | None:
        """Return what a node kind becomes."""
        return RULES.get(name) or (elementwise if name in TABLE else None)
