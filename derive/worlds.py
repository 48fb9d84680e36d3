"""Evaluations of one statement at one point, instance by instance."""

from __future__ import annotations

from collections.abc import Mapping

from derive.explicit import Explicit
from derive.instances import Env
from derive.rings import Ring
from derive.statement import Identity


class Worlds:
    """Evaluations of one statement at one point: one world for each value of a shared index.

    An assumption that uses the claim's own position (``keep[b] = 0``) makes another world for each
    value of it.
    """

    def __init__(
        self,
        identity: Identity,
        sizes: Mapping[str, int],
        ring: Ring,
        assumes: tuple[Identity, ...] = (),
    ):
        self.identity, self.sizes, self.ring, self.assumes = identity, sizes, ring, assumes
        positions = {s for s, d in identity.free if d.ordered}
        self.shared = sorted({s for a in assumes for s, _ in a.free} & positions, key=str)
        self.made: dict[tuple[int, ...], Explicit] = {}

    def at(self, env: Env) -> Explicit:
        """Return the world of an instance."""
        key = tuple(env[s] for s in self.shared)
        if key not in self.made:
            shared = dict(zip(self.shared, key, strict=True))
            self.made[key] = Explicit(
                self.identity.system, self.sizes, self.ring, self.assumes, shared
            )
        return self.made[key]
