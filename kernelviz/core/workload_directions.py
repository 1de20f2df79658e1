"""Which direction of a figure is better.

It is an opinion about a fact, so that of this version counts, and not that of the version that recorded the run. The digest and
the document of the run keep the recorded declaration.
"""

import msgspec

from kernelviz.core.workload import Better, Workload, WorkloadRun


class RunAsDeclaredNow(WorkloadRun, frozen=True, kw_only=True):
    """A run whose `declared` has directions of this version. `recorded`: the declaration as it was recorded; None if that is
    the same. It is no document of its own: `as_recorded` gives the run that is written."""

    recorded: Workload | None = None


def with_directions(run: WorkloadRun, present: Workload | None) -> WorkloadRun:
    """The run with the directions of `present`, the declaration of its workload in this version, for each figure that both
    declare; the same run if they are equal, or without such a declaration."""
    better: dict[str, Better] = {} if present is None else {figure.name: figure.better for figure in present.figures}
    figures = tuple(
        msgspec.structs.replace(figure, better=better.get(figure.name, figure.better))
        for figure in run.declared.figures
    )
    if figures == run.declared.figures:
        return run
    recorded = as_recorded(run)
    declared = msgspec.structs.replace(run.declared, figures=figures)
    return RunAsDeclaredNow(**{**msgspec.structs.asdict(recorded), "declared": declared}, recorded=recorded.declared)


def as_recorded(run: WorkloadRun) -> WorkloadRun:
    """The run with the declaration that it was recorded with."""
    if not isinstance(run, RunAsDeclaredNow):
        return run
    values = {name: getattr(run, name) for name in WorkloadRun.__struct_fields__}
    return WorkloadRun(**{**values, "declared": run.recorded or run.declared})
