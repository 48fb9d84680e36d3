"""Figures: one file each, with ``figure`` for matplotlib and ``table`` for a terminal.

matplotlib is optional and imported inside functions only; without a file to write it is not needed.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from derive.errors import DeriveError, nearest
from derive.report import View

FORMATS = ("png", "svg")
DPI = 200
MISSING = "install it with:  pip install 'derive-check[plot]'  (or leave out -o for a table)"


@dataclass(frozen=True)
class Plot:
    """A module of this package.

    Args:
        name: As on the command line.
        title: One line.
        data: From sizes and a seed to what is drawn.
        figure: From that to a matplotlib figure.
        table: From that and a view to text.
    """

    name: str
    title: str
    data: Callable[[Mapping[str, int], int], Any]
    figure: Callable[[Any], Any]
    table: Callable[[Any, View], str]


def names() -> list[str]:
    """Return the names of all plots (the files of this folder)."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__))


def load(name: str) -> Plot:
    """Return a plot.

    Raises:
        DeriveError: On an unknown name, with the nearest known one.
    """
    if name not in names():
        raise DeriveError(f"unknown plot {name!r}", hint=nearest(name, names()))
    module = importlib.import_module(f"{__name__}.{name}")
    return Plot(name, module.TITLE, module.data, module.figure, module.table)


def check_target(output: Path) -> None:
    """Refuse a file that could not be drawn, before anything is computed.

    Raises:
        DeriveError: On another suffix than those of `FORMATS`, or without matplotlib.
    """
    suffix = output.suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise DeriveError(
            f"--output {output}: a plot is written as .png or .svg; found {output.suffix!r}",
            hint=f"name it {output.with_suffix('.svg')}",
        )
    try:
        importlib.import_module("matplotlib")
    except ImportError:
        raise DeriveError(
            "drawing needs matplotlib, which is not installed", hint=MISSING
        ) from None


def drawn(plot: Plot, data: Any, suffix: str) -> bytes:
    """Return a plot as the bytes of a file: the same bytes for the same data.

    The user's matplotlib settings do not take part; ids are salted and no date is written.
    """
    import matplotlib

    out = BytesIO()
    metadata = {"Date": None} if suffix == "svg" else {"Software": None}
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, "svg.hashsalt": "derive"}):
        plot.figure(data).savefig(out, format=suffix, dpi=DPI, metadata=metadata)
    return out.getvalue()
