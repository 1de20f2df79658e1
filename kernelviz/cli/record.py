"""`kernelviz record`: measure ops with all their variants for the gallery, and write them in the compact form."""

import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from kernelviz import bench as use_cases
from kernelviz.bench import recording
from kernelviz.bench.code import MOST_RECORDED_BYTES, describe_left_out
from kernelviz.cli import console, options
from kernelviz.cli.progress import follow_run
from kernelviz.cli.run import exit_code
from kernelviz.core import BadField, check_name
from kernelviz.core.problem import Direction


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
    most_sizes: Annotated[
        int, typer.Option(min=2, metavar="N", help="At most so many default sizes of the axis that has most.")
    ] = recording.MOST_SIZES,
    index: Annotated[
        bool, typer.Option("--index", help="Measure nothing; only derive the indices of the folder again.")
    ] = False,
    with_code: options.WithCode = False,
    most_code_mb: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="MB",
            help="With --with-code: most compressed code of a run. The last size comes first, and of each, sources, then cubins; "
            "of each kind, the fastest variant of each backend.",
        ),
    ] = MOST_RECORDED_BYTES / 1e6,
    direction: Annotated[
        str | None, typer.Option(metavar="NAME", help="forward or backward. Default: each that an op has.")
    ] = None,
    most_s: Annotated[
        float,
        typer.Option(
            min=1.0,
            max=threading.TIMEOUT_MAX,
            metavar="SECONDS",
            help="Stop after so long; the same command goes on where it ended.",
        ),
    ] = threading.TIMEOUT_MAX,
    part: Annotated[
        str, typer.Option(metavar="I/N", help="Every Nth op from the Ith on, for N GPUs that record at once.")
    ] = "1/1",
) -> int:
    """Record runs for the gallery: each op with all variants that can run here, at some of its default sizes.

    An op whose file is in the folder is skipped, and an interrupted recording goes on where it ended, so the same command can be
    repeated. Calibrate the device first (kernelviz device --calibrate): without its roofs, a run has no share of a measured roof.
    With --with-code a run holds at most --most-code-mb of compressed code, and what was left out is said. Exit code 0: every case
    was measured; 1: some cases failed.
    """
    with closing(use_cases.current()) as bench:
        where = bench.device(device or bench.default_device()).id
        code = 0
        if index and ops:
            raise BadField("--index", "yes", "it measures nothing; leave out the ops")
        if direction is not None:
            check_name("direction", direction, get_args(Direction))
        one_way = cast("Direction | None", direction)
        wanted = ops or tuple(op.name for op in bench.ops().values() if direction in (None, *op.directions))
        missing = () if index else recording.missing(bench, wanted, where, output, direction=one_way, part=part)
        until_s = time.monotonic() + most_s
        if missing and not bench.roofs(where):
            console.err().print(
                f"{where} is not calibrated, so these runs will have no measured roofs; "
                f"`kernelviz device --device {where} --calibrate` measures them"
            )
        for number, op in enumerate(missing):
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                console.err().print(f"{len(missing) - number} runs are left; the same command goes on with {op}")
                code = 1
                break
            run_id = recording.start(bench, op, where, owner=console.owner(), budget_s=budget_s, most_sizes=most_sizes)
            stop = threading.Timer(left_s, bench.cancel, (run_id,))
            stop.start()
            try:
                follow_run(bench, run_id, bench.load(run_id).plan)
            finally:
                stop.cancel()
            run = bench.load(run_id)
            if run.status != "finished":
                console.err().print(f"{op}: {run.status}; the same command continues it")
                code = 1
                break
            if with_code:
                run, left_out = bench.history.code.with_code(run, most_bytes=round(1e6 * most_code_mb))
                for line in describe_left_out(left_out):
                    console.err().print(f"{op}: {line}")
            size = recording.write(run, recording.name_of(bench, op.op, where, op.direction), output)
            console.err().print(f"{op}: {len(run.results)} cases, {size / max(len(run.results), 1):.0f} B a case")
            code = max(code, 1 if exit_code(run) else 0)
        recording.write_indices(output)
        return code
