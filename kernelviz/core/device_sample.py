"""What a device reports in one moment, for its monitor. Context for people, never part of a measurement."""

from kernelviz.core.problem import Struct


class Sample(Struct, frozen=True, kw_only=True):
    """One reading of a device; what it does not report is None.

    `at_s`: seconds since 1970. `running`: a measurement went on. `busy_fraction`: of the driver's last sampling period, the
    share in which a kernel ran (GPU), or the mean load of the cores since the last sample (processor); it says nothing of how
    well the device was used. `memory_busy_fraction`: the share in which memory was read or written. The memory of a
    processor is the whole machine's. PCIe rates are the driver's, over 20 ms; None also while a measurement goes on.
    """

    at_s: float
    running: bool = False
    busy_fraction: float | None = None
    memory_busy_fraction: float | None = None
    used_bytes: int | None = None
    total_bytes: int | None = None
    to_device_bytes_per_s: float | None = None
    from_device_bytes_per_s: float | None = None
    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    event_reasons: tuple[str, ...] = ()
    cores_fraction: tuple[float, ...] = ()
