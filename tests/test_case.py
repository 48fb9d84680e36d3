"""Loading cases: exact numbers, sizes, cross-references, errors that say what and where."""

from __future__ import annotations

import random
from fractions import Fraction
from importlib import resources
from pathlib import Path

import pytest

from derive.case_load import case_ids, find_case, load_text
from derive.case_read import MAX_BYTES, Document, exact
from derive.errors import DeriveError

GROUP = """\
[group.g]
topic = "bptt"
loss = "per_position"
W_x = [[0.3, -0.2], [0.1, 0.4]]
W_h = [["0.5", "1/10"], [-0.2, 0.3]]
b_h = [0.05, -0.10]
h_init = [0, 0]
x = [[1.0, -0.5], [0.2, 0.8]]
W_o = [[0.4, -0.2], [-0.3, 0.5], [0.1, 0.2]]
b_o = [0.02, -0.04, 0.01]
Y = [2, 0]
"""
EXPECT = """\
[[expect]]
group = "g"
quantity = "z"
at = { t = 0 }
printed = "(0.4500, -0.2000)"
line = 3
"""
CLAIM = """\
[[claim]]
group = "g"
statement = "g_h[T-1] = g_a[T-1] @ W_o"
line = 4
where = "a slide"
"""
MINE = '[case]\nid = "mine"\n' + GROUP + EXPECT + CLAIM


def test_a_case_holds_exact_numbers_and_inferred_sizes() -> None:
    case = load_text(MINE)
    group = case.group("g")
    assert dict(group.sizes) == {"T": 2, "D": 2, "H": 2, "C": 3}
    assert group.givens["W_h"] == (
        (Fraction(1, 2), Fraction(1, 10)),
        (Fraction(-1, 5), Fraction(3, 10)),
    )
    assert group.givens["Y"] == ((0, 0, 1), (1, 0, 0))
    assert group.system.loss == "per_position"
    assert case.expects[0].printed == "(0.4500, -0.2000)"
    assert (case.expects[0].line, case.expects[0].file_line) == (3, 14)
    made = case.claims[0]
    assert (made.claim.id, made.claim.topic, made.claim.loss) == (
        "mine.line-4",
        "bptt",
        "per_position",
    )
    assert made.claim.source is not None
    assert (made.claim.source.line, made.claim.source.title) == (4, "a slide")


def test_claims_of_one_line_have_different_ids() -> None:
    ids = [c.claim.id for c in load_text(MINE + CLAIM).claims]
    assert ids == ["mine.line-4", "mine.line-4-2"]


@pytest.mark.parametrize("name", ["h_init", '"h_{-1}"', "h_-1"])
def test_the_initial_state_has_three_spellings(name: str) -> None:
    case = load_text(MINE.replace("h_init", name))
    assert case.group("g").givens["h_init"] == (0, 0)


SYSTEM = """\
[case]
id = "own"
[system.mine]
sizes = ["T", "D", "H"]
tensors = { x = ["T", "D"], W = ["H", "D"], y = ["H"] }
equations = ["z[t,j] = sum(k, W[j,k]*x[t,k])", "h[t,j] = tanh(z[t,j]) + h[t-1,j]"]
initial = { h = "zeros" }
losses = { final = "1/2*sum(j, (h[T-1,j]-y[j])^2)" }
[group.g]
system = "mine"
loss = "final"
x = [[1, 2]]
W = [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]
y = [0, 0, 0]
[[claim]]
system = "mine"
statement = "z[t,j] = sum(k, W[j,k]*x[t,k])"
"""


def test_a_file_may_bring_its_own_system_with_a_zero_initial_state() -> None:
    case = load_text(SYSTEM)
    group = case.group("g")
    assert group.givens["h_init"] == (0, 0, 0)
    assert group.topic == "mine"
    assert case.claims[0].system is case.systems["mine"]
    assert case.claims[0].claim.id == "own.claim-1"


def test_an_initial_value_two_positions_early_has_two_rows() -> None:
    text = SYSTEM.replace("h[t-1,j]", "h[t-2,j]").replace('initial = { h = "zeros" }', "")
    two = text.replace("y = [0", "h_init = [[1, 2, 3], [4, 5, 6]]\ny = [0")
    assert load_text(two).group("g").givens["h_init"] == ((1, 2, 3), (4, 5, 6))
    with pytest.raises(DeriveError, match="expected 2 rows, the earliest position first; found 1"):
        load_text(text.replace("y = [0", "h_init = [[1, 2, 3]]\ny = [0"))


