"""Single edits of a statement: the mistakes people make, each a row of one table.

They serve twice: a refuted statement that one edit repairs gets "did you mean", and the tests make
wrong variants of every claim with them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from derive import syntax as S
from derive.equation import System
from derive.errors import DeriveError
from derive.prove import prove
from derive.ranges import check_ranges
from derive.refute import refute
from derive.statement import Identity, read_statement

Change = tuple[tuple[int, int], str]


@dataclass(frozen=True)
class Edit:
    """One edited statement.

    Args:
        operator: Name of the mistake (``transposed``, ``index``, ``sign``, ...).
        text: The statement after the edit.
        before: The piece that was replaced.
        after: What replaced it.
    """

    operator: str
    text: str
    before: str
    after: str


@dataclass(frozen=True)
class Place:
    """A node in its statement, with what an operator needs to know."""

    text: str
    node: S.Node
    system: System

    def of(self, node: S.Node) -> str:
        """Return the text of a node, in parentheses where an operator could tear it."""
        piece = self.text[node.span[0] : node.span[1]]
        return f"({piece})" if isinstance(node, S.Bin | S.Neg) else piece

    @property
    def positions(self) -> set[str]:
        """Names of the sizes of position axes."""
        return {d.name for d in self.system.dims.values() if d.ordered}


def transposed(p: Place) -> Iterator[Change]:
    """A lost or added ``.T`` beside ``@``; swapped indices of a matrix entry."""
    if isinstance(p.node, S.Bin) and p.node.op == "@":
        for side in (p.node.left, p.node.right):
            if isinstance(side, S.Transpose):
                yield side.span, p.of(side.arg)
            elif isinstance(side, S.Name | S.Item | S.Deriv):
                yield side.span, p.of(side) + ".T"
    if isinstance(p.node, S.Item) and len(p.node.args) >= 2:
        a, b = p.node.args[-2:]
        yield (a.span[0], b.span[1]), f"{p.of(b)},{p.of(a)}"


def shifted(p: Place) -> Iterator[Change]:
    """h[t] for h[t-1] and the like."""
    if not isinstance(p.node, S.Item):
        return
    tensor = p.system.scope.tensor(p.node.name)
    dims = tensor.dims if tensor else ()
    (start, end), text = p.node.span, p.text
    for arg, dim in zip(p.node.args, dims, strict=False):
        if dim.ordered:
            before, after = text[start : arg.span[0]], text[arg.span[1] : end]
            place = text[arg.span[0] : arg.span[1]]
            plain = [p.of(arg.left)] if isinstance(arg, S.Bin) else []
            for moved in (*plain, place + "-1", place + "+1"):
                yield p.node.span, f"{before}{moved}{after}"


def signed(p: Place) -> Iterator[Change]:
    """A wrong sign."""
    if isinstance(p.node, S.Bin) and p.node.op in "+-":
        between = p.text.index(p.node.op, p.node.left.span[1], p.node.right.span[0])
        yield (between, between + 1), "-" if p.node.op == "+" else "+"
    if isinstance(p.node, S.Neg):
        yield p.node.span, p.of(p.node.arg)


def ranged(p: Place) -> Iterator[Change]:
    """A range that starts or ends one off."""
    if not (isinstance(p.node, S.Call) and p.node.func in ("sum", "prod")):
        return
    for arg in p.node.args[:-1]:
        if isinstance(arg, S.Range) and arg.first is not None and arg.last is not None:
            for end in (arg.first, arg.last):
                text = p.text[end.span[0] : end.span[1]]
                yield end.span, text + "+1"
                yield end.span, text + "-1"
            first, last = (p.text[n.span[0] : n.span[1]] for n in (arg.first, arg.last))
            if p.node.func == "prod":
                yield arg.span, f"{arg.name}={last}..{first}"
        if isinstance(arg, S.Name) and on_positions(p, arg.name):
            size = sorted(p.positions)[0]
            for limits in (f"1..{size}-1", f"0..{size}-2"):
                yield arg.span, f"{arg.name}={limits}"


def on_positions(p: Place, name: str) -> bool:
    """Tell whether a bound name stands on a position axis in the node."""
    for node in S.descend(p.node):
        if isinstance(node, S.Item):
            tensor = p.system.scope.tensor(node.name)
            for arg, dim in zip(node.args, tensor.dims if tensor else (), strict=False):
                if dim.ordered and any(isinstance(n, S.Name) and n.name == name
                                       for n in S.descend(arg)):  # fmt: skip
                    return True
    return False


def summed(p: Place) -> Iterator[Change]:
    """A lost sum: only the last use."""
    if isinstance(p.node, S.Call) and p.node.func == "sum" and len(p.node.args) == 2:
        bound, body = p.node.args
        if isinstance(bound, S.Name) and p.positions and on_positions(p, bound.name):
            size = sorted(p.positions)[0]
            yield p.node.span, f"({replace_name(p, body, bound.name, f'{size}-1')})"


def replace_name(p: Place, node: S.Node, name: str, by: str) -> str:
    """Return a node's text with an index name replaced."""
    start, out, at = node.span[0], [], node.span[0]
    for inner in sorted(S.descend(node), key=lambda n: n.span):
        if isinstance(inner, S.Name) and inner.name == name and inner.span[0] >= at:
            out += [p.text[at : inner.span[0]], by]
            at = inner.span[1]
    assert start <= at
    return "".join([*out, p.text[at : node.span[1]]])


