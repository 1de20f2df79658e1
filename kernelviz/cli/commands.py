"""The commands and their options, and what each kind of error looks like in a terminal."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, get_args

import typer

import kernelviz
from kernelviz import bench as use_cases
from kernelviz.cli import (
    compare,
    console,
    device_watch,
    history,
    inspect,
    library_comparison,
    regress,
    roofline,
    selftest,
    trends,
    tune,
)
from kernelviz.cli import device as devices
from kernelviz.cli import launch as launching
from kernelviz.cli import ops as listing
from kernelviz.cli import run as running
from kernelviz.cli import serve as serving
from kernelviz.core.errors import BadField, KernelvizError, one_line
from kernelviz.core.problem import Data as DataKind
from kernelviz.core.request import RunRequest
from kernelviz.metrics.alerts import Thresholds
from kernelviz.ops import catalogue

app = typer.Typer(
    name="kernelviz",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Run kernel variants live, see time, bandwidth and roofline, with proof that each variant is right.",
)

app.add_typer(history.app, name="runs")
app.command("import")(history.take_in)
app.command("export")(history.give_out)
app.command("roofline")(roofline.roofline)
app.command("trends")(trends.trends)
app.command("compare")(compare.compare)
app.command("regress")(regress.regress)
app.command("ladders")(library_comparison.ladders)
app.command("tune")(tune.tune)
app.add_typer(tune.app, name="tunings")

OpName = Annotated[str, typer.Argument(metavar="OP", help="what to compute; `kernelviz ops` lists them")]
Json = Annotated[bool, typer.Option("--json", help="print JSON and nothing else on stdout")]
SizeTexts = Annotated[
    list[str] | None, typer.Option("--size", metavar="AXIS=VALUE", help="size of an axis, as m=4096 or m=2^12; repeat")
]
Dtype = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="as fp32, fp16, bf16, uint8 (`kernelviz ops` has each op's); default: the op's first"
    ),
]
Compute = Annotated[
    str | None, typer.Option(metavar="tf32|ieee", help="arithmetic of fp32 matrix products; default: ieee")
]
Data = Annotated[
    str, typer.Option(metavar="KIND", help=f"input data: {', '.join(get_args(DataKind))} (ids in order; ops with ids)")
]
DeviceId = Annotated[
    str | None, typer.Option("--device", metavar="cuda:0|cpu", help="default: the first usable GPU, else the CPU")
]
Plugins = Annotated[
    list[Path] | None, typer.Option("--with", metavar="FILE.py", help="a file with variants of your own; repeat")
]


@app.command()
def ops(
    as_json: Json = False,
    device: DeviceId = None,
    markdown: Annotated[bool, typer.Option("--markdown", hidden=True, help="the README's table")] = False,
) -> None:
    """List ops and variants, and what is available here."""
    if markdown:
        typer.echo(listing.markdown(catalogue()))
        return
    listing.ops(use_cases.current(), device, as_json=as_json)


@app.command()
def run(
    context: typer.Context,
    op: OpName,
    variants: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="default: those available here that need not be named"),
    ] = None,
    size: SizeTexts = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(metavar="AXIS=SIZES", help="n=2^10..2^28, n=128..1024:128, n=64,128 or n=2^27/m; repeat"),
    ] = None,
    preset: Annotated[str | None, typer.Option(help="sizes of a model, as llama-3-8b")] = None,
    dtype: Dtype = None,
    compute: Compute = None,
    plugins: Plugins = None,
    direction: Annotated[str, typer.Option(metavar="forward|backward")] = "forward",
    l2: Annotated[str, typer.Option(metavar="cold|warm", help="which time is the headline")] = "cold",
    clock: Annotated[str, typer.Option(metavar="burst|sustained", help="short bursts, or under steady load")] = "burst",
    figures: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="of cold, warm, call, graph, loop, energy; default: all but energy"),
    ] = None,
    energy: Annotated[bool, typer.Option("--energy", help="also the energy of a call (about 3 s a case)")] = False,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="device cold only, until comparisons are decided, at most 0.02 s a case"),
    ] = False,
    data: Data = "normal",
    baseline: Annotated[
        str | None, typer.Option(metavar="VARIANT", help="what speed-ups divide by; default: the op's own")
    ] = None,
    budget_s: Annotated[float, typer.Option(min=0.01, max=600.0, help="most device time for a case, in seconds")] = 1.0,
    device: DeviceId = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="also write the document (JSON) to a file")] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="also every figure and the whole trust line of each case")
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure variants of an op; progress goes to stderr, the table or the document to stdout. Ctrl-C keeps results."""
    method = (
        running.quick(clock, figures, energy=energy, budget="--budget-s" in running.given(context))
        if quick
        else running.method(budget_s, clock, figures, energy=energy)
    )
    headline = running.headline(l2, method)
    bench = use_cases.current()
    try:
        plan = bench.plan(
            RunRequest(
                op=op,
                sizes=running.sizes(size or (), sweep or ()) or None,
                preset=preset,
                variants=running.names(variants),
                dtype=dtype,
                compute=compute,
                direction=direction,
                data=data,
                baseline=baseline,
                device=device,
                plugins=tuple(str(p.resolve()) for p in plugins or ()),
            )
        )
        if "energy" in method.figures and bench.device(plan.device).kind == "cpu":
            console.err().print(f"no energy is measured: {plan.device} has no counter of it; a GPU's board has one")
        code = running.run(bench, plan, method, save=save, as_json=as_json, headline=headline, verbose=verbose)
    finally:
        bench.close()
    raise typer.Exit(code)


