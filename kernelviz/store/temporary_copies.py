"""Copies of databases in the folder for temporary files, and the removal of those whose process was killed.

A process locks a file in the folder of its copy. The kernel releases the lock when the process ends, however it ends, so that a
folder whose lock can be taken is used by nobody: neither a process id that was used again nor a restart of the machine matters.
"""

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path

from kernelviz.hardware.storage_folders import temporary_folder

_PREFIX = "kernelviz-copy-"
_LOCK = "lock"


class TemporaryCopy:
    """A new folder with copies of these files. It is removed with this object, or later by `remove_leftovers`.

    Errors: OSError, for example if there is no room for a copy.
    """

    def __init__(self, *files: Path) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
        self.path = Path(self._folder.name)
        unlocked = self.path / f"{_LOCK}.new"
        self._lock = unlocked.open("xb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # Renamed when it is locked, so that no other process finds a lock that nobody has taken yet.
        unlocked.rename(self.path / _LOCK)
        for file in files:
            shutil.copyfile(file, self.path / file.name)


def remove_leftovers() -> None:
    """Remove this user's copies whose process has ended."""
    with contextlib.suppress(OSError):
        for folder in temporary_folder().glob(f"{_PREFIX}*"):
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
                _remove_unused(folder)


def _remove_unused(folder: Path) -> None:
    # A folder without a lock is new and empty. A lock that is taken, or that cannot be opened, is an OSError as well.
    with contextlib.suppress(OSError), (folder / _LOCK).open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
