"""One claim, judged: proof for all sizes, else a counterexample, else a proof at explicit sizes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

from derive.arithmetic import decide_numbers, is_arithmetic
from derive.claim import Claim, Counterexample, Evidence, Verdict
from derive.duality import duality
from derive.edits import suggest
from derive.equation import System
from derive.errors import DeriveError
from derive.holding import premises
from derive.nodes import kind, tensor_name, walk
from derive.proof import Proof
from derive.prove import prove
from derive.ranges import check_ranges
from derive.refute import WIDE_DRAWS, refute, size_ladder
from derive.second import decide
from derive.statement import Identity, read_statement

ALL_SIZES = "all sizes"
NUMBERS = "these numbers"
Lookup = Callable[[str], tuple[Claim, System]]


@dataclass(frozen=True)
class Judgement:
    """What the symbolic side says of a claim.

    Args:
        identity: The statement, read.
        verdict: Proved, refuted or undecided.
        evidence: Proofs and counterexamples.
        suggestion: An edit that would make a refuted statement true.
    """

    identity: Identity
    verdict: Verdict
    evidence: tuple[Evidence, ...]
    suggestion: str | None = None


@dataclass
class Judge:
    """Judges claims; finds the statements that a claim may use by their ids.

    Args:
        lookup: Returns a claim and its system by id.
        seed: Which values the search for counterexamples draws.
        sizes: Sizes to search first, if any.
    """

    lookup: Lookup
    seed: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)
    known: dict[str, bool] = field(default_factory=dict)

    def judge(self, claim: Claim, system: System, hints: tuple[str, ...] = ()) -> Judgement:
        """Judge one claim.

        Args:
            claim: The claim.
            system: Its system, with its loss selected.
            hints: Ids of claims that may be tried as lemmas when nothing else decides.

        Raises:
            DeriveError: If the statement cannot be read, or reads outside a tensor's positions.
        """
        given = premises(system, claim.assumes)
        identity = read_statement(given.system, claim.statement)
        assumed = given.assumed
        check_ranges(identity)
        if is_arithmetic(identity):
            return self.about_numbers(claim, identity)
        # what is recorded as false is not worth the search for a proof before one for a point
        found = self.look(claim)(identity, assumed)
        if found is not None:
            return self.refuted(claim, identity, found)
        proof = prove(identity, given.equations, self.lemmas(claim, system, claim.using))
        if proof.proved:
            return self.proved(claim, identity, proof, system)
        found = self.search(identity, assumed)
        if found is not None:
            return self.refuted(claim, identity, found)
        if identity.strict:
            equal = replace(identity, syntax=replace(identity.syntax, relation="="))
            if prove(equal, given.equations).proved:
                return self.refuted(claim, identity, same_sides(identity))
        if hints:
            again = prove(identity, given.equations, self.lemmas(claim, system, hints))
            if again.proved:
                return self.proved(claim, identity, again, system)
        return self.at_sizes(identity, assumed, proof)

    def lemmas(self, claim: Claim, system: System, ids: tuple[str, ...]) -> tuple[Identity, ...]:
        """Return the statements that a claim uses, each proved first.

        A lemma may assume no more than the claim that uses it, and speaks of the same derivatives:
        what one of them holds the other holds.
        """
        out, there = [], premises(system, claim.assumes).system
        for name in ids:
            lemma, owner = self.lookup(name)
            if (
                not lemma.statement
                or owner is not system
                or not set(lemma.assumes) <= set(claim.assumes)
            ):
                continue
            if premises(owner, lemma.assumes).system is not there:
                continue
            if ids is not claim.using and not rewrites_one_entry(lemma, there):
                continue
            if lemma.id != claim.id and self.holds(lemma, owner):
                out.append(read_statement(there, lemma.statement))
        return tuple(out)

    def holds(self, lemma: Claim, system: System) -> bool:
        """Tell whether a lemma is proved (not by itself: lemmas that use each other are not)."""
        if lemma.id not in self.known:
            self.known[lemma.id] = False
            self.known[lemma.id] = self.proves(lemma, system)
        return self.known[lemma.id]

    def proves(self, lemma: Claim, system: System) -> bool:
        """Prove a lemma."""
        given = premises(system, lemma.assumes)
        identity = read_statement(given.system, lemma.statement)
        return prove(identity, given.equations, self.lemmas(lemma, system, lemma.using)).proved

    def about_numbers(self, claim: Claim, identity: Identity) -> Judgement:
        """Decide a statement about numbers alone by ball arithmetic."""
        start = time.perf_counter()
        outcome, left, right = decide_numbers(identity)
        values = f"{left} {identity.relation} {right}"
        evidence = Evidence("proof", "ball arithmetic", 1, None, None, NUMBERS,
                            time.perf_counter() - start, outcome != "undecided",
                            detail=values, extra={"method": "enclosure", "sizes": []})  # fmt: skip
        if outcome == "holds":
            return Judgement(identity, Verdict("proved", NUMBERS, "enclosure"), (evidence,))
        if outcome == "undecided":
            reason = f"balls cannot tell {left} from {right}"
            return Judgement(identity, Verdict("undecided", "", reason=reason), ())
        claimed = right if identity.relation == "=" else f"{identity.relation} {right}"
        found = Counterexample({}, {}, claimed, left, {})
        verdict = Verdict("refuted", NUMBERS, "enclosure", claim.reason, found)
        shown = replace(evidence, kind="counterexample")
        return Judgement(identity, verdict, (shown,))

    def look(
        self, claim: Claim
    ) -> Callable[[Identity, tuple[Identity, ...]], Counterexample | None]:
        """Return how to look for a counterexample before a proof is sought."""
        if claim.expected == "fails":
            return self.search
        shipped = claim.source is None and not claim.id.endswith(".statement")
        return (lambda *_: None) if shipped else self.glance

    def glance(self, identity: Identity, assumed: tuple[Identity, ...]) -> Counterexample | None:
        """Look at the two smallest points: most false statements fail there, long before a proof.

        Not where the user asked for sizes: a counterexample is then sought at those first.
        """
        if self.sizes:
            return None
        rows = islice(size_ladder(identity.system), 2)
        few = 4 if identity.relation != "=" else None
        found = (refute(identity, assumed, self.seed, row, few) for row in rows)
        return next((f for f in found if f), None)

    def search(self, identity: Identity, assumed: tuple[Identity, ...]) -> Counterexample | None:
        """Search for a counterexample, at the user's sizes first."""
        known = {n: self.sizes[n] for n in identity.system.dims if n in self.sizes}
        if len(known) == len(identity.system.dims):
            found = refute(identity, assumed, self.seed, known)
            if found is not None:
                return found
        return refute(identity, assumed, self.seed)

    def proved(self, claim: Claim, identity: Identity, proof: Proof,
               plain: System) -> Judgement:  # fmt: skip
        """Return a proof, with the adjoint theorem's check and the need of the assumptions.

        The plain system is the claim's own, in which nothing is held.
        """
        system, evidence = identity.system, [proof_evidence(identity, proof)]
        if reads_loss(identity):
            theorem = duality(system)
            evidence.append(proof_evidence(identity, theorem))
            if not theorem.proved:
                return Judgement(identity, Verdict("undecided", "", reason=theorem.detail),
                                 tuple(evidence))  # fmt: skip
        if claim.assumes:
            evidence.append(self.need_of(claim, read_statement(plain, claim.statement)))
        return Judgement(identity, Verdict("proved", ALL_SIZES, proof.kind), tuple(evidence))

    def need_of(self, claim: Claim, identity: Identity) -> Evidence:
        """Return the counterexample that a claim has without its assumptions."""
        start = time.perf_counter()
        found = refute(identity, (), self.seed, draws=WIDE_DRAWS)
        detail = f"without {' and '.join(claim.assumes)} it fails {found}"
        if found is None:
            detail = "no counterexample without it: the assumption could not be shown to be needed"
        return Evidence("counterexample", "the claim without its assumptions", 1, None, None,
                        sizes_text(found.sizes) if found else "", time.perf_counter() - start,
                        found is not None, detail=detail)  # fmt: skip

    def refuted(self, claim: Claim, identity: Identity, found: Counterexample) -> Judgement:
        """Return a refutation, with the edit that would repair it."""
        evidence = Evidence("counterexample", "ball arithmetic at explicit sizes", 1, None, None,
                            sizes_text(found.sizes), 0.0, True, detail=str(found))  # fmt: skip
        edit = None if claim.expected == "fails" else suggest(identity)
        verdict = Verdict("refuted", sizes_text(found.sizes), "counterexample", claim.reason, found)
        hint = f"did you mean  {edit.after}  for  {edit.before} ?" if edit else None
        return Judgement(identity, verdict, (evidence,), hint)

    def at_sizes(
        self, identity: Identity, assumed: tuple[Identity, ...], proof: Proof
    ) -> Judgement:
        """Decide at a few explicit sizes by the second prover."""
        rows = [s for s in size_ladder(identity.system) if max(s.values(), default=1) <= 3][-3:]
        start = time.perf_counter()
        outcomes = [(decide(identity, s, assumed, 1.0), s) for s in rows]
        done = [s for o, s in outcomes if o == "proved"]
        reason = f"no proof for all sizes: {proof.detail}"
        if not done or any(o == "different" for o, _ in outcomes):
            return Judgement(identity, Verdict("undecided", "", reason=reason), ())
        scope = "; ".join(map(sizes_text, done))
        evidence = Evidence("proof", "rational functions at explicit sizes", len(done), None, None,
                            scope, time.perf_counter() - start, True)  # fmt: skip
        return Judgement(identity, Verdict("proved", scope, "explicit sizes", reason), (evidence,))


