"""Reports: what a reader sees, what a program reads, and that nothing that failed looks fine."""

import json
from dataclasses import replace

import jsonschema
import pytest

from derive.claim import (
    EVIDENCE_KINDS,
    Claim,
    Counterexample,
    Evidence,
    Printed,
    Result,
    Source,
    Verdict,
    Worst,
)
from derive.codes import CODES
from derive.errors import DeriveError
from derive.parse import parse_statement
from derive.printing import to_latex, to_unicode
from derive.report import Report, View, formats, render, versions
from derive.report.json import document, schema

KNOWN = {"L", "W_h", "h", "z", "b_h"}
RIGHT = "dL/dW_h = sum(t, g_z[t].T @ h[t-1])"
WRONG = "dL/dW_h = sum(t, g_z[t].T @ h[t])"
POINT = Counterexample({"T": 1, "H": 1}, {"j": 0}, "0.21", "0", {"x": [["1"]]})
SLIDE = Source("week06.toml", 337, None, "Shared weights")
PROOF = Evidence("proof", "normal form", 3, None, None, "all sizes", 0.001, True)


def compared(kind: str, error: float = 5.6e-17, passed: bool = True, **more: object) -> Evidence:
    return Evidence(kind, "torch.nn.RNN", 12, error, 4e-14, "T=3", 0.01, passed, **more)  # type: ignore[arg-type]


def digits(good: int, bad: int = 0) -> tuple[Printed, ...]:
    fine = [Printed("Ledger", "0.1403", "0.14027", True, f"h[1,{i}]", 190) for i in range(good)]
    return (*fine, *[Printed("Ledger", "0.1404", "0.14027", False, "h[1,0]", 190)] * bad)


def certificate(printed: tuple[Printed, ...]) -> Evidence:
    fine = all(p.certified for p in printed)
    return Evidence("printed", "ball arithmetic", len(printed), None, None, "", 0.0, fine)


def result(
    statement: str, verdict: str = "proved", expected: str = "holds", **more: object
) -> Result:
    node = parse_statement(statement, KNOWN.__contains__)
    reason = "no reason yet" if expected == "undecided" else ""
    claim = Claim("bptt.x", "bptt", statement, "In words", expected=expected, reason=reason,  # type: ignore[arg-type]
                  source=SLIDE)  # fmt: skip
    scope = {"proved": "all sizes"}.get(verdict, "")
    point = POINT if verdict == "refuted" else None
    made = Result(claim, Verdict(verdict, scope, counterexample=point),  # type: ignore[arg-type]
                  (PROOF, compared("module"), compared("complex_step", 1.1e-16)),
                  latex=to_latex(node), unicode=to_unicode(node))  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


PROVED = result(
    RIGHT, printed=digits(4), evidence=(PROOF, compared("module"), certificate(digits(4)))
)
REFUTED = result(WRONG, "refuted", evidence=(), suggestion=f"did you mean  {RIGHT}  ?")
FALSE = result(WRONG, "refuted", "fails", evidence=())
OPEN = replace(
    result("dL/db_h = sum(t, g_z[t])", "undecided", evidence=()),
    verdict=Verdict("undecided", "", reason="a product over t is left"),
)
NUMBERS = result("h[1] = h[1]", "certified", evidence=(certificate(digits(2)),), printed=digits(2))
MISPRINT = replace(
    result("h[1] = h[1]", evidence=(certificate(digits(1, 1)),), printed=digits(1, 1)),
    verdict=Verdict("refuted", "T=3"),
)
DISAGREES = result(
    RIGHT, evidence=(PROOF, compared("autograd", 1e-9, False, worst=Worst((0, 1), 0.25, 0.125)))
)
UNDECIDED = replace(
    result("accuracy = accuracy", "undecided", "undecided", evidence=()), printed=digits(0, 2)
)
KNOWN_WRONG = replace(
    result("h[1] = h[1]", expected="fails", evidence=(certificate(digits(0, 1)),)),
    printed=digits(0, 1), verdict=Verdict("refuted", "T=3"),
)  # fmt: skip
EVERY = (PROVED, REFUTED, FALSE, OPEN, NUMBERS, MISPRINT, DISAGREES)


def report(*results: Result) -> Report:
    return Report(results, versions(), 2.13, "bptt", "case week06 (T=3 D=2 H=2)")


