"""What may happen to the files of the device lock: a full disk, a cleaner of the folder. A device is neither kept nor doubled."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from kernelviz.core.errors import DeviceError
from kernelviz.worker.device_lock import DeviceLock


def acquired(lock: DeviceLock) -> bool:
    return lock.acquire(lambda holder: None, lambda: True)


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int, data: bytes, offset: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", refuse)


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_keeps_nobody_from_the_device(tmp_path: Path) -> None:
    one, other = DeviceLock("GPU-1", tmp_path), DeviceLock("GPU-1", tmp_path)
    for _ in range(2):
        assert acquired(one)
        assert not acquired(other)
        assert other.holder() is None, "nobody could write himself down"
        one.release()
        assert acquired(other)
        other.release()
    assert acquired(one)
    assert one.lock_changed_hands, "what is not known counts as yes: the device is looked at anew"
    one.close()
    other.close()


def clean(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
        path.touch()


def test_a_file_that_was_replaced_before_it_was_locked_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new file gets the descriptor number of the closed old file, so only the file itself distinguishes them."""
    lock, other = DeviceLock("GPU-1", tmp_path), DeviceLock("GPU-1", tmp_path)
    flock, calls = fcntl.flock, 0

    def late(fd: int, operation: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:  # the first is the turnstile's
            clean(tmp_path)
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    never = iter([False, True])
    assert lock.acquire(lambda holder: None, lambda: next(never)), "taken anew, of the file that is there now"
    assert not acquired(other)
    lock.close()
    other.close()


def test_what_is_held_stays_held_when_the_folder_is_cleaned(tmp_path: Path) -> None:
    lock = DeviceLock("GPU-1", tmp_path)
    assert acquired(lock)
    held = os.fstat(lock.lock_fd())
    clean(tmp_path)
    assert os.path.samestat(os.fstat(lock.lock_fd()), held), "the guard must get what is locked"
    lock.release()
    assert not os.path.samestat(os.fstat(lock.lock_fd()), held)
    lock.close()


def test_a_file_that_cannot_be_opened_leaves_the_turnstile_free(tmp_path: Path) -> None:
    lock, other = DeviceLock("GPU-1", tmp_path), DeviceLock("GPU-1", tmp_path)
    (tmp_path / "GPU-1.lock").mkdir()
    with pytest.raises(DeviceError, match="KERNELVIZ_RUNTIME_DIR"):
        acquired(lock)
    (tmp_path / "GPU-1.lock").rmdir()
    assert acquired(other)
    lock.close()
    other.close()
