"""Probes: what torch's programs do, confirmed; what they do not, refuted; both shown well."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from typer.testing import CliRunner

from derive import topics
from derive.case_load import case_ids, find_case, load_text
from derive.checking import check
from derive.checks import probes
from derive.checks.probes import Observation
from derive.claim import Claim
from derive.cli import app
from derive.errors import DeriveError
from derive.options import CheckOptions
from derive.report import Report, View, render
from derive.report.json import schema
from derive.topics import Topic

RUN = CliRunner()
FALSE = {
    "attention_mask.causal-ends-at-the-last-source",
    "attention_mask.module-true-takes-part",
    "attention_mask.sdpa-true-is-hidden",
    "clip_grad_norm.has-no-epsilon",
    "clip_grad_norm.returns-norm-after",
    "clip_grad_norm.is-idempotent",
    "clip_grad_value.keeps-direction",
    "clip_grad_value.bounds-the-norm",
    "gelu.forms-are-equal",
    "gru_cell.resets-before-affine-map",
    "gru_cell.update-gate-writes-candidate",
    "lstm_cell.stacks-output-before-candidate",
    "numel.lstm-with-one-bias",
    "pack_padded_sequence.padding-is-harmless",
    "relu.slope-at-zero-of-one",
}
PROGRAMS = sorted({name.split(".")[0] for name in probes.probes()})


@pytest.mark.parametrize("name", probes.probes())
def test_each_probe_observes_what_it_says(name: str) -> None:
    found = probes.evidence(name)
    assert found.kind == "module" and found.count and found.independent
    assert found.passed == (name not in FALSE), found
    assert found.tolerance is not None and found.tolerance <= 1.2e-13
    assert found.detail and found.detail.endswith(".")


@pytest.mark.parametrize("name", [n for n in probes.probes() if n not in FALSE])
def test_a_wrong_expectation_comes_out_refuted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = probes.find(name)

    def planted() -> Observation:
        seen = honest()
        return replace(seen, expected=seen.expected + 1e-9 * seen.scale)

    monkeypatch.setattr(probes, "find", lambda _: planted)
    assert not probes.evidence(name).passed


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_program_has_a_false_sibling(program: str) -> None:
    assert any(name.startswith(f"{program}.") for name in FALSE)


def test_nan_and_nothing_are_no_confirmation(monkeypatch: pytest.MonkeyPatch) -> None:
    for values in ([np.nan], []):
        seen = Observation(np.array(values), np.array(values), "torch", "here")
        monkeypatch.setattr(probes, "find", lambda _, s=seen: lambda: s)
        assert not probes.evidence("numel.rnn").passed


def test_shapes_must_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Observation(np.zeros(2), np.zeros(1), "torch", "here")
    monkeypatch.setattr(probes, "find", lambda _: lambda: seen)
    with pytest.raises(DeriveError, match=r"observed shape \(2,\), expected \(1,\)"):
        probes.evidence("numel.rnn")


def test_unknown_probes_name_the_nearest() -> None:
    with pytest.raises(DeriveError, match=r"unknown probe 'numel\.lstn'") as caught:
        probes.find("numel.lstn")
    assert "did you mean 'numel.lstm'?" in str(caught.value)


def test_every_claim_names_a_known_probe() -> None:
    claims = [c for n in topics.names() for c in topics.load(n).claims]
    claims += [c.claim for i in case_ids() for c in find_case(i).claims]
    assert {c.probe for c in claims if c.probe} <= set(probes.probes())


# as a claim of a topic


def claim(name: str, probe: str, **more: Any) -> Claim:
    return Claim(f"clip.{name}", "clip", "", f"it {name.replace('-', ' ')}", probe=probe, **more)


CLAIMS = (
    claim("returns-the-norm-before", "clip_grad_norm.returns-norm-before"),
    claim("is-idempotent", "clip_grad_norm.is-idempotent", expected="fails", reason="shrinks on"),
    Claim("clip.both", "clip", "h[t] = tanh(z[t])", "With a statement too", system="rnn",
          probe="numel.rnn"),
)  # fmt: skip
HINTED = Claim("clip.hinted", "clip", "h[t] = tanh(z[t]) + 0*h[t-1]", "By hints", system="rnn")
WRONG = claim("returns-the-norm-after", "clip_grad_norm.returns-norm-after")
SAID_FALSE = claim("counts-lie", "numel.lstm", expected="fails", reason="none")


def report_of(monkeypatch: pytest.MonkeyPatch, *claims: Claim) -> Report:
    made = Topic("clip", "Clipping", {"rnn": topics.load("rnn").systems["rnn"]}, claims)
    monkeypatch.setattr(topics, "names", lambda: ["clip"])
    monkeypatch.setattr(topics, "load", lambda name: made)
    return check(["clip"], CheckOptions(case="none"))


def test_verdicts_follow_from_what_is_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = report_of(monkeypatch, *CLAIMS, WRONG, SAID_FALSE)
    names = [(r.verdict.name, r.ok) for r in found.results]
    assert names == [("confirmed", True), ("refuted", True), ("proved", True), ("refuted", False),
                     ("confirmed", False)]  # fmt: skip
    both = [e.against for e in found.results[2].evidence if e.kind == "module"]
    assert both == ["torch.nn.RNN", "torch.nn.RNN"]
    assert found.results[3].verdict.reason.startswith("claimed 1 at [4]")
    assert found.summary.confirmed == 2 and found.exit_status() == 1


def test_a_probe_is_no_lemma() -> None:
    from derive.judging import Judge

    system = topics.load("rnn").systems["rnn"]
    judge = Judge(lambda _: (CLAIMS[0], system))
    assert judge.lemmas(HINTED, system, (CLAIMS[0].id,)) == ()


@pytest.mark.parametrize("width", [80, 160])
def test_a_terminal_shows_the_words_and_the_oracle(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    found = report_of(monkeypatch, *CLAIMS, WRONG)
    shown = render(found, "rich", View(width=width))
    assert max(map(len, shown.splitlines())) <= width
    text = " ".join(shown.split())
    assert "it returns the norm before confirmed" in text
    assert "it is idempotent false, as stated" in text
    assert "✗ it returns the norm after refuted for float64, 3 parameters" in text
    assert "at [4], observed 7806.4" in text and "not every check agrees" not in text


def test_text_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = render(report_of(monkeypatch, *CLAIMS, SAID_FALSE), "text")
    assert "confirmed for (D, H) = " in text and "but it is recorded as false" in text
    assert "2 confirmed, 1 refuted (1 as expected)" in text


def test_json_names_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    document = json.loads(render(report_of(monkeypatch, *CLAIMS, WRONG), "json"))
    jsonschema.validate(document, schema())
    first, second = document["results"][:2]
    assert first["probe"] == "clip_grad_norm.returns-norm-before" and first["statement"] == ""
    assert first["title"] == "it returns the norm before" and first["verdict"] == "confirmed"
    assert first["evidence"][0]["against"] == "torch.nn.utils.clip_grad_norm_"
    assert second["evidence"][0]["kind"] == "counterexample" and second["reason"] == "shrinks on"
    assert "observed" in second["evidence"][0]["detail"]


def test_what_cannot_be_claimed() -> None:
    with pytest.raises(DeriveError, match="a probe without a statement needs a title"):
        Claim("clip.x", "clip", "", "", probe="numel.rnn")
    with pytest.raises(DeriveError, match="a program has no assumptions and uses no claims"):
        claim("x", "numel.rnn", assumes=("h[-1,r] = 0",))


def test_an_unknown_probe_is_located(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeriveError, match=r"clip\.x: unknown probe 'numel\.rn'") as caught:
        report_of(monkeypatch, claim("x", "numel.rn"))
    assert "did you mean 'numel.rnn'?" in str(caught.value)


# in a case, and listed

CASE = """
[case]
id = "mine"
[[claim]]
topic = "rnn"
probe = "clip_grad_norm.returns-zero-before-backward"
title = "Called before backward it returns 0.0"
line = 12
"""


def test_a_case_may_claim_what_a_program_does(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(CASE)
    done = RUN.invoke(app, ["check", str(path), "--jobs", "1"])
    assert done.exit_code == 0 and "Called before backward it returns 0.0  confirmed" in done.stdout


def test_a_claim_says_something() -> None:
    with pytest.raises(DeriveError, match="a claim needs a statement, or a probe with a title"):
        load_text(CASE.replace("probe =", "reason ="), "mine.toml")


def test_probes_are_listed_and_explained() -> None:
    done = RUN.invoke(app, ["list", "probes", "numel"])
    assert done.exit_code == 0 and "numel.gru " in done.stdout and "clip" not in done.stdout
    assert "3(HD + HH + 2H) numbers" in done.stdout
    assert RUN.invoke(app, ["list", "probes", "nume"]).exit_code == 2
    assert "a program of torch's" in RUN.invoke(app, ["explain", "probe"]).stdout


def test_a_probes_claim_can_be_shown_and_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    report_of(monkeypatch, *CLAIMS)
    for command in ("show", "explain"):
        shown = RUN.invoke(app, [command, "clip.is-idempotent"])
        assert shown.exit_code == 0 and "Clipping a second time changes nothing." in shown.stdout
    listed = RUN.invoke(app, ["list", "claims", "clip"]).stdout
    assert "false: probe clip_grad_norm.is-idempotent" in listed
