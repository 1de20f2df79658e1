"""Runs of workloads with the directions and explanations of figures and axes that this version declares."""

from kernelviz.core.workload import WorkloadRun
from kernelviz.core.workload_explanations import with_explanations
from kernelviz.workloads.catalog import workloads


def with_present_explanations(run: WorkloadRun) -> WorkloadRun:
    """The run with the directions and explanations of this version, if it declares the workload."""
    declared = workloads().get(run.plan.workload)
    return with_explanations(run, None if declared is None else declared.workload)
