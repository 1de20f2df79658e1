"""Shares above 100 %: each reason planted, and shown on the Bench page's table, in hover texts, tiles, files and the terminal."""

from __future__ import annotations

import pytest
import sample_runs as samples

from kernelviz.core import Cost, DataSheetRoof, Figure, Problem, Roof
from kernelviz.formats import export_named
from kernelviz.metrics.above_roof import AboveRoofKind, above_roof
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.roofline import speed_of_light
from kernelviz.metrics.rows import rows
from kernelviz.metrics.summary import summary
from kernelviz.plots import time_by_variant
from kernelviz.text.tiles import tiles

COPY = Problem(op="copy", sizes={"n": 2**26}, dtype="fp32")
HALF_GIB = Cost(work_flop=0, read_bytes=2**28, written_bytes=2**28)
SMALL = Cost(work_flop=0, read_bytes=2**24, written_bytes=2**24)
SKEWED = Cost(work_flop=0, read_bytes=2**28, written_bytes=2**26)
MEMORY = Roof(name="copy", level="dram", moved_bytes=2**27, bandwidth_bytes_per_s=4e12)
SURE = Roof(name="copy", level="dram", moved_bytes=2**27, bandwidth_bytes_per_s=4e12, low=3.99e12, high=4.01e12)
CACHED = Roof(name="copy", level="l2", moved_bytes=2**25, bandwidth_bytes_per_s=8e12)
SHEET = DataSheetRoof(name="copy", level="dram", bandwidth_bytes_per_s=4e12)


@pytest.mark.parametrize(
    ("roof", "cost", "headline", "share", "width", "kind"),
    [
        (MEMORY, HALF_GIB, "cold", 0.99, 0.0, None),
        (MEMORY, HALF_GIB, "cold", 1.01, 0.02, "within_intervals"),
        (SURE, HALF_GIB, "cold", 1.002, 0.0, "within_intervals"),
        (MEMORY, HALF_GIB, "cold", 1.05, 0.02, "faster_kernel"),
        (MEMORY, HALF_GIB, "warm", 1.05, 0.0, "warm_data"),
        (MEMORY, SMALL, "cold", 1.3, 0.0, "last_writes"),
        (MEMORY, SKEWED, "cold", 1.1, 0.0, "other_mix"),
        (CACHED, SMALL, "warm", 1.1, 0.0, "faster_kernel"),
        (SHEET, HALF_GIB, "cold", 1.1, 0.0, "data_sheet"),
    ],
)
def test_each_reason(
    roof: Roof, cost: Cost, headline: Headline, share: float, width: float, kind: AboveRoofKind | None
) -> None:
    light = speed_of_light(COPY, cost, (MEMORY, CACHED) if roof is CACHED else (roof,), headline)
    assert light is not None
    assert light.roof == roof
    time_s = light.time_s / share
    low, high = (time_s * (1 - width), time_s * (1 + width)) if width else (None, None)
    above = above_roof(cost, light, Figure(estimate=time_s, low=low, high=high), headline)
    assert (above.kind if above else None) == kind
    assert above is None or above.share_fraction == pytest.approx(share)


def test_it_is_said_where_the_share_is() -> None:
    """A roof measured too low: the fastest variant reaches 150 % of it."""
    low = Roof(
        name="copy", level="dram", moved_bytes=2**20, bandwidth_bytes_per_s=4.4e12 * 0.93 / 1.5, measured_at="2026"
    )
    run = samples.run(sizes=[{"m": 2**15, "n": 2**12}], roofs=(low,))
    table = rows(run, run.environment.roofs)
    above = [row for row in table if row.above_roof is not None]
    assert above
    assert all((row.efficiency or 0) > 1 for row in above)
    reason = "faster than the kernel that measured the roof"
    assert reason in next(t.how for t in tiles(summary(table), run.plan) if "roof" in t.label)
    assert reason in " ".join(str(trace.hovertext).replace("<br>", " ") for trace in time_by_variant(run).data)
    for name in ("md", "html"):
        assert b"above 100 % of the roof" in export_named(name).encode(run), name
