"""The printed numbers of the shipped cases: certified, and every changed digit caught."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from importlib import resources

import pytest

from derive.case import Expect
from derive.case_load import find_case, load_text
from derive.case_values import Values
from derive.checks.draws import filled
from derive.checks.printed_case import (
    certify,
    evidence_of,
    judge_expect,
    printed_results,
    verdict_of,
)
from derive.checks.printed_text import parse
from derive.errors import DeriveError

CASES = {name: filled(find_case(name)) for name in ("innopolis-week06", "idaho-s13")}
CASE = CASES["innopolis-week06"]
VALUES = {(c.id, name): Values(c.group(name)) for c in CASES.values() for name in ("", *c.groups)}
EXACT = [(c.id, e) for c in CASES.values() for e in c.expects
         if not e.replay and e.expected == "holds"]  # fmt: skip
COUNTS = {"innopolis-week06": (217, 410), "idaho-s13": (109, 109)}


@pytest.mark.parametrize("name", CASES)
def test_every_printed_number_of_a_case_is_certified(name: str) -> None:
    results = [r for r in printed_results(CASES[name]) if r.claim.expected == "holds"]
    rows = [row for result in results for row in result.printed]
    exact = [e for case, e in EXACT if case == name]
    assert (len(results), len(rows)) == COUNTS[name]
    assert len(exact) == len(results)
    assert all(row.certified for row in rows)
    assert all(result.ok and result.verdict.name == "certified" for result in results)
    assert all(e.passed for result in results for e in result.evidence)
    assert {r.line for r in rows} == {e.line for e in exact}


def test_what_is_recorded_as_wrong_is_wrong() -> None:
    found = [r for r in printed_results(CASES["idaho-s13"]) if r.claim.expected == "fails"]
    assert all(r.ok and r.verdict.name == "refuted" for r in found)
    assert [row.note for r in found for row in r.printed if not row.certified] == [
        "truncated, not rounded: the correct rounding is 0.17",
        "outside the stated interval from 0.001000 to 1.000000",
    ]


def changed_digits(text: str) -> Iterator[str]:
    """Yield the text with each digit replaced by each other digit."""
    for place, char in enumerate(text):
        if char.isdigit():
            for digit in "0123456789".replace(char, ""):
                yield text[:place] + digit + text[place + 1 :]


@pytest.mark.parametrize(
    ("case", "expect"), EXACT, ids=[f"{c}-line-{e.line}-{e.quantity}" for c, e in EXACT]
)
def test_changing_any_one_digit_is_caught(case: str, expect: Expect) -> None:
    values = VALUES[case, expect.group]
    assert all(row.certified for row in certify(expect, values))
    for text in changed_digits(expect.printed):
        if "10^" in expect.printed and "10^" not in text:
            with pytest.raises(DeriveError, match="expected a printed number"):
                parse(text)  # another base is no number
            continue
        judged = judge_expect(replace(expect, printed=text), values)
        assert [j.status for j in judged].count("wrong") == 1, text
        assert verdict_of(judged).name == "refuted"
        assert not evidence_of(judged, 0.0).passed


def given_lines(source: str) -> Iterator[str]:
    """Yield the lines of the case file that give a tensor in decimals."""
    for line in source.split("\n"):
        name, equals, value = line.partition(" = ")
        # a digit of the name is none of the given's
        numbers = not any(char.isalpha() for char in value) and not any(map(str.isdigit, name))
        if equals and value.startswith("[") and '"' in value and numbers:
            yield line


def test_changing_a_digit_of_a_given_is_caught() -> None:
    source = resources.files("derive.cases").joinpath("innopolis-week06.toml").read_text("utf-8")
    short = source.split("[[claim]]")[0].split("[coverage]")[0]
    expects = [
        "[[expect]]" + part.split("\n[[")[0].split("\n#")[0]
        for part in source.split("[[expect]]")[1:]
    ]
    changed = 0
    for section in short.split("\n[group.")[1:]:
        # what a group prints depends on its own givens
        name = section.split("]")[0].removesuffix(".lines")
        own = "\n".join(e for e in expects if f'group = "{name}"' in e)
        for line in dict.fromkeys(given_lines(section)):
            for text in list(changed_digits(line))[::17]:
                case = load_text(short.replace(section, section.replace(line, text)) + own)
                statuses = {r.verdict.name for r in printed_results(case)}
                assert "refuted" in statuses, text
                changed += 1
    assert changed > 30


def test_changing_a_given_weight_is_caught() -> None:
    case = CASES["idaho-s13"]
    for name in [n for n in case.groups if "w" in case.groups[n].givens]:
        group = case.groups[name]
        weight = group.givens["w"]
        assert isinstance(weight, Fraction)
        moved = replace(group, givens={**group.givens, "w": weight + Fraction(1, 10)})
        expects = tuple(e for e in case.expects if e.group == name)
        results = printed_results(replace(case, groups={name: moved}, expects=expects))
        assert "refuted" in {r.verdict.name for r in results if r.claim.expected == "holds"}, name
