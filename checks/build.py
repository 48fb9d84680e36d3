"""The code of a list of equations: which recur together, what leaves their loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from derive.checks.layout import BATCH, Layout, Slot, Span, Val, whole
from derive.checks.rules import Lowering
from derive.checks.runtime import compiled
from derive.equation import Equation
from derive.errors import DeriveError
from derive.index import Expr, Tensor, affine
from derive.nodes import entry_indices, tensor_name


@dataclass(frozen=True)
class Code:
    """Compiled lines with the arrays and sizes that they take, in order."""

    run: Callable[..., Any]
    slots: dict[object, Slot]
    sizes: tuple[str, ...]
    lines: tuple[str, ...]


def named_entry(expr: Expr) -> tuple[object, tuple[Expr, ...]] | None:
    """Return the tensor's name and indices of a tensor entry."""
    name = tensor_name(expr)
    return None if name is None else (name, entry_indices(expr))


def span_of(equation: Equation) -> Span:
    """Return the positions at which an equation holds.

    A state's equation holds from 0 (its initial rows are given); an adjoint's from its first row.
    """
    tensor = equation.tensor
    return whole(tensor.dims[0], tensor.first if tensor.role == "adjoint" else 0)


def has_positions(tensor: Tensor) -> bool:
    """Tell whether the leading axis is a position axis."""
    return bool(tensor.dims) and tensor.dims[0].ordered


class Builder:
    """Writes the code of a list of equations."""

    def __init__(self, tensors: Mapping[str, Tensor], equations: Sequence[Equation],
                 batched: bool, listed: bool):  # fmt: skip
        self.tensors, self.equations = tensors, equations
        self.batched, self.listed = batched, listed
        self.layout = Layout(self.slot)
        self.emitter = Lowering(self.layout, named_entry, batched=batched, listed=listed)
        self.lines: list[str] = []
        self.begun: dict[str, Any] = {}

    def slot(self, key: object, number: int) -> Slot:
        """Make the slot of a tensor, or of the perturbation ("add", name) of one."""
        added = isinstance(key, tuple)
        tensor = self.tensors[str(key[1] if isinstance(key, tuple) else key)]
        leading = has_positions(tensor)
        first = 0 if added else tensor.first
        firsts = tuple(first if i == 0 else 0 for i in range(len(tensor.dims)))
        batch = int(leading) if self.batched else None
        return Slot(number, tensor.dims, firsts, batch, self.listed and leading)

    def build(self) -> Code:
        """Emit every group of equations in evaluation order."""
        for group in groups(self.equations):
            if recurs(group) or (self.listed and has_positions(group[0].tensor)):
                self.loop(group)
            else:
                self.flat(group[0])
        emitter, slots = self.emitter, self.layout.slots
        numbers = range(len(slots))
        head = [
            "".join(f"{v}, " for v in emitter.sizes.values()) + "= n" if emitter.sizes else "",
            "".join(f"x{i}, " for i in numbers) + "= x" if slots else "",
        ]
        lines = [self.layout.resolve(line) for line in [*head, *self.lines] if line]
        run = compiled("program", [*lines, f"return [{', '.join(f'x{i}' for i in numbers)}]"])
        return Code(run, dict(slots), tuple(emitter.sizes), tuple(lines))

    def start(self, equation: Equation) -> tuple[Slot, tuple[sp.Symbol, ...]]:
        """Open the indices of an equation's left side."""
        emitter, name = self.emitter, equation.tensor.name
        if name in self.begun:
            emitter.resume(self.begun[name])
            return self.layout.slot(name), equation.indices
        emitter.begin()
        self.begun[name] = (emitter.spans, emitter.rank, emitter.memo)
        for place, (symbol, dim) in enumerate(
            zip(equation.indices, equation.tensor.dims, strict=True)
        ):
            if place == 0 and dim.ordered:
                emitter.lead(symbol, span_of(equation))
            else:
                emitter.open(symbol, whole(dim))
        return self.layout.slot(equation.tensor.name), equation.indices

    def value(self, equation: Equation) -> Val:
        """Emit the right side, with its perturbation in a batched program."""
        val = self.emitter.lower(equation.rhs)
        if not self.batched or equation.tensor.role == "adjoint" or self.listed:
            return val
        emitter = self.emitter
        key = ("add", equation.tensor.name)
        if emitter.loop is not None:
            emitter.scalars[emitter.loop] = "t"
        added = emitter.read(key, equation.indices)
        emitter.scalars.clear()
        return emitter.combine([val, added], " + ")

    def flat(self, equation: Equation) -> None:
        """Emit an equation over its whole range at once."""
        slot, indices = self.start(equation)
        emitter = self.emitter
        val = self.value(equation)
        self.lines += emitter.lines[0]
        emitter.lines[0].clear()
        labels = emitter.ordered([*indices, *([BATCH] if self.batched else [])])
        code = emitter.aligned(val, labels)
        if self.listed:
            self.lines.append(f"x{slot.number} = keep({slot.number}, None, {code})")
            return
        places = [emitter.subscript(slot, i, affine(s)) for i, s in enumerate(indices)]
        if slot.batch is not None:
            places.insert(slot.batch, ":")
        self.lines.append(f"x{slot.number}[{', '.join(places) or '...'}] = {code}")

    def loop(self, group: Sequence[Equation]) -> None:
        """Emit a group that recurs: the common positions first, then those that only some have."""
        direction = sense(group)
        self.emitter.recurrent = frozenset(e.tensor.name for e in group)
        spans = [span_of(e) for e in group]
        lows = sorted({s.first.offset for s in spans})
        size = self.emitter.size(group[0].tensor.dims[0].symbol)
        chunks = list(zip(lows, [*map(str, lows[1:]), size], strict=True))
        for low, stop in chunks if direction > 0 else reversed(chunks):
            part = [e for e, s in zip(group, spans, strict=True) if s.first.offset <= low]
            walk = f"range({low}, {stop})"
            if direction < 0:
                walk = f"range({stop}-1, {low}-1, -1)"
            self.turn(part, walk)
        self.emitter.recurrent = frozenset()

    def turn(self, part: Sequence[Equation], walk: str) -> None:
        """Emit one loop: what can be computed before it, then its body."""
        emitter, body = self.emitter, list[str]()
        emitter.now = {}
        for equation in part:
            slot, indices = self.start(equation)
            emitter.loop = indices[0]
            val = emitter.project(self.value(equation))
            self.lines += emitter.lines[0]
            body += emitter.lines[1]
            emitter.lines[0].clear()
            emitter.lines[1].clear()
            labels = emitter.ordered([*indices[1:], *([BATCH] if self.batched else [])])
            code = emitter.aligned(val, labels)
            row = f"t@{slot.number}.0:0@"
            body.append(self.store(slot, row, code, indices))
            if val.labels == labels and val.code.isidentifier() and not self.listed:
                emitter.now[equation.tensor.name] = val.code
        emitter.now = {}
        self.lines += [f"for t in {walk}:", *(" " + line for line in body)]

    def store(self, slot: Slot, row: str, code: str, indices: tuple[sp.Symbol, ...]) -> str:
        """Return the line that stores one position."""
        if self.listed:
            return f"x{slot.number}[{row}] = keep({slot.number}, t, {code})"
        rest = [self.emitter.subscript(slot, i + 1, affine(s)) for i, s in enumerate(indices[1:])]
        batch = [":"] if slot.batch is not None else []
        places = [row, *batch, *rest] if any(r != ":" for r in rest) else [row]
        return f"x{slot.number}[{', '.join(places)}] = {code}"