def scaled(p: Place) -> Iterator[Change]:
    """A lost or doubled factor 1/T, a factor two."""
    if isinstance(p.node, S.Bin) and p.node.op == "/":
        yield p.node.span, p.of(p.node.left)
        yield p.node.span, f"({p.of(p.node)}/{p.of(p.node.right)})"
    if isinstance(p.node, S.Call) and p.node.func == "sum":
        for size in sorted(p.positions):
            yield p.node.span, f"({p.of(p.node)}/{size})"
        yield p.node.span, f"(2*{p.of(p.node)})"
    if isinstance(p.node, S.Call) and p.node.func == "mean":
        yield p.node.span, "sum" + p.text[p.node.span[0] + 4 : p.node.span[1]]


def powered(p: Place) -> Iterator[Change]:
    """1-h for 1-h^2 and the like."""
    if isinstance(p.node, S.Bin) and p.node.op == "^" and isinstance(p.node.right, S.Num):
        yield p.node.span, p.of(p.node.left)
        yield p.node.right.span, str(int(p.node.right.value) + 1)


def ordered(p: Place) -> Iterator[Change]:
    """Factors of a matrix product in the other order; an inner for an outer product."""
    if isinstance(p.node, S.Bin) and p.node.op == "@":
        yield p.node.span, f"{p.of(p.node.right)} @ {p.of(p.node.left)}"
        left, right = p.node.left, p.node.right
        if isinstance(left, S.Transpose):
            yield p.node.span, f"{p.of(right)}.T @ {p.of(left.arg)}"
            yield p.node.span, f"{p.of(left.arg)} @ {p.of(right)}.T"


def dropped(p: Place) -> Iterator[Change]:
    """A lost term or factor."""
    if isinstance(p.node, S.Bin) and p.node.op in "+-*":
        yield p.node.span, p.of(p.node.left)
        if p.node.op != "-":
            yield p.node.span, p.of(p.node.right)
    if isinstance(p.node, S.Call) and p.node.func == "diag":
        yield p.node.span, f"diag({p.text[p.node.args[0].span[0] : p.node.args[0].span[1]]}^2)"


OPERATORS: dict[str, Callable[[Place], Iterator[Change]]] = {
    "index": shifted,
    "transposed": transposed,
    "order": ordered,
    "sign": signed,
    "range": ranged,
    "lost sum": summed,
    "factor": scaled,
    "power": powered,
    "lost term": dropped,
}


def edits(identity: Identity) -> Iterator[Edit]:
    """Yield every single edit of a statement's right side that still reads as a statement."""
    text, seen = identity.text, {identity.text}
    for node in S.descend(identity.syntax.rhs):
        place = Place(text, node, identity.system)
        for operator, changes in OPERATORS.items():
            for (start, end), after in changes(place):
                edited = text[:start] + after + text[end:]
                if edited not in seen:
                    seen.add(edited)
                    yield Edit(operator, edited, text[start:end], after)


def suggest(identity: Identity, seconds: float = 1.0) -> Edit | None:
    """Return an edit that makes a refuted statement provable, the first in the table's order.

    Args:
        identity: The refuted statement.
        seconds: Time after which the search stops.
    """
    end = time.perf_counter() + seconds
    small = {n: 2 if d.ordered else 1 for n, d in identity.system.dims.items()}
    for edit in edits(identity):
        if time.perf_counter() > end:
            return None
        try:
            repaired = read_statement(identity.system, edit.text)
            if repaired.lhs == repaired.rhs:
                continue
            # a look at one small point spares most of the proofs that would fail
            if refute(repaired, sizes=small) is None and prove(repaired).proved:
                return edit
        except DeriveError:
            continue
    return None


def equivalent_or_false(system: System, text: str) -> str:
    """Return ``equivalent``, ``refuted``, ``undecided`` or ``ill-formed`` for a variant."""
    try:
        identity = read_statement(system, text)
        check_ranges(identity)
        if refute(identity) is not None:
            return "refuted"
        return "equivalent" if prove(identity).proved else "undecided"
    except DeriveError:
        return "ill-formed"
