"""Recipes: what a recorded seed fixes, the balls against torch, and what cannot be repeated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from flint import arb

from derive.case import Case, Expect
from derive.case_load import find_case, load_text
from derive.checks import cells, draws, recipes, replay_reach
from derive.checks.printed_case import claim_of, printed_results
from derive.checks.printed_text import parse
from derive.checks.recipes import Measured, registry
from derive.checks.replay import figure_of, judged_all, replay_result, replay_results
from derive.errors import DeriveError

CASE = find_case("idaho-s13")
FIGURES = [e for e in CASE.expects if e.replay and e.expected == "holds"]
OPEN = [e for e in CASE.expects if e.expected == "undecided"]


def test_every_family_is_found_by_its_file() -> None:
    assert set(registry("RECIPES")) == {
        "bptt-gradient-errors", "torch-gradient-reach", "torch-cell-start"
    }  # fmt: skip
    assert set(registry("DRAWS")) == {"numpy-normal-draws"}


# draws


def test_drawn_values_are_the_floats_of_the_stream() -> None:
    state = np.random.get_state()
    np.random.seed(0)
    stream = [0.1 * np.random.randn() for _ in range(150)]
    np.random.set_state(state)
    for name, start in (("tanh-w09", 0), ("tanh-w11", 50), ("tanh-w20", 100)):
        given = draws.filled(CASE).group(name).givens["x"]
        assert given == tuple(map(Fraction, stream[start : start + 50]))


def test_drawing_leaves_the_generators_alone() -> None:
    before = np.random.get_state()[1].copy(), torch.random.get_rng_state()
    draws.filled(CASE)
    replay_results(CASE)
    assert np.array_equal(np.random.get_state()[1], before[0])
    assert torch.equal(torch.random.get_rng_state(), before[1])


def test_another_seed_or_start_is_caught() -> None:
    run, group = CASE.replays["seed-0"], CASE.group("tanh-w20")
    other = replace(run, settings={**run.settings, "seed": Fraction(1)})
    expects = tuple(e for e in CASE.expects if e.group == "tanh-w20")
    for changed, start in ((other, 100), (run, 99)):
        drawn = replace(group, drawn={"x": replace(group.drawn["x"], start=start)})
        case = replace(CASE, replays={"seed-0": changed}, groups={"tanh-w20": drawn},
                       expects=expects)  # fmt: skip
        names = [r.verdict.name for r in printed_results(case)]
        assert names.count("refuted") > 20


GROUP = """\
[case]
id = "c"
[replay.draws]
recipe = "numpy-normal-draws"
seed = 0
[system.s]
sizes = ["T"]
tensors = { x = ["T"] }
equations = ["y[t] = 2*x[t]"]
[group.g]
system = "s"
sizes = { T = 3 }
x = { replay = "draws" }
[[expect]]
group = "g"
quantity = "y"
at = { t = 0 }
printed = "3.528"
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('{ replay = "draws" }', '{ replay = "drawn" }', "did you mean 'draws'"),
        ('{ replay = "draws" }', '{ replay = "draws", begin = 1 }', "begin: unknown key"),
        ('{ replay = "draws" }', '{ replay = "draws", start = -1 }', "0 to 100000 draws; found -1"),
        ("sizes = { T = 3 }\n", "", "a seed does not say how many values to draw: size T"),
        ('"numpy-normal-draws"', '"numpy-normal"', "did you mean 'numpy-normal-draws'"),
        ("seed = 0\n", "", "needs the setting seed"),
        ("seed = 0\n", "seed = 0.5\n", "seed is a whole number from 0 to 4294967295; found 1/2"),
        ("seed = 0\n", "seed = 0\nsigma = 2\n", "has no setting 'sigma'"),
    ],
)
def test_a_draw_that_cannot_be_made_says_why(old: str, new: str, message: str) -> None:
    assert printed_results(load_text(GROUP))[0].verdict.name == "certified"
    with pytest.raises(DeriveError) as caught:
        printed_results(load_text(GROUP.replace(old, new), "c.toml"))
    assert message in str(caught.value)
    assert "c.toml" in str(caught.value)


# cells in balls


KINDS = [("rnn", None), ("lstm", None), ("lstm", 2.0)]


def run_of(kind: str, bias: float | None, steps: int) -> tuple[Any, Any, float]:
    """The recipe in float64, by a loop over the matrices that torch made."""
    parameters, rows, _ = replay_reach.measured(kind, 0, 32, 32, bias, steps)
    made = getattr(torch.nn, replay_reach.KINDS[kind])(32, 32).double()
    with torch.no_grad():
        for name, p in made.named_parameters():
            p.copy_(torch.tensor(parameters[name], dtype=torch.float64).reshape(p.shape))
    xs = [torch.tensor([row], dtype=torch.float64) for row in rows]
    xs[0].requires_grad_()
    state: Any = None
    for x in xs:
        state = made(x, state)
    (state if kind == "rnn" else state[0]).sum().backward()
    return parameters, rows, float(xs[0].grad.norm())  # type: ignore[union-attr]


@pytest.mark.parametrize(("kind", "bias"), KINDS)
@pytest.mark.parametrize("steps", [1, 2, 7, 40])
def test_balls_enclose_what_float64_gives(kind: str, bias: float | None, steps: int) -> None:
    parameters, rows, norm = run_of(kind, bias, steps)
    ball = cells.gradient_norm(kind, parameters, rows, 64)
    assert ball.rad() < ball.mid() * arb(2) ** -40
    # 32-term sums in each of the steps there and back, 1.1e-16 each
    assert abs(float(ball.mid()) / norm - 1) < 2 * steps * 32 * 1.2e-16 * 10


