"""The experiments: their verdicts follow from what is measured, their output is readable."""

import json
from dataclasses import replace
from math import inf, nan, sqrt
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from derive.checks import experiments
from derive.checks.experiments import Expectation, Outcome, clipping, truncation
from derive.cli import app
from derive.errors import DeriveError
from derive.report import View
from derive.report._run import FORMATS, document, render_run, schema

RUN = CliRunner()
SHORT = truncation.Setup(windows=(2, 8), hidden=16, streams=8, updates=300, rate=2e-2)
BRIEF = clipping.Setup(updates=80, batch=16)


def silent(done: int, total: int, label: str) -> None:
    assert 0 <= done < total and label


def outcome(*holds: bool) -> Outcome:
    made = tuple(Expectation(f"expected {n}", 0.5, "at most 1", h) for n, h in enumerate(holds))
    return Outcome("truncation", "A title", 3, "settings", ("run", "loss"),
                   (("a", 0.25), ("b", nan)), made, ("A note.",), 1.5)  # fmt: skip


# the runs


def test_a_short_truncation_run_separates_windows_by_the_lag() -> None:
    found = truncation.run(0, silent, SHORT)
    accuracy = {(row[0], row[1]): row[3] for row in found.rows}
    assert accuracy["LSTM", 8] > 0.6 > SHORT.near > accuracy["LSTM", 2]  # type: ignore[operator]
    assert found.ok, found.expectations


def test_a_short_clipping_run_dies_only_without_clipping() -> None:
    free, clipped = (clipping.run(0, silent, BRIEF).rows)[:2]
    assert free[-1] is not None and clipped[-1] is None
    assert float(str(clipped[-2])) > 10  # raw norms stay large


def test_a_seed_repeats_a_run_to_the_bit_and_leaves_torch_alone() -> None:
    import torch

    torch.manual_seed(5)
    want = torch.rand(1)
    torch.manual_seed(5)
    first, again, other = (clipping.run(s, silent, BRIEF) for s in (0, 0, 1))
    assert torch.equal(torch.rand(1), want)
    assert str(first.rows) == str(again.rows) != str(other.rows)


# the verdicts


def test_bounds_follow_from_the_binomial_error() -> None:
    setup = truncation.Setup()
    assert setup.error(0.25) == pytest.approx(sqrt(0.25 * 0.75 / 100))
    assert [setup.path(w) for w in (2, 4, 8, 16)] == [0, 0, 0.5, 0.75]
    assert setup.near < setup.learned(8) < setup.learned(16) < setup.solved


@pytest.mark.parametrize(
    ("window", "accuracy", "holds"), [(4, 0.3, True), (4, 0.6, False), (8, 0.3, False)]
)
def test_a_window_that_does_otherwise_is_reported(
    window: int, accuracy: float, holds: bool
) -> None:
    setup = truncation.Setup(windows=(window,))
    found = {("LSTM", window): accuracy, ("LSTM, frozen", 4): 0.3, ("random, fixed", 1): 1.0}
    assert next(truncation.expected(found, setup)).holds is holds


def test_an_unclipped_run_that_survives_is_reported() -> None:
    setup = clipping.Setup(updates=4)
    alive = clipping.Trace((60.0, 50.0, 40.0, 40.0), 5.0, 1.0)
    verdicts = [e.holds for e in clipping.expected(alive, alive, setup)]
    assert verdicts == [False, True, True, False, True, True]  # one update a block proves little
    dead = replace(alive, losses=(60.0, inf, nan, nan))
    assert dead.died == 2 and str(dead.medians(2)) == "[nan, nan]"
    assert not clipping.expected(dead, dead, setup)[1].holds


def test_a_clip_that_is_not_applied_is_reported() -> None:
    trace = clipping.Trace((60.0, 40.0, 35.0, 35.0), 700.0, 1.01)
    assert not clipping.expected(trace, trace, clipping.Setup(updates=4))[2].holds


def test_no_expectation_is_not_success() -> None:
    assert not outcome().ok and outcome(True).ok and not outcome(True, False).ok


# finding and showing them


def test_the_folder_is_the_list() -> None:
    assert experiments.names() == ["clipping", "truncation"]
    with pytest.raises(DeriveError, match="unknown experiment 'clippin'") as caught:
        experiments.load("clippin")
    assert "did you mean 'clipping'?" in str(caught.value)
    with pytest.raises(DeriveError, match="known: clipping, truncation"):
        experiments.load("x")


def test_text_shows_each_verdict_and_the_counts() -> None:
    text = render_run(outcome(True, False), "text")
    assert "derive run truncation    seed 3" in text and "A note." in text
    assert "expected 1     0.500  at most 1  ✗ does not" in text
    assert text.endswith("2 expectations: 1 hold, 1 do not · 1.5 s\n")


@pytest.mark.parametrize("width", [80, 160])
def test_a_terminal_is_never_too_narrow(width: int) -> None:
    measured = {("LSTM", 2): 0.3, ("LSTM, frozen", 4): 0.3, ("random, fixed", 1): 1.0}
    found = truncation.expected(measured, truncation.Setup(windows=(2,)))
    made = replace(outcome(), expectations=tuple(found))
    lines = render_run(made, "rich", View(width=width)).splitlines()
    assert max(map(len, lines)) <= width and any("holds" in line for line in lines)


def test_ascii_output_is_ascii() -> None:
    assert render_run(outcome(True, False), "text", View(unicode=False)).isascii()


def test_json_is_one_document_without_nan() -> None:
    made: Any = json.loads(render_run(outcome(True, False), "json"))
    jsonschema.validate(made, schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**made, "ok": None}, schema())
    assert made["schema"] == "derive-run/1" and made["ok"] is False
    assert made["rows"] == [{"run": "a", "loss": 0.25}, {"run": "b", "loss": None}]
    assert made["expectations"][1]["holds"] is False
    assert document(outcome(True))["ok"] is True


class Fake:
    """Stands in for an experiment."""

    def __init__(self, *holds: bool) -> None:
        self.holds = holds

    def run(self, seed: int, progress: Any) -> Outcome:
        return replace(outcome(*self.holds), seed=seed)


@pytest.mark.parametrize(("holds", "status"), [((True,), 0), ((True, False), 1)])
def test_the_exit_status_is_the_verdict(
    monkeypatch: pytest.MonkeyPatch, holds: tuple[bool, ...], status: int
) -> None:
    monkeypatch.setattr(experiments, "load", lambda name: Fake(*holds))
    for form in FORMATS:
        done = RUN.invoke(app, ["run", "x", "--seed", "7", "--format", form])
        assert done.exit_code == status and "7" in done.stdout
    assert RUN.invoke(app, ["run", "x"]).stdout.startswith("derive run truncation    seed 7"[:22])


def test_without_a_name_the_experiments_are_listed() -> None:
    done = RUN.invoke(app, ["run"])
    assert done.exit_code == 0 and [w.split()[0] for w in done.stdout.splitlines()] == [
        "clipping",
        "truncation",
    ]


def test_errors_name_the_way_out() -> None:
    done = RUN.invoke(app, ["run", "truncation", "--format", "jsn"])
    assert done.exit_code == 2 and "unknown format 'jsn'" in done.stderr
    assert "did you mean 'json'?" in done.stderr
    assert RUN.invoke(app, ["run", "nothing"]).exit_code == 2
