"""`kernelviz run`: measure a plan, print its results, and report by the exit code whether all cases were measured."""

from contextlib import closing
from pathlib import Path
from typing import Annotated, cast, get_args

import msgspec
import typer

from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.bench.planning import LOAD_S
from kernelviz.cli import console, options, tables
from kernelviz.cli.progress import follow_run
from kernelviz.core import (
    QUICK,
    USUAL_FIGURES,
    BadField,
    Clock,
    Failure,
    FigureName,
    Method,
    Outcome,
    Plan,
    Run,
    Timing,
    check_name,
)
from kernelviz.core.reasons import SizeTooLarge
from kernelviz.formats import document
from kernelviz.metrics.figures import Headline

_NOT_TRIED = ("unavailable", "out_of_memory")
"""Stages of cases that were not tried: they cannot run on this machine, or do not fit into its memory."""


def run(
    context: typer.Context,
    op: options.OpName,
    variants: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Variants to measure, separated by commas. Default: all that can run here, except those that "
            '`kernelviz ops` marks "only when named".',
        ),
    ] = None,
    size: options.Sizes = None,
    sweep: options.Sweeps = None,
    preset: options.Preset = None,
    dtype: options.Dtype = None,
    compute: options.Compute = None,
    plugins: options.Plugins = None,
    direction: options.Direction = "forward",
    l2: Annotated[
        str,
        typer.Option(
            metavar="cold|warm",
            help="Device time that the table shows: cold (data flushed from the L2 cache before each call) or warm.",
        ),
    ] = "cold",
    clock: Annotated[
        str,
        typer.Option(
            metavar="burst|sustained",
            help="Load while measuring: burst (short bursts, so that the clock stays high) or sustained (steady load).",
        ),
    ] = "burst",
    figures: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="What to measure of each case: cold and warm (on the device, by the state of the L2 cache), call (one "
            "Python call), graph (one call as a CUDA graph), loop (calls back to back), energy, naive (the first calls of a new "
            "process, without warm-up). Default: all except energy and naive.",
        ),
    ] = None,
    energy: Annotated[
        bool, typer.Option("--energy", help="Also measure the energy of a call, in joules (about 3 s for each case).")
    ] = False,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Measure only the cold device time, for at most 0.02 s of each case, and stop as soon as the comparisons "
            "are decided.",
        ),
    ] = False,
    data: options.Data = "normal",
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="VARIANT", help="Variant that speed-ups are relative to. Default: the baseline of the op."
        ),
    ] = None,
    budget_s: Annotated[
        float,
        typer.Option(min=0.01, max=600.0, metavar="SECONDS", help="Largest device time for each case, in seconds."),
    ] = 1.0,
    device: options.DeviceId = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the run to this file, as a JSON document.")
    ] = None,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            help="Also print all measured times of each case, and the facts that tell how reliable they are.",
        ),
    ] = False,
    as_json: options.Json = False,
    untrusted: Annotated[
        bool,
        typer.Option(
            "--untrusted",
            help="For variants of somebody else: measure each in a process of its own, and let a judge process, which runs none "
            "of them, check outputs and times. Only the cold device time is measured, and each case takes about 5 s more. It is "
            "no sandbox: the code can do what you can do.",
        ),
    ] = False,
    no_compile_ahead: options.NoCompileAhead = False,
    load_seconds: Annotated[
        float | None,
        typer.Option(
            min=LOAD_S[0],
            max=LOAD_S[1],
            metavar="SECONDS",
            help="With --clock sustained: how long a variant runs without pauses before it is measured, in each of three passes. "
            "Default: 1.",
        ),
    ] = None,
    naive: Annotated[
        bool,
        typer.Option(
            "--naive",
            help="Also time the first calls of a new process by one pair of CUDA events, without warm-up, as published numbers "
            "often are (about 5 s for each case).",
        ),
    ] = False,
) -> int:
    """Measure variants of an op and print a table.

    Each variant is checked against a float64 reference before its time counts. Progress goes to stderr, and the table (or with
    --json the run as a JSON document) to stdout. The run is stored; `kernelviz runs` lists it. Ctrl-C ends it and keeps its
    results.

    Exit code 0: every case was measured; 1: some cases failed; 2: bad usage, or no case can run on this machine.
    """
    method = (
        quick_method(
            clock, figures, energy=energy or naive, budget="--budget-s" in options.options_on_command_line(context)
        )
        if quick
        else chosen_method(
            budget_s, clock, ("cold" if untrusted and figures is None else figures), energy=energy, naive=naive
        )
    )
    if load_seconds is not None:
        method = msgspec.structs.replace(method, load_s=load_seconds)
    if untrusted:
        method = judged_method(method)
    if no_compile_ahead:
        method = msgspec.structs.replace(method, ahead=False)
    headline = chosen_headline(l2, method)
    with closing(use_cases.current()) as bench:
        plan = bench.plan(
            options.run_request(
                op,
                options.parse_names(variants),
                size,
                sweep,
                preset=preset,
                dtype=dtype,
                compute=compute,
                direction=direction,
                data=data,
                baseline=baseline,
                device=device,
                plugins=plugins,
            )
        )
        if "energy" in method.figures and bench.device(plan.device).kind == "cpu":
            console.err().print(f"no energy is measured: {plan.device} has no counter of it; a GPU's board has one")
        return measure_plan(bench, plan, method, save=save, as_json=as_json, headline=headline, verbose=verbose)


