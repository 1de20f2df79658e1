"""Text about layers of models: parts, ways, what is missing, and the sentences above the charts."""

from collections.abc import Mapping, Sequence

from kernelviz.core import units
from kernelviz.core.result import half_width
from kernelviz.core.workload import Measured, WorkloadResult
from kernelviz.metrics.layer_times import FusionTimes, LayerSum, Missing, PartTimes, Way, per_token_s
from kernelviz.metrics.layer_truth import MOST_REST, layer_time, measured_value
from kernelviz.metrics.traffic_mix import Flip, PhaseTimes, best_at, speed_up
from kernelviz.models.parts import FusionName, Gap, LayerCall, Phase, StandIn
from kernelviz.models.presets import ModelPreset
from kernelviz.text.text import Text, join

PARTS: Mapping[str, str] = {
    "attention_norm": "norm before attention",
    "qkv": "query, key and value projection",
    "qkv_bias": "bias of query, key and value",
    "rope": "rotary positions",
    "cache_write": "cache write",
    "attention": "attention",
    "output": "output projection",
    "output_bias": "bias of the output",
    "attention_residual": "residual add of attention",
    "feed_forward_norm": "norm before feed-forward",
    "gate": "gate projection",
    "up": "up projection",
    "up_bias": "bias of up",
    "activation": "activation",
    "down": "down projection",
    "down_bias": "bias of down",
    "feed_forward_residual": "residual add of feed-forward",
    "latents": "latent projections",
    "query_norm": "norm of the query latent",
    "kv_norm": "norm of the key and value latent",
    "query_up": "query up projection",
    "kv_up": "key and value up projection",
    "join_keys": "joining of keys",
    "absorb_query": "query into the latent space",
    "expand_value": "value out of the latent space",
}
PHASES: Mapping[Phase, str] = {"prefill": "Prefill", "decode": "Decoding"}
WAYS: Mapping[Way, str] = {"eager": "torch eager", "compiled": "torch.compile", "best": "best variants"}
_MISSING: Mapping[Missing, str] = {
    "no_op": "no op of the catalogue covers it",
    "number_format": "its op does not take this number format",
    "no_variant": "its op has no such variant",
    "not_measured": "not measured",
    "failed": "failed or wrong",
}
_GAPS: Mapping[Gap, str] = {
    "bias": "no op adds a row to each row",
    "head_dimensions": "no op has queries and values of different dimensions",
    "batched_matmul": "no op multiplies a matrix for each head",
    "concatenation": "no op joins tensors",
    "number_format": "its op does not take this number format",
}
_STAND_INS: Mapping[StandIn, str] = {
    "strided_copy": "measured as a copy of contiguous memory; the cache is written with strides",
    "gelu_by_erf": "measured with erf; the model computes its gelu by tanh",
    "rope_by_halves": "measured with halves of a head paired; the model pairs neighbours",
}
_FUSIONS: Mapping[FusionName, str] = {
    "add_rmsnorm": "residual add and norm in one kernel",
    "linear_gelu": "projection, bias and gelu in one kernel",
    "swiglu": "silu and product in one kernel",
}
_MOST_NAMED = 4
IN_ALL_WAYS = "in torch eager, in torch.compile and of a best variant"
METHOD = Text(
    "Op by op: each part is a problem of the catalogue, measured alone with flushed caches; their sum is not the time of a "
    "layer. The whole layer: it is one torch module, captured as a CUDA graph behind a flush of the cache; its busy time is "
    "compared with its own parts, each measured behind the part before it in the same rounds and clock mode, and the rest is "
    "shown. The rest is the difference of the two medians that are shown; its interval is that of the differences within rounds, "
    "widened where needed to contain it, so that it can end at the value. The ends of the interval of a sum are the sums of the "
    "ends. Best variants never include a wrong one; an unreliable one only where no other has a time, and then it is named."
)
NO_CLAIM = Text(
    "The bar of the best variants is a sum of ops that were measured alone. It does not claim that a layer would take this long."
)


def format_part(name: str) -> Text:
    """The name of a part for people."""
    return Text(PARTS.get(name, name))


def format_parts(names: Sequence[str]) -> Text:
    """Several parts in one line."""
    return join(" + ", [format_part(name) for name in names]) if names else Text("no part")


