"""The state of a device's worker."""

from dataclasses import dataclass
from typing import Literal

State = Literal["none", "starting", "ready", "waiting", "working"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerState:
    """The state of a device's worker for the health route. `state`: no worker, starting, ready, waiting (for the lock), working.
    `queued`: without requests that are marked as later."""

    state: State
    run_id: str | None
    owner: str | None
    queued: int
    workers_started: int
    last_trouble: str

    def as_health(self) -> dict[str, str | int | None]:
        """For the health route, without the owner."""
        return {
            "state": self.state,
            "run": self.run_id,
            "queued": self.queued,
            "workers_started": self.workers_started,
            "last_trouble": self.last_trouble,
        }
