"""A state's own equation is opened where an induction unfolds it, and nowhere else."""

import pytest

from derive import prove as module
from derive.building import build_system
from derive.prove import prove
from derive.refute import refute
from derive.statement import read_statement

SYSTEM = build_system(
    "unit", ("T",), {"x": ("T",), "w": ()}, ("h[t] = tanh(w*h[t-1] + x[t])",), parameters=()
)
STILL = ("x[k] = 0", "h[-1] = 0")


def attempt(text, assumes, using=()):
    module._proofs.clear()
    return prove(read_statement(SYSTEM, text), assumes,
                 tuple(read_statement(SYSTEM, u) for u in using))  # fmt: skip


def test_a_state_without_inputs_stays_zero():
    assert attempt("h[t] = 0", STILL).kind == "induction"
    assert attempt("dh[t]/dh[t-1] = w", STILL, ("h[t] = 0",)).proved


@pytest.mark.parametrize(
    ("text", "assumes"),
    (
        ("h[t] = 0", ("x[k] = 0",)),
        ("h[t] = 0", ("h[-1] = 0",)),
        ("h[t] = 1", STILL),
        ("h[t] = tanh(w*h[t-1])", ("h[-1] = 0",)),
        ("h[t-1] = 0", ("x[k] = 0",)),
    ),
)
def test_what_an_input_or_a_first_state_moves_is_not_zero(text, assumes):
    assert not attempt(text, assumes).proved
    assumed = tuple(read_statement(SYSTEM, a) for a in assumes)
    assert refute(read_statement(SYSTEM, text), assumed) is not None
