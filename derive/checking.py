"""`check`: targets to claims and numbers, each judged, each with independent evidence."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from derive import topics
from derive.case import Case, CaseClaim, Group
from derive.case_load import case_ids, find_case, load_text
from derive.claim import Claim, Evidence, Result, Verdict
from derive.equation import System
from derive.errors import DeriveError, nearest
from derive.judging import Judge, Lookup, located, reads_loss
from derive.options import CheckOptions
from derive.printing import to_latex, to_unicode
from derive.report import Report, versions
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


@dataclass(frozen=True)
class Half:
    """The half of a check that needs no torch.

    Args:
        claims: One `Symbolic` a claim, in the order of the jobs.
        printed: Results on printed numbers.
    """

    claims: tuple[Symbolic, ...]
    printed: tuple[Result, ...]


@dataclass(frozen=True)
class Symbolic:
    """What is known of a claim without torch.

    Args:
        verdict: Proved, refuted or undecided.
        evidence: Proofs and counterexamples.
        numeric: Evidence of the numpy oracles, by kind.
        latex: The statement in LaTeX.
        unicode: The statement in Unicode.
        suggestion: An edit that would make a refuted statement true.
    """

    verdict: Verdict
    evidence: tuple[Evidence, ...]
    numeric: tuple[Evidence, ...]
    latex: str
    unicode: str
    suggestion: str | None


def check(
    targets: list[str], options: CheckOptions, half: Callable[[], Half] | None = None
) -> Report:
    """Check topics, claims, cases, files, or everything.

    Args:
        targets: Topic names, claim ids, case ids, paths, ``all`` or ``-``.
        options: See `CheckOptions`.
        half: Returns the symbolic half, where another process computes it.

    Raises:
        DeriveError: On an unknown target or unreadable input.
    """
    start = time.perf_counter()
    jobs, cases = plan(targets, options)
    made = half() if half is not None else symbolic_half(jobs, cases, options)
    results = [*claim_results(jobs, made, options), *made.printed, *replays(cases)]
    return Report(
        tuple(results),
        versions(),
        time.perf_counter() - start,
        " ".join(targets),
        subject_of(jobs, cases, options),
    )


def plan(targets: list[str], options: CheckOptions) -> tuple[list[Job], list[Case]]:
    """Return the claims and the cases to check."""
    parts = [part for target in targets for part in resolve(target, options)]
    cases = {p.id + p.path: p for p in parts if isinstance(p, Case)}
    jobs = [p for p in parts if isinstance(p, Job)]
    known = {n for job in jobs for n in job.system.dims}
    for name in options.sizes:
        if jobs and name not in known:
            raise DeriveError(
                f"--size: nothing here has a size {name!r}", hint=nearest(name, known)
            )
    return jobs, list(cases.values())


def symbolic(targets: list[str], options: CheckOptions) -> Half:
    """Return the symbolic half of a check, from its targets."""
    return symbolic_half(*plan(targets, options), options)


# Targets


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
            name, owner.name, options.statement, "your statement", system.name, system.loss
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
    name = options.system or owner.default.name
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


# Results


def lookup_in(jobs: list[Job]) -> Lookup:
    """Return a finder of claims by id: of the jobs at hand, else of the topics."""
    own = {job.claim.id: (job.claim, job.system) for job in jobs}

    def lookup(name: str) -> tuple[Claim, System]:
        if name in own:
            return own[name]
        topic = topics.load(name.split(".")[0])
        claim = next(c for c in topic.claims if c.id == name)
        return claim, topic.system_of(claim)

    return lookup


def symbolic_half(jobs: list[Job], cases: list[Case], options: CheckOptions) -> Half:
    """Judge every claim, run the numpy oracles, certify the printed numbers."""
    from derive.checks.printed_case import printed_results

    judge, made = Judge(lookup_in(jobs), options.seed, options.sizes), []
    for done, job in enumerate(jobs):
        if options.progress is not None:
            options.progress(done, len(jobs), job.claim.id)
        try:
            made.append(symbolic_claim(job, judge, options))
        except DeriveError as error:
            raise located(error, job.claim) from error
    printed = [row for case in cases for row in printed_results(case)]
    return Half(tuple(made), tuple(printed))


def symbolic_claim(job: Job, judge: Judge, options: CheckOptions) -> Symbolic:
    """Judge one claim, and run the oracles that need no torch."""
    made = judge.judge(job.claim, job.system, job.hints)
    refuted = made.verdict.name == "refuted"
    return Symbolic(
        made.verdict,
        made.evidence,
        () if refuted else numeric_evidence(job, options, NUMPY_KINDS),
        to_latex(made.identity.syntax, job.system.scope),
        to_unicode(made.identity.syntax, job.system.scope),
        made.suggestion,
    )


def claim_results(jobs: list[Job], half: Half, options: CheckOptions) -> list[Result]:
    """Add the evidence of the torch oracles to what is known of each claim."""
    results = []
    for job, known in zip(jobs, half.claims, strict=True):
        numeric: tuple[Evidence, ...] = ()
        if known.verdict.name != "refuted":
            numeric = (*numeric_evidence(job, options, TORCH_KINDS), *known.numeric)
        results.append(
            Result(
                job.claim,
                with_numbers(known.verdict, numeric),
                (*known.evidence, *numeric),
                case=job.case.id if job.case else None,
                latex=known.latex,
                unicode=known.unicode,
                suggestion=known.suggestion,
            )
        )
    return results


NUMPY_KINDS = ("complex_step", "finite_difference")
TORCH_KINDS = ("module", "autograd", "random_sizes")


def numeric_evidence(
    job: Job, options: CheckOptions, kinds: tuple[str, ...]
) -> tuple[Evidence, ...]:
    """Return what some oracles say, on the group's numbers or on random ones."""
    from derive.checks.evidence import evidence_for

    identity = read_statement(job.system, job.claim.statement)
    assumed = tuple(read_statement(job.system, text) for text in job.claim.assumes)
    known: Any = job.group.givens if job.group is not None and not options.sizes else None
    sizes = {n: size for n, size in options.sizes.items() if n in job.system.dims}
    found = evidence_for(identity, known, sizes, options.seed, options.dtype, assumed, kinds)
    return tuple(e for e in found if e.kind in kinds)


