"""Writing a new case: a commented file to fill in, or an exercise with its worked values."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from derive import topics
from derive.case import Group
from derive.case_decimals import decimal_text, rounded
from derive.case_tensors import Nested, axes_of, below, given_names, needed
from derive.case_values import Index, Quantity, Values
from derive.equation import System
from derive.index import Tensor
from derive.topics import Topic

SIZES = {"T": 3, "D": 2, "H": 2, "C": 3}
OTHER_SIZE = 2
DECIMALS = 4

HEAD = """\
# {title}
# Check it with:  derive check {topic} --case THIS-FILE
#
# Numbers are read as exact decimals, never as floats. Sizes are read off the tensors, which must
# agree.

[case]
id = "{id}"
title = "{title}"
convention = "{convention}"   # row or column: how vectors stand in matrix notation

[group.{group}]   # one worked example; a file may hold several
topic = "{topic}"
system = "{system}"   # derive list quantities {topic}
"""
EXPECT_HELP = """
# What is printed, digit by digit: each entry must be the correct rounding of the exact value.
# quantity: a tensor, an adjoint g_X, a derivative dL/dX, or any expression; at: fixed positions.
# Add  where = "slide title"  and  line = 12  to say where it stands.

"""
CLAIM_HELP = """\
# What is stated, for every size. expected = "fails" records a statement that is known to be false.

