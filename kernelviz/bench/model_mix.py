"""Use case: a traffic mix of prefill and decoding of one model on a device."""

from dataclasses import dataclass

from kernelviz.bench.bench import Bench
from kernelviz.bench.model import Layer, Source, opened
from kernelviz.core import BadField
from kernelviz.metrics.layer_times import WAYS, Way
from kernelviz.metrics.traffic_mix import Flip, PhaseTimes, flips, of_part, per_token
from kernelviz.models.parts import checked_call
from kernelviz.models.presets import ModelPreset

DECODE_BATCH, PREFILL_TOKENS = 64, 4096
"""What a layer is opened with: sequences of a decoding step, and tokens of a prefilled sequence."""


@dataclass(frozen=True, slots=True)
class ServedPart:
    """A product or attention of both phases. `variants`: those with a time in both; `flips`: where the fastest one changes."""

    name: str
    variants: tuple[PhaseTimes, ...]
    flips: tuple[Flip, ...]


@dataclass(frozen=True, slots=True)
class TrafficMix:
    """Both phases of a layer. `ways`: seconds for a token over the parts that have a time in every way, of those ways with a time
    in both phases. `missing`: parts of either phase that are not in these sums."""

    prefill: Layer
    decode: Layer
    ways: dict[Way, PhaseTimes]
    missing: tuple[str, ...]
    parts: tuple[ServedPart, ...]


def traffic_mix(
    bench: Bench,
    preset: ModelPreset,
    dtype: str,
    source: Source,
    *,
    batch: int,
    context: int,
    prefill: int = PREFILL_TOKENS,
) -> TrafficMix:
    """The mix of decoding `batch` sequences of `context` tokens and prefilling one sequence of `prefill` tokens. Errors:
    BadField."""
    decode = opened(bench, preset, checked_call(preset, "decode", batch, context, dtype), source)
    before = opened(bench, preset, checked_call(preset, "prefill", 1, min(prefill, preset.most_context), dtype), source)
    tokens = (before.call.tokens, decode.call.tokens)
    ways: dict[Way, PhaseTimes] = {}
    for way, first, second in zip(WAYS, before.comparable, decode.comparable, strict=True):
        if first.interval is not None and second.interval is not None:
            ways[way] = PhaseTimes(way, per_token(first.interval, tokens[0]), per_token(second.interval, tokens[1]))
    by_name = {part.name: part for part in decode.parts}
    served = []
    for part in before.parts:
        other = by_name.get(part.name)
        if other is None or part.part.role not in ("matmul", "attention"):
            continue
        variants = of_part(part, other, *tokens)
        served.append(ServedPart(part.name, variants, flips(variants)))
    missing = dict.fromkeys((*before.comparable[0].missing, *decode.comparable[0].missing))
    return TrafficMix(before, decode, ways, tuple(missing), tuple(served))


def checked_share(share: float) -> float:
    """A share from 0 to 1. Errors: BadField."""
    if not 0 <= share <= 1:
        raise BadField("share", share, "name the share of decoded tokens, from 0 to 1")
    return share
