"""Printed quantities: arithmetic alone, fixed points, extremes, and what they may not hold."""

from __future__ import annotations

import math

import pytest

from derive.case import numbers_alone
from derive.case_decimals import rounded
from derive.case_load import load_text
from derive.case_values import Values
from derive.checks.printed_case import printed_results
from derive.errors import DeriveError
from derive.statement import read_statement

CASE = """\
[case]
id = "q"
[system.tanh]
sizes = ["T", "H"]
tensors = { x = ["T"], w = [], W = ["H", "H"] }
equations = ["h[t] = tanh(w*h[t-1] + x[t])"]
initial = { h = "zeros" }
[group.g]
system = "tanh"
sizes = { H = 32 }
w = 2
x = ["0.5", "-0.3", "0.2"]
"""


def value(text: str, decimals: int, group: str = "g") -> str:
    values = Values(load_text(CASE).group(group) if group else numbers_alone())
    quantity = values.quantity(text, {})
    assert values.shape(quantity) == ()
    return rounded(lambda bits: values.at(quantity, (), bits), decimals)


ALONE = [
    ("0.5^4", 4, "0.0625"),
    ("2*(1-0.96^2)", 4, "0.1568"),
    ("sigmoid(1)", 6, "0.731059"),
    ("1/sqrt(32)", 6, "0.176777"),
    ("0.16^45*1e36", 3, "1.532"),
    ("log(100)/log(10)", 3, "2.000"),
    ("fixed(h=0.5..1, tanh(2*h))", 6, "0.957504"),
    ("fixed(h=-1..-0.5, tanh(2*h))", 6, "-0.957504"),
    ("2*(1 - fixed(h=0.5..1, tanh(2*h))^2)", 5, "0.16637"),
    ("fixed(x=0..1, cos(x))", 6, "0.739085"),
    ("abs(-3/4)", 2, "0.75"),
    ("max(1/3, 1/4)", 4, "0.3333"),
    ("abs(sigmoid(0) - sigmoid(1))", 4, "0.2311"),
    ("where(1/3 <= 0.33, 5, 7)", 0, "7"),
    ("where(tanh(1) <= 0.77, 5, 7)", 0, "5"),
]


@pytest.mark.parametrize(("text", "decimals", "printed"), ALONE)
def test_arithmetic_needs_no_group(text: str, decimals: int, printed: str) -> None:
    assert value(text, decimals, "") == printed


def states() -> list[float]:
    h, found = 0.0, []
    for x in (0.5, -0.3, 0.2):
        h = math.tanh(2 * h + x)
        found.append(h)
    return found


H = states()
LEVEL = 1.2
for _ in range(200):
    LEVEL = math.tanh(2 * LEVEL) + 0.3
IN_A_GROUP = [
    ("4*H*(H+H)+8*H", 8448),
    ("fixed(h=0.5..1, tanh(w*h))", 0.9575040240772687),
    ("fixed(u=0.5..2, tanh(w*u) - x[1])", LEVEL),
    ("lowest(t, x[t])", -0.3),
    ("highest(t, x[t])", 0.5),
    ("highest(t=1..T-1, x[t])", 0.2),
    ("highest(t, x[t]) - lowest(s, x[s])", 0.8),
    ("highest(t, h[t])", max(H)),
    ("lowest(t, 1 - h[t]^2)", min(1 - h * h for h in H)),
    ("prod(k=0..1, w*(1-h[k]^2))", 4 * (1 - H[0] ** 2) * (1 - H[1] ** 2)),
    ("dh[2]/dh[0]", 4 * (1 - H[1] ** 2) * (1 - H[2] ** 2)),
]


@pytest.mark.parametrize(("text", "number"), IN_A_GROUP)
def test_a_group_lends_its_givens_and_computed_values(text: str, number: float) -> None:
    assert value(text, 12) == f"{number:.12f}"


REFUSED = [
    ("fixed(h=0.5..1, tanh(h/2))", "has no fixed point from 0.5 to 1"),
    ("fixed(h=-1..1, tanh(2*h))", "a unique fixed point from -1 to 1 cannot be shown"),
    ("fixed(h, tanh(2*h))", "fixed takes an unknown with an interval"),
    ("fixed(h=w..1, tanh(2*h))", "an interval goes from a number to a number"),
    ("fixed(h=0.5..1, detach(tanh(2*h)))", "detach has no slope inside of fixed(...)"),
    ("fixed(h=0.5..1, tanh(2*h)*fixed(g=0.5..1, tanh(2*g)))", "fixed has no slope inside of fixed"),
    ("fixed(h=0.5..1, h*highest(t, x[t]))", "highest has no slope inside of fixed(...)"),
    ("fixed(h=0.5..1, where(h <= 1, 0.7, 0.6))", "a function with a jump has no slope"),
    ("highest(x[0])", "highest needs a bound index first"),
    ("highest(t=2..0, x[t])", "the least or greatest of nothing"),
    ("fixd(h=0.5..1, tanh(2*h))", "found '='"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_has_no_value_is_refused(text: str, message: str) -> None:
    with pytest.raises(DeriveError) as caught:
        value(text, 3)
    assert message in str(caught.value)


def test_an_enclosure_stands_in_no_statement() -> None:
    system = load_text(CASE).group("g").system
    with pytest.raises(DeriveError, match=r"fixed\(...\) is a number: it stands in a printed"):
        read_statement(system, "h[t] = fixed(u=0.5..1, tanh(2*u))")


EXPECT = """\
[[expect]]
group = "g"
quantity = "w*(1 - fixed(h=0.5..1, tanh(w*h))^2)"
printed = "0.16"
from = "printed operands"
operands = { "fixed(h=0.5..1, tanh(w*h))" = "0.96" }
"""


def verdicts(text: str) -> list[str]:
    return [r.verdict.name for r in printed_results(load_text(CASE + text, "q.toml"))]


def test_a_fixed_point_may_be_a_printed_operand() -> None:
    exact = "".join(line for line in EXPECT.splitlines(True) if line[:4] not in ("from", "oper"))
    assert verdicts(EXPECT) == ["certified"]
    assert verdicts(EXPECT.replace("0.96", "0.95")) == ["refuted"]
    assert verdicts(exact) == ["refuted"]
    assert verdicts(exact.replace('"0.16"', '"0.17"')) == ["certified"]


def test_an_operand_that_the_quantity_does_not_hold_is_refused() -> None:
    text = EXPECT.replace('= { "fixed(h=0.5..1', '= { "fixed(h=0.4..1')
    with pytest.raises(DeriveError, match="does not stand in w"):
        verdicts(text)
