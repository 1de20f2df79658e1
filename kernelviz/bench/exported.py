"""A run as the file of a format, beside the roofs with which the pages compare it."""

from collections.abc import Callable
from contextlib import suppress

from kernelviz.bench.bench import Bench
from kernelviz.core import Run
from kernelviz.formats import Export
from kernelviz.metrics.run_with_roofs import run_with_roofs
from kernelviz.store import StoreError


def with_roofs(bench: Bench, run: Run) -> Run:
    """The run with the roofs to compare it with (`Bench.roofs_of`): its own, or those that were measured later on its device."""
    return run_with_roofs(run, bench.roofs_of(run))


def encoded(run: Run, form: Export, bench: Callable[[], Bench]) -> bytes:
    """The bytes of the file. What is derived from a run has the shares of the roof that the pages show; a file from which the run
    is read again has the run as it is stored. `bench`: asked for roofs that the run lacks; where it has no store, there are
    none.
    """
    if form.encode_with_roofs is not None and not run.environment.roofs:
        with suppress(StoreError):
            return form.encode_with_roofs(run, bench().roofs_of(run))
    return form.encode(run)
