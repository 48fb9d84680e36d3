"""What a check may be asked to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from derive.errors import DeriveError, nearest

DTYPES = ("float64", "float32")
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class CheckOptions:
    """The options of ``derive check``; the defaults are those of the command line.

    Args:
        case: A case's id or file; "" for the shipped cases on the topic, ``none`` for no case.
        claim: Only the claim with this id (with or without the topic in front).
        statement: A statement of the user's own, instead of the topic's claims.
        assumes: What the statement assumes.
        system: Which of the topic's systems a statement is about.
        loss: Which of the system's losses ``L`` means in a statement.
        sizes: Sizes of the random inputs, by name; the others are drawn.
        seed: Seed of every random input.
        dtype: ``float64`` or ``float32``: the arithmetic of the oracles.
        device: A torch device.
        jobs: How many processes.
        cache: Whether results of earlier runs may be used.
        progress: Called with (done, total, what is next).
    """

    case: str = ""
    claim: str = ""
    statement: str = ""
    assumes: tuple[str, ...] = ()
    system: str = ""
    loss: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)
    seed: int = 0
    dtype: str = "float64"
    device: str = "cpu"
    jobs: int = 1
    cache: bool = True
    progress: Progress | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse what no check could do."""
        if self.dtype not in DTYPES:
            raise DeriveError(
                f"--dtype is {' or '.join(DTYPES)}; found {self.dtype!r}",
                hint=nearest(self.dtype, DTYPES),
            )
        if self.device != "cpu":
            raise DeriveError(
                f"--device is cpu: the oracles compare small arrays in {self.dtype}; found "
                f"{self.device!r}"
            )
        if self.jobs < 1:
            raise DeriveError(f"--jobs is at least 1; found {self.jobs}")
        if self.claim and self.statement:
            raise DeriveError("--claim and --statement ask for different things: give one of them")
        if self.assumes and not self.statement:
            raise DeriveError("--assume goes with --statement: a claim brings its own assumptions")


def read_sizes(texts: Iterable[str]) -> dict[str, int]:
    """Return sizes from texts such as ``T=5``.

    Raises:
        DeriveError: On anything else, a size below 1, or a size given twice.
    """
    sizes: dict[str, int] = {}
    for text in texts:
        name, equals, number = (part.strip() for part in text.partition("="))
        if not (equals and name.isidentifier() and number.isascii() and number.isdigit()):
            raise DeriveError(f"--size takes a name and a whole number, as in T=5; found {text!r}")
        if name in sizes:
            raise DeriveError(f"--size {name} is given twice: {sizes[name]} and {number}")
        sizes[name] = int(number)
        if sizes[name] < 1:
            raise DeriveError(f"a size is at least 1; found {text!r}")
    return sizes
