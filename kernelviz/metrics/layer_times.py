"""The time of a layer from the times of its parts: sums with intervals, what is missing, and what fusing would save."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from kernelviz.core import Cost, Figure
from kernelviz.core.problem import Problem
from kernelviz.metrics.quality import QualityLevel
from kernelviz.metrics.statistics import Interval
from kernelviz.models.parts import FusionName, LayerPart

Way = Literal["eager", "compiled", "best"]
"""``eager``: the baseline of each op (torch). ``compiled``: its variant of torch.compile. ``best``: its fastest correct
variant."""
WAYS: tuple[Way, ...] = get_args(Way)
Missing = Literal["no_op", "number_format", "no_variant", "not_measured", "failed"]
"""Why a part has no time: no op covers it; the op lacks the number format; the op has no such variant; no run here; or the
variant failed or is wrong."""


@dataclass(frozen=True, slots=True)
class VariantTime:
    """The time of a variant at the problem of a part: device time with flushed caches. `wrong`: its result is wrong, so that it
    has no time. `run_id`: where it was measured; `recorded`: the run came with the package. `same_source`: whether the variant's
    source is still the measured one; None if unknown."""

    variant: str
    figure: Figure | None
    level: QualityLevel | None = None
    wrong: bool = False
    run_id: str = ""
    recorded: bool = False
    same_source: bool | None = None


@dataclass(frozen=True, slots=True)
class PartTimes:
    """The times of a part. `cost`: its least work, None if unknown. `baseline`, `compiled`: names of these variants, None if the
    op has none. `missing`: why it can have no time at all. `roof_s`: the least time that the roofs allow, None without them."""

    part: LayerPart
    cost: Cost | None
    times: tuple[VariantTime, ...] = ()
    baseline: str | None = None
    compiled: str | None = None
    missing: Missing | None = None
    roof_s: float | None = None

    @property
    def name(self) -> str:
        return self.part.name

    def of(self, way: Way) -> VariantTime | None:
        """The time of the part in that way; None if it has none. A wrong result has no time, and never is the best."""
        if way == "best":
            return best_of(self.times)
        wanted = self.baseline if way == "eager" else self.compiled or self.baseline
        return next((t for t in self.times if t.variant == wanted and t.figure is not None and not t.wrong), None)

    def lacks(self, way: Way) -> Missing | None:
        """Why it has no time in that way; None if it has one."""
        if self.of(way) is not None:
            return None
        if self.missing is not None:
            return self.missing
        wanted = self.baseline if way == "eager" else self.compiled or self.baseline
        tried = any(t.variant == wanted for t in self.times) if way != "best" else bool(self.times)
        return "failed" if tried else "not_measured"

    def share_of_roof(self, way: Way) -> float | None:
        """The least time that the roofs allow over the time; None if one of them is unknown."""
        time = self.of(way)
        if time is None or time.figure is None or self.roof_s is None:
            return None
        return self.roof_s / time.figure.estimate


def best_of(times: Sequence[VariantTime]) -> VariantTime | None:
    """The fastest correct variant. One whose measurement is unreliable counts only where there is no other.

    >>> fast, slow = VariantTime("a", Figure(estimate=1.0), "suspect"), VariantTime("b", Figure(estimate=2.0), "good")
    >>> best_of([fast, slow]).variant, best_of([fast]).variant
    ('b', 'a')
    """
    usable = [t for t in times if t.figure is not None and not t.wrong]
    reliable = [t for t in usable if t.level != "suspect"]
    return min(reliable or usable, key=lambda t: t.figure.estimate if t.figure else 0.0, default=None)


@dataclass(frozen=True, slots=True)
class LayerSum:
    """The sum over the parts with a time. `missing`: the names of the others, so that the sum is a lower limit of the layer if
    there are any. `unreliable`: parts whose measurement is unreliable."""

    way: Way
    interval: Interval | None
    missing: tuple[str, ...]
    unreliable: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return self.interval is not None and not self.missing


def layer_sum(parts: Sequence[PartTimes], way: Way) -> LayerSum:
    """The sum of a way. The ends of its interval are the sums of the ends, which is the widest that errors of one sign give; it
    has no ends if a part has none.

    >>> from kernelviz.models.parts import LayerPart
    >>> time = VariantTime("torch_eager", Figure(estimate=2.0, low=1.5, high=2.5))
    >>> one = PartTimes(LayerPart(name="up", role="matmul"), None, (time,), "torch_eager")
    >>> none = PartTimes(LayerPart(name="bias", role="glue"), None, missing="no_op")
    >>> layer_sum([one, one], "eager").interval, layer_sum([one, none], "eager").missing
    (Interval(estimate=4.0, low=3.0, high=5.0), ('bias',))
    """
    collected = [(part.name, part.of(way)) for part in parts]
    missing = tuple(name for name, time in collected if time is None)
    figures = [time.figure for _, time in collected if time is not None and time.figure is not None]
    if not figures:
        return LayerSum(way, None, missing)
    lows, highs = [f.low for f in figures], [f.high for f in figures]
    interval = Interval(
        sum(f.estimate for f in figures),
        None if None in lows else sum(low for low in lows if low is not None),
        None if None in highs else sum(high for high in highs if high is not None),
    )
    unreliable = tuple(name for name, time in collected if time is not None and time.level == "suspect")
    return LayerSum(way, interval, missing, unreliable)


def comparable_sums(parts: Sequence[PartTimes]) -> tuple[LayerSum, ...]:
    """The sums of all ways over the parts that have a time in every way, so that they can be divided by each other. `missing`
    names the same parts in each of them."""
    shared = [part for part in parts if all(part.of(way) is not None for way in WAYS)]
    left = tuple(part.name for part in parts if part not in shared)
    sums = [layer_sum(shared, way) for way in WAYS]
    return tuple(LayerSum(one.way, one.interval, left, one.unreliable) for one in sums)


@dataclass(frozen=True, slots=True)
class FusionTimes:
    """What fusing parts of a layer would save. `fused`: the times of the op that does them together."""

    name: FusionName
    parts: tuple[str, ...]
    problem: Problem
    fused: PartTimes

    def saved_s(self, parts: Sequence[PartTimes]) -> float | None:
        """Seconds that one call saves: the eager times of the parts without the best fused variant. Parts that no op covers (a
        bias, which the fused op adds as well) are left out of the eager times, so that this is a lower limit. None if a time is
        missing."""
        own = [part for part in parts if part.name in self.parts and part.missing != "no_op"]
        best = self.fused.of("best")
        times = [part.of("eager") for part in own]
        if best is None or best.figure is None or not times or any(time is None for time in times):
            return None
        return sum(t.figure.estimate for t in times if t is not None and t.figure is not None) - best.figure.estimate


def per_token_s(saved_s: float | None, tokens: int, layers: int) -> float | None:
    """What a saving of one layer's call is for each token in all layers.

    >>> per_token_s(1e-3, 4096, 32)
    7.8125e-06
    """
    return None if saved_s is None else saved_s * layers / tokens
