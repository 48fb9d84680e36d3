"""What the normal form knows about one system: definitions, supports, named nonlinearities.

Atoms are named by kind: ``h`` a tensor, ``g:h`` the adjoint dL/dh, ``d:h/W`` the total derivative
of h by W, ``#T`` a size, ``@`` an index as a number, ``^:w`` a symbolic power, ``P:..`` an ordered
matrix product, ``tanh:..`` and ``den:..`` a nonlinearity or denominator named by its content.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import permutations, product

from derive.calculus import adjoint_equations, system_uses, tangent
from derive.equation import Equation, System
from derive.index import Expr, affine, index_symbol
from derive.nodes import Total, kind
from derive.terms import Atom, Guards, Ix, Key, Term, canonical_key, substitute

Edges = list[tuple[tuple[str, str], int]]


def size_base(dim: str) -> str:
    """Return the base that stands for the size of an ordered axis."""
    return "#" + dim


@dataclass
class Definition:
    """``name[params] = terms``, where the params satisfy the edges (else zero, if guarded)."""

    params: tuple[str, ...]
    terms: list[Term]
    reads: set[tuple[str, bool]] = field(default_factory=set)


@dataclass(frozen=True)
class Named:
    """A nonlinearity or denominator that is named by the content of its argument."""

    params: tuple[str, ...]
    terms: tuple[Term, ...]


NAMED: dict[str, Named] = {}


def digest(key: object) -> str:
    """Return a short name for a canonical key, the same in every process."""
    return hashlib.blake2s(repr(key).encode(), digest_size=8).hexdigest()


def names_in(terms: list[Term]) -> list[str]:
    """Return the bases that are not bound, each once, sorted.

    A position that stands in a guard alone counts: the value depends on it all the same.
    """
    found = {b for t in terms for _, places in t.factors for b, _ in places if b not in t.bound}
    guarded = {b for t in terms for pair in t.guards for b in pair if b not in t.bound}
    return sorted(found | {b for b in guarded if b and not b.startswith("#")})


def unpinned(term: Term) -> Term:
    """Return a term with its pins written as guards."""
    out = term.copy()
    out.pinned = {}
    for base, (to, offset) in term.pinned.items():
        out.guard((base, 0), (to, offset))
        out.guard((to, offset), (base, 0))
    return out


def abstract(kind: str, terms: list[Term]) -> tuple[str, tuple[Ix, ...]]:
    """Name a normal form by its content, as a function of its free indices.

    Returns the name and the indices at which it is taken. The name is the same for two normal forms
    that differ in the names (and a common shift) of their free indices.
    """
    terms = [unpinned(t) for t in terms]
    bases = names_in(terms)
    low = {b: min((o for t in terms for _, places in t.factors for x, o in places if x == b),
                  default=0) for b in bases}  # fmt: skip
    groups = _groups(terms, bases, low)
    best: tuple[Key, tuple[str, ...], list[Term]] | None = None
    for order in _orders(groups):
        mapping: dict[str, Ix] = {b: (f"?{i}", -low[b]) for i, b in enumerate(order)}
        moved = [m for t in terms if (m := substitute(t, mapping)) is not None]
        key = tuple(sorted((canonical_key(t), t.coef) for t in moved))
        if best is None or key < best[0]:
            best = (key, order, moved)
    assert best is not None
    key, order, moved = best
    name = f"{kind}:{digest(key)}"
    NAMED.setdefault(name, Named(tuple(f"?{i}" for i in range(len(order))), tuple(moved)))
    return name, tuple((b, low[b]) for b in order)


def _groups(terms: list[Term], bases: list[str], low: dict[str, int]) -> list[list[str]]:
    """Group bases that their structure does not tell apart, in a canonical order."""
    marks: dict[str, str] = {}
    for base in bases:
        mapping: dict[str, Ix] = {b: ("?", -low[b]) for b in bases}
        mapping[base] = ("!", -low[base])
        views = [m for t in terms if (m := substitute(t, mapping)) is not None]
        marks[base] = repr(sorted((canonical_key(t), t.coef) for t in views))
    classes: dict[str, list[str]] = {}
    for base in bases:
        classes.setdefault(marks[base], []).append(base)
    return [classes[m] for m in sorted(classes)]


def _orders(groups: list[list[str]]) -> list[tuple[str, ...]]:
    """Return the orders to try: all permutations within small groups, the given one in large."""
    choices = [list(permutations(g)) if len(g) <= 4 else [tuple(g)] for g in groups]
    return [tuple(b for part in pick for b in part) for pick in product(*choices)]


Lower = Callable[["Algebra", Expr, dict[Expr, Ix], Guards], list[Term]]


class Algebra:
    """Definitions and supports of one system, made on demand and kept."""

    def __init__(self, system: System, lower: Lower):
        self.system, self.lower = system, lower
        self.prefer: frozenset[str] = frozenset()
        self.opened: set[str] = set()
        self.made: dict[str, Definition | None] = {}
        self.busy: set[str] = set()
        self._cut: dict[str, bool] = {}
        self.folds: dict[Key, list[str]] = {}
        self.aliases: dict[str, tuple[str, tuple[Ix, ...], tuple[str, ...]]] = {}
        for equation in system.equations:
            if self.names_nonlinearity(equation):
                self._alias(equation)
            else:
                self.definition(equation.tensor.name)

    def _alias(self, equation: Equation) -> None:
        """Remember that an equation names this nonlinearity: tanh(z[t,j]) is h[t,j]."""
        params = tuple(f"?{i}" for i in range(len(equation.indices)))
        env: dict[Expr, Ix] = {
            s: (f"{p}=", 0) for s, p in zip(equation.indices, params, strict=True)
        }
        terms = self.lower(self, equation.rhs, env, {})
        bare = len(terms) == 1 and terms[0].coef == 1 and list(terms[0].factors.values()) == [1]
        name, places = next(iter(terms[0].factors)) if bare else ("", ())
        if not bare or terms[0].bound or terms[0].guards or ":" not in name or name in self.aliases:
            # a selected class, a number, or a second name for the same value: it unfolds
            self.opened.add(equation.tensor.name)
            return
        self.aliases[name] = (equation.tensor.name, places, tuple(b for b, _ in env.values()))

    def alias(self, atom: Atom) -> Atom:
        """Return the tensor entry that names a nonlinearity, or the atom itself."""
        name, places = atom
        if name not in self.aliases:
            return atom
        tensor, pattern, bases = self.aliases[name]
        found: dict[str, Ix] = {}
        for (base, offset), (at, n) in zip(pattern, places, strict=True):
            if base not in bases:
                if (base, offset) != (at, n):
                    return atom
            elif found.setdefault(base, (at, n - offset)) != (at, n - offset):
                return atom
        return (tensor, tuple(found[b] for b in bases)) if len(found) == len(bases) else atom

    # supports: where an atom can be non-zero

    def edges(self) -> Edges:
        """Return what always holds: every size is at least one."""
        return [(("", size_base(d.name)), -1) for d in self.system.dims.values() if d.ordered]

    def support(self, atom: Atom) -> Edges:
        """Return the guards outside which a zero-extended atom is zero."""
        return list(_support(self.system, atom))

    # definitions

    def definition(self, name: str) -> Definition | None:
        """Return the defining equation of an atom's name, None for a free generator."""
        if name not in self.made:
            if name in self.busy:
                return None
            self.busy.add(name)
            self.made[name] = self._define(name)
            self.busy.discard(name)
        return self.made[name]

    def _define(self, name: str) -> Definition | None:
        kind, _, rest = name.partition(":")
        if kind == "g" and rest:
            return self._adjoint(rest)
        if kind == "d" and rest:
            return self._total(*rest.split("/"))
        if rest or name not in self.system.tensors:
            return None
        equation = self.system.by_name.get(name) or self.system.derived_by_name.get(name)
        if equation is None or self.names_nonlinearity(equation):
            return None
        return self._lowered(equation, False)

    def needs_position(self, name: str) -> bool:
        """Tell whether a state has initial positions, where its equation does not hold."""
        tensor = self.system.tensors.get(name)
        return tensor is not None and tensor.first < 0

    def names_nonlinearity(self, equation: Equation) -> bool:
        """Tell whether an equation only names a function value, so that its name is a generator."""
        opens = equation.tensor.name in self.opened or kind(equation.rhs) in OPEN_KINDS
        return bool(equation.rhs.is_Function) and not opens

    def _lowered(self, equation: Equation, guarded: bool, first: int = 0) -> Definition:
        """Lower an equation's right side over placeholder indices."""
        params = tuple(f"?{i}" for i in range(len(equation.indices)))
        env: dict[Expr, Ix] = {s: (p, 0) for s, p in zip(equation.indices, params, strict=True)}
        domain: Guards = {}
        for param, dim in zip(params, equation.tensor.dims, strict=True):
            if dim.ordered:
                domain["", param] = -first if param == "?0" else 0
                domain[param, size_base(dim.name)] = -1
        terms = self.lower(self, equation.rhs, env, domain)
        if guarded:
            for term in terms:
                for (a, b), c in domain.items():
                    term.guard((a, 0), (b, c))
        return Definition(params, terms, _reads(terms))

    def _adjoint(self, name: str) -> Definition | None:
        """Return the derived adjoint equation of a tensor; zero where the loss does not reach."""
        params = tuple(f"?{i}" for i in range(len(self.system.tensors[name].dims)))
        for equation in adjoint_equations(self.system):
            if equation.tensor.name == "g_" + name:
                return self._lowered(equation, True, equation.tensor.first)
        return Definition(params, [])

    def _total(self, name: str, by: str) -> Definition:
        """Return d name / d by: a direct delta, plus the tangent equation of name."""
        tensor, wrt = self.system.tensors[name], self.system.tensors[by]
        cut = len(tensor.dims)
        params = tuple(f"?{i}" for i in range(cut + len(wrt.dims)))
        terms: list[Term] = []
        if name == by:
            terms.append(_same_index(params[:cut], params[cut:], [d.ordered for d in tensor.dims]))
        equation = self.system.by_name.get(name)
        if equation is not None and by in self.upstream(name):
            terms += self._tangent(equation, wrt.name, params, cut)
        return Definition(params, terms, _reads(terms))

    def _tangent(
        self, equation: Equation, by: str, params: tuple[str, ...], cut: int
    ) -> list[Term]:
        """Lower the tangent of an equation along ``by``."""
        wrt = self.system.tensors[by]
        marks = [index_symbol(f"by{i}'") for i in range(len(wrt.dims))]
        target = wrt.at(*marks)
        slope = tangent(equation.rhs, lambda read: Total(read, target))
        pairs = zip((*equation.indices, *marks), params, strict=True)
        env: dict[Expr, Ix] = {s: (p, 0) for s, p in pairs}
        domain: Guards = {}
        for param, dim in zip(params[:cut], equation.tensor.dims, strict=True):
            if dim.ordered:
                domain["", param] = 0
                domain[param, size_base(dim.name)] = -1
        terms = self.lower(self, slope, env, domain)
        for term in terms:
            for (a, b), c in domain.items():
                term.guard((a, 0), (b, c))
        return terms

    @lru_cache(maxsize=512)  # noqa: B019 - one algebra per system, kept as long as the process
    def upstream(self, name: str) -> frozenset[str]:
        """Return the names that a tensor depends on, itself included."""
        return _upstream(self.system)[name]

    def add_fold(self, name: str) -> None:
        """Register a denominator, so that its leading sum folds into its name."""
        lead = lead_of(NAMED[name].terms)
        if lead is not None:
            known = self.folds.setdefault(fold_signature(lead), [])
            if name not in known:
                known.append(name)

    # which definitions unfold by themselves

    def preferring(self, names: frozenset[str]) -> Algebra:
        """Return the same algebra with another choice of the names that are kept."""
        other = copy.copy(self)
        other.prefer, other._cut = names, {}
        return other

    def cut(self, name: str) -> bool:
        """Tell whether a name is kept as a generator: its recurrence would unfold for ever.

        Of each cycle of definitions one name is kept; everything else unfolds (a state with initial
        positions only where its position is known to be at least 0).
        """
        if name not in self._cut:
            family = self.family(name)
            kept = feedback(family, {n: self._reads_of(n) for n in family}, self.prefer)
            for member in family:
                self._cut.setdefault(member, member in kept)
        return self._cut[name]

    def family(self, name: str) -> list[str]:
        """Return the names that a definition leads to, itself included, in a fixed order."""
        seen, waiting = {name}, [name]
        while waiting:
            new = {r for r, _ in self._reads_of(waiting.pop())} - seen
            seen |= new
            waiting += new
        return sorted(seen)

    def _reads_of(self, name: str) -> set[tuple[str, bool]]:
        definition = self.definition(name)
        return definition.reads if definition else set()


