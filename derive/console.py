"""Where output goes: terminal, pipe or file, with what each of them can show."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from derive.errors import DeriveError

if TYPE_CHECKING:
    from derive.checks.experiments import Outcome
    from derive.report import Report, View

SYMBOLS = "∂ΣₜᵀⱼΠ⊙≤✗"
QUICK = 1.0  # seconds before a progress bar appears


def write(text: str) -> None:
    """Print text, with escapes where the output cannot hold a character."""
    encoding = sys.stdout.encoding or "ascii"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.write("" if text.endswith("\n") else "\n")
    sys.stdout.flush()


def holds_unicode(stream: TextIO) -> bool:
    """Tell whether a stream can show the mathematics of a report."""
    try:
        SYMBOLS.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def wants_color(stream: TextIO) -> bool:
    """Tell whether to colour: on a terminal, unless NO_COLOR is set; FORCE_COLOR asks for it."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def view_of(stream: TextIO, quiet: bool) -> View:
    """Return how a report looks on a stream."""
    from derive.report import View

    return View(
        width=shutil.get_terminal_size().columns,
        color=wants_color(stream),
        unicode=holds_unicode(stream),
        quiet=quiet,
    )


def emit(report: Report, form: str, output: Path | None, quiet: bool) -> None:
    """Print a report, or write it to a file and its last line to stderr."""
    from derive.report import View, render

    if output is None:
        form = form or ("rich" if sys.stdout.isatty() else "text")
        write(render(report, form, view_of(sys.stdout, quiet)))
        return
    save(output, render(report, form or "text", View(quiet=quiet)))
    if not quiet:
        short = render(report, "text", View(quiet=True, unicode=holds_unicode(sys.stderr)))
        sys.stderr.write(short.rstrip("\n").rpartition("\n")[2] + "\n")


def emit_card(topic: str) -> None:
    """Print the conventions of a topic.

    Raises:
        DeriveError: If none are kept for it.
    """
    from derive.conventions import card
    from derive.report._conventions import as_rich, as_text

    view, found = view_of(sys.stdout, False), card(topic)
    write(as_rich(found, view) if sys.stdout.isatty() else as_text(found, view))


def emit_run(outcome: Outcome, form: str, output: Path | None) -> None:
    """Print what an experiment found, or write it to a file and its last line to stderr."""
    from derive.report import View
    from derive.report._run import render_run

    if output is None:
        form = form or ("rich" if sys.stdout.isatty() else "text")
        write(render_run(outcome, form, view_of(sys.stdout, False)))
        return
    save(output, render_run(outcome, form or "text"))
    short = render_run(outcome, "text", View(unicode=holds_unicode(sys.stderr)))
    sys.stderr.write(short.rstrip("\n").rpartition("\n")[2] + "\n")


def check_writable(path: Path | None) -> None:
    """Refuse an output that could not be written, before the work is done.

    Raises:
        DeriveError: If it is a folder or its folder does not exist.
    """
    if path is None:
        return
    if path.is_dir():
        raise DeriveError(f"--output {path} is a folder", hint="give the name of a file in it")
    if not path.absolute().parent.is_dir():
        raise DeriveError(f"--output {path}: there is no folder {path.parent}")


def save(path: Path, content: str | bytes) -> None:
    """Write a whole file or nothing.

    Raises:
        DeriveError: If it cannot be written; an old file then stays as it was.
    """
    target = path.resolve()  # a link stays a link
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)  # a device or a pipe cannot be renamed over
        else:
            replace_file(target, data)
    except OSError as error:
        raise DeriveError(f"cannot write {path}: {error.strerror}") from None


def replace_file(target: Path, data: bytes) -> None:
    """Write beside the target, then put the new file in its place."""
    made = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        made.write_bytes(data)
        if target.exists():
            shutil.copymode(target, made)
        made.replace(target)
    finally:
        made.unlink(missing_ok=True)


class Progress:
    """A bar on stderr for what takes longer than a second on a terminal."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.bar: Any = None
        self.task: Any = None

    def __enter__(self) -> Progress:
        """Start counting the first second."""
        self.started = time.monotonic()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Take the bar away."""
        if self.bar is not None:
            self.bar.stop()

    def __call__(self, done: int, total: int, label: str) -> None:
        """Show how far the work is."""
        if self.bar is None and (
            time.monotonic() - self.started < QUICK or not sys.stderr.isatty()
        ):
            return
        if self.bar is None:
            self.open(total)
        self.bar.update(self.task, completed=done, total=total, description=label)

    def open(self, total: int) -> None:
        """Make the bar."""
        from rich.console import Console
        from rich.progress import Progress as Bar

        self.bar = Bar(console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task("", total=total)
        self.bar.start()
