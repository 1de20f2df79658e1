"""Import of the CSV of Nsight Compute (`ncu --csv`), of the details page and of `--page raw`: a case for each kernel.

Kernels of one name that were launched with another grid or block are cases of their own. Of several launches of a case, the time
is the median of all, and the counters are those of the launch with the median duration. What the profiled program computed is not
in such a file, so there are no sizes, no cost and no correctness.
"""

from collections import defaultdict
from collections.abc import Sequence
from statistics import median_low

from kernelviz.core import Counters, Device, Figure, Kernel, Result, Run, Timing
from kernelviz.core.units import counted
from kernelviz.formats import foreign
from kernelviz.formats.import_format import Import, Opening, check_count
from kernelviz.formats.validation import MAX_CASES
from kernelviz.hardware.nsight_compute.csv_output import Launch, is_ncu_csv, launches

TOOL = "ncu"
TIME = "GPU time (ncu)"
_Case = tuple[str, tuple[int, int, int] | None, tuple[int, int, int] | None]


def decode(raw: bytes) -> tuple[Run, ...]:
    """The one run of the file. Errors: DocumentError with the line and the column."""
    listed = launches(raw)
    by_case: dict[_Case, list[Launch]] = defaultdict(list)
    for launch in listed:
        by_case[launch.kernel, launch.grid, launch.block].append(launch)
    check_count(len(by_case), MAX_CASES, "kernels", "kernels")
    shapes: dict[str, int] = defaultdict(int)
    for kernel, _, _ in by_case:
        shapes[kernel] += 1
    op = next((launch.process for launch in listed if launch.process), "unknown program")[:200]
    results = [_result(op, of_case, several=shapes[case[0]] > 1) for case, of_case in by_case.items()]
    unread = max(launch.other_metrics for launch in listed)
    capability = next((launch.capability for launch in listed if launch.capability), "")
    return (
        foreign.run_of(
            tool=TOOL,
            op=op,
            title=f"{TOOL}: {op}, {counted(len(by_case), 'kernel')}",
            note="Imported from the CSV of Nsight Compute. The file does not contain what the kernels compute, the state of the "
            f"caches or the date. {unread} other metrics of it are not read.",
            device=Device(
                id="cuda:0",
                kind="cuda",
                name=f"unknown GPU (compute capability {capability})" if capability else "unknown GPU",
                uuid=f"{TOOL} {capability}",
                compute_capability=_capability(capability),
            ),
            results=results,
            host=next((launch.host for launch in listed if launch.host), foreign.UNKNOWN_MACHINE),
            path="kernels",
        ),
    )


def _result(op: str, of_case: Sequence[Launch], *, several: bool) -> Result:
    """`several`: the kernel was launched in several shapes, which the name of the variant then states."""
    first = of_case[0]
    durations = [
        time_s
        for launch in of_case
        if (time_s := foreign.seconds(launch.values.get("duration_s"), f'line {launch.line}, "duration"')) is not None
    ]
    chosen, times = first, {}
    if durations:
        middle = median_low(durations)
        chosen = next(launch for launch in of_case if launch.values.get("duration_s") == middle)
        count = len(durations)
        how = f"{TOOL}: median of {count} launches" if count > 1 else f"{TOOL}: one launch"
        times[TIME] = Figure(estimate=middle, samples=tuple(durations), method=f"{how}, gpu__time_duration")
    counters = Counters(kernels=(chosen.counters(),), launches=len(of_case))
    shape = f" grid {_text(first.grid)} block {_text(first.block)}" if several else ""
    return Result(
        problem=foreign.problem(op, {}),
        variant=f"{first.kernel[:1_900]}{shape}",
        outcome=Timing(other_times=times),
        kernels=(Kernel(name=first.kernel, grid=first.grid, block=first.block),),
        counters=counters,
    )


def _text(dimensions: tuple[int, int, int] | None) -> str:
    return "unknown" if dimensions is None else "x".join(map(str, dimensions))


def _capability(text: str) -> tuple[int, int] | None:
    """
    >>> _capability("9.0"), _capability("?")
    ((9, 0), None)
    """
    major, _, minor = text.partition(".")
    whole = major.isascii() and major.isdigit() and minor.isascii() and minor.isdigit()
    return (int(major), int(minor)) if whole and len(text) <= 6 else None


def _recognises(seen: Opening) -> bool:
    return is_ncu_csv(seen.raw)


IMPORT = Import(name=TOOL, label="Nsight Compute CSV", recognises=_recognises, decode=decode)
