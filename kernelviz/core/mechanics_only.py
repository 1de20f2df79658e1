"""Whether the times of a workload on a device say nothing about GPUs."""

from kernelviz.core.workload import CpuMeaning


def is_mechanics_only(on_cpu: CpuMeaning, device_kind: str) -> bool:
    """Whether times on a device of that kind say nothing about GPUs. `on_cpu`: what the workload says of a processor."""
    return device_kind == "cpu" and on_cpu == "mechanics_only"
