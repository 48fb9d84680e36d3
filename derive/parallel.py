"""A helper process for the symbolic half of a check, while this one imports torch.

It is forked before anything heavy is imported, computes a picklable value and sends it through a
pipe. Where there is no fork, or one core, the value is computed here instead.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


def can_fork() -> bool:
    """Tell whether a helper process pays: fork, a second core, nothing heavy imported yet."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return hasattr(os, "fork") and (cores or 1) > 1 and "torch" not in sys.modules


class Later(Generic[T]):
    """A value that a helper process is computing.

    Args:
        compute: Makes the value; what it raises is raised by `result`.
        forked: Whether to fork; otherwise `result` computes it.
    """

    def __init__(self, compute: Callable[[], T], forked: bool):
        self.compute, self.pid, self.pipe = compute, 0, -1
        if forked:
            sys.stdout.flush()
            sys.stderr.flush()
            self.pipe, write_end = os.pipe()
            self.pid = os.fork()
            if not self.pid:
                self.work(write_end)
            os.close(write_end)

    def work(self, write_end: int) -> None:
        """Compute in the helper process, send the outcome, leave without cleaning up."""
        status = 1
        with contextlib.suppress(BaseException):
            try:
                outcome = pickle.dumps((True, self.compute()))
            except Exception as error:
                outcome = pickle.dumps((False, error))
            with os.fdopen(write_end, "wb") as stream:
                stream.write(outcome)
            status = 0
        os._exit(status)

    def result(self) -> T:
        """Return the value, waiting for it.

        Raises:
            Exception: What the computation raised.
        """
        if not self.pid:
            return self.compute()
        with os.fdopen(self.pipe, "rb") as stream:
            sent = stream.read()
        os.waitpid(self.pid, 0)
        self.pid = 0
        if not sent:  # the helper died: do it here
            return self.compute()
        good, value = pickle.loads(sent)
        if not good:
            raise value
        return value  # type: ignore[no-any-return]
