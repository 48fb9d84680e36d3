"""Replays: a run repeated from its recipe, and its printed figures judged.

A figure of one kind is measured: the seed fixes the inputs exactly, so the figure has an exact
value, which ball arithmetic encloses; the recipe's own float run is compared as well.

A figure of the other kind is made of last bits. A table of maximal errors prints differences of
nearly equal floats. They have no exact value: they are what one order of operations leaves over. A
recipe fixes that order, and a replay is certified when the figure comes out as printed. On a
machine whose arithmetic differs in the last bits the figure may differ too; it is then undecided,
not refuted, and the reason says so.

A run that the lecture does not describe well enough to repeat is ``unrecorded``: undecided.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from math import isfinite
from time import perf_counter
from typing import Any

import numpy as np

from derive.case import UNRECORDED, Case, Expect, Group
from derive.case_decimals import Value
from derive.checks.printed import Judged, judge
from derive.checks.printed_case import claim_of, evidence_of, verdict_of
from derive.checks.printed_text import Shown, parse
from derive.checks.recipes import Array, Arrays, Figure, Measured, Request, find
from derive.checks.replay_bptt import LOSSES, ORDER, autograd, forward, manual
from derive.claim import Claim, Printed, Result, Verdict
from derive.errors import DeriveError, nearest

WIDEN = 5.0
"""Orders of one recipe's operations leave figures a factor of 4.1 apart (3.19e-12 to 1.31e-11)."""

# which arithmetic this is

REFERENCES = frozenset(
    "1004ee9fde1cfdd3 12087687596ca25b 2466b2af01e80e8a 2db36a0b82965917 41d214086cc8a2ff "
    "72ee49e0b766f771 82ddee7bb54cf9d7 a2d1ff0c703d0a6f a8d4a0fd656f247a b651ce6eadff609a "
    "b7cf081eaa05abc1 ccfd4b8724723a63".split()
)
"""Fingerprints of arithmetics on which the shipped figures come out.

They are numpy 2.4 with AVX2 or AVX-512, OpenBLAS kernels from Nehalem to SkylakeX, torch 2.13 with
or without AVX2. Without AVX2 numpy's tanh rounds differently and 3.19e-12 becomes 4.29e-12.
"""


@lru_cache(maxsize=1)
def arithmetic() -> str:
    """Return a fingerprint of this machine's float64 results on fixed inputs of the recipe.

    Two machines with one fingerprint agree to the last bit on some 3000 results, so a figure that
    does not come out there is a wrong figure and not another rounding.
    """
    digest = hashlib.sha256()
    for seed in range(24):
        p = fixed_inputs(seed)
        for loss in LOSSES:
            results = [*forward(p), np.array(LOSSES[loss](p))]
            results += [g for grads in (manual(p, loss), autograd(p, loss)) for g in grads.values()]
            for result in results:
                digest.update(np.ascontiguousarray(result, dtype="<f8").tobytes())
    return digest.hexdigest()[:16]


def fixed_inputs(seed: int) -> Arrays:
    """Return tensors of two-digit decimals from a linear congruential generator (Lehmer, 1951)."""
    state = 1 + seed

    def draw(*shape: int) -> Array:
        nonlocal state
        values = []
        for _ in range(int(np.prod(shape))):
            state = state * 48271 % (2**31 - 1)
            values.append((state % 197 - 98) / 100)
        return np.array(values).reshape(shape)

    shapes = {"x": (3, 2), "W_x": (2, 2), "W_h": (2, 2), "b_h": (2,), "h_init": (2,), "y": (2,),
              "W_o": (3, 2), "b_o": (3,)}  # fmt: skip
    tensors = {name: draw(*shape) for name, shape in shapes.items()}
    return {**tensors, "Y": np.eye(3)[[seed % 3, 2, 1]]}


# the figures of a case


def arrays(group: Group) -> Arrays:
    """Return the givens of a group as float64, each the nearest to its exact value."""

    def nearest_float(value: Any) -> Any:
        if isinstance(value, tuple):
            return [nearest_float(v) for v in value]
        return value.numerator / value.denominator  # Python rounds this quotient correctly

    return {name: np.array(nearest_float(value)) for name, value in group.givens.items()}


def figure_of(case: Case, expect: Expect) -> Figure | Measured:
    """Run the recipe of a printed figure.

    Raises:
        DeriveError: On an unknown recipe or figure.
    """
    run, group = case.replays[expect.replay], case.group(expect.group)
    recipe = find("RECIPES", run.recipe)
    found = recipe(Request(run, expect.at, arrays(group), group.loss))
    if expect.quantity not in found:
        raise DeriveError(f"the recipe yields no figure {expect.quantity!r}",
                          hint=nearest(expect.quantity, found))  # fmt: skip
    figure: Figure | Measured = found[expect.quantity]()
    values = figure.run() if isinstance(figure, Measured) else [figure.value]
    if not all(map(isfinite, values)):
        raise DeriveError(f"the figure {expect.quantity} is no finite number: {values[0]}")
    return figure


