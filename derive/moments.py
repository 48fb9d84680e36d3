"""The random tensors of a system: their moments, read and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from derive.elaborate import Elaborator
from derive.equation import Moments, moment_indices
from derive.errors import DeriveError, nearest
from derive.index import Expr, Tensor
from derive.nodes import tensor_name, walk
from derive.parse import parse_expression

MOMENTS = ("mean", "variance", "third", "fourth")
Reader = Callable[[str], Elaborator]


def declared_random(system: str, random: Mapping[str, Mapping[str, str]],
                    tensors: Mapping[str, Tensor], reader: Reader,
                    computed: set[str]) -> dict[str, Moments]:  # fmt: skip
    """Return the moments of the random tensors of a system.

    Args:
        system: Its name, for messages.
        random: The moments as written, by tensor.
        tensors: Everything that is declared.
        reader: Makes an elaborator of a text.
        computed: The tensors that have an equation.

    Raises:
        DeriveError: On a tensor that is not given, an unknown or impossible moment.
    """
    found = {}
    for name, moments in random.items():
        if name not in tensors or name in computed:
            known = [n for n in tensors if n not in computed]
            message = f"{system}: random {name!r} is not a given tensor"
            raise DeriveError(message, hint=nearest(name, known))
        if "mean" not in moments or any(m not in MOMENTS for m in moments):
            raise DeriveError(
                f"{system}: random {name} takes {', '.join(MOMENTS)} (mean at least); "
                f"found {sorted(moments)}"
            )
        read = {m: moment(tensors[name], text, reader) for m, text in moments.items()}
        found[name] = Moments(**read)
    for name, declared in found.items():
        check(system, tensors[name], declared, set(found))
    return found


def moment(tensor: Tensor, text: str, reader: Reader) -> Expr:
    """Read a moment: a number, or a given scalar or tensor of the shape of the random one."""
    elaborator = reader(text)
    node = parse_expression(text, elaborator.scope.is_name)
    val = elaborator.value(node, {})
    if val.axes and val.axes != tensor.dims:
        raise elaborator.fail(
            node,
            f"a moment of {tensor.name} is a scalar or has shape {tensor.shape}; found {val.shape}",
        )
    return val.build(moment_indices(tensor) if val.axes else ())


def check(system: str, tensor: Tensor, moments: Moments, random: set[str]) -> None:
    """Refuse moments that no independent entries have, or that are random themselves."""
    name = tensor.name
    given = (moments.mean, moments.variance, moments.third, moments.fourth)
    names = {str(tensor_name(n)) for m in given if m is not None for n in walk(m)}
    if names & random:
        read = sorted(names & random)[0]
        raise DeriveError(f"{system}: a moment of {name} reads random {read}")
    if tensor.onehot:
        raise DeriveError(f"{system}: {name} is one-hot: its entries are not independent")
    spread, fourth = moments.variance, moments.fourth
    low = spread**2 if spread is not None and spread.is_Rational else 0
    negative = spread is not None and spread.is_Rational and spread < 0
    if negative or (fourth is not None and fourth.is_Rational and fourth < low):
        hint = "a variance is at least 0, a fourth moment at least its square"
        raise DeriveError(f"{system}: no distribution has the moments of {name}", hint=hint)
