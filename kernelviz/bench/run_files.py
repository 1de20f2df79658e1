"""The runs of a file of any kind that kernelviz reads. Commands and Python read files by these functions."""

from pathlib import Path

from kernelviz import formats
from kernelviz.bench import backup
from kernelviz.core import Run


def read(path: Path) -> tuple[Run, ...]:
    """Every run of a document, a Parquet file, a file of another tool or a backup, recognised by its content. Nothing is stored.

    Errors: DocumentError with the path of the field or the number of the line, BadField for a file that cannot be read.
    """
    return tuple(backup.runs(path)) if backup.recognised(path) else formats.read_file(path)


def read_one(path: Path) -> Run:
    """The only run of such a file. Errors: DocumentError too, if the file holds several runs."""
    return formats.one_of(read(path))