def format_call(preset: ModelPreset, call: LayerCall) -> Text:
    """The layer in one line.

    >>> from kernelviz.models.presets import PRESETS
    >>> str(format_call(PRESETS["gpt-2"], LayerCall(preset="gpt-2", phase="decode", batch=4, context=64)))
    'GPT-2, decoding, 4 sequences of 64 tokens, bf16'
    """
    sequences = units.counted(call.batch, "sequence")
    return Text(f"{preset.title}, {PHASES[call.phase].lower()}, {sequences} of {call.context:,} tokens, {call.dtype}")


def format_source(device: str, *, recorded: bool) -> Text:
    """Where the times of a layer are from.

    >>> str(format_source("NVIDIA H200", recorded=True)), str(format_source("a CPU", recorded=False))
    ('recorded on NVIDIA H200', 'a CPU')
    """
    return Text(f"recorded on {device}" if recorded else device)


def describe_part(part: PartTimes) -> Text | None:
    """What is to be known about the times of a part; None if nothing is."""
    best = part.of("best")
    return (
        Text(said)
        if (
            said := str(
                join(
                    "; ",
                    [
                        _GAPS[part.part.gap] if part.part.gap is not None else "",
                        _STAND_INS[part.part.stand_in] if part.part.stand_in is not None else "",
                        _MISSING[part.missing] if part.missing not in (None, "no_op") and part.missing else "",
                        "not measured" if part.missing is None and not part.times else "",
                        "torch.compile calls the same library as eager"
                        if part.compiled is None and part.of("compiled") is not None
                        else "",
                        f"wrong: {', '.join(t.variant for t in part.times if t.wrong)}"
                        if any(t.wrong for t in part.times)
                        else "",
                        "the measurement of the best variant is unreliable" if best and best.level == "suspect" else "",
                        "above 100 % of the roof, which is measured itself, with another kernel"
                        if (part.share_of_roof("best") or 0.0) > 1
                        else "",
                        "the source of the best variant has changed since"
                        if best and best.same_source is False
                        else "",
                    ],
                )
            )
        )
        else None
    )


def format_interval_s(estimate: float, low: float | None, high: float | None) -> Text:
    """A time with its interval.

    >>> str(format_interval_s(2e-3, 1e-3, 3e-3)), str(format_interval_s(2e-3, None, None))
    ('2.0 ms (1.0 ms to 3.0 ms)', '2.000 ms')
    """
    if low is None or high is None:
        return Text(units.seconds(estimate))
    digits = units.digits_of(half_width(estimate, low, high))
    return Text(f"{units.seconds(estimate, digits)} ({units.seconds(low, digits)} to {units.seconds(high, digits)})")


def format_sum(one: LayerSum) -> Text:
    """A sum with its interval, as a lower limit where parts are missing."""
    if one.interval is None:
        return Text("unknown")
    least = "at least " if one.missing else ""
    return Text(f"{least}{format_interval_s(one.interval.estimate, one.interval.low, one.interval.high)}")


def describe_sum(one: LayerSum) -> Text:
    """A way with its sum, the parts that the sum lacks, and those whose measurement is unreliable, in one line."""
    without = f" ({describe_missing(one)})" if str(describe_missing(one)) else ""
    unreliable = (
        f"; unreliable: {', '.join(str(format_part(name)) for name in one.unreliable)}" if one.unreliable else ""
    )
    return Text(f"{WAYS[one.way]}: {format_sum(one)}{without}{unreliable}")


def describe_missing(one: LayerSum) -> Text:
    """Which parts a sum lacks; empty if it has all, or if there is no sum."""
    if not one.missing or one.interval is None:
        return Text("")
    if len(one.missing) > _MOST_NAMED:
        return Text(f"without {len(one.missing)} parts that have no time, see the table of parts")
    return Text(f"without {', '.join(str(format_part(name)) for name in one.missing)}")


