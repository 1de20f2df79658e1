"""Two times that share no rounds: the ratio of their medians, and the verdict on it."""

from functools import lru_cache

from kernelviz.core import Figure
from kernelviz.metrics.statistics import (
    MIN_BLOCKS,
    Interval,
    Verdict,
    in_passes,
    judged,
    ratio_of_medians,
    ratio_of_passes,
    unit_means,
)
from kernelviz.metrics.verdict_reasons import FewBlocks, SamplesUnknown


@lru_cache(maxsize=2048)
def unpaired(time: Figure, other: Figure) -> Interval:
    """One time over another, each resampled over its own blocks or passes; without interval where blocks are not known."""
    first, second = unit_means(time), unit_means(other)
    if not len(first) or not len(second):
        return Interval(time.estimate / other.estimate, None, None)
    return (ratio_of_passes if in_passes(time.blocks) or in_passes(other.blocks) else ratio_of_medians)(first, second)


def fewest_blocks(*figures: Figure | None) -> int:
    """Of the one that has the fewest; 0 where blocks or samples are not known."""
    return min((len(f.blocks) if f is not None and f.samples and f.blocks else 0 for f in figures), default=0)


def verdict_between(ratio: Interval, floor: float, blocks: int) -> Verdict:
    """The rule for times that share no rounds: the interval of the ratio of their medians must clear the noise floor."""
    if ratio.low is None or ratio.high is None:
        few = FewBlocks(blocks, MIN_BLOCKS) if blocks else SamplesUnknown(MIN_BLOCKS)
        return Verdict("unclear", ratio, floor, blocks, few)
    return judged(ratio, floor, blocks)
