"""The weights of the three-token microscope, with and without a causal mask, cell by cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from derive.errors import DeriveError
from derive.report import View

TITLE = "attention weights: every row sums to one, over all sources or over those up to the query"
CASE, GROUP = "innopolis-week06", "microscope-attention"
MOST = 24
SHADES, ASCII_SHADES = " ░▒▓█", " .:o#"
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Weights:
    """Two matrices of weights, rows are queries.

    Args:
        full: Over all sources, shape (T, T).
        causal: Over the sources up to the query, shape (T, T).
        caption: What they are of.
    """

    full: Array
    causal: Array
    caption: str


def data(sizes: Mapping[str, int], seed: int) -> Weights:
    """Return the microscope's weights, or those of random rows where sizes are given.

    Raises:
        DeriveError: On an unknown size, or one outside its range.
    """
    unknown = set(sizes) - {"T", "D", "H"}
    if unknown:
        raise DeriveError(f"attention has no size {sorted(unknown)[0]!r}", hint="known: T, D, H")
    from derive.checks.table import forward_values

    system, givens, known = given(dict(sizes), seed)
    values = forward_values(system, givens, known)
    what = f"the {CASE} microscope" if not sizes else f"random rows, seed {seed}"
    shown = ", ".join(f"{n} = {known[n]}" for n in ("T", "D", "d_k"))
    return Weights(values["A"], values["C"], f"{what}; {shown}")


def given(sizes: dict[str, int], seed: int) -> tuple[Any, Any, dict[str, int]]:
    """Return the system and a point: the case's, or a drawn one.

    Raises:
        DeriveError: On a size below 1, or more positions than can be read.
    """
    from derive.case_load import shipped_case
    from derive.checks.sizes import random_givens

    group = shipped_case(CASE).group(GROUP)
    known = dict(group.sizes)
    if not sizes:
        return group.system, {n: np.array(v, float) for n, v in group.givens.items()}, known
    if not all(1 <= n <= MOST for n in sizes.values()):
        raise DeriveError(f"a size of this plot is 1 to {MOST}; found {sizes}")
    known |= {"T": sizes.get("T", 8), "D": sizes.get("D", 4)}
    known |= {"d_k": sizes.get("H", 3), "d_v": sizes.get("H", 3)}
    return group.system, random_givens(group.system, known, seed), known


def table(found: Weights, view: View) -> str:
    """Return both matrices as numbers with a shade each, one below the other if need be."""
    blocks = [block("all sources", found.full, view), block("causal", found.causal, view)]
    width = max(map(len, blocks[0]))
    beside = 2 * width + 4 <= view.width
    rows = (
        [f"{a:<{width}}    {b}".rstrip() for a, b in zip(*blocks, strict=True)]
        if beside
        else [*blocks[0], "", *blocks[1]]
    )
    out = [TITLE if view.width > len(TITLE) else TITLE.replace(": ", ":\n", 1), found.caption, ""]
    text = "\n".join([*out, *rows, "", "rows are queries, columns sources"]) + "\n"
    return text if view.unicode else text.encode("ascii", "replace").decode()


def block(name: str, weights: Array, view: View) -> list[str]:
    """Return one matrix as lines; numbers where they fit, else shades alone."""
    numbers = 8 * len(weights) + 4 <= view.width
    shades = SHADES if view.unicode else ASCII_SHADES
    lines = [name]
    for t, row in enumerate(weights):
        marks = [shades[min(len(shades) - 1, int(w * len(shades)))] for w in row]
        cells = (f"{m} {w:.3f}" for m, w in zip(marks, row, strict=True)) if numbers else marks
        lines.append(f"{t:>3} " + " ".join(cells))
    return lines


def figure(found: Weights) -> Any:
    """Return the matplotlib figure."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(7.2, 3.7), layout="constrained")
    images = []
    for place, (name, weights) in enumerate(
        (("all sources", found.full), ("causal", found.causal))
    ):
        axes = drawing.add_subplot(1, 2, place + 1)
        images.append(axes.imshow(weights, cmap="Blues", vmin=0, vmax=1))
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("source")
        axes.set_ylabel("query")
        axes.set_xticks(range(len(weights)))
        axes.set_yticks(range(len(weights)))
        for (t, s), w in np.ndenumerate(weights) if len(weights) <= 8 else ():
            axes.text(s, t, f"{w:.3f}", ha="center", va="center", fontsize=8,
                      color="white" if w > 0.6 else "black")  # fmt: skip
    drawing.colorbar(images[-1], ax=drawing.axes, shrink=0.8, label="weight")
    drawing.suptitle(found.caption, fontsize=9, color="#555555")
    return drawing
