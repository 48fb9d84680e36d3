"""Printers over syntax nodes: the statement language itself, Unicode for a terminal, LaTeX.

``to_text`` gives text that the parser reads back to an equal tree. The other two give what a
lecture writes; both walk the tree in `derive.notation` with one table of notation each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from derive import syntax as S
from derive.notation import Writer
from derive.notation_latex import LATEX
from derive.notation_unicode import UNICODE

if TYPE_CHECKING:
    from derive.scope import Scope

ADD, MUL, NEG, POW, ATOM = 10, 20, 30, 40, 50  # the parser's binding strengths
Text = tuple[str, int]


def to_text(node: S.Node) -> str:
    """Return a node in the statement language; parsing it gives an equal tree.

    >>> from derive.parse import parse_statement
    >>> to_text(parse_statement("a[i]=(b[i]+c[i])*2", lambda name: True))
    'a[i] = (b[i] + c[i])*2'
    """
    return _text(node, 0)


def to_unicode(node: S.Node, scope: Scope | None = None) -> str:
    """Return a node as mathematics on one terminal line.

    Positions become subscripts and the other indices stay in brackets.

    Args:
        node: A statement or an expression.
        scope: Where its names come from. It tells position axes from others, and Hadamard products
            from scalar factors; without it, indices with an offset or a range are positions.

    >>> from derive.parse import parse_statement
    >>> s = "dL/dW_h[j,r] = sum(t, g_z[t,j]*h[t-1,r])"
    >>> print(to_unicode(parse_statement(s, lambda name: name in ("L", "W_h"))))
    ∂L/∂W_h[j,r] = Σₜ gᶻₜ[j] hₜ₋₁[r]
    """
    return Writer(UNICODE, node, scope).write(node)


def to_latex(node: S.Node, scope: Scope | None = None) -> str:
    r"""Return a node as LaTeX in a lecture's letters: ``g_z[t,j]`` is ``g^{z}_{t,j}``.

    Args:
        node: A statement or an expression.
        scope: As for `to_unicode`.

    >>> from derive.parse import parse_statement
    >>> s = "dL/dW_h[j,r] = sum(t, g_z[t,j]*h[t-1,r])"
    >>> print(to_latex(parse_statement(s, lambda name: name in ("L", "W_h"))))
    \frac{\partial \mathcal{L}}{\partial W_{h,jr}} = \sum_{t} g^{z}_{t,j} h_{t-1,r}
    """
    return Writer(LATEX, node, scope).write(node)


def _text(node: S.Node, level: int, tight: bool = False) -> str:
    """Return a node's text, in parentheses if it binds less than ``level``."""
    text, own = TEXT[type(node)](node, tight)
    return text if own >= level else f"({text})"


def _number(node: S.Num, tight: bool) -> Text:
    """A number ending in a point needs parentheses: ``1..T`` and ``1.T`` read otherwise."""
    return (f"({node.text})" if node.text.endswith(".") else node.text), ATOM


def _item(node: S.Item, tight: bool) -> Text:
    return f"{node.name}[{','.join(_text(a, 0, tight=True) for a in node.args)}]", ATOM


def _range(node: S.Range, tight: bool) -> Text:
    if node.first is None or node.last is None:
        return node.name, ATOM
    first, last = (_text(side, 0, tight=True) for side in (node.first, node.last))
    return f"{node.name}={first}..{last}", ATOM


def _call(node: S.Call, tight: bool) -> Text:
    indices = node.func == "delta"
    args = [_text(a, 0, tight or indices) for a in node.args]
    return f"{node.func}({(',' if indices else ', ').join(args)})", ATOM


def _bin(node: S.Bin, tight: bool) -> Text:
    level = {"+": ADD, "-": ADD, "^": POW}.get(node.op, MUL)
    right_assoc = node.op == "^"
    left = _text(node.left, level + right_assoc, tight)
    right = _text(node.right, POW if right_assoc else level + 1, tight)
    if isinstance(node.right, S.Neg) and not right.startswith("("):
        right = f"({right})"
    spaced = node.op == "@" or (node.op in "+-" and not tight)
    return left + (f" {node.op} " if spaced else node.op) + right, level


def _neg(node: S.Neg, tight: bool) -> Text:
    return "-" + _text(node.arg, NEG + 1, tight), NEG


def _transpose(node: S.Transpose, tight: bool) -> Text:
    text = _text(node.arg, ATOM)
    return (f"({text})" if isinstance(node.arg, S.Num) else text) + ".T", ATOM


def _deriv(node: S.Deriv, tight: bool) -> Text:
    mark = "d" if node.kind == "total" else "partial "
    return f"{mark}{_text(node.of, ATOM)}/{mark}{_text(node.wrt, ATOM)}", ATOM


def _condition(node: S.Condition, tight: bool) -> Text:
    sign = "<" if node.shift else "<="
    return f"{_text(node.left, 0, tight=True)} {sign} {_text(node.right, 0, tight=True)}", 0


def _statement(node: S.Statement, tight: bool) -> Text:
    tail = " for " + ", ".join(_text(c, 0) for c in node.conditions) if node.conditions else ""
    return f"{_text(node.lhs, 0)} {node.relation} {_text(node.rhs, 0)}{tail}", 0


TEXT: dict[type[S.Node], Callable[..., Text]] = {
    S.Num: _number,
    S.Name: lambda node, tight: (node.name, ATOM),
    S.Item: _item,
    S.Range: _range,
    S.Call: _call,
    S.Bin: _bin,
    S.Neg: _neg,
    S.Transpose: _transpose,
    S.Deriv: _deriv,
    S.Condition: _condition,
    S.Statement: _statement,
}
