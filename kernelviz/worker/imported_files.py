"""Detect whether files that a worker imported have changed since."""

from collections.abc import Iterable
from pathlib import Path

import kernelviz.ops

Stamp = frozenset[tuple[str, int, int]]
_SUFFIXES = {".py", ".cu", ".cuh", ".cpp", ".h"}


def stamp(plugins: Iterable[str]) -> Stamp:
    """Path, modification time (ns) and size of every source file of the catalogue and of these plug-ins."""
    roots = [Path(p) for p in kernelviz.ops.__path__]
    paths = [p for root in roots for p in root.rglob("*") if p.suffix in _SUFFIXES]
    stats = set()
    for path in [*paths, *map(Path, plugins)]:
        try:
            status = path.stat()
        except OSError:
            continue
        stats.add((str(path), status.st_mtime_ns, status.st_size))
    return frozenset(stats)
