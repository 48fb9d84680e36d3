"""The vocabulary of every report: Claim, Verdict, Evidence, Printed, Step, Result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from derive.errors import DeriveError

VerdictName = Literal["proved", "confirmed", "certified", "refuted", "undecided"]
Expected = Literal["holds", "fails", "undecided"]
EVIDENCE_KINDS = (
    "proof",
    "module",
    "autograd",
    "finite_difference",
    "complex_step",
    "random_sizes",
    "printed",
    "replay",
    "monte_carlo",
    "counterexample",
)


@dataclass(frozen=True)
class Claim:
    """A statement that a topic, a case or a user makes.

    Args:
        id: ``topic.name``.
        topic: The topic that it belongs to.
        statement: ``lhs = rhs`` in the statement language; "" if only a probe speaks for it, and
            its title then says what is claimed.
        title: One line in words.
        system: Name of the topic's system that it speaks about.
        loss: Name of the loss that ``L`` means; "" if it reads none.
        expected: Whether the lecture's claim is meant to hold.
        assumes: Equations in the statement language (``h[-1,r] = 0``) or ``X held``.
        using: Ids of proved claims that the induction step may use.
        reason: Why it is expected to fail or to stay undecided.
        source: Where it stands: (file, line, title).
        probe: Name of a function of `derive.checks.probes` that runs a program of torch's; "" for
            a claim about equations alone.
    """

    id: str
    topic: str
    statement: str
    title: str
    system: str = ""
    loss: str = ""
    expected: Expected = "holds"
    assumes: tuple[str, ...] = ()
    using: tuple[str, ...] = ()
    reason: str = ""
    source: Source | None = None
    probe: str = ""

    def __post_init__(self) -> None:
        """Refuse an unknown expectation, and a probe that says nothing or assumes something."""
        if self.expected not in ("holds", "fails", "undecided"):
            raise DeriveError(
                f"{self.id}: expected is holds, fails or undecided; found {self.expected!r}"
            )
        if self.expected == "undecided" and not self.reason:
            raise DeriveError(f"{self.id}: expected = 'undecided' needs a reason")
        if self.probe and not self.statement:
            if not self.title:
                raise DeriveError(
                    f"{self.id}: a probe without a statement needs a title: its words"
                )
            if self.assumes or self.using:
                raise DeriveError(f"{self.id}: a program has no assumptions and uses no claims")


@dataclass(frozen=True)
class Source:
    """Where a statement or number stands in a lecture or file."""

    file: str
    line: int | None = None
    column: int | None = None
    title: str = ""


@dataclass(frozen=True)
class Worst:
    """The worst place of a comparison."""

    index: tuple[int, ...]
    got: float
    want: float


@dataclass(frozen=True)
class Evidence:
    """One kind of evidence: what was compared, how much of it, how close.

    A kind with zero samples, or with a NaN, never passes.

    Args:
        kind: One of `EVIDENCE_KINDS`.
        against: What it was compared with (``torch.nn.RNN``, ``index normal form``).
        count: How many scalars were compared (terms, for a proof).
        max_error: Relative to the largest intermediate of the comparison; None for a proof.
        tolerance: What max_error was held to.
        scope: ``all sizes``, or the sizes.
        seconds: Wall time.
        passed: The outcome.
        worst: The worst place, if any.
        detail: One line in words.
        independent: False where it shares code with what it checks.
        extra: More fields for the JSON report.
    """

    kind: str
    against: str
    count: int
    max_error: float | None
    tolerance: float | None
    scope: str
    seconds: float
    passed: bool
    worst: Worst | None = None
    detail: str = ""
    independent: bool = True
    extra: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make an empty or NaN comparison fail, whatever its maker said."""
        if self.kind not in EVIDENCE_KINDS:
            raise DeriveError(f"unknown evidence kind {self.kind!r}")
        broken = self.max_error is not None and not self.max_error == self.max_error
        if (self.count == 0 or broken) and self.passed:
            object.__setattr__(self, "passed", False)
            object.__setattr__(self, "detail", self.detail or "nothing was compared")


@dataclass(frozen=True)
class Counterexample:
    """A point at which a claim is false.

    Args:
        sizes: Size values.
        index: Values of the free indices.
        claimed: The right side there, as a decimal string (certified digits).
        derived: The left side there.
        point: Every given value, as exact decimal strings.
    """

    sizes: dict[str, int]
    index: dict[str, int]
    claimed: str
    derived: str
    point: dict[str, object]

    def __str__(self) -> str:
        """One line: sizes, index, both values."""
        sizes = " ".join(f"{k}={v}" for k, v in self.sizes.items())
        index = " ".join(f"{k}={v}" for k, v in self.index.items())
        at = f"at {sizes}" + (f", {index}" if index else "")
        if self.claimed[:1] in "<>":
            return f"{at + ': ' if sizes else ''}{self.derived} {self.claimed} is false"
        if not sizes:
            return f"claimed {self.claimed}, derived {self.derived}"
        return f"{at}: claimed {self.claimed}, derived {self.derived}"


@dataclass(frozen=True)
class Step:
    """One step of a derivation.

    Args:
        rule: Name of the rule.
        before: What it was applied to, in the statement language.
        after: What came out.
        reason: One line in words.
    """

    rule: str
    before: str
    after: str
    reason: str = ""


@dataclass(frozen=True)
class Printed:
    """One printed scalar and its certification.

    Args:
        where: Slide title (and place in it).
        printed: As printed.
        exact: The value to more digits, or None.
        certified: Whether printed is the correct rounding of the exact value.
        quantity: What it is, with its index.
        line: Line in the lecture.
        note: Truncated, tie, printed operands, ...
    """

    where: str
    printed: str
    exact: str | None
    certified: bool
    quantity: str = ""
    line: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Verdict:
    """What came out for a claim."""

    name: VerdictName
    scope: str
    kind: str = ""
    reason: str = ""
    counterexample: Counterexample | None = None


@dataclass(frozen=True)
class Result:
    """A claim, its verdict and everything that speaks for it."""

    claim: Claim
    verdict: Verdict
    evidence: tuple[Evidence, ...] = ()
    printed: tuple[Printed, ...] = ()
    steps: tuple[Step, ...] = ()
    case: str | None = None
    latex: str = ""
    unicode: str = ""
    assumed: tuple[str, ...] = ()
    suggestion: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the verdict agrees with what is expected and every evidence passed."""
        fine = all(p.certified for p in self.printed)
        if self.claim.expected == "fails":
            return self.verdict.name == "refuted"
        if self.claim.expected == "undecided":
            return self.verdict.name == "undecided"
        passed = all(e.passed for e in self.evidence)
        return self.verdict.name in ("proved", "confirmed", "certified") and fine and passed
