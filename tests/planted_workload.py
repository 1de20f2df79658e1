"""Workloads of tests: quick ones without torch, among them variants that crash, hang, run out of memory or give no number."""

import os
import time

from kernelviz.core.workload import (
    Span,
    Timeline,
    Workload,
    WorkloadAxis,
    WorkloadChart,
    WorkloadFigure,
    WorkloadLimit,
    WorkloadMeasurement,
    WorkloadNote,
    WorkloadPreset,
    WorkloadVariant,
)

PLANTED = Workload(
    name="planted",
    title="Planted steps",
    summary="Steps that sleep for a stated time, so that the answer is known.",
    runner=":measure",
    axes=(
        WorkloadAxis(name="work", title="Work", help="Units of work in a step.", minimum=0),
        WorkloadAxis(name="kind", title="Kind", kind="choice", choices=("plain", "odd")),
    ),
    presets=(
        WorkloadPreset(name="small", title="One size", values={"work": (1,), "kind": ("plain",)}),
        WorkloadPreset(name="sweep", title="Three sizes", values={"work": (0, 1, 2), "kind": ("plain",)}),
    ),
    variants=(
        WorkloadVariant(name="slow", caption="Sleeps 2 ms for each unit."),
        WorkloadVariant(name="fast", caption="Sleeps 1 ms for each unit.", idea="It sleeps less."),
        WorkloadVariant(name="raises", caption="Raises an exception.", by_default=False),
        WorkloadVariant(name="dies", caption="Ends its process.", by_default=False),
        WorkloadVariant(name="hangs", caption="Never returns.", by_default=False),
        WorkloadVariant(name="greedy", caption="Allocates more than there is.", by_default=False),
        WorkloadVariant(name="silent", caption="Gives no result.", by_default=False),
        WorkloadVariant(name="no_number", caption="Gives a loss that is no number.", by_default=False),
        WorkloadVariant(
            name="apart", caption="Measured in a process of its own.", fresh_process=True, by_default=False
        ),
        WorkloadVariant(name="on_gpu", caption="Needs a GPU.", needs=("cuda",), by_default=False),
        WorkloadVariant(name="lingers", caption="Takes half a second for each round.", by_default=False),
    ),
    baseline="slow",
    figures=(
        WorkloadFigure(name="step_s", title="Step", unit="s", better="lower", headline=True, help="Time of a step."),
        WorkloadFigure(name="rate", title="Rate", unit="1/s", better="higher"),
        WorkloadFigure(name="loss", title="Loss", unit="number"),
        WorkloadFigure(name="sent", title="Bytes sent", unit="B", better="lower", origin="counted"),
        WorkloadFigure(name="hidden", title="Hidden share", unit="fraction", better="higher"),
    ),
    chart=WorkloadChart(kind="bars", figures=("step_s",)),
    limits=(WorkloadLimit(name="synthetic", text="It sleeps, so it says nothing about work."),),
    budget_s=0.05,
    most_s=20.0,
)

PAIRED = Workload(
    name="paired",
    title="Planted pair",
    summary="Two processes that add numbers by a file.",
    runner=":measure_pair",
    axes=(WorkloadAxis(name="size", title="Size", kind="bytes"),),
    presets=(WorkloadPreset(name="small", title="Two sizes", values={"size": (1024, 4096)}),),
    variants=(
        WorkloadVariant(name="both", caption="Both ranks answer."),
        WorkloadVariant(name="one_dies", caption="Rank 1 ends itself.", by_default=False),
        WorkloadVariant(name="one_hangs", caption="Rank 1 never answers.", by_default=False),
    ),
    baseline="both",
    figures=(WorkloadFigure(name="time_s", title="Time", unit="s", better="lower", headline=True),),
    chart=WorkloadChart(kind="lines", figures=("time_s",), axis="size"),
    limits=(
        WorkloadLimit(
            name="two_hosts", text="A hierarchical all-reduce needs two hosts, so it is not measured and not simulated."
        ),
    ),
    ranks=2,
    on_cpu="mechanics_only",
    budget_s=0.05,
    most_s=20.0,
)

WORKLOADS = (PLANTED, PAIRED)
PLANTED_PID = "PLANTED_PID"
"""The environment variable that names the file into which the process of a runner writes its pid."""


def measure(cases, context):
    """Measure the cases of `planted` in shared rounds."""
    if path := os.environ.get(PLANTED_PID):
        with open(path, "w") as file:  # noqa: PTH123
            file.write(str(os.getpid()))
    calls = {}
    for case in cases:
        with context.case(case):
            context.progress("preparing", case.variant)
            calls[case.variant] = _step(case, context)
    calls = {name: call for name, call in calls.items() if call is not None}
    for variant, series in context.rounds(calls, baseline="slow").items():
        case = next(case for case in cases if case.variant == variant)
        steps = series.samples["step_s"]
        again = series.again.get("step_s", ())
        values = {
            "step_s": context.measured(steps, rounds=series.rounds, again=again),
            "rate": context.measured([1 / max(s, 1e-6) for s in steps], rounds=series.rounds),
            "sent": context.counted(1024 * int(case.values["work"])),
            "hidden": context.counted(0.5),
        }
        if variant == "no_number":
            values["loss"] = context.counted(float("nan"))
        yield WorkloadMeasurement(
            case=case,
            values=values,
            timeline=Timeline(
                spans=(
                    Span(lane="compute", start_s=0.0, end_s=2e-3, name="step"),
                    Span(lane="communication", start_s=1e-3, end_s=3e-3, name="reduce"),
                ),
                clock="host",
            ),
            notes=(WorkloadNote(kind="steps_skipped", value=2.0),),
        )


def _step(case, context):
    units = int(case.values["work"])
    match case.variant:
        case "raises":
            raise RuntimeError("planted: this variant raises")
        case "dies":
            return lambda: os._exit(7)
        case "hangs":
            return lambda: time.sleep(1e6)
        case "greedy":
            raise MemoryError("planted: more than there is")
        case "silent":
            return None
        case "lingers":
            return lambda: {"step_s": context.timed(lambda: time.sleep(0.5))}
    each_s = 1e-3 if case.variant == "fast" else 2e-3
    return lambda: {"step_s": context.timed(lambda: time.sleep(each_s * units))}


def measure_pair(cases, context):
    """Measure the cases of `paired` in two rank processes."""
    for case in cases:
        with context.case(case):
            context.progress("measuring", case.variant)
            answers = context.ranks(":rank", {"variant": case.variant})
            samples = [answer["time_s"] for answer in answers] * 5
            yield WorkloadMeasurement(case=case, values={"time_s": context.measured(samples)})


def rank(context, arguments):
    """One rank: it joins the process group of gloo and adds one number."""
    import torch
    import torch.distributed as dist

    if context.rank == 1 and arguments["variant"] == "one_dies":
        os._exit(9)
    if context.rank == 1 and arguments["variant"] == "one_hangs":
        time.sleep(1e6)
    number = torch.ones(4)
    seconds = context.timed(lambda: dist.all_reduce(number))
    assert number[0] == context.world_size
    series = context.rounds({"both": lambda: context.timed(lambda: dist.all_reduce(number))})
    return {"rank": context.rank, "time_s": seconds, "rounds": len(series["both"].rounds)}
