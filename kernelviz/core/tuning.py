"""The result of tuning a variant: the best configuration for one problem on one device, and how long the search took."""

import msgspec

from kernelviz.core.problem import Problem, Struct


class Tuned(Struct, frozen=True, kw_only=True):
    """The configuration with which to measure a variant, the run that found it, and the digest of the source it was found for."""

    configuration: dict[str, int]
    run_id: str
    source_digest: str | None = None


class Span(Struct, frozen=True, kw_only=True):
    """A number with its 95 % interval. `low` and `high` are None if there were too few blocks for an interval."""

    estimate: float
    low: float | None = None
    high: float | None = None


class Tuning(Struct, frozen=True, kw_only=True):
    """The correct configuration of a variant with the shortest device cold time, for a problem on a device.

    It applies to the problem with any input data. `default_s` is None if the default configuration has no correct time.
    `speed_up` is the time of the default divided by the time of the best configuration in the same rounds. `tried` counts the
    configurations with a result, including the `failed` ones. `seconds` is how long the run occupied the device, over all its
    parts. `preparing_s` is the part of it for binding and first calls, which is compilation. No sample contains any of it.
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
        """Device, variant and problem. A newer tuning with the same key replaces this one."""
        return (self.device_uuid, self.variant, tuning_key(self.problem))

    @property
    def tuned(self) -> Tuned:
        return Tuned(configuration=self.configuration, run_id=self.run_id, source_digest=self.source_digest)


def tuning_key(problem: Problem) -> str:
    """A key that is equal for problems that share a tuning: same op, sizes, dtype, compute precision and direction, any data.

    >>> tuning_key(Problem(op="add", sizes={"n": 4}, dtype="fp32", data="zeros"))
    'add fp32 n=4'
    """
    return msgspec.structs.replace(problem, data="normal").key
