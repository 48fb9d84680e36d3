"""The helper process: its value, its errors, its death."""

import os
import signal
import time

import pytest

from derive.errors import DeriveError
from derive.parallel import Later, interruptible


@pytest.fixture(autouse=True)
def deaf():
    """Ignore the helper's signal outside the blocks that expect it."""
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGUSR1, before)


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


def test_a_failure_cuts_the_other_work_short():
    start = time.perf_counter()
    with interruptible():
        later = Later(fail, True)
        time.sleep(30)
    assert time.perf_counter() - start < 20
    with pytest.raises(DeriveError, match="no such size"):
        later.result()


def test_without_a_failure_nothing_is_cut_short():
    with interruptible():
        later = Later(lambda: 7, True)
        assert later.result() == 7