# what is replaced, by what, and what the message says
ERRORS = [
    ("b_h = [0.05, -0.10]", "b_h = [0.05, -0.10, 0]", "mine.toml:8: group.g.b_h: b_h has H = 3,"),
    ("b_h = [0.05, -0.10]", "b_h = [0.05, -0.10, 0]", "but W_x has H = 2"),
    ("W_h =", "W_hh =", "did you mean 'W_h'?"),
    ("quantity", "quantty", "mine.toml:16: expect.quantty: unknown key"),
    ("[[expect]]", "[[expct]]", "did you mean 'expect'?"),
    ('group = "g"', 'group = "gg"', "no group 'gg' in this file"),
    ('"per_position"', '"per-position"', "did you mean 'per_position'?"),
    ('"bptt"', '"bpt"', "did you mean 'bptt'?"),
    ('topic = "bptt"', 'topic = "bptt"\nsystem = "rn"', "did you mean 'rnn'?"),
    ('topic = "bptt"\n', "", "say whose equations"),
    ("b_o = [0.02, -0.04, 0.01]\n", "", "loss per_position needs b_o; found no value for it"),
    ('printed = "(0.4500, -0.2000)"', "printed = 0.45", "'0.50' and '0.5' differ"),
    ("-0.2], [0.1, 0.4", "-0.2], [0.1", "row 0 is [2], row 1 is [1]"),
    ("0.05,", '"a",', "expected a number"),
    ("0.05,", '"0x1",', "expected a number"),
    ("0.05,", '"1/0",', "expected a number"),
    ("0.05,", "true,", "expected a number"),
    ("0.05,", "nan,", "expected a number"),
    ("0.05,", "1e999,", "expected a number"),
    ("0.05,", "1" * 5000 + ",", "mine.toml"),
    ("0.05,", "zero,", "mine.toml:8: not a TOML file"),
    ("0.05,", "[" * 3000, "mine.toml"),
    ("[0, 0]", "[[0, 0]]", "expected (H); found 2 axes of sizes [1, 2]"),
    ("[0, 0]", "[]", "an empty array"),
    ("Y = [2, 0]", "Y = [3, 0]", "a class id of Y is from 0 to 2; found 3"),
    ("Y = [2, 0]", "Y = [2, 0, 1]", "Y has T = 3, but x has T = 2"),
    ("b_h", "z = 1\nb_h", "z has an equation; it cannot be given"),
    ("h_init", 'h_-1 = [0, 0]\nh_init', "h_init is given twice"),
    ("Y = [2, 0]", "Y = [2, 0]\nsizes = { Q = 2 }", "unknown size"),
    ("Y = [2, 0]", "Y = [2, 0]\nsizes = { H = 5 }", "but the table of sizes has H = 5"),
    ("Y = [2, 0]", "Y = [2, 0]\nsizes = { C = 100000000 }", "size C is from 1 to"),
    ("Y = [2, 0]", "Y = [2, 0]\nlines = { q = 3 }", "not given in this group"),
    ("line = 3", 'line = "3"', "expected an integer; found '3'"),
    ("line = 3", "replay = 'r'", "no replay 'r' in this file"),
    ("line = 3", "from = 'printed operands'", "go together"),
    ("line = 3", "from = 'printed'", "expected one of exact, printed operands"),
    ("line = 3", "interval = [1, 0]", "the lower one first"),
    ("line = 3", "rounding = 'up'", "expected one of rounded, truncated"),
    ("line = 4", "expected = 'no'", "expected one of holds, fails, undecided"),
    ("line = 4", "expected = 'undecided'", "needs a reason"),
    ('id = "mine"', 'id = "mine"\nconvention = "column"', "rnn of bptt in the row convention"),
    ('id = "mine"', "", "the key 'id' is missing"),
    ('[case]\nid = "mine"\n', "", "no table [case]"),
    ('where = "a slide"', "[[skip]]\nreason = 'x'", "a skip names its line or lines"),
    ('where = "a slide"', "[[skip]]\nline = 1\nreason = ' '", "and the reason"),
    ("[[claim]]", "[claim]", "claim: expected an array; found a table"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), ERRORS)
