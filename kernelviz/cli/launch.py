"""`kernelviz launch`: call one variant N times in this process, so that a profiler can follow it."""

from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from typing import Annotated

import typer

from kernelviz import bench as use_cases
from kernelviz.cli import console, options
from kernelviz.cli.progress import format_case
from kernelviz.core import BadField, DeviceError
from kernelviz.text import describe_reason
from kernelviz.worker.device_lock import DeviceLock


def launch(
    op: options.OpName,
    variants: Annotated[str, typer.Option(metavar="VARIANT", help="Name of the one variant to call.")],
    calls: Annotated[int, typer.Option("-n", min=1, metavar="N", help="Number of calls.")] = 1,
    size: options.Sizes = None,
    preset: options.Preset = None,
    dtype: options.Dtype = None,
    compute: options.Compute = None,
    data: options.Data = "normal",
    device: options.DeviceId = None,
    plugins: options.Plugins = None,
    marked: Annotated[
        bool,
        typer.Option("--marked", hidden=True, help="Call several variants; launch the end marker after each of them."),
    ] = False,
    device_locked: Annotated[
        bool, typer.Option("--device-locked", hidden=True, help="The process that starts this one holds the device.")
    ] = False,
) -> None:
    """Call one variant N times without measuring it, for use under a profiler such as ncu or nsys.

    The variant is prepared (inputs, compilation, one call). Then the caches are flushed and it is called, N times, in this
    process. Nothing is traced or timed. Only these calls are between cudaProfilerStart and cudaProfilerStop, so that `ncu
    --profile-from-start off` and `nsys profile --capture-range=cudaProfilerApi` see nothing else. Name one variant and one
    size for each axis.
    """
    with closing(use_cases.current()) as bench:
        plan = bench.plan(
            options.run_request(
                op,
                options.parse_names(variants),
                size,
                preset=preset,
                dtype=dtype,
                compute=compute,
                data=data,
                device=device,
                plugins=plugins,
            )
        )
        uuid, offers, tuned = bench.device(plan.device).uuid, bench.offers(op, plan.device), bench.tunings.chosen(plan)
    cases = plan.cases() if marked and len(plan.problems) == 1 else (options.only_case(plan, "launch", "--variants"),)
    named = {case.variant for case in cases}
    for offer in offers:
        if offer.variant.name in named and offer.lack is not None:
            raise BadField("--variants", offer.variant.name, str(describe_reason(offer.lack)))
    err = console.err()
    with nullcontext() if device_locked else _locked(uuid):
        # In this process and not in a worker, because a profiler follows this process, and replays its kernels most easily if
        # it is the only one.
        from kernelviz.measure.session.device_session import open_session  # imports torch

        session = open_session(plan.device, plan.plugins)
        for case in cases:
            try:
                session.launch(case.problem, case.variant, calls, tuned=tuned, marked=marked)
            except Exception as error:
                failure = f"{format_case(case)}: {type(error).__name__}: {error}"
                if len(cases) == 1:
                    raise DeviceError(failure) from error
                err.print(failure)
            else:
                err.print(f"called {calls} time{'s' if calls > 1 else ''}: {format_case(case)}")


@contextmanager
def _locked(uuid: str) -> Iterator[None]:
    """Hold the device's lock."""
    err, lock = console.err(), DeviceLock(uuid)
    lock.acquire(lambda holder: err.print(f"waiting for the device: {holder} holds it"), lambda: False)
    try:
        yield
    finally:
        lock.release()
        lock.close()