STATUS = (
    ((PROVED, NUMBERS), 0, 0),
    ((FALSE,), 0, 0),
    ((OPEN,), 0, 1),
    ((REFUTED,), 1, 1),
    ((MISPRINT,), 1, 1),
    ((DISAGREES,), 1, 1),
    ((result(WRONG, "proved", "fails"),), 1, 1),
    ((result(RIGHT, "proved", "undecided"),), 1, 1),
    ((result(RIGHT, "undecided", "undecided"),), 0, 0),
    ((replace(OPEN, evidence=(compared("module", 1.0, False),)),), 1, 1),
    ((replace(OPEN, printed=digits(0, 1), evidence=(certificate(digits(0, 1)),)),), 0, 1),
    ((result(RIGHT, evidence=(replace(PROOF, count=0),)),), 1, 1),
    ((result(RIGHT, evidence=(compared("module", float("nan")),)),), 1, 1),
    ((UNDECIDED,), 0, 0),
    ((KNOWN_WRONG,), 0, 0),
    ((replace(UNDECIDED, claim=OPEN.claim),), 0, 1),
    ((), 2, 2),
)


@pytest.mark.parametrize(("results", "status", "strict"), STATUS)
def test_exit_status(results: tuple[Result, ...], status: int, strict: int) -> None:
    assert report(*results).exit_status() == status
    assert report(*results).exit_status(strict=True) == strict


def test_counts_add_up() -> None:
    s = report(*EVERY).summary
    assert s.claims == 5
    assert (s.proved_all_sizes, s.refuted, s.refuted_as_expected, s.undecided) == (2, 2, 1, 1)
    assert (s.certified_numbers, s.numbers, s.ok) == (7, 8, False)
    assert report(PROVED, FALSE, NUMBERS).summary.ok


def test_numbers_recorded_as_open_or_wrong_are_not_counted_as_certified_or_not() -> None:
    s = report(NUMBERS, UNDECIDED, KNOWN_WRONG).summary
    assert (s.certified_numbers, s.numbers, s.ok) == (2, 2, True)
    assert (s.undecided, s.undecided_as_expected, s.wrong_as_expected) == (1, 1, 1)
    assert "2 of 2, 2 undecided, 1 wrong" in shown("text", NUMBERS, UNDECIDED, KNOWN_WRONG)


# the text and the terminal


def shown(form: str, *results: Result, **view: object) -> str:
    return render(report(*results), form, View(**view))  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["text", "rich"])
@pytest.mark.parametrize("width", [80, 160])
def test_what_is_wrong_comes_first_and_in_full(form: str, width: int) -> None:
    text = shown(form, *EVERY, width=width)
    order = ("derive check bptt", "✗ ∂L/∂W_h = Σₜ (gᶻₜ)ᵀ hₜ\n",
             "refuted at T=1 H=1, j=0: claimed 0.21, derived 0",
             f"did you mean  {RIGHT}  ?", 'slide "Shared weights", line 337',
             'h[1,0]: printed 0.1404, exact 0.14027  slide "Ledger", line 190',
             "autograd (torch.nn.RNN): error 1.0e-09, allowed 4.0e-14", "got 0.25",
             "? ∂L/∂b_h", "undecided: a product over t is left", "claim  ", "5.6e-17",
             "false, as stated", "printed on the slide", "2 of 2", "5 claims: ")  # fmt: skip
    places = [text.index(part) for part in order]
    assert places == sorted(places)


LAST = (
    ((PROVED, FALSE, NUMBERS), "2 claims: 1 proved for all sizes, 0 confirmed, 1 refuted (1 as "
     "expected) · 6 printed numbers certified · 0 undecided · 2.1 s"),
    (EVERY, "5 claims: 2 proved for all sizes, 0 confirmed, 2 refuted (1 as expected) · 7 of 8 "
     "printed numbers certified · 1 undecided · 2.1 s"),
    ((NUMBERS, UNDECIDED, KNOWN_WRONG), "0 claims: 0 proved for all sizes, 0 confirmed, 0 refuted "
     "· 2 printed numbers certified, 1 wrong as expected · 1 undecided (1 as expected) · 2.1 s"),
)  # fmt: skip


@pytest.mark.parametrize(("results", "last"), LAST)
@pytest.mark.parametrize("quiet", [True, False])
def test_the_last_line_always_counts(results: tuple[Result, ...], last: str, quiet: bool) -> None:
    assert shown("text", *results, quiet=quiet).splitlines()[-1] == last
    assert shown("rich", *results, quiet=quiet, width=200).splitlines()[-1] == last


PLACES = (
    (
        Source("week06.toml", 337, None, "Shared weights"),
        'bptt.x  slide "Shared weights", line 337',
    ),
    (Source("mine.toml", 24), "bptt.x  mine.toml:24"),
    (None, "bptt.x"),
)


