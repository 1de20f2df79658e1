"""The checklist of the cases of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz import bench as use_cases
from kernelviz.api.report import frame
from kernelviz.bench import checklist as checks
from kernelviz.core import Run

if TYPE_CHECKING:
    import pandas as pd


def checklist(run: Run | str, variant: str | None = None, *, l2: str = "cold") -> pd.DataFrame:
    """Six points of each case of a run: bandwidth, block size, launch cost, fusion, occupancy, accuracy. One row for each point.

    run: a run or the id of one. ``tick``: passed, not_passed or unknown. ``fact``: what decides it, ``values``: its numbers in SI
    base units, ``why_unknown``: why there are none. l2: ``cold`` or ``warm`` times. Errors: UnknownRun; UnknownName for `variant`
    or `l2`.
    """
    bench = use_cases.current()
    loaded = bench.load(run) if isinstance(run, str) else run
    return frame(checks.records(checks.checked_cases(bench, loaded, variant=variant, l2=l2)))
