"""Text to syntax tree: own tokenizer and Pratt parser, bounded, no eval."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from derive import syntax as S
from derive.errors import DeriveError, nearest
from derive.syntax import (
    BINDER_CALLS,
    Bin,
    Call,
    Condition,
    Deriv,
    Item,
    Name,
    Neg,
    Node,
    Num,
    Range,
    Statement,
    Transpose,
)

MAX_CHARS, MAX_TOKENS, MAX_DEPTH, MAX_DIGITS, MAX_CHAIN = 4000, 1500, 60, 40, 120


TOKEN = re.compile(
    r"\s*(?:(?P<num>\d+(?:\.(?!\.)\d*)?(?:[eE][+-]?\d{1,3})?)|(?P<name>[^\W\d]\w*)"
    r"|(?P<op>\.\.|\.T\b|\*\*|<=|>=|[-+*/^@()\[\],=<>]))"
)


HINTS = {
    "!": "a statement is an equation or an inequality; what is recorded as false is 'expected'",
    ".": "a function stands without its module: tanh(x), not np.tanh(x)",
    "\u2202": "write a derivative as dL/dW_h, or partial z[t,j]/partial h[t,j]",
    "\u2211": "write a sum as sum(t, x[t])",
    "\u2264": "write <=",
    "\u2265": "write >=",
    "{": "an index stands in brackets: h[t,j]",
}
"""Ways out for the characters that people write instead."""
SIGNS = str.maketrans({"\u2212": "-", "\u00b7": "*"})


@dataclass(frozen=True)
class Token:
    """One token and where it stands."""

    kind: str
    text: str
    at: int


def tokenize(text: str) -> list[Token]:
    """Split a statement into tokens, ending with one of kind ``end``.

    Raises:
        DeriveError: On an unknown character, or a text over the limits.
    """
    if len(text) > MAX_CHARS:
        raise DeriveError(
            f"a statement may have {MAX_CHARS} characters; this one has {len(text)}",
            hint="split it, or name parts of it as equations of a [system]",
        )
    tokens, at = [], 0
    clean = text.translate(SIGNS)
    while clean[at:].strip():
        match = TOKEN.match(clean, at)
        if match is None:
            at += len(clean[at:]) - len(clean[at:].lstrip())
            hint = HINTS.get(text[at], "")
            raise DeriveError(f"unexpected character {text[at]!r}", text=text, at=at, hint=hint)
        group = str(match.lastgroup)
        tokens.append(Token(group, match[group], match.start(group)))
        at = match.end()
    if len(tokens) > MAX_TOKENS:
        raise DeriveError(f"a statement may have {MAX_TOKENS} tokens; this has {len(tokens)}")
    return [*tokens, Token("end", "end of the statement", len(clean.rstrip()))]


BINARY = {"+": 10, "-": 10, "*": 20, "/": 20, "@": 20, "^": 40, "**": 40}


class Parser:
    """A Pratt parser over one statement."""

    def __init__(self, text: str, is_name: Callable[[str], bool], known: Iterable[str] = ()):
        self.text, self.is_name, self.known = text, is_name, tuple(known)
        self.tokens, self.pos, self.depth = tokenize(text), 0, 0

    @property
    def now(self) -> Token:
        """The current token."""
        return self.tokens[self.pos]

    def fail(self, expected: str, token: Token | None = None, hint: str = "") -> DeriveError:
        """Return the error for the current token."""
        token = token or self.now
        found = token.text if token.kind == "end" else repr(token.text)
        return DeriveError(
            f"expected {expected}; found {found}", text=self.text, at=token.at, hint=hint
        )

    def take(self, text: str) -> bool:
        """Consume the token if it is this one."""
        if self.now.text == text and self.now.kind != "end":
            self.pos += 1
            return True
        return False

    def need(self, text: str) -> Token:
        """Consume this token or fail."""
        token = self.now
        if not self.take(text):
            raise self.fail(repr(text))
        return token

    def end(self) -> int:
        """Return the end offset of the last consumed token."""
        last = self.tokens[self.pos - 1]
        return last.at + len(last.text)

    def statement(self) -> Statement:
        """Parse ``lhs = rhs [for conditions]``, or an inequality in place of the equation."""
        lhs = self.expression()
        relation = self.now.text
        if relation not in S.RELATIONS:
            raise self.fail("'=' (or <=, <, >=, >)")
        self.pos += 1
        if self.now.text in S.RELATIONS:
            raise self.fail("a number, a name or '('", hint="an equation has one '='")
        rhs = self.expression()
        conditions: list[Condition] = []
        if self.take("for"):
            conditions.append(self.condition())
            while self.take(","):
                conditions.append(self.condition())
        if self.now.kind != "end":
            hint = "one statement is lhs = rhs" if self.now.text in S.RELATIONS else ""
            raise self.fail("the end of the statement", hint=hint)
        return Statement(lhs, rhs, tuple(conditions), self.text, relation,
                         span=(0, len(self.text)))  # fmt: skip

    def condition(self) -> Condition:
        """Parse a comparison of two index expressions."""
        return self.comparison(self.now.at, self.expression())

    def comparison(self, start: int, left: Node) -> Condition:
        """Parse the rest of a comparison."""
        token = self.now
        if token.text not in S.RELATIONS[1:]:
            raise self.fail("<=, <, >= or >")
        self.pos += 1
        right = self.expression()
        if token.text[0] == ">":
            left, right = right, left
        return Condition(left, right, 0 if "=" in token.text else 1, span=(start, self.end()))

    def expression(self, level: int = 0) -> Node:
        """Parse operators that bind tighter than ``level``."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise DeriveError(f"nested deeper than {MAX_DEPTH}", text=self.text, at=self.now.at)
        start, left = self.now.at, self.prefix()
        chain = 0
        while self.now.kind == "op" and BINARY.get(self.now.text, -1) > level:
            op, chain = self.now.text, chain + 1
            if chain > MAX_CHAIN:
                raise self.fail(f"at most {MAX_CHAIN} operators in a row", hint="name parts of it")
            self.pos += 1
            # ^ is right associative, so its right side may hold another ^
            right = self.expression(BINARY[op] - (1 if op in ("^", "**") else 0))
            left = Bin("^" if op == "**" else op, left, right, span=(start, self.end()))
        self.depth -= 1
        return left

    def prefix(self) -> Node:
        """Parse unary minus, else a primary with its postfixes."""
        start = self.now.at
        if self.take("-"):
            return Neg(self.expression(30), span=(start, self.end()))
        if self.take("+"):
            return self.expression(30)
        node = self.primary()
        for turn in range(MAX_CHAIN):
            if not self.take(".T"):
                break
            if turn > 3:
                raise self.fail("at most 4 transposes in a row")
            node = Transpose(node, span=(start, self.end()))
        return node

    def primary(self) -> Node:
        """Parse a number, name, item, call, derivative or parenthesis."""
        token = self.now
        self.pos += 1
        if token.kind == "num":
            return self.number(token)
        if token.text == "(" and token.kind == "op":
            inner = self.expression()
            self.need(")")
            return inner
        if token.kind != "name" or token.text == "for":
            raise self.fail("a number, a name or '('", token)
        if token.text == "partial":
            return self.derivative("partial", token)
        if self.is_differential(token.text):
            return self.derivative("total", token)
        if self.now.text == "(" and self.now.kind == "op":
            return self.call(token)
        return self.item(token.text, token.at)

    def number(self, token: Token) -> Num:
        """Return an exact number."""
        if len(token.text) > MAX_DIGITS or re.search(r"[eE][+-]?\d{3}", token.text):
            raise self.fail(f"a number of at most {MAX_DIGITS} digits", token)
        return Num(Fraction(token.text), token.text, span=(token.at, self.end()))

    def is_differential(self, name: str) -> bool:
        """Tell whether a name is d followed by a known name, and not itself a known name."""
        return (
            name[0] == "d" and len(name) > 1 and not self.is_name(name) and self.is_name(name[1:])
        )

    def derivative(self, kind: str, token: Token) -> Deriv:
        """Parse the rest of ``dA/dB`` or ``partial A/partial B``."""
        of = self.differential(kind, token)
        slash = self.now
        if not self.take("/"):
            raise self.fail("'/' and what the derivative is by", slash, hint="write dL/dW[j,r]")
        below = self.now
        self.pos += 1
        if below.kind != "name":
            raise self.fail("what the derivative is by", below)
        wrt = self.differential(kind, below)
        return Deriv(kind, of, wrt, span=(token.at, self.end()))

    def differential(self, kind: str, token: Token) -> Node:
        """Parse one side of a derivative."""
        if kind == "partial":
            if token.text != "partial" or self.now.kind != "name":
                raise self.fail("'partial' and a name", token)
            self.pos += 1
            name = self.tokens[self.pos - 1]
            return self.item(name.text, name.at)
        if not self.is_differential(token.text):
            hint = nearest(token.text[1:], self.known) if token.text[0] == "d" else ""
            raise self.fail("d and a known name, as in dL/dW[j,r]", token, hint)
        return self.item(token.text[1:], token.at + 1)

    def item(self, name: str, start: int) -> Node:
        """Parse ``name`` or ``name[indices]``."""
        if not self.take("["):
            return Name(name, span=(start, self.end()))
        args = [self.expression()]
        while self.take(","):
            args.append(self.expression())
        self.need("]")
        return Item(name, tuple(args), span=(start, self.end()))

    def call(self, token: Token) -> Call:
        """Parse the arguments of a call; all but the last of a binder are bound indices."""
        self.need("(")
        args: list[Node] = []
        while not args or self.take(","):
            args.append(self.argument(token.text in BINDER_CALLS))
        self.need(")")
        return Call(token.text, tuple(args), span=(token.at, self.end()))

    def argument(self, binder: bool) -> Node:
        """Parse one argument; in a binder, ``t=a..b`` is a range."""
        start = self.now
        node = self.expression()
        if self.now.text in S.RELATIONS[1:]:
            return self.comparison(start.at, node)
        if not (binder and isinstance(node, Name) and self.take("=")):
            return node
        first = self.expression()
        self.need("..")
        last = self.expression()
        return Range(node.name, first, last, span=(start.at, self.end()))


def parse_statement(
    text: str, is_name: Callable[[str], bool], known: Iterable[str] = ()
) -> Statement:
    """Parse ``lhs = rhs``; ``is_name`` says which names are tensors (to read ``dL/dW``).

    ``known`` names are for the hint where a differential is of no known name.

    Raises:
        DeriveError: With the place and what was expected.
    """
    return Parser(text, is_name, known).statement()


def parse_expression(text: str, is_name: Callable[[str], bool]) -> Node:
    """Parse one expression.

    Raises:
        DeriveError: With the place and what was expected.
    """
    parser = Parser(text, is_name)
    node = parser.expression()
    if parser.now.kind != "end":
        raise parser.fail("the end of the expression")
    return node