def describe_layer(parts: Sequence[PartTimes], comparable: Sequence[LayerSum]) -> Text:
    """The sentence above the bars: what compiling and the best variants are worth, and the largest part."""
    eager, compiled, best = comparable
    if eager.interval is None or compiled.interval is None or best.interval is None:
        known = sum(any(part.of(way) is not None for way in WAYS) for part in parts)
        if not known:
            return Text("No part has a time yet. Measure the layer to see its sum.")
        have = f"{known} of {len(parts)} parts {'has' if known == 1 else 'have'} a time"
        return Text(f"{have}, but none {IN_ALL_WAYS}. Measure the layer to see its sum.")
    shared = [part for part in parts if part.name not in eager.missing]
    largest = max(shared, key=lambda part: time.figure.estimate if (time := part.of("eager")) and time.figure else 0.0)
    time = largest.of("eager")
    share = time.figure.estimate / eager.interval.estimate if time is not None and time.figure is not None else None
    scope, largest_of = _scope(len(shared), len(parts))
    last = f" {largest_of} is {format_part(largest.name)} with {units.percent(share)}." if len(shared) > 1 else ""
    return Text(
        f"{scope} {units.seconds(eager.interval.estimate)} in torch eager; torch.compile is "
        f"{units.factor(eager.interval.estimate / compiled.interval.estimate)} × as fast and the best variants "
        f"{units.factor(eager.interval.estimate / best.interval.estimate)} ×.{last}"
    )


def _scope(shared: int, parts: int) -> tuple[str, str]:
    """How a sentence about the parts with times begins, and what it calls the largest of them.

    >>> _scope(13, 13)
    ('All parts, measured one by one, take', 'The largest part')
    >>> _scope(1, 13)[0]
    'Only 1 of the 13 parts has a time in torch eager, in torch.compile and of a best variant. It takes'
    """
    if shared == parts:
        return "All parts, measured one by one, take", "The largest part"
    if shared == 1:
        return f"Only 1 of the {parts} parts has a time {IN_ALL_WAYS}. It takes", "It"
    return (
        f"Only {shared} of the {parts} parts have times {IN_ALL_WAYS}. Together they take",
        "The largest of them",
    )


def describe_savings(
    fusions: Sequence[FusionTimes], parts: Sequence[PartTimes], tokens: int, layers: int
) -> tuple[Text, ...]:
    """What each fusion would save for a token in all layers, a sentence each."""
    collected = []
    for fusion in fusions:
        saved = per_token_s(fusion.saved_s(parts), tokens, layers)
        best = fusion.fused.of("best")
        if saved is None or best is None:
            collected.append(Text(f"{_FUSIONS[fusion.name]}: unknown, a time is missing"))
        else:
            less = "saves" if saved >= 0 else "costs"
            collected.append(
                Text(
                    f"{_FUSIONS[fusion.name]} ({best.variant}) {less} {units.seconds(abs(saved))} per token (all {layers} layers)"
                )
            )
    return tuple(collected)


def describe_best_saving(comparable: Sequence[LayerSum], tokens: int, layers: int) -> Text:
    """What the best variants would save for a token in all layers."""
    eager, _, best = comparable
    if eager.interval is None or best.interval is None:
        return Text(f"best variants: unknown, no part has a time {IN_ALL_WAYS}")
    scope = "" if not eager.missing else f" over the parts with times {IN_ALL_WAYS}"
    first, second = eager.interval, best.interval
    if second.high is not None and first.low is not None and second.high >= first.low:
        return Text(f"best variants against torch eager{scope}: no clear saving, because the intervals overlap")
    saved = per_token_s(first.estimate - second.estimate, tokens, layers)
    return Text(f"best variants against torch eager save {units.seconds(saved)} per token (all {layers} layers){scope}")


def describe_whole(truth: Sequence[WorkloadResult]) -> Text:
    """The times of the layer as one module, in one sentence; empty if it has none."""
    times = {result.case.variant: time for result in truth if (time := layer_time(result)) is not None}
    eager, compiled = times.get("eager"), times.get("compiled")
    parts = [f"{units.seconds(eager.estimate)} in torch eager"] if eager is not None else []
    if compiled is not None:
        factor = "" if eager is None else f" ({units.factor(eager.estimate / compiled.estimate)} × as fast)"
        parts.append(f"{units.seconds(compiled.estimate)} with torch.compile{factor}")
    return Text(f"Measured as one module, the layer takes {' and '.join(parts)}." if parts else "")


