"""`kernelviz model`: a transformer layer of a published model op by op, against the layer as one module, and a traffic mix."""

from contextlib import closing
from typing import Annotated

import typer

from kernelviz import bench as use_cases
from kernelviz.bench import Bench, model_report, model_runs
from kernelviz.bench import model as use_case
from kernelviz.bench.model import Layer
from kernelviz.bench.model_mix import DECODE_BATCH, PREFILL_TOKENS, TrafficMix, checked_share, traffic_mix
from kernelviz.cli import console, options
from kernelviz.cli.progress import follow_run
from kernelviz.cli.workloads import follow_progress
from kernelviz.metrics.layer_truth import group_rows
from kernelviz.models.parts import NUMBER_FORMATS, PHASES
from kernelviz.models.presets import PRESETS, preset_named
from kernelviz.tables.column import View, select
from kernelviz.tables.model import GROUP_COLUMNS, PART_COLUMNS, part_record
from kernelviz.text.model import (
    describe_best_saving,
    describe_layer,
    describe_mix,
    describe_savings,
    describe_served,
    describe_sum,
    describe_truth,
    format_call,
    format_source,
)


def model(
    preset: Annotated[str, typer.Argument(metavar="MODEL", help=f"One of: {', '.join(PRESETS)}.")],
    phase: Annotated[str, typer.Option(metavar="NAME", help=f"One of: {', '.join(PHASES)}.")] = "prefill",
    batch: Annotated[int | None, typer.Option(metavar="N", help="Sequences. Default: 1, and 64 when decoding.")] = None,
    context: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Tokens of each sequence; when decoding, those in the cache with the new one. Default: 4096, and 8192 when "
            "decoding, or what the model takes.",
        ),
    ] = None,
    dtype: Annotated[str, typer.Option(metavar="NAME", help=f"Number format: {' or '.join(NUMBER_FORMATS)}.")] = "bf16",
    device: Annotated[
        str | None,
        typer.Option(metavar="ID|NAME", help="A device of this machine, or the name of one with recorded results."),
    ] = None,
    measure: Annotated[bool, typer.Option("--measure", help="First measure the parts that have no result.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="With --measure: measure also parts that have a result.")
    ] = False,
    truth: Annotated[bool, typer.Option("--truth", help="First measure the whole layer, eager and compiled.")] = False,
    share: Annotated[
        float | None,
        typer.Option(metavar="0..1", help="Also show a traffic mix in which this share of the tokens is decoded."),
    ] = None,
    prefill: Annotated[
        int, typer.Option(metavar="N", help="With --share and decoding: tokens of a prefilled sequence.")
    ] = PREFILL_TOKENS,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the layer in Markdown, as in docs/model.md.")
    ] = False,
    as_json: options.Json = False,
) -> int:
    """Show a transformer layer of a published model op by op, and the same layer as one torch module.

    Times come from stored results where there are any. Ctrl-C ends measuring and keeps the results; the same command goes on.
    Exit code 1: with --measure, a part that an op covers still has no time in torch eager.
    """
    known = preset_named(preset)
    decoding = phase == "decode"
    call = use_case.call_of(
        known.name,
        phase,
        batch if batch is not None else DECODE_BATCH if decoding else 1,
        context if context is not None else min(8192 if decoding else 4096, known.most_context),
        dtype,
    )[1]
    if share is not None:
        checked_share(share)
    with closing(use_cases.current()) as bench:
        source = use_case.source_named(bench, device)
        layer = use_case.opened(bench, known, call, source)
        if measure and not _measured(bench, layer, again=again):
            console.err().print("stopped; the same command goes on")
            return 1
        if truth:
            follow_progress(bench, model_runs.start_truth(bench, layer, owner=console.owner()))
        layer = use_case.opened(bench, known, call, source)
        mix = None
        if share is not None:
            other = {"batch": call.batch, "context": call.context, "prefill": prefill}
            if not decoding:
                other = {"batch": DECODE_BATCH, "context": min(8192, known.most_context), "prefill": call.context}
            mix = traffic_mix(bench, known, call.dtype, source, **other)
        _print(layer, mix, share or 0.0, as_markdown=as_markdown, as_json=as_json)
        return 1 if measure and any(part.lacks("eager") not in (None, "no_op") for part in layer.parts) else 0


def _measured(bench: Bench, layer: Layer, *, again: bool) -> bool:
    """Measure the parts one run after the other; returns whether all ended."""
    if layer.source.recorded:
        model_runs.start_all(bench, layer)  # raises the error that says what to do
    device_id = layer.source.device.id
    runs = model_runs.runs_of(layer) if again else model_runs.missing_runs(bench, layer)
    for number, run in enumerate(runs, 1):
        console.err().print(f"{number} of {len(runs)}: {run.title}")
        run_id = model_runs.start(bench, run, device_id, owner=console.owner())
        follow_run(bench, run_id, model_runs.plan_of(bench, run, device_id))
        if bench.load(run_id).status != "finished":
            return False
    return True


def _print(layer: Layer, mix: TrafficMix | None, share: float, *, as_markdown: bool, as_json: bool) -> None:
    if as_json:
        console.print_json(model_report.record(layer, mix))
        return
    if as_markdown:
        console.echo(model_report.markdown(layer, mix, share).removesuffix("\n"))
        return
    where = format_source(layer.source.device.name, recorded=layer.source.recorded)
    console.echo(f"{format_call(layer.preset, layer.call)}, {where}")
    columns = [c for c in select(PART_COLUMNS, layer.parts, View.TERMINAL) if c.name != "problem"]
    console.show_rows(columns, layer.parts, part_record, as_json=False, nothing="no part")
    out = console.out()
    lines = [str(describe_layer(layer.parts, layer.comparable))]
    lines += [str(describe_sum(one)) for one in layer.sums]
    tokens, layers = layer.call.tokens, layer.preset.layers
    lines.append(str(describe_best_saving(layer.comparable, tokens, layers)))
    lines += [str(text) for text in describe_savings(layer.fusions, layer.parts, tokens, layers)]
    lines += [str(describe_truth(result)) for result in layer.truth]
    if mix is not None:
        lines.append(str(describe_mix(mix.ways, share, mix.missing)))
        lines += [str(describe_served(p.name, p.variants, p.flips, share)) for p in mix.parts]
    for line in lines:
        out.print(console.plain(line), markup=False, highlight=False)
    groups = group_rows(layer.truth)
    if groups:
        chosen = select(GROUP_COLUMNS, groups, View.TERMINAL)
        console.show_rows(chosen, groups, lambda g: {}, as_json=False, nothing="no part")
