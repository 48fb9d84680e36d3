"""The derived adjoint equations of gated networks against torch.nn, forward and backward."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from timing import best, row

from derive import topics
from derive.calculus import adjoint_equations
from derive.checks.evaluate import compile_system
from derive.conventions import card, packed_order
from derive.equation import System

STEPS, SIZE = 1000, 64


def network(name: str) -> System:
    """Return a topic's network without its output head, with the final loss."""
    from dataclasses import replace

    system = topics.load(name).systems[name]
    kept = tuple(e for e in system.equations if e.tensor.name not in ("a", "p", "l"))
    loss = {"final": system.losses["final"]}
    return replace(system, equations=kept, losses=loss).with_loss("final")


def givens(system: System) -> dict[str, np.ndarray]:
    """Return seeded float64 inputs and weights."""
    rng, sizes = np.random.default_rng(0), {"T": STEPS, "D": SIZE, "H": SIZE, "C": 1}
    found = {t.name: rng.standard_normal([sizes[d.name] for d in t.dims]) for t in system.givens}
    found |= {f"{n}_init": rng.standard_normal((1, SIZE)) for n in system.initial}
    return {n: a / 8 if n[0] == "W" else a for n, a in found.items()}


def ours(system: System, values: dict[str, np.ndarray]) -> Callable[[], dict[str, np.ndarray]]:
    """Return our forward and adjoint program at a point."""
    program = compile_system(system, (*system.equations, *adjoint_equations(system)))
    return lambda: program.run(values)


def theirs(name: str, values: dict[str, np.ndarray]) -> Callable[[], dict[str, torch.Tensor]]:
    """Return torch's layer with the same weights, forward and backward."""
    g = {n: torch.from_numpy(a) for n, a in values.items()}
    module = getattr(torch.nn, name.upper())(SIZE, SIZE, dtype=torch.float64)
    module.load_state_dict(
        {
            f"{packed}_l0": torch.cat([g[kind + gate] for gate in packed_order(name)])
            for packed, kind in card(name).kinds.items()
        }
    )
    x = g["x"][:, None].clone().requires_grad_()
    start = [g[f"{n}_init"][:, None].clone().requires_grad_() for n in "hc" if f"{n}_init" in g]
    wanted = [*module.parameters(), x, *start]

    def run() -> dict[str, torch.Tensor]:
        states, _ = module(x, tuple(start) if len(start) > 1 else start[0])
        loss = ((states[-1, 0] - g["y"]) ** 2).sum() / 2
        names = [*(n for n, _ in module.named_parameters()), "x", *"hc"[: len(start)]]
        return dict(zip(names, torch.autograd.grad(loss, wanted), strict=True))

    return run


def main() -> None:
    """Print the ratios."""
    for name in ("lstm", "gru"):
        system = network(name)
        values = givens(system)
        run, reference = ours(system, values), theirs(name, values)
        got = np.concatenate([run()[f"g_W_h{gate}"] for gate in packed_order(name)])
        worst = np.abs(got - reference()["weight_hh_l0"].numpy()).max()
        assert worst < 1e-10, worst
        times = best(run), best(reference)
        row(f"{name}: ours, ms; T={STEPS} H=D={SIZE} float64", 1000 * times[0], "")
        row(f"{name}: torch.nn.{name.upper()}, ms", 1000 * times[1], "")
        row(f"{name}: derived forward+adjoint / torch.nn", times[0] / times[1], "at most 1")


if __name__ == "__main__":
    main()
