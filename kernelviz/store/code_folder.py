"""The contents of artifacts: one compressed file for each digest, in a folder beside the database, bounded in size.

Several processes may write at once: a file appears whole, under the digest of its content, so whoever writes it writes the same.
Nothing here raises an error of the disk, because a run is worth more than its code; `problem` says what went wrong last.
"""

import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from kernelviz.core import CodeContent
from kernelviz.core.code import CodeError, is_digest, unpacked
from kernelviz.core.errors import BadField
from kernelviz.hardware.whole_files import write_whole
from kernelviz.store.database import StoreError

VARIABLE = "KERNELVIZ_CODE_BYTES"
MOST_BYTES = 2**30
"""All artifacts take at most this much, unless the environment variable KERNELVIZ_CODE_BYTES says otherwise (0: none is stored).
A case took 9 to 50 kB compressed (cumsum and softmax, sm_90), so these are the artifacts of more than 20,000 different cases."""
LEAST_FREE_BYTES = 64 * 2**20
"""With less free space than this, nothing is stored: the rest of the disk is for results."""
_AFTER_EVICTION, _SCAN_AGAIN = 0.9, 1 / 16
"""The share of the limit that is left after an eviction, and the share that this process writes before it looks again at what
other processes have written: so the folder exceeds its limit by at most a sixteenth for each process that writes."""
_ENDING = ".z"
_log = logging.getLogger(__name__)


class _File(NamedTuple):
    modified_ns: int
    size_bytes: int
    path: Path


class CodeFolder:
    """The artifacts of one store. Every method may be called from any thread."""

    def __init__(
        self, folder: Path | None, referenced: Callable[[], frozenset[str]], most_bytes: int | None = None
    ) -> None:
        """`folder`: None where nothing is stored. `referenced`: returns the digests that stored runs name. `most_bytes`: by
        default the environment's. Errors: BadField for an environment variable that is no number of bytes."""
        self.folder = folder
        self.problem: str | None = None
        """Why the last content could not be stored; None if it could."""
        self._referenced = referenced
        self._most_bytes = _limit() if most_bytes is None else most_bytes
        self._lock = threading.Lock()
        self._bytes: int | None = None
        self._since_scan = 0

    def put(self, contents: Iterable[CodeContent]) -> None:
        """Store contents that are not there yet. One whose bytes are not those of its digest is left out."""
        if self.folder is None or self._most_bytes <= 0:
            return
        with self._lock:
            try:
                self._put(self.folder, contents)
                self.problem = None
            except (OSError, CodeError, StoreError) as error:
                if self.problem is None:
                    _log.warning("code of compilers is not stored in %s: %s", self.folder, error)
                self.problem = str(error)

    def get(self, digest: str) -> bytes | None:
        """The content of an artifact; None if it is not here, cannot be read, or is damaged (its file is removed then)."""
        if self.folder is None or not is_digest(digest):
            return None
        path = self._path(self.folder, digest)
        try:
            return unpacked(CodeContent(digest=digest, zlib=path.read_bytes()))
        except CodeError as error:
            _log.warning("%s is removed: %s", path, error)
            with suppress(OSError):
                path.unlink()
            return None
        except OSError:
            return None

    def has(self, digest: str) -> bool:
        """Whether there is a file for the artifact."""
        return self.folder is not None and is_digest(digest) and self._path(self.folder, digest).is_file()

    def _put(self, folder: Path, contents: Iterable[CodeContent]) -> None:
        for content in contents:
            if not is_digest(content.digest):
                raise CodeError("an artifact without a SHA-256 is not stored")
            path = self._path(folder, content.digest)
            with suppress(OSError):
                os.utime(path)  # it was compiled again, so it is new
                continue
            unpacked(content)
            size = len(content.zlib)
            self._make_room(folder, size)
            path.parent.mkdir(parents=True, exist_ok=True)
            if shutil.disk_usage(folder).free < LEAST_FREE_BYTES + size:
                raise OSError(f"less than {LEAST_FREE_BYTES / 2**20:.0f} MiB of the disk are free")
            write_whole(path, content.zlib)
            self._bytes = (self._bytes or 0) + size
            self._since_scan += size

    def _make_room(self, folder: Path, size: int) -> None:
        """Remove files where the folder would exceed its limit: first those that no stored run names, the oldest first."""
        if size > self._most_bytes:
            raise OSError(f"an artifact of {size:,} bytes exceeds the limit of {self._most_bytes:,} ({VARIABLE})")
        total = self._bytes
        if total is None or total + size > self._most_bytes or self._since_scan > _SCAN_AGAIN * self._most_bytes:
            files = list(_files(folder))
            total = sum(file.size_bytes for file in files)
            if total + size > self._most_bytes:
                total = self._evict(files, total, int(_AFTER_EVICTION * self._most_bytes) - size)
            self._bytes, self._since_scan = total, 0

    def _evict(self, files: list[_File], total: int, wanted: int) -> int:
        referenced = self._referenced()
        files.sort(key=lambda file: (file.path.stem in referenced, file.modified_ns))
        for file in files:
            if total <= wanted:
                break
            with suppress(FileNotFoundError):  # another process was faster
                file.path.unlink()
            total -= file.size_bytes
        return total

    @staticmethod
    def _path(folder: Path, digest: str) -> Path:
        return folder / digest[:2] / f"{digest}{_ENDING}"


def _files(folder: Path) -> Iterator[_File]:
    """All files of the folder, parts of a writer that was killed among them."""
    for inside in [entry for entry in _entries(folder) if entry.is_dir(follow_symlinks=False)]:
        for entry in _entries(inside.path):
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                yield _File(status.st_mtime_ns, status.st_size, Path(entry.path))


def _entries(folder: Path | str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _limit() -> int:
    text = os.environ.get(VARIABLE, "")
    if not text:
        return MOST_BYTES
    if not (text.isascii() and text.isdecimal()):
        raise BadField(VARIABLE, text, "give a whole number of bytes, for example 1073741824; 0 stores no code")
    return int(text)
