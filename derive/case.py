"""A case: worked examples with exact numbers, what a lecture prints and states about them.

One TOML file holds a lecture's case, a user's own derivation, or both. Its tables::

    [case]            id, title, convention, source
    [group.NAME]      topic or system, loss, title, sizes, lines, and the given tensors
    [group.NAME.lines]  lecture line of each given
    [[expect]]        a printed number or array
    [[claim]]         a stated formula, or by `probe` what a program of torch's does
    [[skip]]          lecture lines that state nothing checkable, with the reason
    [coverage]        the lecture lines that hold a formula or a number
    [system.NAME]     a user's own model
    [replay.NAME]     the recipe of a recorded run: its figures, or the inputs that its seed draws
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache

from derive.building import build_system
from derive.case_tensors import Nested
from derive.claim import Claim, Expected
from derive.equation import System
from derive.errors import DeriveError, nearest

Interval = tuple[Fraction, Fraction]
UNRECORDED = "unrecorded"
"""The recipe of a run that cannot be repeated: its figures are undecided, with the reason."""


@dataclass(frozen=True)
class Drawn:
    """A given whose entries a recorded seed yields: exact values of floats, never typed in.

    Args:
        replay: Name of the replay whose recipe draws them.
        start: How many earlier draws of its stream are passed over.
        shape: Sizes of the axes.
    """

    replay: str
    start: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Group:
    """One worked example: a system with numbers.

    Args:
        name: Its name in the file.
        topic: The topic whose system it is; for a system of the file, that system's name.
        system: The system, its loss selected.
        loss: Name of the loss; "" if none.
        givens: Exact entries by tensor name; ``X_init`` holds X before position 0.
        sizes: By name, inferred from the givens.
        lines: Lecture lines of each given, by name.
        title: Where the lecture gives it.
        drawn: Givens that a recorded seed yields, by name, until `derive.checks.draws` fills them.
    """

    name: str
    topic: str
    system: System
    loss: str
    givens: Mapping[str, Nested]
    sizes: Mapping[str, int]
    lines: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    title: str = ""
    drawn: Mapping[str, Drawn] = field(default_factory=dict)


@dataclass(frozen=True)
class Expect:
    """What the lecture prints: a number, or an array of numbers.

    Args:
        group: The group that it belongs to; "" for arithmetic on numbers alone.
        quantity: A tensor, an adjoint ``g_X``, or any expression of the statement language; free
            indices, then open axes, run over the printed axes. For a replay, the figure's name.
        printed: As written; the digits matter.
        at: Fixed positions: by free index name, or by the small letter of an open axis' size.
        where: Slide title.
        line: Line in the lecture.
        origin: ``exact``, or ``printed operands``: it follows from rounded operands.
        operands: For ``printed operands``: entries as printed, such as ``{"h[1]": "(0.1, 0.2)"}``.
        interval: What a word such as "about" is held to.
        rounding: ``rounded``, or ``truncated`` where the lecture cuts digits off.
        replay: Name of the replay that yields the figure; "" for an exact quantity.
        expected: ``holds``, ``fails`` where the lecture is wrong, ``undecided`` where it cannot be
            told.
        reason: Why it is expected to fail or to stay undecided.
        file_line: Line in the case file.
    """

    group: str
    quantity: str
    printed: str
    at: Mapping[str, int] = field(default_factory=dict)
    where: str = ""
    line: int | None = None
    origin: str = "exact"
    operands: Mapping[str, str] = field(default_factory=dict)
    interval: Interval | None = None
    rounding: str = "rounded"
    replay: str = ""
    expected: Expected = "holds"
    reason: str = ""
    file_line: int | None = None


@dataclass(frozen=True)
class CaseClaim:
    """A claim that the lecture makes, and the group whose numbers illustrate it ("" if none)."""

    claim: Claim
    group: str
    system: System
    line: int | None = None
    file_line: int | None = None


@dataclass(frozen=True)
class Skip:
    """Lecture lines that state nothing checkable, and why."""

    lines: tuple[int, ...]
    reason: str


@dataclass(frozen=True)
class Replay:
    """The recipe of a run whose figures depend on the order of float operations.

    Args:
        name: Its name in the file.
        recipe: A recipe of `derive.checks.recipes`, or ``unrecorded``: nobody can repeat the run.
        settings: Its exact settings, such as the step of the finite differences, or a seed.
        line: Line in the lecture.
        reason: For an unrecorded run: what the lecture does not say.
    """

    name: str
    recipe: str
    settings: Mapping[str, Fraction]
    line: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class Case:
    """A lecture's case, or a user's file.

    Args:
        id: Its identifier.
        title: One line in words.
        convention: ``row`` or ``column``.
        groups: By name.
        expects: What is printed, in the order of the file.
        claims: What is stated.
        skips: What states nothing.
        replays: By name.
        systems: Systems of this file, by name.
        inventory: Lecture lines that hold a formula or a number.
        path: The file.
        source: The lecture it describes, as named in reports.
    """

    id: str
    title: str
    convention: str = "row"
    groups: Mapping[str, Group] = field(default_factory=dict)
    expects: tuple[Expect, ...] = ()
    claims: tuple[CaseClaim, ...] = ()
    skips: tuple[Skip, ...] = ()
    replays: Mapping[str, Replay] = field(default_factory=dict)
    systems: Mapping[str, System] = field(default_factory=dict)
    inventory: tuple[int, ...] = ()
    path: str = ""
    source: str = ""

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """The topics that its groups and claims speak about, in order."""
        names = [g.topic for g in self.groups.values()] + [c.claim.topic for c in self.claims]
        return tuple(dict.fromkeys(names))

    def group(self, name: str) -> Group:
        """Return a group; "" is the one that holds numbers alone.

        Raises:
            DeriveError: If there is none of that name.
        """
        if not name:
            return numbers_alone()
        if name not in self.groups:
            raise DeriveError(f"{self.id} has no group {name!r}", hint=nearest(name, self.groups))
        return self.groups[name]

    def on_topic(self, topic: str) -> Case:
        """Return the part of the case that is about a topic (coverage left out)."""
        names = {n for n, g in self.groups.items() if g.topic == topic}
        return Case(
            self.id,
            self.title,
            self.convention,
            {n: g for n, g in self.groups.items() if n in names},
            tuple(e for e in self.expects if e.group in names),
            tuple(c for c in self.claims if c.claim.topic == topic),
            (),
            self.replays,
            self.systems,
            (),
            self.path,
            self.source,
        )


@lru_cache(maxsize=1)
def numbers_alone() -> Group:
    """Return the group of printed arithmetic such as ``0.5^4``: it has no tensors."""
    return Group("", "arithmetic", build_system("arithmetic", (), {}, ()), "", {}, {})
