"""Recorded runs and code that are too large for the package: an archive, or the folder docs/recordings of a checkout.

The package says where the archive is and which SHA-256 it has, so its contents are trusted like those of the package.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import msgspec

from kernelviz.core import DocumentError
from kernelviz.core.recordings import RecordingsFile
from kernelviz.store.store import home

VARIABLE = "KERNELVIZ_RECORDINGS"
"""The environment variable that names a folder with the contents of the archive, for a machine that several users share."""
NAME = "kernelviz-recordings.zip"
DESCRIPTION = "recordings-file.json"
CODE = "code"
"""The folder of the files of code, within that of the recordings."""
_CHECKOUT = Path(__file__).parents[2]
_MEMBER = re.compile(r"(code/)?[A-Za-z0-9_.-]+\.(kvz|kvc|json|xz)")
_NO_DATE = (1980, 1, 1, 0, 0, 0)


@lru_cache(maxsize=1)
def described() -> RecordingsFile | None:
    """The archive that the package names; None if this version has none."""
    file = files("kernelviz") / "shipped" / DESCRIPTION
    return msgspec.json.decode(file.read_bytes(), type=RecordingsFile) if file.is_file() else None


def named_folder() -> Path | None:
    """The folder that KERNELVIZ_RECORDINGS names, which may not exist; None if it names none."""
    named = os.environ.get(VARIABLE)
    return Path(os.path.expanduser(named)) if named else None  # noqa: PTH111 (Path's raises for an unknown user)


def readable(folder: Path) -> bool:
    """Whether it is a folder whose files can be listed."""
    return folder.is_dir() and os.access(folder, os.R_OK | os.X_OK)


def folder() -> Path | None:
    """Where the contents of the archive are: the folder that KERNELVIZ_RECORDINGS names, docs/recordings of a checkout, or where
    the archive was unpacked. None if they are nowhere."""
    shared = named_folder()
    if shared is not None and readable(shared):
        return shared
    of_checkout = _CHECKOUT / "docs" / "recordings"
    if (_CHECKOUT / "pyproject.toml").is_file() and of_checkout.is_dir():
        return of_checkout
    archive = described()
    fetched = None if archive is None else fetched_folder(archive)
    return fetched if fetched is not None and readable(fetched) else None


def fetched_folders() -> tuple[Path, ...]:
    """Every folder in which an archive was unpacked or began to be: also of earlier versions."""
    inside = home() / "recordings"
    return tuple(sorted(path for path in inside.iterdir() if path.is_dir())) if inside.is_dir() else ()


def fetched_folder(archive: RecordingsFile) -> Path:
    """Where an archive is unpacked: in the folder of the data of kernelviz, under its digest."""
    return home() / "recordings" / archive.sha256[:16]


def pack(contents: Path) -> bytes:
    """The archive of a folder. Equal folders give equal archives: members are sorted, have no dates, and are stored as they are,
    because they are compressed. Errors: DocumentError for a file that `unpack` would refuse."""
    data = io.BytesIO()
    members = {p.relative_to(contents).as_posix(): p for p in sorted(contents.rglob("*")) if p.is_file()}
    _check_names(members)
    with zipfile.ZipFile(data, "w", zipfile.ZIP_STORED) as archive:
        for name, path in members.items():
            archive.writestr(zipfile.ZipInfo(name, _NO_DATE), path.read_bytes())
    return data.getvalue()


def _check_names(names: Iterable[str]) -> None:
    if odd := next((name for name in names if not _MEMBER.fullmatch(name)), None):
        raise DocumentError(f"{odd[:60]!r} is no name of a recorded run or of its code")


def check(data: bytes, archive: RecordingsFile) -> None:
    """Errors: DocumentError unless these are the bytes of the archive that this version of the package names."""
    sha256 = hashlib.sha256(data).hexdigest()
    if len(data) != archive.size_bytes or sha256 != archive.sha256:
        raise DocumentError(
            f"it is not the file of recordings of this version of kernelviz: {len(data):,} bytes with SHA-256 {sha256[:12]}…, "
            f"expected {archive.size_bytes:,} bytes with {archive.sha256[:12]}…"
        )


def unpack(data: bytes, into: Path) -> None:
    """Unpack a checked archive into a folder that does not exist yet; the folder appears whole, or not at all.

    Errors: DocumentError for a member with another kind of name; OSError.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise DocumentError(f"it cannot be unpacked ({error})") from None
    _check_names(members)
    into.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=into.parent, prefix=".part-"))
    try:
        for name, content in members.items():
            (beside / name).parent.mkdir(exist_ok=True)
            (beside / name).write_bytes(content)
        beside.chmod(0o755)  # a temporary folder is closed to others, who may share this one
        try:
            beside.rename(into)
        except OSError:
            if not into.is_dir():  # else another process has unpacked it meanwhile
                raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)
