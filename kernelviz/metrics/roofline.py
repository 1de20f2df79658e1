"""From cost and time to bandwidth, rate, arithmetic intensity, speed of light and efficiency.

Williams, Waterman, Patterson: Roofline, an insightful visual performance model (CACM 52(4), 2009).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from kernelviz.core import Cost, Figure, Level, Problem, Roof, RoofName, StreamName
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.roof_checks import WRITTEN_SHARES, is_wide, refusal
from kernelviz.metrics.stability import stability

INTENSE_FLOP_PER_BYTE = 16.0
"""From this arithmetic intensity on, a problem is judged by its arithmetic rate, not by its bandwidth."""
CONTRACTIONS = frozenset(
    {
        *("matmul", "matmul_nt", "matmul_tt", "transpose_matmul", "scaled_matmul", "block_scaled_matmul"),
        *("grouped_matmul", "w4a16_matmul", "linear_relu", "linear_gelu", "linear_silu"),
    }
)
"""The ops of the family of matrix products."""


def bandwidth_bytes_per_s(cost: Cost, time_s: float) -> float:
    """Minimal bytes over time: what the kernel achieved of the traffic that the problem needs.

    >>> bandwidth_bytes_per_s(Cost(work_flop=0, read_bytes=2_000_000, written_bytes=1_000_000), 1e-6) / 1e12
    3.0
    """
    return cost.moved_bytes / time_s


def rate_flop_per_s(cost: Cost, time_s: float) -> float:
    """Flop over time.

    >>> rate_flop_per_s(Cost(work_flop=2_000, read_bytes=1, written_bytes=1), 0.5)
    4000.0
    """
    return cost.work_flop / time_s


def arithmetic_intensity(cost: Cost) -> float | None:
    """Flop a byte; None when nothing is moved.

    >>> arithmetic_intensity(Cost(work_flop=1, read_bytes=8, written_bytes=4))
    0.08333333333333333
    """
    return cost.work_flop / cost.moved_bytes if cost.moved_bytes else None


def intense(cost: Cost | None) -> bool:
    """Whether a problem is one of arithmetic, not of memory; False if its cost is unknown.

    >>> intense(Cost(work_flop=2**30, read_bytes=2**20, written_bytes=0)), intense(None)
    (True, False)
    """
    return cost is not None and (arithmetic_intensity(cost) or 0.0) > INTENSE_FLOP_PER_BYTE


def stream_name(cost: Cost) -> StreamName:
    """The measured stream whose read:write mix is nearest to the cost's (by share of written bytes).

    >>> stream_name(Cost(work_flop=0, read_bytes=8, written_bytes=4))
    'read2_write1'
    """
    written = cost.written_bytes / cost.moved_bytes if cost.moved_bytes else 0.5
    return min(WRITTEN_SHARES, key=lambda name: abs(WRITTEN_SHARES[name] - written))


def memory_roof(cost: Cost, roofs: Sequence[Roof], level: Level = "dram") -> Roof | None:
    """The measured bandwidth that applies: the stream of the nearest mix (else the copy), at the cost's bytes.

    Between two measured sizes, the bandwidth is interpolated in the logarithm of the bytes. Such a roof was not measured, so its
    `how` is empty. Outside the measured sizes, the bandwidth of the nearest size is used. The size matters because the last
    writes of a kernel may still be in the L2 when it ends: on an H200 a copy of 0.5 GB is faster than one of 4 GB, so a single
    constant would give 101 % for the small and 94 % for the large copy. None if that level was not measured.

    >>> small = Roof(name="copy", level="dram", moved_bytes=100, bandwidth_bytes_per_s=4e9)
    >>> large = Roof(name="copy", level="dram", moved_bytes=400, bandwidth_bytes_per_s=2e9)
    >>> memory_roof(Cost(work_flop=0, read_bytes=100, written_bytes=100), (small, large)).bandwidth_bytes_per_s / 1e9
    3.0
    """
    names: tuple[RoofName, ...] = (stream_name(cost), "copy")
    streams = next((of for name in names if (of := _usable(roofs, level, name))), [])
    if not streams and level == "dram" and not any(_usable(roofs, level, name) for name in WRITTEN_SHARES):
        # Roofs of a version that knew only memory have no level.
        streams = next((of for name in names if (of := _usable(roofs, None, name))), [])
    sized = sorted((r for r in streams if r.moved_bytes), key=lambda r: r.moved_bytes or 0)
    if not sized:
        return streams[-1] if streams else None
    below = next((r for r in reversed(sized) if (r.moved_bytes or 0) <= cost.moved_bytes), None)
    above = next((r for r in sized if (r.moved_bytes or 0) >= cost.moved_bytes), None)
    if below is None or above is None or below.moved_bytes == above.moved_bytes:
        return below or above
    return _between(below, above, cost.moved_bytes)


def _usable(roofs: Sequence[Roof], level: Level | None, name: RoofName) -> list[Roof]:
    """The streams of a mix at a level that can be used (`roof_checks`)."""
    streams = [r for r in roofs if r.name == name and r.level == level and r.bandwidth_bytes_per_s]
    return [r for r in streams if (refusal(r, roofs) is None if level == "l2" else not is_wide(r))]


def _between(below: Roof, above: Roof, moved_bytes: int) -> Roof:
    """The roof at a size between two, linear in the logarithm of the bytes."""
    first, last = below.moved_bytes or 1, above.moved_bytes or 1
    share = math.log(moved_bytes / first) / math.log(last / first)

    def at(name: str) -> float | None:
        a, b = getattr(below, name), getattr(above, name)
        return None if a is None or b is None else a + (b - a) * share

    return msgspec.structs.replace(
        below,
        bandwidth_bytes_per_s=at("bandwidth_bytes_per_s"),
        low=at("low"),
        high=at("high"),
        clock_hz=at("clock_hz"),
        moved_bytes=moved_bytes,
        measured_at=min(below.measured_at, above.measured_at),
        how="",
    )


def level_of(cost: Cost, roofs: Sequence[Roof], headline: Headline) -> Level:
    """Where the data of a figure was: ``l2`` for the warm figure of a problem that fits into the largest working set measured
    there (half of the cache), else ``dram``. A warm problem between that and twice the cache is compared with memory, although
    part of its data is in the cache, so its share can be above 100 %.
    """
    if headline == "cold":
        return "dram"
    streams = (r for name in WRITTEN_SHARES for r in _usable(roofs, "l2", name))
    cached = max((r.moved_bytes or 0 for r in streams), default=0)
    return "l2" if 0 < cost.moved_bytes <= cached else "dram"


def compute_roof(problem: Problem, roofs: Sequence[Roof], cost: Cost | None = None) -> Roof | None:
    """The measured arithmetic rate that applies to the problem's precision, None if it was not measured.

    A contraction (by its op's name, or by more than INTENSE_FLOP_PER_BYTE) may use the tensor cores: a matrix product's rate,
    on them if they have that precision. Any other op, element by element or row by row, runs on the vector units: their
    multiply-add rate if it is known, else (for older calibrations) the matrix product's.
    """
    return arithmetic_roof(problem.precision, roofs, contraction=contracts(problem, cost))


def arithmetic_roof(precision: str, roofs: Sequence[Roof], *, contraction: bool) -> Roof | None:
    """The measured arithmetic rate of a precision: a matrix product's for a contraction, else that of multiply-adds (of an older
    calibration, the product's). None if it was not measured."""
    mine = [r for r in roofs if r.rate_flop_per_s and r.precision == precision and not is_wide(r)]
    products = [r for r in mine if r.name == "matmul"]
    product = next((r for r in products if r.unit == "tensor"), products[0] if products else None)
    return product if contraction else next((r for r in mine if r.name == "fma"), product)


def contracts(problem: Problem, cost: Cost | None) -> bool:
    """Whether the problem can be a matrix product for the hardware. Metrics do not look up the catalogue: an op that is not in
    CONTRACTIONS counts as one by its intensity, which no element-wise or row op reaches."""
    return problem.op in CONTRACTIONS or intense(cost)


@dataclass(frozen=True, slots=True)
class SpeedOfLight:
    """The least time that the measured roofs allow, and which of them sets it."""

    time_s: float
    memory_s: float
    compute_s: float | None
    memory: Roof
    compute: Roof | None

    @property
    def bound(self) -> str:
        return "compute" if self.compute_s is not None and self.compute_s > self.memory_s else "memory"

    @property
    def roof(self) -> Roof:
        """The one that sets the time."""
        return self.compute if self.compute is not None and self.bound == "compute" else self.memory


def speed_of_light(
    problem: Problem, cost: Cost | None, roofs: Sequence[Roof], headline: Headline = "cold"
) -> SpeedOfLight | None:
    """max(bytes / bandwidth, flop / peak); None without a measured bandwidth or without a cost.

    If the compute roof of this precision is unknown, memory alone decides. For a problem of more than INTENSE_FLOP_PER_BYTE
    that would be a guess, so the answer is None.
    """
    if cost is None:
        return None
    memory = memory_roof(cost, roofs, level_of(cost, roofs, headline))
    compute = compute_roof(problem, roofs, cost)
    if memory is None or not memory.bandwidth_bytes_per_s:
        return None
    if compute is None and intense(cost):
        return None
    memory_s = cost.moved_bytes / memory.bandwidth_bytes_per_s
    compute_s = cost.work_flop / compute.rate_flop_per_s if compute and compute.rate_flop_per_s else None
    return SpeedOfLight(max(memory_s, compute_s or 0.0), memory_s, compute_s, memory, compute)


def efficiency(light: SpeedOfLight | None, figure: Figure | None) -> float | None:
    """The share of the roof: the least time that the roofs allow, divided by the measured time; above 1 if the case is faster
    than the stream of the roof. None if either time is unknown, or if the measured one is not stable, because it would be the
    share of neither level."""
    return None if light is None or figure is None or stability(figure).unstable else light.time_s / figure.estimate
