"""What can be chosen: the ops with the variants of plug-ins, and what of it can run on a device."""

from __future__ import annotations

import importlib.metadata
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from kernelviz.bench.words import Offer
from kernelviz.core.errors import BadField, DeviceError
from kernelviz.core.run import Device
from kernelviz.hardware.discovery import missing
from kernelviz.ops import Op, Variant, catalogue
from kernelviz.ops.catalogue import ENTRY_POINTS
from kernelviz.worker.describe import describe
from kernelviz.worker.protocol import VariantFacts

_log = logging.getLogger(__name__)

Missing = Callable[[Sequence[str], Device], str | None]
_ASK_AGAIN_S = 10.0
"""What a machine lacks may be installed while the server runs; asking it at each redraw would cost milliseconds."""


class Choice:
    """Ops and offers. Thread-safe."""

    def __init__(
        self,
        plugins: tuple[str, ...] = (),
        ops: Callable[[], Mapping[str, Op]] = catalogue,
        missing: Missing = missing,
    ) -> None:
        """`plugins`: files whose variants everybody is offered. One that is broken is left out, with a line in the log."""
        self._ops, self._missing = ops, missing
        self._lock = threading.Lock()
        self._described: dict[tuple[tuple[str, int], ...], tuple[VariantFacts, ...]] = {}
        self._lacks: dict[tuple[tuple[str, ...], str], tuple[float, str | None]] = {}
        self.problems: list[str] = []
        self.plugins = tuple(p for p in plugins if self._sound(p))

    def _sound(self, plugin: str) -> bool:
        try:
            self.ops((plugin,))
        except BadField as error:
            _log.warning("%s", error)
            self.problems.append(str(error))
            return False
        return True

    def ops(self, plugins: tuple[str, ...] = ()) -> Mapping[str, Op]:
        """The catalogue with the variants of these files and of installed entry points. Raises BadField."""
        own = self._ops()
        if not plugins and not importlib.metadata.entry_points(group=ENTRY_POINTS):
            return own
        found = dict(own)
        for facts in self._facts(plugins):
            if facts.op in found:
                found[facts.op] = found[facts.op].plus((_there(facts),))
        return MappingProxyType(found)

    def _facts(self, plugins: tuple[str, ...]) -> tuple[VariantFacts, ...]:
        key = tuple((p, Path(p).stat().st_mtime_ns if Path(p).is_file() else 0) for p in plugins)
        with self._lock:
            if key not in self._described:
                self._described[key] = describe(plugins)
            return self._described[key]

    def offers(self, op: Op, device: Device) -> tuple[Offer, ...]:
        """The op's variants in ladder order, each with whether it can run there."""
        reasons = [(v, self.lack(v, device)) for v in op.variants]
        return tuple(Offer(v, reason is None, reason or "") for v, reason in reasons)

    def lack(self, variant: Variant, device: Device) -> str | None:
        """Why the variant cannot run on that device, with the remedy, or None."""
        key = (variant.needs, device.uuid)
        now_s = time.monotonic()
        known = self._lacks.get(key)
        if known is None or now_s - known[0] > _ASK_AGAIN_S:
            known = self._lacks[key] = (now_s, self._missing(variant.needs, device))
        return known[1]


@dataclass(frozen=True, kw_only=True)
class _There(Variant):
    """A plug-in's variant, of which only the worker has the function and its source."""

    digest: str
    backward_digest: str | None = None

    def source_digest(self) -> str:
        return self.digest

    def of_backward(self) -> Variant:
        return replace(self, digest=self.backward_digest) if self.backward_digest else self


def _there(facts: VariantFacts) -> Variant:
    return _There(bind=_bind_there, **msgspec.structs.asdict(facts))


def _bind_there(*inputs: Any, **keywords: Any) -> Any:
    raise DeviceError("a plug-in's variant lives in the worker, where it is imported")
