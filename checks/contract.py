"""Products under summed indices: deltas substituted, the rest contracted pair by pair.

An index may stand on any number of factors (hyperedges). A pair without a common open index becomes
one matrix product; a pair that shares one becomes an ``einsum``; three or more factors of an index
are multiplied entry by entry, smallest result first, until two are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import sympy as sp

from derive.checks.codegen import Emitter
from derive.checks.layout import Span, Val
from derive.index import Affine, Expr, affine
from derive.nodes import kind, rebuild, walk


def contract(emitter: Emitter, factors: list[Expr], bound: list[sp.Symbol]) -> Val:
    """Emit the product of factors, summed over the bound indices."""
    factors, bound = substitute_deltas(emitter, factors, bound)
    split = next((i for i, f in enumerate(factors) if f.is_Add and holds_delta(f, bound)), None)
    if split is not None:
        rest = factors[:split] + factors[split + 1 :]
        parts = [contract(emitter, [*sp.Mul.make_args(a), *rest], bound)
                 for a in factors[split].args]  # fmt: skip
        return emitter.combine(parts, " + ")
    number = sp.prod([f for f in factors if f.is_Number])
    vals, marks = list[Val](), [len(emitter.notes)]
    for factor in (f for f in factors if not f.is_Number):
        vals.append(emitter.lower(factor))
        marks.append(len(emitter.notes))
    coefficient = [] if abs(number) == 1 else [emitter.lower(sp.Rational(number))]
    for place in range(len(vals)):
        others = vals[:place] + vals[place + 1 :] + coefficient
        emitter.weigh(marks[place], marks[place + 1], *others)
    emitter.note(*vals, *coefficient)
    return scaled(emitter, eliminate(emitter, vals, list(bound)), number)


def scaled(emitter: Emitter, vals: list[Val], number: sp.Rational) -> Val:
    """Emit the product of what is left, with its coefficient."""
    if not vals:
        return emitter.lower(sp.Rational(number))
    val = emitter.combine(vals, " * ")
    if number == 1:
        return val
    factor = "-" if number == -1 else emitter.lower(sp.Rational(number)).code + " * "
    return emitter.emit(factor + val.code, val.labels, val.level)


def holds_delta(expr: Expr, bound: Sequence[sp.Symbol]) -> bool:
    """Tell whether an expression holds a delta of a bound index."""
    deltas = (n for n in walk(expr) if kind(n) == "KroneckerDelta")
    return any(affine(a).base in bound for d in deltas for a in d.args)


def substitute_deltas(
    emitter: Emitter, factors: list[Expr], bound: list[sp.Symbol]
) -> tuple[list[Expr], list[sp.Symbol]]:
    """Replace sum_k delta(k, i) X_k by X_i wherever i is sure to be in the range of k."""
    factors, bound = list(factors), list(bound)
    again = True
    while again:
        again = False
        for place, factor in enumerate(factors):
            found = solved(emitter, factor, bound) if kind(factor) == "KroneckerDelta" else None
            if found is None:
                continue
            symbol, by = found
            others = [rebuild(f, {symbol: by}) for f in factors[:place] + factors[place + 1 :]]
            factors = [a for f in others for a in sp.Mul.make_args(f)]
            bound.remove(symbol)
            again = True
            break
    return factors, bound


def solved(
    emitter: Emitter, delta: Expr, bound: Sequence[sp.Symbol]
) -> tuple[sp.Symbol, Expr] | None:
    """Return a bound index and what a delta says that it equals, if that is inside its range."""
    for one, other in (delta.args, delta.args[::-1]):
        at = affine(one)
        if at.base in bound and affine(other).base != at.base:
            by = other - at.offset
            if inside(*emitter.extent(affine(by)), emitter.spans[at.base]):
                return at.base, by
    return None


def inside(low: Affine, high: Affine, span: Span) -> bool:
    """Tell whether low..high lies in a span at every size (sizes are at least 1)."""
    first, last = span.first, span.last
    above = (low.base == first.base and low.offset >= first.offset) or (
        first.base is None and low.base is not None and low.offset + 1 >= first.offset
    )
    below = (high.base == last.base and high.offset <= last.offset) or (
        high.base is None and last.base is not None and high.offset <= last.offset + 1
    )
    return above and below


def eliminate(emitter: Emitter, vals: list[Val], bound: list[sp.Symbol]) -> list[Val]:
    """Sum over every bound index; return the factors that are left, to be multiplied."""
    while bound:
        label = min(bound, key=lambda s: sum(s in v.labels for v in vals))
        holders = [v for v in vals if label in v.labels]
        others = [v for v in vals if label not in v.labels]
        if not holders:
            vals = [*others, Val(f"({emitter.length(emitter.spans[label])})", ())]
            bound.remove(label)
        elif len(holders) == 1:
            only = [s for s in bound if s in holders[0].labels
                    and not any(s in v.labels for v in others)]  # fmt: skip
            vals = [*others, summed(emitter, holders[0], only)]
            bound = [s for s in bound if s not in only]
        elif len(holders) == 2:
            pair = emitter.same_level(holders)
            both = [s for s in bound if all(s in v.labels for v in pair)
                    and not any(s in v.labels for v in others)]  # fmt: skip
            vals = [*others, paired(emitter, pair[0], pair[1], both)]
            bound = [s for s in bound if s not in both]
        else:
            one, two = min(combinations(holders, 2), key=lambda p: union(emitter, p))
            vals = [v for v in vals if v is not one and v is not two]
            vals.append(emitter.combine([one, two], " * "))
    return vals


def union(emitter: Emitter, pair: tuple[Val, Val]) -> int:
    """Return how many axes the product of a pair has."""
    return len({s for v in emitter.same_level(pair) for s in v.labels})


def summed(emitter: Emitter, val: Val, labels: Sequence[sp.Symbol]) -> Val:
    """Sum a value over some of its axes."""
    axes = tuple(val.labels.index(s) for s in labels)
    rest = tuple(s for s in val.labels if s not in labels)
    return emitter.emit(f"{val.code}.sum({axes if len(axes) > 1 else axes[0]})", rest, val.level)


def paired(emitter: Emitter, one: Val, two: Val, labels: Sequence[sp.Symbol]) -> Val:
    """Multiply two values and sum over common axes."""
    left, right = ([s for s in v.labels if s not in labels] for v in (one, two))
    if set(left) & set(right):
        return by_letters(emitter, one, two, labels)
    if emitter.ordered([*left, *right])[: len(left)] != tuple(left):
        one, two, left, right = two, one, right, left
    out = (*left, *right)
    if len(labels) == 1 and len(left) <= 1 and len(right) <= 1:
        first = one.code + (".T" if one.labels[0] == labels[0] and left else "")
        second = two.code + (".T" if two.labels[-1] == labels[0] and right else "")
        return emitter.emit(f"dot({first}, {second})", out, one.level)
    axes = tuple(tuple(v.labels.index(s) for s in labels) for v in (one, two))
    return emitter.emit(f"tdot({one.code}, {two.code}, {axes})", out, one.level)


def by_letters(emitter: Emitter, one: Val, two: Val, labels: Sequence[sp.Symbol]) -> Val:
    """Contract by einsum."""
    every = emitter.ordered([*one.labels, *two.labels])
    letter = {s: chr(ord("a") + i) for i, s in enumerate(every)}
    out = tuple(s for s in every if s not in labels)
    spell = ["".join(letter[s] for s in group) for group in (one.labels, two.labels, out)]
    code = f"einsum('{spell[0]},{spell[1]}->{spell[2]}', {one.code}, {two.code})"
    return emitter.emit(code, out, one.level)
