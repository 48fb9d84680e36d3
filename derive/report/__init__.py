"""Reports: what a check found, and one module for each format that can be written.

A format is a module here with ``render(report, view) -> str``; modules whose name starts with an
underscore are shared parts.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from derive.claim import Printed, Result
from derive.errors import DeriveError, nearest

DISTRIBUTIONS = ("sympy", "numpy", "torch", "python-flint")
PROVED_FOR_ALL = "all sizes"


@dataclass(frozen=True)
class Summary:
    """The counts on a report's last line.

    Args:
        claims: Statements; each has one of the next verdicts.
        proved_all_sizes: Proved for every size.
        proved_at_sizes: Proved at given sizes only.
        confirmed: Held by an independent oracle, without a proof.
        certified_claims: Statements about numbers alone, decided by ball arithmetic.
        refuted: With a counterexample, expected or not.
        undecided: Neither; printed numbers that could not be decided are among them.
        undecided_as_expected: How many of the undecided ones were recorded as such.
        refuted_as_expected: How many of the refuted ones were recorded as false.
        certified_numbers: Printed scalars that are correct roundings.
        numbers: Printed scalars, without those that are recorded as wrong or as undecided.
        wrong_as_expected: Printed entries that were recorded as wrong, and are.
        ok: Whether everything is as expected; an unexpected undecided claim is not.
        seconds: Wall time.
    """

    claims: int
    proved_all_sizes: int
    proved_at_sizes: int
    confirmed: int
    certified_claims: int
    refuted: int
    undecided: int
    undecided_as_expected: int
    refuted_as_expected: int
    certified_numbers: int
    numbers: int
    wrong_as_expected: int
    ok: bool
    seconds: float


@dataclass(frozen=True)
class Report:
    """Everything a check found.

    Args:
        results: In the order of topics and cases.
        versions: Of everything that took part, by name.
        seconds: Wall time.
        target: What was checked, as asked.
        subject: What it was checked on: case, sizes.
        notes: Remarks for the reader.
    """

    results: tuple[Result, ...]
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    target: str = ""
    subject: str = ""
    notes: tuple[str, ...] = ()

    @property
    def claims(self) -> tuple[Result, ...]:
        """The results that are about a statement."""
        return tuple(r for r in self.results if not is_number(r))

    @property
    def printed(self) -> tuple[Printed, ...]:
        """Every printed scalar."""
        return tuple(p for r in self.results for p in r.printed)

    @property
    def summary(self) -> Summary:
        """The counts."""
        names = [r.verdict.name for r in self.claims]
        proved = [r for r in self.claims if r.verdict.name == "proved"]
        meant = [p for r in self.results if r.claim.expected == "holds" for p in r.printed]
        everywhere = sum(r.verdict.scope.startswith(PROVED_FOR_ALL) for r in proved)
        return Summary(
            claims=len(names),
            proved_all_sizes=everywhere,
            proved_at_sizes=len(proved) - everywhere,
            confirmed=names.count("confirmed"),
            certified_claims=names.count("certified"),
            refuted=names.count("refuted"),
            undecided=sum(r.verdict.name == "undecided" for r in self.results),
            undecided_as_expected=sum(r.ok and r.verdict.name == "undecided" for r in self.results),
            refuted_as_expected=sum(r.ok and r.verdict.name == "refuted" for r in self.claims),
            certified_numbers=sum(p.certified for p in meant),
            numbers=len(meant),
            wrong_as_expected=sum(
                r.ok and r.verdict.name == "refuted" and is_number(r) for r in self.results
            ),
            ok=bool(self.results) and all(r.ok for r in self.results),
            seconds=self.seconds,
        )

    def failures(self, strict: bool = False) -> tuple[Result, ...]:
        """Return the results that contradict what is expected.

        Args:
            strict: Count what is undecided without being expected to be.
        """
        return tuple(r for r in self.results if not r.ok and (strict or not is_open(r)))

    def exit_status(self, strict: bool = False) -> int:
        """Return 0 if everything is as expected, 1 if not, 2 if nothing was checked."""
        if not self.results:
            return 2
        return 1 if self.failures(strict) else 0


NUMBER_KINDS = ("printed", "replay")


def is_number(result: Result) -> bool:
    """Tell whether a result is about printed numbers only, not about a statement."""
    return bool(result.printed) and all(e.kind in NUMBER_KINDS for e in result.evidence)


def is_open(result: Result) -> bool:
    """Tell whether a result is undecided and no oracle speaks against it.

    A printed number that is undecided (a word such as "about", a run of another platform) was not
    certified, which is its evidence, but it is not wrong either.
    """
    fine = all(e.passed for e in result.evidence if e.kind not in NUMBER_KINDS)
    return result.verdict.name == "undecided" and fine


def versions() -> dict[str, str]:
    """Return the versions that a report names, without importing anything that is heavy."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from derive import __version__

    found = {"derive": __version__, "python": platform.python_version()}
    for name in DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


@dataclass(frozen=True)
class View:
    """How a report is shown.

    Args:
        width: Columns of the terminal.
        color: Whether to colour.
        unicode: Whether the output can hold more than ASCII.
        quiet: Only what is not as expected, and the last line.
    """

    width: int = 80
    color: bool = False
    unicode: bool = True
    quiet: bool = False


def formats() -> tuple[str, ...]:
    """Return the names of the formats: the modules of this package."""
    names = (m.name for m in pkgutil.iter_modules(__path__))
    return tuple(sorted(n for n in names if not n.startswith("_")))


def check_format(form: str) -> None:
    """Refuse an unknown format; "" stands for the one that fits the output.

    Raises:
        DeriveError: Naming the nearest known one.
    """
    if form and form not in formats():
        raise DeriveError(f"unknown format {form!r}", hint=nearest(form, formats()))


def render(report: Report, form: str, view: View | None = None) -> str:
    """Return a report in one of the `formats`, ending with a line break.

    Raises:
        DeriveError: On an unknown format.
    """
    check_format(form)
    module = importlib.import_module(f"{__name__}.{form}")
    writer: Callable[[Report, View], str] = module.render
    return writer(report, view or View())
