"""The derived adjoint equations against torch.nn.RNN, forward and backward; growth with T."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from timing import best, row

from derive.building import build_system
from derive.calculus import adjoint_equations
from derive.checks.evaluate import compile_system

SIZE = 64
SYSTEM = build_system(
    "tanh_rnn",
    ("T", "D", "H"),
    {"x": ("T", "D"), "W_x": ("H", "D"), "W_h": ("H", "H"), "b_h": ("H",), "y": ("H",)},
    (
        "z[t,j] = sum(k, W_x[j,k]*x[t,k]) + sum(r, W_h[j,r]*h[t-1,r]) + b_h[j]",
        "h[t,j] = tanh(z[t,j])",
    ),
    losses={"final": "1/2*sum(j, (h[T-1,j] - y[j])^2)"},
    targets=("y",),
).with_loss("final")


def givens(steps: int) -> dict[str, np.ndarray]:
    """Return seeded float64 inputs and weights."""
    rng = np.random.default_rng(0)
    shapes = {"x": (steps, SIZE), "W_x": (SIZE, SIZE), "W_h": (SIZE, SIZE), "b_h": (SIZE,),
              "y": (SIZE,), "h_init": (1, SIZE)}  # fmt: skip
    return {n: rng.standard_normal(s) / (8 if n[0] == "W" else 1) for n, s in shapes.items()}


def ours(values: dict[str, np.ndarray]) -> Callable[[], dict[str, np.ndarray]]:
    """Return our forward and adjoint program at a point."""
    program = compile_system(SYSTEM, (*SYSTEM.equations, *adjoint_equations(SYSTEM)))
    return lambda: program.run(values)


def theirs(values: dict[str, np.ndarray]) -> Callable[[], dict[str, torch.Tensor]]:
    """Return torch.nn.RNN with the same weights, forward and backward."""
    g = {n: torch.from_numpy(a) for n, a in values.items()}
    module = torch.nn.RNN(SIZE, SIZE, dtype=torch.float64)
    ours = {"weight_ih_l0": g["W_x"], "weight_hh_l0": g["W_h"], "bias_ih_l0": g["b_h"],
            "bias_hh_l0": torch.zeros_like(g["b_h"])}  # fmt: skip
    module.load_state_dict(ours)
    x = g["x"][:, None].clone().requires_grad_()
    start = g["h_init"][:, None].clone().requires_grad_()
    wanted = [*module.parameters(), x, start]

    def run() -> dict[str, torch.Tensor]:
        states, _ = module(x, start)
        loss = ((states[-1, 0] - g["y"]) ** 2).sum() / 2
        names = [*(n for n, _ in module.named_parameters()), "x", "h_init"]
        return dict(zip(names, torch.autograd.grad(loss, wanted), strict=True))

    return run


def main() -> None:
    """Print the ratios."""
    values = givens(2000)
    run, reference = ours(values), theirs(values)
    worst = np.abs(run()["g_W_h"] - reference()["weight_hh_l0"].numpy()).max()
    assert worst < 1e-10, worst
    ratio = best(run) / best(reference)
    row("derived forward+adjoint / torch.nn.RNN, T=2000 H=D=64 float64", ratio, "at most 1")
    times = {steps: best(ours(givens(steps))) for steps in (2000, 4000, 8000)}
    for steps in (4000, 8000):
        row(f"time at T={steps} / time at T={steps // 2}", times[steps] / times[steps // 2],
            "near 2 (linear)")  # fmt: skip


if __name__ == "__main__":
    main()
