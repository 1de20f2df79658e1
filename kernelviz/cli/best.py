"""`kernelviz best`: the own variant that a user should get for a problem, and the rule that chooses it."""

from typing import Annotated, cast, get_args

import typer

from kernelviz import bench as use_cases
from kernelviz.bench.best import best as best_of
from kernelviz.cli import console, options
from kernelviz.core import Direction, check_name
from kernelviz.text import format_problem


def best(
    op: Annotated[str, typer.Argument(metavar="OP", help="Name of an op; `kernelviz ops` lists them.")],
    size: options.Sizes = None,
    dtype: options.Dtype = None,
    compute: options.Compute = None,
    direction: options.Direction = "forward",
    device: Annotated[
        str | None,
        typer.Option(
            metavar="cuda:0|CARD",
            help="A GPU of this machine, or a card of the recorded runs, such as H200 or H100. Default: the first GPU here, "
            "otherwise the first of these cards.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Print which own variant (Triton, Gluon, CUDA C++) the rule of the op chooses for a problem, and the rule.

    The rule depends on sizes, number format, direction and facts of the card. It never chooses a variant of a library,
    nor one that runs only if it is named. A variant that the card or the problem does not allow is passed over. In
    Python, `kernelviz.best` binds the variant to your tensors.
    """
    check_name("direction", direction, get_args(Direction))
    sizes = options.parse_sizes(size)
    chosen = best_of(
        use_cases.current(), op, sizes, dtype, compute=compute, direction=cast(Direction, direction), device=device
    )
    if as_json:
        console.print_json(chosen.record)
        return
    console.echo(chosen.variant.name)
    console.err().print(f"{format_problem(chosen.problem)} on {chosen.device.name}", markup=False, highlight=False)
    console.err().print(f"Rule: {chosen.rule}", markup=False, highlight=False)
    console.err().print(f"Variant: {chosen.variant.summary}", markup=False, highlight=False)
