"""Options and arguments that several commands share: their names, their help, and how their texts are read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, get_args

import typer

from kernelviz.core import BadField, Case, FigureName, Plan, RunRequest
from kernelviz.core import Data as DataKind
from kernelviz.core.configuration import split_names

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
    typer.Option(
        metavar="NAME",
        help="Arithmetic of matrix products: ieee or tf32 of fp32 (default: ieee), fast_accumulation or fp32_accumulation of "
        "8-bit floats (default: fast_accumulation).",
    ),
]
Sweeps = Annotated[
    list[str] | None,
    typer.Option(
        metavar="AXIS=SIZES",
        help="Several sizes of one axis: n=64,128 (a list), n=2^10..2^28 (powers of two), n=128..1024:128 (in steps) "
        "or n=4k,1M (k is 1,024, M is 2^20, G is 2^30) or n=2^27/m (from another axis). Repeat the option for each axis.",
    ),
]
Direction = Annotated[
    str, typer.Option(metavar="forward|backward", help="Forward pass or backward pass (only ops that have one).")
]
Data = Annotated[
    str,
    typer.Option(
        metavar="KIND",
        help=f"Values of the inputs: {', '.join(get_args(DataKind))}. "
        "outliers: normal, with one of 1,009 numbers 32 times larger. sorted: indices in ascending order, for ops that take "
        "indices. Power, and so the clock, depends on the data. Outputs are also checked with normal data.",
    ),
]
DeviceId = Annotated[
    str | None,
    typer.Option("--device", metavar="cuda:0|cpu", help="Device. Default: the first usable GPU, otherwise the CPU."),
]
OnlyDevice = Annotated[str | None, typer.Option("--device", metavar="cuda:0|cpu", help="Only of this device.")]
OnlyVariant = Annotated[str | None, typer.Option("--variant", metavar="VARIANT", help="Only this variant.")]
Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--with", metavar="FILE.py", help="Python file with your own variants. Repeat the option for several files."
    ),
]
NoCompileAhead = Annotated[
    bool,
    typer.Option(
        "--no-compile-ahead",
        help="Compile every kernel in the measuring process, one after the other, instead of ahead in several processes. "
        "KERNELVIZ_COMPILE_PROCESSES sets how many there are; by default the number of cores less two.",
    ),
]
WithCode = Annotated[
    bool,
    typer.Option(
        "--with-code", help="Also write the code that compilers made (sources, PTX, cubins), each content once."
    ),
]
WithPluginCode = Annotated[
    bool, typer.Option("--with-plugin-code", help="With --with-code: also the code of your own variants' files.")
]
Headline = Annotated[
    str,
    typer.Option(
        "--l2",
        metavar="cold|warm",
        help="Device time to use: cold (data flushed from the L2 cache before each call) or warm.",
    ),
]


def run_request(
    op: str,
    variants: tuple[str, ...] | None,
    sizes: Sequence[str] | None,
    sweeps: Sequence[str] | None = None,
    *,
    preset: str | None,
    dtype: str | None,
    compute: str | None,
    direction: str = "forward",
    data: str,
    baseline: str | None = None,
    device: str | None,
    plugins: Sequence[Path] | None,
) -> RunRequest:
    """What the options of a command ask of a run. Errors: BadField for sizes that cannot be read.

    Plug-in files become absolute paths, because the measuring process may have another current folder.
    """
    return RunRequest(
        op=op,
        variants=variants,
        sizes=parse_sizes(sizes, sweeps) or None,
        preset=preset,
        dtype=dtype,
        compute=compute,
        direction=direction,
        data=data,
        baseline=baseline,
        device=device,
        plugins=tuple(str(path.resolve()) for path in plugins or ()),
    )


def only_case(plan: Plan, command: str, option: str) -> Case:
    """The case of a plan that must have one. Errors: BadField that says how to name one case of the command."""
    cases = plan.cases()
    if len(cases) != 1:
        raise BadField(
            command, f"{len(cases)} cases", f"name one variant and one size for each axis ({option}, --size)"
        )
    return cases[0]


def parse_sizes(sizes: Sequence[str] | None, sweeps: Sequence[str] | None = None) -> dict[str, str]:
    """The text of each axis, from ``m=4096`` and ``n=2^10..2^28``. Errors: BadField for a text without "=" or a repeated axis.

    >>> parse_sizes(["m=4096"], ["n=2^10..2^28"])
    {'m': '4096', 'n': '2^10..2^28'}
    """
    by_axis: dict[str, str] = {}
    for option, text in (*(("--size", t) for t in sizes or ()), *(("--sweep", t) for t in sweeps or ())):
        axis, equals, value = (part.strip() for part in text.partition("="))
        if not (equals and axis and value):
            raise BadField(option, text, "write an axis and its sizes, as m=4096 or n=2^10..2^20")
        if axis in by_axis:
            raise BadField(option, text, f"axis {axis!r} is given twice; write several sizes as {axis}=64,128")
        by_axis[axis] = value
    return by_axis


def parse_names(text: str | None, option: str = "--variants") -> tuple[str, ...] | None:
    """Names from ``a,b[block=64,warps=4]``, without repeats. None if the option was not given. Errors: BadField if it is empty.

    >>> parse_names("torch_eager, triton_block,torch_eager")
    ('torch_eager', 'triton_block')
    """
    names = None if text is None else tuple(dict.fromkeys(split_names(text)))
    if names == ():
        known = ", ".join(get_args(FigureName)) if option == "--figures" else "`kernelviz ops` lists them"
        raise BadField(option, text, f"name at least one {option[2:].removesuffix('s')}; {known}")
    return names


def options_on_command_line(context: typer.Context) -> list[str]:
    """The options that the user typed, for example `--size`, whatever their values are."""
    return [
        max(p.opts, key=len)
        for p in context.command.params
        if p.param_type_name == "option"
        and (source := context.get_parameter_source(p.name or ""))
        and source.name == "COMMANDLINE"
    ]
