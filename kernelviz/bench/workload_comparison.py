"""Use cases: open a run of a workload by its id or from a file, and compare two runs, or two variants of one."""

from pathlib import Path

from kernelviz import formats
from kernelviz.bench.workloads import Workloads
from kernelviz.core import BadField, check_name
from kernelviz.core.workload import WorkloadRun
from kernelviz.formats import workload_document
from kernelviz.metrics.workloads import WorkloadComparison, compare


def opened(bench: Workloads, run: str) -> WorkloadRun:
    """The run with that id, or that of a file. Errors: UnknownRun, DocumentError, BadField."""
    return workload_document.decode(formats.file_bytes(Path(run))) if Path(run).is_file() else bench.load(run)


def compared(
    bench: Workloads, a: str, b: str, *, variant_a: str | None = None, variant_b: str | None = None
) -> WorkloadComparison:
    """Two runs of one workload case by case, or two variants at each point (`variant_a` of A against `variant_b` of B; with one
    of them, the other is the same). Errors: UnknownRun, UnknownName, DocumentError; BadField for runs of different workloads."""
    first, second = opened(bench, a), opened(bench, b)
    if first.plan.workload != second.plan.workload:
        raise BadField(
            "B",
            b,
            f"it is a run of {second.plan.workload}, A is one of {first.plan.workload}; compare runs of one workload",
        )
    variant_a, variant_b = variant_a or variant_b, variant_b or variant_a
    for name, run in ((variant_a, first), (variant_b, second)):
        if name is not None:
            check_name("variant", name, run.plan.variants, of=f"run {run.id!r}")
    if a == b and variant_a == variant_b:
        raise BadField("B", b, "A and B are the same run; name two of its variants")
    return compare(first, second, variant_a=variant_a, variant_b=variant_b)
