"""`check`: targets to claims and numbers, each judged, each with independent evidence."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from derive import topics
from derive.case import Case
from derive.claim import Claim, Evidence, Result, Verdict
from derive.equation import System
from derive.errors import DeriveError, nearest
from derive.holding import held_names, premises
from derive.judging import Judge, Lookup, located
from derive.options import CheckOptions
from derive.printing import to_latex, to_unicode
from derive.report import Report, versions
from derive.statement import read_statement
from derive.targets import Job, resolve


@dataclass(frozen=True)
class Half:
    """The half of a check that needs no torch.

    Args:
        claims: One `Symbolic` a claim, by the number of its job.
        printed: Results on printed numbers.
    """

    claims: dict[int, Symbolic]
    printed: tuple[Result, ...]

    def __add__(self, other: Half) -> Half:
        """Put two parts together."""
        return Half({**self.claims, **other.claims}, (*self.printed, *other.printed))


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
        assumed: The assumptions in Unicode.
        relation: Of the statement's sides.
    """

    verdict: Verdict
    evidence: tuple[Evidence, ...]
    numeric: tuple[Evidence, ...]
    latex: str
    unicode: str
    suggestion: str | None
    assumed: tuple[str, ...] = ()
    relation: str = "="


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
    if half is None:
        made, early = symbolic_half(jobs, cases, options), {}
    else:  # another process is at it: what torch says does not wait for what it proves
        early = torch_evidence(jobs, options)
        made = half()
    results = [*claim_results(jobs, made, early, options), *made.printed, *replays(cases)]
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
    return [drawn(job) for job in jobs], list(cases.values())


def drawn(job: Job) -> Job:
    """Return a job whose group has the values that a recorded seed yields."""
    if job.case is None or job.group is None or not job.group.drawn:
        return job
    from derive.checks.draws import filled_group

    return replace(job, group=filled_group(job.case, job.group))


def symbolic(targets: list[str], options: CheckOptions, part: int = 0, parts: int = 1) -> Half:
    """Return the symbolic half of a check, from its targets, or one of several parts of it."""
    jobs, cases = plan(targets, options)
    mine = share(jobs, part, parts)
    return symbolic_half(jobs, cases if part == 0 else [], options, mine)


def share(jobs: list[Job], part: int, parts: int) -> frozenset[int]:
    """Return the numbers of the jobs of one part: a system's claims stay together."""
    systems: dict[str, list[int]] = {}
    for number, job in enumerate(jobs):
        systems.setdefault(job.system.name, []).append(number)
    shares: list[list[int]] = [[] for _ in range(parts)]
    for members in sorted(systems.values(), key=len, reverse=True):
        min(shares, key=len).extend(members)
    return frozenset(shares[part])


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


def symbolic_half(jobs: list[Job], cases: list[Case], options: CheckOptions,
                  mine: frozenset[int] | None = None) -> Half:  # fmt: skip
    """Judge every claim (of a part), run the numpy oracles, certify the printed numbers."""
    from derive.checks.printed_case import printed_results

    judge, made = Judge(lookup_in(jobs), options.seed, options.sizes), dict[int, Symbolic]()
    for number, job in enumerate(jobs):
        if mine is not None and number not in mine:
            continue
        if options.progress is not None:
            options.progress(number, len(jobs), job.claim.id)
        try:
            made[number] = symbolic_claim(job, judge, options)
        except DeriveError as error:
            raise located(error, job.claim) from error
    printed = [row for case in cases for row in printed_results(case)]
    return Half(made, tuple(printed))


def symbolic_claim(job: Job, judge: Judge, options: CheckOptions) -> Symbolic:
    """Judge one claim, and run the oracles that need no torch."""
    if job.claim.probe:
        from derive.checks import probes

        probes.find(job.claim.probe)  # an unknown name is an error before anything runs
    if not job.claim.statement:
        return Symbolic(Verdict("undecided", ""), (), (), "", "", None)
    made = judge.judge(job.claim, job.system, job.hints)
    refuted = made.verdict.name == "refuted"
    return Symbolic(
        made.verdict,
        made.evidence,
        () if refuted else numeric_evidence(job, options, NUMPY_KINDS),
        to_latex(made.identity.syntax, job.system.scope),
        to_unicode(made.identity.syntax, job.system.scope),
        made.suggestion,
        tuple(unicode_of(text, job.system) for text in job.claim.assumes),
        made.identity.relation,
    )


