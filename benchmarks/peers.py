"""The same statements in tensorgrad and in SymPy's `simplify`, where they are installed.

Optional: ``pip install tensorgrad`` in an environment of its own; what is absent is skipped. A peer
row without a result within `PATIENCE` seconds reads ``more than``. SymPy works at explicit sizes.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

PATIENCE = 60
CLAIMS = {
    "softmax Jacobian": "softmax_ce.jacobian",
    "cross-entropy gradient": "softmax_ce.gradient",
    "gradient by W_h through time": "bptt.hidden-weights-gradient",
}


def derive_proof(name: str) -> tuple[bool, float]:
    """Prove a shipped claim for all sizes; return the outcome and the seconds of the proof."""
    from derive import topics
    from derive.judging import Judge

    topic = topics.load(name.split(".")[0])
    claim = next(c for c in topic.claims if c.id == name)

    def lookup(other: str) -> Any:
        found = next(c for c in topic.claims if c.id == other)
        return found, topic.system_of(found)

    system = topic.system_of(claim)
    start = time.perf_counter()
    verdict = Judge(lookup).judge(claim, system).verdict
    seconds = time.perf_counter() - start
    return verdict.name == "proved" and verdict.scope == "all sizes", seconds


def tensorgrad() -> tuple[Any, Any]:
    """Return the package and its functions."""
    return import_module("tensorgrad"), import_module("tensorgrad.functions")


def tensorgrad_softmax() -> bool:
    """The softmax Jacobian for any size."""
    import sympy as sp

    tg, fn = tensorgrad()
    n = sp.Symbol("n")
    a = tg.Variable("a", c=n)
    p = fn.softmax(a, "c")
    found = tg.Derivative(p, a, {"c": "d"}).full_simplify()
    want = p * tg.Delta(n, "c", "d") - p * p.rename(c="d")
    return is_zero(found - want)


def tensorgrad_cross_entropy() -> bool:
    """The gradient of cross-entropy for any size, y of any sum."""
    import sympy as sp

    tg, fn = tensorgrad()
    n = sp.Symbol("n")
    a, y = tg.Variable("a", c=n), tg.Variable("y", c=n)
    p = fn.softmax(a, "c")
    loss = -fn.sum(y * fn.log(p), ["c"])
    found = tg.Derivative(loss, a, {"c": "c"})
    return is_zero(found - (p * fn.sum(y, ["c"]) - y))


def tensorgrad_bptt(steps: int) -> Callable[[], bool]:
    """Return the gradient by W_h over a number of steps, any width."""

    def run() -> bool:
        import sympy as sp

        tg, fn = tensorgrad()
        size = sp.Symbol("n")
        weight = tg.Variable("W", i=size, j=size)
        target = tg.Variable("y", i=size)
        states = [tg.Variable("h", i=size)]
        for t in range(steps):
            drive = tg.Variable(f"x{t}", i=size)
            states.append(fn.tanh(weight @ states[-1].rename(i="j") + drive))
        error = states[-1] - target
        signal, found = error, tg.Zero({"i": size, "j": size})
        for t in reversed(range(steps)):
            gated = signal * (1 - states[t + 1] * states[t + 1])
            found = found + gated * states[t].rename(i="j")
            signal = (gated @ weight).rename(j="i")
        derived = tg.Derivative(error @ error, weight, {"i": "i", "j": "j"})
        return is_zero(derived - 2 * found)

    return run


def is_zero(difference: Any) -> bool:
    """Tell whether tensorgrad simplifies a difference to zero."""
    return isinstance(difference.full_simplify(), tensorgrad()[0].Zero)


def sympy_softmax(size: int) -> Callable[[], bool]:
    """Return the softmax Jacobian at an explicit size by diff and simplify."""

    def run() -> bool:
        import sympy as sp

        a = sp.symbols(f"a:{size}", real=True)
        total = sum(sp.exp(x) for x in a)
        p = [sp.exp(x) / total for x in a]
        return all(sp.simplify(sp.diff(p[i], a[j]) - p[i] * (int(i == j) - p[j])) == 0
                   for i in range(size) for j in range(size))  # fmt: skip

    return run


def sympy_bptt(steps: int, size: int) -> Callable[[], bool]:
    """Return the gradient by W_h at explicit length and width by diff and simplify."""

    def run() -> bool:
        import sympy as sp

        weight = sp.Matrix(size, size, sp.symbols(f"w:{size * size}"))
        states = [sp.Matrix(sp.symbols(f"h:{size}"))]
        for t in range(steps):
            drive = sp.Matrix(sp.symbols(f"x{t}_:{size}"))
            states.append((weight * states[-1] + drive).applyfunc(sp.tanh))
        error = states[-1] - sp.Matrix(sp.symbols(f"y:{size}"))
        loss = (error.T * error)[0] / 2
        signal, found = error, sp.zeros(size, size)
        for t in reversed(range(steps)):
            gated = sp.Matrix([s * (1 - h**2) for s, h in zip(signal, states[t + 1], strict=True)])
            found += gated * states[t].T
            signal = weight.T * gated
        return all(sp.simplify(sp.diff(loss, weight[k]) - found[k]) == 0 for k in range(size**2))

    return run


PEERS: list[tuple[str, str, str, Callable[[], bool]]] = [
    ("tensorgrad", "softmax Jacobian", "any size", tensorgrad_softmax),
    ("tensorgrad", "cross-entropy gradient", "any size", tensorgrad_cross_entropy),
    ("tensorgrad", "gradient by W_h through time", "T=2, any H", tensorgrad_bptt(2)),
    ("tensorgrad", "gradient by W_h through time", "T=3, any H", tensorgrad_bptt(3)),
    ("sympy", "softmax Jacobian", "C=4", sympy_softmax(4)),
    ("sympy", "gradient by W_h through time", "T=2, H=1", sympy_bptt(2, 1)),
    ("sympy", "gradient by W_h through time", "T=2, H=2", sympy_bptt(2, 2)),
]


def measured(run: Callable[[], bool], queue: Any) -> None:
    """Run in a child process; imports do not count."""
    for module in ("sympy", "tensorgrad"):
        if importlib.util.find_spec(module):
            __import__(module)
    start = time.perf_counter()
    proved = run()
    queue.put((proved, time.perf_counter() - start))


def timed(run: Callable[[], bool]) -> str:
    """Return what a peer says and how long it takes, stopped when patience ends."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=measured, args=(run, queue))
    child.start()
    child.join(PATIENCE)
    if child.is_alive():
        child.terminate()
        child.join()
        return f"more than {PATIENCE} s"
    proved, seconds = queue.get() if not queue.empty() else (False, float("nan"))
    return f"{seconds * 1e3:9.1f} ms  {'proved' if proved else 'not proved'}"


def main() -> None:
    """Print one row a statement and prover."""
    for statement, claim in CLAIMS.items():
        proved, seconds = derive_proof(claim)
        verdict = "proved" if proved else "not proved"
        say("derive", statement, "all sizes", f"{seconds * 1e3:9.1f} ms  {verdict}")
    for peer, statement, scope, run in PEERS:
        absent = importlib.util.find_spec(peer) is None
        say(peer, statement, scope, "skipped: not installed" if absent else timed(run))


def say(peer: str, statement: str, scope: str, result: str) -> None:
    """Print a row."""
    sys.stdout.write(f"{peer:12} {statement:30} {scope:12} {result}\n")


if __name__ == "__main__":
    main()