@pytest.mark.parametrize(("source", "line"), PLACES)
def test_a_wrong_claim_says_where_it_stands(source: Source | None, line: str) -> None:
    text = shown("text", replace(REFUTED, claim=replace(REFUTED.claim, source=source)))
    assert f"    {line}\n" in text


def test_expected_falsehood_is_not_shown_as_an_error() -> None:
    assert "✗" not in shown("text", PROVED, FALSE)
    assert "✗" in shown("text", PROVED, REFUTED)


def test_quiet_shows_only_what_is_wrong() -> None:
    text = shown("text", *EVERY, quiet=True)
    assert "? ∂L/∂b_h" not in text and "false, as stated" not in text
    assert "refuted at T=1" in text


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160])
def test_rich_keeps_to_the_width_and_loses_nothing(width: int) -> None:
    lines = shown("rich", *EVERY, width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert any("4 of 4" in line for line in lines)


def test_text_has_one_line_a_claim_whatever_the_width() -> None:
    rows = [line for line in shown("text", PROVED, FALSE, width=20).splitlines() if "Σₜ" in line]
    assert len(rows) == 2
    assert shown("text", PROVED, width=20) == shown("text", PROVED, width=300)


def test_color_only_where_asked_for() -> None:
    assert "\x1b[" in shown("rich", *EVERY, color=True)
    assert "\x1b[" not in shown("rich", *EVERY) + shown("text", *EVERY, color=True)


@pytest.mark.parametrize("form", ["text", "rich", "json"])
def test_ascii_output_is_ascii(form: str) -> None:
    text = shown(form, *EVERY, unicode=False)
    assert text.isascii()
    assert RIGHT in text


def test_a_star_marks_evidence_that_is_not_independent() -> None:
    shared = compared("autograd", independent=False)
    text = shown("text", result(RIGHT, evidence=(PROOF, compared("module"), shared)))
    assert "5.6e-17*" in text and "* shares code with what it checks" in text
    assert "*" not in shown("text", result(RIGHT)).replace(".T @", "")


def test_markup_in_texts_is_shown_as_it_is() -> None:
    odd = replace(PROVED, unicode="[red]x[/red] = 1")
    assert "[red]x[/red] = 1" in shown("rich", odd, color=True)


# JSON


def test_json_is_valid_by_the_shipped_schema() -> None:
    checker = jsonschema.Draft202012Validator(schema())
    checker.check_schema(schema())
    text = render(report(*EVERY), "json")
    assert list(checker.iter_errors(json.loads(text))) == []
    assert json.loads(text)["summary"]["claims"] == 5


SABOTAGE = (
    ("results", 0, "verdict", "true"),
    ("results", 0, "expected", "maybe"),
    ("results", 0, "evidence", []),
    ("summary", "undecided", -1),
    ("schema", "derive-report/2"),
)


@pytest.mark.parametrize("path", SABOTAGE)
def test_the_schema_refuses_other_documents(path: tuple[object, ...]) -> None:
    made = json.loads(json.dumps(document(report(PROVED))))
    *steps, last, value = path
    inner = made
    for step in steps:
        inner = inner[step]
    inner[last] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(made, schema())


def test_json_has_no_nan() -> None:
    broken = compared("module", float("nan"), False, worst=Worst((0,), float("inf"), 1.0))
    text = render(report(result(RIGHT, evidence=(broken,))), "json")
    found = json.loads(text, parse_constant=pytest.fail)["results"][0]["evidence"][0]
    assert (found["max_error"], found["worst"]["got"], found["passed"]) == (None, None, False)


def test_json_carries_what_the_text_says() -> None:
    found = document(report(REFUTED))["results"][0]
    assert found["statement"].startswith(r"\frac{\partial \mathcal{L}}{\partial W_{h}}")
    assert found["counterexample"]["claimed"] == "0.21"
    assert found["suggestion"] == f"did you mean  {RIGHT}  ?"
    assert found["source"]["line"] == 337


def test_formats_are_the_modules_of_the_folder() -> None:
    assert formats() == ("json", "rich", "text")
    with pytest.raises(DeriveError, match=r"unknown format 'jsn'[\s\S]*did you mean 'json'"):
        render(report(PROVED), "jsn")


def test_every_verdict_and_kind_of_evidence_is_explained() -> None:
    assert {*EVIDENCE_KINDS, "proved", "confirmed", "certified", "refuted", "undecided"} <= {*CODES}
