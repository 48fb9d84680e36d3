"""A comparison passes only if something was compared, nothing is NaN, and all of it is close."""

import numpy as np
import pytest

from derive.checks.compare import ULPS, compare, relative, rounding

ONE = np.array([1.0, 2.0])
ROWS = [
    ("equal", ONE, ONE, 2.0, None, True, 0.0),
    ("one ulp", ONE, ONE * (1 + 2e-16), 2.0, None, True, 2e-16),
    ("a relative error of 1e-9", ONE, ONE * (1 + 1e-9), 2.0, None, False, 1e-9),
    ("the large entries hide no small scale", ONE, ONE + 1e-9, 2.0, None, False, 5e-10),
    ("NaN in ours", np.array([np.nan, 2.0]), ONE, 2.0, None, False, np.inf),
    ("NaN in theirs", ONE, np.array([1.0, np.nan]), 2.0, None, False, np.inf),
    ("NaN in both", np.array([np.nan]), np.array([np.nan]), 2.0, None, False, np.inf),
    ("infinity", np.array([np.inf]), np.array([np.inf]), 2.0, None, False, np.inf),
    ("NaN as scale", ONE, ONE + 1e-20, np.nan, None, True, 0.0),
    ("a difference without a scale", np.array([0.0]), np.array([1e-300]), 0.0, None, False, np.inf),
    ("nothing", np.zeros(0), np.zeros(0), 1.0, None, False, None),
    ("nothing under the conditions", ONE, ONE, 1.0, [False, False], False, None),
    ("only where it speaks", ONE, np.array([1.0, 9.0]), 1.0, [True, False], True, 0.0),
]


@pytest.mark.parametrize(
    ("name", "got", "want", "scale", "where", "passed", "error"), ROWS, ids=[r[0] for r in ROWS]
)
def test_what_passes(name, got, want, scale, where, passed, error):
    mask = None if where is None else np.array(where)
    found = compare("autograd", "torch", got, want, scale, rounding("float64"), "T=2", 0.0,
                    where=mask)  # fmt: skip
    assert found.passed is passed
    assert found.max_error == (None if error is None else pytest.approx(error, rel=0.2))
    assert found.count == (got.size if where is None else sum(where))
    if error:
        place = found.worst.index
        assert (found.worst.got, found.worst.want) == pytest.approx(
            (got[place], want[place]), nan_ok=True
        )


def test_rounding_is_far_below_what_must_be_caught():
    assert rounding("float64") == pytest.approx(1.1e-13, rel=0.02)
    assert rounding("float32") == ULPS * np.finfo(np.float32).eps


@pytest.mark.parametrize(
    ("gap", "scale", "want"),
    [(0.0, 0.0, 0.0), (1.0, 4.0, 0.25), (1.0, 0.0, np.inf), (1.0, np.inf, np.inf),
     (np.inf, 1.0, np.inf), (1.0, np.nan, np.inf)],
)  # fmt: skip
def test_relative(gap, scale, want):
    assert relative(gap, scale) == want
