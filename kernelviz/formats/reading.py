"""The runs of a file in any format that can be read, or the reason why it cannot. The content decides the format."""

from collections.abc import Sequence

from kernelviz.core import DocumentError, Run
from kernelviz.formats import document
from kernelviz.formats.import_format import (
    MAX_BYTES,
    MAX_RUNS,
    MOST_FOREIGN_BYTES,
    Import,
    check_count,
    opening,
    without_constants,
)

BACKUP = b'{"schema":"kernelviz-backup/'
"""How a backup of a whole store begins (bench.backup)."""
_BOM = b"\xef\xbb\xbf"
_PACKED = (b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ")


def read(data: bytes, formats: Sequence[Import]) -> tuple[Run, ...]:
    """Every run of the file, at least one. Errors: DocumentError with the path of the field; then no run is read."""
    return decoded(*recognised(data, formats))


def recognised(data: bytes, formats: Sequence[Import]) -> tuple[Import, bytes]:
    """The format of the file, and the bytes that its reader decodes. Errors: DocumentError."""
    check_size(data, MAX_BYTES)
    raw = data.removeprefix(_BOM)
    if not raw or raw.isspace():
        raise DocumentError("the file is empty")
    if data.startswith(_PACKED):
        raise DocumentError("it is packed; unpack it first (a backup is restored by `kernelviz import FILE` as it is)")
    if data.startswith(BACKUP):
        raise DocumentError("it is a backup of a whole store; `kernelviz import FILE` restores it")
    known = _known(raw, formats)
    if known is None and len(raw) <= MOST_FOREIGN_BYTES:
        raw = without_constants(raw)
        known = _known(raw, formats)
    if known is None:
        raise _unknown(raw, formats)
    check_size(raw, known.most_bytes)
    return known, raw


def decoded(known: Import, raw: bytes) -> tuple[Run, ...]:
    """The runs of a file of a known format. Errors: DocumentError."""
    runs = known.decode(raw)
    check_count(len(runs), MAX_RUNS, "runs", "$")
    return runs


def _known(raw: bytes, formats: Sequence[Import]) -> Import | None:
    seen = opening(raw)
    return next((one for one in formats if one.recognises(seen)), None)


def check_size(raw: bytes, most_bytes: int) -> None:
    """Errors: DocumentError for a file of more bytes."""
    if len(raw) > most_bytes:
        raise DocumentError(
            f"it has {len(raw) / 1e6:.1f} MB, files of more than {most_bytes / 1e6:.0f} MB are not read; "
            "export fewer cases, or without their samples"
        )


def _unknown(raw: bytes, formats: Sequence[Import]) -> DocumentError:
    listed = ", ".join(one.label for one in formats)
    if raw.lstrip()[:1] in (b"{", b"["):
        try:
            document.decode(raw)
        except DocumentError as error:
            if error.path != "$.schema":
                return DocumentError(f"{error}; formats that are read: {listed}")
    return DocumentError(f"its format is not supported; supported are {listed}")
