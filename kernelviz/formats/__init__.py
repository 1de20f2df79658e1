"""Runs as files: the native document, and the formats of others. One file a format."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from kernelviz.formats.document import MAX_BYTES, decode, digest, encode
from kernelviz.formats.export import Export

__all__ = ["MAX_BYTES", "Export", "decode", "digest", "encode", "exports"]


def exports() -> Mapping[str, Export]:
    """What a run can be written as, by name: every module here that has an `EXPORT`."""
    modules = [importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)]
    found = [m.EXPORT for m in modules if hasattr(m, "EXPORT")]
    return MappingProxyType({e.name: e for e in found})
