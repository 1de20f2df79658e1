"""`kernelviz launch`: call one variant N times in this process, so that a profiler can follow it."""

from contextlib import closing
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
) -> None:
    """Call one variant N times without measuring it, for use under a profiler such as ncu or nsys.

    The variant is prepared (inputs, compilation), the L2 cache is flushed, and then the variant is called N times in this
    process. Nothing is traced or timed. Name one variant and one size for each axis.
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
    case = options.only_case(plan, "launch", "--variants")
    for offer in offers:
        if offer.variant.name == case.variant and offer.lack is not None:
            raise BadField("--variants", case.variant, str(describe_reason(offer.lack)))
    err, lock = console.err(), DeviceLock(uuid)
    lock.acquire(lambda holder: err.print(f"waiting for the device: {holder} holds it"), lambda: False)
    try:
        # In this process and not in a worker, because a profiler follows this process, and replays its kernels most easily if
        # it is the only one.
        from kernelviz.measure.session.device_session import open_session  # imports torch

        session = open_session(plan.device, plan.plugins)
        try:
            session.launch(case.problem, case.variant, calls, tuned=tuned)
        except Exception as error:
            raise DeviceError(f"{format_case(case)}: {type(error).__name__}: {error}") from error
    finally:
        lock.release()
        lock.close()
    err.print(f"called {calls} time{'s' if calls > 1 else ''}: {format_case(case)}")
