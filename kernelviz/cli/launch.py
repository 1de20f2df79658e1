"""`kernelviz launch`: call one variant N times in this process, so that a profiler can follow it."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated

import typer

from kernelviz import bench as use_cases
from kernelviz.bench import Offer
from kernelviz.cli import console, options
from kernelviz.cli.arguments import parse_names, parse_sizes
from kernelviz.cli.progress import format_case
from kernelviz.core import BadField, Case, Device, DeviceError, Plan, RunRequest, Tuned
from kernelviz.text.failures import describe_reason
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
    bench = use_cases.current()
    try:
        plan = bench.plan(
            RunRequest(
                op=op,
                sizes=parse_sizes(size) or None,
                preset=preset,
                variants=parse_names(variants),
                dtype=dtype,
                compute=compute,
                data=data,
                device=device,
                plugins=options.absolute_paths(plugins),
            )
        )
        planned_device, offers = bench.device(plan.device), bench.offers(plan.op, plan.device)
        tuned = bench.tunings.chosen(plan)
    finally:
        bench.close()
    launch_plan(plan, planned_device, offers, calls, tuned)


def launch_plan(
    plan: Plan, device: Device, offers: Sequence[Offer], calls: int, tuned: Mapping[str, Tuned] = MappingProxyType({})
) -> None:
    """Bind the one case of the plan, flush, and call it `calls` times while holding the device's lock.

    `tuned`: the configuration of each tuned variant. The session runs in this process and not in a worker, because a profiler
    follows this process, and replays its kernels most easily when it is the only one.
    Errors: BadField for more than one case, or for a variant that cannot run here; DeviceError with the message of the device
    or of the variant.
    """
    cases = plan.cases()
    if len(cases) != 1:
        raise BadField(
            "launch", f"{len(cases)} cases", "name one variant and one size for each axis (--variants, --size)"
        )
    for offer in offers:
        if offer.variant.name == cases[0].variant and offer.lack is not None:
            raise BadField("--variants", cases[0].variant, str(describe_reason(offer.lack)))
    err = console.err()
    lock = DeviceLock(device.uuid)
    lock.acquire(lambda holder: err.print(f"waiting for the device: {holder} holds it"), lambda: False)
    try:
        _call(plan, cases[0], calls, tuned)
    finally:
        lock.release()
        lock.close()
    err.print(f"called {calls} time{'s' if calls > 1 else ''}: {format_case(cases[0])}")


def _call(plan: Plan, case: Case, calls: int, tuned: Mapping[str, Tuned]) -> None:
    from kernelviz.measure.session.device_session import open_session  # imports torch

    session = open_session(plan.device, plan.plugins)
    try:
        session.launch(case.problem, case.variant, calls, tuned=tuned)
    except Exception as error:
        raise DeviceError(f"{format_case(case)}: {type(error).__name__}: {error}") from error
