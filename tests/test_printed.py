"""Printed digits: reading them, certifying them, and every changed digit caught."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb, fmpq

from derive.case_decimals import Value
from derive.case_load import load_text
from derive.checks.printed import judge
from derive.checks.printed_case import (
    evidence_of,
    printed_results,
    verdict_of,
)
from derive.checks.printed_text import parse
from derive.errors import DeriveError

READ = [
    ("0.039853", (), ["0.039853"]),
    ("10", (), ["10"]),
    ("ten", (), ["10"]),
    ("-0.1", (), ["-0.1"]),
    ("\u22120.1", (), ["-0.1"]),
    (".5", (), ["0.5"]),
    ("3.19e-12", (), ["3.19e-12"]),
    (r"3.19\times10^{-12}", (), ["3.19e-12"]),
    (r"$3.19 \times 10^{-12}$", (), ["3.19e-12"]),
    ("3.19×10^-12", (), ["3.19e-12"]),
    (r"\approx 1.5", (), ["1.5"]),
    ("12,345.5", (), ["12345.5"]),
    ("65M", (), ["65e6"]),
    (r"12.5\%", (), ["0.125"]),
    ("(-0.1509, 0.0143)", (2,), ["-0.1509", "0.0143"]),
    (r"\left(1.0,\,-0.5\right)", (2,), ["1.0", "-0.5"]),
    ("(2,)", (1,), ["2"]),
    ("[[1, 2], [3, 4], [5, 6]]", (3, 2), list("123456")),
    (r"\begin{bmatrix}0.3&-0.2\\0.1&0.4\end{bmatrix}", (2, 2), ["0.3", "-0.2", "0.1", "0.4"]),
    (r"\begin{array}{cc}1 & 2\end{array}", (1, 2), ["1", "2"]),
    (r"2\times3", (2,), ["2", "3"]),
    ("1.907e-06", (), ["1.907e-6"]),
    ("5.6e14", (), ["5.6e14"]),
    (r"5.6\times10^{14}", (), ["5.6e14"]),
    (r"2{,}112", (), ["2112"]),
    ("8,448", (), ["8448"]),
    ("±0.18", (), ["0.18"]),
    (r"\pm0.18", (), ["0.18"]),
    ("about 100×", (), ["100"]),
    (r"\times0.6", (), ["0.6"]),
    ("near 0.5", (), ["0.5"]),
    ("10^{-36}", (), ["1e-36"]),
    ("half", (), ["0.5"]),
]


@pytest.mark.parametrize(("text", "shape", "numbers"), READ)
def test_reading(text: str, shape: tuple[int, ...], numbers: list[str]) -> None:
    display = parse(text)
    assert display.shape == shape
    assert [s.value for s in display.scalars] == [Fraction(n) for n in numbers]


@pytest.mark.parametrize(
    ("text", "unit", "decimals", "significant"),
    [
        ("0.0140", Fraction(1, 10**4), 4, 3),
        ("10", Fraction(1), 0, 2),
        ("3.19e-12", Fraction(1, 10**14), 14, 3),
        ("0.0000", Fraction(1, 10**4), 4, 0),
        ("65M", Fraction(10**6), 0, 2),
        ("1.50e3", Fraction(10), 0, 3),
        ("12.5%", Fraction(1, 1000), 3, 3),
    ],
)
def test_what_the_digits_show(text: str, unit: Fraction, decimals: int, significant: int) -> None:
    (shown,) = parse(text).scalars
    assert (shown.unit, shown.decimals, shown.significant) == (unit, decimals, significant)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a printed number; found ''"),
        ("abc", "found 'abc'"),
        ("(1, x)", "found 'x'"),
        ("(1, 2", "is not closed"),
        ("(1, (2, 3))", "printed rows must be alike"),
        (r"\begin{bmatrix}1&2\\3\end{bmatrix}", "printed rows must be alike"),
        ("1.2.3", "found '1.2.3'"),
        ("1e9999", "a printed exponent goes to 400"),
        ("1" * 61, "may have 60 digits"),
        ("1" * 5000, "may have 4000 characters"),
        ("(" * 50 + "1" + ")" * 50, "expected a printed number"),
    ],
)
def test_what_is_no_number_is_an_error(text: str, message: str) -> None:
    with pytest.raises(DeriveError) as caught:
        parse(text)
    assert message in str(caught.value)


def cos_of_a_hundredth(bits: int) -> arb:
    return arb(fmpq(1, 100)).cos()


def third(bits: int) -> fmpq:
    return fmpq(1, 3)


def on_the_edge(bits: int) -> arb:
    """A value that no precision separates from the tie 0.00005."""
    return arb(fmpq(5, 10**5)) + arb(0, 1) * arb(2) ** -(bits + 10)


JUDGED: list[tuple[str, Value, str, str]] = [
    ("0.3333", third, "certified", ""),
    ("0.33333333", third, "certified", ""),
    ("0.3334", third, "wrong", "the correct rounding is 0.3333"),
    ("0.33", third, "certified", ""),
    ("1.0000", cos_of_a_hundredth, "certified", ""),
    ("0.9999", cos_of_a_hundredth, "wrong",
     "truncated, not rounded: the correct rounding is 1.0000"),
    ("0.125", lambda _: fmpq(1, 8), "certified", ""),
    ("0.12", lambda _: fmpq(1, 8), "certified", "an exact tie: both neighbours are correct"),
    ("0.13", lambda _: fmpq(1, 8), "certified", "an exact tie: both neighbours are correct"),
    ("0.1", lambda _: fmpq(1, 8), "certified", ""),
    ("0.2", lambda _: fmpq(1, 8), "wrong", "the correct rounding is 0.1"),
    ("0.14", lambda _: fmpq(1, 8), "wrong", "the correct rounding is 0.13"),
    ("65M", lambda _: 65_800_000, "wrong", "truncated, not rounded: the correct rounding is 66M"),
    ("66M", lambda _: 65_800_000, "certified", ""),
    ("12.3%", lambda _: fmpq(1239, 10000), "wrong",
     "truncated, not rounded: the correct rounding is 12.4%"),
    ("3.19e-12", lambda _: Fraction("3.194e-12"), "certified", ""),
    ("3.18e-12", lambda _: Fraction("3.194e-12"), "wrong", "the correct rounding is 3.19e-12"),
    ("-0.00", lambda _: fmpq(-1, 1000), "certified", ""),
    ("0.00", lambda _: fmpq(-1, 1000), "certified", ""),
    ("-0.00", lambda _: fmpq(1, 1000), "wrong", "the value is positive: no minus sign"),
    ("0.0001", on_the_edge, "undecided", "undecided: a boundary lies inside the enclosure"),
    ("0.0002", on_the_edge, "wrong", "the correct rounding is 0.000"),
    ("0.1", lambda _: arb("nan"), "undecided", "undecided: no finite enclosure at 512 bits"),
    ("about 0.3", third, "undecided", "undecided: 'about' needs an interval"),
    ("near 0.3", third, "undecided", "undecided: 'near' needs an interval"),
    ("10^{-1}", third, "undecided", "undecided: '10^{-1}' needs an interval"),
    ("half", third, "wrong", "the correct rounding is 0.33"),
    ("half", lambda _: fmpq(1, 2), "certified", ""),
    ("1.776e-15", lambda _: fmpq(1, 2**49), "certified", ""),
    ("1.777e-15", lambda _: fmpq(1, 2**49), "wrong", "the correct rounding is 1.776e-15"),
    ("±0.33", third, "certified", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value", "status", "note"), JUDGED)
def test_judging(text: str, value: Value, status: str, note: str) -> None:
    (shown,) = parse(text).scalars
    judged = judge(shown, value)
    assert judged.status == status
    assert judged.row.certified == (status == "certified")
    assert judged.row.note.startswith(note)
    assert bool(judged.row.note) == bool(note)


def test_the_exact_value_stands_beside_the_printed_one() -> None:
    shown = parse("(0.99995, 3.2e-12, 10)").scalars
    values: list[Value] = [cos_of_a_hundredth, lambda _: Fraction("3.194e-12"), lambda _: 10]
    exact = [judge(s, v).row.exact for s, v in zip(shown, values, strict=True)]
    assert exact == ["0.99995000042", "3.1940000e-12", "10"]


def test_words_are_held_to_the_interval_of_the_case() -> None:
    (shown,) = parse("about 0.3").scalars
    inside = judge(shown, third, interval=(Fraction(3, 10), Fraction(4, 10)))
    outside = judge(shown, third, interval=(Fraction(3, 10), Fraction(33, 100)))
    assert (inside.status, outside.status) == ("certified", "wrong")
    assert "outside the stated interval" in outside.row.note


@pytest.mark.parametrize("interval", [("0.2", "0.5"), ("0.31", "0.4"), ("0.1", "0.4")])
def test_an_interval_is_one_about_the_number_that_stands_there(interval: tuple[str, str]) -> None:
    (shown,) = parse("about 0.3").scalars
    judged = judge(shown, third, interval=(Fraction(interval[0]), Fraction(interval[1])))
    assert judged.status == "wrong"
    assert judged.row.note == "the stated interval is not one about 0.3"


@pytest.mark.parametrize(
    ("text", "value", "status"),
    [("65M", 65_500_000, "certified"), ("66M", 65_500_000, "wrong"), ("64M", 65_500_000, "wrong"),
     ("-0.3", Fraction(-39, 100), "certified"), ("-0.4", Fraction(-39, 100), "wrong")],
)  # fmt: skip
def test_truncated_figures_pass_where_the_case_says_so(
    text: str, value: int | Fraction, status: str
) -> None:
    (shown,) = parse(text).scalars
    assert judge(shown, lambda _: value, mode="truncated").status == status


def test_an_unknown_rounding_is_an_error() -> None:
    with pytest.raises(DeriveError, match="rounding is rounded or truncated"):
        judge(parse("1").scalars[0], third, mode="up")


CHAIN = """\
[case]
id = "chain"
[system.attention]
sizes = ["S", "E"]
tensors = { a = ["S"], V = ["S", "E"] }
equations = ["p[s] = softmax(s, a[s])", "o[e] = sum(s, p[s]*V[s,e])"]
losses = { total = "sum(e, o[e])" }
[group.g]
system = "attention"
loss = "total"
a = [1, 2, 0.3]
V = [[2, 0], [0, 3], [1, 1]]
[[expect]]
group = "g"
quantity = "p"
printed = "(0.2373, 0.6449, 0.1178)"
[[expect]]
group = "g"
quantity = "o"
printed = "(0.5923, 2.0526)"
"""


def test_a_chain_is_judged_by_the_full_precision_value_unless_it_says_otherwise() -> None:
    exact = printed_results(load_text(CHAIN))
    # from the printed operands: 2*0.2373 + 0.1178 = 0.5924, 3*0.6449 + 0.1178 = 2.0525
    rounded = CHAIN.replace("(0.5923, 2.0526)", "(0.5924, 2.0525)")
    red = printed_results(load_text(rounded))
    operands = 'from = "printed operands"\noperands = { p = "(0.2373, 0.6449, 0.1178)" }\n'
    green = printed_results(load_text(rounded + operands))
    assert [[r.verdict.name for r in results] for results in (exact, red, green)] == [
        ["certified", "certified"], ["certified", "refuted"], ["certified", "certified"]
    ]  # fmt: skip
    assert {row.exact for row in green[1].printed} == {"0.5924000000", "2.0525000000"}


def test_operands_may_be_adjoints() -> None:
    text = CHAIN.split("[[expect]]")[0] + (
        '[[expect]]\ngroup = "g"\nquantity = "2*g_o"\nprinted = "(1.0, 3.0)"\n'
        'from = "printed operands"\noperands = { g_o = "(0.5, 1.5)" }\n'
    )
    assert printed_results(load_text(text))[0].verdict.name == "certified"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(0.5923, 2.0526)", "(0.5923, 2.0526, 1)", "has shape [3]; o with at = {} has shape [2]"),
        ("(0.5923, 2.0526)", "(0.5923, x)", "found 'x'"),
        ('"o"', '"shape(q)"', "unknown tensor"),
        ('"o"', '"o[e"', "chain.toml:17: expected"),
        ("(0.5923, 2.0526)\"", "1\"\nfrom = 'printed operands'\noperands = { p = '(1, 2)' }",
         "operand p has 3 entries; '(1, 2)' has 2"),
        ("(0.5923, 2.0526)\"",
         "(1, 2)\"\nfrom = 'printed operands'\noperands = { '2*p' = '(1, 2, 3)' }",
         "a printed operand is an entry"),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_names_the_entry(old: str, new: str, message: str) -> None:
    head, entry = CHAIN.rsplit("[[expect]]", 1)
    case = load_text(head + "[[expect]]" + entry.replace(old, new), "chain.toml")
    with pytest.raises(DeriveError) as caught:
        printed_results(case)
    assert message in str(caught.value)
    assert str(caught.value).startswith("chain.toml:17: ")


def test_nothing_printed_is_never_certified() -> None:
    assert verdict_of(()).name == "undecided"
    assert not evidence_of((), 0.0).passed


def test_an_undecided_number_leaves_the_verdict_open() -> None:
    judged = [judge(parse("0.3333").scalars[0], third), judge(parse("about 1").scalars[0], third)]
    verdict = verdict_of(judged)
    assert verdict.name == "undecided"
    assert "needs an interval" in verdict.reason
