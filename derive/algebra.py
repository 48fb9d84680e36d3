"""What the normal form knows about one system: definitions, supports, named nonlinearities.

Atoms are named by kind: ``h`` a tensor, ``g:h`` the adjoint dL/dh, ``d:h/W`` the total derivative
of h by W, ``#T`` a size, ``@`` an index as a number, ``^:w`` a symbolic power, ``P:..`` an ordered
matrix product, ``tanh:..`` and ``den:..`` a nonlinearity or denominator named by its content.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import sympy as sp

from derive.abstract import NAMED, Named
from derive.calculus import adjoint_equations, tangent
from derive.cycles import feedback
from derive.equation import Equation, System
from derive.index import Expr, index_symbol
from derive.mirrors import Alias, unmirrored
from derive.nodes import Total, kind, tensor_name
from derive.support import Edges, _support, _upstream, size_base
from derive.terms import Atom, Guards, Ix, Key, Term, canonical_key


@dataclass
class Definition:
    """``name[params] = terms``, where the params satisfy the edges (else zero, if guarded)."""

    params: tuple[str, ...]
    terms: list[Term]
    reads: set[tuple[str, bool]] = field(default_factory=set)


Lower = Callable[["Algebra", Expr, dict[Expr, Ix], Guards], list[Term]]


@dataclass(frozen=True)
class Signs:
    """Tensors all of whose entries are assumed not to be negative, or to be positive."""

    nonnegative: frozenset[str] = frozenset()
    positive: frozenset[str] = frozenset()


class Algebra:
    """Definitions and supports of one system, made on demand and kept.

    Args:
        system: The system.
        lower: Takes an expression to terms.
        signs: What is assumed of whole tensors.
        free: Names that are left free: what holds for all their values holds for their own.
    """

    def __init__(self, system: System, lower: Lower, signs: Signs,
                 free: frozenset[str] = frozenset()):  # fmt: skip
        self.system, self.lower, self.signs, self.free = system, lower, signs, free
        self.zeros = frozenset(n for n, how in system.initial.items() if how == "zeros")
        self.prefer: frozenset[str] = frozenset()
        self.opened: set[str] = set()
        self.arguments: dict[str, Named] = {}
        self.divided: frozenset[str] | None = None
        self.mentioned: dict[str, frozenset[str]] = {}
        self.made: dict[str, Definition | None] = {}
        self.busy: set[str] = set()
        self._cut: dict[str, bool] = {}
        self.folds: dict[Key, list[str]] = {}
        self.aliases: dict[str, Alias] = {}
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
        (name, places), turned = unmirrored(kind(equation.rhs), terms) or (("", ()), False)
        whole = {b for b, _ in env.values()} <= {b for b, _ in places}
        if not whole or ":" not in name or name in self.aliases:
            # a selected class, a value that repeats along an axis, a second name: it unfolds
            self.opened.add(equation.tensor.name)
            self.made.pop(equation.tensor.name, None)  # it was no definition until now
            return
        bases = tuple(b for b, _ in env.values())
        self.aliases[name] = Alias(equation.tensor.name, places, bases, turned)

    def alias(self, atom: Atom) -> tuple[Atom, bool]:
        """Return the tensor entry that names a nonlinearity, or the atom itself.

        With it stands whether the entry names f(-x) where the atom is f(x).
        """
        name, places = atom
        if name not in self.aliases:
            return atom, False
        known = self.aliases[name]
        pattern, bases = known.places, known.bases
        found: dict[str, Ix] = {}
        for (base, offset), (at, n) in zip(pattern, places, strict=True):
            if base not in bases:
                if (base, offset) != (at, n):
                    return atom, False
            elif found.setdefault(base, (at, n - offset)) != (at, n - offset):
                return atom, False
        if len(found) != len(bases):
            return atom, False
        return (known.tensor, tuple(found[b] for b in bases)), known.turned

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
            try:
                self.made[name] = self._define(name)
            finally:
                self.busy.discard(name)
        return self.made[name]

    def _define(self, name: str) -> Definition | None:
        if name in self.free:
            return None
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
        from derive.angles import turns_with_position

        opens = equation.tensor.name in self.opened or kind(equation.rhs) in OPEN_KINDS
        opens = opens or turns_with_position(equation)
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

        def slope_of(read: Expr) -> Expr:
            reached = by in self.upstream(str(tensor_name(read)))
            return Total(read, target) if reached else sp.Integer(0)

        slope = tangent(equation.rhs, slope_of)
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
