"""Views of a large system: which definitions a proof looks into, and which names it leaves free.

An identity that holds for every value of a name holds for the value that its equation gives. So a
proof may leave any names of states, adjoints and total derivatives free. Unfolding all of a whole
encoder block takes thousands of terms, where a statement about one part of it needs a few.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from derive.calculus import adjoint_equations
from derive.equation import System
from derive.index import Expr
from derive.nodes import kind, tensor_name, walk
from derive.statement import Identity
from derive.support import _upstream

MAX_STEPS = 4
"""How many steps of reading a view goes down from what a statement uses."""


def views(identity: Identity, lemmas: tuple[Identity, ...] = ()) -> list[frozenset[str]]:
    """Return sets of names to leave free, the smallest view of the system first.

    The first looks into the values that the statement uses, and into its topmost adjoints and total
    derivatives on their way to the others; the second also into the values on that way. Then come
    all that it uses, the derivatives between them, the values between them too, and what is read
    within a few steps of the first. Of a lemma the left side counts as used; the right side stays
    free.
    """
    graph = graph_of(identity.system)
    used = frozenset(n for side in (identity.lhs, identity.rhs) for n in mentioned(side))
    ends = frozenset(n for u in lemmas for n in mentioned(u.rhs)) - used
    used |= frozenset(n for u in lemmas for n in mentioned(u.lhs)) - ends
    slopes = frozenset(n for n in used if ":" in n)
    top = slopes.difference(*(graph.reachable(n) - {n} for n in slopes))
    # in a recurrence each leads to each: what the left side is about is then looked into
    top = top or slopes & frozenset(mentioned(identity.lhs))
    between = graph.between(used, ends)
    first = (used - slopes) | top | graph.down(top, used)
    looked = (
        first,
        first | {top_of(n) for n in first - slopes} | {top_of(n) for n in top if n[0] == "d"},
        used,
        used | {n for n in graph.between(slopes, ends) if ":" in n},
        used | {n for n in between if ":" in n},
        used | between,
        *graph.widening(first),
    )
    found = [graph.names(used) - names | ends for names in looked]
    return [free for free in dict.fromkeys(found) if free]


def unrelated(identity: Identity, others: tuple[Identity, ...]) -> frozenset[str]:
    """Return the names to which nothing in some statements leads: proofs need none of them."""
    graph = graph_of(identity.system)
    sides = (s for i in (identity, *others) for s in (i.lhs, i.rhs))
    used = frozenset(n for side in sides for n in mentioned(side))
    return graph.names(frozenset()) - used.union(*(graph.reachable(n) for n in used))


def breadth(identity: Identity) -> int:
    """Return how many definitions a statement leads to, however far down."""
    graph = graph_of(identity.system)
    used = {n for side in (identity.lhs, identity.rhs) for n in mentioned(side)}
    return len(used.union(*(graph.reachable(n) for n in used)))


def mentioned(expr: Expr) -> Iterator[str]:
    """Yield the names of states, adjoints (``g:X``) and total derivatives (``d:Y/X``) read."""
    if kind(expr) == "Total":
        top, by = (str(tensor_name(a)) for a in expr.args)
        yield f"g:{by}" if top == "L" else f"d:{top}/{by}"
        return
    name = tensor_name(expr)
    if name is not None:
        yield name
        return
    for arg in expr.args:
        yield from mentioned(arg)


def top_of(name: str) -> str:
    """Return the tensor whose value, adjoint or total derivative a name is."""
    return name.partition(":")[2].partition("/")[0] or name


class Graph:
    """Which names a definition reads: values, adjoints and total derivatives of one system."""

    def __init__(self, system: System):
        self.system = system
        self.open = open_names(system)

    def names(self, used: frozenset[str]) -> frozenset[str]:
        """Return every name that could be left free."""
        states = {n for n in self.system.by_name if n not in self.open and n != "L"}
        if self.system.loss:
            states |= {f"g:{n}" for n in reading(self.system)}
        below = {r for n in used if n.startswith("d:") for r in self.reachable(n)}
        return frozenset(states | {n for n in below if n.startswith("d:")})

    def reads(self, name: str) -> frozenset[str]:
        """Return the names that a definition reads."""
        start, _, rest = name.partition(":")
        if start == "g" and rest:
            return reading(self.system).get(rest, frozenset())
        if start == "d" and rest:
            return self.total(*rest.split("/"))
        return values(self.system).get(name, frozenset())

    def total(self, top: str, by: str) -> frozenset[str]:
        """Return what the total derivative of one tensor by another reads."""
        below = values(self.system).get(top, frozenset())
        upstream = _upstream(self.system)
        return below | {top} | {f"d:{r}/{by}" for r in below if by in upstream[r] and r != by}

    @lru_cache(maxsize=4096)  # noqa: B019 - one graph per system, kept as long as the process
    def reachable(self, name: str) -> frozenset[str]:
        """Return every name that a definition leads to."""
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            new = self.reads(waiting.pop()) - seen
            seen |= new
            waiting += new
        return frozenset(seen)

    def down(self, top: frozenset[str], used: frozenset[str]) -> frozenset[str]:
        """Return the derivatives on a path from a top one to a used name, past no used name."""
        seen: set[str] = set()
        waiting = list(top)
        while waiting:
            new = {n for n in self.reads(waiting.pop()) if ":" in n} - seen - used
            seen |= new
            waiting += new
        ends = {n for n in seen if self.reads(n) & used}
        grown = True
        while grown:
            more = {n for n in seen - ends if self.reads(n) & ends}
            ends |= more
            grown = bool(more)
        return frozenset(ends)

    def widening(self, used: frozenset[str]) -> Iterator[frozenset[str]]:
        """Yield what is read within one step of some names, within two, and so on."""
        for _ in range(MAX_STEPS):
            used = used.union(*(self.reads(n) for n in used))
            yield used

    def between(self, used: frozenset[str], ends: frozenset[str]) -> frozenset[str]:
        """Return the names on a path of definitions from a used name to a used one or an end."""
        below: frozenset[str] = frozenset().union(*(self.reachable(n) for n in used))
        return frozenset(n for n in below if self.reachable(n) & (used | ends))


@lru_cache(maxsize=128)
def graph_of(system: System) -> Graph:
    """Return the graph of a system, made once."""
    return Graph(system)


@lru_cache(maxsize=128)
def values(system: System) -> dict[str, frozenset[str]]:
    """Return the names that each state's equation reads."""
    return {
        e.tensor.name: frozenset(str(tensor_name(r)) for r in e.reads) for e in system.equations
    }


@lru_cache(maxsize=128)
def reading(system: System) -> dict[str, frozenset[str]]:
    """Return the names that each adjoint equation reads, adjoints as ``g:X``."""
    out = {}
    for equation in adjoint_equations(system):
        names = {str(tensor_name(n)) for n in walk(equation.rhs)} - {"None"}
        out[equation.tensor.name[2:]] = frozenset(
            f"g:{n[2:]}" if n.startswith("g_") and n[2:] in system.tensors else n for n in names
        )
    return out


@lru_cache(maxsize=128)
def open_names(system: System) -> frozenset[str]:
    """Return the states that only name a function's value: derivatives write it out."""
    return frozenset(e.tensor.name for e in system.equations if e.rhs.is_Function)
