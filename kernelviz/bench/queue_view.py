"""What waits for a device and what it measures, as a user sees it."""

from kernelviz.bench.live import LiveRun
from kernelviz.bench.runner import Runner
from kernelviz.bench.summaries import UnderWay


class QueueView:
    """The part of a bench that reports on the queues of its devices."""

    _runner: Runner

    def ahead_of(self, owner: str, device_id: str) -> int:
        """The number of problems that the device measures before the first one of a new run of that owner."""
        return self._runner.ahead_of(owner, device_id)

    def under_way(self, device_id: str) -> UnderWay | None:
        """What this process measures on the device now, and for whom."""
        state = self._runner.state(device_id)
        live = None if state.run_id is None else self._runner.live(state.run_id)
        if live is None:
            return None
        progress, op = live.log.progress(), live.plan.op if isinstance(live, LiveRun) else None
        return UnderWay(live.name, op, state.owner or "", progress.done, progress.total, progress.remaining_s)
