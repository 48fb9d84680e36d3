"""A helper process for the symbolic half of a check, while this one imports torch.

It is forked before anything heavy is imported, computes a picklable value and sends it through a
pipe. Where there is no fork, or one core, the value is computed here instead.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class FailedEarlyError(BaseException):
    """The helper has failed: what goes on here meanwhile is no longer needed.

    It is no `Exception`, so that an import that is interrupted does not swallow it.
    """


def give_up(_number: int, _frame: object) -> None:
    """Handle the helper's signal."""
    raise FailedEarlyError


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let a helper that is started inside cut this block short when it fails."""
    before, quiet = signal.signal(signal.SIGUSR1, give_up), sys.unraisablehook

    def again(lost: sys.UnraisableHookArgs) -> None:
        """Raise once more, a little later, what was lost inside a callback, as of an import."""
        if lost.exc_type is FailedEarlyError:
            threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        else:
            quiet(lost)

    sys.unraisablehook = again
    try:
        yield
    except FailedEarlyError:
        pass  # the result raises what the helper raised
    finally:
        sys.unraisablehook = quiet
        signal.signal(signal.SIGUSR1, signal.SIG_IGN if before == signal.SIG_DFL else before)


def can_fork() -> bool:
    """Tell whether a helper process pays: fork, a second core, nothing heavy imported yet."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    alone = threading.current_thread() is threading.main_thread() and threading.active_count() == 1
    return hasattr(os, "fork") and (cores or 1) > 1 and "torch" not in sys.modules and alone


class Later(Generic[T]):
    """A value that a helper process is computing.

    Args:
        compute: Makes the value; what it raises is raised by `result`.
        forked: Whether to fork; otherwise `result` computes it.
    """

    def __init__(self, compute: Callable[[], T], forked: bool):
        self.compute, self.pid, self.pipe, self.parent = compute, 0, -1, os.getpid()
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
                os.kill(self.parent, signal.SIGUSR1)
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
