"""What tuning a variant found: the best configuration of one problem on one device, and what it took to find it."""

import msgspec

from kernelviz.core.problem import Problem, Struct


class Tuned(Struct, frozen=True, kw_only=True):
    """The configuration that a variant is to be measured with, by which run it was found, and for which source (its digest)."""

    configuration: dict[str, int]
    run_id: str
    source_digest: str | None = None


class Span(Struct, frozen=True, kw_only=True):
    """A number with its 95 % interval; None where there were too few blocks for one."""

    estimate: float
    low: float | None = None
    high: float | None = None


class Tuning(Struct, frozen=True, kw_only=True):
    """The best correct configuration of a variant for a problem (whatever its data) on a device, by device cold time.

    `default_s` is None where the default configuration has no correct time. `speed_up`: its time over the best one's in the same
    rounds. `tried`: configurations with a result, `failed` ones among them. `seconds`: how long the device was held for the run,
    all its parts together; `preparing_s`: of these, binding and first calls, which is compiling. No sample holds any of it.
    """

    problem: Problem
    variant: str
    device_uuid: str
    device: str
    configuration: dict[str, int]
    default: dict[str, int]
    run_id: str
    created_at: str
    time_s: Span
    default_s: Span | None = None
    speed_up: Span | None = None
    space: int
    tried: int
    failed: int
    seconds: float
    preparing_s: float
    source_digest: str | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """Device, variant and problem: a newer tuning of the same replaces it."""
        return (self.device_uuid, self.variant, tuning_key(self.problem))

    @property
    def tuned(self) -> Tuned:
        return Tuned(configuration=self.configuration, run_id=self.run_id, source_digest=self.source_digest)


def tuning_key(problem: Problem) -> str:
    """Equal for problems that one tuning is for: sizes, dtype, compute precision and direction, not what the inputs hold.

    >>> tuning_key(Problem(op="add", sizes={"n": 4}, dtype="fp32", data="zeros"))
    'add fp32 n=4'
    """
    return msgspec.structs.replace(problem, data="normal").key
