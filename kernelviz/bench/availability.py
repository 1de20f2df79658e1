"""The ops and variants of the catalogue and of plug-ins, and which of them can run on a device."""

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

from kernelviz.bench.summaries import Offer
from kernelviz.core import BadField, Device, DeviceError
from kernelviz.core.notices import Notice
from kernelviz.core.reasons import NeedMissing
from kernelviz.hardware.discovery import missing
from kernelviz.ops import Op, Variant, catalogue
from kernelviz.ops.catalog.discovery import ENTRY_POINTS
from kernelviz.plots.variant_styles import set_plugin_variants
from kernelviz.worker.plugin_description import describe
from kernelviz.worker.protocol import VariantFacts

_log = logging.getLogger(__name__)

Missing = Callable[[Sequence[str], Device], Notice | None]
Describe = Callable[[tuple[str, ...]], tuple[VariantFacts, ...]]
# What a machine lacks may be installed while the server runs. To ask at each redraw would cost milliseconds.
_ASK_AGAIN_S = 10.0


class _Described:
    """The variants of one plug-in (or of all plug-ins of one command), read once for each state of the files. Thread-safe.

    After an error they are read again after a while, because its cause may be an imported file or a busy machine.
    """

    def __init__(self, files: tuple[str, ...], describe: Describe, clock: Callable[[], float]) -> None:
        self._files, self._describe, self._clock = files, describe, clock
        self._lock = threading.Lock()
        self._stamp: tuple[object, ...] | None = None
        self._facts: tuple[VariantFacts, ...] = ()
        self._error: BadField | None = None
        self._ask_again_s = 0.0

    def facts(self) -> tuple[VariantFacts, ...]:
        """Raises BadField."""
        with self._lock:
            stamp = tuple(
                map(_state, self._files)
            )  # before the files are read, so that a change in the meantime is noticed
            if stamp != self._stamp or (self._error is not None and self._clock() > self._ask_again_s):
                self._ask()
                self._stamp = stamp
            if self._error is not None:
                raise BadField(self._error.field, self._error.value, self._error.remedy)
            return self._facts

    def _ask(self) -> None:
        began_s = self._clock()
        try:
            self._facts, self._error = self._describe(self._files), None
        except BadField as error:
            self._facts, self._error = (), error
            # A plug-in that hangs must not make every page wait for it most of the time.
            self._ask_again_s = self._clock() + max(_ASK_AGAIN_S, 10 * (self._clock() - began_s))


