"""The size of a device's last-level cache, by the best source that there is.

NVML does not report the L2 of a whole GPU. Only CUDA does, and the server does not initialise CUDA, because processes that are
forked afterwards could not use it. So before the first worker has run, the size comes from an earlier run or the data sheet.
"""

from kernelviz.core import Device
from kernelviz.core.cache_size import CacheSize
from kernelviz.hardware.datasheet import datasheet


def last_level_cache(device: Device, in_run_bytes: int | None = None) -> CacheSize | None:
    """The size and its source; None if there is no source. `in_run_bytes`: as a run on the device reported it.

    >>> last_level_cache(Device(id="cuda:0", kind="cuda", name="NVIDIA H200", uuid="GPU-1")).document
    "the driver's own report on an H200 (driver 580)"
    >>> last_level_cache(Device(id="cuda:0", kind="cuda", name="NVIDIA H200 MIG 1g.18gb", uuid="MIG-1")) is None
    True
    """
    if device.last_level_cache_bytes is not None:
        return CacheSize(size_bytes=device.last_level_cache_bytes, source="device")
    if in_run_bytes is not None:
        return CacheSize(size_bytes=in_run_bytes, source="run")
    sheet = datasheet(device.name)
    if sheet is None or sheet.l2_bytes is None:
        return None
    return CacheSize(size_bytes=sheet.l2_bytes, source="data_sheet", document=sheet.sources["l2"])