def test_bad_input_says_what_and_where(old: str, new: str, message: str) -> None:
    text = MINE.replace(old, new, 1)
    assert text != MINE
    with pytest.raises(DeriveError) as caught:
        load_text(text, "mine.toml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("mine.toml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('W[j,k]*x[t,k])",', 'W[j,k]*x[t,q])",', "'q' is neither a known name"),
        ("zeros", "ones", "is 'zeros' or 'given'"),
        ('sizes = ["T", "D", "H"]', 'sizes = ["T", "D"]', "unknown size 'H'"),
        ("equations =", "equation =", "did you mean 'equations'?"),
    ],
)
def test_errors_in_a_system_name_its_line(old: str, new: str, message: str) -> None:
    with pytest.raises(DeriveError) as caught:
        load_text(SYSTEM.replace(old, new, 1), "own.toml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("own.toml:")


def test_a_large_file_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(DeriveError, match="a case file may have"):
        load_text("#" * (MAX_BYTES + 1))


def test_class_ids_cannot_ask_for_more_memory_than_a_tensor_may_have() -> None:
    rows = ", ".join("0" for _ in range(2000))
    text = f'[case]\nid = "m"\n[group.g]\ntopic = "bptt"\nY = [{rows}]\nsizes = {{ C = 10000 }}\n'
    with pytest.raises(DeriveError, match="a tensor may have 100000 entries; found 20000000"):
        load_text(text)


@pytest.mark.parametrize(
    ("value", "number"),
    [("0.10", Fraction(1, 10)), ("-.5", Fraction(-1, 2)), ("\u22122", Fraction(-2)),
     ("2/6", Fraction(1, 3)), ("1e-3", Fraction(1, 1000)), (7, Fraction(7)),
     ("", None), ("1_0", None), ("1/2/3", None), ("1 2", None), ("e5", None), (10**80, None)],
)  # fmt: skip
def test_numbers_are_exact(value: int | str, number: Fraction | None) -> None:
    assert exact(value) == number


def test_lines_of_arrays_of_tables_are_found() -> None:
    document = Document("f", "[[a]]\nx = 1\n[[a]]\nx = 2\n[b.c]\n'k' = 3\n")
    paths: list[tuple[str | int, ...]] = [("a", 0, "x"), ("a", 1, "x"), ("b", "c", "k"), ("z",)]
    assert [document.line(path) for path in paths] == [2, 4, 6, None]


def test_cases_are_found_by_id_and_by_path(tmp_path: Path) -> None:
    assert {"innopolis-week06", "public-reports"} <= set(case_ids())
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    assert find_case(str(path)).id == "mine"
    assert find_case("innopolis-week06").topics[0] == "bptt"
    with pytest.raises(DeriveError, match="did you mean 'innopolis-week06'"):
        find_case("innopolis-week6")
    with pytest.raises(DeriveError, match="cannot be read"):
        find_case(str(tmp_path / "none.toml"))
    path.write_bytes(b"\xff")
    with pytest.raises(DeriveError, match="not UTF-8"):
        find_case(str(path))


def test_the_part_of_a_case_on_one_topic() -> None:
    case = load_text(MINE)
    assert case.on_topic("bptt").expects == case.expects
    other = case.on_topic("rnn")
    assert (dict(other.groups), other.expects, other.claims) == ({}, (), ())
    with pytest.raises(DeriveError, match="no group 'h'"):
        case.group("h")


OPEN = """\
[replay.run]
recipe = "unrecorded"
reason = "the seed is not printed"
[[expect]]
quantity = "accuracy"
printed = "0.315"
replay = "run"
expected = "undecided"
"""


def test_a_printed_number_may_be_expected_undecided() -> None:
    expect = load_text(MINE + OPEN).expects[-1]
    assert (expect.expected, expect.group) == ("undecided", "")
    assert expect.reason == "the seed is not printed"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'reason = "the seed is not printed"\n',
            "",
            "says in its reason what the lecture leaves out",
        ),
        ('replay = "run"\n', "", "expected = 'undecided' needs a reason"),
        ('"undecided"', '"open"', "expected one of holds, fails, undecided; found 'open'"),
        ('replay = "run"', 'replay = "ran"', "did you mean 'run'?"),
    ],
)
def test_what_is_undecided_says_why(old: str, new: str, message: str) -> None:
    with pytest.raises(DeriveError) as caught:
        load_text(MINE + OPEN.replace(old, new), "mine.toml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("mine.toml:")


PIECES = ["[", "]", "[[", "{", '"', "=", "9e999", "-1", "nan", "\n", "\x00", "(", "1/0", "L", "\\"]


def test_damaged_files_give_an_error_or_a_case_and_never_a_crash() -> None:
    source = resources.files("derive.cases").joinpath("public-reports.toml").read_text("utf-8")
    rng, outcomes = random.Random(5), {True: 0, False: 0}
    for _ in range(300):
        at = rng.randrange(len(source))
        text = source[:at] + rng.choice(PIECES) + source[at + rng.choice((0, 1, 5)) :]
        try:
            outcomes[bool(load_text(text).groups)] += 1
        except DeriveError:
            outcomes[False] += 1
    assert min(outcomes.values()) > 20
