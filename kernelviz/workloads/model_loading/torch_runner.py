"""Measures loading of models, each in new processes: time to the first call and resident memory, and the proof of its result."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from kernelviz.core.reasons import ErrorTooLarge, NotFinite
from kernelviz.core.result import Failure
from kernelviz.core.workload import WorkloadCase, WorkloadMeasurement, WorkloadNote, WorkloadValue
from kernelviz.workloads.catalog import RankContext, WorkloadContext
from kernelviz.workloads.model_loading import page_cache
from kernelviz.workloads.model_loading.torch_loading import LOADS, expected, inputs, relative_error, write

MOST_PROCESSES, LEAST_PROCESSES = 10, 3
BOUND = 1e-3
"""The largest relative error of the first call against float64; fp32 products of 4,096 numbers have 1e-6 a layer."""
DROPPED, WARM = 0.05, 0.99
"""The share of a file's pages in memory under which it counts as dropped, and from which on as warm."""
_STATUS = {"VmRSS": "resident", "VmHWM": "peak", "RssFile": "mapped"}


def measure(cases: Sequence[WorkloadCase], context: WorkloadContext) -> Iterator[WorkloadMeasurement]:
    """Measure variants, each by itself."""
    for case in cases:
        with context.case(case):
            yield _measured(case, context)


def _measured(case: WorkloadCase, context: WorkloadContext) -> WorkloadMeasurement:
    layers, width = int(case.values["layers"]), int(case.values["width"])
    context.progress("preparing", case.variant)
    folder = context.folder / case.variant
    folder.mkdir()
    paths = write(folder, layers, width, sharded=case.variant == "sharded")
    reference = expected(layers, width)
    answers: list[dict[str, float]] = []
    began_s, error, shares = time.monotonic(), 0.0, []
    for number in range(MOST_PROCESSES):
        context.progress("measuring", case.variant, number, MOST_PROCESSES)
        for path in paths:
            (page_cache.drop if case.values["cache"] == "dropped" else page_cache.warm)(path)
        shares.append(page_cache.cached_share(paths))
        answer = context.fresh(
            "kernelviz.workloads.model_loading.torch_runner:load",
            {"variant": case.variant, "layers": layers, "width": width, "paths": [str(path) for path in paths]},
        )
        result = torch.tensor(answer.pop("result"), dtype=torch.float64)
        error = max(error, relative_error(result, reference))
        answers.append(answer)
        # Ten processes give an interval. A large model may end before that, with samples but without one.
        if number + 1 >= LEAST_PROCESSES and time.monotonic() - began_s > 20 * context.budget_s:
            break
    values: dict[str, WorkloadValue] = {
        figure: context.measured([one[figure] for one in answers], clock="host" if figure.endswith("_s") else "process")
        for figure in answers[0]
    }
    known = [share for share in shares if share is not None]
    if len(known) == len(shares):
        values["cached"] = context.measured(known, clock="process")
    values["file_bytes"] = context.counted(4 * layers * width * width)
    return WorkloadMeasurement(
        case=case, values=values, notes=(cache_note(str(case.values["cache"]), known),), failure=refusal(error)
    )


def cache_note(wanted: str, shares: Sequence[float]) -> WorkloadNote:
    """What the page cache was: as wanted only if the system confirms it.

    >>> cache_note("dropped", [0.0, 0.01]).kind, cache_note("dropped", [1.0]).kind, cache_note("warm", []).kind
    ('page_cache_dropped', 'page_cache_warm', 'page_cache_unknown')
    """
    if shares and max(shares) <= DROPPED:
        return WorkloadNote(kind="page_cache_dropped", value=max(shares))
    if shares and min(shares) >= WARM:
        return WorkloadNote(kind="page_cache_warm", value=min(shares))
    return WorkloadNote(kind="page_cache_unknown", value=min(shares, default=None))


def refusal(error: float) -> Failure | None:
    """The failure of a model whose first call is wrong; None if it is right.

    >>> refusal(1e-6), refusal(1.0).stage
    (None, 'wrong')
    """
    if error <= BOUND:
        return None
    reason = ErrorTooLarge(of_bound=error / BOUND) if error < float("inf") else NotFinite(elements=1)
    return Failure(stage="wrong", reasons=(reason,))


def load(context: RankContext, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """In a new process: load, call once, and return times, resident memory and the result."""
    device = torch.device(context.torch_device)
    layers, width = int(arguments["layers"]), int(arguments["width"])
    paths = [Path(path) for path in arguments["paths"]]
    with torch.inference_mode():
        warm_up = torch.ones(8, 8, device=device)
        float((warm_up @ warm_up).sum())  # libraries of products are loaded at their first use
        rows = inputs(width)
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins at what is resident now (proc(5))
        runtime = resident()
        began_s = time.perf_counter()
        model = LOADS[str(arguments["variant"])](paths, layers, width, device)
        context.synchronize()
        loaded_s = time.perf_counter()
        start = resident()
        result = model(rows.to(device)).cpu()
        called_s = time.perf_counter()
    called = resident()
    return {
        "first_call_s": called_s - began_s,
        "load_s": loaded_s - began_s,
        "peak_bytes": called["peak"],
        "start_bytes": start["resident"],
        "called_bytes": called["resident"],
        "mapped_bytes": called["mapped"],
        "runtime_bytes": runtime["resident"],
        "result": result.tolist(),
    }


def resident() -> dict[str, float]:
    """Bytes of physical memory of this process, their peak, and those of mapped files (/proc/self/status, Linux)."""
    sizes = {}
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in _STATUS:
            sizes[_STATUS[name]] = float(rest.split()[0]) * 1024
    return sizes