def damaged(name: str) -> Callable[..., Any]:
    right = getattr(cells, name)

    def wrong(cell: cells.Cell) -> cells.Column:
        found: cells.Column = right(cell)
        return [found[0] * (1 + arb(10) ** -9), *(g * (1 + arb(10) ** -9) for g in found[1:])]

    return wrong


@pytest.mark.parametrize(("kind", "bias"), KINDS)
def test_an_error_of_a_billionth_shows(
    monkeypatch: pytest.MonkeyPatch, kind: str, bias: float | None
) -> None:
    parameters, rows, norm = run_of(kind, bias, 5)
    monkeypatch.setattr(cells, "GRADIENTS", {kind: damaged(f"{kind}_gradient")})
    ball = cells.gradient_norm(kind, parameters, rows, 64)
    assert abs(float(ball.mid()) / norm - 1) > 5e-10


def test_gates_in_another_order_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    replay_reach.enclosed.cache_clear()
    right = cells.Cell.preactivations

    def swapped(self: cells.Cell, t: int, h: cells.Column) -> cells.Column:
        z, n = right(self, t, h), self.size
        return [*z[n : 2 * n], *z[:n], *z[2 * n :]]

    monkeypatch.setattr(cells.Cell, "preactivations", swapped)
    expect = next(e for e in FIGURES if e.printed == "1.13e-01")
    assert replay_result(CASE, expect, 0).verdict.name == "refuted"
    replay_reach.enclosed.cache_clear()


# the figures of the case


def test_every_recorded_figure_comes_out() -> None:
    results = [replay_result(CASE, e, n) for n, e in enumerate(FIGURES)]
    assert {r.verdict.name for r in results} == {"certified"}
    assert all(r.ok for r in results)
    norms = [r for e, r in zip(FIGURES, results, strict=True) if e.line in range(284, 289)]
    assert len(norms) == 15
    for r in norms:
        assert [e.kind for e in r.evidence] == ["replay", "printed"]
        assert "float32" in r.evidence[0].against


@pytest.mark.parametrize("expect", FIGURES, ids=lambda e: f"line-{e.line}-{e.printed}")
def test_changing_any_one_digit_of_a_figure_is_caught(expect: Expect) -> None:
    figure = figure_of(CASE, expect)
    assert isinstance(figure, Measured)
    claim = claim_of(CASE, expect, 0)
    for place, char in enumerate(expect.printed):
        for digit in "0123456789".replace(char, "") if char.isdigit() else "":
            text = expect.printed[:place] + digit + expect.printed[place + 1 :]
            if r"\times" in text and "10^{" not in text:
                continue  # another base is no number
            judged = judged_all(expect, claim, parse(text).scalars, figure.values)
            assert [j.status for j in judged].count("wrong") == 1, text


def test_a_run_that_leaves_the_enclosure_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_reach, "measured", lambda *_: (None, None, 0.0961))
    monkeypatch.setattr(replay_reach, "enclosed", lambda *_: arb("0.0951"))
    result = replay_result(CASE, next(e for e in FIGURES if e.printed == "9.51e-02"), 0)
    assert result.verdict.name == "undecided"
    assert "but here the run gives 0.0961" in result.verdict.reason
    assert not result.ok


def with_settings(name: str, **settings: int | str) -> Case:
    run = CASE.replays[name]
    numbers = {**run.settings, **{k: Fraction(v) for k, v in settings.items()}}
    return replace(CASE, replays={**CASE.replays, name: replace(run, settings=numbers)})


@pytest.mark.parametrize("settings", [{"seed": 1}, {"hidden": 16}, {"inputs": 16}])
def test_other_settings_give_other_figures(settings: dict[str, int]) -> None:
    expect = next(e for e in FIGURES if e.printed == "9.51e-02")
    assert replay_result(with_settings("reach", **settings), expect, 0).verdict.name == "refuted"


@pytest.mark.parametrize(
    ("case", "changes", "message"),
    [
        (
            CASE,
            {"quantity": "gru_gradient_norm"},
            "yields no figure 'gru_gradient_norm'",
        ),
        (CASE, {"at": {}}, "the figure needs at = { T = 1..200 }; found {}"),
        (CASE, {"at": {"T": 1000}}, "the figure needs at = { T = 1..200 }"),
        (CASE, {"printed": "(1, 2)"}, "a replayed figure is one number; found '(1, 2)'"),
        (with_settings("reach", bias=1), {}, "has no setting 'bias'"),
        (with_settings("reach", hidden=100), {}, "hidden is a whole number from 0 to 64"),
        (with_settings("reach", forget_bias=2), {}, "rnn has no forget gate"),
    ],
)
def test_what_cannot_run_says_why(case: Case, changes: dict[str, Any], message: str) -> None:
    expect = replace(next(e for e in FIGURES if e.printed == "9.51e-02"), **changes)
    with pytest.raises(DeriveError) as caught:
        replay_result(case, expect, 0)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{CASE.path}:{expect.file_line}")


# what cannot be repeated


def test_an_unrecorded_run_is_undecided_with_its_reason() -> None:
    assert len(OPEN) == 17
    for expect in OPEN:
        result = replay_result(CASE, expect, 0)
        assert result.verdict.name == "undecided"
        assert "the excerpt leaves out the seed" in result.verdict.reason
        assert result.ok
        assert [p.certified for p in result.printed] == [False]
        # left out of what is expected, it is not fine any more
        assert not replay_result(CASE, replace(expect, expected="holds"), 0).ok


def test_an_unknown_recipe_names_the_nearest() -> None:
    with pytest.raises(DeriveError, match="unknown recipe 'torch-gradient-rech'"):
        recipes.find("RECIPES", "torch-gradient-rech")
