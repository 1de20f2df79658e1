"""One measurement at a time on one device, for all users of the machine: a lock file per device UUID.

flock, so that a dead holder holds nothing. Who waits holds a second lock, the turnstile, while it does: a holder that
releases must pass the turnstile to come again, so it cannot overtake the one who waited. The descriptor is also given to
the worker's guard (see guard.py), which keeps the lock after a killed server until the device is really quiet.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import getpass
import os
import re
import secrets
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from kernelviz.core.errors import DeviceError

POLL_S = 0.02


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds a device."""

    pid: int
    user: str
    command: str
    since: str

    def __str__(self) -> str:
        return f"{self.command} of {self.user} (process {self.pid}, since {self.since})"


def runtime_directory() -> Path:
    """Where the lock files of all users are: KERNELVIZ_RUNTIME_DIR, else /run/lock/kernelviz, else in the folder for
    temporary files. Made when it is missing, with mode 1777. Errors: DeviceError with the remedy."""
    given = os.environ.get("KERNELVIZ_RUNTIME_DIR")
    candidates = [Path(given)] if given else [Path("/run/lock/kernelviz"), Path(tempfile.gettempdir()) / "kernelviz"]
    reasons = []
    for path in candidates:
        try:
            path.mkdir(parents=bool(given))
            path.chmod(0o1777)  # mkdir's mode is cut by the umask
        except FileExistsError:
            pass
        except OSError as error:
            reasons.append(f"{path}: {error.strerror}")
            continue
        # A link here could lead the lock files of others to a place of the link's owner.
        if stat.S_ISDIR(path.lstat().st_mode) and os.access(path, os.W_OK | os.X_OK):
            return path
        reasons.append(f"{path}: not a folder in which this user may write")
    raise DeviceError(
        f"no folder for the lock files of devices ({'; '.join(reasons)}); set KERNELVIZ_RUNTIME_DIR to one that every "
        "user of this machine may write to"
    )


class DeviceLock:
    """The lock of one device, as one process holds it. For one thread."""

    def __init__(self, uuid: str, directory: Path | None = None) -> None:
        folder = directory or runtime_directory()
        name = re.sub(r"[^A-Za-z0-9._-]", "_", uuid)
        self._main = _LockFile(folder / f"{name}.lock")
        self._turnstile = _LockFile(folder / f"{name}.turn")
        self._left: bytes | None = None
        self.others_came = False
        """Whether anybody else held the device between our last two holds."""

    def acquire(self, waiting: Callable[[Holder | None], None], give_up: Callable[[], bool]) -> bool:
        """Take the lock; `waiting` is told who holds it, once for each holder. False when `give_up` said so.

        Errors: DeviceError when the lock files cannot be used.
        """
        told: Holder | None = None
        while not self._turnstile.take():
            told = self._tell(waiting, told)
            if give_up():
                return False
            time.sleep(POLL_S)
        try:
            while not self._main.take():
                told = self._tell(waiting, told)
                if give_up():
                    return False
                time.sleep(POLL_S)
            self.others_came = self._left is not None and self._main.read() != self._left
            self._note(msgspec.json.encode(_ourselves()))
            return True
        finally:
            self._turnstile.release()

    def release(self) -> None:
        self._left = secrets.token_hex(8).encode()  # nobody's name; read again next time, nobody has been here
        try:
            self._note(self._left)
        finally:
            self._main.release()

    def _note(self, data: bytes) -> None:
        """The lock counts, not the note: on a full disk nobody is named, and our next hold takes it that others came."""
        with contextlib.suppress(OSError):
            self._main.write(data)

    def holder(self) -> Holder | None:
        """Who wrote himself down last; None between two holders."""
        try:
            return msgspec.json.decode(self._main.read(), type=Holder)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None

    def _tell(self, waiting: Callable[[Holder | None], None], told: Holder | None) -> Holder | None:
        holder = self.holder()
        if holder is not None and holder != told:
            waiting(holder)
            return holder
        return told

    def held_fd(self) -> int:
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
        self._held = False

    def fd(self) -> int:
        """Open, on the file that has this name now: another may have cleaned the folder. What is held stays as it is."""
        if self._fd < 0 or not (self._held or self._named()):
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
                    # Without O_CREAT first: the kernel refuses it on the files of others in such folders (protected_regular).
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
            raise OSError(errno.EBUSY, "it comes and goes")
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
        self._held = self._named()
        if not self._held:  # another file got the name since this one was opened: a lock on this one is worth nothing
            self.close()
        return self._held

    def release(self) -> None:
        self._held = False
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
            self._fd, self._held = -1, False


def _ourselves() -> Holder:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    program = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"
    command = " ".join([program, *sys.argv[1:3]])[:80]
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    return Holder(pid=os.getpid(), user=user, command=command, since=now)
