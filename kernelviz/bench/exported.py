"""A run as the file of a format, beside the roofs with which the pages compare it."""

from kernelviz.bench.bench import Bench
from kernelviz.core import Run
from kernelviz.formats import Export
from kernelviz.metrics.run_with_roofs import run_with_roofs


def with_roofs(bench: Bench, run: Run) -> Run:
    """The run with the roofs to compare it with (`Bench.roofs_of`): its own, or those that were measured later on its device."""
    return run_with_roofs(run, bench.roofs_of(run))


def encoded(bench: Bench, run: Run, form: Export) -> bytes:
    """The bytes of the file. What is derived from a run has the shares of the roof that the pages show; a file from which the run
    is read again has the run as it is stored."""
    roofs = bench.roofs_of(run)
    if form.encode_with_roofs is None or roofs == run.environment.roofs:
        return form.encode(run)
    return form.encode_with_roofs(run, roofs)
