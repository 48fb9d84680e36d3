"""Mathematical notation for syntax nodes: one walker for precedence, one table for each format.

A piece of output carries how strongly it binds, and whether it ends in the body of a sum, which
would swallow a factor that follows. Both tables write the lecture's letters: ``g_z`` is the adjoint
of z, ``W_h`` keeps its label, positions are subscripts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from derive import syntax as S

if TYPE_CHECKING:
    from derive.scope import Scope

LOOSE, ADD, NEG, HADAMARD, FRACTION, MUL, POW, DRESSED, ATOM = range(9)


@dataclass(frozen=True)
class Piece:
    """Some output: its text, how strongly it binds, whether a sum's body ends it."""

    text: str
    level: int
    open: bool = False


@dataclass(frozen=True)
class Entry:
    """A name with its indices, as a table of notation gets it.

    Args:
        base: The letter, ``W`` of ``W_h``; the loss is ``L``.
        label: What follows the first underscore, or "".
        adjoint: The tensor whose adjoint it is, already in notation, or "".
        positions: Indices on position axes.
        features: The other indices.
    """

    base: str
    label: str
    adjoint: str
    positions: tuple[str, ...]
    features: tuple[str, ...]


@dataclass(frozen=True)
class Notation:
    """How one output format writes each thing."""

    entry: Callable[[Entry], Piece]
    fraction: Callable[[Piece, Piece], Piece]
    derivative: Callable[[str, str, bool], Piece]
    power: Callable[[str, str], str]
    big: Callable[[str, list[tuple[str, str, str]]], str]
    call: Callable[[str, str, list[str]], Piece]
    under: Callable[[str], str]
    paren: Callable[[str], str]
    transpose: str
    hadamard: str
    dot: str
    relations: tuple[str, str, str, str]
    where: str


OPERATORS = ("mean", "var", "softmax", "logsumexp")
ORDER = ("<=", "<", ">=", ">")