def elsewhere(figure: Figure, shown: Shown) -> str:
    """Return why a figure that did not come out is undecided here; "" if it is wrong.

    It is undecided on another arithmetic, if changes in the last place reach its magnitude.
    """
    if arithmetic() in REFERENCES:
        return ""
    around = [figure.value, *figure.neighbours()]
    if not min(around) / WIDEN <= shown.value <= max(around) * WIDEN:
        return ""
    return (
        f"printed {shown.text}, here {figure.value:.3g}: the float arithmetic of this machine "
        "differs in the last bits from the recipe's, and the figure is made of last bits"
    )


def replay_result(case: Case, expect: Expect, number: int) -> Result:
    """Replay one printed figure.

    Raises:
        DeriveError: If the recipe cannot run, naming the case file and its line.
    """
    start, claim = perf_counter(), claim_of(case, expect, number)
    if case.replays[expect.replay].recipe == UNRECORDED:
        return unrecorded(case, expect, claim)
    try:
        figure, display = figure_of(case, expect), parse(expect.printed)
        shape = figure.shape if isinstance(figure, Measured) else ()
        if display.shape != shape:
            one = "is one number" if not shape else f"has shape {list(shape)}"
            raise DeriveError(f"a replayed figure {one}; found {expect.printed!r}")
    except DeriveError as error:
        place = f"{case.path}:{expect.file_line}"
        raise DeriveError(f"{place}: {error.message}", hint=error.hint) from error
    if isinstance(figure, Measured):
        return measured_result(case, expect, claim, figure, display.scalars, start)
    return last_bits_result(case, expect, claim, figure, display.scalars[0], start)


def unrecorded(case: Case, expect: Expect, claim: Claim) -> Result:
    """Return the result on a figure of a run that nobody can repeat."""
    reason = case.replays[expect.replay].reason
    row = Printed(expect.where, expect.printed, None, False, claim.title, expect.line, reason)
    verdict = Verdict("undecided", "", "replay", reason)
    return Result(claim, verdict, (), (row,), case=case.id)


def measured_result(
    case: Case, expect: Expect, claim: Claim, figure: Measured, shown: tuple[Shown, ...],
    start: float,
) -> Result:  # fmt: skip
    """Judge a figure by its exact value, and the recipe's own float run beside it."""
    exact = judged_all(expect, claim, shown, figure.values)
    own = [partial(constant, Fraction(value)) for value in figure.run()]
    run = judged_all(expect, claim, shown, own)
    verdict = replace(verdict_of(exact), kind="enclosure of the recorded run")
    evidence = evidence_of(exact, perf_counter() - start)
    values = ", ".join(f"{value:.8g}" for value in figure.run())
    replayed = replace(
        evidence_of(run, 0.0), kind="replay", against=figure.against, count=figure.count,
        detail=f"this machine's run gives {values}; max_error in units of the last printed place",
    )  # fmt: skip
    if verdict.name == "certified" and not replayed.passed:
        reason = f"printed {shown[0].text}, enclosed so too, but here the run gives {values}"
        verdict = replace(verdict, name="undecided", reason=reason)
    rows = tuple(j.row for j in exact)
    return Result(claim, verdict, (replayed, evidence), rows, case=case.id)


def judged_all(
    expect: Expect, claim: Claim, shown: Sequence[Shown], values: Sequence[Value]
) -> list[Judged]:
    """Judge every number of a figure."""
    return [
        judge(s, value, mode=expect.rounding, interval=expect.interval, where=expect.where,
              quantity=claim.title, line=expect.line)
        for s, value in zip(shown, values, strict=True)
    ]  # fmt: skip


def constant(value: Fraction, bits: int) -> Fraction:
    """Return an exact value, whatever the precision."""
    return value


def last_bits_result(
    case: Case, expect: Expect, claim: Claim, figure: Figure, shown: Shown, start: float
) -> Result:
    """Judge a figure that an order of float operations leaves over."""
    (judged,) = judged_all(expect, claim, [shown], [partial(constant, Fraction(figure.value))])
    if judged.status == "wrong" and (reason := elsewhere(figure, shown)):
        return Result(claim, Verdict("undecided", "these numbers", "replay", reason), case=case.id)
    verdict = replace(verdict_of((judged,)), kind="replay")
    evidence = evidence_of((judged,), perf_counter() - start)
    replayed = replace(
        evidence, kind="replay", against="the recipe's float64 run", count=figure.count,
        detail=f"{figure.value!r}; depends on the order of the operations: {ORDER}",
    )  # fmt: skip
    printed = replace(evidence, against="the replayed figure")
    return Result(claim, verdict, (replayed, printed), (judged.row,), case=case.id)


def replay_results(case: Case, topic: str = "") -> tuple[Result, ...]:
    """Replay every printed figure of a case that names a recipe, or of its part on one topic."""
    return tuple(
        replay_result(case, expect, number)
        for number, expect in enumerate(case.expects)
        if expect.replay and (not topic or case.group(expect.group).topic == topic)
    )
