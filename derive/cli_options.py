"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

AS_EXPECTED = 0
DEBUG = "derive.debug"


def remember_debug(ctx: typer.Context, wanted: bool) -> bool:
    """Note that tracebacks are wanted, before anything else runs."""
    ctx.find_root().meta[DEBUG] = wanted
    return wanted


Debug = Annotated[
    bool,
    typer.Option("--debug", help="Show tracebacks.", callback=remember_debug, is_eager=True),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write to a file: all of it, or nothing."),
]
Format = Annotated[
    str,
    typer.Option(
        "--format", help="rich, text or json; by default rich on a terminal, text in a pipe."
    ),
]
