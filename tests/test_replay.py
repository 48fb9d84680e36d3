"""Replays: the printed error table to its last digit, and what happens on another arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from derive.case import Case, Expect
from derive.case_load import find_case
from derive.checks import replay, replay_bptt
from derive.checks.replay import REFERENCES, arithmetic, arrays, replay_result, replay_results
from derive.errors import DeriveError

CASE = find_case("innopolis-week06")
FIGURES = [e for e in CASE.expects if e.replay]


@pytest.fixture
def reference() -> None:
    """Skip where the figures may come out otherwise."""
    if arithmetic() not in REFERENCES:
        pytest.skip("this machine's float arithmetic rounds differently")


@pytest.mark.usefixtures("reference")
def test_the_error_table_is_reproduced() -> None:
    results = replay_results(CASE)
    assert [r.verdict.name for r in results] == ["certified"] * 4
    assert [r.printed[0].exact for r in results] == [
        "3.19400756e-12", "5.55111512e-17", "1.70705831e-10", "6.93889390e-17"
    ]  # fmt: skip
    for result, count in zip(results, (10, 10, 19, 19), strict=True):
        assert result.ok
        assert [e.kind for e in result.evidence] == ["replay", "printed"]
        assert result.evidence[0].count == count
        assert "order of the operations" in result.evidence[0].detail


@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize("expect", FIGURES, ids=lambda e: e.printed)
def test_changing_any_digit_is_caught(expect: Expect) -> None:
    for place, char in enumerate(expect.printed):
        for digit in "0123456789".replace(char, "") if char.isdigit() else "":
            text = expect.printed[:place] + digit + expect.printed[place + 1 :]
            if "10^{" in text:  # another base is no number
                result = replay_result(CASE, replace(expect, printed=text), 0)
                assert result.verdict.name == "refuted", text
                assert not result.ok


def other_order(p: replay_bptt.Arrays) -> float:
    """The final loss without the root: another order of the same operations."""
    e = replay_bptt.forward(p)[-1] - p["y"]
    return float(0.5 * (e @ e))


def test_the_figure_depends_on_the_order_of_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(replay_bptt.LOSSES, "final", other_order)
    figure = replay.figure_of(CASE, FIGURES[0])
    assert 3.5e-12 < figure.value < 2e-11


@pytest.mark.parametrize(
    ("printed", "verdict"),
    [(r"3.19\times10^{-12}", "undecided"), (r"3.19\times10^{-11}", "undecided"),
     (r"3.19\times10^{-10}", "refuted"), (r"3.19\times10^{-14}", "refuted")],
)  # fmt: skip
def test_on_another_arithmetic_it_is_undecided_within_the_magnitude(
    monkeypatch: pytest.MonkeyPatch, printed: str, verdict: str
) -> None:
    monkeypatch.setitem(replay_bptt.LOSSES, "final", other_order)
    monkeypatch.setattr(replay, "arithmetic", lambda: "another")
    result = replay_result(CASE, replace(FIGURES[0], printed=printed), 0)
    assert result.verdict.name == verdict
    assert not result.ok
    if verdict == "undecided":
        assert result.printed == () == result.evidence
        assert "differs in the last bits" in result.verdict.reason


@pytest.mark.parametrize("loss", ["final", "per_position"])
def test_manual_gradients_agree_with_autograd(loss: str) -> None:
    for seed in range(5):
        p = replay.fixed_inputs(seed)
        error = replay_bptt.largest(replay_bptt.manual(p, loss), replay_bptt.autograd(p, loss))
        # a few roundings of numbers near one, 1.1e-16 each
        assert 0 <= error < 2e-15


SABOTAGE: list[tuple[str, Callable[[replay_bptt.Arrays], object]]] = [
    ("final", lambda g: g["W_h"].__iadd__(1e-9)),
    ("per_position", lambda g: g["b_o"].__iadd__(1e-9)),
]


@pytest.mark.parametrize(("loss", "damage"), SABOTAGE)
def test_a_wrong_gradient_shows_in_both_figures(
    monkeypatch: pytest.MonkeyPatch, loss: str, damage: Callable[[replay_bptt.Arrays], object]
) -> None:
    right = replay_bptt.manual

    def wrong(p: replay_bptt.Arrays, name: str) -> replay_bptt.Arrays:
        grads = right(p, name)
        damage(grads)
        return grads

    monkeypatch.setattr(replay_bptt, "manual", wrong)
    group = next(g for g in CASE.groups.values() if g.loss == loss)
    found = replay_bptt.gradient_errors(arrays(group), loss, {"eps": Fraction(1, 10**6)})
    assert all(figure.value > 9e-10 for figure in found.values())


def test_a_nan_is_not_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(replay_bptt.LOSSES, "final", lambda p: float("nan"))
    with pytest.raises(DeriveError, match="is no finite number"):
        replay_result(CASE, FIGURES[0], 0)


def with_replay(**changes: object) -> Case:
    recipe = replace(CASE.replays["gradient-checks"], **changes)  # type: ignore[arg-type]
    return replace(CASE, replays={"gradient-checks": recipe})


@pytest.mark.parametrize(
    ("case", "changes", "message"),
    [
        (with_replay(recipe="bptt-gradient-error"), {}, "did you mean 'bptt-gradient-errors'"),
        (with_replay(settings={}), {}, "eps > 0"),
        (with_replay(settings={"eps": Fraction(0)}), {}, "eps > 0"),
        (CASE, {"quantity": "autogra"}, "did you mean 'autograd'"),
        (CASE, {"printed": "(1, 2)"}, "a replayed figure is one number"),
    ],
)
def test_what_cannot_run_names_the_entry(case: Case, changes: dict[str, str], message: str) -> None:
    expect = replace(FIGURES[0], **changes)  # type: ignore[arg-type]
    with pytest.raises(DeriveError) as caught:
        replay_result(case, expect, 0)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{CASE.path}:{expect.file_line}")


def test_the_fingerprint_sees_one_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    right = np.tanh
    before = arithmetic()
    arithmetic.cache_clear()
    monkeypatch.setattr(np, "tanh", lambda z: np.nextafter(right(z), 1))
    assert arithmetic() != before
    monkeypatch.undo()
    arithmetic.cache_clear()
    assert arithmetic() == before
