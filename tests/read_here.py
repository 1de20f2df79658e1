"""Read files as `formats.read` does, but always in this process: starting a process for each of thousands takes minutes."""

from kernelviz.core.run import Run
from kernelviz.formats import imports, reading


def read(data: bytes | str) -> tuple[Run, ...]:
    """Every run of a file. Errors: DocumentError."""
    return reading.read(data.encode() if isinstance(data, str) else data, tuple(imports().values()))
