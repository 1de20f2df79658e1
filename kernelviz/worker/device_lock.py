"""One measurement at a time on one device, for all users of the machine: a lock file per device UUID.

flock is used because the kernel releases it when the process that holds it dies. A process that waits holds a second lock,
the turnstile: a process that has released the lock must pass the turnstile to take it again, so it cannot overtake one that
waited. The descriptor is also passed to the worker's guard (see guard.py), which keeps the lock after the server was killed
until every process that the worker started is gone.
"""

import contextlib
import datetime
import errno
import fcntl
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil

from kernelviz.core import DeviceError
from kernelviz.hardware.storage_folders import temporary_folder

POLL_S = 0.02


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """The process that holds a device's lock."""

    pid: int
    user: str
    command: str
    since: str

    def __str__(self) -> str:
        return f"{self.command} of {self.user} (process {self.pid}, since {self.since})"


def runtime_directory() -> Path:
    """The folder with the lock files of all users: KERNELVIZ_RUNTIME_DIR, else /run/lock/kernelviz, else in the folder for
    temporary files. It is created with mode 1777 when it is missing. Errors: DeviceError with the remedy."""
    given = os.environ.get("KERNELVIZ_RUNTIME_DIR")
    candidates = [Path(given)] if given else [Path("/run/lock/kernelviz"), temporary_folder() / "kernelviz"]
    reasons = []
    for path in candidates:
        try:
            path.mkdir(parents=bool(given))
            path.chmod(0o1777)  # the umask removes bits from mkdir's mode
        except FileExistsError:
            pass
        except OSError as error:
            reasons.append(f"{path}: {error.strerror}")
            continue
        # A symbolic link here could redirect the lock files of other users into a folder of the link's owner.
        if stat.S_ISDIR(path.lstat().st_mode) and os.access(path, os.W_OK | os.X_OK):
            return path
        reasons.append(f"{path}: not a folder in which this user may write")
    raise DeviceError(
        f"no folder for the lock files of devices ({'; '.join(reasons)}); set KERNELVIZ_RUNTIME_DIR to one that every "
        "user of this machine may write to"
    )


class DeviceLock:
    """The lock of one device, for one thread of one process."""

    def __init__(self, uuid: str, directory: Path | None = None) -> None:
        folder = directory or runtime_directory()
        name = re.sub(r"[^A-Za-z0-9._-]", "_", uuid)
        self._main = _LockFile(folder / f"{name}.lock")
        self._turnstile = _LockFile(folder / f"{name}.turn")
        self._left: bytes | None = None
        self._reported: Holder | None = None
        self.lock_changed_hands = False
        """Whether another process held the lock between the last two times that this one held it."""

    def acquire(self, waiting: Callable[[Holder | None], None], give_up: Callable[[], bool]) -> bool:
        """Take the lock; `waiting` is called once with each process that holds it. False when `give_up` returned True.

        Errors: DeviceError when the lock files cannot be used.
        """
        self._reported = None
        if not self._take(self._turnstile, waiting, give_up):
            return False
        try:
            if not self._take(self._main, waiting, give_up):
                return False
            self.lock_changed_hands = self._left is not None and self._main.read() != self._left
            self._note(msgspec.json.encode(_ourselves()))
            return True
        finally:
            self._turnstile.release()

    def _take(self, file: "_LockFile", waiting: Callable[[Holder | None], None], give_up: Callable[[], bool]) -> bool:
        while not file.take():
            holder = self.holder()
            if holder is not None and holder != self._reported:
                self._reported = holder
                waiting(holder)
            if give_up():
                return False
            time.sleep(POLL_S)
        return True

    def release(self) -> None:
        # If this is still in the file next time, no other process held the lock.
        self._left = secrets.token_hex(8).encode()
        try:
            self._note(self._left)
        finally:
            self._main.release()

    def _note(self, data: bytes) -> None:
        """Write the note; the lock is valid without it. On a full disk the note is missing, so that no holder is named and the
        next `acquire` assumes that another process held the lock."""
        with contextlib.suppress(OSError):
            self._main.write(data)

    def holder(self) -> Holder | None:
        """The process that wrote the last note; None after it has released the lock."""
        try:
            return msgspec.json.decode(self._main.read(), type=Holder)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None

    def lock_fd(self) -> int:
        """The descriptor that keeps the lock for as long as any process has it open."""
        return self._main.fd()

    def close(self) -> None:
        self._main.close()
        self._turnstile.close()


class _LockFile:
    """A file that every user may lock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self._locked = False

    def fd(self) -> int:
        """The descriptor of the file that has this name now, because the folder may have been cleaned. A locked file stays
        open as it is."""
        if self._fd < 0 or not (self._locked or self._named()):
            self.close()
            self._fd = self._opened()
        return self._fd

    def _named(self) -> bool:
        """Whether the file that is open still has this name."""
        try:
            return os.path.samestat(os.fstat(self._fd), self._path.lstat())
        except FileNotFoundError:
            return False

    def _opened(self) -> int:
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            for _ in range(100):
                try:
                    # Without O_CREAT first: in such folders the kernel refuses O_CREAT for others' files (protected_regular).
                    fd = os.open(self._path, flags)
                except FileNotFoundError:
                    try:
                        fd = os.open(self._path, flags | os.O_CREAT | os.O_EXCL, 0o666)
                        os.fchmod(fd, 0o666)
                    except FileExistsError:
                        continue
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    os.close(fd)
                    raise OSError(errno.EINVAL, "not a plain file")
                return fd
            raise OSError(errno.EBUSY, "other processes create and remove it repeatedly")
        except OSError as error:
            raise DeviceError(
                f"the lock file {self._path} cannot be used ({error.strerror}); remove it, or set KERNELVIZ_RUNTIME_DIR "
                "to a folder that every user of this machine may write to"
            ) from None

    def take(self) -> bool:
        fd = self.fd()
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self._locked = self._named()
        if not self._locked:
            # Another file has this name since this one was opened, so a lock on this one protects nothing.
            self.close()
        return self._locked

    def release(self) -> None:
        self._locked = False
        if self._fd >= 0:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def write(self, data: bytes) -> None:
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, data, 0)

    def read(self) -> bytes:
        return os.pread(self.fd(), 4096, 0)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd, self._locked = -1, False


def _ourselves() -> Holder:
    command = " ".join([Path((sys.argv or [""])[0]).name or "python", *sys.argv[1:3]])[:80]
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    return Holder(pid=os.getpid(), user=_user(), command=command, since=now)


def _user() -> str:
    try:
        return psutil.Process().username()
    except psutil.Error:
        return str(os.getuid())