def chosen_method(budget_s: float, clock: str, figures: str | None, *, energy: bool, naive: bool = False) -> Method:
    """The method that these options describe. Errors: UnknownName, BadField for a value that is not known.

    >>> chosen_method(1.0, "burst", "cold,warm", energy=False).figures
    ('cold', 'warm')
    """
    check_name("--clock", clock, get_args(Clock))
    names = options.parse_names(figures, "--figures") or USUAL_FIGURES
    for name in names:
        check_name("--figures", name, get_args(FigureName))
    more = ("energy" if energy else "", "naive" if naive else "")
    chosen = dict.fromkeys((*names, *filter(None, more)))
    return Method(budget_s=budget_s, clock=cast(Clock, clock), figures=cast(tuple[FigureName, ...], tuple(chosen)))


def quick_method(clock: str, figures: str | None, *, energy: bool, budget: bool = False) -> Method:
    """The method of --quick. `budget`: --budget-s was given. Errors: BadField if another option asks for more than that."""
    if clock != "burst" or figures is not None or energy:
        raise BadField(
            "--quick",
            "yes",
            "it measures only the cold device time, in short bursts; leave out --clock, --figures, --energy and --naive",
        )
    if budget:
        raise BadField("--quick", "yes", f"it takes at most {QUICK.budget_s:g} s a case; leave out --budget-s")
    return QUICK


def judged_method(method: Method) -> Method:
    """The method of --untrusted. Errors: BadField if another option asks for times that a judge cannot check.

    >>> judged_method(Method()).untrusted
    True
    """
    if method.figures != ("cold",):
        raise BadField(
            "--untrusted",
            "yes",
            "a judge can check only the cold device time; leave out --figures, --energy and --naive",
        )
    return msgspec.structs.replace(method, judge=True)


def chosen_headline(l2: str, method: Method) -> Headline:
    """The device time that is the headline. Errors: UnknownName; BadField for a time that the method does not measure.

    >>> chosen_headline("warm", Method(figures=("cold", "warm")))
    'warm'
    """
    check_name("--l2", l2, get_args(Headline))
    if l2 not in method.figures and l2 != "cold":  # the bench refuses a method without cold
        raise BadField(
            "--l2", l2, f"this measures {', '.join(method.figures)}: leave out --quick, or add {l2} to --figures"
        )
    return cast(Headline, l2)


def measure_plan(
    bench: Bench, plan: Plan, method: Method, *, save: Path | None, as_json: bool, headline: Headline, verbose: bool
) -> int:
    """Measure a plan, print its results, save them, and return the exit code. Ctrl-C ends the run and keeps its results.

    Errors: BadField if `save` cannot be written, which is checked before anything is measured.
    """
    if save is not None:
        with console.writable("--save", save), save.open("ab"):
            pass
    run_id = bench.run(plan, method, owner=console.owner())
    follow_run(bench, run_id, plan)
    run = bench.load(run_id)
    try:
        return print_run(bench, run, as_json=as_json, headline=headline, verbose=verbose)
    finally:
        if save is not None:
            with console.writable("--save", save, f"; `kernelviz export {run_id} -o FILE` writes the run elsewhere"):
                save.write_bytes(document.encode(run))


def print_run(bench: Bench, run: Run, *, as_json: bool, headline: Headline = "cold", verbose: bool = False) -> int:
    """Print the table of a run (or its document) on stdout, and return the exit code."""
    if as_json:
        console.write(document.encode(run).rstrip(b"\n") + b"\n")
    else:
        console.show(tables.report(run, bench.roofs_of(run), headline, verbose=verbose))
    return exit_code(run)


def _is_too_large(outcome: Outcome) -> bool:
    """Whether a variant does not take a size that is this large. It is in the plan because it takes other sizes of it."""
    return isinstance(outcome, Failure) and any(isinstance(reason, SizeTooLarge) for reason in outcome.reasons)


def exit_code(run: Run) -> int:
    """0: every case has a time. 2: no case can run on this machine. 1: otherwise.

    Sizes that are larger than a variant takes count as neither. A wrong or impossible result counts as failed, because its time
    is not a measurement of the op.
    """
    outcomes = [r.outcome for r in run.results]
    if (
        len(outcomes) >= len(run.plan.cases())
        and any(isinstance(o, Timing) for o in outcomes)
        and all(isinstance(o, Timing) or _is_too_large(o) for o in outcomes)
    ):
        return 0
    not_tried = all(isinstance(o, Failure) and o.stage in _NOT_TRIED for o in outcomes)
    return 2 if outcomes and not_tried else 1
