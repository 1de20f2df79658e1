"""Values that the use cases return."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kernelviz.core import CaseStep, CompiledAhead, Device, Status, UnknownName
from kernelviz.core.reasons import NeedMissing
from kernelviz.formats.shipped_runs import Line
from kernelviz.ops import Variant


class Devices(dict[str, Device]):
    """The devices of the machine by id. An unknown id raises UnknownName."""

    def __init__(self, devices: Iterable[Device]) -> None:
        super().__init__({device.id: device for device in devices})

    def __missing__(self, device_id: str) -> Device:
        raise UnknownName("device", device_id, self)


@dataclass(frozen=True, slots=True)
class Offer:
    """A variant on one device. `lack`: what the device or the machine lacks for it, None if it can run there."""

    variant: Variant
    lack: NeedMissing | None = None

    @property
    def available(self) -> bool:
        return self.lack is None


class RunSummary(Line, frozen=True, kw_only=True):
    """A line of the list of runs. A `shipped` one came with the package: it can be opened, not changed. `cancelled` cases are
    neither done nor failed."""

    cancelled: int = 0
    deleted_at: str | None = None
    shipped: bool = False

    @property
    def name(self) -> str:
        """The title, or op and device if there is no title."""
        return self.title or f"{self.op} · {self.device}"

    @property
    def broken(self) -> int:
        """How many cases were tried and have no correct time."""
        return self.failed - self.unavailable

    @property
    def case_counts(self) -> str:
        """The number of cases with a result, of failures and of cases that were not available among them, and of cancelled
        cases."""
        many = f"{self.cases} case{'s' if self.cases != 1 else ''}"
        counts = [
            many if self.done == self.cases else f"{self.done} of {many}",
            f"{self.broken} failed" if self.broken else "",
            f"{self.unavailable} not available" if self.unavailable else "",
            f"{self.cancelled} cancelled" if self.cancelled else "",
        ]
        return ", ".join(filter(None, counts))


def matches(run: RunSummary, search: str) -> bool:
    """Whether every word occurs in the run, ignoring case. The store searches in the same way."""
    texts = [t.casefold() for t in (run.id, run.title, run.note, run.op, run.device, run.status)]
    return all(any(part in text for text in texts) for part in search.casefold().split())


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands. `steps` by case key, for cases that have begun and have no result yet.

    `failed`: of those that were tried. `remaining_s`: how long it still takes if the cases that are left take as long as those of
    this run so far, None until two are done. `sequence` grows with each event. A calibration counts roofs; its `total` is 0,
    since how many there are is known at its end. `compiled`: how far compilation ahead is, None where nothing is compiled ahead
    or the run does not run.
    """

    status: Status
    done: int
    failed: int
    total: int
    ahead: int
    message: str
    steps: Mapping[str, CaseStep]
    sequence: int
    remaining_s: float | None = None
    compiled: CompiledAhead | None = None


@dataclass(frozen=True, slots=True)
class UnderWay:
    """What a device measures now. `op`: None for a calibration, a selftest or an inspection, whose `name` says which."""

    name: str
    op: str | None
    owner: str
    done: int
    total: int
    remaining_s: float | None = None
