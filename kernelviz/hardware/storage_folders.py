"""The folders that are written while measuring: the variables that set them, and the free space of their disks."""

import contextlib
import getpass
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelviz.core import DeviceKind
from kernelviz.core.notices import Datum, Notice
from kernelviz.core.reasons import CacheNotWritable, DiskFull, Folder
from kernelviz.ops.kernels.nvrtc import cache_folder

LEAST_FREE_BYTES = 2**30
"""With less free space a compilation or a long run may fill the disk: one sweep of torch.compile leaves some 100 MB."""


@dataclass(frozen=True, slots=True)
class FolderState:
    """A folder (which may not exist yet), the variable that sets it, and its disk: its number and its free bytes."""

    variable: str
    folder: Path
    writable: bool
    disk: int | None = None
    free_bytes: int | None = None


def folders(
    environment: Mapping[str, str], data_folder: Path | None = None, kind: DeviceKind = "cuda"
) -> dict[str, Path]:
    """The folders that are written while measuring on such a device, by the variable that sets them."""
    temporary = temporary_folder()
    triton = environment.get("TRITON_CACHE_DIR") or f"{environment.get('TRITON_HOME') or Path.home()}/.triton/cache"
    inductor = environment.get("TORCHINDUCTOR_CACHE_DIR") or f"{temporary}/torchinductor_{_user()}"
    by_variable = {"TORCHINDUCTOR_CACHE_DIR": Path(inductor), "TMPDIR": temporary}
    if kind == "cuda":
        own = environment.get("KERNELVIZ_CACHE") or cache_folder().parent
        by_variable = {"TRITON_CACHE_DIR": Path(triton), **by_variable, "KERNELVIZ_CACHE": Path(own)}
    return by_variable if data_folder is None else {**by_variable, "KERNELVIZ_HOME": data_folder}


def temporary_folder() -> Path:
    """The folder for temporary files, also where no such folder can be written, for example because the disk is full."""
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:
        return Path(os.environ.get("TMPDIR") or "/tmp")


def look(written: Mapping[str, Path]) -> tuple[FolderState, ...]:
    """The current state of the folders; a missing folder is judged by the parent in which it would be created."""
    return tuple(_look(variable, folder) for variable, folder in written.items())


def _look(variable: str, folder: Path) -> FolderState:
    there = next((p for p in (folder, *folder.parents) if p.exists()), None)
    with contextlib.suppress(OSError):
        if there and there.is_dir() and os.access(there, os.W_OK | os.X_OK):
            free_bytes = shutil.disk_usage(there).free
            return FolderState(variable, folder, writable=True, disk=there.stat().st_dev, free_bytes=free_bytes)
    return FolderState(variable, folder, writable=False)


def disks(states: Sequence[FolderState], least_bytes: int = LEAST_FREE_BYTES) -> tuple[Notice, ...]:
    """Notices of folders that cannot be written, then of disks that are nearly full, each disk once."""
    notices = [
        Notice(
            "folder_not_writable",
            {"folder": str(s.folder), "variable": s.variable, "consequence_of": s.variable},
            "disk",
        )
        for s in states
        if not s.writable
    ]
    full = [s for s in states if s.writable and s.free_bytes is not None and s.free_bytes < least_bytes]
    for disk in dict.fromkeys(s.disk for s in full):
        on_disk = [s for s in full if s.disk == disk]
        data: dict[str, Datum] = {
            "folders": tuple(str(s.folder) for s in on_disk),
            "left_bytes": min(s.free_bytes or 0 for s in on_disk),
            "variables": tuple(s.variable for s in on_disk),
        }
        notices.append(Notice("disk_full" if len(on_disk) == 1 else "disk_full_of_folders", data, "disk"))
    return tuple(notices)


def refused(environment: Mapping[str, str], path: str) -> CacheNotWritable | None:
    """The reason that a file or folder of a compiler's cache could not be written; None when it is in no such cache.

    The folder for temporary files is excluded, because a variant may use it itself.
    """
    caches = {v: f for v, f in folders(environment).items() if v != "TMPDIR"}
    variable = next((v for v, folder in caches.items() if Path(path).is_relative_to(folder)), None)
    if variable is None:
        return None
    return CacheNotWritable(path=path, cache=Folder(path=str(caches[variable]), variable=variable))


def filled(states: Sequence[FolderState], least_bytes: int = LEAST_FREE_BYTES) -> DiskFull:
    """The reason that a disk was full while compiling, with the folders that have little space now, else with all."""
    short = [s for s in states if s.free_bytes is not None and s.free_bytes < least_bytes]
    return DiskFull(folders=tuple(Folder(path=str(s.folder), variable=s.variable) for s in short or states))


def _user() -> str:
    """The user's name as in torch._inductor's default_cache_dir."""
    try:
        return re.sub(r'[\\/:*?"<>|]', "_", getpass.getuser())
    except (KeyError, ModuleNotFoundError, OSError):
        return f"uid_{os.getuid()}"