def feedback(
    names: list[str], reads: Mapping[str, set[tuple[str, bool]]], prefer: frozenset[str]
) -> set[str]:
    """Return names whose removal leaves no cycle of reads.

    First those that read themselves; then, while a cycle is left, a preferred name on it, else the
    one that most names on cycles read, else one that is read at another position.
    """
    kept = {n for n in names if any(r == n for r, _ in reads[n])}
    below = reachable(names, reads)
    looped = [n for n in names if n in below[n]]
    degree = {n: sum(any(r == n for r, _ in reads[m]) for m in looped) for n in names}
    while True:
        cycle = find_cycle(names, reads, kept)
        if not cycle:
            return kept
        moved = {r for n in cycle for r, shifted in reads[n] if shifted}
        kept.add(min(cycle, key=lambda n: (n not in prefer, -degree[n], n not in moved, n)))


def reachable(
    names: list[str], reads: Mapping[str, set[tuple[str, bool]]]
) -> dict[str, frozenset[str]]:
    """Return, for each name, every name that its definition leads to."""
    below = {n: frozenset(r for r, _ in reads[n]) for n in names}
    for _ in names:
        grown = {n: b.union(*(below[r] for r in b if r in below)) for n, b in below.items()}
        if grown == below:
            break
        below = grown
    return below


