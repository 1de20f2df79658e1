"""The device lock between real processes: one holder, its name, the order of waiting, and refused links and foreign files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kernelviz.core.errors import DeviceError
from kernelviz.worker.device_lock import DeviceLock, Holder, runtime_directory

ROOT = Path(__file__).parents[2]

# Takes the lock as often as it is told to on stdin, and says so.
OTHER = """
import sys
from pathlib import Path
from kernelviz.worker.device_lock import DeviceLock
lock = DeviceLock("GPU-1", Path(sys.argv[1]))
for line in sys.stdin:
    if line == "take\\n":
        print("waiting", flush=True)
        lock.acquire(lambda holder: print("held by", holder.pid, flush=True), lambda: False)
        print("taken", flush=True)
    else:
        lock.release()
        print("released", flush=True)
"""


class Other:
    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", OTHER, str(folder)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def say(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Other]:
    made = Other(tmp_path)
    yield made
    made.process.kill()
    made.process.communicate()


def take(lock: DeviceLock) -> list[Holder]:
    told: list[Holder] = []
    assert lock.acquire(lambda holder: told.append(holder) if holder else None, lambda: False)
    return told


def test_who_waits_is_told_who_holds(other: Other, tmp_path: Path) -> None:
    lock = DeviceLock("GPU-1", tmp_path)
    assert take(lock) == []
    other.say("take")
    assert other.hear() == "waiting"
    assert other.hear() == f"held by {os.getpid()}"
    lock.release()
    assert other.hear() == "taken"
    asked = iter([False, True])
    told: list[object] = []
    assert not lock.acquire(told.append, lambda: next(asked))
    assert f"process {other.process.pid}" in str(told[0])
    lock.close()


def test_who_releases_cannot_overtake_who_waits(other: Other, tmp_path: Path) -> None:
    lock = DeviceLock("GPU-1", tmp_path)
    take(lock)
    other.say("take")
    other.hear()
    assert other.hear() == f"held by {os.getpid()}"
    lock.release()
    asked = iter(range(3))
    got = lock.acquire(lambda holder: None, lambda: next(asked) == 2)
    assert not got
    assert other.hear() == "taken"
    lock.close()


def test_who_comes_again_knows_whether_others_were_there(other: Other, tmp_path: Path) -> None:
    lock = DeviceLock("GPU-1", tmp_path)
    for _ in range(2):
        take(lock)
        assert not lock.lock_changed_hands
        lock.release()
        assert lock.holder() is None
    other.say("take")
    other.hear()
    assert other.hear() == "taken"
    other.say("leave")
    assert other.hear() == "released"
    take(lock)
    assert lock.lock_changed_hands
    lock.release()
    take(lock)
    assert not lock.lock_changed_hands
    lock.close()


def test_a_killed_holder_was_there(other: Other, tmp_path: Path) -> None:
    lock = DeviceLock("GPU-1", tmp_path)
    take(lock)
    lock.release()
    other.say("take")
    other.hear()
    assert other.hear() == "taken"
    other.process.kill()
    other.process.wait()
    take(lock)
    assert lock.lock_changed_hands
    lock.close()


def test_a_killed_holder_holds_nothing(other: Other, tmp_path: Path) -> None:
    other.say("take")
    assert [other.hear(), other.hear()] == ["waiting", "taken"]
    other.process.kill()
    other.process.wait()
    lock = DeviceLock("GPU-1", tmp_path)
    take(lock)
    assert lock.holder() is not None
    lock.release()
    assert lock.holder() is None
    lock.close()


def test_a_folder_that_was_cleaned_is_no_second_lock(tmp_path: Path) -> None:
    lock, second = DeviceLock("GPU-1", tmp_path), DeviceLock("GPU-1", tmp_path)
    take(lock)
    lock.release()
    for path in tmp_path.iterdir():
        path.unlink()
    take(second)
    asked = iter([True])
    assert not lock.acquire(lambda holder: None, lambda: next(asked))
    lock.close()
    second.close()


def test_files_are_for_every_user_and_links_are_refused(tmp_path: Path) -> None:
    lock = DeviceLock("GPU-../../x y", tmp_path)
    take(lock)
    lock.close()
    assert {p.stat().st_mode & 0o777 for p in tmp_path.iterdir()} == {0o666}
    (tmp_path / "GPU-2.turn").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DeviceError, match="KERNELVIZ_RUNTIME_DIR"):
        take(DeviceLock("GPU-2", tmp_path))
    assert not (tmp_path / "elsewhere").exists()


def test_a_process_without_a_command_line_or_a_user_name_takes_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An embedded interpreter has no `sys.argv`, and a container's user id may have no name."""

    def nobody(_: object) -> str:
        raise psutil.AccessDenied

    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(psutil.Process, "username", nobody)
    lock = DeviceLock("GPU-1", tmp_path)
    take(lock)
    holder = lock.holder()
    assert holder is not None
    assert (holder.command, holder.user) == ("python", str(os.getuid()))
    lock.release()
    lock.close()


def test_the_folder_is_the_one_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELVIZ_RUNTIME_DIR", str(tmp_path / "a" / "locks"))
    assert runtime_directory() == tmp_path / "a" / "locks"
    assert (tmp_path / "a" / "locks").stat().st_mode & 0o7777 == 0o1777
    (tmp_path / "link").symlink_to(tmp_path / "a")
    monkeypatch.setenv("KERNELVIZ_RUNTIME_DIR", str(tmp_path / "link"))
    with pytest.raises(DeviceError, match="set KERNELVIZ_RUNTIME_DIR"):
        runtime_directory()
