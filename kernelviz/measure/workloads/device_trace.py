"""The device's own stamps of calls of a workload, in the burst clock mode of runs: flush, call, marker, and then a rest."""

import time
from collections.abc import Callable, Sequence

import torch

from kernelviz.measure.timing.burst import LOAD_S, WINDOW_S
from kernelviz.measure.timing.capture import demangled
from kernelviz.measure.timing.kernels import Instruments
from kernelviz.measure.timing.trace import ATTEMPTS, Iteration, TraceError, iterations
from kernelviz.measure.timing.tracers import open_tracer
from kernelviz.workloads.catalog import DeviceRecord, TracedCall


class DeviceTrace:
    """Traces calls on one GPU by CUPTI, or by torch.profiler where CUPTI fails."""

    def __init__(self, device_id: str) -> None:
        """Raises RuntimeError with the reasons if no tracer works."""
        tracer, failures = open_tracer()
        if tracer is None:
            raise RuntimeError("no tracer works here: " + "; ".join(failure.message for failure in failures))
        self._tracer, self._instruments = tracer, Instruments(torch.device(device_id))

    def of(self, calls: Sequence[Callable[[], object]]) -> tuple[TracedCall, ...]:
        """What each call ran. Raises RuntimeError if the records cannot be those of the calls."""

        def work() -> None:
            for call in calls:
                self._instruments.flush()
                call()
                self._instruments.marker()

        traced = self._traced(work, len(calls))
        load_s = (traced[-1].marker_end_ns - traced[0].flush_end_ns) / 1e9 if traced else 0.0
        time.sleep(load_s * (WINDOW_S / LOAD_S - 1))
        return tuple(
            TracedCall(
                one.flush_end_ns, tuple(DeviceRecord(demangled(r.name), r.start_ns, r.end_ns) for r in one.calls)
            )
            for one in traced
        )

    def _traced(self, work: Callable[[], None], expected: int) -> list[Iteration]:
        failure: TraceError | None = None
        for _ in range(ATTEMPTS):
            try:
                return iterations(self._tracer.trace(work), expected)
            except TraceError as error:
                failure = error
        raise RuntimeError(f"the stamps are not those of the calls: {failure}") from failure
