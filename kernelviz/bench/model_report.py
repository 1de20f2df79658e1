"""Use case: a layer as a document, in Markdown as docs/model.md has it, and as JSON."""

from collections.abc import Sequence
from typing import Any

import msgspec

from kernelviz.bench.model import Layer
from kernelviz.bench.model_mix import TrafficMix
from kernelviz.formats.markdown import table_lines
from kernelviz.metrics.layer_truth import LARGE_SHARE, group_rows, kernel_rows, large_without_part
from kernelviz.metrics.traffic_mix import PhaseTimes
from kernelviz.tables.column import Column, View, select
from kernelviz.tables.model import GROUP_COLUMNS, KERNEL_COLUMNS, PART_COLUMNS, part_record
from kernelviz.text.model import (
    METHOD,
    NO_CLAIM,
    describe_best_saving,
    describe_layer,
    describe_mix,
    describe_savings,
    describe_served,
    describe_sum,
    describe_truth,
    format_call,
)


def markdown(layer: Layer, mix: TrafficMix | None = None, share: float = 0.5) -> str:
    """The layer as Markdown: sums, parts, savings, the whole layer with its parts and large kernels, and a traffic mix."""
    call, tokens, layers = layer.call, layer.call.tokens, layer.preset.layers
    lines = [
        f"## {format_call(layer.preset, call)}",
        "",
        f"{layer.source.device.name}. Sizes: {layer.preset.source}.",
        "",
    ]
    lines += [str(describe_layer(layer.parts, layer.comparable)), ""]
    lines += [f"- {describe_sum(one)}" for one in layer.sums]
    lines += ["", str(NO_CLAIM), "", *_table(PART_COLUMNS, layer.parts), ""]
    lines += [f"- {describe_best_saving(layer.comparable, tokens, layers)}"]
    lines += [f"- {text}" for text in describe_savings(layer.fusions, layer.parts, tokens, layers)]
    if layer.truth:
        lines += ["", "### The layer as one module", "", *(f"- {describe_truth(result)}" for result in layer.truth)]
        lines += ["", *_table(GROUP_COLUMNS, group_rows(layer.truth))]
        kernels = kernel_rows(layer.truth)
        large = [row for row in kernels if row.share is not None and row.share > LARGE_SHARE]
        if large:
            lines += [
                "",
                f"Kernels above 2 % of the layer; {len(large_without_part(kernels))} of them belong to no part:",
                "",
            ]
            lines += _table(KERNEL_COLUMNS, large)
    if mix is not None:
        lines += ["", "### Traffic mix", "", str(describe_mix(mix.ways, share, mix.missing)), ""]
        lines += [f"- {describe_served(p.name, p.variants, p.flips, share)}" for p in mix.parts]
    return "\n".join([*lines, "", str(METHOD), ""])


def _table(columns: Sequence[Column[Any]], rows: Sequence[Any]) -> list[str]:
    chosen = select(columns, rows, View.MARKDOWN)
    return list(table_lines(chosen, rows))


def record(layer: Layer, mix: TrafficMix | None = None) -> dict[str, Any]:
    """The layer as JSON has it: numbers in SI base units, None where something is unknown."""
    return {
        "model": layer.preset.name,
        "source": layer.preset.source,
        "phase": layer.call.phase,
        "batch": layer.call.batch,
        "context": layer.call.context,
        "dtype": layer.call.dtype,
        "device": layer.source.device.name,
        "parts": [part_record(part) for part in layer.parts],
        "sums": [
            {
                "way": one.way,
                "sum_s": None if one.interval is None else one.interval.estimate,
                "low_s": None if one.interval is None else one.interval.low,
                "high_s": None if one.interval is None else one.interval.high,
                "missing": list(one.missing),
                "unreliable": list(one.unreliable),
            }
            for one in layer.sums
        ],
        "fusions": [{"name": f.name, "parts": list(f.parts), "saved_s": f.saved_s(layer.parts)} for f in layer.fusions],
        "truth_run": None if layer.truth_run is None else layer.truth_run.id,
        "truth": [msgspec.to_builtins({"variant": r.case.variant, "values": _values(r)}) for r in layer.truth],
    } | ({} if mix is None else {"mix": mix_record(mix)})


def mix_record(mix: TrafficMix) -> dict[str, Any]:
    """A traffic mix as JSON has it: seconds for a token of each way and variant, and the shares at which the fastest changes."""
    return {
        "decode_batch": mix.decode.call.batch,
        "decode_context": mix.decode.call.context,
        "prefill_tokens": mix.prefill.call.context,
        "missing": list(mix.missing),
        "ways": {way: _phases(times) for way, times in mix.ways.items()},
        "parts": [
            {
                "part": part.name,
                "variants": {v.name: _phases(v) for v in part.variants},
                "flips": [
                    {"share": f.share, "low": f.low, "high": f.high, "before": f.before, "after": f.after}
                    for f in part.flips
                ],
            }
            for part in mix.parts
        ],
    }


def _phases(times: PhaseTimes) -> dict[str, float]:
    return {"prefill_s": times.prefill.estimate, "decode_s": times.decode.estimate}


def _values(result: Any) -> dict[str, Any]:
    return {
        name: {"value": v.value} if hasattr(v, "value") else {"estimate": v.estimate, "low": v.low, "high": v.high}
        for name, v in result.values.items()
    }


def as_json(layer: Layer) -> bytes:
    """The record as JSON."""
    return msgspec.json.format(msgspec.json.encode(record(layer)), indent=1)