def unicode_of(assumption: str, system: System) -> str:
    """Return an assumption in Unicode; ``f held`` stays as it is."""
    if held_names(assumption):
        return assumption
    return to_unicode(read_statement(system, assumption).syntax, system.scope)


def torch_evidence(jobs: list[Job], options: CheckOptions) -> dict[int, tuple[Evidence, ...]]:
    """Return what the torch oracles say of the claims that are meant to hold."""
    found = {}
    for number, job in enumerate(jobs):
        if job.claim.statement and job.claim.expected != "fails":
            # an error in a statement is reported where it is read for the proof
            with contextlib.suppress(DeriveError):
                found[number] = numeric_evidence(job, options, TORCH_KINDS)
    return found


def claim_results(jobs: list[Job], half: Half, early: Mapping[int, tuple[Evidence, ...]],
                  options: CheckOptions) -> list[Result]:  # fmt: skip
    """Add the evidence of the torch oracles to what is known of each claim."""
    results = []
    for number, job in enumerate(jobs):
        known = half.claims[number]
        numeric: tuple[Evidence, ...] = ()
        if not job.claim.statement:
            results.append(probe_result(job, options))
            continue
        if known.verdict.name != "refuted":
            seen = early.get(number)
            seen = numeric_evidence(job, options, TORCH_KINDS) if seen is None else seen
            numeric = (*seen, *known.numeric)
            numeric += (probe_evidence(job, options),) if job.claim.probe else ()
        results.append(
            Result(
                job.claim,
                with_numbers(known.verdict, numeric, known.relation),
                (*known.evidence, *numeric),
                case=job.case.id if job.case else None,
                latex=known.latex,
                unicode=known.unicode,
                suggestion=known.suggestion,
                assumed=known.assumed,
            )
        )
    return results


def probe_evidence(job: Job, options: CheckOptions) -> Evidence:
    """Return what a claim's probe observed."""
    from derive.checks import probes

    return probes.evidence(job.claim.probe, options.seed)


def probe_result(job: Job, options: CheckOptions) -> Result:
    """Judge a claim by its probe alone: confirmed, or refuted by what was observed."""
    found, case = probe_evidence(job, options), job.case.id if job.case else None
    if found.passed:
        verdict = Verdict("confirmed", found.scope, "probe", job.claim.reason)
        return Result(job.claim, verdict, (found,), case=case)
    worst, seen = found.worst, "nothing was compared"
    if worst is not None:
        place = f" at [{','.join(map(str, worst.index))}]" if worst.index else ""
        claimed, observed = told_apart(worst.want, worst.got)
        seen = f"claimed {claimed}{place}, observed {observed}"
    verdict = Verdict("refuted", found.scope, "probe", job.claim.reason or seen)
    shown = replace(found, kind="counterexample", passed=found.count > 0, detail=seen)
    return Result(job.claim, verdict, (shown,), case=case)


def told_apart(*values: float) -> list[str]:
    """Return numbers with as few digits as tell them apart."""
    texts = ([f"{v:.{digits}g}" for v in values] for digits in (6, 10, 17))
    return next((t for t in texts if len(set(t)) == len(t)), [repr(v) for v in values])


NUMPY_KINDS = ("complex_step", "finite_difference", "monte_carlo")


TORCH_KINDS = ("module", "autograd", "random_sizes")


def numeric_evidence(
    job: Job, options: CheckOptions, kinds: tuple[str, ...]
) -> tuple[Evidence, ...]:
    """Return what some oracles say, on the group's numbers or on random ones."""
    from derive.checks.evidence import evidence_for

    given = premises(job.system, job.claim.assumes)
    identity, assumed = read_statement(given.system, job.claim.statement), given.assumed
    known: Any = job.group.givens if job.group is not None and not options.sizes else None
    sizes = {n: size for n, size in options.sizes.items() if n in job.system.dims}
    found = evidence_for(identity, known, sizes, options.seed, options.dtype, assumed, kinds)
    return tuple(e for e in found if e.kind in kinds)


def with_numbers(verdict: Verdict, numeric: tuple[Evidence, ...], relation: str = "=") -> Verdict:
    """Confirm an undecided claim by oracles that agree; withdraw a proof that one contradicts.

    An inequality is not confirmed: that it holds at a few points says little of the others.
    """
    failed = [e.kind for e in numeric if not e.passed]
    if verdict.name == "proved" and failed:
        reason = f"the proof and {', '.join(failed)} disagree: one of them is wrong"
        return Verdict("undecided", "", reason=reason)
    if verdict.name != "undecided" or not numeric or relation != "=":
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
