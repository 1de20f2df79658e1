"""The cold times of all recorded runs, without their samples: what a comparison of all of them needs.

They are derived from the runs, whose samples take seconds to read, and stored beside them. A test derives them again.
"""

import logging
import lzma
import threading
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import msgspec

from kernelviz.core import Failure, Figure, Outcome, Result, Run, Timing
from kernelviz.formats import recordings_file, shipped_runs
from kernelviz.metrics.stability import stability
from kernelviz.metrics.uncertainty import with_uncertainty

_log = logging.getLogger(__name__)
FILE = "times.json.xz"
DIGITS = 5
"""Of the ends of an interval; the time itself is not rounded."""


def without_samples(run: Run) -> Run:
    """The run with each cold time and its interval alone, without code, kernels and conditions; a time that is not stable has its
    samples."""
    return msgspec.structs.replace(run, results=tuple(map(_cold_alone, run.results)), code=msgspec.UNSET)


def _cold_alone(result: Result) -> Result:
    outcome = result.outcome
    if isinstance(outcome, Failure):
        left: Outcome = Failure(stage=outcome.stage)
    else:
        cold = outcome.device_cold_s
        left = Timing(device_cold_s=cold if cold is None or stability(cold).unstable else _interval_of(cold))
    return Result(
        problem=result.problem, variant=result.variant, outcome=left, cost=result.cost, backend=result.backend
    )


def _interval_of(cold: Figure) -> Figure:
    """The time and the interval of all that is known of it. What shows that a time is not stable would be lost."""
    known = with_uncertainty(cold)
    low, high = (None if s is None else float(f"{s:.{DIGITS}g}") for s in (known.low, known.high))
    return Figure(
        estimate=known.estimate,
        low=None if low is None else min(low, known.estimate),
        high=None if high is None else max(high, known.estimate),
        timer=known.timer,
        launch=known.launch,
    )


_reading = threading.Lock()


def load(name: str) -> Run:
    """The recorded run of that id, as `without_samples` gives it. Errors: DocumentError."""
    further = recordings_file.folder()
    with _reading:  # many sessions that ask at once would otherwise read as many times
        known = _known(further)
    return known[name] if name in known else _derived(name, further)


@lru_cache(maxsize=512)
def _derived(name: str, _further: Path | None) -> Run:
    """Of a run that no file of times knows."""
    return without_samples(shipped_runs.load(name))


@lru_cache(maxsize=1)
def _known(_further: Path | None) -> dict[str, Run]:
    known: dict[str, Run] = {}
    for folder in reversed(shipped_runs.folders()):  # the package's count, as in `shipped_runs.lines`
        file = folder / FILE
        try:
            known |= msgspec.json.decode(lzma.decompress(file.read_bytes()), type=dict[str, Run])
        except FileNotFoundError:
            continue
        except (OSError, lzma.LZMAError, EOFError, msgspec.MsgspecError) as error:  # then the runs themselves are read
            _log.warning("%s is not used: %s", file, error)
    return known


def encoded_times(runs: Iterable[Run]) -> bytes:
    """The contents of the file of these runs, as JSON."""
    return msgspec.json.encode({run.id: without_samples(run) for run in runs})


def packed_times(runs: Iterable[Run]) -> bytes:
    """The file of these runs, to be stored beside them."""
    return lzma.compress(encoded_times(runs), preset=9 | lzma.PRESET_EXTREME)
