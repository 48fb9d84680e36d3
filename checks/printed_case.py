"""The printed numbers of a case: each entry judged, one row a number, one result an entry."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from time import perf_counter

from derive.case import Case, Expect, Group
from derive.case_decimals import LADDER, Exact
from derive.case_values import Index, Pin, Values
from derive.checks.draws import filled
from derive.checks.printed import Judged, judge
from derive.checks.printed_text import parse
from derive.claim import Claim, Evidence, Printed, Result, Source, Verdict, VerdictName, Worst
from derive.errors import DeriveError
from derive.nodes import kind

SHAPE = re.compile(r"shape\(\s*(\w+)\s*\)")
TITLES = {
    "finite_difference": "largest error, finite difference",
    "autograd": "largest error, autograd",
}
"""Figures of a replay whose name says less than a reader needs."""
Cell = tuple[str, Callable[[int], Exact]]
"""The name of one number and its value at a precision."""


def certify(expect: Expect, values: Values) -> tuple[Printed, ...]:
    """Return the report rows of one printed entry, one per number."""
    return tuple(judged.row for judged in judge_expect(expect, values))


def judge_expect(expect: Expect, values: Values) -> tuple[Judged, ...]:
    """Judge every number of one printed entry.

    Args:
        expect: What the lecture prints; not a replay.
        values: The exact values of its group.

    Raises:
        DeriveError: If it cannot be read, or the printed shape is not that of the quantity.
    """
    display = parse(expect.printed)
    shape, cells = cells_of(expect, values)
    if [n for n in shape if n > 1] != [n for n in display.shape if n > 1]:
        raise DeriveError(
            f"printed {expect.printed!r} has shape {list(display.shape)}; {expect.quantity} with "
            f"at = {dict(expect.at)} has shape {list(shape)}"
        )
    return tuple(
        judge(shown, value, mode=expect.rounding, interval=expect.interval, where=expect.where,
              quantity=name, line=expect.line)
        for shown, (name, value) in zip(display.scalars, cells, strict=True)
    )  # fmt: skip


def cells_of(expect: Expect, values: Values) -> tuple[tuple[int, ...], list[Cell]]:
    """Return the shape of a quantity and its numbers, the last axis fastest."""
    if match := SHAPE.fullmatch(expect.quantity.strip()):
        sizes = shape_of(match[1], values.group)
        return (len(sizes),), [size_cell(expect.quantity, i, n) for i, n in enumerate(sizes)]
    if expect.operands:
        values = Values(values.group, operand_pins(expect, values))
    quantity = values.quantity(expect.quantity, expect.at)

    def cell(index: Index) -> Cell:
        return quantity.label(index), lambda bits: values.at(quantity, index, bits)

    return values.shape(quantity), [cell(index) for index in values.indices(quantity)]


def size_cell(quantity: str, axis: int, size: int) -> Cell:
    """Return one number of a printed shape."""
    return f"{quantity} axis {axis}", lambda _: size


def shape_of(name: str, group: Group) -> tuple[int, ...]:
    """Return the shape of a tensor at the group's sizes.

    Raises:
        DeriveError: If it is unknown, or one of its sizes is.
    """
    tensor = group.system.tensors.get(name)
    if tensor is None:
        raise DeriveError(f"shape({name}): unknown tensor")
    missing = [d.name for d in tensor.dims if d.name not in group.sizes]
    if missing:
        raise DeriveError(f"shape({name}): size {missing[0]} is unknown in group {group.name}")
    return tuple(group.sizes[d.name] for d in tensor.dims)


def operand_pins(expect: Expect, values: Values) -> tuple[Pin, ...]:
    """Return the entries that are fixed to their printed values."""
    pins: list[Pin] = []
    whole = values.quantity(expect.quantity, expect.at).expr
    for text, printed in expect.operands.items():
        display, quantity = parse(printed), values.quantity(text, expect.at)
        indices = list(values.indices(quantity))
        if len(indices) != len(display.scalars):
            raise DeriveError(
                f"operand {text} has {len(indices)} entries; {printed!r} has {len(display.scalars)}"
            )
        if kind(quantity.expr) == "Fixed" and not whole.has(quantity.expr):
            raise DeriveError(f"operand {text} does not stand in {expect.quantity}")
        pins += [(quantity, i, s.value) for i, s in zip(indices, display.scalars, strict=True)]
    return tuple(pins)


def verdict_of(judged: Sequence[Judged]) -> Verdict:
    """Return the verdict on printed numbers: a wrong one refutes, an undecided one leaves open."""
    rows = {status: [j.row for j in judged if j.status == status]
            for status in ("wrong", "undecided", "certified")}  # fmt: skip
    names: dict[str, VerdictName] = {
        "wrong": "refuted", "undecided": "undecided", "certified": "certified"
    }  # fmt: skip
    for status, found in rows.items():
        if found:
            first = found[0]
            reason = "" if status == "certified" else f"{first.printed}: {first.note}"
            return Verdict(names[status], "these numbers", "enclosure", reason)
    return Verdict("undecided", "these numbers", "enclosure", "nothing is printed")


def evidence_of(judged: Sequence[Judged], seconds: float) -> Evidence:
    """Return the evidence ``printed``; the error is in units of the last printed place."""
    errors = [j.error for j in judged if j.error is not None]
    worst = max(range(len(judged)), key=lambda i: judged[i].error or 0.0, default=None)
    place = None
    if worst is not None and judged[worst].row.exact is not None:
        row = judged[worst].row
        place = Worst((worst,), approximate(row.printed), approximate(str(row.exact)))
    return Evidence(
        kind="printed",
        against=f"exact rationals and balls to {LADDER[-1]} bits",
        count=len(judged),
        max_error=max(errors, default=None),
        # half a unit of the last place is what correct rounding means
        tolerance=0.5,
        scope="these numbers",
        seconds=seconds,
        passed=bool(judged) and all(j.status == "certified" for j in judged),
        worst=place,
        detail="max_error in units of the last printed place",
    )


def approximate(text: str) -> float:
    """Return a printed number as a float, for the worst place of a comparison."""
    return float(parse(text).scalars[0].value)


def claim_of(case: Case, expect: Expect, number: int) -> Claim:
    """Return the claim that a printed entry makes: quantity = printed."""
    group = case.group(expect.group)
    at = ", ".join(f"{k}={v}" for k, v in expect.at.items())
    title = f"{expect.quantity} at {at}" if at else expect.quantity
    if expect.replay:
        title = TITLES.get(title, title.replace("_", " "))
    place = f"line-{expect.line}" if expect.line is not None else f"expect-{number + 1}"
    return Claim(
        id=f"{case.id}.printed-{place}-{number + 1}",
        topic=group.topic,
        statement=f"{title} = {expect.printed}",
        title=title,
        system=group.system.name,
        loss=group.loss,
        expected=expect.expected,
        reason=expect.reason,
        source=Source(case.source, expect.line or expect.file_line, None, expect.where),
    )


def printed_results(case: Case, topic: str = "") -> tuple[Result, ...]:
    """Certify every printed number of a case, or of its part on one topic; replays left out.

    Raises:
        DeriveError: If an entry cannot be read, naming the case file and its line.
    """
    case = filled(case)
    names = ("", *case.groups)
    values = {name: Values(case.group(name)) for name in names}
    found = []
    for number, expect in enumerate(case.expects):
        if expect.replay or (topic and case.group(expect.group).topic != topic):
            continue
        found.append(printed_result(case, expect, number, values[expect.group]))
    return tuple(found)


def printed_result(case: Case, expect: Expect, number: int, values: Values) -> Result:
    """Certify one printed entry."""
    start = perf_counter()
    try:
        judged = judge_expect(expect, values)
    except DeriveError as error:
        place = f"{case.path}:{expect.file_line}"
        raise DeriveError(f"{place}: {error.message}", text=error.text, at=error.at,
                          hint=error.hint) from error  # fmt: skip
    evidence = evidence_of(judged, perf_counter() - start)
    return Result(claim_of(case, expect, number), verdict_of(judged), (evidence,),
                  tuple(j.row for j in judged), case=case.id)  # fmt: skip
