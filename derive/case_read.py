"""Reading untrusted TOML: exact numbers, known keys only, bounded, errors with file and line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

from derive.errors import DeriveError, nearest

MAX_BYTES = 1 << 20
MAX_ENTRIES = 5000
MAX_DEPTH = 12
MAX_SCALARS = 100_000
MAX_DIGITS = 60
MAX_EXPONENT = 400
MAX_TEXT = 4000

Path = tuple[str | int, ...]
HEADER = re.compile(r"^\s*(\[\[?)\s*([^\]\n]+?)\s*\]")
KEY = re.compile(r"""^\s*(?:"([^"\n]*)"|'([^'\n]*)'|([\w.-]+))\s*=""")
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?")


@dataclass(frozen=True)
class Document:
    """A TOML text and where its entries stand."""

    file: str
    text: str

    @cached_property
    def data(self) -> dict[str, Any]:
        """The parsed document, its floats as `Decimal`.

        Raises:
            DeriveError: If it is no TOML, too large or too deep.
        """
        if len(self.text.encode("utf-8", "replace")) > MAX_BYTES:
            raise DeriveError(f"{self.file}: a case file may have {MAX_BYTES} bytes; it has more")
        try:
            data = tomllib.loads(self.text, parse_float=Decimal)
        except (ValueError, RecursionError, ArithmeticError) as error:
            raise self.broken(error) from None
        check_depth(data, self.file)
        return data

    def broken(self, error: Exception) -> DeriveError:
        """Return the error for a text that is no TOML."""
        if isinstance(error, RecursionError):
            return DeriveError(f"{self.file}: arrays or tables nested deeper than {MAX_DEPTH}")
        said = re.search(r"\(at line (\d+), column \d+\)", str(error))
        line = int(said[1]) if said else None
        reason = re.sub(r"\s*\(at .*\)$", "", str(error))
        return self.error_at(
            line,
            f"not a TOML file: {reason}",
            "a text stands in quotes, and each key in its table once",
        )

    @cached_property
    def places(self) -> dict[Path, int]:
        """The line of every table header and key; texts of many lines may mislead it."""
        found: dict[Path, int] = {}
        counts: dict[str, int] = {}
        table: Path = ()
        for number, line in enumerate(self.text.split("\n"), 1):
            if header := HEADER.match(line):
                name = header[2]
                parts = tuple(p.strip().strip("\"'") for p in name.split("."))
                table = (*parts, counts.setdefault(name, 0)) if header[1] == "[[" else parts
                counts[name] = counts.get(name, 0) + 1
                found.setdefault(table, number)
            elif key := KEY.match(line):
                found.setdefault((*table, key[1] or key[2] or key[3] or ""), number)
        return found

    def line(self, path: Path) -> int | None:
        """Return the line of an entry, or of the nearest one above it."""
        for end in range(len(path), 0, -1):
            if path[:end] in self.places:
                return self.places[path[:end]]
        return None

    def error(self, path: Path, message: str, hint: str = "") -> DeriveError:
        """Return an error at an entry."""
        return self.error_at(self.line(path), message, hint)

    def error_at(self, line: int | None, message: str, hint: str = "") -> DeriveError:
        """Return an error that starts with file:line and shows the line."""
        if line is None:
            return DeriveError(f"{self.file}: {message}", hint=hint)
        lines = self.text.split("\n")[: line - 1]
        start = sum(len(row) + 1 for row in lines)
        body = self.text[start:].split("\n", 1)[0]
        at = start + len(body) - len(body.lstrip())
        return DeriveError(f"{self.file}:{line}: {message}", text=self.text, at=at, hint=hint)


def check_depth(value: object, file: str, depth: int = 0) -> None:
    """Refuse nesting that later recursion could not bear."""
    if depth > MAX_DEPTH:
        raise DeriveError(f"{file}: arrays or tables nested deeper than {MAX_DEPTH}")
    children: Iterable[object] = ()
    if isinstance(value, dict):
        children = value.values()
    elif isinstance(value, list):
        children = value
    for child in children:
        check_depth(child, file, depth + 1)


