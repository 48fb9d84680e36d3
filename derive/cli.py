"""The command line: parse, call, print.

Everything heavy is imported inside the commands, so that ``derive --help`` is quick. Exit status: 0
everything is as expected, 1 something is not, 2 usage, unreadable input or an internal error.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from derive.cli_options import AS_EXPECTED, DEBUG, Debug, Format, Output
from derive.cli_runs import plot_, run_experiment
from derive.errors import DeriveError

if TYPE_CHECKING:
    from derive.checking import Half
    from derive.options import CheckOptions
    from derive.parallel import Later
    from derive.report import Report

USAGE, INTERRUPTED = 2, 130


def fail(message: str) -> typer.Exit:
    """Print an error and return the exit to raise."""
    typer.echo(f"error: {message}", err=True)
    return typer.Exit(USAGE)


class Commands(TyperGroup):
    """The commands, with one place where errors become messages."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; a traceback reaches the user only with ``--debug``."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if ctx.meta.get(DEBUG) or hasattr(error, "show") or isinstance(error, BrokenPipeError):
                raise  # a usage error shows itself
            if isinstance(error, DeriveError):
                raise fail(str(error)) from None
            kind = type(error).__name__
            raise fail(
                f"internal: {kind}: {error} (run again with --debug for the place)"
            ) from None


