"""Exact values of quantities: against plain Python, against autograd, and their bounds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq

from derive.case_decimals import at_precision, decimal_text, enclose, rounded
from derive.case_load import find_case, load_text
from derive.case_values import Values
from derive.checks.replay import arrays
from derive.checks.replay_bptt import autograd
from derive.errors import DeriveError

MICRO = Values(find_case("innopolis-week06").group("microscope"))
HEAD = Values(find_case("innopolis-week06").group("microscope-ce"))


def floats(values: Values, text: str, **at: int) -> list[float]:
    quantity = values.quantity(text, at)
    found = []
    for index in values.indices(quantity):
        bounds = enclose(values.at(quantity, index, 128))
        assert bounds is not None
        assert bounds.high - bounds.low < Fraction(1, 10**30)
        found.append(float(bounds.middle))
    return found


@pytest.mark.parametrize(
    ("values", "loss", "name"),
    [(MICRO, "final", n) for n in ("W_x", "W_h", "b_h")]
    + [(HEAD, "per_position", n) for n in ("W_x", "W_h", "b_h", "W_o", "b_o")],
)
def test_gradients_agree_with_autograd(values: Values, loss: str, name: str) -> None:
    want = autograd(arrays(values.group), loss)[name].ravel()
    got = floats(values, f"dL/d{name}")
    # both are right to a few ulp of numbers below one: 1e-15
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-15)


CASES = [
    ("1/2 - 1/3", {}, [1 / 6]),
    ("x", {"t": 1}, [0.2, 0.8]),
    ("x[t,k]", {"k": 0}, [1.0, 0.2, -0.4]),
    ("h[-1]", {}, [0.0, 0.0]),
    ("W_h.T", {}, [0.5, -0.2, 0.1, 0.3]),
    ("W_h", {"h": 1}, [-0.2, 0.3]),
    ("T*D", {}, [6.0]),
    ("sum(t, x[t,k])", {}, [0.8, 0.6]),
    ("tanh(b_h)", {}, [math.tanh(0.05), math.tanh(-0.1)]),
    ("g_z[3]", {}, [0.0, 0.0]),
    ("prod(k=1..0, diag(1 - h[k]^2) @ W_h)", {}, [1.0, 0.0, 0.0, 1.0]),
    ("partial z[2,j]/partial h[1,r]", {}, [0.5, 0.1, -0.2, 0.3]),
]


@pytest.mark.parametrize(("text", "at", "want"), CASES)
def test_expressions(text: str, at: dict[str, int], want: list[float]) -> None:
    np.testing.assert_allclose(floats(MICRO, text, **at), want, rtol=0, atol=1e-16)


def test_rational_values_stay_rational() -> None:
    quantity = MICRO.quantity("z", {"t": 0})
    assert MICRO.at(quantity, (0,), 64) == fmpq(9, 20)


LABELS = [
    ("h", {"t": 1}, (0,), "h[1,0]"),
    ("h[-1]", {}, (1,), "h[-1,1]"),
    ("1 - h^2", {"t": 1}, (0,), "(1 - h^2)[1,0]"),
    ("dL/dW_h", {}, (0, 1), "dL/dW_h[0,1]"),
    ("sum(k, x[t,k])", {"t": 2}, (), "sum(k, x[t,k]) at t=2"),
    ("L", {}, (), "L"),
]


@pytest.mark.parametrize(("text", "at", "index", "label"), LABELS)
def test_labels(text: str, at: dict[str, int], index: tuple[int, ...], label: str) -> None:
    assert MICRO.quantity(text, at).label(index) == label


REFUSED = [
    ("q", {}, "unknown name"),
    ("x", {"s": 1}, "neither a free index nor an axis"),
    ("p", {"t": 0}, "size C is unknown in group microscope"),
    ("count(W_o)", {}, "size C is unknown in group microscope"),
    ("x", {"t": 3}, "outside"),
    ("1/h[-1,r]", {}, "division by zero"),
    ("dL/dy", {"q": 1}, "neither"),
]


@pytest.mark.parametrize(("text", "at", "message"), REFUSED)
def test_what_has_no_value_is_an_error(text: str, at: dict[str, int], message: str) -> None:
    with pytest.raises(DeriveError, match=message):
        floats(MICRO, text, **at)


def linear(length: int) -> str:
    entries = ", ".join("0.01" for _ in range(length))
    return f"""\
[case]
id = "long"
[system.linear]
sizes = ["T"]
tensors = {{ x = ["T"], w = [] }}
equations = ["h[t] = tanh(w*h[t-1] + x[t])"]
losses = {{ final = "h[T-1]" }}
[group.g]
system = "linear"
loss = "final"
w = 0.5
h_init = 0.25
x = [{entries}]
"""


def test_a_long_sequence_does_not_recurse() -> None:
    values = Values(load_text(linear(600)).group("g"))
    h = 0.25
    for _ in range(600):
        h = math.tanh(0.5 * h + 0.01)
    assert floats(values, "L") == pytest.approx([h], abs=1e-15)
    assert 0 < floats(values, "dL/dh[-1]")[0] < 1e-100


def test_too_much_work_is_refused_before_it_starts() -> None:
    values = Values(load_text(linear(200)).group("g"))
    with pytest.raises(DeriveError, match="more than 2000000 operations"):
        values.quantity("sum(t, sum(s, sum(u, x[t]*x[s]*x[u])))", {})
    deep = linear(200).replace("tanh(w*h[t-1] + x[t])", "w*h[t-1] + sum(s, sum(u, x[s]*x[u]))")
    with pytest.raises(DeriveError, match="give a smaller example"):
        Values(load_text(deep).group("g"))


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [(Fraction(1, 3), 4, "0.3333"), (Fraction(-1, 20000), 4, "-0.0001"), (Fraction(5, 2), 0, "3"),
     (Fraction(-1, 10**9), 4, "0.0000"), (Fraction(0), 2, "0.00"), (Fraction(12), 1, "12.0")],
)  # fmt: skip
def test_decimals(value: Fraction, decimals: int, text: str) -> None:
    assert decimal_text(value, decimals) == text
    assert rounded(lambda _: value, decimals) == text


def test_the_precision_of_the_library_is_restored() -> None:
    from flint import ctx

    before = ctx.prec
    assert at_precision(lambda bits: ctx.prec, 200) == enclose(200)
    assert ctx.prec == before


UNSEEN = """\
[case]
id = "c"
[system.power]
sizes = ["T"]
positions = ["T"]
tensors = { x = [] }
equations = ["y = x^T"]
[group.g]
system = "power"
x = "0.5"
"""


def test_a_size_that_only_an_equation_reads_must_be_known() -> None:
    with pytest.raises(DeriveError, match="y: size T is unknown in group g"):
        Values(load_text(UNSEEN).group("g")).quantity("y", {})
    known = Values(load_text(UNSEEN + "sizes = { T = 3 }\n").group("g"))
    assert floats(known, "y") == [0.125]