@app.command()
def launch(
    op: OpName,
    variants: Annotated[str, typer.Option(metavar="VARIANT", help="the one variant to call")],
    calls: Annotated[int, typer.Option("-n", min=1, metavar="N", help="how many calls")] = 1,
    size: SizeTexts = None,
    preset: Annotated[str | None, typer.Option(help="sizes of a model")] = None,
    dtype: Dtype = None,
    compute: Compute = None,
    data: Data = "normal",
    device: DeviceId = None,
    plugins: Plugins = None,
) -> None:
    """Bind a variant, then flush the cache and call it N times with no tracer: to point a profiler (ncu, nsys) at."""
    bench = use_cases.current()
    try:
        plan = bench.plan(
            RunRequest(
                op=op,
                sizes=running.sizes(size or (), ()) or None,
                preset=preset,
                variants=running.names(variants),
                dtype=dtype,
                compute=compute,
                data=data,
                device=device,
                plugins=tuple(str(p.resolve()) for p in plugins or ()),
            )
        )
        chosen, offers = bench.device(plan.device), bench.offers(plan.op, plan.device)
        tuned = bench.tunings.chosen(plan)
    finally:
        bench.close()
    launching.launch(plan, chosen, offers, calls, tuned)


@app.command("inspect")
def inspect_(
    op: OpName,
    variant: Annotated[str, typer.Option("--variant", metavar="VARIANT", help="the one variant to look at")],
    size: SizeTexts = None,
    preset: Annotated[str | None, typer.Option(help="sizes of a model, where they are one problem")] = None,
    dtype: Dtype = None,
    compute: Compute = None,
    data: Data = "normal",
    device: DeviceId = None,
    plugins: Plugins = None,
    as_json: Json = False,
) -> None:
    """Look at one call: what its tensors are and hold, and where its outputs differ from the reference, element by element.

    Exit code 0: right; 1: wrong; 2: it could not be looked at.
    """
    bench = use_cases.current()
    try:
        plan = bench.plan(
            RunRequest(
                op=op,
                sizes=running.sizes(size or (), ()) or None,
                preset=preset,
                variants=running.names(variant),
                dtype=dtype,
                compute=compute,
                data=data,
                device=device,
                plugins=tuple(str(p.resolve()) for p in plugins or ()),
            )
        )
        code = inspect.inspect(bench, plan, as_json=as_json)
    finally:
        bench.close()
    raise typer.Exit(code)


@app.command()
def device(
    context: typer.Context,
    calibrate: Annotated[bool, typer.Option("--calibrate", help="measure the roofs first (some seconds)")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="a line a second of what one device reports; Ctrl-C ends")
    ] = False,
    busy_below: Annotated[
        float, typer.Option(min=0.0, max=100.0, metavar="PERCENT", help="with --watch: alert below so much utilisation")
    ] = Thresholds().least_busy_fraction * 100,
    grown_above: Annotated[
        float, typer.Option(min=0.0, metavar="GIB", help="with --watch: alert above so much memory grown in 10 minutes")
    ] = Thresholds().most_growth_bytes / 2**30,
    device_id: DeviceId = None,
    as_json: Json = False,
) -> None:
    """Show devices, their roofs and how they moved, their data sheets, and where the database lives."""
    if watch and calibrate:
        raise BadField("--watch", "yes", "it shows what a device reports and measures nothing; leave out --calibrate")
    for option, value in (("--busy-below", busy_below), ("--grown-above", grown_above)):
        if not watch and option in running.given(context):
            raise BadField(option, f"{value:g}", "it is a limit of --watch, which is missing")
    bench = use_cases.current()
    try:
        if watch:
            device_watch.watch(bench, device_id, Thresholds(busy_below / 100, grown_above * 2**30), as_json=as_json)
            return
        devices.show(bench, device_id, calibrate=calibrate, as_json=as_json)
    finally:
        bench.close()


@app.command("selftest")
def selftest_(
    device: DeviceId = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="a check, or all whose names begin so, as cheat; repeat")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="fewer repetitions of each comparison")] = False,
    as_json: Json = False,
) -> None:
    """Put the instrument to the test on this machine: known work, planted slow-downs, planted cheats, other timers.

    Exit code 0: no check failed; 1: some did; 2: none could be made.
    """
    bench = use_cases.current()
    try:
        code = selftest.selftest(bench, device, only=tuple(only or ()), quick=quick, as_json=as_json)
    finally:
        bench.close()
    raise typer.Exit(code)


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="address to listen on; others can reach 0.0.0.0")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8501,
) -> None:
    """Serve the app in a browser."""
    serving.serve(host, port)


@app.callback(invoke_without_command=True)
def _options(
    shown: Annotated[bool, typer.Option("--version", help="print the version", is_eager=True)] = False,
) -> None:
    if shown:
        console.out().print(f"kernelviz {kernelviz.__version__}")
        raise typer.Exit


def invoke(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. Bad input is one line on stderr, never a traceback."""
    console.settle()
    try:
        code = app(args=None if arguments is None else list(arguments), prog_name="kernelviz", standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except KernelvizError as error:
        return console.fail(f"{error}")
    except typer.Abort:
        return console.fail("aborted")
    except KeyboardInterrupt:
        return 130  # as a shell counts a process that SIGINT ended
    except BrokenPipeError:
        # The reader of our output has left (`| head`); leave without a second error at exit.
        console.give_up()
        return 141
    except OSError as error:
        if error.errno in _WRITING:
            console.give_up()
        return console.fail(_os_words(error))
    except typer.TyperException as error:
        # Without a command, the help has been printed and there is nothing to add.
        return console.fail(error.format_message()) if error.format_message() else 2


def _os_words(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    if error.errno in _WRITING:
        return f"cannot write: {where}{error.strerror}"
    return f"{where}{error.strerror}" if error.strerror else one_line(error)


_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF, errno.EROFS)
"""What a stream or file answers that takes nothing more."""
