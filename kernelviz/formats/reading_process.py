"""Read the runs of a file in a process with limits, and hand them over as JSON."""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Sequence

import msgspec

from kernelviz.core import Run
from kernelviz.formats import limited_process, reading
from kernelviz.formats.import_format import MAX_BYTES, Import
from kernelviz.formats.limited_process import MEMORY_FACTOR, limit_memory

PROCESSOR_S = 9


def read(raw: bytes, formats: Sequence[Import], memory_factor: float = MEMORY_FACTOR) -> tuple[Run, ...]:
    """Every run of the file, as `reading.read`. The process may use `memory_factor` times the largest size of a file of its
    format. Errors: DocumentError, also if reading takes too much memory or time."""
    reading.check_size(raw, MAX_BYTES)
    with tempfile.TemporaryFile() as file:
        file.write(raw)
        file.seek(0)
        modules = [one.decode.__module__ for one in formats]
        answer = limited_process.call(read_runs, [str(memory_factor), *modules], file, processor_s=PROCESSOR_S)
    return msgspec.json.decode(answer, type=tuple[Run, ...])


def read_runs(arguments: Sequence[str]) -> bytes:
    """The runs of the file on standard input, as JSON. `arguments`: the memory factor, and the modules of the formats. Errors:
    DocumentError, MemoryError."""
    factor = float(arguments[0])
    formats: list[Import] = [importlib.import_module(module).IMPORT for module in arguments[1:]]
    raw = sys.stdin.buffer.read()
    limit_memory(round(factor * MAX_BYTES))
    known, raw = reading.recognised(raw, formats)
    limit_memory(round(factor * known.most_bytes))
    runs = reading.decoded(known, raw)
    del raw
    return msgspec.json.encode(runs)
