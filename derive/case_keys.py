"""The keys of every table of a case file: one row a key."""

from __future__ import annotations

from derive.case_read import Entry, Key

text, integer = Key(Entry.string), Key(Entry.integer)
texts = Key(Entry.strings)

CASE = {
    "id": Key(Entry.string, required=True),
    "title": text,
    "convention": Key(Entry.string, allowed=("row", "column")),
    "source": text,
}
TOP = ("case", "group", "expect", "claim", "skip", "coverage", "system", "replay")
GROUP = {
    "topic": text,
    "system": text,
    "loss": text,
    "title": text,
    "sizes": Key(Entry.table),
    "lines": Key(Entry.table),
}
EXPECT = {
    "group": text,
    "quantity": Key(Entry.string, required=True),
    "printed": Key(lambda entry: printed_text(entry), required=True),
    "at": Key(Entry.integer_map),
    "where": text,
    "line": integer,
    "from": Key(Entry.string, allowed=("exact", "printed operands")),
    "operands": Key(Entry.string_map),
    "interval": Key(Entry.numbers),
    "rounding": Key(Entry.string, allowed=("rounded", "truncated")),
    "replay": text,
    "expected": Key(Entry.string, allowed=("holds", "fails", "undecided")),
    "reason": text,
}
CLAIM = {
    "statement": text,
    "probe": text,
    "name": text,
    "group": text,
    "topic": text,
    "system": text,
    "loss": text,
    "expected": Key(Entry.string, allowed=("holds", "fails", "undecided")),
    "assumes": texts,
    "using": texts,
    "reason": text,
    "title": text,
    "where": text,
    "line": integer,
}
SKIP = {
    "line": integer,
    "lines": Key(Entry.integers),
    "reason": Key(Entry.string, required=True),
}
COVERAGE = {"lines": Key(Entry.integers, required=True)}
REPLAY = {"recipe": Key(Entry.string, required=True), "line": integer, "reason": text}
DRAWN = {"replay": Key(Entry.string, required=True), "start": integer}
SYSTEM = {
    "sizes": Key(Entry.strings, required=True),
    "tensors": Key(lambda entry: {n: e.strings() for n, e in entry.table().items()}, required=True),
    "equations": Key(Entry.strings, required=True),
    "losses": Key(Entry.string_map),
    "derived": texts,
    "parameters": texts,
    "targets": texts,
    "onehot": texts,
    "permutations": texts,
    "binary": texts,
    "nonnegative": texts,
    "initial": Key(Entry.string_map),
    "random": Key(lambda entry: {n: e.string_map() for n, e in entry.table().items()}),
    "meanings": Key(Entry.string_map),
    "positions": texts,
    "convention": Key(Entry.string, allowed=("row", "column")),
}


def printed_text(entry: Entry) -> str:
    """Read what is printed: text, since 0.50 and 0.5 are printed differently."""
    if not isinstance(entry.value, str):
        raise entry.error("write the printed digits in quotes: '0.50' and '0.5' differ")
    return entry.string()
