"""Which direction of a figure is better, and how figures and axes are explained: titles, help texts and units of axes, and
whether an axis is a planted condition.

They are opinions and texts about facts, so those of this version count, and not those of the version that recorded the run. The
digest and the document of the run keep the recorded declaration.
"""

import msgspec

from kernelviz.core.workload import Workload, WorkloadAxis, WorkloadFigure, WorkloadRun


class RunAsDeclaredNow(WorkloadRun, frozen=True, kw_only=True):
    """A run whose `declared` has directions and explanations of this version. `recorded`: the declaration as it was recorded;
    None if that is the same. It is no document of its own: `as_recorded` gives the run that is written."""

    recorded: Workload | None = None


def with_explanations(run: WorkloadRun, present: Workload | None) -> WorkloadRun:
    """The run with the directions and explanations of `present`, the declaration of its workload in this version, for each figure
    and axis that both declare alike; the same run if they are equal, or without such a declaration."""
    if present is None:
        return run
    figures = tuple(_figure(figure, present.figure_named(figure.name)) for figure in run.declared.figures)
    axes = tuple(_axis(axis, present.axis_named(axis.name)) for axis in run.declared.axes)
    if figures == run.declared.figures and axes == run.declared.axes:
        return run
    recorded = as_recorded(run)
    declared = msgspec.structs.replace(run.declared, figures=figures, axes=axes)
    return RunAsDeclaredNow(**{**msgspec.structs.asdict(recorded), "declared": declared}, recorded=recorded.declared)


def _figure(recorded: WorkloadFigure, present: WorkloadFigure | None) -> WorkloadFigure:
    if present is None:
        return recorded
    alike = (present.unit, present.origin) == (recorded.unit, recorded.origin)
    text = present.help if alike else recorded.help
    return msgspec.structs.replace(recorded, better=present.better, help=text)


def _axis(recorded: WorkloadAxis, present: WorkloadAxis | None) -> WorkloadAxis:
    if present is None or present.kind != recorded.kind:
        return recorded
    return msgspec.structs.replace(
        recorded, title=present.title, help=present.help, unit=present.unit, planted=present.planted
    )


def as_recorded(run: WorkloadRun) -> WorkloadRun:
    """The run with the declaration that it was recorded with."""
    if not isinstance(run, RunAsDeclaredNow):
        return run
    values = {name: getattr(run, name) for name in WorkloadRun.__struct_fields__}
    return WorkloadRun(**{**values, "declared": run.recorded or run.declared})
