"""`kernelviz record`: measure ops with all their variants for the gallery, and write them in the compact form."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from kernelviz import bench as use_cases
from kernelviz.bench import recording
from kernelviz.bench.code import MOST_RECORDED_BYTES, describe_left_out
from kernelviz.cli import console, options
from kernelviz.cli.progress import follow_run
from kernelviz.cli.run import exit_code
from kernelviz.core import BadField


def record(
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FOLDER", help="Folder to write to, for example kernelviz/shipped."),
    ],
    ops: Annotated[list[str] | None, typer.Argument(metavar="OP…", help="Ops to record. Default: every op.")] = None,
    device: options.DeviceId = None,
    budget_s: Annotated[
        float,
        typer.Option(min=0.01, max=600.0, metavar="SECONDS", help="Largest device time for each case, in seconds."),
    ] = recording.BUDGET_S,
    index: Annotated[
        bool, typer.Option("--index", help="Measure nothing; only derive the indices of the folder again.")
    ] = False,
    with_code: options.WithCode = False,
) -> int:
    """Record runs for the gallery: each op with all variants that can run here, at its default sizes.

    An op whose file is in the folder is skipped, and an interrupted recording goes on where it ended, so the same command can be
    repeated. Calibrate the device first (kernelviz device --calibrate): without its roofs, a run has no share of a measured roof.
    With --with-code a run holds at most 4 MB of compressed code, and what was left out is said. Exit code 0: every case
    was measured; 1: some cases failed.
    """
    with closing(use_cases.current()) as bench:
        where = bench.device(device or bench.default_device()).id
        code = 0
        if index and ops:
            raise BadField("--index", "yes", "it measures nothing; leave out the ops")
        missing = () if index else recording.missing(bench, ops or tuple(bench.ops()), where, output)
        if missing and not bench.roofs(where):
            console.err().print(
                f"{where} is not calibrated, so these runs will have no measured roofs; "
                f"`kernelviz device --device {where} --calibrate` measures them"
            )
        for op in missing:
            run_id = recording.start(bench, op, where, owner=console.owner(), budget_s=budget_s)
            follow_run(bench, run_id, bench.load(run_id).plan)
            run = bench.load(run_id)
            if run.status != "finished":
                console.err().print(f"{op}: {run.status}; the same command continues it")
                return 1
            if with_code:
                run, left_out = bench.history.code.with_code(run, most_bytes=MOST_RECORDED_BYTES)
                for line in describe_left_out(left_out):
                    console.err().print(f"{op}: {line}")
            size = recording.write(run, recording.name_of(bench, op, where), output)
            console.err().print(f"{op}: {len(run.results)} cases, {size / max(len(run.results), 1):.0f} B a case")
            code = max(code, 1 if exit_code(run) else 0)
        recording.write_indices(output)
        return code
