"""Which torch code describes which system: hand-written forwards and torch.nn modules.

A row is used only where a system's equations and loss read as the row says, so that a user's system
of the same name is never compared with another model. One row of `ROWS` adds a system.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from derive.checks import forwards as F
from derive.checks.autograd import Autograd
from derive.checks.storage import Array
from derive.checks.table import Givens, UnavailableError
from derive.equation import System


@dataclass(frozen=True)
class Module:
    """A forward through torch.nn.

    Args:
        name: As reported.
        forward: The function.
        closed: No derivative by these: values that it shows but does not read again, class targets.
        shared: Its rows share parameters: no derivative of many entries by a parameter.
    """

    name: str
    forward: F.Forward
    closed: frozenset[str] = frozenset()
    shared: bool = False


@dataclass(frozen=True)
class Row:
    """The torch code of one system.

    Args:
        forward: Hand-written.
        equations: What it implements, as the system writes it.
        losses: Its losses, likewise.
        modules: The same through torch.nn, best first.
    """

    forward: F.Forward
    equations: tuple[str, ...]
    losses: Mapping[str, str] = field(default_factory=dict)
    modules: tuple[Module, ...] = ()


TANH = "h[t,j] = tanh(z[t,j])"
INPUT = "z[t,j] = sum(k, W_x[j,k]*x[t,k])"
CELL = (f"{INPUT} + sum(r, W_h[j,r]*h[t-1,r]) + b_h[j]", TANH)
HEAD = (
    "a[t,c] = sum(i, W_o[c,i]*h[t,i]) + b_o[c]",
    "p[t,c] = softmax(c, a[t,c])",
    "l[t] = -sum(c, Y[t,c]*log(p[t,c]))",
)
BATCH = (
    "z[t,n,j] = sum(k, W_x[j,k]*x[t,n,k]) + sum(r, W_h[j,r]*h[t-1,n,r]) + b_h[j]",
    "h[t,n,j] = tanh(z[t,n,j])",
    "a[t,n,c] = sum(i, W_o[c,i]*h[t,n,i]) + b_o[c]",
    "p[t,n,c] = softmax(c, a[t,n,c])",
    "l[t,n] = -sum(c, Y[t,n,c]*log(p[t,n,c]))",
)
FINAL = {"final": "1/2*sum(j, (h[T-1,j] - y[j])^2)"}
BOTH = FINAL | {"per_position": "mean(t, l[t])"}
SEQUENCE = Module("torch.nn.RNN", F.nn_rnn, frozenset({"h", "p"}))
STEPS = Module("torch.nn.RNNCell", F.nn_rnn_cell, frozenset({"p"}), shared=True)
SOFTMAX = Module("torch.nn.functional", F.functional_softmax, frozenset({"p", "l", "lse", "Y"}))

RNN = Row(F.rnn, CELL + HEAD, BOTH, (SEQUENCE, STEPS))

ROWS: dict[str, Row] = {
    "rnn": RNN,
    "rnn_column": RNN,
    "rnn_batch": Row(
        F.rnn,
        BATCH,
        {
            "final": "mean(n, 1/2*sum(j, (h[T-1,n,j] - y[n,j])^2))",
            "per_position": "mean(n, mean(t, l[t,n]))",
        },
        (SEQUENCE, STEPS),
    ),
    "rnn_two_biases": Row(
        F.rnn,
        (f"{INPUT} + b_ih[j] + sum(r, W_h[j,r]*h[t-1,r]) + b_hh[j]", TANH),
        FINAL,
        (SEQUENCE, STEPS),
    ),
    "rnn_truncated": Row(
        F.rnn,
        (
            f"{INPUT} + b_h[j] + sum(r, W_h[j,r]*"
            "(keep[t]*h[t-1,r] + (1 - keep[t])*detach(h[t-1,r])))",
            TANH,
        ),
        FINAL,
        (STEPS,),
    ),
    "rnn_cell": Row(
        F.cell,
        (
            "z[j] = sum(k, W_x[j,k]*x[k]) + sum(r, W_h[j,r]*h_prev[r]) + b_h[j]",
            "h[j] = tanh(z[j])",
        ),
        {},
        (Module("torch.nn.RNNCell", F.nn_cell),),
    ),
    "linear": Row(F.linear, ("h[t] = w*h[t-1] + u*x[t]",), {"final": "h[T-1]"}),
    "linear_matrix": Row(
        F.linear_matrix,
        ("h[t,j] = sum(k, W_x[j,k]*x[t,k]) + sum(r, W_h[j,r]*h[t-1,r])",),
        FINAL,
    ),
    "softmax": Row(
        F.softmax,
        (
            "p[t,c] = softmax(c, a[t,c])",
            "lse[t] = logsumexp(c, a[t,c])",
            "l[t] = lse[t] - sum(c, Y[t,c]*a[t,c])",
        ),
        {"sum": "sum(t, l[t])", "mean": "mean(t, l[t])"},
        (SOFTMAX,),
    ),
    "softmax_kept": Row(
        F.softmax_kept,
        (
            "p[t,c] = softmax(c, a[t,c])",
            "l[t] = -sum(c, Y[t,c]*log(p[t,c]))",
            "n_kept = sum(t, m[t])",
        ),
        {"mean_kept": "sum(t, m[t]*l[t])/n_kept"},
        (SOFTMAX,),
    ),
}


def row_of(system: System) -> Row | None:
    """Return the row that describes a system, its equations and loss read word for word."""
    row = ROWS.get(system.name)
    if row is None:
        return None
    if system.held:
        row = held_row(system.name, system.held)
    texts = tuple(e.text for e in system.equations if e.tensor.name != "L")
    loss = system.by_name["L"].text if system.loss else ""
    known = not system.loss or loss == f"L = {row.losses.get(system.loss)}"
    return row if texts == row.equations and known else None


@lru_cache(maxsize=256)
def held_row(name: str, held: tuple[str, ...]) -> Row:
    """Return a row in which every read of some computed values is constant; no module does that."""
    row = ROWS[name]

    def forward(v: F.Values, keep: F.Keep, loss: str) -> None:
        def detached(name: str, value: Any) -> Any:
            read = keep(name, value)
            return read.detach() if name in held else read

        before = {f"{n}_init" for n in held}  # the initial rows are read as well
        row.forward({n: t.detach() if n in before else t for n, t in v.items()}, detached, loss)

    return replace(row, forward=forward, modules=())


def handwritten(system: System) -> F.Forward | None:
    """Return the hand-written forward of a system, if there is one."""
    row = row_of(system)
    return None if row is None else row.forward


class ModuleTable(Autograd):
    """A table from a torch.nn module: what it shows, and autograd through it."""

    def __init__(self, module: Module, system: System, givens: Givens, sizes: Mapping[str, int]):
        super().__init__(system, givens, sizes, module.forward)
        self.module, self.name = module, module.name

    def tensor(self, name: str) -> Array:
        """Return what the module shows.

        Raises:
            UnavailableError: For a tensor that it hides.
        """
        states = self.system.by_name
        if name in states and name not in self.values:
            raise UnavailableError(f"{self.name} does not show {name}")
        return super().tensor(name)

    def derivative(self, of: str, wrt: str, cut: bool) -> Array:
        """Return derivatives by what the module reads.

        Raises:
            UnavailableError: By a value inside the module, or for local derivatives.
        """
        shared = self.module.shared and self.system.tensors[wrt].role == "parameter" and of != "L"
        if cut or shared or wrt in self.module.closed:
            raise UnavailableError(f"{self.name} does not show how it reads {wrt}")
        return super().derivative(of, wrt, cut)


def module(
    system: System, givens: Givens, sizes: Mapping[str, int], place: int = 0
) -> ModuleTable | None:
    """Return the table of a torch.nn module that a system describes, if there is one.

    Args:
        system: The system.
        givens: The point.
        sizes: By name.
        place: Which of its modules, best first.
    """
    row = row_of(system)
    if row is None or place >= len(row.modules):
        return None
    return ModuleTable(row.modules[place], system, givens, sizes)
