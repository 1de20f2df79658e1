"""`kernelviz compile`: compile Triton variants with the Triton of this machine, for another machine's GPU."""

from pathlib import Path
from typing import Annotated

import typer

from kernelviz import bench as use_cases
from kernelviz.bench.comparison import opened
from kernelviz.bench.precompiling import precompile
from kernelviz.cli import console, options
from kernelviz.core import units


def compile_op(
    op: options.OpName,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FILE.py", help="The plug-in to write; measure it with `run --with FILE.py`."
        ),
    ],
    variants: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Variants of Triton to compile, separated by commas. Default: all of the op."),
    ] = None,
    size: options.Sizes = None,
    sweep: options.Sweeps = None,
    preset: options.Preset = None,
    dtype: options.Dtype = None,
    compute: options.Compute = None,
    direction: options.Direction = "forward",
    of: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="RUN|FILE",
            help="Compile for the GPU of this run. Default: the GPU of the recorded run of the op that comes with kernelviz.",
        ),
    ] = None,
    ptxas: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Assemble the PTX with this ptxas instead of the one in Triton."),
    ] = None,
) -> int:
    """Compile the Triton variants of an op with the Triton that is installed here, for a GPU that need not be here.

    Where another version of Triton is installed, the plug-in that is written declares each variant a second time, with this
    machine code: `kernelviz run OP --with FILE.py` measures both in the same rounds, and `kernelviz compare RUN RUN --variant-a A
    --variant-b B --code` names the facts that differ. Use the same sizes and number format in both commands.

    Exit code 0: every case was compiled; 1: some cases do not compile; 2: bad usage.
    """
    request = options.run_request(
        op,
        options.parse_names(variants),
        size,
        sweep,
        preset=preset,
        dtype=dtype,
        compute=compute,
        direction=direction,
        data="normal",
        device=None,
        plugins=None,
    )
    run = None if of is None else opened(use_cases.current(), of)
    written = precompile(request, output, of=run, ptxas=ptxas)
    err = console.err()
    for case, error in written.failures.items():
        err.print(f"{case}: {console.plain(error)}")
    err.print(
        f"{units.counted(written.kernels, 'kernel')} of {units.counted(len(written.variants), 'variant')} at "
        f"{units.counted(len(written.problems), 'size')}, compiled by "
        f"{written.compiler} for {written.device.name}: {output}"
    )
    return 1 if written.failures else 0
