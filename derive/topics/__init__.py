"""One file a topic: its systems, its claims. `names` lists the folder, `load` reads one."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from derive.claim import Claim
from derive.errors import DeriveError, nearest

if TYPE_CHECKING:
    from derive.equation import System


@dataclass(frozen=True)
class Topic:
    """A chapter: equations and what is claimed of them.

    Args:
        name: As on the command line.
        title: One line.
        systems: By name; the first is the default one.
        claims: In the order of the derivation.
        source: Where the equations come from.
    """

    name: str
    title: str
    systems: Mapping[str, System]
    claims: tuple[Claim, ...]
    source: str = ""

    def __post_init__(self) -> None:
        """Refuse claims that point at nothing, and doubled ids."""
        ids = [c.id for c in self.claims]
        doubled = {i for i in ids if ids.count(i) > 1}
        if doubled:
            raise DeriveError(f"{self.name}: two claims are called {sorted(doubled)}")
        for claim in self.claims:
            if claim.system not in self.systems and (claim.statement or claim.system):
                raise DeriveError(f"{claim.id}: no system {claim.system!r} in {self.name}")
            missing = [u for u in claim.using if u not in ids]
            if missing:
                raise DeriveError(f"{claim.id} uses unknown {missing[0]!r}")

    @property
    def default(self) -> System:
        """The first system."""
        return next(iter(self.systems.values()))

    def system_of(self, claim: Claim) -> System:
        """Return a claim's system, with its loss selected; a probe's claim may name none."""
        system = self.systems[claim.system] if claim.system else self.default
        return system.with_loss(claim.loss) if claim.loss else system


def names() -> list[str]:
    """Return the names of all topics: the files of this folder (``_NAME`` is a part of one)."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name[0] != "_")


@lru_cache(maxsize=64)
def load(name: str) -> Topic:
    """Return a topic.

    Raises:
        DeriveError: On an unknown name, with the nearest known one.
    """
    if name not in names():
        raise DeriveError(f"unknown topic {name!r}", hint=nearest(name, names()))
    topic = importlib.import_module(f"derive.topics.{name}").topic()
    assert isinstance(topic, Topic)
    return topic


def claim(
    id: str, statement: str, title: str, system: str, loss: str = "", **more: object
) -> Claim:
    """Return a claim; its topic is the first part of its id."""
    return Claim(id, id.split(".")[0], statement, title, system, loss, **more)  # type: ignore[arg-type]
