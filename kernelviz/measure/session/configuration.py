"""The configuration with which a variant is bound: the one in its name, the tuned one, or its default."""

from collections.abc import Mapping

from kernelviz.core import StaleTuning, Tuned, UsageError
from kernelviz.ops import Op, Variant


def configured(op: Op, name: str, tuned: Mapping[str, Tuned]) -> Variant:
    """The variant of that name, with its configuration where it has tunable parameters. Errors: UnknownName, BadField."""
    variant = op.variant_named(name)
    if not variant.space or variant.configuration is not None:
        return variant
    known = tuned.get(name)
    if known is None or stale(variant, known) is not None:
        return variant.configured({})
    return variant.configured(known.configuration)


def stale(variant: Variant, known: Tuned) -> StaleTuning | None:
    """Why the tuned configuration of this variant is not used, or None: another source may have another best configuration."""
    if known.source_digest != variant.source_digest():
        return StaleTuning(run_id=known.run_id, another="source")
    try:
        variant.configured(known.configuration)
    except UsageError:
        return StaleTuning(run_id=known.run_id, another="space")
    return None
