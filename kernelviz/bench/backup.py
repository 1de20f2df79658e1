"""A backup: the whole store as one file, with one line of JSON for each run, roof, selftest, inspection, tuning and workload.

The first line holds the version of the format. The last line holds the number of lines and the SHA-256 of all bytes before it,
so that a file that was cut off or changed is refused before anything of it is stored. A file whose name ends with ``.gz`` is
compressed.
"""

import gzip
import hashlib
import os
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, assert_never, cast, get_args

import msgspec

import kernelviz
from kernelviz import formats
from kernelviz.bench.workload_history import WorkloadHistory
from kernelviz.core import BadField, DocumentError, Inspection, Roof, Run, Selftest, Tuning, UnknownRun, timestamps
from kernelviz.core.workload import WorkloadRun
from kernelviz.formats import document, limited_process, record_validation, validation, workload_document
from kernelviz.formats.reading import BACKUP
from kernelviz.store import DamagedRow, Store

SCHEMA = "kernelviz-backup/3"
_READ = (
    "kernelviz-backup/1",
    "kernelviz-backup/2",
    SCHEMA,
)  # the first had no tunings, the second no runs of workloads
_GZIP = b"\x1f\x8b"
MOST_LINE_BYTES = 512 * 2**20
"""Of a line, so of a run, when it is unpacked. A run of 1,000 cases with all samples has about 120 MB."""
MOST_RUN_BYTES = MOST_LINE_BYTES // 2
"""Of a run that is written: reading it again also needs its line, a copy of it, and its values, and has four times a line."""
MOST_RATIO, FREE_BYTES = 100, 64 * 2**20
"""A packed file may unpack to so many times its size, plus the free bytes. Samples shrink to a third, roofs to a tenth."""


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    schema: str = SCHEMA
    kernelviz: str
    created_at: str


