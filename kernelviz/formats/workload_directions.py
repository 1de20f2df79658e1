"""Runs of workloads with the directions of the figures that this version declares."""

from kernelviz.core.workload import WorkloadRun
from kernelviz.core.workload_directions import with_directions
from kernelviz.workloads.catalog import workloads


def with_present_directions(run: WorkloadRun) -> WorkloadRun:
    """The run with the directions of this version, if it declares the workload."""
    declared = workloads().get(run.plan.workload)
    return with_directions(run, None if declared is None else declared.workload)
