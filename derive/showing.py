"""`show`: the equations of a topic, the derived adjoints, their steps, and numbers beside them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import flint

from derive import topics
from derive.case import Case, Group
from derive.case_load import case_ids, find_case
from derive.case_values import Values
from derive.claim import Claim, Step
from derive.derivation import derivation
from derive.equation import Equation, System
from derive.errors import DeriveError, nearest
from derive.explicit import Explicit
from derive.holding import premises
from derive.index import Expr
from derive.instances import Env
from derive.nodes import Total, entry_indices, kind, rebuild, tensor_name, walk
from derive.parse import parse_statement
from derive.printing import to_text, to_unicode
from derive.prove import prove
from derive.refute import refute
from derive.statement import read_statement
from derive.topics import Topic
from derive.unelaborate import unelaborate, unelaborate_equation

DIGITS = 4
MAX_ROWS = 400


def show(target: str, steps: bool = False, case: str = "", at: str = "") -> list[str]:
    """Return the lines that show a topic or a claim.

    Args:
        target: A topic, or a claim's id.
        steps: Every step, with the name of its rule.
        case: A case whose numbers stand beside; "" for none (for ``at``: the first shipped one).
        at: One number to explain, as in ``g_h,t=1``.

    Raises:
        DeriveError: On an unknown target, quantity or index.
    """
    name = target.split(".")[0]
    topic = topics.load(name)
    found = [find_case(case)] if case else shipped_cases(name) if at else []
    if at:
        return list(explained(topic, found, at))
    if "." in target:
        return list(claim_lines(topic, target, steps))
    return list(topic_lines(topic, found, steps))


def shipped_cases(topic: str) -> list[Case]:
    """Return the shipped cases on a topic."""
    return [c for c in map(find_case, case_ids()) if topic in c.topics]


def topic_lines(topic: Topic, cases: list[Case], steps: bool) -> Iterator[str]:
    """Yield the equations of a topic's systems, and the derivation for each loss of the first."""
    yield f"{topic.title}  ({topic.source})"
    for number, system in enumerate(distinct(topic)):
        yield ""
        yield "Equations" if number == 0 else f"System {system.name}"
        for equation in system.equations:
            yield f"  {pretty(system, equation)}"
        if not system.equations:
            yield f"  none: the claims are about shapes (derive list quantities {topic.name})"
        yield from (f"  {line}" for line in random_lines(system))
        if number == 0 or topic.default.losses == {}:
            yield from loss_lines(system, cases, steps)


def distinct(topic: Topic) -> list[System]:
    """Return the systems of a topic, of those with the same equations the first."""
    found: dict[object, System] = {}
    for system in topic.systems.values():
        found.setdefault(tuple(e.text for e in system.equations) or "no equations", system)
    return list(found.values())


def random_lines(system: System) -> Iterator[str]:
    """Yield what is known of the random tensors of a system."""
    for name, moments in system.random.items():
        known = {"mean": moments.mean, "variance": moments.variance}
        texts = {w: to_text(unelaborate(m)) for w, m in known.items() if m is not None}
        parts = [f"{word} {text.partition('[')[0]}" for word, text in texts.items()]
        yield f"{name} is random, its entries independent: {', '.join(parts)}"


def loss_lines(system: System, cases: list[Case], steps: bool) -> Iterator[str]:
    """Yield the derivation for each loss of a system."""
    for loss in system.losses:
        chosen = system.with_loss(loss)
        group = next((g for c in cases for g in c.groups.values() if g.system is chosen), None)
        yield ""
        yield f"Loss {loss}"
        yield f"  {pretty(chosen, chosen.by_name['L'])}"
        yield from adjoint_lines(chosen, steps, group)


def adjoint_lines(system: System, steps: bool, group: Group | None) -> Iterator[str]:
    """Yield the derived adjoints, in backward order."""
    values = Values(group) if group is not None else None
    for number, (equation, made) in enumerate(derivation(system), 1):
        yield ""
        yield f"  {number}. {pretty(system, equation)}"
        for step in made if steps else ():
            yield from step_lines(step)
        if values is not None:
            yield from number_lines(equation, values)


def step_lines(step: Step) -> Iterator[str]:
    """Yield one step."""
    yield f"       {step.rule}: {step.after}"
    yield f"         because {step.reason}" + (
        f"; from {step.before}" if step.rule == "local derivative" else "")  # fmt: skip