class _Line(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """A line between the first and the last."""


class RunLine(_Line, frozen=True, kw_only=True, tag="run"):
    """A run as its native document, with the facts that only the store has."""

    owner: str = ""
    deleted_at: str | None = None
    run: msgspec.Raw


class RoofLine(_Line, frozen=True, kw_only=True, tag="roof"):
    device_uuid: str
    roof: Roof


class SelftestLine(_Line, frozen=True, kw_only=True, tag="selftest"):
    selftest: Selftest


class InspectionLine(_Line, frozen=True, kw_only=True, tag="inspection"):
    inspection: Inspection


class TuningLine(_Line, frozen=True, kw_only=True, tag="tuning"):
    tuning: Tuning


class WorkloadLine(_Line, frozen=True, kw_only=True, tag="workload"):
    """A run of a workload as its document, with the facts that only the store has."""

    owner: str = ""
    deleted_at: str | None = None
    run: msgspec.Raw


class _End(_Line, frozen=True, kw_only=True, tag="end"):
    lines: int
    sha256: str


Line = RunLine | RoofLine | SelftestLine | InspectionLine | TuningLine | WorkloadLine
_LINE: msgspec.json.Decoder[Line | _End] = msgspec.json.Decoder(Line | _End)


@dataclass(frozen=True, slots=True)
class Backup:
    """The contents of a backup: the number of lines of each kind, and the ids that its runs have here. `damaged`: what is not in
    it, because it cannot be read here or is too large."""

    lines: Mapping[type[_Line], int]
    ids: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()

    @property
    def counts(self) -> str:
        """
        >>> Backup({RunLine: 1, RoofLine: 2}).counts
        '1 run, 2 roofs, 0 selftests, 0 inspections, 0 tunings, 0 workloads'
        """
        numbers = ((self.lines.get(kind, 0), kind.__struct_config__.tag) for kind in get_args(Line))
        return ", ".join(f"{number} {noun}{'' if number == 1 else 's'}" for number, noun in numbers)


def recognised(path: Path) -> bool:
    """Whether the file begins like a backup. Raises BadField if it cannot be read."""
    with _readable(path) as raw:
        try:
            return _unpacked(raw).read(len(BACKUP)) == BACKUP
        except (OSError, EOFError, zlib.error):  # packed by something else, or cut off
            return False


def write(store: Store, path: Path) -> Backup:
    """Write everything that is stored and can be read to a file, which is written as a whole or not at all. Errors: BadField,
    StoreError."""
    digest, kinds = hashlib.sha256(), Counter[type[_Line]]()
    ids: list[str] = []
    left_out: list[str] = []
    with _new(path) as file:

        def put(value: object) -> None:
            data = msgspec.json.encode(value) + b"\n"
            digest.update(data)
            file.write(data)

        put(_Head(kernelviz=kernelviz.__version__, created_at=timestamps.now()))
        for line in _everything(store, ids, left_out):
            put(line)
            kinds[type(line)] += 1
        put(_End(lines=kinds.total(), sha256=digest.hexdigest()))
    return Backup(kinds, tuple(ids), (*store.damaged, *left_out))


def restore(store: Store, path: Path, add_runs: Callable[..., tuple[str, ...]]) -> Backup:
    """Store what a backup holds and is not stored here yet. The whole file is checked before anything of it is stored.

    `add_runs` is `History.add_all`, which stores a run as a whole or not at all, so restoring twice changes nothing. Errors:
    DocumentError with the number of the line and the path of the field; StoreError, after which the earlier lines stay stored.
    """
    _check(path)
    kinds, ids = Counter[type[_Line]](), list[str]()
    for line in _lines(path):
        kinds[type(line)] += 1
        match line:
            case RunLine():
                ids += add_runs((_run(line),), owner=line.owner, deleted_at=line.deleted_at)
            case RoofLine():
                store.roofs.put(line.device_uuid, line.roof, only_new=True)
            case SelftestLine():
                store.selftests.put(line.selftest, only_new=True)
            case InspectionLine():
                inspection = line.inspection
                known = store.inspections.get(inspection.environment.device.uuid, inspection.case_key)
                if known is None or known.created_at < inspection.created_at:
                    store.inspections.put(inspection)
            case TuningLine():
                store.tunings.put(line.tuning, only_newer=True)
            case WorkloadLine():
                ids.append(WorkloadHistory(store).add(_workload(line), owner=line.owner, deleted_at=line.deleted_at))
            case _:
                assert_never(line)
    return Backup(kinds, tuple(ids))


def runs(path: Path) -> Iterator[Run]:
    """The runs of a backup, one at a time, without storing them. The whole file is checked before the first. Errors: as
    `restore`."""
    _check(path)
    for line in _lines(path):
        if isinstance(line, RunLine):
            yield _run(line)


def _everything(store: Store, ids: list[str], left_out: list[str]) -> Iterator[Line]:
    """Every line. The ids of the runs are added to `ids`, and those that are too large for a backup to `left_out`."""
    most = 2**31
    for row in (*store.runs.rows(most), *store.runs.rows(most, deleted=True)):
        try:
            run = store.runs.load(row.id)
        except UnknownRun:  # it was discarded in the meantime
            continue
        except DamagedRow:  # named in `Backup.damaged`
            continue
        encoded = document.encode(run)
        if len(encoded) > MOST_RUN_BYTES:
            left_out.append(
                f"run {row.id}: its document has {len(encoded) / 1e6:.0f} MB, which is too much for a backup"
            )
            continue
        ids.append(row.id)
        yield RunLine(owner=row.owner, deleted_at=row.deleted_at, run=msgspec.Raw(encoded))
    yield from (RoofLine(device_uuid=uuid, roof=roof) for uuid, roof in store.roofs.every())
    yield from (SelftestLine(selftest=selftest) for selftest in store.selftests.every())
    yield from (InspectionLine(inspection=inspection) for inspection in store.inspections.every())
    yield from (TuningLine(tuning=tuning) for tuning in store.tunings.find())
    for of in (*store.workloads.rows(most), *store.workloads.rows(most, deleted=True)):
        try:
            encoded = workload_document.encode(store.workloads.load(of.id))
        except (UnknownRun, DamagedRow):
            left_out.append(f"run {of.id}: it cannot be read")
            continue
        ids.append(of.id)
        yield WorkloadLine(owner=of.owner, deleted_at=of.deleted_at, run=msgspec.Raw(encoded))


def _check(path: Path) -> None:
    """Check every line, of all but short files in a process with limits. Errors: DocumentError, BadField."""
    if not _is_short(path):
        limited_process.call(check_lines, [str(path)])
        return
    for _ in _lines(path):
        pass


def _is_short(path: Path) -> bool:
    """Whether the file, unpacked, is so short that its values cannot take much memory. Errors: BadField."""
    with _readable(path) as raw:
        try:
            return len(_unpacked(raw).read(formats.MOST_READ_HERE_BYTES + 1)) <= formats.MOST_READ_HERE_BYTES
        except (OSError, EOFError, zlib.error):  # It cannot be unpacked, which the check of its lines reports.
            return True


def check_lines(arguments: Sequence[str]) -> bytes:
    """Check every line of the backup with this path. Errors: DocumentError, BadField, MemoryError."""
    limited_process.limit_memory(limited_process.MEMORY_FACTOR * MOST_LINE_BYTES)
    for _ in _lines(Path(arguments[0])):
        pass
    return b""


def _lines(path: Path) -> Iterator[Line]:
    """Check the lines between the first and the last, and return one at a time. Errors: DocumentError, BadField."""
    digest, number, unpacked_bytes = hashlib.sha256(), 0, 0
    with _readable(path) as raw:
        file = _unpacked(raw)
        try:
            while data := file.readline(MOST_LINE_BYTES + 1):
                number += 1
                unpacked_bytes += len(data)
                _check_length(len(data), unpacked_bytes, raw.tell(), number)
                if number == 1:
                    _check_head(data)
                else:
                    line = _line(data, number)
                    if isinstance(line, _End):
                        if line.lines != number - 2 or line.sha256 != digest.hexdigest() or file.read(1):
                            raise DocumentError("it was changed since it was written", path=f"line {number}")
                        return
                    yield line
                digest.update(data)
        except (OSError, EOFError, zlib.error) as error:
            raise DocumentError(f"it cannot be unpacked ({error})", path=f"line {number + 1}") from None
    raise DocumentError("it ends before its end: it was cut off", path=f"line {number}")


def _check_head(data: bytes) -> None:
    try:
        schema = msgspec.json.decode(data, type=_Head).schema
    except msgspec.MsgspecError as error:
        raise DocumentError(document.document_error(error).reason, path="line 1") from None
    if schema not in _READ:
        raise DocumentError(f"it was written as {schema[:60]!r}, {SCHEMA!r} is read; update kernelviz", path="line 1")


def _line(data: bytes, number: int) -> Line | _End:
    try:
        line = _LINE.decode(data)
        _check_line(line)
        return line
    except (DocumentError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        known = error if isinstance(error, DocumentError) else document.document_error(error)
        raise DocumentError(str(known), path=f"line {number}") from None


def _check_line(line: Line | _End) -> None:
    """Check the values of a line that the types do not check. Errors: DocumentError."""
    match line:
        case RunLine():
            _run(line)
            if line.deleted_at is not None:
                validation.check_moment(line.deleted_at, "$.deleted_at")
        case RoofLine():
            validation.check_roof(line.roof, "$.roof")
            validation.check_moment(line.roof.measured_at, "$.roof.measured_at")
        case SelftestLine():
            record_validation.check_selftest(line.selftest)
        case InspectionLine():
            record_validation.check_inspection(line.inspection)
        case TuningLine():
            record_validation.check_tuning(line.tuning)
        case WorkloadLine():
            _workload(line)
            if line.deleted_at is not None:
                validation.check_moment(line.deleted_at, "$.deleted_at")
        case _End():
            pass
        case _:
            assert_never(line)


def _run(line: RunLine) -> Run:
    """Decode a run that may be longer than a document from elsewhere: it was stored, and a backup must be restorable."""
    return document.decode(bytes(line.run), most_bytes=None)


def _workload(line: WorkloadLine) -> WorkloadRun:
    """Decode a run that may be longer than a document from elsewhere."""
    return workload_document.decode(bytes(line.run), most_bytes=None)


def _check_length(line_bytes: int, unpacked_bytes: int, read_bytes: int, number: int) -> None:
    """Errors: DocumentError for a line that is too long, and for a file that unpacks to too many bytes."""
    if line_bytes > MOST_LINE_BYTES:
        raise DocumentError(f"it has more than {MOST_LINE_BYTES / 1e6:.0f} MB", path=f"line {number}")
    if unpacked_bytes > MOST_RATIO * read_bytes + FREE_BYTES:
        raise DocumentError(f"the file unpacks to more than {MOST_RATIO} times its size", path=f"line {number}")


@contextmanager
def _readable(path: Path) -> Iterator[IO[bytes]]:
    try:
        with path.open("rb") as raw:
            yield raw
    except OSError as error:
        raise BadField("file", path, f"it cannot be read ({error.strerror or error})") from None


def _unpacked(raw: IO[bytes]) -> IO[bytes]:
    """The file, unpacked if it is packed, from its beginning."""
    packed = raw.read(2) == _GZIP
    raw.seek(0)
    return cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if packed else raw


@contextmanager
def _new(path: Path) -> Iterator[IO[bytes]]:
    """A temporary file next to the path, which is renamed to it when it is complete."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        beside = Path(name)
        try:
            with os.fdopen(handle, "wb") as raw:
                if path.suffix == ".gz":
                    # Level 1: samples shrink to a third at 60 MB/s; higher levels take three times as long for a tenth less.
                    with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1) as packed:
                        yield cast(IO[bytes], packed)
                else:
                    yield raw
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise BadField("--out", path, f"it cannot be written ({error.strerror or error})") from None