def find_cycle(
    names: list[str], reads: Mapping[str, set[tuple[str, bool]]], kept: set[str]
) -> list[str]:
    """Return the names on one cycle of reads that avoids the kept ones, [] if there is none."""
    done: set[str] = set()
    for start in names:
        path: list[str] = []
        stack = [(start, False)]
        while stack:
            name, leaving = stack.pop()
            if leaving:
                done.add(path.pop())
            elif name in path:
                return path[path.index(name) :]
            elif name in reads and name not in kept and name not in done:
                path.append(name)
                stack.append((name, True))
                stack += [(r, False) for r in sorted({r for r, _ in reads[name]})]
    return []


OPEN_KINDS = (
    "Softmax",
    "LogSumExp",
    "log",
    "exp",
    "Detach",
    "Product",
    "DProduct",
    "Power",
    "Total",
)


def lead_of(terms: tuple[Term, ...]) -> Term | None:
    """Return the term of a denominator that folds: one bound index, in every factor of the term."""
    leads = [t for t in terms if len(t.bound) == 1 and not t.pinned and all(
        any(b in t.bound for b, _ in places) for _, places in t.factors)]  # fmt: skip
    return max(leads, key=canonical_key, default=None)


def fold_signature(term: Term) -> Key:
    """Return what a leading sum looks like at first sight: its factors' names and powers."""
    return tuple(sorted((name, power) for (name, _), power in term.factors.items()))


