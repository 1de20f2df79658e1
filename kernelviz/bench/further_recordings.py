"""Use case: fetch the recorded runs and the code that are too large for the package, once, and say whether they are here."""

from __future__ import annotations

import shutil
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from kernelviz.core import BadField, DocumentError, KernelvizError
from kernelviz.core.recordings import RecordingsFile
from kernelviz.formats import recordings_file, shipped_runs

TIMEOUT_S = 30.0
"""A server that sends nothing for so long is given up."""
PIECE_BYTES = 2**18
_SCHEMES = ("https://", "http://")
Progress = Callable[[float], None]


class NotFetched(KernelvizError):
    """The file of recordings could not be fetched; the message says why, and what else can be done."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FurtherRecordings:
    """What this version offers beside the recorded runs of the package. `archive`: None if nothing. `folder`: where its contents
    are, None if they are not here. `fetched`: whether they were fetched, so that they can be removed. `no_folder`: what
    KERNELVIZ_RECORDINGS names, if that is no folder."""

    archive: RecordingsFile | None
    folder: Path | None
    fetched: bool
    no_folder: Path | None = None

    @property
    def missing(self) -> RecordingsFile | None:
        """The archive, if it is offered and its contents are not here."""
        return self.archive if self.folder is None else None


def further_recordings() -> FurtherRecordings:
    """The state at present."""
    archive, folder = recordings_file.described(), recordings_file.folder()
    named = recordings_file.named_folder()
    fetched = archive is not None and folder == recordings_file.fetched_folder(archive) and named != folder
    no_folder = named if named is not None and not recordings_file.readable(named) else None
    return FurtherRecordings(archive=archive, folder=folder, fetched=fetched, no_folder=no_folder)


def fetch(source: str | None = None, *, on_progress: Progress | None = None) -> FurtherRecordings:
    """Fetch the archive of this version, compare its SHA-256 with that of the package, and unpack it in the folder of the data.

    `source`: a file, or an address with https or http; by default the address that the package names. `on_progress` gets the
    fraction that has arrived. Nothing is done if the contents are here. Errors: NotFetched; BadField for `source`.
    """
    state = further_recordings()
    if state.archive is None:
        raise NotFetched(
            "this version of kernelviz has no further recordings: all that were made come with the package"
        )
    if state.folder is not None:
        return state
    into = recordings_file.fetched_folder(state.archive)
    with _fetching:
        if not into.is_dir():
            data = _read(state.archive, source, on_progress or (lambda fraction: None))
            try:
                recordings_file.check(data, state.archive)
                recordings_file.unpack(data, into)
            except DocumentError as error:
                raise NotFetched(f"{source or state.archive.url}: {error}") from error
            except OSError as error:
                raise NotFetched(
                    f"the recordings cannot be written to {into} ({error.strerror or error}); "
                    "set KERNELVIZ_HOME to a folder that can be written, with enough free space"
                ) from error
    shipped_runs.read_again()
    return further_recordings()


@dataclass(slots=True)
class Fetching:
    """A fetch in a thread of this process. `fraction`: that has arrived. `error`: why it failed; None if it did not."""

    fraction: float = 0.0
    ended: bool = False
    error: str | None = None

    def run(self) -> None:
        """Fetch from the address of the package."""
        try:
            fetch(on_progress=self._arrived)
        except KernelvizError as error:
            self.error = str(error)
        except Exception as error:
            self.error = f"{type(error).__name__}: {error}"
            raise
        finally:
            self.ended = True

    def _arrived(self, fraction: float) -> None:
        self.fraction = fraction


_last: list[Fetching] = []
"""The fetch that was started last, if any: sessions of a server share what it fetches."""


def fetching() -> Fetching | None:
    """The fetch that was started last, or None."""
    return _last[0] if _last else None


def start_fetching() -> None:
    """Fetch in the background, unless that is going on."""
    with _starting:
        last = fetching()
        if last is not None and not last.ended:
            return
        _last[:] = [started := Fetching()]
        threading.Thread(target=started.run, name="fetch-recordings", daemon=True).start()


_starting = threading.Lock()


def remove() -> bool:
    """Remove what was fetched, also for earlier versions; returns whether there was something. What a checkout has, or the folder
    that KERNELVIZ_RECORDINGS names, stays. Errors: NotFetched if it cannot be removed."""
    named = recordings_file.named_folder()
    fetched = [folder for folder in recordings_file.fetched_folders() if folder != named]
    for folder in fetched:
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise NotFetched(f"{folder} cannot be removed ({error.strerror or error}); remove it yourself") from error
    shipped_runs.read_again()
    return bool(fetched)


_fetching = threading.Lock()
"""One fetch at a time in this process; the next one finds that it is done."""


def _read(archive: RecordingsFile, source: str | None, on_progress: Progress) -> bytes:
    """The bytes of the archive, at most one more than it should have."""
    if source is not None and not source.startswith(_SCHEMES):
        try:
            with Path(source).expanduser().open("rb") as file:
                return file.read(archive.size_bytes + 1)
        except (OSError, RuntimeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise BadField("--from", source, f"it cannot be read ({reason}); name the file, or an address") from error
    address = archive.url if source is None else source
    data = bytearray()
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:
            while len(data) <= archive.size_bytes and (piece := answer.read(PIECE_BYTES)):
                data += piece
                on_progress(min(1.0, len(data) / archive.size_bytes))
    except (urllib.error.URLError, HTTPException, OSError, ValueError) as error:
        answered = isinstance(error, urllib.error.HTTPError)
        reason = error if answered else getattr(error, "reason", None) or error
        raise NotFetched(
            f"{address} cannot be read ({reason}). Download the file on a machine that can read it; "
            "kernelviz recordings fetch --from FILE then unpacks it here"
        ) from error
    if len(data) < archive.size_bytes:
        raise NotFetched(
            f"{address} ended after {len(data):,} of {archive.size_bytes:,} bytes; try again, or download the file elsewhere"
        )
    return bytes(data)
