"""Systems from texts in the statement language: shapes inferred, everything checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from derive import syntax as S
from derive.elaborate import Elaborator
from derive.equation import Equation, Moments, System
from derive.errors import DeriveError, nearest
from derive.index import Dim, Tensor, affine
from derive.moments import declared_random
from derive.nodes import entry_indices, kind, tensor_name, walk
from derive.parse import parse_expression, parse_statement
from derive.scope import Scope, free_names

Kinds = Mapping[str, tuple[str, ...]]


def build_system(
    name: str,
    sizes: tuple[str, ...],
    tensors: Mapping[str, tuple[str, ...]],
    equations: tuple[str, ...],
    *,
    losses: Mapping[str, str] | None = None,
    derived: tuple[str, ...] = (),
    parameters: tuple[str, ...] | None = None,
    targets: tuple[str, ...] = (),
    onehot: tuple[str, ...] = (),
    permutations: tuple[str, ...] = (),
    binary: tuple[str, ...] = (),
    nonnegative: tuple[str, ...] = (),
    initial: Mapping[str, str] | None = None,
    random: Mapping[str, Mapping[str, str]] | None = None,
    meanings: Mapping[str, str] | None = None,
    positions: tuple[str, ...] = ("T",),
    convention: str = "row",
) -> System:
    """Build a system from texts in the statement language.

    Args:
        name: Its identifier.
        sizes: Size names.
        tensors: Shapes of the given tensors, by name (a state's shape may be declared too).
        equations: ``z[t,j] = ...`` in order; the shapes of their left sides are inferred.
        losses: Scalar expressions by name.
        derived: Equations over adjoints (``G[t,j,r] = g_z[t,j]*h[t-1,r]``).
        parameters: Names of the trainable tensors; by default those without a position axis.
        targets: Names of the target tensors.
        onehot: Names of the targets whose rows are one-hot.
        permutations: Names of the given square matrices that permute: one 1 in each row and column.
        binary: Names of the given tensors all of whose entries are 0 or 1, such as padding masks.
        nonnegative: Names of the given tensors no entry of which is negative, such as LayerNorm's
            eps; drawn ones are positive.
        initial: ``zeros`` or ``given`` by state.
        random: ``mean`` (and ``variance``, ``third``, ``fourth``: central moments) of each tensor
            whose entries are random and independent: numbers, or names of given tensors.
        meanings: One line each for listings.
        positions: The sizes that are position axes.
        convention: ``row`` or ``column``.

    Raises:
        DeriveError: On any inconsistency, naming what was found and expected.
    """
    builder = _Builder(name, sizes, convention, dict(meanings or {}))
    statements = [parse_statement(text, lambda _: False) for text in equations]
    builder.check_left_sides(statements, tensors)
    shapes = builder.infer_shapes(tensors, statements)
    builder.order([*equations, *(losses or {}).values()], shapes, positions)
    states = {builder.left_side(s)[0] for s in statements}
    given = {n: z for n, z in tensors.items() if n not in states}
    kinds = {
        "onehot": (*onehot, *permutations),
        "permutation": permutations,
        "binary": binary,
        "nonnegative": nonnegative,
    }
    builder.declare(given, parameters, targets, kinds)
    for statement in statements:
        builder.declare_state(statement, shapes)
    builder.equations = [builder.equation(text) for text in equations]
    builder.fill_initial(dict(initial or {}))
    builder.random = declared_random(name, random or {}, builder.tensors, builder.elaborator,
                                     {e.tensor.name for e in builder.equations})  # fmt: skip
    builder.add_losses(losses or {})
    for text in derived:
        builder.add_derived(text)
    return builder.system()


def _items(text: str) -> list[S.Item]:
    """Return every indexed name in a statement or expression."""
    parse = parse_statement if "=" in _outside_calls(text) else parse_expression
    return [n for n in S.descend(parse(text, lambda _: False)) if isinstance(n, S.Item)]


def _outside_calls(text: str) -> str:
    """Return the text outside all parentheses: ``sum(t=0..1, x)`` has its = inside."""
    depth, out = 0, []
    for char in text:
        depth += (char in "([") - (char in ")]")
        if depth == 0:
            out.append(char)
    return "".join(out)


def refuse_extra(elaborator: Elaborator, rhs: S.Node, indices: list[str]) -> None:
    """Refuse a free name that is neither a tensor nor an index of the left side."""
    scope = elaborator.scope
    for name, place in free_names(rhs, scope).items():
        if name not in indices:
            message = f"{name!r} is neither a known name nor an index of the left side"
            known = [*indices, *scope.tensors, *scope.dims]
            raise elaborator.fail(place, message, nearest(name, known))


class _Builder:
    """The mutable state of `build_system`."""

    def __init__(
        self, name: str, sizes: tuple[str, ...], convention: str, meanings: dict[str, str]
    ):
        if convention not in ("row", "column"):
            raise DeriveError(f"{name}: convention is row or column; found {convention!r}")
        self.name, self.convention, self.meanings = name, convention, meanings
        self.dims = {s: Dim(s) for s in sizes}
        self.tensors: dict[str, Tensor] = {}
        self.equations: list[Equation] = []
        self.losses: dict[str, Equation] = {}
        self.derived: list[Equation] = []
        self.initial: dict[str, str] = {}
        self.random: dict[str, Moments] = {}

    def shape(self, name: str, sizes: tuple[str, ...]) -> tuple[Dim, ...]:
        """Return the dims of a declared shape."""
        for size in sizes:
            if size not in self.dims:
                raise DeriveError(
                    f"{self.name}: {name} has unknown size {size!r}", hint=nearest(size, self.dims)
                )
        return tuple(self.dims[size] for size in sizes)

    def infer_shapes(self, given: Mapping[str, tuple[str, ...]],
                     statements: list[S.Statement]) -> dict[str, tuple[str, ...]]:  # fmt: skip
        """Return the shape of every tensor; a state's from where its indices stand."""
        known = {n: Tensor(n, self.shape(n, sizes)) for n, sizes in given.items()}
        waiting = list(statements)
        while waiting:
            left = [s for s in waiting if not self.infer_one(s, known)]
            if len(left) == len(waiting):
                self.infer_one(left[0], known, final=True)
            waiting = left
        return {n: tuple(d.name for d in t.dims) for n, t in known.items()}

    def infer_one(
        self, statement: S.Statement, known: dict[str, Tensor], final: bool = False
    ) -> bool:
        """Infer the shape of one left side; tell whether it could be done."""
        name, indices = self.left_side(statement)
        if name in known:
            return True  # its shape is declared
        elaborator = Elaborator(Scope(self.dims, known, self.convention), statement.text)
        try:
            dims = [
                self.recurrent_axis(statement, slot)
                or elaborator.bind(i, [statement.rhs], {}, statement.lhs)
                for slot, i in enumerate(indices)
            ]
        except DeriveError as error:
            if final and "unknown name" in error.message:
                raise DeriveError(
                    f"{self.name}: nothing tells which axes the indices of {name} run over",
                    text=statement.text,
                    at=statement.lhs.span[0],
                    hint=f'declare its shape, as in tensors = {{ {name} = ["T"] }}',
                ) from None
            if final:
                raise
            return False
        known.setdefault(name, Tensor(name, tuple(dims)))
        return True

    def recurrent_axis(self, statement: S.Statement, slot: int) -> Dim | None:
        """Return the position axis of an index that the equation reads with an offset of itself."""
        name, _ = self.left_side(statement)
        axes = ["T"] if "T" in self.dims else list(self.dims) if len(self.dims) == 1 else []
        for node in S.descend(statement.rhs):
            if isinstance(node, S.Item) and node.name == name and len(node.args) > slot:
                if isinstance(node.args[slot], S.Bin) and axes:
                    return self.dims[axes[0]]
        return None

    def check_left_sides(self, statements: list[S.Statement], given: Iterable[str]) -> None:
        """Refuse a second equation for a name, and free names that no left side has."""
        names = [self.left_side(s)[0] for s in statements]
        for name in names:
            if names.count(name) > 1:
                raise DeriveError(f"{self.name}: {name} has two equations; each tensor has one")
        known = {n: Tensor(n, ()) for n in (*given, *names)}
        scope = Scope(self.dims, known, self.convention)
        for statement in statements:
            _, indices = self.left_side(statement)
            elaborator = Elaborator(scope, statement.text)
            elaborator.check_names(statement.rhs)
            refuse_extra(elaborator, statement.rhs, indices)

    def left_side(self, statement: S.Statement) -> tuple[str, list[str]]:
        """Return the name and index names that an equation defines."""
        lhs, text = statement.lhs, statement.text
        if statement.relation != "=":
            raise DeriveError(
                f"an equation defines a name by '='; found {statement.relation!r}", text=text,
                at=statement.lhs.span[1], hint="inequalities are statements: see 'claim'",
            )  # fmt: skip
        if statement.conditions:
            raise DeriveError("an equation holds for every index: no 'for'", text=text, at=0)
        if not isinstance(lhs, S.Name | S.Item):
            raise DeriveError("an equation defines a name, as in z[t,j] = ...", text=text, at=0)
        args = lhs.args if isinstance(lhs, S.Item) else ()
        names = [a.name for a in args if isinstance(a, S.Name)]
        if len(names) != len(args) or len(set(names)) != len(names):
            raise DeriveError(
                "the left side takes distinct index names: the equation holds at every position",
                text=text,
                at=lhs.span[0],
            )
        return lhs.name, names

    def order(self, texts: list[str], shapes: Mapping[str, tuple[str, ...]],
              positions: tuple[str, ...]) -> None:  # fmt: skip
        """Mark the sizes of axes that are indexed with an offset or a number as position axes."""
        ordered = set(positions)
        for item in (i for text in texts for i in _items(text)):
            slots = zip(item.args, shapes.get(item.name, ()), strict=False)
            ordered |= {z for a, z in slots if not isinstance(a, S.Name) or a.name in self.dims}
        self.dims = {n: Dim(n, n in ordered) for n in self.dims}

    def declare_state(self, statement: S.Statement, shapes: Mapping[str, tuple[str, ...]]) -> None:
        """Declare the left side of an equation."""
        name, _ = self.left_side(statement)
        self.add_tensor(name, self.shape(name, shapes[name]), "state")

    def add_tensor(self, name: str, dims: tuple[Dim, ...], role: str, **kinds: bool) -> Tensor:
        """Declare a tensor."""
        if name in self.tensors:
            raise DeriveError(f"{self.name}: {name} is declared twice")
        if name in self.dims or name in S.RESERVED or (name == "L" and role != "loss"):
            raise DeriveError(f"{self.name}: {name!r} is a size, or a word of the language")
        meaning = self.meanings.get(name, "")
        tensor = Tensor(name, dims, role=role, meaning=meaning, **kinds)
        self.tensors[name] = tensor
        return tensor

    def declare(self, shapes: Mapping[str, tuple[str, ...]], parameters: tuple[str, ...] | None,
                targets: tuple[str, ...], kinds: Kinds) -> None:  # fmt: skip
        """Declare the given tensors, each with the kinds whose lists hold its name."""
        for name, sizes in shapes.items():
            dims = self.shape(name, sizes)
            timeless = not any(d.ordered for d in dims)
            trainable = name in parameters if parameters is not None else timeless
            own = {kind: name in names for kind, names in kinds.items()}
            role = "target" if name in targets or own["onehot"] or own["binary"] else "input"
            role = "parameter" if trainable and role == "input" else role
            self.add_tensor(name, dims, role, **own)
        for wanted in (*(parameters or ()), *targets, *(n for v in kinds.values() for n in v)):
            if wanted not in self.tensors:
                raise DeriveError(
                    f"{self.name}: {wanted!r} is not declared", hint=nearest(wanted, self.tensors)
                )

    def elaborator(self, text: str) -> Elaborator:
        """Return an elaborator over what is declared so far."""
        return Elaborator(Scope(self.dims, self.tensors, self.convention), text)

    def equation(self, text: str) -> Equation:
        """Read one equation whose left side is declared."""
        scope = Scope(self.dims, self.tensors, self.convention)
        statement = parse_statement(text, scope.is_name)
        name, names = self.left_side(statement)
        elaborator = Elaborator(scope, text)
        refuse_extra(elaborator, statement.rhs, names)
        tensor = self.tensors[name]
        env = {n: (elaborator.fresh(n), d) for n, d in zip(names, tensor.dims, strict=True)}
        rhs = elaborator.scalar(statement.rhs, env)
        elaborator.check_masks()
        if any(kind(n) == "Expect" for n in walk(rhs)):
            message = f"{self.name}: an expected value stands in statements, not in equations"
            raise DeriveError(message, text=text, at=statement.rhs.span[0])
        return Equation(tensor, tuple(env[n][0] for n in names), rhs, text)

    def fill_initial(self, initial: dict[str, str]) -> None:
        """Give every state that is read before position 0 its lowest position."""
        for name, how in initial.items():
            if name not in self.tensors:
                raise DeriveError(
                    f"{self.name}: initial value of unknown {name!r}",
                    hint=nearest(name, self.tensors),
                )
            if how not in ("zeros", "given"):
                raise DeriveError(
                    f"{self.name}: initial {name} is 'zeros' or 'given'; found {how!r}"
                )
        lowest: dict[str, int] = {}
        for equation in self.equations:
            for read in equation.reads:
                tensor, indices = self.tensors[str(tensor_name(read))], entry_indices(read)
                for index, dim in list(zip(indices, tensor.dims, strict=True))[1:]:
                    if dim.ordered and affine(index).offset and affine(index).base != dim.symbol:
                        raise DeriveError(
                            f"{self.name}: {equation.text!r} reads {read}: only the first axis of "
                            "a tensor may be read at another position",
                            hint="put the position axis first",
                        )
                if tensor.dims and tensor.dims[0].ordered:
                    place = affine(indices[0])
                    back = place.offset if place.base in equation.indices else 0
                    if back > 0:
                        raise DeriveError(
                            f"{self.name}: {equation.text!r} reads {read}, a later position",
                            hint="a recurrence reads earlier positions, such as t-1",
                        )
                    lowest[tensor.name] = min(lowest.get(tensor.name, 0), back)
        for name, first in lowest.items():
            if first < 0:
                self.tensors[name] = replace(self.tensors[name], first=first)
                self.initial[name] = initial.get(name, "given")
        self.equations = [replace(e, tensor=self.tensors[e.tensor.name]) for e in self.equations]

    def add_losses(self, losses: Mapping[str, str]) -> None:
        """Add the scalar losses; each is an equation for ``L``."""
        if not losses:
            return
        for name, text in losses.items():
            elaborator = self.elaborator(text)
            node = parse_expression(text, elaborator.scope.is_name)
            free = free_names(node, elaborator.scope)
            if free:
                known = [*self.tensors, *self.dims]
                raise elaborator.fail(
                    next(iter(free.values())),
                    f"loss {name}: {next(iter(free))!r} is not a known name or a bound index",
                    nearest(next(iter(free)), known),
                )
            rhs = elaborator.scalar(node, {})
            self.losses[name] = Equation(Tensor("L", (), role="loss"), (), rhs, f"L = {text}")
        self.add_tensor("L", (), "loss")

    def add_derived(self, text: str) -> None:
        """Add a quantity that is defined from adjoints."""
        scope = Scope(self.dims, self.tensors, self.convention)
        statement = parse_statement(text, scope.is_name)
        name, indices = self.left_side(statement)
        elaborator = Elaborator(scope, text)
        dims = tuple(elaborator.bind(i, [statement.rhs], {}, statement.lhs) for i in indices)
        self.add_tensor(name, dims, "derived")
        self.derived.append(self.equation(text))

    def system(self) -> System:
        """Return the checked system."""
        return System(
            self.name,
            self.dims,
            self.tensors,
            tuple(self.equations),
            self.losses,
            tuple(self.derived),
            self.initial,
            self.convention,
            random=self.random,
        )
