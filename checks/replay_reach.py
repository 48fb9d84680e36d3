"""Recipes on freshly made torch cells: how much gradient reaches the first input, and their start.

The recorded seed fixes parameters and inputs as exact float32 numbers. The figures are then
computed from these in ball arithmetic, and torch's own run is compared with what is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

from flint import arb

from derive.checks.cells import Rows, gradient_norm
from derive.checks.recipes import MAX_SEED, Measured, Recipe, Request
from derive.errors import DeriveError

KINDS = {"rnn": "RNNCell", "lstm": "LSTMCell"}
MAX_STEPS, MAX_WIDTH = 200, 64
SETTINGS = ("seed", "inputs", "hidden", "forget_bias")


def sizes_of(request: Request) -> tuple[int, int, int]:
    """Return seed, input size and hidden size."""
    request.known(*SETTINGS)
    inputs, hidden = (max(1, request.whole(n, top=MAX_WIDTH)) for n in ("inputs", "hidden"))
    return request.whole("seed", top=MAX_SEED), inputs, hidden


def build(kind: str, inputs: int, hidden: int, forget_bias: float | None) -> Any:
    """Return a new torch cell; half of a forget bias stands in each of its two biases."""
    import torch

    cell = getattr(torch.nn, KINDS[kind])(inputs, hidden)
    if forget_bias is not None:
        with torch.no_grad():
            for bias in (cell.bias_ih, cell.bias_hh):
                bias[hidden : 2 * hidden] = forget_bias / 2
    return cell


def exact_parameters(cell: Any) -> dict[str, Rows]:
    """Return a cell's parameters as Python floats, which hold a float32 exactly."""
    named = {name: p.detach().double() for name, p in cell.named_parameters()}
    return {n: (p if p.dim() == 2 else p[None]).tolist() for n, p in named.items()}


@lru_cache(maxsize=64)
def measured(kind: str, seed: int, inputs: int, hidden: int, forget_bias: float | None,
             steps: int) -> tuple[Mapping[str, Rows], Rows, float]:  # fmt: skip
    """Run the recipe once: parameters, inputs, and the norm of torch's float32 gradient.

    The norm is taken in float64: squares of a float32 gradient near 1e-29 are zero in float32.
    """
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        cell = build(kind, inputs, hidden, forget_bias)
        xs = [torch.randn(1, inputs) for _ in range(steps)]
    xs[0].requires_grad_()
    h, c = torch.zeros(1, hidden), torch.zeros(1, hidden)
    for x in xs:
        if kind == "rnn":
            h = cell(x, h)
        else:
            h, c = cell(x, (h, c))
    (gradient,) = torch.autograd.grad(h.sum(), xs[0])
    rows = [x.detach().double()[0].tolist() for x in xs]
    return exact_parameters(cell), rows, float(gradient.double().norm())


@lru_cache(maxsize=256)
def enclosed(bits: int, *recipe: Any) -> arb:
    """Return the norm of the exact gradient of a recipe's run, once for all entries that ask."""
    parameters, rows, _ = measured(*recipe)
    return gradient_norm(recipe[0], parameters, rows, bits)


def reach(request: Request) -> Mapping[str, Callable[[], Measured]]:
    """Return the norm of the gradient of h.sum() at the first input, for ``at = { T = 40 }``.

    Settings: seed, inputs, hidden; forget_bias for an LSTM that starts with one.
    """
    seed, inputs, hidden = sizes_of(request)
    bias = request.replay.settings.get("forget_bias")

    def norm(kind: str) -> Measured:
        if bias is not None and kind != "lstm":
            raise DeriveError(f"{kind} has no forget gate; forget_bias is for the lstm")
        steps = request.length("T", MAX_STEPS)
        start = None if bias is None else float(bias)
        recipe = (kind, seed, inputs, hidden, start, steps)
        return Measured(
            (lambda bits: enclosed(bits, *recipe),),
            lambda: [measured(*recipe)[2]],
            steps * inputs,
            f"torch.nn.{KINDS[kind]} in float32, its gradient's norm in float64",
        )

    return {f"{kind}_gradient_norm": partial(norm, kind) for kind in KINDS}


def start(request: Request) -> Mapping[str, Callable[[], Measured]]:
    """Return what an LSTM cell and then an RNN cell made from one seed hold.

    ``shape(NAME)`` and ``parameters`` of either, and the ends of the sum of the forget biases.
    """
    import torch

    seed, inputs, hidden = sizes_of(request)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        cells = {kind: build(kind, inputs, hidden, None) for kind in ("lstm", "rnn")}
    forget = slice(hidden, 2 * hidden)
    pair = [getattr(cells["lstm"], n).detach()[forget] for n in ("bias_ih", "bias_hh")]
    sums = [Fraction(a) + Fraction(b) for a, b in zip(*(p.tolist() for p in pair), strict=True)]
    run = (pair[0] + pair[1]).tolist()
    figures = {
        "forget_bias_min": partial(plain, (min(sums),), (min(run),), hidden),
        "forget_bias_max": partial(plain, (max(sums),), (max(run),), hidden),
    }
    figures["clip_norm_before_backward"] = partial(clip_norm, cells["rnn"])
    for kind, cell in cells.items():
        count = sum(p.numel() for p in cell.parameters())
        figures[f"{kind}_parameters"] = partial(plain, (count,), (count,), count)
        for name, p in cell.named_parameters():
            shape = tuple(p.shape)
            figures[f"{kind}_shape({name})"] = partial(plain, shape, shape, p.numel(), (p.dim(),))
    return figures


def clip_norm(cell: Any) -> Measured:
    """Return what clip_grad_norm_ returns where backward has not run: the norm of no numbers."""
    import torch

    norm = float(torch.nn.utils.clip_grad_norm_(cell.parameters(), 1.0))
    return plain((0,), (norm,), 1)


def plain(
    exact: Sequence[Fraction | int],
    run: Sequence[float],
    count: int,
    shape: tuple[int, ...] = (),
) -> Measured:
    """Return a figure of exact rationals, beside what torch's float32 gives."""
    values = tuple(partial(constant, value) for value in exact)
    return Measured(values, lambda: run, count, "torch.nn, as made from the seed", shape)


def constant(value: Fraction | int, bits: int) -> Fraction | int:
    """Return an exact value, whatever the precision."""
    return value


RECIPES: Mapping[str, Recipe] = {"torch-gradient-reach": reach, "torch-cell-start": start}
