"""`kernelviz counters`: read the hardware counters of one call of variants with ncu, or show those that are stored."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Annotated, cast, get_args

import msgspec
import typer

from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.cli import console, options
from kernelviz.cli.progress import follow_run, format_case
from kernelviz.core import BadField, Case, CaseCounters, Cost, Run, UnknownRun, check_name
from kernelviz.core.command import ProfilerCommands
from kernelviz.core.counters import Replay, Scope
from kernelviz.metrics.counters import call_counters
from kernelviz.tables.counters import COUNTERS, counted_kernels, records
from kernelviz.text.counters import describe_counting, describe_sectors, describe_traffic, describe_uncounted


def counters(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN|OP", help="Id of a stored run, with whose cases the counters are stored; or an op."
        ),
    ],
    variants: Annotated[str, typer.Argument(metavar="VARIANTS", help="Names of up to 16 variants.")],
    problem: Annotated[
        str | None, typer.Option(metavar="KEY", help="The problem of the run, for example 'softmax bf16 m=64 n=64'.")
    ] = None,
    size: options.Sizes = None,
    preset: options.Preset = None,
    dtype: options.Dtype = None,
    compute: options.Compute = None,
    data: options.Data = "normal",
    device: options.DeviceId = None,
    plugins: options.Plugins = None,
    replay: Annotated[
        str,
        typer.Option(
            metavar="|".join(get_args(Replay)),
            help="How the passes of ncu repeat the call. application: each pass starts a process, so that each finds flushed "
            "caches. kernel: faster, but only the first pass does.",
        ),
    ] = "application",
    traffic: Annotated[
        bool,
        typer.Option("--traffic", help="Only durations and traffic: fewer passes of ncu, so that it takes less time."),
    ] = False,
    stored: Annotated[bool, typer.Option("--stored", help="Show the counters that the run holds; read none.")] = False,
    commands: Annotated[
        bool, typer.Option("--commands", help="Print commands of ncu and nsys for these cases; read none.")
    ] = False,
    as_json: options.Json = False,
) -> int:
    """Read hardware counters of one call of variants: traffic of DRAM, L2 and L1, pipes, issue slots, what warps wait for.

    ncu runs `kernelviz launch` in processes of its own, while the device is locked for others. With a run, the counters are
    stored with its cases, and the limiter and the Roofline use them. They are of one size: name it by --size or --problem.

    Exit code 0: every variant has counters; 1: some have none, each with its reason; 2: bad usage, or none can be read here.
    """
    check_name("replay", replay, get_args(Replay))
    how = cast(Replay, replay)
    scope: Scope = "traffic" if traffic else "all"
    with closing(use_cases.current()) as bench:
        names = options.parse_names(variants) or ()
        source = _run(bench, run)
        if source is None:
            if problem is not None or stored:
                raise BadField("--problem" if problem else "--stored", problem or "yes", f"{run!r} is an op, not a run")
            request = options.run_request(
                run, names, size, preset=preset, dtype=dtype, compute=compute, data=data, device=device, plugins=plugins
            )  # fmt: skip
            plan = bench.plan(request)
            if commands:
                asking = bench.counters
                given = {c.key: asking.commands(c.problem, c.variant, plan.device, plan.plugins) for c in plan.cases()}
                return _show_commands(given, as_json=as_json)
            costs = _costs(bench, plan.cases())
            name = bench.counters.read(plan, owner=console.owner(), replay=how, scope=scope)
        else:
            texts = options.parse_sizes(size)
            if commands or stored:
                return _show_of_run(bench, source, names, problem, texts, stored=stored, as_json=as_json)
            costs = {result.case.key: result.cost for result in source.results}
            name = bench.counters.read_of_run(
                source, names, problem=problem, sizes=texts or None, owner=console.owner(), replay=how, scope=scope
            )
        follow_run(bench, name)
        counted, uncounted = bench.counters.read_cases(name), bench.counters.not_read(name)
    _show(counted, costs, as_json=as_json)
    for key, reason in uncounted.items():
        console.warn(f"{key}: {describe_uncounted(reason)}")
    return 0 if counted and not uncounted else 1


def _run(bench: Bench, name: str) -> Run | None:
    """The run of that id; None if it is the name of an op. Errors: UnknownRun."""
    try:
        return bench.load(name)
    except UnknownRun:
        if name in bench.ops():
            return None
        raise


def _costs(bench: Bench, cases: Sequence[Case]) -> dict[str, Cost | None]:
    return {case.key: bench.ops()[case.problem.op].cost_of(case.problem) for case in cases}


def _show_of_run(
    bench: Bench,
    run: Run,
    names: tuple[str, ...],
    problem: str | None,
    texts: dict[str, str],
    *,
    stored: bool,
    as_json: bool,
) -> int:
    chosen = bench.counters.problem_of(run, problem, texts or None)
    for name in names:
        check_name("variant", name, run.plan.variants, of=f"run {run.id!r}")
    results = {r.variant: r for r in run.results if r.problem.key == chosen.key and r.variant in names}
    if not stored:
        cases = tuple(Case(problem=chosen, variant=name) for name in names)
        of_run = {case.key: bench.counters.commands_of_run(run, chosen, case.variant) for case in cases}
        return _show_commands(of_run, as_json=as_json)
    present = [
        CaseCounters(problem=chosen, variant=name, counters=result.hardware_counters, run_id=run.id)
        for name, result in results.items()
        if result.hardware_counters is not None
    ]
    _show(present, {r.case.key: r.cost for r in run.results}, as_json=as_json)
    if not present:
        console.warn("no counters are stored with these cases; leave out --stored to read them")
    return 0 if present else 1


def _show_commands(of_cases: dict[str, ProfilerCommands | None], *, as_json: bool) -> int:
    known = {key: commands for key, commands in of_cases.items() if commands is not None}
    if as_json:
        console.print_json([{"case": key, **_record(commands)} for key, commands in known.items()])
    for commands in () if as_json else known.values():
        for line in (commands.ncu, commands.nsys):
            console.echo(line)
    if not known:
        console.warn("profilers are for forward passes on NVIDIA GPUs")
    return 0 if known else 1


def _record(commands: ProfilerCommands) -> dict[str, str]:
    return {"ncu": commands.ncu, "nsys": commands.nsys, "counters": commands.counters}


def _show(counted: Sequence[CaseCounters], costs: dict[str, Cost | None], *, as_json: bool) -> None:
    if as_json:
        console.print_json([{**msgspec.to_builtins(one), "kernels": records(one.counters)} for one in counted])
        return
    for one in counted:
        case = Case(problem=one.problem, variant=one.variant)
        for line in _lines(one, case, costs.get(case.key)):
            console.echo(line)


def _lines(one: CaseCounters, case: Case, cost: Cost | None) -> Iterator[str]:
    call = call_counters(one.counters)
    yield format_case(case)
    yield f"  {describe_counting(one.counters)}"
    if one.run_id is not None:
        yield f"  stored with run {one.run_id}"
    for text in (describe_traffic(cost, one.counters), describe_sectors(call) if call is not None else ""):
        if str(text):
            yield f"  {text}"
    for row in counted_kernels(one.counters):
        name, *columns = COUNTERS
        yield f"  {name.single(row)}"
        for column in columns:
            if column.value(row) is not None:
                yield f"    {column.title}: {column.single(row)}"
    if one.counters.not_read:
        yield f"  not known to this ncu: {', '.join(one.counters.not_read)}"
