"""Measures epochs of loading: proves that each image arrives once and unchanged, and times epochs of all variants in rounds."""

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import torch

from kernelviz.core.reasons import ErrorTooLarge, NotAdmitted
from kernelviz.core.result import Failure
from kernelviz.core.workload import Clock, Measured, WorkloadCase, WorkloadMeasurement, WorkloadNote
from kernelviz.workloads.catalog import Series, WorkloadContext
from kernelviz.workloads.data_loading.torch_images import (
    LOADINGS,
    Images,
    WrongImages,
    check,
    checksums,
    loader,
    shared_bytes,
    write_images,
)

_BASELINE = "workers_0_one_thread"


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def measure(cases: Sequence[WorkloadCase], context: WorkloadContext) -> Iterator[WorkloadMeasurement]:
    """Measure variants at one size of images."""
    values = {name: int(value) for name, value in cases[0].values.items()}
    context.progress("preparing")
    paths = write_images(context.folder, values["files"], values["pixels"], context.seed)
    images = Images(paths, values["images"], values["crop"])
    expected = checksums(images)
    calls: dict[str, Callable[[], Mapping[str, float]]] = {}
    admitted = []
    for case in cases:
        why = lack_of_shared_memory(shared_bytes(LOADINGS[case.variant], values["batch"], values["crop"]))
        if why is None:
            admitted.append(case)
        else:
            yield WorkloadMeasurement(case=case, failure=Failure(stage="unavailable", reasons=(NotAdmitted(text=why),)))
    for case in admitted:
        with context.case(case):
            context.progress("checking", case.variant)
            batches = loader(images, values["batch"], LOADINGS[case.variant])
            try:
                check(batches, expected)
            except WrongImages as wrong:
                # Every image counts: the error is in numbers of images, of which none may be wrong.
                failure = Failure(stage="wrong", reasons=(ErrorTooLarge(of_bound=None),), message=str(wrong))
                yield WorkloadMeasurement(case=case, failure=failure)
                continue
            threads = LOADINGS[case.variant].threads
            calls[case.variant] = _epoch_of(batches, values["images"], values["step_ms"] / 1e3, threads, context)
    by_variant = {case.variant: case for case in cases}
    for variant, series in context.rounds(calls, baseline=_BASELINE).items():
        yield WorkloadMeasurement(
            case=by_variant[variant], values=dict(_values(series, context)), notes=_notes(variant)
        )


def lack_of_shared_memory(needed_bytes: int, folder: Path = Path("/dev/shm")) -> str | None:
    """Why the batches of workers do not fit into shared memory, where a worker would be killed by a bus error; None if they do,
    or if the system has no such folder."""
    if not folder.is_dir():
        return None
    free_bytes = shutil.disk_usage(folder).free
    if needed_bytes <= free_bytes:
        return None
    return (
        f"its workers hold up to {needed_bytes / 1e6:,.0f} MB of batches in shared memory, and {folder} has "
        f"{free_bytes / 1e6:,.0f} MB free; name a smaller batch or crop, or give it more (docker run --shm-size)"
    )


def _epoch_of(
    batches: Any, images: int, step_s: float, threads: int | None, context: WorkloadContext
) -> Callable[[], Mapping[str, float]]:
    def call() -> Mapping[str, float]:
        with torch_threads(threads):
            return epoch(batches, images, step_s, torch.device(context.torch_device))

    return call


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Give operations of torch in this process so many threads meanwhile; None: leave them as they are."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def epoch(batches: Any, images: int, step_s: float, device: torch.device) -> Mapping[str, float]:
    """Load an epoch, with a wait of `step_s` from the arrival of each batch on; figures by name. Batches are copied to a GPU."""
    used_before, began_s = _processor_s(), time.perf_counter()
    iterator = iter(batches)
    first_s = waited_s = 0.0
    requested_s = began_s
    while True:
        batch = next(iterator, None)
        arrived_s = time.perf_counter()
        if batch is None:
            break
        if first_s == 0.0:
            first_s = arrived_s - began_s
        else:
            waited_s += arrived_s - requested_s
        if device.type == "cuda":
            batch[0].to(device, non_blocking=True)
            torch.cuda.synchronize(device)
        left_s = step_s - (time.perf_counter() - arrived_s)
        if left_s > 0:
            time.sleep(left_s)
        requested_s = time.perf_counter()
    ended_s = time.perf_counter()
    # Read before the iterator is gone: it ends its workers, and then their time is only known as that of children.
    used_s = _processor_s() - used_before
    del iterator
    epoch_s = ended_s - began_s
    return {
        "epoch_s": epoch_s,
        "images_per_s": images / epoch_s,
        "first_batch_s": first_s,
        "starved": waited_s / max(epoch_s - first_s, 1e-9),
        "cpu_use": used_s / epoch_s / cores(),
    }


def _processor_s() -> float:
    """Seconds of processor time of this process, of its children that have ended, and of those that live."""
    own = psutil.Process()
    times = own.cpu_times()
    total = times.user + times.system + times.children_user + times.children_system
    for child in own.children(recursive=True):
        try:
            of_child = child.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += of_child.user + of_child.system
    return float(total)


def _values(series: Series, context: WorkloadContext) -> Iterator[tuple[str, Measured]]:
    for figure, samples in series.samples.items():
        clock: Clock = "process" if figure == "cpu_use" else "host"
        again = series.again.get(figure, ())
        yield figure, context.measured(samples, rounds=series.rounds, again=again, clock=clock)


def _notes(variant: str) -> tuple[WorkloadNote, ...]:
    notes = [WorkloadNote(kind="page_cache_warm")]
    if LOADINGS[variant].workers > cores():
        notes.append(WorkloadNote(kind="workers_more_than_cores", value=float(cores())))
    return tuple(notes)
