"""The roofs of a device that are stored and can be used, and those that were refused, for pages, commands and new runs."""

from kernelviz.core import Device
from kernelviz.core.cache_size import CacheSize
from kernelviz.hardware.datasheet import ceilings
from kernelviz.hardware.last_level_cache import last_level_cache
from kernelviz.metrics.roof_checks import CheckedRoofs, checked_newest
from kernelviz.store import Store


def stored_roofs(store: Store, device: Device) -> CheckedRoofs:
    """The newest usable roof of each kind, and why a newer one was refused (metrics.roof_checks)."""
    return checked_newest(store.roofs.of_device(device.uuid), ceilings(device.name), cache_bytes_of(store, device))


def cache_of(store: Store, device: Device) -> CacheSize | None:
    """The size of the last-level cache of a device, also of another machine, and where it is known from."""
    is_known = device.last_level_cache_bytes is not None
    return last_level_cache(device, None if is_known else store.runs.last_level_cache_bytes(device.uuid))


def cache_bytes_of(store: Store, device: Device) -> int | None:
    """The size of the last-level cache of a device, as far as it is known."""
    cache = cache_of(store, device)
    return None if cache is None else cache.size_bytes
