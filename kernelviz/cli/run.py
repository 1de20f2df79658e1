"""`kernelviz run`: ask for a plan, follow it, print what came back, and say by the exit code how it went."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import cast, get_args

import typer

from kernelviz.bench import Bench
from kernelviz.cli import console, tables
from kernelviz.cli.progress import Reporter
from kernelviz.core.configuration import split_names
from kernelviz.core.errors import BadField, UnknownName
from kernelviz.core.problem import QUICK, USUAL_FIGURES, Clock, FigureName, Method, Plan
from kernelviz.core.result import Failure, Timing
from kernelviz.core.run import Run
from kernelviz.formats import document
from kernelviz.metrics.roofline import Headline

# Stages in which nothing was tried: the case cannot run on this machine, or does not fit its memory.
_NOT_TRIED = ("unavailable", "out_of_memory")


def sizes(given: Sequence[str], sweeps: Sequence[str]) -> dict[str, str]:
    """Axis to text, from ``m=4096`` and ``n=2^10..2^28``. Errors: BadField for a text without "=" or a doubled axis.

    >>> sizes(["m=4096"], ["n=2^10..2^28"])
    {'m': '4096', 'n': '2^10..2^28'}
    """
    found: dict[str, str] = {}
    for option, texts in (("--size", given), ("--sweep", sweeps)):
        for text in texts:
            axis, equals, value = text.partition("=")
            axis = axis.strip()
            if not (equals and axis and value.strip()):
                raise BadField(option, text, "write an axis and its sizes, as m=4096 or n=2^10..2^20")
            if axis in found:
                raise BadField(option, text, f"axis {axis!r} is given twice; write several sizes as {axis}=64,128")
            found[axis] = value.strip()
    return found


def given(context: typer.Context) -> list[str]:
    """The options that somebody typed, whatever their value, as `--size`."""
    typed = [
        p
        for p in context.command.params
        if (s := context.get_parameter_source(p.name or "")) and s.name == "COMMANDLINE"
    ]
    return [max(p.opts, key=len) for p in typed if p.param_type_name == "option"]


def names(text: str | None, option: str = "--variants") -> tuple[str, ...] | None:
    """Names from ``a,b[block=64,warps=4]``, without repeats; None when the option was not given. Errors: BadField when empty.

    >>> names("torch_eager, triton_block,torch_eager")
    ('torch_eager', 'triton_block')
    """
    if text is None:
        return None
    found = tuple(dict.fromkeys(split_names(text)))
    if not found:
        known = ", ".join(get_args(FigureName)) if option == "--figures" else "`kernelviz ops` lists them"
        raise BadField(option, text, f"name at least one {option[2:].removesuffix('s')}; {known}")
    return found


def method(budget_s: float, clock: str, figures: str | None, *, energy: bool) -> Method:
    """The method that these options ask for. Errors: UnknownName, BadField for a word that means nothing.

    >>> method(1.0, "burst", "cold,warm", energy=False).figures
    ('cold', 'warm')
    """
    if clock not in get_args(Clock):
        raise UnknownName("--clock", clock, get_args(Clock))
    chosen: list[FigureName] = []
    for name in names(figures, "--figures") or USUAL_FIGURES:
        if name not in get_args(FigureName):
            raise UnknownName("--figures", name, get_args(FigureName))
        chosen.append(cast(FigureName, name))
    if energy and "energy" not in chosen:
        chosen.append("energy")
    return Method(budget_s=budget_s, clock=cast(Clock, clock), figures=tuple(chosen))


def quick(clock: str, figures: str | None, *, energy: bool, budget: bool = False) -> Method:
    """The method of --quick. Errors: BadField beside an option that asks for more than it measures (`budget`: one was given)."""
    if clock != "burst" or figures is not None or energy:
        raise BadField(
            "--quick", "yes", "it measures device cold in short bursts only; leave out --clock, --figures and --energy"
        )
    if budget:
        raise BadField("--quick", "yes", f"it takes at most {QUICK.budget_s:g} s a case; leave out --budget-s")
    return QUICK


def headline(l2: str, method: Method) -> Headline:
    """Which device time is the headline. Errors: UnknownName; BadField for one that the method does not measure.

    >>> headline("warm", Method(figures=("cold", "warm")))
    'warm'
    """
    if l2 not in get_args(Headline):
        raise UnknownName("--l2", l2, get_args(Headline))
    if l2 not in method.figures and l2 != "cold":  # cold always is; a method without it is refused elsewhere
        raise BadField(
            "--l2", l2, f"this measures {', '.join(method.figures)}: leave out --quick, or add {l2} to --figures"
        )
    return cast(Headline, l2)


def run(
    bench: Bench,
    plan: Plan,
    method: Method,
    *,
    save: Path | None,
    as_json: bool,
    headline: Headline = "cold",
    verbose: bool = False,
) -> int:
    """Measure, print, save; returns the exit code. Ctrl-C ends the run after its current block and keeps its results.

    Errors: BadField when `save` cannot be written (found out before anything is measured).
    """
    if save is not None:
        _must_be_writable(save)
    run_id = bench.run(plan, method, owner=f"terminal {os.getpid()}")
    with Reporter(plan) as reporter:
        follow(bench, run_id, reporter)
    return print_run(bench, bench.load(run_id), save=save, as_json=as_json, headline=headline, verbose=verbose)


def print_run(
    bench: Bench, found: Run, *, save: Path | None, as_json: bool, headline: Headline = "cold", verbose: bool = False
) -> int:
    """The table of a run (or its document) on stdout, the document in a file where one is asked for; the exit code.

    Errors: BadField when the file cannot be written; the table is printed by then, and the run is kept.
    """
    try:
        if as_json:
            console.write(document.encode(found).rstrip(b"\n") + b"\n")
        else:
            console.show(tables.report(found, bench.roofs_of(found), headline, verbose=verbose))
    finally:
        if save is not None:
            _save(save, found)
    return exit_code(found)


def _save(path: Path, found: Run) -> None:
    try:
        path.write_bytes(document.encode(found))
    except OSError as error:
        said = (
            f"it cannot be written ({error.strerror}); `kernelviz export {found.id} -o FILE` writes the run elsewhere"
        )
        raise BadField("--save", path, said) from None


def exit_code(found: Run) -> int:
    """0: every case has a time. 2: no case could even be tried here. 1: anything between.

    A wrong or impossible result counts as failed: its time is no measurement of the op.
    """
    outcomes = [r.outcome for r in found.results]
    measured = sum(isinstance(o, Timing) for o in outcomes)
    if measured == len(outcomes) and measured >= len(found.plan.cases()):
        return 0
    not_tried = sum(isinstance(o, Failure) and o.stage in _NOT_TRIED for o in outcomes)
    return 2 if outcomes and not_tried == len(outcomes) else 1


def follow(bench: Bench, run_id: str, reporter: Reporter) -> None:
    """Show events until the run ends; the first Ctrl-C cancels, the second leaves at once."""
    seen = 0
    cancelled = False
    while True:
        try:
            for sequence, event in bench.follow(run_id, seen):
                seen = sequence
                reporter.show(event)
            return
        except KeyboardInterrupt:
            if cancelled:
                raise
            cancelled = True
            reporter.say("cancelling after the current block; results so far are kept (Ctrl-C again leaves at once)")
            bench.cancel(run_id)


def _must_be_writable(path: Path) -> None:
    try:
        with path.open("ab"):
            pass
    except OSError as error:
        raise BadField("--save", path, f"it cannot be written ({error.strerror})") from None
