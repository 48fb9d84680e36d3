"""The one error that reaches users: what is wrong, where, what was expected, the way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DeriveError(Exception):
    """Bad input, said once and completely.

    Args:
        message: What was found and what was expected.
        text: The source text the message is about, if any.
        at: Character offset in ``text`` where it goes wrong.
        hint: The way out.
    """

    def __init__(self, message: str, *, text: str = "", at: int | None = None, hint: str = ""):
        self.message, self.text, self.at, self.hint = message, text, at, hint
        super().__init__(self.render())

    def render(self) -> str:
        """Return the message with a caret under the place and the hint below it."""
        lines = [self.message]
        if self.text and self.at is not None:
            start = self.text.rfind("\n", 0, self.at) + 1
            line = self.text[start:].split("\n", 1)[0]
            left = max(0, self.at - start - 50)
            lines += ["  " + line[left : left + 76], "  " + " " * (self.at - start - left) + "^"]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``did you mean ...?`` for the known name closest to ``name``, or the known names."""
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"known: {shown}" if names else ""


class UndefinedError(DeriveError):
    """A value that does not exist: a division by what is zero everywhere."""