def proof_evidence(identity: Identity, proof: Proof) -> Evidence:
    """Return a proof as evidence."""
    against = "adjoint theorem" if proof.kind == "duality" else "index normal form"
    return Evidence(
        "proof",
        against,
        proof.terms or 1,
        None,
        None,
        ALL_SIZES,
        proof.seconds,
        proof.proved,
        detail=proof.detail,
        extra={"method": proof.kind, "sizes": list(identity.system.dims)},
    )


def reads_loss(identity: Identity) -> bool:
    """Tell whether a statement reads a derivative of the loss."""
    return any(
        kind(node) == "Total" and tensor_name(node.args[0]) == "L"
        for side in (identity.lhs, identity.rhs)
        for node in walk(side)
    )


def sizes_text(sizes: Mapping[str, int]) -> str:
    """Return ``T=3 D=2``."""
    return " ".join(f"{n}={v}" for n, v in sizes.items())


def rewrites_one_entry(lemma: Claim, system: System) -> bool:
    """Tell whether a statement's left side is one entry or derivative, so that it can rewrite."""
    left = read_statement(system, lemma.statement).lhs
    return tensor_name(left) is not None or kind(left) == "Total"


def located(error: DeriveError, claim: Claim) -> DeriveError:
    """Return a statement's error with the claim and the file it stands in."""
    source = claim.source
    place = f"{source.file}:{source.line}: " if source and source.line else ""
    return DeriveError(f"{place}{claim.id}: {error.message}", text=error.text, at=error.at,
                       hint=error.hint)  # fmt: skip


def same_sides(identity: Identity) -> Counterexample:
    """Return the counterexample to a strict inequality whose sides are equal everywhere."""
    sizes = next(size_ladder(identity.system))
    return Counterexample(dict(sizes), {}, f"{identity.relation} the same", "a value", {})