"""
TASKS = """
# Exercise: work out by hand, to {decimals} decimals, {asked}.
# Then write each result as an [[expect]] like the ones below, and check the file.
"""


@dataclass(frozen=True)
class Draft:
    """What a new case is made of.

    Args:
        topic: Its topic.
        system: The topic's first system, a loss selected if it has any.
        nice: Whether its numbers are short, for pen and paper.
        seed: Which numbers.
    """

    topic: Topic
    system: System
    nice: bool
    seed: int

    @property
    def name(self) -> str:
        """The name of its group."""
        return "exercise" if self.nice else "example"

    @property
    def sizes(self) -> dict[str, int]:
        """The size values."""
        return {name: SIZES.get(name, OTHER_SIZE) for name in self.system.dims}

    @property
    def states(self) -> list[Tensor]:
        """What the loss is computed through, in order; every state if there is no loss."""
        equations = [e.tensor for e in self.system.equations if e.tensor.name != "L"]
        if not self.system.loss:
            return equations
        return [t for t in equations if t.name in self.reached]

    @property
    def reached(self) -> set[str]:
        """The names of all tensors that the loss depends on."""
        return below(self.system, ["L"])

    @property
    def given(self) -> dict[str, Tensor]:
        """The givens of the file: all, or in an exercise those that its results need."""
        known = given_names(self.system)
        wanted = needed(self.system, [t.name for t in self.states])
        wanted |= needed(self.system, ["L"]) if self.system.loss else set()
        every = not self.nice or not self.states
        return {n: t for n, t in known.items() if n in wanted or every}

    def numbers(self, name: str, tensor: Tensor) -> Nested:
        """Draw the entries of a given; class ids stand for one-hot rows."""
        rng = random.Random(f"{self.topic.name}:{self.seed}:{name}")
        axes = axes_of(self.system, name)
        shape = [int(a) if a.isdigit() else self.sizes[a] for a in axes]
        if tensor.permutation:
            return permuted(shape, rng)
        if tensor.onehot:
            return fill(shape[:-1], lambda: Fraction(rng.randrange(shape[-1])))
        if tensor.binary:
            return masked(shape, rng)
        places = 10 if self.nice else 100
        most = places if tensor.role == "input" else places // 2
        signs = (1,) if tensor.nonnegative else (-1, 1)
        return fill(shape, lambda: Fraction(rng.choice(signs) * rng.randint(1, most), places))

    def group(self) -> Group:
        """Return the worked example."""
        givens = {}
        for name, tensor in self.given.items():
            values = self.numbers(name, tensor)
            classes = self.sizes[tensor.dims[-1].name] if tensor.onehot else 0
            givens[name] = onehot(values, classes) if classes else values
        return Group(self.name, self.topic.name, self.system, self.system.loss, givens, self.sizes)


def fill(shape: list[int], draw: Callable[[], Fraction]) -> Nested:
    """Return a nested array of draws."""
    if not shape:
        return draw()
    return tuple(fill(shape[1:], draw) for _ in range(shape[0]))


def permuted(shape: list[int], rng: random.Random) -> Nested:
    """Return the class ids of permutation matrices, one each row."""
    if len(shape) > 2:
        return tuple(permuted(shape[1:], rng) for _ in range(shape[0]))
    return tuple(map(Fraction, rng.sample(range(shape[-1]), shape[-1])))


def masked(shape: list[int], rng: random.Random) -> Nested:
    """Return zeros and ones, the first of each row a one: a row needs a source."""
    if len(shape) > 1:
        return tuple(masked(shape[1:], rng) for _ in range(shape[0]))
    return (Fraction(1), *(Fraction(int(rng.random() < 0.6)) for _ in range(shape[0] - 1)))


def onehot(values: Nested, classes: int) -> Nested:
    """Return class ids as one-hot rows."""
    if isinstance(values, tuple):
        return tuple(onehot(v, classes) for v in values)
    return tuple(Fraction(int(values == c)) for c in range(classes))


def toml(values: Nested, decimals: int) -> str:
    """Write nested numbers as TOML."""
    if isinstance(values, tuple):
        return "[" + ", ".join(toml(v, decimals) for v in values) + "]"
    return decimal_text(values, decimals)


def new_case(topic: str, nice: bool = False, seed: int = 0, solutions: bool = False) -> str:
    """Write a case file on a topic that passes its own check.

    Args:
        topic: The topic's name.
        nice: An exercise with short decimals, for pen and paper.
        seed: Another exercise for each seed.
        solutions: With every state, adjoint and gradient, correctly rounded.

    Returns:
        The text of the file.

    Raises:
        DeriveError: On an unknown topic.
    """
    found = topics.load(topic)
    system = found.default
    if system.losses:
        system = system.with_loss(next(iter(system.losses)))
    draft = Draft(found, system, nice, seed)
    parts = [head(draft), givens(draft)]
    if nice and not solutions:
        parts.append(TASKS.format(decimals=DECIMALS, asked=asked(draft)))
    parts += [EXPECT_HELP, *expects(draft, solutions), *claims(draft)]
    return "".join(parts)


def head(draft: Draft) -> str:
    """Write the tables [case] and [group], up to the tensors."""
    kind = "exercise" if draft.nice else "case"
    loss = draft.system.loss
    text = HEAD.format(
        title=f"{draft.topic.title}: {kind} {draft.seed}" if draft.nice else draft.topic.title,
        topic=draft.topic.name,
        id=f"{draft.topic.name}-{kind}-{draft.seed}" if draft.nice else f"my-{draft.topic.name}",
        convention=draft.system.convention,
        group=draft.name,
        system=draft.system.name,
    )
    if loss:
        text += f'loss = "{loss}"   # one of: {", ".join(draft.system.losses)}\n'
    shown = {a for name in draft.given for a in axes_of(draft.system, name)}
    unseen = ", ".join(f"{n} = {v}" for n, v in draft.sizes.items() if n not in shown)
    return text + (f"sizes = {{ {unseen} }}   # no tensor shows them\n" if unseen else "")


def givens(draft: Draft) -> str:
    """Write the given tensors, each with its shape and meaning."""
    lines = []
    for name, tensor in draft.given.items():
        shape = ", ".join(axes_of(draft.system, name))
        what = "values before position 0" if name != tensor.name else tensor.meaning
        ids = "; class ids stand for one-hot rows" if tensor.onehot else ""
        decimals = 0 if tensor.onehot else (1 if draft.nice else 2)
        values = toml(draft.numbers(name, tensor), decimals)
        lines.append(f"{name} = {values}   # ({shape}) {what}{ids}".rstrip())
    return "\n".join(lines) + "\n"


def asked(draft: Draft) -> str:
    """Name what an exercise asks for."""
    names = [t.name for t in draft.states] or [f"count({n})" for n in draft.given]
    if draft.system.loss:
        names += ["L", *(f"g_{t.name}" for t in reversed(draft.states))]
        names += [t.name for t in derived(draft)]
        names += [f"dL/d{p.name}" for p in parameters(draft)]
    return ", ".join(names)


def parameters(draft: Draft) -> list[Tensor]:
    """Return the parameters that the loss depends on."""
    return [p for p in draft.system.parameters if p.name in draft.reached]


def derived(draft: Draft) -> list[Tensor]:
    """Return what the system defines from adjoints."""
    return [e.tensor for e in draft.system.derived]


def expects(draft: Draft, solutions: bool) -> Iterator[str]:
    """Write printed entries: all results, or the first state and the loss."""
    values, states, loss = Values(draft.group()), draft.states, bool(draft.system.loss)
    if not states:  # shapes alone: what can be asked is how many scalars they hold
        for name in [*draft.given][: None if solutions else 1]:
            yield entry(values, f"count({name})", None)
    elif not solutions:
        yield from entries(draft, values, states[0].name, states[0], first_only=True)
    else:
        yield "# Forward\n\n"
        for tensor in states:
            yield from entries(draft, values, tensor.name, tensor)
    if loss:
        yield entry(values, "L", None)
    if solutions and loss:
        yield from backward(draft, values)


def backward(draft: Draft, values: Values) -> Iterator[str]:
    """Write the adjoints, what is defined from them, and the gradients by the parameters."""
    yield "# Backward, from the last position to the first\n\n"
    for tensor in reversed(draft.states):
        yield from reversed(list(entries(draft, values, f"g_{tensor.name}", tensor)))
    yield "# Gradients\n\n"
    for tensor in derived(draft):
        yield from entries(draft, values, tensor.name, tensor)
    for parameter in parameters(draft):
        yield entry(values, f"dL/d{parameter.name}", None)


def positions(draft: Draft, tensor: Tensor) -> list[int | None]:
    """Return the positions that a tensor is printed at: None for all of it in one."""
    timed = len(tensor.dims) > 1 and tensor.dims[0].ordered
    return list(range(draft.sizes[tensor.dims[0].name])) if timed else [None]


def entries(
    draft: Draft, values: Values, text: str, tensor: Tensor, first_only: bool = False
) -> Iterator[str]:
    """Write one entry a position."""
    for position in positions(draft, tensor)[: 1 if first_only else None]:
        axis = tensor.dims[0].name.lower() if tensor.dims else ""
        yield entry(values, text, None if position is None else (axis, position))


def entry(values: Values, text: str, at: tuple[str, int] | None) -> str:
    """Write one printed entry, its numbers correctly rounded."""
    quantity = values.quantity(text, dict([at] if at else []))
    lines = ["[[expect]]", f'group = "{values.group.name}"', f'quantity = "{text}"']
    lines += [f"at = {{ {at[0]} = {at[1]} }}"] if at else []
    lines.append(f'printed = "{printed(values, quantity)}"')
    return "\n".join(lines) + "\n\n"


def printed(values: Values, quantity: Quantity) -> str:
    """Return a quantity as numbers in (nested) parentheses."""

    def nest(index: Index) -> str:
        if len(index) == len(shape):
            return rounded(lambda bits: values.at(quantity, index, bits), DECIMALS)
        parts = [nest((*index, i)) for i in range(shape[len(index)])]
        return "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"

    shape = values.shape(quantity)
    return nest(())


def claims(draft: Draft) -> Iterator[str]:
    """Write a statement of the topic as the first claim."""
    for claim in draft.topic.claims:
        plain = claim.expected == "holds" and claim.statement and not claim.assumes
        plain = plain and not claim.using
        if plain and (claim.system, claim.loss) == (draft.system.name, draft.system.loss):
            lines = ["[[claim]]", f'group = "{draft.name}"', f"statement = '{claim.statement}'"]
            lines += [f'title = "{claim.title}"', 'expected = "holds"']
            yield CLAIM_HELP + "\n".join(lines) + "\n"
            return
