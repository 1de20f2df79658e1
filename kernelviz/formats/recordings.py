"""What the gallery shows of each shipped run, without opening it: its insight and the points of its small chart.

Both are derived from the run, which takes up to two seconds, so they are stored beside it. A test derives them again.
"""

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from kernelviz.core import Run
from kernelviz.core.problem import Direction, Struct
from kernelviz.formats import shipped_runs
from kernelviz.metrics.insight import Insight, insight
from kernelviz.metrics.rows import rows
from kernelviz.metrics.sketch import Sketch, sketch

_FILE = "gallery.json"


class Recording(Struct, frozen=True, kw_only=True):
    """The derived facts of one run."""

    insight: Insight | None
    sketch: Sketch
    dtype: str
    variants: int
    sizes: int
    direction: Direction = "forward"


def recording_of(run: Run) -> Recording:
    """The recording of a run."""
    return Recording(
        insight=insight(rows(run, run.environment.roofs)),
        sketch=sketch(run),
        dtype=run.plan.problems[0].dtype,
        variants=len(run.plan.variants),
        sizes=len(run.plan.problems),
        direction=run.plan.problems[0].direction or "forward",
    )


def recordings() -> dict[str, Recording]:
    """The recording of each shipped run, by id; of a run that the file does not know, derived from the run."""
    return _recordings(shipped_runs.names())


@lru_cache(maxsize=1)
def _recordings(names: tuple[str, ...]) -> dict[str, Recording]:
    known: dict[str, Recording] = {}
    for folder in reversed(shipped_runs.folders()):  # the package's count, as in `shipped_runs.lines`
        file = folder / _FILE
        known |= msgspec.json.decode(file.read_bytes(), type=dict[str, Recording]) if file.is_file() else {}
    return {name: known.get(name) or recording_of(shipped_runs.load(name)) for name in names}


def packed_recordings(runs: Iterable[Run]) -> bytes:
    """The file ``gallery.json`` beside the shipped runs, with one line for each run."""
    lines = [f"{msgspec.json.encode(r.id).decode()}: {msgspec.json.encode(recording_of(r)).decode()}" for r in runs]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()
