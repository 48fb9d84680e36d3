"""How softmax saturates: its largest slope over the width, scores scaled and not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from derive.checks.saturation import DRAWS, WIDTHS, largest_slopes
from derive.errors import DeriveError
from derive.report import View

TITLE = "saturation: the mean largest slope of softmax over the width of queries and keys"
SOURCES = 16
NAMES = ("scores q.k", "scores q.k/sqrt(d_k)", "scores q.k/d_k")
STYLES = (("#D55E00", "-"), ("#0072B2", (0, (5, 1.5))), ("#000000", (0, (1.5, 1.2))))
BARS, ASCII_BARS = "▁▂▃▄▅▆▇█", "_.-=+*%#"
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Saturation:
    """Mean largest slope p (1 - p) at each width, by how the scores are scaled.

    Args:
        slopes: Shape (3, widths).
        errors: Their standard errors, same shape.
        sources: How many scores a row has.
        seed: Of the draws.
    """

    slopes: Array
    errors: Array
    sources: int
    seed: int


def data(sizes: Mapping[str, int], seed: int) -> Saturation:
    """Return the curves from standard normal queries and keys: torch's softmax, seeded.

    Raises:
        DeriveError: On an unknown size, or one outside its range.
    """
    unknown = set(sizes) - {"T", "D", "H"}
    if unknown:
        raise DeriveError(f"saturation has no size {sorted(unknown)[0]!r}", hint="known: T")
    sources = sizes.get("T", SOURCES)
    if not 2 <= sources <= 4096:
        raise DeriveError(f"T is 2 to 4096 sources; found {sources}")
    return Saturation(*largest_slopes(sources, seed), sources, seed)


def caption(found: Saturation) -> str:
    """Return what was drawn."""
    return f"{found.sources} sources, {DRAWS} draws a width, seed {found.seed}"


def table(found: Saturation, view: View) -> str:
    """Return numbers at a few widths and a bar a width."""
    shown = [0, 3, 6, 9]
    head = "".join(f"d_k {WIDTHS[n]}".rjust(10) for n in shown)
    out = [TITLE if view.width > len(TITLE) else TITLE.replace(": ", ":\n", 1), caption(found), ""]
    out.append(f"{'':<22}{head}")
    for name, slopes in zip(NAMES, found.slopes, strict=True):
        numbers = "".join(f"{slopes[n]:.4f}".rjust(10) for n in shown)
        out.append(f"{name:<22}{numbers}  {bars(slopes, view.unicode)}")
    out += ["", "bars: from 0 to 1/4, the largest slope that there is"]
    text = "\n".join(out) + "\n"
    return text if view.unicode else text.encode("ascii", "replace").decode()


def bars(slopes: Array, unicode: bool) -> str:
    """Return a bar a width."""
    marks = BARS if unicode else ASCII_BARS
    return "".join(marks[min(len(marks) - 1, int(4 * s * len(marks)))] for s in slopes)


def figure(found: Saturation) -> Any:
    """Return the matplotlib figure."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(7.2, 4.0), layout="constrained")
    axes = drawing.add_subplot()
    for name, slopes, errors, (color, dashes) in zip(
        NAMES, found.slopes, found.errors, STYLES, strict=True
    ):
        axes.errorbar(WIDTHS, slopes, yerr=2 * errors, color=color, linestyle=dashes, capsize=2)
        axes.annotate(name, (WIDTHS[-1], slopes[-1]), xytext=(5, 0), textcoords="offset points",
                      va="center", color=color, fontsize=9)  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_xticks(WIDTHS, [str(w) for w in WIDTHS])
    axes.set_xlim(WIDTHS[0], WIDTHS[-1] * 12)
    axes.set_ylim(0, 0.26)
    axes.axhline(0.25, color="#999999", linewidth=0.8)
    axes.set_xlabel("width d_k of queries and keys")
    axes.set_ylabel("mean largest slope p (1 - p)")
    axes.set_title(caption(found), fontsize=9, color="#555555")
    return drawing
