"""Coverage: which lines hold a formula or a number, and what a case leaves unaccounted for."""

from __future__ import annotations

import pytest

from derive.case_load import find_case, load_text
from derive.coverage import coverage, formula_lines

LINES = [
    ("plain words only", False),
    ("", False),
    ("a state (or memory) - carried on", False),
    ("the course's own words; and/or", False),
    ("Chapter 10", True),
    (r"$$h_t=\tanh(z_t)$$", True),
    (r"a loss at step \(T\) only", True),
    (r"\[W\]", True),
    ("z_t follows from the input", True),
    ("the weights W_x and W_h", True),
    ("a matrix of H×D entries", True),
    ("x^2 in words", True),
    (r"\alpha alone", True),
    ("a → b", True),
]


@pytest.mark.parametrize(("line", "holds"), LINES)
def test_lines_with_a_formula_or_a_number(line: str, holds: bool) -> None:
    assert formula_lines(line) == ([1] if holds else [])


def test_lines_are_counted_from_one() -> None:
    assert formula_lines("words\n\nh_t = 1\nwords\n2") == [3, 5]


@pytest.mark.parametrize(
    ("name", "counts"),
    [("innopolis-week06", (400, 221, 243)), ("iiit-lecture02", (460, 19, 181))],
)
def test_nothing_of_a_shipped_lecture_is_unaccounted_for(
    name: str, counts: tuple[int, int, int]
) -> None:
    found = coverage(find_case(name))
    assert found.complete
    assert (found.lines, found.expects, found.claims) == counts
    assert found.doubled == ()
    assert "unaccounted for: nothing" in str(found)


def test_every_line_of_the_second_lecture_is_accounted_for() -> None:
    found = coverage(find_case("idaho-s13"))
    assert found.complete
    assert (found.lines, found.expects, found.claims, found.skips) == (231, 158, 117, 108)
    assert found.doubled == ()


CASE = """\
[case]
id = "c"
[coverage]
lines = [1, 2, 3, 4, 5, 6]
[group.g]
topic = "bptt"
y = [1]
[group.g.lines]
y = 1
[replay.r]
recipe = "bptt-gradient-errors"
line = 2
[[expect]]
group = "g"
quantity = "H"
printed = "1"
line = 3
[[claim]]
group = "g"
statement = "h[t] = tanh(z[t])"
line = 4
[[skip]]
lines = [5, 3]
reason = "a heading"
"""


def test_what_is_left_and_what_is_doubled() -> None:
    found = coverage(load_text(CASE))
    assert (found.unaccounted, found.doubled, found.complete) == ((6,), (3,), False)
    assert "unaccounted for: 6" in str(found)


@pytest.mark.parametrize(
    ("old", "line"), [("y = 1\n", 1), ("line = 2\n", 2), ("line = 4\n", 4), ("[5, 3]", 5)]
)
def test_each_kind_of_entry_accounts_for_its_line(old: str, line: int) -> None:
    found = coverage(load_text(CASE.replace(old, "[3]" if "[" in old else "")))
    assert line in found.unaccounted


def test_a_case_without_an_inventory_is_not_complete() -> None:
    found = coverage(load_text('[case]\nid = "c"\n'))
    assert not found.complete
    assert "unknown" in str(found)
