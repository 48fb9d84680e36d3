"""Index notation to array code: one expression becomes a few lines over labelled arrays.

A value is a generated variable whose axes carry index symbols (`Val.labels`). An index is either a
*vector* label (an axis over a `Span` of positions) or a *scalar* label (a loop variable). Only
generated names stand in the code: ``v3`` (values), ``x2`` (tensors), ``n0`` (sizes), ``t`` (a loop
position) and the helpers of `derive.checks.runtime`; nothing of a user's text reaches it. What each
node kind becomes is the table in `derive.checks.rules`.
"""

from __future__ import annotations

from collections.abc import Callable

import sympy as sp

from derive.checks.labels import Labels
from derive.checks.layout import BATCH, Slot, Span, Val, whole
from derive.errors import DeriveError
from derive.index import Affine, Expr, affine
from derive.nodes import kind, walk

Rule = Callable[["Emitter", Expr], Val]


class Emitter(Labels):
    """Turns expressions into lines of code."""

    def lower(self, expr: Expr) -> Val:
        """Emit an expression.

        Raises:
            DeriveError: On a node without a rule.
        """
        if self.loop is not None and self.loop not in self.scalars and self.is_recurrent(expr):
            self.scalars[self.loop] = "t"
            try:
                return self.dispatch(expr)
            finally:
                del self.scalars[self.loop]
        if self.loop is None or self.loop not in self.scalars:
            if expr not in self.memo:
                self.memo[expr] = self.dispatch(expr)
            return self.memo[expr]
        if self.is_recurrent(expr):
            return self.dispatch(expr)
        return self.hoisted(expr)

    def hoisted(self, expr: Expr) -> Val:
        """Emit an expression before the loop, over all its positions."""
        if self.loop is None or self.listed:
            return self.dispatch(expr)
        code = self.scalars.pop(self.loop)
        try:
            return self.lower(expr)
        finally:
            self.scalars[self.loop] = code

    def is_recurrent(self, expr: Expr) -> bool:
        """Tell whether an expression reads what the loop computes."""
        if self.listed:
            return True
        return any((e := self.entry(n)) is not None and e[0] in self.recurrent for n in walk(expr))

    def dispatch(self, expr: Expr) -> Val:
        """Emit one node by its kind."""
        entry = self.entry(expr)
        if entry is not None:
            return self.read(*entry)
        if expr.is_Number:
            return Val(f"({int(expr.p)}/{int(expr.q)})" if expr.q != 1 else f"({int(expr)})", ())
        rule = self.rule(kind(expr))
        if rule is None and (expr.is_Symbol or expr.is_integer):
            return self.position(expr)
        if rule is None:
            raise DeriveError(f"no numeric rule for {kind(expr)} in {expr}")
        return rule(self, expr)

    def rule(self, name: str) -> Rule | None:
        """Return what a node kind becomes; the table is in `derive.checks.rules`."""
        raise NotImplementedError

    def position(self, expr: Expr) -> Val:
        """Emit an index or a size as a number."""
        at = affine(expr)
        if at.base in self.spans and at.base not in self.scalars:
            assert at.base is not None
            span = self.spans[at.base]
            start = Affine(span.first.base, span.first.offset + at.offset)
            return self.emit(f"num(ar({self.number(start)}, {self.length(span)}))", (at.base,), 0)
        return Val(f"num({self.number(at)})", (), 1 if at.base in self.scalars else 0)

    # reads

    def read(self, key: object, indices: tuple[Expr, ...]) -> Val:
        """Emit a read of a tensor entry."""
        slot = self.layout.slot(key)
        just = self.just_computed(key, indices)
        if just is not None:
            return just
        level = 1 if key in self.recurrent and self.loop is not None else 0
        return self.take(slot, f"x{slot.number}", [affine(i) for i in indices], level)

    def just_computed(self, key: object, indices: tuple[Expr, ...]) -> Val | None:
        """Return the variable that this turn of the loop has computed, if it is whole."""
        found = self.now.get(key) if self.scalars else None
        if found is None or indices[0] != self.loop or len(set(indices)) < len(indices):
            return None
        slot = self.layout.slot(key)
        for symbol, dim in zip(indices[1:], slot.dims[1:], strict=True):
            if self.spans.get(symbol) != whole(dim):
                return None
        batch = (BATCH,) if slot.batch is not None else ()
        return Val(found, (*batch, *indices[1:]), 1)

    def take(self, slot: Slot, code: str, places: list[Affine], level: int) -> Val:
        """Emit ``code[places]``: slices for vector labels, numbers for the others."""
        for axis, at in enumerate(places):
            slot.cover(axis, *self.extent(at))
        vector = [p.base for p in places if p.base in self.spans and p.base not in self.scalars]
        level = max(level, int(any(p.base in self.scalars for p in places)))
        if len(set(vector)) < len(vector):
            return self.gather(slot, code, places, level)
        parts = [self.subscript(slot, axis, at) for axis, at in enumerate(places)]
        labels = [p.base if p.base in vector else None for p in places]
        if slot.batch is not None:
            parts.insert(slot.batch, ":")
            labels.insert(slot.batch, BATCH)
        kept = tuple(s for s in labels if s is not None)
        if slot.listed and places[0].base in vector:
            code, parts = f"stk({code}[{parts[0]}])", [":", *parts[1:]]
        elif slot.listed:
            code, parts = f"{code}[{parts[0]}]", parts[1:]
        while parts and parts[-1] == ":":
            parts.pop()
        if not parts:
            return Val(code, kept, level)
        text = f"{code}[{', '.join(parts)}]"
        return Val(text, kept, 1) if level and not vector else self.emit(text, kept, level)

    def subscript(self, slot: Slot, axis: int, at: Affine) -> str:
        """Return the subscript of one axis."""
        if at.base not in self.spans or at.base in self.scalars:
            return self.number(Affine(at.base, 0), f"@{slot.number}.{axis}:{at.offset}@")
        first, last = self.extent(at)
        if not slot.dims[axis].ordered and Span(first, last) == whole(slot.dims[axis]):
            return ":"
        start = self.number(Affine(first.base, 0), f"@{slot.number}.{axis}:{first.offset}@")
        stop = self.number(Affine(last.base, 0), f"@{slot.number}.{axis}:{last.offset + 1}@")
        return f"{start}:{stop}"

    def gather(self, slot: Slot, code: str, places: list[Affine], level: int) -> Val:
        """Emit a read whose index repeats, as in the diagonal S[t,t]."""
        if slot.batch == 1:
            order = (1, 0, *range(2, len(places) + 1))
            code = f"perm({code}, {order})"
        if slot.listed:
            code = f"stk({code})"
        labels = self.ordered(p.base for p in places if p.base in self.spans
                              and p.base not in self.scalars)  # fmt: skip
        parts = [] if slot.batch is None else [":"]
        for axis, at in enumerate(places):
            token = f"@{slot.number}.{axis}:{{}}@"
            if at.base not in labels:
                parts.append(self.number(Affine(at.base, 0), token.format(at.offset)))
                continue
            first, _ = self.extent(at)
            start = self.number(Affine(first.base, 0), token.format(first.offset))
            shape = "".join(", None" if s != at.base else ", :" for s in labels)[2:]
            parts.append(f"ar({start}, {self.length(self.spans[at.base])})[{shape}]")
        kept = labels if slot.batch is None else (BATCH, *labels)
        val = self.emit(f"{code}[{', '.join(parts)}]", kept, level)
        return Val(self.turned(val, self.ordered(kept)), self.ordered(kept), level)

    def retarget(self, val: Val, label: sp.Symbol, at: Expr) -> Val:
        """Read a value's axis at another index: rename it, or take positions of it."""
        place, span = affine(at), self.spans[label]
        fresh = place.base in self.spans and place.base not in self.scalars
        if fresh and place.base not in val.labels and self.extent(place) == (span.first, span.last):
            assert place.base is not None
            labels = tuple(place.base if s == label else s for s in val.labels)
            return Val(val.code, labels, val.level)
        start = Affine(place.base, place.offset - span.first.offset)
        if span.first.base is not None:
            raise DeriveError(f"cannot evaluate an entry at {at} of a range that starts at a size")
        rest = self.ordered(s for s in val.labels if s != label)
        code = self.turned(val, (*rest, label))
        if not fresh:
            level = max(val.level, int(place.base in self.scalars))
            return self.emit(f"{code}[..., {self.number(start)}]", rest, level)
        assert place.base is not None
        labels = self.ordered((*rest, place.base))
        whole_code = self.aligned(Val(code, (*rest, label), val.level), (*labels, label))
        index = self.aligned(self.position(start.expr), (*labels, label))
        return self.emit(f"pick({whole_code}, {index})", labels, val.level)
