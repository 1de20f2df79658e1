"""`kernelviz best`: the own variant that a user should get for a problem, by the rule of its op or by a measurement."""

from typing import Annotated, cast, get_args

import typer

from kernelviz import bench as use_cases
from kernelviz.bench.best import Best
from kernelviz.bench.best import best as best_of
from kernelviz.bench.measured_choice import CANDIDATES, Chosen, MeasuredChoice, chosen
from kernelviz.cli import console, options
from kernelviz.core import Direction, check_name, units
from kernelviz.text import format_problem
from kernelviz.text.best import describe_unmeasured


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
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help=f"Measure the first {CANDIDATES} variants that the rule names on the GPU of this machine, unless a stored run "
            "has them. The fastest right one is printed; the run is stored.",
        ),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Print which own variant (Triton, Gluon, CUDA C++) a user should get for a problem, and the rule of the op.

    The rule depends on sizes, number format, direction and facts of the card. It never names a variant of a library,
    nor one that runs only if it is named. A variant that the card or the problem does not allow is passed over. Where a stored
    run on this GPU has the first variants of the rule, the fastest right one of that run is printed. In Python,
    `kernelviz.best` measures and binds the variant to your tensors.
    """
    check_name("direction", direction, get_args(Direction))
    sizes = options.parse_sizes(size)
    bench = use_cases.current()
    by_rule = best_of(bench, op, sizes, dtype, compute=compute, direction=cast(Direction, direction), device=device)
    choice = chosen(bench, by_rule, measure=measure, owner=console.owner())
    if as_json:
        measured = measured_record(choice.measured)
        console.print_json(choice.best.record | {"by_rule": by_rule.variant.name, "measured": measured})
        return
    console.echo(choice.best.variant.name)
    for line in described(choice, by_rule):
        console.err().print(line, markup=False, highlight=False)


def measured_record(measured: MeasuredChoice | None) -> dict[str, object] | None:
    """The measurement as plain values."""
    return None if measured is None else {"run": measured.run_id, "at": measured.at, "cold_s": dict(measured.seconds)}


def described(choice: Chosen, by_rule: Best) -> list[str]:
    """What the command says beside the name: problem, card, rule and measurement."""
    best, measured = choice.best, choice.measured
    lines = [f"{format_problem(best.problem)} on {best.device.name}", f"Rule: {best.rule}"]
    if measured is not None:
        times = ", ".join(f"{name} {units.seconds(seconds)}" for name, seconds in measured.seconds.items())
        lines.append(
            f"Measured (run {measured.run_id}, cold device times): {times}. The rule prefers {by_rule.variant.name}."
        )
    elif choice.reason is not None and choice.reason != "not_asked":
        lines.append(f"Not measured: {describe_unmeasured(choice.reason)}.")
    return [*lines, f"Variant: {best.variant.summary}"]
