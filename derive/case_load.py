"""Loading a case: every table by its row of keys, cross-references checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from derive import case_keys as keys
from derive import case_tensors as tensors
from derive import topics
from derive.building import build_system
from derive.case import Case, CaseClaim, Expect, Group, Replay
from derive.case_read import MAX_BYTES, Document, Entry, read_table
from derive.case_tables import (
    drawn_given,
    given_lines,
    inventory,
    known,
    listed,
    named,
    replay,
    skip,
    unique,
)
from derive.claim import Claim, Source
from derive.equation import System
from derive.errors import DeriveError, nearest

T = TypeVar("T")
Resolve = Callable[[str, str], System]
"""Topic and system name ("" for the topic's main one) to a system."""


@dataclass
class Loader:
    """The state of loading one document."""

    document: Document
    resolve: Resolve
    convention: str = "row"
    systems: dict[str, System] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    replays: dict[str, Replay] = field(default_factory=dict)

    def load(self) -> Case:
        """Read every table."""
        root = Entry(self.document, (), self.document.data)
        read_table(root, {}, keys.TOP)
        top = root.table()
        if "case" not in top:
            raise DeriveError(f"{self.document.file}: no table [case] with an id",
                              hint='begin with [case] and id = "my-case"')  # fmt: skip
        head = read_table(top["case"], keys.CASE)
        self.convention = head.get("convention", "row")
        for name, entry in named(top, "system"):
            self.systems[name] = self.system(name, entry)
        self.replays = {name: replay(name, entry) for name, entry in named(top, "replay")}
        for name, entry in named(top, "group"):
            self.groups[name] = self.group(name, entry)
        source = head.get("source", "")
        claims = unique(self.claim(e, head["id"], source, n) for n, e in listed(top, "claim"))
        return Case(
            id=head["id"],
            title=head.get("title", head["id"]),
            convention=self.convention,
            groups=self.groups,
            expects=tuple(self.expect(entry) for _, entry in listed(top, "expect")),
            claims=claims,
            skips=tuple(skip(entry) for _, entry in listed(top, "skip")),
            replays=self.replays,
            systems=self.systems,
            inventory=inventory(top),
            path=self.document.file,
            source=source or head["id"],
        )

    def system(self, name: str, entry: Entry) -> System:
        """Build a system of the file."""
        values = read_table(entry, keys.SYSTEM)
        sizes, shapes, equations = (values.pop(k) for k in ("sizes", "tensors", "equations"))
        values.setdefault("convention", self.convention)
        build = partial(build_system, name, sizes, shapes, equations, **values)
        return at_entry(entry, build)

    def find_system(self, entry: Entry, topic: str, system: str) -> tuple[str, System]:
        """Return the topic's name and the system that an entry names."""
        name = system or topic
        if not name:
            raise entry.error("say whose equations: topic = '...' or system = '...'",
                              nearest("", self.systems))  # fmt: skip
        if name in self.systems:
            return name, self.systems[name]
        if not topic:
            raise entry.error(f"no system {system!r} in this file", nearest(system, self.systems))
        found = at_entry(entry, lambda: self.resolve(topic, system))
        if found.convention != self.convention:
            raise entry.error(
                f"the case is in the {self.convention} convention, system {found.name} of {topic} "
                f"in the {found.convention} convention",
                "change it in [case], or name another system of the topic",
            )
        return topic, found

    def group(self, name: str, entry: Entry) -> Group:
        """Read one worked example."""
        table = entry.table()
        tensors_of = {k: e for k, e in table.items() if k not in keys.GROUP}
        values = read_table(entry, keys.GROUP, tensors_of)
        topic, system = self.find_system(entry, values.get("topic", ""), values.get("system", ""))
        loss = values.get("loss", "")
        if loss:
            system = at_entry(table["loss"], lambda: system.with_loss(loss))
        entries = self.tensor_entries(system, tensors_of)
        for size, stated in values.get("sizes", {}).items():
            if size not in system.dims:
                raise stated.error("unknown size", nearest(size, system.dims))
        tables = {n: e for n, e in entries.items() if isinstance(e.value, dict)}
        entries = {n: e for n, e in entries.items() if n not in tables}
        givens, sizes = tensors.read_givens(system, entries, values.get("sizes", {}))
        drawn = {n: drawn_given(system, n, e, sizes, self.replays) for n, e in tables.items()}
        tensors.fill_initial(system, givens, sizes)
        self.check_complete(entry, system, loss, {*givens, *drawn})
        lines = given_lines(values.get("lines", {}), {*givens, *drawn})
        return Group(name, topic, system, loss, givens, sizes, lines, values.get("title", ""),
                     drawn)  # fmt: skip

    def tensor_entries(self, system: System, found: Mapping[str, Entry]) -> dict[str, Entry]:
        """Return the given tensors under their canonical names; refuse unknown ones."""
        known = tensors.given_names(system)
        entries: dict[str, Entry] = {}
        for written, entry in found.items():
            name = tensors.canonical(written)
            if name in entries:
                raise entry.error(f"{name} is given twice")
            if name not in known:
                state = system.tensors.get(written)
                if state is not None and state.role in ("state", "derived", "loss"):
                    raise entry.error(f"{written} has an equation; it cannot be given")
                raise entry.error("unknown tensor or key", nearest(written, [*known, *keys.GROUP]))
            entries[name] = entry
        return entries

    def check_complete(self, entry: Entry, system: System, loss: str,
                       givens: set[str]) -> None:  # fmt: skip
        """Refuse a group that lacks what its loss needs."""
        missing = sorted(tensors.needed(system, ["L"] if loss else []) - givens)
        if missing:
            raise entry.error(f"loss {loss} needs {', '.join(missing)}; found no value for it",
                              f"write {missing[0]} = [...] in this group")  # fmt: skip

    def expect(self, entry: Entry) -> Expect:
        """Read one printed number or array."""
        values = read_table(entry, keys.EXPECT)
        values.setdefault("group", "")
        if values["group"]:
            known(entry, "group", values["group"], self.groups)
        if "replay" in values:
            known(entry, "replay", values["replay"], self.replays)
            values.setdefault("reason", self.replays[values["replay"]].reason)
        if values.get("expected", "holds") != "holds" and not values.get("reason"):
            raise entry.error(f"expected = {values['expected']!r} needs a reason")
        values["origin"] = values.pop("from", "exact")
        if (values["origin"] == "printed operands") != bool(values.get("operands")):
            raise entry.error("from = 'printed operands' and the table of operands go together",
                              'operands = { "h[1]" = "(0.1, 0.2)" }')  # fmt: skip
        interval = values.get("interval")
        if interval is not None and (len(interval) != 2 or interval[0] > interval[1]):
            raise entry.child("interval").error("expected two numbers, the lower one first")
        return Expect(**values, file_line=self.document.line(entry.path))

    def claim(self, entry: Entry, case: str, source: str, number: int) -> CaseClaim:
        """Read one stated formula."""
        values = read_table(entry, keys.CLAIM)
        if not ("statement" in values or "probe" in values):
            raise entry.error("a claim needs a statement, or a probe with a title",
                              'statement = "h[t] = tanh(z[t])"')  # fmt: skip
        group = values.get("group", "")
        topic, system, loss = self.claim_system(entry, values, group)
        line, file_line = values.get("line"), self.document.line(entry.path)
        default = f"line-{line}" if line is not None else f"claim-{number + 1}"
        where = values.get("where", "")
        make = partial(
            Claim,
            id=f"{case}.{values.get('name', default)}",
            topic=topic,
            statement=values.get("statement", ""),
            title=values.get("title", where or values.get("statement", "")),
            system=system.name,
            loss=loss,
            expected=values.get("expected", "holds"),
            assumes=values.get("assumes", ()),
            using=values.get("using", ()),
            reason=values.get("reason", ""),
            source=Source(source or self.document.file, line or file_line, None, where),
            probe=values.get("probe", ""),
        )
        return CaseClaim(at_entry(entry, make), group, system, line, file_line)

    def claim_system(self, entry: Entry, values: Mapping[str, Any],
                     group: str) -> tuple[str, System, str]:  # fmt: skip
        """Return topic, system and loss of a claim: its own, or those of its group."""
        loss = values.get("loss", "")
        if group:
            known(entry, "group", group, self.groups)
        if "topic" in values or "system" in values or not group:
            topic, system = self.find_system(entry, values.get("topic", ""),
                                             values.get("system", ""))  # fmt: skip
        else:
            found = self.groups[group]
            topic, system = found.topic, found.system
        if group and not loss and self.groups[group].loss in system.losses:
            loss = self.groups[group].loss
        if loss and system.loss != loss:
            system = at_entry(entry, lambda: system.with_loss(loss))
        return topic, system, loss


def at_entry(entry: Entry, make: Callable[[], T]) -> T:
    """Call ``make``; an error of its gets the entry's file and line."""
    try:
        return make()
    except DeriveError as error:
        found = entry.error(error.message, error.hint)
        if not error.text:
            raise found from error
        raise DeriveError(found.message, text=error.text, at=error.at, hint=error.hint) from error


def topic_system(topic: str, system: str) -> System:
    """Return a shipped topic's system: the named one, or its first.

    Raises:
        DeriveError: If there is no such topic, or no such system in it.
    """
    found = topics.load(topic)
    if system and system not in found.systems:
        raise DeriveError(f"topic {topic} has no system {system!r}",
                          hint=nearest(system, found.systems))  # fmt: skip
    return found.systems[system] if system else found.default


def load_text(content: str, file: str = "<text>", resolve: Resolve = topic_system) -> Case:
    """Load a case from its text.

    Args:
        content: The TOML text.
        file: Its name in messages.
        resolve: Finds the systems of topics.

    Raises:
        DeriveError: On anything unknown, ill-sized or out of bounds, with file and line.
    """
    return Loader(Document(file, content), resolve).load()


def load_file(path: Path, resolve: Resolve = topic_system) -> Case:
    """Load a case file.

    Raises:
        DeriveError: As `load_text`, or if the file cannot be read as UTF-8.
    """
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
        content = raw.decode("utf-8")
    except OSError as error:
        raise DeriveError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DeriveError(f"{path}: not UTF-8 text at byte {error.start}") from None
    return load_text(content, str(path), resolve)


def case_ids() -> tuple[str, ...]:
    """Return the ids of the shipped cases: the names of their files."""
    folder = resources.files("derive.cases")
    return tuple(sorted(f.name[:-5] for f in folder.iterdir() if f.name.endswith(".toml")))


@lru_cache(maxsize=32)
def shipped_case(name: str) -> Case:
    """Load a shipped case.

    Raises:
        DeriveError: If there is none of that name.
    """
    if name not in case_ids():
        raise DeriveError(f"no case {name!r}", hint=nearest(name, case_ids()))
    content = resources.files("derive.cases").joinpath(f"{name}.toml").read_text("utf-8")
    return load_text(content, f"cases/{name}.toml")


def find_case(target: str) -> Case:
    """Return a shipped case by its id, or the case of a file by its path.

    Raises:
        DeriveError: If there is neither.
    """
    path = Path(target)
    if target.endswith(".toml") or path.is_file():
        return load_file(path)
    return shipped_case(target)