def _reads(terms: list[Term]) -> set[tuple[str, bool]]:
    """Return the atoms read, and whether at another position than the first parameter's."""
    found = set()
    for term in terms:
        for name, places in term.factors:
            shifted = bool(places) and places[0][1] != 0
            found.add((name, shifted))
    return found


def _same_index(left: tuple[str, ...], right: tuple[str, ...], ordered: list[bool]) -> Term:
    """Return the product of deltas between two lists of placeholder indices."""
    term = Term(Fraction(1))
    for a, b, on_axis in zip(left, right, ordered, strict=True):
        if on_axis:
            term.guard((a, 0), (b, 0))
            term.guard((b, 0), (a, 0))
        else:
            term.times(("δ", ((a, 0), (b, 0))))
    return term


@lru_cache(maxsize=64)
def _upstream(system: System) -> dict[str, frozenset[str]]:
    """Return, for each tensor, the names that its value depends on through every equation."""
    deps: dict[str, set[str]] = {n: {n} for n in system.tensors}
    grown = True
    while grown:
        grown = False
        for name, pairs in system_uses(system).items():
            for equation, _ in pairs:
                before = len(deps[equation.tensor.name])
                deps[equation.tensor.name] |= deps[name]
                grown |= len(deps[equation.tensor.name]) > before
    return {n: frozenset(d) for n, d in deps.items()}