class Choice:
    """The ops of the catalogue and of plug-ins, and what can run on a device. Thread-safe."""

    def __init__(
        self,
        plugins: tuple[str, ...] = (),
        ops: Callable[[], Mapping[str, Op]] = catalogue,
        missing: Missing = missing,
        describe: Describe = describe,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`plugins`: files whose variants are offered to everybody. A broken file is left out, with a line in the log,
        until it can be read again."""
        self._ops, self._missing, self._describe, self._clock = ops, missing, describe, clock
        self._lock = threading.Lock()
        self._described: dict[tuple[str, ...], _Described] = {}
        self._lacks: dict[tuple[tuple[str, ...], str], tuple[float, NeedMissing | None]] = {}
        self._entry_points: tuple[float, bool] | None = None
        self._shared = tuple(dict.fromkeys(plugins))
        self.problems: tuple[
            str, ...
        ] = ()  # of the plug-ins that are offered to everybody, when they were last described
        self.shared()

    @property
    def plugins(self) -> tuple[str, ...]:
        """The files whose variants are offered to everybody, without those that are broken at present."""
        return self.shared()[1]

    def shared(self) -> tuple[Mapping[str, Op], tuple[str, ...]]:
        """The catalogue with the variants that are offered to everybody, and the files that they come from."""
        own = ops = self._ops()
        usable: list[str] = []
        problems: list[str] = []
        for group in ((), *((p,) for p in self._shared)):
            try:
                ops = self._plus(ops, group)
            except BadField as error:
                problems.append(str(error) if not group or error.value == group[0] else f"{group[0]}: {error}")
            else:
                usable += group
        for new in (p for p in problems if p not in self.problems):
            _log.warning("%s", new)
        self.problems = tuple(problems)
        extended = {name: op for name, op in ops.items() if op is not own[name]}
        set_plugin_variants({name: [v.name for v in op.variants] for name, op in extended.items()})
        return ops, tuple(usable)

    def ops(self, plugins: tuple[str, ...] = ()) -> Mapping[str, Op]:
        """The catalogue with the variants of these files and of installed entry points. Raises BadField."""
        ops = self._ops()
        unshared = tuple(p for p in plugins if p not in self._shared)
        for group in ((), *((p,) for p in plugins if p in self._shared), *((unshared,) if unshared else ())):
            ops = self._plus(ops, group)
        return ops

    def _plus(self, ops: Mapping[str, Op], files: tuple[str, ...]) -> Mapping[str, Op]:
        """The ops with the variants of these files, which one process describes; without files, those of entry points."""
        facts = self._facts(files)
        if not facts:
            return ops
        extended = dict(ops)
        for one in facts:
            if one.op in extended:
                extended[one.op] = extended[one.op].plus((_There(bind=_bind_there, **msgspec.structs.asdict(one)),))
        return MappingProxyType(extended)

    def _facts(self, files: tuple[str, ...]) -> tuple[VariantFacts, ...]:
        installed = self._installed()
        if not files and not installed:
            return ()
        with self._lock:  # released before a plug-in is described, so that known plug-ins do not wait for it
            described = self._described.setdefault(files, _Described(files, self._describe, self._clock))
        facts = described.facts()
        if not files or not installed:
            return facts
        known = {
            (f.op, f.name) for f in self._facts(())
        }  # every process that describes files also imports the entry points
        return tuple(f for f in facts if (f.op, f.name) not in known)

    def _installed(self) -> bool:
        """Whether an installed package provides variants."""
        now_s = self._clock()
        if self._entry_points is None or now_s - self._entry_points[0] > _ASK_AGAIN_S:
            self._entry_points = (now_s, bool(importlib.metadata.entry_points(group=ENTRY_POINTS)))
        return self._entry_points[1]

    def offers(self, op: Op, device: Device) -> tuple[Offer, ...]:
        """The variants of the op in the order of its ladder, each with whether it can run there."""
        return tuple(Offer(v, self.lack(v, device)) for v in op.variants)

    def lack(self, variant: Variant, device: Device) -> NeedMissing | None:
        """What the device or the machine lacks for the variant. None if it can run there."""
        key = (variant.needs, device.uuid)
        now_s = time.monotonic()
        known = self._lacks.get(key)
        if known is None or now_s - known[0] > _ASK_AGAIN_S:
            notice = self._missing(variant.needs, device)
            known = self._lacks[key] = (now_s, None if notice is None else NeedMissing(notice=notice))
        return known[1]


@dataclass(frozen=True, kw_only=True)
class _There(Variant):
    """A variant of a plug-in. Only the worker has its function and its source."""

    digest: str
    backward_digest: str | None = None

    def source_digest(self) -> str:
        return self.digest

    def of_backward(self) -> Variant:
        return replace(self, digest=self.backward_digest) if self.backward_digest else self


def only_in_worker(variant: Variant) -> bool:
    """Whether the variant is one of a plug-in, whose function only the worker has, so that it cannot be bound elsewhere."""
    return isinstance(variant, _There)


def _state(file: str) -> tuple[int, ...]:
    """A value that differs if the file was changed or replaced. Empty if the file does not exist."""
    try:
        status = Path(file).stat()
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _bind_there(*inputs: Any, **keywords: Any) -> Any:
    raise DeviceError("a plug-in's variant lives in the worker, where it is imported")
