"""Runs as files: the native document and the formats of other tools. One module for each format."""

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kernelviz.core import BadField, DocumentError, Run
from kernelviz.core.errors import check_name
from kernelviz.formats import reading, reading_process
from kernelviz.formats.document import decode, digest, encode
from kernelviz.formats.export_format import Export
from kernelviz.formats.import_format import MAX_BYTES, Import

__all__ = [
    "MAX_BYTES",
    "Export",
    "Import",
    "decode",
    "describe_unreadable",
    "digest",
    "encode",
    "export_named",
    "exports",
    "file_bytes",
    "format_of",
    "imports",
    "one_of",
    "read",
    "read_file",
]


MOST_READ_HERE_BYTES = 2**20
"""JSON up to this size is read in this process. A byte of it stands for at most about 30 bytes of values."""


def exports() -> Mapping[str, Export]:
    """The formats that can be written, by name, the native document first: every module of this package with an `EXPORT`."""
    return _declared("EXPORT")


def export_named(name: str) -> Export:
    """Raises UnknownName."""
    check_name("format", name, exports())
    return exports()[name]


def format_of(file_name: str) -> str:
    """The format with the longest suffix that the file name ends with; the native document if there is none.

    >>> format_of("run.parquet"), format_of("RUN.nvbench.json"), format_of("run")
    ('parquet', 'nvbench', 'json')
    """
    ends = [e for e in exports().values() if file_name.lower().endswith(e.suffix)]
    return max(ends, key=lambda e: len(e.suffix), default=exports()["json"]).name


def describe_unreadable(form: str, size_bytes: int) -> str:
    """Why a file of that format and size cannot be imported again, and the remedy; empty for a format that is not read, too.

    >>> describe_unreadable("json", 10**6), describe_unreadable("csv", 10**9)
    ('', '')
    """
    known = imports().get(form)
    if known is None or size_bytes <= known.most_bytes:
        return ""
    return (
        f"the file has {size_bytes / 1e6:.0f} MB, and kernelviz reads {known.label} of at most {known.most_bytes / 1e6:.0f} MB: "
        "it cannot be imported again. Export fewer variants or sizes"
        + (", or Parquet, which is several times smaller" if form == "json" else "")
    )


def imports() -> Mapping[str, Import]:
    """The formats that can be read, by name, the native document first: every module of this package with an `IMPORT`."""
    return _declared("IMPORT")


def read(data: bytes | str) -> tuple[Run, ...]:
    """Every run of a file. The content decides the format, and the runs are checked like any document from elsewhere.

    A large or packed file is read in a process of its own, so that it cannot use up the memory of this one. Errors:
    DocumentError with the path of the field, for any bytes. Then no run of the file is read.
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    formats = tuple(imports().values())
    if len(raw) <= MOST_READ_HERE_BYTES:
        known, unpacked = reading.recognised(raw, formats)
        if not known.packed:
            return reading.decoded(known, unpacked)
    return reading_process.read(raw, formats)


def read_file(path: Path) -> tuple[Run, ...]:
    """Every run of a file, as `read`. Errors: BadField too, for a file that cannot be read."""
    return read(file_bytes(path))


def file_bytes(path: Path) -> bytes:
    """The bytes of a file. Errors: BadField if the file cannot be read or is too large."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadField("file", path, f"files of more than {MAX_BYTES / 1e6:.0f} MB are not read")
        return path.read_bytes()
    except OSError as error:
        raise BadField("file", path, f"it cannot be read ({error.strerror})") from None


def one_of(runs: Sequence[Run]) -> Run:
    """The only run of a file. Errors: DocumentError with the titles if the file holds several runs."""
    if len(runs) == 1:
        return runs[0]
    titles = "; ".join(run.title for run in runs[:3]) + ("; …" if len(runs) > 3 else "")
    raise DocumentError(f"it holds {len(runs)} runs ({titles}), one is wanted; import it, then name one")


@lru_cache(maxsize=2)
def _declared(name: str) -> Mapping[str, Any]:
    modules = [importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)]
    formats = [getattr(module, name) for module in modules if hasattr(module, name)]
    return MappingProxyType({f.name: f for f in sorted(formats, key=lambda f: (f.name != "json", f.name))})
