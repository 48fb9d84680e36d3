"""New cases: every topic's file loads, passes its own check, and is the same for the same seed."""

from __future__ import annotations

import re

import pytest

from derive import topics
from derive.case_load import load_text
from derive.checks.printed_case import printed_results
from derive.errors import DeriveError
from derive.new_case import new_case

TOPICS = topics.names()


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("nice", [False, True])
@pytest.mark.parametrize("solutions", [False, True])
def test_a_new_case_is_certified_as_it_stands(topic: str, nice: bool, solutions: bool) -> None:
    case = load_text(new_case(topic, nice, 7, solutions))
    results = printed_results(case)
    assert case.topics == (topic,)
    assert results
    assert all(result.ok for result in results)
    assert all(row.certified for result in results for row in result.printed)


def test_the_worked_ledger_of_bptt_holds_every_result() -> None:
    case = load_text(new_case("bptt", True, 7, True))
    quantities = [expect.quantity for expect in case.expects]
    wanted = ["z", "h", "L", "g_h", "g_z", "G", "dL/dW_x", "dL/dW_h", "dL/db_h"]
    assert list(dict.fromkeys(quantities)) == wanted
    assert [dict(e.at)["t"] for e in case.expects if e.quantity == "g_h"] == [2, 1, 0]
    assert len(case.claims) == 1


def test_an_exercise_has_short_decimals_and_says_what_is_asked() -> None:
    text = new_case("bptt", True, 7)
    group = load_text(text).group("exercise")
    tensors = text.split("[group.exercise]")[1].split("# Exercise")[0]
    entries = re.findall(r"\d+\.\d+", tensors)
    assert entries
    assert all(len(e.split(".")[1]) == 1 for e in entries)
    assert set(group.givens) == {"x", "W_x", "W_h", "b_h", "y", "h_init"}
    assert "z, h, L, g_h, g_z, G, dL/dW_x, dL/dW_h, dL/db_h" in text


def test_seeds_give_different_files_and_the_same_seed_the_same() -> None:
    texts = [new_case("bptt", True, seed) for seed in (1, 2, 1)]
    assert texts[0] == texts[2] != texts[1]


def test_a_changed_digit_of_a_new_case_is_caught() -> None:
    text = new_case("bptt", True, 7, True)
    before, after = text.split('quantity = "L"\nprinted = "', 1)
    digit = after[5]
    changed = (
        before + 'quantity = "L"\nprinted = "' + after[:5] + str((int(digit) + 1) % 10) + after[6:]
    )
    names = [r.verdict.name for r in printed_results(load_text(changed))]
    assert names.count("refuted") == 1


def test_an_unknown_topic_is_an_error() -> None:
    with pytest.raises(DeriveError, match="did you mean 'bptt'"):
        new_case("bpt")
