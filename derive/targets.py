"""Targets of a check: topics, claims, cases, files and statements, as jobs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from derive import topics
from derive.case import Case, CaseClaim, Group
from derive.case_load import case_ids, find_case, load_text
from derive.claim import Claim
from derive.equation import System
from derive.errors import DeriveError, nearest
from derive.holding import held_names
from derive.judging import reads_loss
from derive.options import CheckOptions
from derive.statement import read_statement
from derive.topics import Topic

MAX_STDIN = 1 << 20


@dataclass(frozen=True)
class Job:
    """One claim to check.

    Args:
        claim: The claim.
        system: Its system, with its loss selected.
        case: The case that makes it, if one does.
        group: The group whose numbers it is checked on; None for random numbers.
        hints: Ids of claims that may serve as lemmas.
    """

    claim: Claim
    system: System
    case: Case | None = None
    group: Group | None = None
    hints: tuple[str, ...] = ()


def resolve(target: str, options: CheckOptions) -> Iterator[Job | Case]:
    """Yield the jobs and cases of a target."""
    if options.statement:
        yield from statement_jobs(target, options)
    elif target == "all":
        for name in topics.names():
            topic = topics.load(name)
            cases = cases_for(name, replace(options, case=""))
            yield from (topic_job(topic, claim, cases) for claim in topic.claims)
        for name in case_ids():
            yield from whole_case(find_case(name))
    elif target in topics.names():
        yield from topic_parts(topics.load(target), options)
    elif target == "-":
        yield from whole_case(load_text(sys.stdin.read(MAX_STDIN), "<stdin>"))
    elif target in case_ids() or target.endswith(".toml") or Path(target).exists():
        yield from whole_case(find_case(target))
    else:
        yield from one_claim(target, options)


def topic_parts(topic: Topic, options: CheckOptions) -> Iterator[Job | Case]:
    """Yield a topic's claims and the cases on it."""
    wanted = options.claim if "." in options.claim or not options.claim else (
        f"{topic.name}.{options.claim}")  # fmt: skip
    chosen = [c for c in topic.claims if wanted in ("", c.id)]
    if not chosen:
        known = [c.id for c in topic.claims]
        raise DeriveError(f"{topic.name} has no claim {wanted!r}", hint=nearest(wanted, known))
    cases = cases_for(topic.name, options)
    for claim in chosen:
        yield topic_job(topic, claim, cases)
    if not wanted:
        for case in cases:
            yield from whole_case(case.on_topic(topic.name))


def topic_job(topic: Topic, claim: Claim, cases: list[Case]) -> Job:
    """Return the job of a topic's claim, on the numbers of the first group that fits."""
    system = topic.system_of(claim)
    for case in cases:
        for group in case.groups.values():
            if group.system is system:
                return Job(claim, system, case, group)
    return Job(claim, system)


def cases_for(topic: str, options: CheckOptions) -> list[Case]:
    """Return the cases that a topic is checked on: the one asked for, else the shipped ones."""
    if options.case == "none":
        return []
    if options.case:
        case = find_case(options.case)
        if topic not in case.topics:
            raise DeriveError(
                f"case {case.id} has no group on topic {topic!r}",
                hint=f"its topics: {', '.join(case.topics) or 'none'}",
            )
        return [case]
    found = (find_case(name) for name in case_ids())
    return [case for case in found if topic in case.topics]


def one_claim(target: str, options: CheckOptions) -> Iterator[Job]:
    """Yield the claim of this id."""
    topic_name = target.split(".")[0]
    if topic_name in topics.names():
        topic = topics.load(topic_name)
        for claim in topic.claims:
            if claim.id == target:
                yield topic_job(topic, claim, cases_for(topic_name, options))
                return
    known = [*topics.names(), *case_ids(), "all"]
    if topic_name in topics.names():
        known += [c.id for c in topics.load(topic_name).claims]
    raise DeriveError(f"{target!r} is no topic, claim, case or file", hint=nearest(target, known))


def statement_jobs(target: str, options: CheckOptions) -> Iterator[Job]:
    """Yield the user's own statement, once for each loss that it could mean."""
    owner = statement_owner(target, options)
    for number, (system, group, case) in enumerate(statement_systems(owner, options)):
        name = f"{owner.name}.statement" + (f"-{system.loss}" if number else "")
        claim = Claim(
            name,
            owner.name,
            options.statement,
            "your statement",
            system.name,
            system.loss,
            assumes=options.assumes,
        )
        yield Job(claim, system, case, group, usable(owner))


def statement_owner(target: str, options: CheckOptions) -> Topic:
    """Return what a statement is about: a topic, or the systems of a file."""
    if target in topics.names():
        return topics.load(target)
    if target in case_ids() or Path(target).exists():
        case = find_case(target)
        systems = {**case.systems, **{g.system.name: g.system for g in case.groups.values()}}
        if systems:
            return Topic(case.id, case.title, systems, ())
    raise DeriveError(
        f"--statement needs a topic, or a file with a system; found {target!r}",
        hint=nearest(target, topics.names()),
    )


def statement_systems(
    owner: Topic, options: CheckOptions
) -> list[tuple[System, Group | None, Case | None]]:
    """Return the systems, with a loss selected where the statement reads ``L``."""
    name = options.system or readable(owner, options)
    if name not in owner.systems:
        raise DeriveError(f"{owner.name} has no system {name!r}", hint=nearest(name, owner.systems))
    system = owner.systems[name]
    if system.loss:
        losses = [system]
    elif options.loss:
        losses = [system.with_loss(options.loss)]
    elif system.losses:
        first = system.with_loss(next(iter(system.losses)))
        reads = reads_loss(read_statement(first, options.statement))
        losses = [system.with_loss(n) for n in system.losses] if reads else [first]
    else:
        losses = [system]
    cases = cases_for(owner.name, options) if owner.name in topics.names() else []
    pairs = [(g, c) for c in cases for g in c.groups.values()]
    return [(s, *next(((g, c) for g, c in pairs if g.system is s), (None, None))) for s in losses]


def readable(owner: Topic, options: CheckOptions) -> str:
    """Return the first of the systems that knows what a statement names; else the first of all."""
    for name, system in owner.systems.items():
        loss = options.loss or next(iter(system.losses), "")
        if loss and not system.loss and loss not in system.losses:
            continue
        chosen = system.with_loss(loss) if loss and not system.loss else system
        try:
            for text in (options.statement, *options.assumes):
                if not held_names(text):
                    read_statement(chosen, text)
        except DeriveError:
            continue
        return name
    return owner.default.name


def usable(topic: Topic) -> tuple[str, ...]:
    """Return the ids of the claims of a topic that may serve as lemmas."""
    return tuple(c.id for c in topic.claims if c.expected == "holds")


def whole_case(case: Case) -> Iterator[Job | Case]:
    """Yield a case's claims, then the case for its numbers."""
    own = tuple(c.claim.id for c in case.claims if c.claim.expected == "holds")
    for made in case.claims:
        yield case_job(case, made, own)
    yield case


def case_job(case: Case, made: CaseClaim, own: tuple[str, ...]) -> Job:
    """Return the job of a claim that a case makes; the case's other claims may be lemmas."""
    topic = made.claim.topic
    hints = usable(topics.load(topic)) if topic in topics.names() else ()
    group = case.groups.get(made.group)
    return Job(made.claim, made.system, case, group, (*own, *hints))