def with_numbers(verdict: Verdict, numeric: tuple[Evidence, ...]) -> Verdict:
    """Confirm an undecided claim by oracles that agree; withdraw a proof that one contradicts."""
    failed = [e.kind for e in numeric if not e.passed]
    if verdict.name == "proved" and failed:
        reason = f"the proof and {' and '.join(failed)} disagree: one of them is wrong"
        return Verdict("undecided", "", reason=reason)
    if verdict.name != "undecided" or not numeric:
        return verdict
    if all(e.passed for e in numeric) and any(e.independent for e in numeric):
        return replace(verdict, name="confirmed", scope=numeric[0].scope)
    return verdict


def replays(cases: Iterable[Case]) -> list[Result]:
    """Replay the recorded runs of the cases."""
    results: list[Result] = []
    for case in cases:
        if any(e.replay for e in case.expects):
            from derive.checks.replay import replay_results

            results += replay_results(case)
    return results


def subject_of(jobs: list[Job], cases: list[Case], options: CheckOptions) -> str:
    """Return what the numbers come from: the cases and their sizes, or random sizes."""
    groups = [g for c in cases for g in c.groups.values()] or [j.group for j in jobs if j.group]
    sizes: dict[str, set[int]] = {}
    for group in groups:
        for name, size in group.sizes.items():
            sizes.setdefault(name, set()).add(size)
    text = " ".join(f"{n}={'/'.join(map(str, sorted(s)))}" for n, s in sizes.items())
    ids = dict.fromkeys([c.id for c in cases] + [j.case.id for j in jobs if j.case])
    if options.sizes or not ids:
        return "random values" + "".join(f" {n}={v}" for n, v in options.sizes.items())
    return f"case {', '.join(ids)}" + (f" ({text})" if text else "")
