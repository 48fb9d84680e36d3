"""The helper process: its value, its errors, its death."""

import os

import pytest

from derive.errors import DeriveError
from derive.parallel import Later


def fail():
    raise DeriveError("no such size", hint="write T=3")


@pytest.mark.parametrize("forked", (True, False))
def test_the_value_comes_back(forked):
    assert Later(lambda: {"a": (1, 2)}, forked).result() == {"a": (1, 2)}


@pytest.mark.parametrize("forked", (True, False))
def test_an_error_is_raised_with_its_message(forked):
    with pytest.raises(DeriveError, match=r"no such size\n  hint: write T=3"):
        Later(fail, forked).result()


def test_a_helper_that_dies_is_replaced_by_this_process():
    here = os.getpid()

    def compute():
        if os.getpid() != here:
            os._exit(3)
        return "computed here"

    assert Later(compute, True).result() == "computed here"


def test_the_work_is_done_elsewhere():
    assert Later(os.getpid, True).result() != os.getpid()