def groups(equations: Sequence[Equation]) -> list[list[Equation]]:
    """Return the strongly connected groups of equations in evaluation order (Tarjan)."""
    by_name = {e.tensor.name: e for e in equations}
    order = {n: i for i, n in enumerate(by_name)}
    low: dict[str, int] = {}
    stack: list[str] = []
    done: set[str] = set()
    out: list[list[Equation]] = []

    def visit(name: str) -> None:
        mark = low[name] = len(low)
        stack.append(name)
        for read in by_name[name].reads:
            other = str(tensor_name(read))
            if other in by_name and other not in low:
                visit(other)
            if other in by_name and other not in done:
                low[name] = min(low[name], low[other])
        if low[name] == mark:
            cut = stack.index(name)
            members = sorted(stack[cut:], key=order.__getitem__)
            del stack[cut:]
            done.update(members)
            out.append([by_name[m] for m in members])

    for name in by_name:
        if name not in low:
            visit(name)
    return out


def shifts(group: Sequence[Equation]) -> list[int]:
    """Return by how many positions the equations of a group read each other."""
    names = {e.tensor.name for e in group}
    found = []
    for equation in group:
        for read in equation.reads:
            if tensor_name(read) in names and entry_indices(read) and equation.indices:
                at = affine(entry_indices(read)[0])
                found.append(at.offset if at.base == equation.indices[0] else 0)
    return found


def recurs(group: Sequence[Equation]) -> bool:
    """Tell whether a group reads itself."""
    names = {e.tensor.name for e in group}
    return len(group) > 1 or any(tensor_name(r) in names for e in group for r in e.reads)


def sense(group: Sequence[Equation]) -> int:
    """Return 1 for a forward recurrence, -1 for a backward one.

    Raises:
        DeriveError: If a group reads both earlier and later positions of itself.
    """
    found = shifts(group)
    if min(found, default=0) < 0 < max(found, default=0):
        names = ", ".join(e.tensor.name for e in group)
        raise DeriveError(f"{names} read each other both earlier and later: no order to evaluate")
    return -1 if max(found, default=0) > 0 else 1
