"""Which variants have parameters to tune, and which of them a device can run."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernelviz.bench.bench import Bench
from kernelviz.core.reasons import NeedMissing
from kernelviz.ops import Variant
from kernelviz.ops.catalog.space import tuned_keys


@dataclass(frozen=True, slots=True)
class Tunable:
    """A variant of an op with parameters to tune. `lack`: what the device lacks for it, None if it can be tuned there."""

    op: str
    variant: Variant
    lack: NeedMissing | None


def tunable(bench: Bench, device_id: str) -> tuple[Tunable, ...]:
    """The variants with parameters of all ops, in the order of the catalogue. Errors: UnknownName for the device."""
    return tuple(
        Tunable(name, offer.variant, offer.lack)
        for name in bench.ops()
        for offer in bench.offers(name, device_id)
        if tuned_keys(offer.variant)
    )


def ops_of(entries: Sequence[Tunable]) -> tuple[str, ...]:
    """The ops of these variants, each once."""
    return tuple(dict.fromkeys(one.op for one in entries))


def anything_tunable(bench: Bench) -> bool:
    """Whether a usable device of this machine can run a variant with parameters."""
    return any(one.lack is None for d in bench.devices() if d.usable for one in tunable(bench, d.id))
