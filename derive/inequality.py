"""Proofs of inequalities: a certificate, an induction whose step has one, a split into cases."""

from __future__ import annotations

from collections.abc import Callable

from derive.certificate import SCHEDULE, Certificate, certify
from derive.facts import Fact, all_assumed, squares
from derive.index import Expr
from derive.lower import lower
from derive.normal import NormalForm
from derive.prove import _Attempt, _show, move
from derive.statement import Identity
from derive.support import Edges
from derive.terms import Closure, Ix, Term


class InequalityAttempt(_Attempt):
    """One inequality in its context: what it says is not negative, and what is known."""

    def __init__(self, identity: Identity, assumes: tuple[str, ...], using: tuple[Identity, ...],
                 free: frozenset[str] = frozenset()):  # fmt: skip
        super().__init__(identity, assumes, using, free)
        self.rows = len(SCHEDULE)
        self.facts = (
            *self.facts,
            *(
                f
                for u in using
                if u.relation != "="
                for f in all_assumed(self.algebra, u, identity)
            ),
            *squares(self.algebra, identity),
        )
        self.using = tuple(u for u in using if u.relation == "=")

    def methods(self) -> tuple[Callable[[], tuple[str, str] | None], ...]:
        """Return the kinds of proof in the order in which they are tried."""
        return (self.quickly, self.quickly_by_cases, self.by_induction, self.by_lemmas,
                self.by_cases, self.by_identity)  # fmt: skip

    def quickly(self) -> tuple[str, str] | None:
        """Look for a certificate of single facts: it takes no time, and most need no more."""
        return self.within(1, self.by_identity)

    def quickly_by_cases(self) -> tuple[str, str] | None:
        """Split into cases that need no more than a few products: an induction costs more.

        What has a length that is not known (a power, a product), and what is said of two positions,
        is left to the induction.
        """
        apart = sum(dim.ordered for _, dim in self.identity.free) > 1
        atoms = (a for t in self.left.values() for a in t.factors)
        if apart or any(a[0].startswith(("^:", "P:", "Q:")) for a in atoms):
            return None
        return self.within(2, self.by_cases)

    def within(self, rows: int, method: Callable[[], tuple[str, str] | None]
               ) -> tuple[str, str] | None:  # fmt: skip
        """Call a method that goes no further down the schedule of certificates than some rows."""
        kept, self.rows = self.rows, min(rows, self.rows)
        found = method()
        self.rows = kept
        return found

    def difference(self, env: dict[Expr, Ix], edges: Edges) -> list[Term]:
        """Lower what is claimed not to be negative."""
        terms = lower(
            self.algebra, self.identity.gap, env, dict(sorted(edges, key=lambda e: -e[1]))
        )
        self.size = max(self.size, len(terms))
        return terms

    def settled(self, left: NormalForm) -> tuple[str, str] | None:
        """Tell how a normal form of the difference proves the statement, if it does."""
        found = self.certified(left)
        return None if found is None else ("inequality", found.why)

    def certified(self, form: NormalForm, more: tuple[Fact, ...] = ()) -> Certificate | None:
        """Search for a certificate of a normal form from what is known, and more."""
        return certify(self.normalizer, form, (*more, *self.facts), self.identity.strict, self.end,
                       self.rows, self.nonzero)  # fmt: skip

    def by_induction(self) -> tuple[str, str] | None:
        """Try each free position, upward and downward."""
        for symbol, dim in self.identity.free:
            if not dim.ordered or symbol.name in self.assumed_at:
                continue
            for direction in (1, -1):
                for start in self.starts(symbol.name, direction):
                    why = self.step_of(symbol, start, direction)
                    if why is not None:
                        way = "upward" if direction == 1 else "downward"
                        detail = f"over {symbol.name}, {way} from {_show(start)}: {why}"
                        return "inequality, induction", detail
        return None

    def step_of(self, symbol: Expr, start: Ix, direction: int) -> str | None:
        """Return the reasons of the step, None unless base and step have certificates."""
        env = {**self.env, symbol: start}
        edges = move(self.edges, symbol.name, start)
        if not Closure([*self.algebra.edges(), *edges]).consistent:
            return None
        base = self.reduce(env, edges, unfold=lambda a: bool(a[1]) and a[1][0] == start)
        if self.certified(base) is None:
            return None
        return self.step_from(symbol, start, direction)

    def step_from(self, symbol: Expr, start: Ix, direction: int) -> str | None:
        """From the inequality at exactly n, certify it one further, n anywhere from the start."""
        n = symbol.name
        edges = [*move(self.edges, n, (n, direction))]
        edges += [((start[0], n), -start[1])] if direction == 1 else [((n, start[0]), start[1])]
        context = Closure([*self.algebra.edges(), *edges])
        here = move(self.edges, n, (n, 0))
        if not context.consistent or not all(context.implies((a, 0), (b, c)) for (a, b), c in here):
            return None
        now = lower(self.algebra, self.identity.gap, self.env, dict(here))
        active = {(n, direction)}
        left = self.reduce({**self.env, symbol: (n, direction)}, edges, (),
                           lambda a: bool(a[1]) and a[1][0] in active)  # fmt: skip
        self.residual = len(left)
        # the hypothesis is taken to the same names as the step
        form = self.normalizer.normal(now)
        hypothesis = Fact(tuple(form.values()), "the inequality one position before")
        found = self.certified(left, (hypothesis,))
        return None if found is None else found.why
