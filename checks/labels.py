"""The bookkeeping of generated code: names, lines, which axis carries which index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import sympy as sp

from derive.checks.layout import BATCH, Layout, Span, Val
from derive.index import Affine, Expr

Entry = Callable[[Expr], tuple[object, tuple[Expr, ...]] | None]
Saved = tuple[dict[sp.Symbol, Span], dict[sp.Symbol, int], dict[Expr, Val]]


class Labels:
    """Names, lines and labels of a piece of code.

    Args:
        layout: Where tensors live.
        entry: The key, dims of an entry's arrays: (key, indices), for every node that is a read.
        batched: Arrays carry a batch axis.
        listed: Arrays with positions are lists over them (so that autograd sees no writes).
        noted: Values are reported to ``note``, which keeps the largest magnitude.
    """

    def __init__(
        self,
        layout: Layout,
        entry: Entry,
        *,
        batched: bool = False,
        listed: bool = False,
        noted: bool = False,
    ):
        self.layout, self.entry = layout, entry
        self.batched, self.listed, self.noted = batched, listed, noted
        self.lines: tuple[list[str], list[str]] = ([], [])
        self.spans: dict[sp.Symbol, Span]
        self.rank: dict[sp.Symbol, int]
        self.scalars: dict[sp.Symbol, str]
        self.memo: dict[Expr, Val]
        self.loop: sp.Symbol | None
        self.recurrent: frozenset[object] = frozenset()
        self.now: dict[object, str] = {}
        self.notes: list[list[str]] = []
        self.sizes: dict[str, str] = {}
        self.count = 0
        self.begin()

    def begin(self) -> None:
        """Forget indices and values: the next equation may use the same names for others."""
        self.spans, self.rank, self.memo = {}, {BATCH: 1}, {}
        self.scalars, self.loop = {}, None

    def resume(self, other: Saved) -> None:
        """Go on with the spans, ranks and hoisted values of an earlier turn of the equation."""
        self.spans, self.rank, self.memo = other
        self.scalars, self.loop = {}, None

    def name(self) -> str:
        """Return an unused variable name."""
        self.count += 1
        return f"v{self.count}"

    def emit(self, code: str, labels: tuple[sp.Symbol, ...], level: int) -> Val:
        """Assign code to a new variable at a level."""
        name = self.name()
        self.lines[level].append(f"{name} = {code}")
        return Val(name, labels, level)

    def size(self, symbol: sp.Symbol) -> str:
        """Return the variable of a size."""
        return self.sizes.setdefault(symbol.name, f"n{len(self.sizes)}")

    def open(self, symbol: sp.Symbol, span: Span) -> None:
        """Make an index a vector label; values over another span of it are forgotten."""
        if self.spans.get(symbol, span) != span:
            self.memo.clear()
        self.spans[symbol] = span
        self.rank.setdefault(symbol, len(self.rank) + 1)

    def lead(self, symbol: sp.Symbol, span: Span) -> None:
        """Make an index the leading vector label: positions stand before the batch."""
        self.open(symbol, span)
        self.rank[symbol] = 0

    def number(self, at: Affine, extra: str = "") -> str:
        """Return the code of an affine index in sizes and scalar labels."""
        base = "" if at.base is None else self.scalars.get(at.base) or self.size(at.base)
        if not base:
            return f"{at.offset}{extra}"
        offset = f"{at.offset:+d}" if at.offset else ""
        return f"{base}{offset}{extra}"

    def length(self, span: Span) -> str:
        """Return the code of a span's length."""
        first, last = span.first, span.last
        if first.base == last.base:
            return str(last.offset - first.offset + 1)
        top = self.number(Affine(last.base, last.offset + 1 - first.offset))
        return top if first.base is None else f"{top}-{self.size(first.base)}"

    def ordered(self, labels: Iterable[sp.Symbol]) -> tuple[sp.Symbol, ...]:
        """Return labels without repeats in their fixed order."""
        return tuple(sorted(set(labels), key=self.rank.__getitem__))

    def extent(self, at: Affine) -> tuple[Affine, Affine]:
        """Return the least and greatest value of an index over its span."""
        if at.base not in self.spans:
            return at, at
        span = self.spans[at.base]
        return (
            Affine(span.first.base, span.first.offset + at.offset),
            Affine(span.last.base, span.last.offset + at.offset),
        )

    def project(self, val: Val) -> Val:
        """Read a hoisted value at the loop position."""
        if val.level or self.loop is None or self.loop not in val.labels:
            return Val(val.code, val.labels, 1)
        start = self.spans[self.loop].first
        row = f"t{-start.offset:+d}" if start.offset else "t"
        return Val(f"{val.code}[{row}]", val.labels[1:], 1)

    def same_level(self, vals: Sequence[Val]) -> list[Val]:
        """Bring values to one level."""
        return [self.project(v) for v in vals] if any(v.level for v in vals) else list(vals)

    def turned(self, val: Val, labels: Sequence[sp.Symbol]) -> str:
        """Return code whose axes are the value's labels in this order."""
        order = tuple(val.labels.index(s) for s in labels if s in val.labels)
        if order == tuple(range(len(order))):
            return val.code
        return f"perm({val.code}, {order})"

    def aligned(self, val: Val, labels: Sequence[sp.Symbol]) -> str:
        """Return code that broadcasts against arrays with these labels."""
        code = self.turned(val, labels)
        lead = next((i for i, s in enumerate(labels) if s in val.labels), len(labels))
        if not val.labels or all(s in val.labels for s in labels[lead:]):
            return code
        return (
            code + "[" + ", ".join(":" if s in val.labels else "None" for s in labels[lead:]) + "]"
        )

    def combine(self, vals: Sequence[Val], sign: str) -> Val:
        """Combine values entry by entry."""
        if len(vals) == 1:
            return vals[0]
        vals = self.same_level(vals)
        labels = self.ordered(s for v in vals for s in v.labels)
        return self.emit(sign.join(self.aligned(v, labels) for v in vals), labels, vals[0].level)

    def note(self, *vals: Val) -> None:
        """Remember that the product of these values is an intermediate of the result."""
        if self.noted:
            self.notes.append([v.code for v in vals])

    def weigh(self, since: int, until: int, *vals: Val) -> None:
        """Multiply the intermediates noted in between: they enter the result times these values."""
        for codes in self.notes[since:until]:
            codes += [v.code for v in vals]

    def notices(self) -> list[str]:
        """Return the lines that report the intermediates, each once."""
        return list(dict.fromkeys(f"note({', '.join(codes)})" for codes in self.notes))