app = typer.Typer(
    cls=Commands,
    name="derive",
    help="Check derivations of sequence models: proved for every size, checked against PyTorch.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
new = typer.Typer(help="Write a new case.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(new, name="new")


def print_version(wanted: bool) -> None:
    """Print the versions that a report would name."""
    if wanted:
        from derive.report import versions

        first, *others = versions().items()
        typer.echo(f"{first[0]} {first[1]} ({', '.join(' '.join(o) for o in others)})")
        raise typer.Exit(AS_EXPECTED)


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the versions.", callback=print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Check derivations of sequence models: proved for every size, checked against PyTorch."""


MANY = 3
"""From how many targets on two processes prove: one alone is done while torch is imported."""


def together(parts: list[Later[Half]]) -> Half:
    """Return what the helper processes made, put together."""
    first, *others = (part.result() for part in parts)
    for other in others:
        first += other
    return first


def run(targets: list[str], options: CheckOptions) -> Report:
    """Check; where it pays, the symbolic half runs in a process of its own."""
    import gc
    from time import perf_counter

    from derive.parallel import Later, can_fork, interruptible

    start = perf_counter()
    gc.disable()  # one short run: collecting the imports' objects takes a fifth of it

    parts = 2 if "all" in targets or len(targets) > MANY else 1

    def symbolic(part: int) -> Half:
        from derive.checking import symbolic as half

        return half(targets, replace(options, progress=None), part, parts)

    if options.jobs == 1 or "-" in targets or not can_fork():
        from derive.checking import check

        return replace(check(targets, options), seconds=perf_counter() - start)
    if parts > 1:  # what every process needs is read once, before they part
        from derive.checking import plan

        plan(targets, options)
    with interruptible():
        later = [Later(partial(symbolic, part), True) for part in range(parts)]
        import torch  # noqa: F401 - the longest import, while the other process proves

        from derive.checking import check

        report = check(targets, options, lambda: together(later))
        return replace(report, seconds=perf_counter() - start)
    together(later)  # cut short: this raises what the helper raised
    raise DeriveError("the check was interrupted by a signal")


@app.command()
def check(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET",
            help="A topic, a claim, a case, 'all', or a path; '-' reads a case from stdin.",
        ),
    ],
    case: Annotated[
        str,
        typer.Option(help="A case's id or file instead of the shipped ones; 'none' for no case."),
    ] = "",
    claim: Annotated[str, typer.Option(help="Only the claim with this id.")] = "",
    statement: Annotated[
        str, typer.Option(metavar="'LHS = RHS'", help="A statement of your own about the topic.")
    ] = "",
    assume: Annotated[
        list[str] | None,
        typer.Option(metavar="'f, i held'", help="What the statement assumes; may be repeated."),
    ] = None,
    system: Annotated[str, typer.Option(help="The system that the statement is about.")] = "",
    loss: Annotated[str, typer.Option(help="The loss that L means in the statement.")] = "",
    size: Annotated[
        list[str] | None,
        typer.Option(metavar="T=5", help="A size of the random inputs; may be repeated."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random inputs.")] = 0,
    dtype: Annotated[str, typer.Option(help="float64 or float32.")] = "float64",
    device: Annotated[str, typer.Option(help="Where the oracles run: cpu.")] = "cpu",
    jobs: Annotated[int, typer.Option(min=1, max=2, help="How many processes.")] = 2,
    form: Format = "",
    output: Output = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Undecided claims fail unless they are expected to be.")
    ] = False,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Ignore earlier results.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Only what is not as expected, and the counts.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Prove claims and certify numbers."""
    from derive.console import Progress, check_writable, emit
    from derive.options import CheckOptions, read_sizes
    from derive.report import check_format

    check_format(form)
    check_writable(output)
    progress = Progress()
    options = CheckOptions(
        case=case,
        claim=claim,
        statement=statement,
        assumes=tuple(assume or ()),
        system=system,
        loss=loss,
        sizes=read_sizes(size or ()),
        seed=seed,
        dtype=dtype,
        device=device,
        jobs=jobs,
        cache=not no_cache,
        progress=progress,
    )
    with progress:
        report = run(targets, options)
    emit(report, form, output, quiet)
    status = report.exit_status(strict)
    if status == USAGE:
        raise fail(f"nothing to check in {' '.join(targets)!r}")
    raise typer.Exit(status)


app.command("run")(run_experiment)
app.command("plot")(plot_)


@app.command("list")
def list_(
    what: Annotated[
        str, typer.Argument(help="topics, claims, cases, quantities, coverage or probes.")
    ] = "topics",
    name: Annotated[
        str, typer.Argument(help="A topic (claims, quantities) or a case (coverage).")
    ] = "",
    debug: Debug = False,
) -> None:
    """List topics, claims, cases, quantities, coverage, probes."""
    from derive.console import write
    from derive.listing import listing

    write(listing(what, name))


@app.command()
def show(
    target: Annotated[str, typer.Argument(metavar="TOPIC|CLAIM")],
    steps: Annotated[bool, typer.Option("--steps", help="Every step, with its rule.")] = False,
    case: Annotated[str, typer.Option(help="A case's id or file: its numbers stand beside.")] = "",
    at: Annotated[
        str, typer.Option(metavar="'g_h,t=1'", help="Explain one number with its digits.")
    ] = "",
    conventions: Annotated[
        bool, typer.Option("--conventions", help="What the topic's letters mean elsewhere.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Show where a gradient comes from."""
    from derive.console import emit_card, write

    if conventions:
        if steps or case or at:
            raise DeriveError("--conventions stands alone: it shows a card, no derivation")
        emit_card(target)
        return
    from derive.showing import show as lines

    write("\n".join(str(line) for line in lines(target, steps, case, at)))


@app.command()
def explain(
    name: Annotated[str, typer.Argument(metavar="CODE|CLAIM")],
    debug: Debug = False,
) -> None:
    """Explain a word of the reports, or a claim."""
    from derive.codes import explain as text
    from derive.console import write

    write(text(name))


@new.command("case")
def new_case(
    topic: Annotated[str, typer.Argument()],
    nice: Annotated[
        bool, typer.Option("--nice", help="Short decimals, for pen and paper.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Another exercise for each seed.")] = 0,
    solutions: Annotated[bool, typer.Option("--solutions", help="With the worked values.")] = False,
    output: Output = None,
    debug: Debug = False,
) -> None:
    """Write a commented case file that passes."""
    from derive.console import check_writable, save, write
    from derive.new_case import new_case as text

    check_writable(output)
    made = text(topic, nice, seed, solutions)
    if output is None:
        write(made)
    else:
        save(output, made)


def program() -> None:
    """Run a command, then leave at once: tearing torch down takes longer than many a check."""
    status: object = 0
    try:
        app()
    except SystemExit as leaving:
        status = leaving.code
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        status = status or 1  # the reader of a pipe has gone
    os._exit(status if isinstance(status, int) else 0 if status is None else 1)


if __name__ == "__main__":
    program()
