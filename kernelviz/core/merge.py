"""One result of several measurements of the same case: what a later one adds, and what it replaces."""

import msgspec

from kernelviz.core.notes import LaterFailure, Note
from kernelviz.core.result import Conditions, Failure, Result, Timing


def merge_later_result(earlier: Result, later: Result) -> Result:
    """The earlier result with what a later one of the same case knows: its figures replace or complete those that are there.

    A failure of a later measurement does not undo a time that was taken: it becomes a note. A wrong result stays wrong, and
    what has failed was not given up when the run is cancelled later.
    """
    if isinstance(later.outcome, Failure):
        # Who tells of it need not know the variant's source (a plug-in's lives in the worker).
        if isinstance(earlier.outcome, Failure):
            return earlier if later.given_up else later
        if later.outcome.stage in ("wrong", "impossible"):
            return later
        failed = later.outcome
        note = LaterFailure(figure="secondary", stage=failed.stage, reasons=failed.reasons, message=failed.message)
        return noted(earlier, note)
    if (later.source_digest, later.configuration) != (earlier.source_digest, earlier.configuration):
        return later
    if isinstance(earlier.outcome, Failure):
        # Figures of something that has no cold time would stand alone: the failure is what there is to say.
        return earlier if later.outcome.device_cold_s is None else later
    outcome = merge_timings(earlier.outcome, later.outcome)
    if later.outcome.device_cold_s is not None:
        return msgspec.structs.replace(later, outcome=outcome)
    return msgspec.structs.replace(earlier, outcome=outcome, conditions=_both(earlier.conditions, later.conditions))


def merge_timings(earlier: Timing, later: Timing) -> Timing:
    """The figures of both; where both have one, the later."""
    added = {name: value for name in Timing.__struct_fields__ if (value := getattr(later, name))}
    return msgspec.structs.replace(earlier, **added)


def noted(result: Result, note: Note) -> Result:
    """The result with one more note on its conditions."""
    seen = result.conditions or Conditions()
    notes = tuple(dict.fromkeys((*seen.notes, note)))
    return msgspec.structs.replace(result, conditions=msgspec.structs.replace(seen, notes=notes))


def _both(first: Conditions | None, second: Conditions | None) -> Conditions | None:
    """The conditions of the headline, with what was noticed beside the later figures too."""
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
