"""Options and arguments that several commands share: their names, the values that they take, and their help."""

from pathlib import Path
from typing import Annotated, get_args

import typer

from kernelviz.core import Data as DataKind

OpName = Annotated[str, typer.Argument(metavar="OP", help="Op to compute. To list the ops: `kernelviz ops`.")]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="Id of a run. To list the runs: `kernelviz runs`.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else there.")]
Sizes = Annotated[
    list[str] | None,
    typer.Option(
        "--size",
        metavar="AXIS=VALUE",
        help="Size of one axis, for example m=4096 or m=2^12. Repeat the option for each axis.",
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Named set of sizes, for example those of a model: llama-3-8b."),
]
Dtype = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Number format: fp32, fp16, bf16 or uint8. `kernelviz ops` shows those of each op. "
        "Default: the first one of the op.",
    ),
]
Compute = Annotated[
    str | None,
    typer.Option(metavar="tf32|ieee", help="Arithmetic of fp32 matrix products. Default: ieee."),
]
Direction = Annotated[
    str, typer.Option(metavar="forward|backward", help="Forward pass or backward pass (only ops that have one).")
]
Data = Annotated[
    str,
    typer.Option(
        metavar="KIND",
        help=f"Values of the inputs: {', '.join(get_args(DataKind))}. "
        "sorted means indices in ascending order and is for ops that take indices.",
    ),
]
DeviceId = Annotated[
    str | None,
    typer.Option("--device", metavar="cuda:0|cpu", help="Device. Default: the first usable GPU, otherwise the CPU."),
]
Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--with", metavar="FILE.py", help="Python file with your own variants. Repeat the option for several files."
    ),
]
Headline = Annotated[
    str,
    typer.Option(
        "--l2",
        metavar="cold|warm",
        help="Device time to use: cold (data flushed from the L2 cache before each call) or warm.",
    ),
]


def absolute_paths(plugins: list[Path] | None) -> tuple[str, ...]:
    """The files of `--with` as absolute paths, because the measuring process may have another current folder."""
    return tuple(str(path.resolve()) for path in plugins or ())