def pretty(system: System, equation: Equation) -> str:
    """Return an equation in Unicode: as it is written, or as it was derived."""
    if equation.text and "=" in equation.text:
        return to_unicode(parse_statement(equation.text, system.scope.is_name), system.scope)
    node = unelaborate_equation(equation.lhs, equation.rhs, tensors=system.tensors)
    return to_unicode(node, system.scope)


def number_lines(equation: Equation, values: Values) -> Iterator[str]:
    """Yield a group's values of one adjoint, a row for each position."""
    world = values.world(128)
    tensor, sizes = equation.tensor, values.group.sizes
    name = tensor.name[2:]
    if any(d.name not in sizes for d in tensor.dims):
        return
    rows = [range(tensor.first if s == 0 and d.ordered else 0, sizes[d.name])
            for s, d in enumerate(tensor.dims)]  # fmt: skip
    heads = list(product(*rows[:-1]))[:MAX_ROWS]
    for head in heads:
        entries = [(*head, last) for last in rows[-1]] if rows else [()]
        numbers = ", ".join(decimal(world.total("L", (), name, i)) for i in entries)
        place = f"[{','.join(map(str, head))}]" if head else ""
        yield f"       {tensor.name}{place} = ({numbers})"


def decimal(value: Any, places: int = DIGITS) -> str:
    """Return a value rounded to a few decimals, certified by its ball (``~`` where it is not)."""
    shifted = flint.arb(value) * 10**places + flint.arb(0.5)
    units = shifted.floor().unique_fmpz()
    if units is None:
        return f"~{float(flint.arb(value).mid()):.{places}f}"
    sign, digits = ("-" if units < 0 else ""), str(abs(int(units))).rjust(places + 1, "0")
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


# One claim


def claim_lines(topic: Topic, target: str, steps: bool) -> Iterator[str]:
    """Yield a claim, its proof or counterexample, and what it stands on."""
    claim = next((c for c in topic.claims if c.id == target), None)
    if claim is None:
        hint = nearest(target, [c.id for c in topic.claims])
        raise DeriveError(f"{topic.name} has no claim {target!r}", hint=hint)
    yield f"{claim.id}: {claim.title}"
    if claim.probe:
        from derive.checks.probes import words

        yield f"  probe {claim.probe}: {words(claim.probe)}"
    if not claim.statement:
        return
    system = topic.system_of(claim)
    identity = read_statement(system, claim.statement)
    yield f"  {to_unicode(identity.syntax, system.scope)}"
    for text in claim.assumes:
        yield f"  assuming {text}"
    yield from verdict_lines(topic, claim, system)
    if steps and system.loss:
        names = {tensor_name(n.args[1]) for n in _derivatives(identity.lhs, identity.rhs)}
        for equation, made in derivation(system):
            if equation.tensor.name[2:] in names:
                yield ""
                yield f"  {pretty(system, equation)}"
                for step in made:
                    yield from step_lines(step)


def _derivatives(*sides: Expr) -> list[Expr]:
    """Return the loss derivatives in some expressions."""
    nodes = [n for side in sides for n in walk(side)]
    return [n for n in nodes if kind(n) == "Total" and tensor_name(n.args[0]) == "L"]


def verdict_lines(topic: Topic, claim: Claim, system: System) -> Iterator[str]:
    """Yield how a claim is proved or where it fails."""
    by_id = {c.id: c for c in topic.claims}
    given = premises(system, claim.assumes)
    identity = read_statement(given.system, claim.statement)
    using = tuple(read_statement(given.system, by_id[u].statement) for u in claim.using)
    proof = prove(identity, given.equations, using)
    if proof.proved:
        sizes = " ".join(system.dims)
        yield f"  proved for all {sizes} by {proof.kind}: {proof.detail}"
        if proof.rules:
            yield f"  rules used: {', '.join(r.replace('_', ' ') for r in proof.rules)}"
        return
    found = refute(identity, given.assumed)
    yield f"  false {found}" if found else f"  not proved: {proof.detail}"
    if claim.reason:
        yield f"  reason: {claim.reason}"


# One number