@lru_cache(maxsize=65536)
def _support(system: System, atom: Atom) -> tuple[tuple[tuple[str, str], int], ...]:
    """Return the support of a derivative or an ordered product; () for total functions."""
    name, places = atom
    kind, colon, rest = name.partition(":")
    if not colon:
        return ()
    if kind in ("P", "Q"):
        (a, m), (b, n) = places[2:4] if kind == "P" else (places[3], places[2])
        return (((a, b), n - m + 1),)
    if kind == "g":
        return tuple(_on_axes(system, rest, places))
    if kind != "d":
        return ()
    left, right = rest.split("/")
    cut = len(system.tensors[left].dims)
    out = [*_on_axes(system, left, places[:cut]), *_on_axes(system, right, places[cut:])]
    outer, inner = system.tensors[left].dims, system.tensors[right].dims
    if outer and outer[0].ordered:
        (t, m) = places[0]
        if inner and inner[0].ordered and inner[0].name == outer[0].name and causal(system, left):
            (s, n) = places[cut]
            out.append(((s, t), m - n))
        elif left in system.by_name and not (inner and inner[0].ordered):
            out.append((("", t), m))
    return tuple(out)


@lru_cache(maxsize=256)
def causal(system: System, name: str) -> bool:
    """Tell whether a state at t depends on nothing after t: every read follows its index."""
    for upstream in _upstream(system)[name]:
        equation = system.by_name.get(upstream)
        for read in equation.reads if equation else ():
            tensor = system.tensors[str(read.base.label)] if hasattr(read, "base") else None
            if tensor is None or not (tensor.dims and tensor.dims[0].ordered):
                continue
            if equation is None or not equation.indices:
                return False
            at = affine(read.indices[0])
            if at.base != equation.indices[0] or at.offset > 0:
                return False
    return True


def _on_axes(system: System, name: str, places: tuple[Ix, ...]) -> Edges:
    """Return first <= i <= size - 1 for the ordered axes of a tensor."""
    tensor, out = system.tensors[name], []
    for slot, ((base, offset), dim) in enumerate(zip(places, tensor.dims, strict=True)):
        if dim.ordered:
            first = tensor.first if slot == 0 else 0
            out += [(("", base), offset - first), ((base, size_base(dim.name)), -1 - offset)]
    return out


def value_key(terms: dict[Key, Term]) -> tuple[tuple[Key, str], ...]:
    """Return a printable fingerprint of a normal form."""
    return tuple(sorted((k, str(t.coef)) for k, t in terms.items()))
