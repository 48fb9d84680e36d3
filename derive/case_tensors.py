"""Given tensors of a case: exact entries, sizes inferred from their shapes and checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Any, TypeAlias

from derive.case_read import MAX_SCALARS, Entry
from derive.equation import System
from derive.index import Expr, Tensor
from derive.nodes import tensor_name, walk

MAX_SIZE = 10_000

Nested: TypeAlias = "Fraction | tuple[Nested, ...]"


@dataclass
class Sizes:
    """The sizes known so far, each with who said so."""

    values: dict[str, int] = field(default_factory=dict)
    said_by: dict[str, str] = field(default_factory=dict)

    def learn(self, entry: Entry, who: str, name: str, value: int) -> None:
        """Take a size from a tensor, or refuse it if another says otherwise.

        Raises:
            DeriveError: Naming both tensors and both sizes.
        """
        if not 1 <= value <= MAX_SIZE:
            raise entry.error(f"size {name} is from 1 to {MAX_SIZE}; found {value}")
        known = self.values.setdefault(name, value)
        first = self.said_by.setdefault(name, who)
        if known != value:
            raise entry.error(f"{who} has {name} = {value}, but {first} has {name} = {known}")


def read_givens(
    system: System, entries: Mapping[str, Entry], stated: Mapping[str, Entry]
) -> tuple[dict[str, Nested], dict[str, int]]:
    """Read the given tensors of a group.

    Args:
        system: Whose tensors they are; its loss selected, if any.
        entries: By name: a given tensor, or ``X_init`` for the values of X before position 0.
        stated: Sizes that the group states itself.

    Returns:
        The values by name and the sizes by name.

    Raises:
        DeriveError: On a wrong shape, two sizes that disagree, or something that is no number.
    """
    sizes = Sizes()
    for name, entry in stated.items():
        sizes.learn(entry, "the table of sizes", name, entry.integer())
    values: dict[str, Nested] = {}
    ids: dict[str, Entry] = {}
    for name, entry in entries.items():
        axes = axes_of(system, name)
        if is_class_ids(system, name, entry):
            ids[name] = entry
            learn_shape(sizes, entry, name, axes[:-1])
        else:
            learn_shape(sizes, entry, name, axes)
            values[name] = entry_values(entry)
    for name, entry in ids.items():
        check_count(entry, [sizes.values.get(a, 1) for a in axes_of(system, name)])
        values[name] = onehot_rows(entry, name, axes_of(system, name)[-1], sizes)
    for name, entry in entries.items():
        check_onehot(system, name, entry, values[name])
    return values, sizes.values


def check_onehot(system: System, name: str, entry: Entry, value: Nested) -> None:
    """Refuse rows that are not one-hot, and columns of a permutation that are not.

    Raises:
        DeriveError: Naming the row.
    """
    tensor = given_names(system)[name]
    if not tensor.onehot or name != tensor.name:
        return
    matrices: list[Any] = [value]
    for _ in range(max(0, len(tensor.dims) - 2)):
        matrices = [m for v in matrices for m in v]
    for matrix in matrices:
        rows = matrix if len(tensor.dims) > 1 else (matrix,)
        columns = zip(*rows, strict=True) if tensor.permutation else ()
        for kind_, lines in (("row", rows), ("column", columns)):
            for place, line in enumerate(lines):
                if sorted(line) != [0] * (len(line) - 1) + [1]:
                    shown = ", ".join(map(str, line))
                    raise entry.error(
                        f"{kind_} {place} of {name} has one 1 and else zeros; found ({shown})"
                    )


def given_names(system: System) -> dict[str, Tensor]:
    """Return what a group may give, by name: ``X`` and, where X is read before 0, ``X_init``."""
    names = {tensor.name: tensor for tensor in system.givens}
    early = {f"{t.name}_init": t for t in system.tensors.values() if t.first < 0}
    return {**names, **early}


def canonical(name: str) -> str:
    """Return ``X_init`` for its other spellings ``X_{-1}`` and ``X_-1``."""
    for ending in ("_{-1}", "_-1"):
        if name.endswith(ending):
            return name[: -len(ending)] + "_init"
    return name


def axes_of(system: System, name: str) -> tuple[str, ...]:
    """Return the size names of a given's axes; of ``X_init`` those after the position.

    Where a tensor is read k > 1 positions early, its initial value has a leading axis of k rows,
    the earliest first; that axis is named by its number.
    """
    tensor = given_names(system)[name]
    names = tuple(d.name for d in tensor.dims)
    if name == tensor.name:
        return names
    return names[1:] if tensor.first == -1 else (str(-tensor.first), *names[1:])


def is_class_ids(system: System, name: str, entry: Entry) -> bool:
    """Tell whether a one-hot tensor is given as class ids: one axis fewer than it has."""
    tensor = given_names(system)[name]
    return tensor.onehot and depth_of(entry.value) == len(tensor.dims) - 1


def depth_of(value: object) -> int:
    """Return how deep arrays nest along their first entries."""
    return 1 + depth_of(value[0]) if isinstance(value, list) and value else 0


def learn_shape(sizes: Sizes, entry: Entry, name: str, axes: tuple[str, ...]) -> None:
    """Check that an array is full and has these axes, and learn their sizes."""
    shape = shape_of(entry)
    if len(shape) != len(axes):
        expected = f"({', '.join(axes)})" if axes else "one number"
        raise entry.error(f"expected {expected}; found {len(shape)} axes of sizes {list(shape)}")
    for axis, size in zip(axes, shape, strict=True):
        if axis.isdigit() and int(axis) != size:
            raise entry.error(f"expected {axis} rows, the earliest position first; found {size}")
        if not axis.isdigit():
            sizes.learn(entry, name, axis, size)


def shape_of(entry: Entry) -> tuple[int, ...]:
    """Return the shape of a full array.

    Raises:
        DeriveError: If its rows differ in length, or it has too many entries.
    """
    if not isinstance(entry.value, list):
        return ()
    rows = entry.array()
    if not rows:
        raise entry.error("an empty array: sizes are at least 1")
    shapes = [shape_of(row) for row in rows]
    for place, shape in enumerate(shapes):
        if shape != shapes[0]:
            sizes = [list(s) if s else "a number" for s in (shapes[0], shape)]
            raise entry.error(f"row 0 is {sizes[0]}, row {place} is {sizes[1]}: rows must be alike")
    shape = (len(rows), *shapes[0])
    check_count(entry, shape)
    return shape


def check_count(entry: Entry, shape: Iterable[int]) -> None:
    """Refuse a tensor with too many entries."""
    count = prod(shape)
    if count > MAX_SCALARS:
        raise entry.error(f"a tensor may have {MAX_SCALARS} entries; found {count}")


def entry_values(entry: Entry) -> Nested:
    """Read nested arrays of exact numbers."""
    if isinstance(entry.value, list):
        return tuple(entry_values(child) for child in entry.array())
    return entry.number()


def onehot_rows(entry: Entry, name: str, axis: str, sizes: Sizes) -> Nested:
    """Return class ids as one-hot rows."""
    if axis not in sizes.values:
        raise entry.error(
            f"class ids do not say how many classes there are: size {axis} is unknown",
            f"give a tensor with an axis {axis}, or sizes = {{ {axis} = 3 }}",
        )
    count = sizes.values[axis]
    if isinstance(entry.value, list):
        return tuple(onehot_rows(child, name, axis, sizes) for child in entry.array())
    found = entry.integer()
    if not 0 <= found < count:
        raise entry.error(f"a class id of {name} is from 0 to {count - 1}; found {found}")
    return tuple(Fraction(int(c == found)) for c in range(count))


def zeros(shape: tuple[int, ...]) -> Nested:
    """Return an array of zeros."""
    return tuple(zeros(shape[1:]) for _ in range(shape[0])) if shape else Fraction(0)


def fill_initial(system: System, values: dict[str, Nested], sizes: Mapping[str, int]) -> None:
    """Give the states whose system says ``zeros`` their initial value, where a group gives none."""
    for name, tensor in given_names(system).items():
        if name == tensor.name or name in values or system.initial.get(tensor.name) != "zeros":
            continue
        axes = axes_of(system, name)
        shape = tuple(int(a) if a.isdigit() else sizes.get(a, 0) for a in axes)
        if 0 not in shape and prod(shape) <= MAX_SCALARS:
            values[name] = zeros(shape)


def needed(system: System, names: Iterable[str]) -> set[str]:
    """Return the givens that these tensors depend on, initial values included."""
    waiting, seen, found = list(names), set[str](), set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        tensor, equation = system.tensors[name], system.by_name.get(name)
        if tensor.first < 0:
            found.add(f"{name}_init")
        if equation is None:
            found.add(name)
        else:
            waiting += [str(tensor_name(read)) for read in equation.reads]
    return found


def below(system: System, names: Iterable[str]) -> set[str]:
    """Return the names of the tensors that these depend on, themselves included."""
    waiting, found = list(names), set[str]()
    while waiting:
        here = waiting.pop()
        if here not in found:
            found.add(here)
            equation = system.by_name.get(here)
            waiting += [str(tensor_name(read)) for read in equation.reads] if equation else []
    return found


def sizes_read(system: System, expr: Expr) -> set[str]:
    """Return the names of the sizes that an expression reads, itself or through equations."""
    names = {str(n) for node in walk(expr) if (n := tensor_name(node)) is not None}
    rules = [system.by_name[n].rhs for n in below(system, names) if n in system.by_name]
    nodes = (node for part in (expr, *rules) for node in walk(part))
    return {n.name for n in nodes if n.is_Symbol and n.is_integer and n.is_positive}
