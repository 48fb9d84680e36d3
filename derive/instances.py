"""Every value of a statement's free indices at explicit sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from derive.index import Expr
from derive.statement import Identity

Env = dict[Expr, int]


def instances(identity: Identity, sizes: Mapping[str, int]) -> Iterator[Env]:
    """Yield every value of the free indices that satisfies the conditions, at these sizes."""
    symbols = [s for s, _ in identity.free]
    size_env = {d.symbol: sizes[n] for n, d in identity.system.dims.items()}
    for values in product(*(range(sizes[d.name]) for _, d in identity.free)):
        env = dict(zip(symbols, values, strict=True))
        full = {**size_env, **env}
        if all(_number(a, full) <= _number(b, full) for a, b in identity.conditions):
            yield env


def _number(expr: Expr, env: Env) -> int:
    """Evaluate an index expression (a second reader beside `Explicit.index`, for conditions)."""
    return int(expr) if expr.is_Integer else sum(
        int(a) if a.is_Integer else env[a] for a in (expr.args if expr.is_Add else (expr,))
    )  # fmt: skip
