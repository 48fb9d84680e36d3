"""The norm of dh_T/dh_t over the lag: RNN, GRU, and LSTM with forget bias 0, 1, 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

from derive.checks.jacobians import Curve, checked, fading
from derive.report import View

TITLE = "how far back a gradient reaches: the norm of dh_T/dh_t over the lag T-t, cell by cell"
BARS, ASCII_BARS = "▁▂▃▄▅▆▇█", "_.-=+*%#"
NAME, NUMBER = 20, 9  # columns of the table
SHOWN = 4  # lags with a number
TINY = 1e-300  # what is below is on its way to underflow
# Okabe and Ito's colours, but for a purple that is darker on paper: told apart with the common
# kinds of colour blindness; the dashes tell the curves apart in grey as well.
STYLES = (
    ("#000000", "-"),
    ("#0072B2", (0, (5, 1.5))),
    ("#D55E00", (0, (1.5, 1.2))),
    ("#AA4499", (0, (4, 1.2, 1, 1.2))),
    ("#009E73", "-"),
)


@dataclass(frozen=True)
class Fading:
    """What is drawn.

    Args:
        curves: One a cell.
        bound: The bound of the first curve.
        sizes: By name.
        seed: Of weights and inputs.
    """

    curves: tuple[Curve, ...]
    bound: Curve
    sizes: Mapping[str, int]
    seed: int

    @property
    def caption(self) -> str:
        """What was drawn at random."""
        sizes = " ".join(f"{name}={size}" for name, size in self.sizes.items())
        return f"{sizes}, weights as torch draws them, standard normal inputs, seed {self.seed}"

    @property
    def decades(self) -> tuple[int, int]:
        """The powers of ten that hold every positive value."""
        found = [float(v) for c in (*self.curves, self.bound) for v in c.norms if v > TINY]
        return floor(log10(min(found))), max(ceil(log10(max(found))), 0)


def data(sizes: Mapping[str, int], seed: int) -> Fading:
    """Return the curves.

    Raises:
        DeriveError: On an unknown size, or one outside its range.
    """
    curves, bound = fading(sizes, seed)
    return Fading(tuple(curves), bound, checked(sizes), seed)


# For a terminal


def table(found: Fading, view: View) -> str:
    """Return numbers at a few lags and a bar a lag, all on one logarithmic scale."""
    width = min(view.width, 100)
    low, high = found.decades
    steps = len(found.bound.norms)
    lags = sorted({max(1, round((steps - 1) * n / SHOWN)) for n in range(1, SHOWN + 1)})
    room = max(8, width - NAME - NUMBER * len(lags) - 3)
    head = "".join(f"lag {lag}".rjust(NUMBER) for lag in lags)
    out = [TITLE if width > len(TITLE) else TITLE.replace(": ", ":\n", 1), found.caption, ""]
    out += [f"{'cell':<{NAME}}{head}   0 … lag … {steps - 1}"]
    for curve in (*found.curves, found.bound):
        numbers = "".join(f"{curve.norms[lag]:.1e}".rjust(NUMBER) for lag in lags)
        name = "bound of the RNN" if curve is found.bound else curve.name
        out.append(f"{name:<{NAME}}{numbers}   {bars(curve, room, (low, high), view.unicode)}")
    out += ["", f"bars: logarithmic, from 1e{low:+03d} to 1e{high:+03d}"]
    out += ["bound: (γc)ⁿ, c the largest singular value of W_h, γ the largest 1 - h²"]
    text = "\n".join(out) + "\n"
    return text if view.unicode else ascii_only(text)


def ascii_only(text: str) -> str:
    """Return a table's text for an output that holds ASCII only."""
    mapping: dict[str, str | int | None] = {"…": "..", "γ": "gamma ", "ⁿ": "^n", "²": "^2"}
    return text.translate(str.maketrans(mapping)).encode("ascii", "backslashreplace").decode()


def bars(curve: Curve, room: int, decades: tuple[int, int], unicode: bool) -> str:
    """Return a bar for each of at most ``room`` lags."""
    low, high = decades
    steps, levels = len(curve.norms), BARS if unicode else ASCII_BARS
    count = min(room, steps)
    chosen = [curve.norms[round(n * (steps - 1) / max(count - 1, 1))] for n in range(count)]
    heights = [(log10(v) - low) / (high - low or 1) if v > TINY else 0.0 for v in chosen]
    return "".join(levels[min(len(levels) - 1, int(h * len(levels)))] for h in heights)


# For a file


def figure(found: Fading) -> Any:
    """Return the matplotlib figure."""
    from matplotlib.figure import Figure

    low, high = found.decades
    steps = len(found.bound.norms)
    drawing = Figure(figsize=(7.2, 4.3), layout="constrained")
    axes = drawing.add_subplot()
    for curve, (color, dashes) in zip(found.curves, STYLES, strict=True):
        axes.semilogy(curve.norms, color=color, linestyle=dashes, linewidth=1.8)
    axes.semilogy(found.bound.norms, color="#777777", linewidth=1, linestyle=(0, (6, 4)))
    axes.set_xlim(0, steps - 1)
    axes.set_ylim(10.0**low, 10.0**high * 2)
    axes.set_xlabel("lag  $n = T - t$")
    axes.set_ylabel(r"$\|\partial h_T / \partial h_{T-n}\|_2$", fontsize=12)
    axes.set_title("How far back a gradient reaches", loc="left", fontsize=12)
    axes.grid(True, which="major", color="#e5e5e5", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    labels = [*(c.name for c in found.curves), r"bound $(\gamma c)^n$ of the RNN"]
    # a product that underflows to zero has no place on the axis: its label stands at the bottom
    ends = [max(float(c.norms[-1]), 10.0**low) for c in (*found.curves, found.bound)]
    colors = [*(color for color, _ in STYLES), "#555555"]
    for label, color, end, place in zip(labels, colors, ends, spread(ends, low, high), strict=True):
        axes.annotate(label, (1, end), (1.03, place), xycoords=("axes fraction", "data"),
                      textcoords="axes fraction", color=color, va="center", fontsize=9.5,
                      annotation_clip=False,
                      arrowprops={"arrowstyle": "-", "relpos": (0, 0.5), "color": color,
                                  "linewidth": 0.6, "shrinkA": 1, "shrinkB": 0})  # fmt: skip
    drawing.supxlabel(found.caption, fontsize=8, color="#555555", x=0.01, ha="left")
    return drawing


def spread(ends: Sequence[float], low: int, high: int, gap: float = 0.062) -> list[float]:
    """Return heights (fractions of the axis) for labels, in the ends' order, none overlapping."""
    span = (high - low) or 1
    wanted = [(log10(end) - low) / span for end in ends]
    order = sorted(range(len(ends)), key=lambda n: wanted[n])
    up = pushed([wanted[n] for n in order], gap)
    down = pushed([1 - height for height in reversed(up)], gap)  # those above the top move down
    heights = dict(zip(order, (1 - height for height in reversed(down)), strict=True))
    return [heights[n] for n in range(len(ends))]


def pushed(heights: Sequence[float], gap: float) -> list[float]:
    """Return ascending heights from 0, each at least a gap above the one before."""
    out, least = list[float](), 0.0
    for height in heights:
        out.append(max(height, least))
        least = out[-1] + gap
    return out
