"""Whether pages of a file are in the page cache, and dropping them: by mincore and posix_fadvise (Linux)."""

import ctypes
import mmap
import os
from pathlib import Path


def drop(path: Path) -> None:
    """Ask the system to drop a file's pages from the page cache, after it has been written. Not all file systems do."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def warm(path: Path) -> None:
    """Read a file, so that its pages are in the page cache."""
    with path.open("rb", buffering=0) as file:
        while file.read(1 << 24):
            pass


def cached_share(paths: list[Path]) -> float | None:
    """The share of the files' pages that are in memory; None where the system does not say (no mincore)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "mincore"):
        return None
    present = pages = 0
    for path in paths:
        size = path.stat().st_size
        if size == 0:
            continue
        count = -(-size // mmap.PAGESIZE)
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE) as view,
        ):
            marks = (ctypes.c_ubyte * count)()
            first = ctypes.c_char.from_buffer(view)
            failed = libc.mincore(ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(size), marks)
            del first
            if failed:
                return None
        present += sum(mark & 1 for mark in marks)
        pages += count
    return present / pages if pages else None