class Writer:
    """Writes the nodes of one tree in one notation."""

    def __init__(self, notation: Notation, root: S.Node, scope: Scope | None):
        self.to, self.scope = notation, scope
        self.positional = set(position_names(root)) | {"t", "s"}

    def write(self, node: S.Node) -> str:
        """Return a whole tree."""
        return self.piece(node).text

    def piece(self, node: S.Node) -> Piece:
        """Return one node's output."""
        handler: Callable[[S.Node], Piece] = getattr(self, "on_" + type(node).__name__.lower())
        return handler(node)

    def at(self, node: S.Node, level: int, last: bool = True) -> Piece:
        """Return a node's output, in parentheses if it binds less, or if a sum would swallow."""
        piece = self.piece(node)
        if piece.level >= level and (last or not piece.open):
            return piece
        return Piece(self.to.paren(piece.text), ATOM)

    def tight(self, node: S.Node) -> str:
        """Return an index expression without spaces."""
        return self.write(node).replace(" ", "")

    # leaves

    def on_num(self, node: S.Num) -> Piece:
        """A number as written."""
        return Piece(node.text, ATOM)

    def on_name(self, node: S.Name) -> Piece:
        """A name without indices."""
        return self.entry(node.name, (), ())

    def on_item(self, node: S.Item) -> Piece:
        """A name with indices, positions first."""
        flags = [self.is_position(node, i) for i in range(len(node.args))]
        texts = [self.tight(a) for a in node.args]
        positions = tuple(x for x, flag in zip(texts, flags, strict=True) if flag)
        features = tuple(x for x, flag in zip(texts, flags, strict=True) if not flag)
        return self.entry(node.name, positions, features)

    def is_position(self, node: S.Item, i: int) -> bool:
        """Tell whether the i-th index stands on a position axis."""
        tensor = self.scope.tensor(node.name) if self.scope else None
        if tensor is not None and i < len(tensor.dims):
            return tensor.dims[i].ordered
        arg = node.args[i]
        return not isinstance(arg, S.Name) or arg.name in self.positional

    def entry(self, name: str, positions: tuple[str, ...], features: tuple[str, ...]) -> Piece:
        """Write a name with its indices."""
        adjoint = self.scope.is_adjoint(name) if self.scope else name[:2] == "g_" != name
        if adjoint:
            inner = self.entry(name[2:], (), ()).text
            return self.to.entry(Entry("g", "", inner, positions, features))
        base, _, label = name.partition("_")
        if not base:
            base, label = name, ""
        return self.to.entry(Entry(base, label, "", positions, features))

    # operators

    def on_bin(self, node: S.Bin) -> Piece:
        """A binary operation."""
        if node.op in "+-":
            return self.sum_of(node)
        if node.op == "^":
            base = self.at(node.left, ATOM).text
            return Piece(self.to.power(base, self.tight(node.right)), POW)
        if node.op == "/":
            return self.quotient(node)
        if node.op == "*" and self.rank(node.left) and self.rank(node.right):
            return self.hadamard(node)
        return self.product(node)

    def sum_of(self, node: S.Bin) -> Piece:
        """``a + b`` or ``a - b``."""
        left = self.at(node.left, ADD)
        right = self.at(node.right, ADD if node.op == "+" else NEG)
        return Piece(f"{left.text} {node.op} {self.unsigned(right)}", ADD)

    def unsigned(self, piece: Piece) -> str:
        """Return an operand that follows another one: a sign in front needs parentheses."""
        return self.to.paren(piece.text) if piece.text.startswith("-") else piece.text

    def quotient(self, node: S.Bin) -> Piece:
        """``a / b``; the sign of a number stands before the fraction."""
        if isinstance(node.left, S.Neg) and isinstance(node.left.arg, S.Num):
            return self.on_neg(S.Neg(replace(node, left=node.left.arg)))
        return self.to.fraction(self.piece(node.left), self.piece(node.right))

    def hadamard(self, node: S.Bin) -> Piece:
        """An elementwise product of two arrays; matrix products in it get parentheses."""
        sides = [
            self.at(n, ATOM if isinstance(n, S.Bin) and n.op == "@" else HADAMARD, last=False).text
            for n in (node.left, node.right)
        ]
        return Piece(self.to.hadamard.join(sides), HADAMARD)

    def product(self, node: S.Bin) -> Piece:
        """Factors side by side: a scalar factor, or a matrix product."""
        signed = isinstance(node.left, S.Neg)
        left = self.at(node.left, NEG if signed else MUL, last=False)
        right = self.at(node.right, FRACTION)
        text = self.unsigned(right)
        between = self.to.dot if text[:1].isdigit() else " "
        return Piece(left.text + between + text, min(left.level, right.level, MUL), right.open)

    def on_neg(self, node: S.Neg) -> Piece:
        """Unary minus."""
        arg = self.at(node.arg, HADAMARD)
        return Piece("-" + self.unsigned(arg), NEG, arg.open)

    def on_transpose(self, node: S.Transpose) -> Piece:
        """``x.T``."""
        return Piece(self.at(node.arg, ATOM).text + self.to.transpose, DRESSED)

    def on_deriv(self, node: S.Deriv) -> Piece:
        """A derivative; the total one of the loss is written with a curly d, as lectures do."""
        curly = node.kind == "partial" or (isinstance(node.of, S.Name) and node.of.name == "L")
        return self.to.derivative(self.write(node.of), self.write(node.wrt), curly)

    # calls

    def on_call(self, node: S.Call) -> Piece:
        """A function, a binder or a constructor."""
        if node.func in ("sum", "prod"):
            return self.big(node)
        bound = node.args[:-1] if node.func in OPERATORS else ()
        under = self.to.under(",".join(self.tight(b) for b in bound)) if bound else ""
        show = self.tight if node.func == "delta" else self.write
        args = [show(a) for a in node.args[len(bound) :]]
        return self.to.call(node.func, under, args)

    def big(self, node: S.Call) -> Piece:
        """A sum or a product over indices."""
        *bound, body = node.args
        limits = [self.limit(b) for b in bound]
        return Piece(
            self.to.big(node.func, limits) + " " + self.at(body, HADAMARD).text, MUL, open=True
        )

    def limit(self, node: S.Node) -> tuple[str, str, str]:
        """Return name, first and last of a bound index; the last two may be empty."""
        if isinstance(node, S.Range) and node.first is not None and node.last is not None:
            return node.name, self.tight(node.first), self.tight(node.last)
        return self.tight(node), "", ""

    def on_range(self, node: S.Range) -> Piece:
        """A range outside a sum or product."""
        name, first, last = self.limit(node)
        return Piece(f"{name}={first}..{last}" if first else name, ATOM)

    # statements

    def on_condition(self, node: S.Condition) -> Piece:
        """``a <= b``; a number stands on the right."""
        sides, swap = (self.tight(node.left), self.tight(node.right)), is_number(node.left)
        sign = self.to.relations[node.shift + 2 * swap]
        return Piece(f"{sides[swap]} {sign} {sides[not swap]}", LOOSE)

    def on_statement(self, node: S.Statement) -> Piece:
        """``lhs = rhs for conditions``."""
        tail = ", ".join(self.write(c) for c in node.conditions)
        sign = "=" if node.relation == "=" else self.to.relations[ORDER.index(node.relation)]
        text = f"{self.write(node.lhs)} {sign} {self.write(node.rhs)}"
        return Piece(text + (self.to.where + tail if tail else ""), LOOSE)

    # shapes

    def rank(self, node: S.Node) -> int:
        """Return how many axes a value has open; 0 where the names are not known."""
        if isinstance(node, S.Name | S.Item):
            tensor = self.scope.tensor(node.name) if self.scope else None
            given = len(node.args) if isinstance(node, S.Item) else 0
            return max(0, len(tensor.dims) - given) if tensor is not None else 0
        if isinstance(node, S.Call):
            return self.rank_of_call(node)
        if isinstance(node, S.Deriv):
            return self.rank(node.of) + self.rank(node.wrt)
        if isinstance(node, S.Bin) and node.op == "@":
            return self.rank_of_matmul(node)
        return max((self.rank(c) for c in S.children(node)), default=0)

    def rank_of_call(self, node: S.Call) -> int:
        """Return the open axes of a call's value."""
        if node.func in ("delta", "count", "sqnorm", "norm", "leq", "entry"):
            return 0
        if node.func in ("diag", "eye"):
            return 2
        if node.func in ("min", "max"):
            return max(map(self.rank, node.args), default=0)
        last_axis = node.func == "logsumexp" and len(node.args) == 1
        return max(0, self.rank(node.args[-1]) - last_axis)

    def rank_of_matmul(self, node: S.Bin) -> int:
        """Return the open axes of a matrix product; of two vectors, a turned one decides."""
        ranks = (self.rank(node.left), self.rank(node.right))
        if ranks != (1, 1):
            return max(0, sum(ranks) - 2)
        column = self.scope is not None and self.scope.convention == "column"
        turned = node.right if column else node.left
        return 2 if isinstance(turned, S.Transpose) else 0


