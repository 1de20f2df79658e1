"""`kernelviz tunings show` and `kernelviz tunings transfer`: what the configurations of a tuning say, and how choices
transfer."""

from contextlib import closing
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from kernelviz import bench as use_cases
from kernelviz.bench import transfer as use_case
from kernelviz.cli import console, options
from kernelviz.cli.progress import follow_run
from kernelviz.core import BadField
from kernelviz.metrics.configurations import ConfigurationSpace, configuration_space, in_rank_order
from kernelviz.metrics.parameter_effects import ParameterEffects, parameter_effects
from kernelviz.metrics.transfer import Transfer
from kernelviz.tables.configurations import configuration_columns, effect_columns, transfer_columns
from kernelviz.text import describe_failures, format_problem
from kernelviz.text.configurations import METHOD, configuration_insight, describe_counts, record
from kernelviz.text.transfer import METHOD as TRANSFER_METHOD
from kernelviz.text.transfer import describe_other_code, transfer_insight, transfer_record

MOST_ROWS = 10


def show(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of a tuning's run, also of an imported one.")],
    rows: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of configurations in the table, the fastest first.")
    ] = MOST_ROWS,
    as_json: options.Json = False,
) -> int:
    """Show what the configurations of a tuning say: the best one, what each parameter is worth, and why some have no time.

    Exit code 0: some configuration has a time; 2: none has.
    """
    space = configuration_space(use_cases.current().load(run))
    effects = parameter_effects(space)
    if as_json:
        console.print_json(record(space, effects))
    else:
        console.show(report(space, effects, rows))
    return 0 if space.best is not None else 2


def report(space: ConfigurationSpace, effects: ParameterEffects, most: int) -> RenderableType:
    """The sentence, the counts, the parameters, the fastest configurations, and the failures by reason."""
    ranked = [c for c in in_rank_order(space) if c.time_s is not None]
    listed = [c for number, c in enumerate(ranked) if number < most or c.is_default]
    parts: list[RenderableType] = [
        Text(f"{format_problem(space.problem)}, {space.variant}, on {space.device}"),
        Text(str(configuration_insight(space, effects))),
        Text(str(describe_counts(space))),
    ]  # fmt: skip
    if effects.parameters and effects.count:
        parts += [console.table(list(effect_columns(space)), list(effects.parameters)), Text(str(METHOD), style="dim")]
    if listed:
        parts.append(console.table(configuration_columns(space), listed))
    parts += [Text(f"✕ {len(reason.variants)} × {describe_failures(reason)}", style="red") for reason in space.failures]
    return Group(*parts, Text(f"run {space.run_id}", style="dim"))


def transfer(
    op: Annotated[str, typer.Argument(metavar="OP", help="Op of the variant.")],
    variant: Annotated[str, typer.Argument(metavar="VARIANT", help="Variant with stored tunings of several shapes.")],
    dtype: options.Dtype = None,
    device: options.OnlyDevice = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="First measure the pairs that nobody has measured, shape by shape.")
    ] = False,
    as_json: options.Json = False,
) -> int:
    """Show how the configuration that was tuned for one shape does at the others, over the stored tunings of a variant.

    Only tunings of the same code on the same device are compared. Exit code 0: every pair is measured; 1: some are not.
    """
    with closing(use_cases.current()) as bench:
        stored = bench.tunings.find(op, variant=variant, device=device)
        chosen = [s.tuning for s in stored if dtype in (None, s.tuning.problem.dtype)]
        if not chosen:
            raise BadField(
                "VARIANT", variant, "no tuning of it is stored here; `kernelviz tune OP VARIANT --size …` makes one"
            )
        newest = max(chosen, key=lambda t: t.created_at)
        matrix = use_case.of_tuning(bench, newest)
        if measure:
            device_id = next((d.id for d in bench.devices() if d.uuid == newest.device_uuid), None)
            if device_id is None:
                raise BadField("--measure", newest.device, "the tunings are of a device that is not here")
            for shape in dict.fromkeys(b for _, b in matrix.missing):
                run_id = use_case.measure(bench, matrix, shape, device_id, owner=console.owner())
                follow_run(bench, run_id, bench.load(run_id).plan)
            matrix = use_case.of_tuning(bench, newest)
        if as_json:
            console.print_json(transfer_record(matrix))
        else:
            console.show(transfer_report(matrix))
        return 1 if matrix.missing else 0


def transfer_report(matrix: Transfer) -> RenderableType:
    """The sentence, the matrix, how to read it, and how to measure what is missing."""
    first = matrix.tunings[0]
    parts: list[RenderableType] = [
        Text(f"{first.problem.op} {first.problem.precision}, {first.variant}, on {first.device}"),
        Text(str(transfer_insight(matrix))),
        console.table(transfer_columns(matrix), list(range(len(matrix.tunings)))),
        Text(str(TRANSFER_METHOD), style="dim"),
    ]
    if matrix.missing:
        parts.append(
            Text(f"`kernelviz tunings transfer {first.problem.op} {first.variant} --measure` measures what is missing")
        )
    if matrix.other_code:
        parts.append(Text(str(describe_other_code(matrix)), style="dim"))
    return Group(*parts)