def explained(topic: Topic, cases: list[Case], at: str) -> Iterator[str]:
    """Yield one number's equation with its digits substituted.

    Raises:
        DeriveError: If the quantity or an index is unknown, or no case gives numbers.
    """
    name, fixed = read_place(at)
    groups = [g for c in cases for g in c.groups.values() if g.topic == topic.name]
    if not groups:
        raise DeriveError(f"no case gives numbers for {topic.name}", hint="name one with --case")
    for group in groups:
        equation = equation_of(group.system, name)
        if equation is None:
            continue
        known = [s.name.split("'")[0] for s in equation.indices]
        wrong = [n for n in fixed if n not in known]
        if wrong:
            raise DeriveError(f"{name} has no index {wrong[0]!r}", hint=nearest(wrong[0], known))
        yield f"{group.name}: {pretty(group.system, equation)}"
        yield from entries_explained(group, equation, fixed)
        yield ""
    if all(equation_of(g.system, name) is None for g in groups):
        known = [*groups[0].system.by_name, *("g_" + t for t in groups[0].system.tensors)]
        raise DeriveError(f"nothing is derived for {name!r}", hint=nearest(name, known))


def read_place(at: str) -> tuple[str, dict[str, int]]:
    """Read ``g_h,t=1`` into a name and fixed indices."""
    name, *parts = (p.strip() for p in at.split(","))
    fixed: dict[str, int] = {}
    for part in parts:
        index, equals, number = part.partition("=")
        if not equals or not number.strip().lstrip("-").isdigit():
            raise DeriveError(f"--at takes a quantity and positions, as in g_h,t=1; found {at!r}")
        fixed[index.strip()] = int(number)
    return name, fixed


def equation_of(system: System, name: str) -> Equation | None:
    """Return the equation of a state, or the derived one of an adjoint."""
    if name in system.by_name:
        return system.by_name[name]
    if not system.loss:
        return None
    return next((e for e, _ in derivation(system) if e.tensor.name == name), None)


def entries_explained(group: Group, equation: Equation, fixed: dict[str, int]) -> Iterator[str]:
    """Yield each entry of an equation at the fixed indices, its terms written with their digits."""
    values = Values(group)
    world = values.world(128)
    ranges = []
    for slot, (symbol, dim) in enumerate(zip(equation.indices, equation.tensor.dims, strict=True)):
        first = equation.tensor.first if slot == 0 and dim.ordered else 0
        letter = symbol.name.split("'")[0]
        size = group.sizes[dim.name]
        if letter in fixed and not first <= fixed[letter] < size:
            raise DeriveError(f"{letter} = {fixed[letter]} is outside {first}..{size - 1}")
        ranges.append([fixed[letter]] if letter in fixed else range(first, size))
    for index in list(product(*ranges))[:MAX_ROWS]:
        env = dict(zip(equation.indices, index, strict=True))
        reader = Substituted(world)
        value = world.value(reader.readable(equation.rhs), env)
        place = f"{equation.tensor.name}[{','.join(map(str, index))}]"
        yield f"  {place} = {reader.text(equation.rhs, env)} = {decimal(value)}"


class Substituted:
    """Writes an expression at explicit indices with its entries replaced by their digits."""

    def __init__(self, world: Explicit):
        self.world = world

    def readable(self, expr: Expr) -> Expr:
        """Return an expression with adjoint entries as derivatives, which a world can evaluate."""
        system = self.world.system
        mapping = {}
        for node in walk(expr):
            name = tensor_name(node)
            if name and name not in system.tensors and name.startswith("g_"):
                entry = system.tensors[name[2:]].at(*entry_indices(node))
                mapping[node] = Total(system.tensors["L"].at(), entry)
        return rebuild(expr, mapping)

    def number(self, expr: Expr, env: Env) -> str:
        """Return the digits of a value."""
        return decimal(self.world.value(self.readable(expr), env))

    def text(self, expr: Expr, env: Env) -> str:
        """Return an expression with its numbers."""
        full = {**self.world.size_env, **env}
        if expr.is_Add:
            return " + ".join(self.text(a, env) for a in expr.args)
        if expr.is_Mul:
            return "·".join(self.factor(a, env) for a in expr.args)
        if kind(expr) == "Sum":
            symbol, first, last = expr.limits[0]
            span = range(self.world.index(first, full), self.world.index(last, full) + 1)
            terms = [self.text(expr.function, {**env, symbol: i}) for i in span]
            return " + ".join(terms) if terms else "0"
        return self.number(expr, env)

    def factor(self, expr: Expr, env: Env) -> str:
        """Return one factor, in parentheses where it is a sum or negative."""
        if kind(expr) == "Sum":
            return f"({self.text(expr, env)})"
        shown = self.number(expr, env)
        return f"({shown})" if shown.startswith("-") else shown