def describe_truth(result: WorkloadResult) -> Text:
    """A variant of the whole layer: its time, its parts and the rest."""
    name = {"eager": "torch eager", "compiled": "torch.compile"}.get(result.case.variant, result.case.variant)
    whole, total = layer_time(result), measured_value(result, "groups_s")
    rest, share = measured_value(result, "rest_s"), measured_value(result, "rest_share")
    if whole is None:
        return Text(f"{name}: no usable time")
    said = f"{name}: the layer takes {format_interval_s(whole.estimate, whole.low, whole.high)}"
    if total is None or rest is None or share is None:
        return Text(f"{said}; its parts could not be measured one by one, so the rest is unknown")
    decimals = 1 if abs(share.estimate) >= 1e-3 else 2
    low, high = (None if end is None else _signed(end, decimals) for end in (share.low, share.high))
    ends = "" if low is None or high is None else f" ({low} to {high})"
    return Text(
        f"{said}, its parts within it {units.seconds(total.estimate)}; the unexplained rest is "
        f"{_signed(share.estimate, decimals)}{ends}, {_within(share)}"
    )


def _within(share: Measured) -> str:
    """Whether the rest is within what is allowed, by its interval.

    >>> _within(Measured(estimate=0.02, low=0.01, high=0.03)), _within(Measured(estimate=0.02, low=-0.2, high=0.03))
    ('within the accepted 10 %', 'and it is not clear whether it is within the accepted 10 %')
    """
    most = units.percent(MOST_REST, 0)
    ends = (share.estimate if share.low is None else share.low, share.estimate if share.high is None else share.high)
    if all(abs(end) <= MOST_REST for end in ends):
        return f"within the accepted {most}"
    if min(ends) > MOST_REST or max(ends) < -MOST_REST:
        return f"more than the accepted {most}"
    return f"and it is not clear whether it is within the accepted {most}"


def _signed(fraction: float, decimals: int) -> str:
    """A share in percent with its sign; zero has none.

    >>> _signed(-0.0033, 1), _signed(-0.00001, 2)
    ('−0.3 %', '0.00 %')
    """
    percent = round(fraction * 100, decimals)
    signed = f"{percent:+.{decimals}f}" if percent else f"{0:.{decimals}f}"
    return f"{signed.replace('-', '−')} %"


def describe_mix(ways: Mapping[Way, PhaseTimes], share: float, missing: Sequence[str]) -> Text:
    """The sentence above the chart of the mix."""
    if not set(WAYS) <= set(ways):
        return Text(f"No part has a time {IN_ALL_WAYS} for both phases. Measure prefill and decoding to see the mix.")
    eager = ways["eager"]
    part = "" if not missing else f", over the parts with times {IN_ALL_WAYS} (without {len(missing)})"
    return Text(
        f"With {units.percent(share, 0)} of the tokens decoded, torch.compile is "
        f"{units.factor(speed_up(eager, ways['compiled'], share))} × as fast as torch eager for a token and the best variants "
        f"{units.factor(speed_up(eager, ways['best'], share))} ×{part}."
    )


def describe_served(name: str, variants: Sequence[PhaseTimes], changes: Sequence[Flip], share: float) -> Text:
    """Which one variant is best for a part of both phases at a share, and where that changes."""
    best = best_at(variants, share)
    if best is None:
        return Text(f"{format_part(name)}: no variant has a reliable time in both phases")
    said = f"{format_part(name)}: {best.name} is best at {units.percent(share, 0)}"
    if not changes:
        return Text(
            f"{said}, and at every other share" if len(variants) > 1 else f"{said}; it is the only one with both times"
        )
    return Text(f"{said}; {'; '.join(str(describe_flip(flip)) for flip in changes)}")


def describe_flip(flip: Flip) -> Text:
    """Where the fastest variant changes.

    >>> str(describe_flip(Flip(0.25, "a", "b", 0.2, 0.3)))
    'a gives way to b at 25.00 % decoded (20.00 % to 30.00 %)'
    >>> str(describe_flip(Flip(0.25, "a", "b", 0.0, 1.0)))
    'by their medians, a gives way to b at 25.00 % decoded; their intervals do not settle where, or whether at all'
    """
    if flip.low == 0.0 and flip.high == 1.0:
        return Text(
            f"by their medians, {flip.before} gives way to {flip.after} at {units.percent(flip.share, 2)} decoded; their "
            "intervals do not settle where, or whether at all"
        )
    ends = (
        ""
        if flip.low is None or flip.high is None
        else f" ({units.percent(flip.low, 2)} to {units.percent(flip.high, 2)})"
    )
    return Text(f"{flip.before} gives way to {flip.after} at {units.percent(flip.share, 2)} decoded{ends}")
