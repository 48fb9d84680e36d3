"""The commands that compute something of their own: experiments and plots."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from derive.cli_options import AS_EXPECTED, Debug, Format, Output

NOT_AS_EXPECTED = 1


def run_experiment(
    name: Annotated[
        str, typer.Argument(metavar="EXPERIMENT", help="Its name; without one, they are listed.")
    ] = "",
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights and data.")] = 0,
    form: Format = "",
    output: Output = None,
    debug: Debug = False,
) -> None:
    """Train small networks: does a run show what lectures say?

    Exit status 0 if every expectation holds, 1 if one does not.
    """
    from derive.checks import experiments
    from derive.console import Progress, check_writable, emit_run, write
    from derive.report._run import check_run_format

    if not name:
        found = map(experiments.load, experiments.names())
        write("\n".join(f"{e.name:<12}{e.title}" for e in found))
        return
    check_run_format(form)
    check_writable(output)
    experiment, progress = experiments.load(name), Progress()
    with progress:
        outcome = experiment.run(seed, progress)
    emit_run(outcome, form, output)
    raise typer.Exit(AS_EXPECTED if outcome.ok else NOT_AS_EXPECTED)


def plot_(
    name: Annotated[
        str, typer.Argument(metavar="PLOT", help="Its name; without one, they are listed.")
    ] = "",
    size: Annotated[
        list[str] | None,
        typer.Option(metavar="T=80", help="A size (T, H, D); may be repeated."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights and inputs.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .png or .svg to draw; without it, a table."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Draw how far a gradient reaches, as a figure or a table."""
    from derive import plots
    from derive.console import check_writable, save, view_of, write
    from derive.options import read_sizes

    if not name:
        write("\n".join(f"{p.name:<12}{p.title}" for p in map(plots.load, plots.names())))
        return
    plot, sizes = plots.load(name), read_sizes(size or ())
    check_writable(output)
    if output is None:
        write(plot.table(plot.data(sizes, seed), view_of(sys.stdout, False)))
        return
    plots.check_target(output)
    save(output, plots.drawn(plot, plot.data(sizes, seed), output.suffix.lower()[1:]))
