"""Runs and selftests that come with the package, as package data, so that a machine without a GPU has something to show; and the
recorded runs and their code in the folder of further recordings (`formats.recordings_file`), if it is here."""

import gzip
import logging
import threading
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from kernelviz.core import DocumentError, Failure, Run, Selftest, Status
from kernelviz.core.code import unpacked
from kernelviz.core.run import SameModelRoof
from kernelviz.formats import code_file, compact, document, recordings_file
from kernelviz.hardware.datasheet import datasheet

_FOLDER = files("kernelviz") / "shipped"
_ENDING = ".json.gz"
_COMPACT = ".kvz"
_ENDINGS = (_ENDING, _COMPACT)
"""The ending of a run in the compact form, see `formats.compact`."""
_SELFTEST = "selftest-"
"""How the names of files with a selftest begin; all others are runs."""
_TUNINGS = "tunings"
"""The folder of recorded tunings."""
_log = logging.getLogger(__name__)
_INDEX = "index.json"
"""What a list shows of each run: six runs with all their samples take half a second to read, this a millisecond."""


def names() -> tuple[str, ...]:
    """Ids of the shipped runs (the names of their files), in the order of `lines`."""
    return tuple(lines())


def names_in(folder: Traversable) -> tuple[str, ...]:
    """Ids of the runs of a folder like that of the shipped runs."""
    return tuple(n for n in _files(folder) if not n.startswith(_SELFTEST))


def folder() -> Traversable:
    """Where the shipped runs and what is derived from them are."""
    return _FOLDER


def folders() -> tuple[Traversable, ...]:
    """Where the recorded runs of lists are: in the package, and in the folder of further recordings."""
    more = recordings_file.folder()
    return (_FOLDER,) if more is None else (_FOLDER, more)


def read_again() -> None:
    """Forget what was read, because recordings were fetched or removed."""
    for cached in (_load, _lines, _code, _own_digests, _code_files, empty_kernel_of):
        cached.cache_clear()


def _files(folder: Traversable) -> list[str]:
    entries = folder.iterdir() if folder.is_dir() else ()
    return sorted(f.name.removesuffix(_ENDING).removesuffix(_COMPACT) for f in entries if f.name.endswith(_ENDINGS))


def _unpacked(name: str, folder: Traversable) -> bytes:
    return gzip.decompress((folder / f"{name}{_ENDING}").read_bytes())


_reading = threading.Lock()


def load(name: str) -> Run:
    """The run of one of `names`, or one that `is_shipped`; it carries that name as its id. A test checks the
    files as documents from elsewhere are."""
    # Fifty sessions that open the same run at once would otherwise read it fifty times, for half a second each.
    with _reading:
        return _load(name, recordings_file.folder())


@lru_cache(maxsize=16)
def _load(name: str, _further: Path | None) -> Run:
    try:
        return load_from(_folder_of(name), name)
    except FileNotFoundError as error:
        raise DocumentError(f"the recorded run {name} is not here any more ({error.filename})") from error


@lru_cache(maxsize=1)
def _of_claims() -> dict[str, Traversable]:
    """The folder of each recorded run that tests claims, by id."""
    top = _FOLDER / "claims"
    return {name: one for one in (top.iterdir() if top.is_dir() else ()) for name in names_in(one)}


@lru_cache(maxsize=1)
def tunings() -> tuple[str, ...]:
    """Ids of the recorded tunings, which the page Autotune offers. The gallery and the list of runs do not contain them: their
    hundreds of configurations are no variants to compare."""
    return names_in(_FOLDER / _TUNINGS)


def _folder_of(name: str) -> Traversable:
    here = next((one for one in folders() if any((one / f"{name}{ending}").is_file() for ending in _ENDINGS)), None)
    if here is None and name in tunings():
        return _FOLDER / _TUNINGS
    return here or _of_claims().get(name, _FOLDER)


def is_shipped(run_id: str) -> bool:
    """Whether a run came with the package: one of `names` or `tunings`, or one that tests claims, which no list shows."""
    return run_id in lines() or run_id in tunings() or run_id in _of_claims()


def load_from(folder: Traversable, name: str) -> Run:
    """The run of one of `names_in` the folder, with that name as its id. Errors: DocumentError."""
    small = folder / f"{name}{_COMPACT}"
    if small.is_file():
        return msgspec.structs.replace(compact.decode(small.read_bytes()), id=name)
    return document.decode(_unpacked(name, folder), most_bytes=None)


def code(name: str) -> dict[str, bytes]:
    """The contents of the code of one of `names`, by digest: of its own file and of the file of code that names it. Empty where
    it was recorded without, or where the code is not here. Errors: DocumentError."""
    return _code(name, recordings_file.folder())


@lru_cache(maxsize=2)
def _code(name: str, further: Path | None) -> dict[str, bytes]:
    apart = _code_files(further).get(name)
    return _own_code(name) | ({} if apart is None else code_file.contents_of(apart[0].read_bytes()))


