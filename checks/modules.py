"""Which torch code describes which system: hand-written forwards and torch.nn modules.

A row is used only where a system's equations and loss read as the row says, so that a user's system
of the same name is never compared with another model. One row of `rows`, `rows_gated` or
`rows_paths` adds one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from derive.checks import forwards as F
from derive.checks.autograd import Autograd
from derive.checks.rows import PLAIN, Module, Row
from derive.checks.rows_attention import ATTENTION
from derive.checks.rows_blocks import BLOCKS
from derive.checks.rows_deep import DEEP
from derive.checks.rows_gated import GATED
from derive.checks.rows_norms import NORMS
from derive.checks.rows_paths import PATHS
from derive.checks.storage import Array
from derive.checks.table import Givens, UnavailableError
from derive.equation import System

ROWS: dict[str, Row] = {**PLAIN, **GATED, **PATHS, **ATTENTION, **NORMS, **BLOCKS, **DEEP}


def row_of(system: System) -> Row | None:
    """Return the row that describes a system, its equations and loss read word for word."""
    row = ROWS.get(system.name)
    if row is None:
        return None
    if system.held:
        row = held_row(system.name, system.held)
    texts = tuple(e.text for e in system.equations if e.tensor.name != "L")
    loss = system.by_name["L"].text if system.loss else ""
    known = not system.loss or loss == f"L = {row.losses.get(system.loss)}"
    return row if texts == row.equations and known else None


@lru_cache(maxsize=256)
def held_row(name: str, held: tuple[str, ...]) -> Row:
    """Return a row in which every read of some computed values is constant; no module does that."""
    row = ROWS[name]

    def forward(v: F.Values, keep: F.Keep, loss: str) -> None:
        def detached(name: str, value: Any) -> Any:
            read = keep(name, value)
            return read.detach() if name in held else read

        before = {f"{n}_init" for n in held}  # the initial rows are read as well
        row.forward({n: t.detach() if n in before else t for n, t in v.items()}, detached, loss)

    return replace(row, forward=forward, modules=())


def handwritten(system: System) -> F.Forward | None:
    """Return the hand-written forward of a system, if there is one."""
    row = row_of(system)
    return None if row is None else row.forward


class ModuleTable(Autograd):
    """A table from a torch.nn module: what it shows, and autograd through it."""

    def __init__(self, module: Module, system: System, givens: Givens, sizes: Mapping[str, int]):
        super().__init__(system, givens, sizes, module.forward)
        self.module, self.name = module, module.name

    def tensor(self, name: str) -> Array:
        """Return what the module shows.

        Raises:
            UnavailableError: For a tensor that it hides.
        """
        states = self.system.by_name
        if name in states and name not in self.values:
            raise UnavailableError(f"{self.name} does not show {name}")
        return super().tensor(name)

    def derivative(self, of: str, wrt: str, cut: bool) -> Array:
        """Return derivatives by what the module reads.

        Raises:
            UnavailableError: By a value inside the module, or for local derivatives.
        """
        shared = self.module.shared and self.system.tensors[wrt].role == "parameter" and of != "L"
        if cut or shared or self.module.inplace or wrt in self.module.closed:
            raise UnavailableError(f"{self.name} does not show how it reads {wrt}")
        return super().derivative(of, wrt, cut)


def module(
    system: System, givens: Givens, sizes: Mapping[str, int], place: int = 0
) -> ModuleTable | None:
    """Return the table of a torch.nn module that a system describes, if there is one.

    Args:
        system: The system.
        givens: The point.
        sizes: By name.
        place: Which of its modules, best first.
    """
    row = row_of(system)
    if row is None or place >= len(row.modules) or not row.modules[place].takes(sizes):
        return None
    return ModuleTable(row.modules[place], system, givens, sizes)
