"""The merging of results: one result of several measurements of the same case."""

import msgspec

from kernelviz.core.notes import LaterFailure, Note
from kernelviz.core.result import Conditions, Failure, Result, Timing


def merge_later_result(earlier: Result, later: Result) -> Result:
    """Merge a later result of a case into an earlier one. Figures of the later one replace the same figures of the earlier one.

    If the later measurement failed, the earlier time stays and the failure becomes a note, unless the later result is wrong or
    impossible. A failed case stays failed if the run is cancelled later.
    """
    if isinstance(later.outcome, Failure):
        if isinstance(earlier.outcome, Failure):
            return earlier if later.given_up else later
        if later.outcome.stage in ("wrong", "impossible"):
            return later
        failure = later.outcome
        note = LaterFailure(figure="secondary", stage=failure.stage, reasons=failure.reasons, message=failure.message)
        return noted(earlier, note)
    if (later.source_digest, later.configuration) != (earlier.source_digest, earlier.configuration):
        return later
    if isinstance(earlier.outcome, Failure):
        # Without a cold time, the later figures do not replace the failure.
        return earlier if later.outcome.device_cold_s is None else later
    outcome = merge_timings(earlier.outcome, later.outcome)
    if later.outcome.device_cold_s is not None:
        # The same code and configuration: counters that were read of it stay true.
        counters = earlier.counters if later.counters is msgspec.UNSET else later.counters
        return msgspec.structs.replace(later, outcome=outcome, counters=counters)
    return msgspec.structs.replace(earlier, outcome=outcome, conditions=_both(earlier.conditions, later.conditions))


def merge_timings(earlier: Timing, later: Timing) -> Timing:
    """The figures of both. The later one of a figure that both have."""
    added = {name: value for name in Timing.__struct_fields__ if (value := getattr(later, name))}
    return msgspec.structs.replace(earlier, **added)


def noted(result: Result, note: Note) -> Result:
    """The result with one more note in its conditions."""
    conditions = result.conditions or Conditions()
    notes = tuple(dict.fromkeys((*conditions.notes, note)))
    return msgspec.structs.replace(result, conditions=msgspec.structs.replace(conditions, notes=notes))


def _both(first: Conditions | None, second: Conditions | None) -> Conditions | None:
    """The conditions of the headline, with what was observed while the later figures were measured."""
    if first is None or second is None:
        return first or second
    retried = second.retried_warm_blocks
    counts = [n for n in (first.other_processes, second.other_processes) if n is not None]
    return msgspec.structs.replace(
        first,
        event_reasons=tuple(dict.fromkeys((*first.event_reasons, *second.event_reasons))),
        other_processes=max(counts, default=None),
        retried_warm_blocks=first.retried_warm_blocks if retried is None else retried,
        notes=tuple(dict.fromkeys((*first.notes, *second.notes))),
    )