def is_number(node: S.Node) -> bool:
    """Tell whether a node is a number with or without a sign."""
    return isinstance(node.arg if isinstance(node, S.Neg) else node, S.Num)


def position_names(root: S.Node) -> Iterator[str]:
    """Yield the index names that stand with an offset, in a range or in a condition."""
    for node in S.descend(root):
        if isinstance(node, S.Range):
            yield node.name
        places = node.args if isinstance(node, S.Item) else ()
        after = isinstance(root, S.Statement) and node in root.conditions
        sides = (node.left, node.right) if isinstance(node, S.Condition) and after else ()
        for place in (*(p for p in places if isinstance(p, S.Bin)), *sides):
            yield from (n.name for n in S.descend(place) if isinstance(n, S.Name))


GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "eps": "ε", "epsilon": "ε", "eta": "η",
    "theta": "θ", "kappa": "κ", "lambda": "λ", "lam": "λ", "mu": "μ", "nu": "ν", "rho": "ρ",
    "sigma": "σ", "tau": "τ", "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "ell": "ℓ",
    "Sigma": "Σ", "Delta": "Δ", "Gamma": "Γ", "Theta": "Θ", "Lambda": "Λ", "Phi": "Φ",
    "Psi": "Ψ", "Omega": "Ω",
}  # fmt: skip
