"""`kernelviz claims`: published numbers, what this device measures, and the verdict of each."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from kernelviz import bench as use_cases
from kernelviz.bench import claim_runs, claim_workloads
from kernelviz.bench import claims as on_device
from kernelviz.bench.claims import ClaimsOnDevice
from kernelviz.bench.claims_document import markdown
from kernelviz.cli import console, options
from kernelviz.cli.progress import follow_run
from kernelviz.cli.workloads import follow_workload
from kernelviz.core import BadField
from kernelviz.formats.claim_files import shipped_claims
from kernelviz.tables.claims import COLUMNS, describe_counts_of, record
from kernelviz.tables.column import View
from kernelviz.text.claim_reasons import describe_assessment, describe_limits
from kernelviz.text.claims import (
    RULE,
    VERDICTS,
    describe_conversion,
    describe_qualities,
    describe_test,
    format_claimed,
    format_interval,
    format_measured,
    format_source,
)

app = typer.Typer(
    help="List published numbers with what this device measures and whether they hold, show one, or measure them."
)

Recorded = Annotated[
    str | None,
    typer.Option(
        "--recorded", metavar="NAME", help="Use the results that were recorded on a device and come with kernelviz."
    ),
]
_IN_TERMINAL = ("claim", "published", "here", "verdict", "reason")


def _opened(device: str | None, recorded: str | None) -> ClaimsOnDevice:
    if recorded is not None and device is not None:
        raise BadField("--recorded", recorded, "it has a device of its own; leave out --device")
    return on_device.opened(use_cases.current(), device, recorded)


@app.callback(invoke_without_command=True)
def claims(
    context: typer.Context,
    source: Annotated[str | None, typer.Option(metavar="NAME", help="Only claims of this source.")] = None,
    verdict: Annotated[
        str | None, typer.Option(metavar="TEXT", help='Only claims with this verdict, for example "does not hold".')
    ] = None,
    op: Annotated[str | None, typer.Option(metavar="OP", help="Only claims about this op.")] = None,
    device: options.DeviceId = None,
    recorded: Recorded = None,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the document in Markdown, as docs/claims.md is.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """List published numbers with what this device measures, and whether they hold.

    `kernelviz claims run` measures everything that can be tested here.
    """
    if context.invoked_subcommand is not None:
        return
    of_device = _opened(device, recorded)
    chosen = on_device.selected(of_device.assessments, source=source, verdict=verdict, op=op)
    if as_json:
        console.print_json([record(one) for one in chosen])
        return
    if as_markdown:
        console.echo(markdown(use_cases.current(), of_device, chosen).removesuffix("\n"))
        return
    columns = [c for c in COLUMNS if c.name in _IN_TERMINAL and View.TERMINAL & c.view]
    console.show_rows(columns, chosen, record, as_json=False, nothing="no claim has all of these properties")
    console.err().print(f"{of_device.device.name}: {describe_counts_of(chosen)}")


@app.command()
def show(
    claim: Annotated[str, typer.Argument(metavar="CLAIM", help="Name of a claim. To list them: `kernelviz claims`.")],
    device: options.DeviceId = None,
    recorded: Recorded = None,
    as_json: options.Json = False,
) -> None:
    """Show one claim: its source, how it is tested, what was measured, and why it holds or not."""
    of_device = _opened(device, recorded)
    one = on_device.named(of_device.assessments, claim)
    if as_json:
        console.print_json(record(one))
        return
    collection = shipped_claims()
    published_on = f" on {one.claim.published_on}" if one.claim.published_on else ""
    lines = [
        (one.claim.id, one.claim.setup),
        ("source", str(format_source(collection.source_of(one.claim)))),
        ("published", f"{format_claimed(one.claim)}{published_on}"),
        ("on this card", str(describe_conversion(one))),
        ("test", str(describe_test(one.claim))),
        ("in its place", one.claim.substitute),
        (
            of_device.device.name,
            f"{format_measured(one) or 'no number'} ({format_interval(one)})" if one.measured else "",
        ),
        *(("quality", str(text)) for text in describe_qualities(one)),
        ("verdict", str(VERDICTS[one.verdict])),
        ("reason", str(describe_assessment(one))),
        ("limit", str(describe_limits(one))),
        ("remark", one.claim.remark),
        ("runs", ", ".join(one.run_ids)),
        *(("contradiction", c.sentence) for c in collection.about(one.claim)),
        ("rule", RULE),
    ]
    table = console.text_table(("", ""), ((Text(name), Text(text)) for name, text in lines if text))
    table.show_header = False
    console.show(table)


@app.command()
def run(
    claims: Annotated[
        list[str] | None,
        typer.Argument(metavar="CLAIM…", help="Names of claims. Default: everything that can be tested here."),
    ] = None,
    device: options.DeviceId = None,
    again: Annotated[bool, typer.Option("--again", help="Measure also what has a result already.")] = False,
) -> int:
    """Measure what the claims need on this device, a run for each problem, and list the verdicts.

    Ctrl-C ends it and keeps the results; the same command goes on. Exit code 0: every case has a result; 1: some are missing.
    """
    bench = use_cases.current()
    where = bench.device(device or bench.default_device()).id
    of_device = on_device.claims_on(bench, where)
    runs = claim_runs.claim_runs(bench, of_device, tuple(claims) if claims else None)
    of_workloads = claim_runs.workloads_to_measure(of_device, tuple(claims) if claims else None, again=again)
    if claims and not runs and not claim_workloads.workload_runs(of_device.assessments, tuple(claims)):
        reasons = "; ".join(f"{c}: {describe_assessment(on_device.named(of_device.assessments, c))}" for c in claims)
        raise BadField("claims", " ".join(claims), f"nothing is to be measured for them on {where} ({reasons})")
    missing = runs if again else claim_runs.unmeasured(of_device, runs)
    for number, one in enumerate(missing, 1):
        console.err().print(f"{number} of {len(missing)}: {one.title}")
        run_id = claim_runs.start(bench, one, where, owner=console.owner())
        follow_run(bench, run_id, claim_runs.plan_of(bench, one, where))
        if bench.load(run_id).status != "finished":
            console.err().print("stopped; the same command goes on")
            return 1
    for workload in of_workloads:
        console.err().print(workload.title)
        run_id = claim_workloads.start(bench, workload, where, owner=console.owner())
        follow_workload(bench, run_id, as_json=False)
        if bench.workloads.load(run_id).status != "finished":
            console.err().print("stopped; the same command goes on")
            return 1
    chosen = on_device.claims_on(bench, where).assessments
    listed = [a for a in chosen if not claims or a.claim.id in claims]
    columns = [c for c in COLUMNS if c.name in _IN_TERMINAL]
    console.show_rows(columns, listed, record, as_json=False, nothing="no claim")
    console.err().print(f"{describe_counts_of(listed)}")
    return 1 if any(a.verdict == "not measured yet" for a in listed) else 0


@app.command("record")
def record_runs(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder to write to, for example kernelviz/shipped/claims/h200.")
    ],
    device: options.DeviceId = None,
) -> None:
    """Write the runs behind the verdicts on this device to a folder, in the compact form, to be opened without the device."""
    bench = use_cases.current()
    with console.writable("folder", folder):
        of_device = on_device.claims_on(bench, device or bench.default_device())
        names = claim_runs.record(bench, of_device, folder)
    console.err().print(f"{len(names)} runs were written to {folder}")
