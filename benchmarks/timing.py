"""Timing for the benchmarks: the best of several runs, and ratios from one process."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable


def best(run: Callable[[], object], repeat: int = 5) -> float:
    """Return the shortest wall time of a call in seconds, after one call to warm up."""
    run()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def alternating(runs: dict[str, list[str]], repeat: int = 5) -> dict[str, float]:
    """Return the shortest wall time of each process, run in turn so that noise meets all alike."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeat):
        for name, command in runs.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            times[name].append(time.perf_counter() - start)
    return {name: min(found) for name, found in times.items()}


def row(name: str, value: float, target: str) -> None:
    """Print one ratio beside its target."""
    sys.stdout.write(f"{name:66} {value:8.2f}   {target}\n")
