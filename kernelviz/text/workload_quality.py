"""How many cases of a run of a workload are unreliable or have caveats."""

from collections import Counter
from collections.abc import Mapping, Sequence

from kernelviz.core import units
from kernelviz.core.workload import WorkloadRun
from kernelviz.metrics.quality import QualityLevel
from kernelviz.metrics.workload_quality import workload_quality
from kernelviz.metrics.workloads import WorkloadRow
from kernelviz.text.text import Text

_COUNTED_LEVELS: Mapping[QualityLevel, str] = {"suspect": "unreliable", "note": "with caveats"}


def count_caveats(run: WorkloadRun, listed: Sequence[WorkloadRow]) -> Text:
    """How many cases have a headline of which quality, the worst first; empty if all of them are good."""
    qualities = [workload_quality(row, run.declared.headline) for row in listed]
    levels = Counter(quality.level for quality in qualities if quality is not None and quality.reasons)
    if not levels:
        return Text("")
    parts = [f"{levels[level]} {name}" for level, name in _COUNTED_LEVELS.items() if levels[level]]
    return Text(f"Measurement quality: {', '.join(parts)}, of {units.counted(len(listed), 'case')}")
