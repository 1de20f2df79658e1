"""Facts about devices in text."""

from collections.abc import Mapping
from types import MappingProxyType

from kernelviz.core import units
from kernelviz.core.cache_size import CacheSize, CacheSource

_SOURCES: Mapping[CacheSource, str] = MappingProxyType(
    {"device": "", "run": " (reported in a run)", "data_sheet": " (data sheet)"}
)


def format_cache_size(cache: CacheSize | None) -> str:
    """The size with its source, where that is not the device itself.

    >>> format_cache_size(CacheSize(size_bytes=60 * 2**20, source="data_sheet")), format_cache_size(None)
    ('60.00 MiB (data sheet)', 'unknown')
    """
    return "unknown" if cache is None else f"{units.size_bytes(cache.size_bytes)}{_SOURCES[cache.source]}"
