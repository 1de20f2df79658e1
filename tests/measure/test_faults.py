"""Disks that are full or cannot be written, met while compiling: a Failure that names the folder and its variable."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kernelviz.core.reasons import CacheNotWritable, DiskFull, Folder, Raised
from kernelviz.hardware import storage_folders
from kernelviz.hardware.storage_folders import FolderState
from kernelviz.measure.session.failures import failure


def wrapped(cause: Exception) -> Exception:
    """As torch.compile raises it: a compiler's error round the one of the system."""
    try:
        try:
            raise cause
        except Exception as inner:
            raise RuntimeError(f"compiling failed: {inner}") from inner
    except RuntimeError as error:
        return error


@pytest.mark.parametrize(
    "cause",
    [
        OSError(errno.ENOSPC, "No space left on device"),  # Triton's and torch.compile's name no file
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        RuntimeError(
            "/tmp/x.s: fatal error: error writing to /tmp/x.s: No space left on device"
        ),  # a compiler's stderr
    ],
)
def test_a_disk_that_fills_while_compiling_names_the_folders_that_are_short_of_room(
    cause: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = (
        FolderState("TRITON_CACHE_DIR", Path("/full/triton"), writable=True, disk=1, free_bytes=0),
        FolderState("KERNELVIZ_CACHE", Path("/roomy"), writable=True, disk=2, free_bytes=2**40),
    )
    monkeypatch.setattr(storage_folders, "look", lambda _: places)
    found = failure(wrapped(cause))
    assert found.stage == "compile"
    assert found.reasons == (DiskFull(folders=(Folder(path="/full/triton", variable="TRITON_CACHE_DIR"),)),)


def test_where_room_was_found_again_every_folder_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    place = FolderState("TRITON_CACHE_DIR", Path("/t"), writable=True, disk=1, free_bytes=2**40)
    monkeypatch.setattr(storage_folders, "look", lambda _: (place,))
    found = failure(OSError(errno.ENOSPC, "No space left on device"))
    assert found.reasons == (DiskFull(folders=(Folder(path="/t", variable="TRITON_CACHE_DIR"),)),)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_cache_that_cannot_be_written_names_its_variable(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", "/readonly/triton")
    found = failure(wrapped(OSError(number, os.strerror(number), "/readonly/triton/AB12")))
    assert found.stage == "compile"
    cache = Folder(path="/readonly/triton", variable="TRITON_CACHE_DIR")
    assert found.reasons == (CacheNotWritable(path="/readonly/triton/AB12", cache=cache),)


def test_another_file_that_cannot_be_written_is_the_variants_own_matter() -> None:
    error = PermissionError(errno.EACCES, "Permission denied", "/etc/shadow")
    found = failure(error)
    assert (found.stage, found.reasons) == ("crash", (Raised(type="PermissionError"),))