def _own_code(name: str) -> dict[str, bytes]:
    small = _folder_of(name) / f"{name}{_COMPACT}"
    if small.is_file():
        return compact.code_of(small.read_bytes())
    return {content.digest: unpacked(content) for content in load(name).code or ()}


def code_digests(name: str) -> frozenset[str]:
    """The digests of the code of one of `names`, without unpacking it. Errors: DocumentError."""
    further = recordings_file.folder()
    apart = _code_files(further).get(name)
    return _own_digests(name, further) | (frozenset() if apart is None else apart[1].digests)


def has_code(name: str) -> bool:
    """Whether the file of the run itself has code, which then is that of all its cases. Errors: DocumentError."""
    return bool(_own_digests(name, recordings_file.folder()))


@lru_cache(maxsize=512)
def _own_digests(name: str, _further: Path | None) -> frozenset[str]:
    small = _folder_of(name) / f"{name}{_COMPACT}"
    if small.is_file():
        return compact.code_digests(small.read_bytes())
    return frozenset(content.digest for content in load(name).code or ())


@lru_cache(maxsize=1)
def _code_files(further: Path | None) -> dict[str, tuple[Path, code_file.Head]]:
    """The file of code of each run that has one, and what it holds. A file that cannot be read is left out, and logged."""
    apart = None if further is None else further / recordings_file.CODE
    files: dict[str, tuple[Path, code_file.Head]] = {}
    for file in sorted(apart.iterdir()) if apart is not None and apart.is_dir() else ():
        if file.name.endswith(code_file.ENDING):
            try:
                head = code_file.head_of(file.read_bytes())
            except (DocumentError, OSError) as error:
                _log.warning("%s is not used: %s", file, error)
                continue
            for run in head.runs:
                files.setdefault(run, (file, head))
    return files


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What a list shows of a run. `failed` cases have a result, but no correct time; `unavailable` ones, a part of them, were not
    tried, because the variant cannot run there or does not take the size."""

    id: str
    title: str
    op: str
    device: str
    created_at: str
    status: Status
    cases: int
    done: int
    failed: int
    unavailable: int = 0
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
        unavailable=sum(isinstance(r.outcome, Failure) and r.outcome.unavailable for r in run.results),
        note=run.note,
    )


def lines() -> dict[str, Line]:
    """The line of each shipped run, by id; of a run that the index does not know, from its file.

    Runs of the device with the highest memory bandwidth come first, those of a device without a data sheet last. Of a run that
    the package and the further recordings have, the package's counts.
    """
    return _lines(recordings_file.folder())


@lru_cache(maxsize=1)
def _lines(_further: Path | None) -> dict[str, Line]:
    by_name: dict[str, Line] = {}
    for folder in folders():
        index = folder / _INDEX
        known = msgspec.json.decode(index.read_bytes(), type=dict[str, Line]) if index.is_file() else {}
        for name in names_in(folder):
            if name not in by_name:
                by_name[name] = known.get(name) or line_of(load_from(folder, name))
    in_order = sorted(by_name.values(), key=lambda line: (-_bandwidth(line.device), line.device))
    return {line.id: line for line in in_order}


def line(run_id: str) -> Line:
    """The line of a run that `is_shipped`."""
    return lines().get(run_id) or line_of(load(run_id))


def _bandwidth(device: str) -> float:
    """Memory bandwidth by the data sheet, in bytes per second; 0 without one."""
    sheet = datasheet(device)
    return 0.0 if sheet is None else sheet.bandwidth_bytes_per_s


def packed_index(runs: Iterable[Run]) -> bytes:
    """The file ``index.json`` beside the shipped runs."""
    return msgspec.json.format(msgspec.json.encode({r.id: line_of(r) for r in runs}), indent=1) + b"\n"


@lru_cache(maxsize=8)
def empty_kernel_of(model: str) -> SameModelRoof | None:
    """The time of an empty kernel on a GPU of that model, of a shipped run; None if there is none.

    It hardly differs between GPUs of a model: 683, 696 and 712 ns on three H200.
    """
    for run in (load(line.id) for line in lines().values() if line.device == model):
        for roof in run.environment.roofs:
            if roof.what == "empty_kernel":
                return SameModelRoof(**msgspec.structs.asdict(roof))
    return None


@lru_cache(maxsize=1)
def selftests() -> tuple[Selftest, ...]:
    """The selftests that came with the package, by name of file."""
    return tuple(
        msgspec.json.decode(_unpacked(n, _FOLDER), type=Selftest) for n in _files(_FOLDER) if n.startswith(_SELFTEST)
    )


def packed_selftest(selftest: Selftest) -> bytes:
    """The file of a selftest that is to be shipped as ``selftest-….json.gz``."""
    return gzip.compress(msgspec.json.encode(selftest), compresslevel=9, mtime=0)


def packed(run: Run) -> bytes:
    """The file of a run that is to be shipped. Equal runs give equal files."""
    return gzip.compress(document.encode(run), compresslevel=9, mtime=0)
