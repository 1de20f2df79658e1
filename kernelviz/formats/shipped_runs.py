"""Runs and selftests that come with the package, as package data, so that a machine without a GPU has something to show."""

import gzip
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from itertools import accumulate
from statistics import median

import msgspec

from kernelviz.core import Failure, Figure, Result, Run, Selftest, Status, Timing
from kernelviz.formats import document
from kernelviz.metrics.statistics import median_interval

_FOLDER = files("kernelviz") / "shipped"
_ENDING = ".json.gz"
_SELFTEST = "selftest-"
"""How the names of files with a selftest begin; all others are runs."""
_INDEX = "index.json"
"""What a list shows of each run: six runs with all their samples take half a second to read, this a millisecond."""
_HOST_FIGURES = ("call_eager_s", "enqueue_s", "call_graph_s")
SHIPPED_CALLS = 4
"""Only every fourth sample of the host clock is shipped, 250 of 1,000, because these samples were two thirds of a file."""


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """Ids of the shipped runs: the names of their files."""
    return tuple(n for n in _files() if not n.startswith(_SELFTEST))


def _files() -> list[str]:
    entries = _FOLDER.iterdir() if _FOLDER.is_dir() else ()
    return sorted(f.name.removesuffix(_ENDING) for f in entries if f.name.endswith(_ENDING))


def _unpacked(name: str) -> bytes:
    return gzip.decompress((_FOLDER / f"{name}{_ENDING}").read_bytes())


@lru_cache(maxsize=16)
def load(name: str) -> Run:
    """The run of one of `names`; it carries that name as its id. A test checks the files as documents from elsewhere are."""
    return document.decode(_unpacked(name), most_bytes=None)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What a list shows of a run."""

    id: str
    title: str
    op: str
    device: str
    created_at: str
    status: Status
    cases: int
    done: int
    failed: int
    note: str = ""


def line_of(run: Run) -> Line:
    """The line of a run."""
    return Line(
        id=run.id,
        title=run.title,
        op=run.plan.op,
        device=run.environment.device.name,
        created_at=run.created_at,
        status=run.status,
        cases=len(run.plan.cases()),
        done=len(run.results),
        failed=sum(isinstance(r.outcome, Failure) for r in run.results),
        note=run.note,
    )


@lru_cache(maxsize=1)
def lines() -> dict[str, Line]:
    """The line of each of `names`, by id; of a run that the index does not know, from its file."""
    index = _FOLDER / _INDEX
    known = msgspec.json.decode(index.read_bytes(), type=dict[str, Line]) if index.is_file() else {}
    return {name: known.get(name) or line_of(load(name)) for name in names()}


def packed_index(runs: Iterable[Run]) -> bytes:
    """The file ``index.json`` beside the shipped runs."""
    return msgspec.json.format(msgspec.json.encode({r.id: line_of(r) for r in runs}), indent=1) + b"\n"


def thinned(run: Run) -> Run:
    """The run with one of SHIPPED_CALLS calls that the host's clock timed; estimates and intervals are those of what is left."""

    def one(figure: Figure | None) -> Figure | None:
        if figure is None or not figure.samples or not figure.blocks:
            return figure
        ends = accumulate(b.size for b in figure.blocks)
        pieces = [
            figure.samples[end - b.size : end : SHIPPED_CALLS] for end, b in zip(ends, figure.blocks, strict=True)
        ]
        samples = tuple(s for piece in pieces for s in piece)
        interval = median_interval([median(piece) for piece in pieces])
        return msgspec.structs.replace(
            figure,
            estimate=median(samples),
            low=interval.low,
            high=interval.high,
            samples=samples,
            blocks=tuple(msgspec.structs.replace(b, size=len(p)) for b, p in zip(figure.blocks, pieces, strict=True)),
        )

    def less(result: Result) -> Result:
        if not isinstance(result.outcome, Timing):
            return result
        figures = {name: one(getattr(result.outcome, name)) for name in _HOST_FIGURES}
        return msgspec.structs.replace(result, outcome=msgspec.structs.replace(result.outcome, **figures))

    return msgspec.structs.replace(run, results=tuple(map(less, run.results)))


@lru_cache(maxsize=1)
def selftests() -> tuple[Selftest, ...]:
    """The selftests that came with the package, by name of file."""
    return tuple(msgspec.json.decode(_unpacked(n), type=Selftest) for n in _files() if n.startswith(_SELFTEST))


def packed_selftest(selftest: Selftest) -> bytes:
    """The file of a selftest that is to be shipped as ``selftest-….json.gz``."""
    return gzip.compress(msgspec.json.encode(selftest), compresslevel=9, mtime=0)


def packed(run: Run) -> bytes:
    """The file of a run that is to be shipped. Equal runs give equal files."""
    return gzip.compress(document.encode(run), compresslevel=9, mtime=0)
