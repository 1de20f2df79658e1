"""The size of a device's last-level cache, with its source."""

from dataclasses import dataclass
from typing import Literal

CacheSource = Literal["device", "run", "data_sheet"]
"""``device``: the driver or the operating system reports it now. ``run``: CUDA reported it in a run on the device."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheSize:
    """`document`: the title of the data sheet's document, if the data sheet is the source."""

    size_bytes: int
    source: CacheSource
    document: str = ""