@dataclass(frozen=True)
class Entry:
    """One value of a document, with its path."""

    document: Document
    path: Path
    value: Any

    def error(self, message: str, hint: str = "") -> DeriveError:
        """Return an error at this entry; the message begins with the name of its key."""
        name = ".".join(str(p) for p in self.path if isinstance(p, str))
        return self.document.error(self.path, f"{name}: {message}", hint)

    def wrong(self, expected: str) -> DeriveError:
        """Return the error for a value of another type."""
        return self.error(f"expected {expected}; found {shown(self.value)}")

    def child(self, key: str | int) -> Entry:
        """Return the entry below."""
        return Entry(self.document, (*self.path, key), self.value[key])

    def table(self) -> dict[str, Entry]:
        """Read a table."""
        if not isinstance(self.value, dict):
            raise self.wrong("a table")
        self.bounded(len(self.value))
        return {key: self.child(key) for key in self.value}

    def array(self) -> list[Entry]:
        """Read an array."""
        if not isinstance(self.value, list):
            raise self.wrong("an array")
        self.bounded(len(self.value))
        return [self.child(i) for i in range(len(self.value))]

    def bounded(self, count: int) -> None:
        """Refuse more entries than any case needs."""
        if count > MAX_ENTRIES:
            raise self.error(f"at most {MAX_ENTRIES} entries; found {count}")

    def string(self) -> str:
        """Read a text."""
        if not isinstance(self.value, str):
            raise self.wrong("a text in quotes")
        if len(self.value) > MAX_TEXT:
            raise self.error(f"a text may have {MAX_TEXT} characters; this has {len(self.value)}")
        return self.value

    def strings(self) -> tuple[str, ...]:
        """Read an array of texts."""
        return tuple(entry.string() for entry in self.array())

    def integer(self) -> int:
        """Read an integer (a position or a line number)."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.wrong("an integer")
        if abs(self.value) > 10**9:
            raise self.error("an integer below a billion is expected here")
        return self.value

    def integers(self) -> tuple[int, ...]:
        """Read an integer or an array of integers."""
        entries = self.array() if isinstance(self.value, list) else [self]
        return tuple(entry.integer() for entry in entries)

    def string_map(self) -> dict[str, str]:
        """Read a table of texts."""
        return {key: entry.string() for key, entry in self.table().items()}

    def integer_map(self) -> dict[str, int]:
        """Read a table of integers."""
        return {key: entry.integer() for key, entry in self.table().items()}

    def number(self) -> Fraction:
        """Read an exact number: an integer, a decimal, or either in quotes (``"1/3"`` too)."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
            raise self.wrong("a number")
        number = exact(value)
        if number is None:
            raise self.wrong(f"a number of at most {MAX_DIGITS} digits")
        return number

    def numbers(self) -> tuple[Fraction, ...]:
        """Read an array of exact numbers."""
        return tuple(entry.number() for entry in self.array())


def exact(value: int | Decimal | str) -> Fraction | None:
    """Return a number exactly, None if it is none, or has too many digits or a huge exponent."""
    if isinstance(value, int):
        return Fraction(value) if value.bit_length() <= 4 * MAX_DIGITS else None
    if isinstance(value, Decimal):
        return decimal(value)
    if len(value) > 3 * MAX_DIGITS:
        return None
    parts = [p.strip() for p in value.replace("\u2212", "-").split("/")]
    if len(parts) > 2 or not all(NUMBER.fullmatch(p) for p in parts):
        return None
    above, *below = (decimal(Decimal(p)) for p in parts)
    if above is None or (below and not below[0]):
        return None
    return above / below[0] if below and below[0] else above


def decimal(value: Decimal) -> Fraction | None:
    """Return a decimal exactly, None if not finite or out of bounds."""
    if not value.is_finite() or len(value.as_tuple().digits) > MAX_DIGITS:
        return None
    if value and abs(value.adjusted()) > MAX_EXPONENT:
        return None
    return Fraction(value) if value else Fraction(0)


def shown(value: object) -> str:
    """Return a value for a message, cut short."""
    kinds = {dict: "a table", list: "an array", bool: "a truth value"}
    if type(value) in kinds:
        return kinds[type(value)]
    text = str(value)
    return repr(text if len(text) <= 40 else text[:40] + "...")


@dataclass(frozen=True)
class Key:
    """One key that a table may have.

    Args:
        read: Reads its entry.
        required: Whether it must be there.
        allowed: The only values, if there are few.
    """

    read: Callable[[Entry], Any]
    required: bool = False
    allowed: tuple[str, ...] = ()


def read_table(entry: Entry, keys: Mapping[str, Key], also: Iterable[str] = ()) -> dict[str, Any]:
    """Read the known keys of a table.

    Args:
        entry: The table.
        keys: Its keys; what is absent is absent from the result.
        also: Names that the caller reads itself.

    Raises:
        DeriveError: On an unknown key (with the nearest known one), a missing one, a wrong value.
    """
    table, others = entry.table(), set(also)
    for name in table:
        if name not in keys and name not in others:
            raise table[name].error("unknown key", nearest(name, [*keys, *others]))
    values = {}
    for name, key in keys.items():
        if name in table:
            values[name] = key.read(table[name])
        elif key.required:
            raise entry.error(f"the key {name!r} is missing")
        if key.allowed and values.get(name, key.allowed[0]) not in key.allowed:
            expected = ", ".join(key.allowed)
            raise table[name].error(f"expected one of {expected}; found {shown(values[name])}")
    return values
