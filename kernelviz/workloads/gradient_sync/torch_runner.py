"""Measures data-parallel steps in two ranks: proves the gradients, times steps beside the floor, and reads the device's
stamps."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import torch
import torch.distributed as dist

from kernelviz.core.workload import (
    Clock,
    Measured,
    Span,
    Timeline,
    WorkloadCase,
    WorkloadMeasurement,
    WorkloadNote,
    WorkloadValue,
)
from kernelviz.metrics.timelines import covered, hidden_share, of_lane
from kernelviz.workloads.catalog import RankContext, WorkloadContext
from kernelviz.workloads.gradient_sync.torch_ddp import Delay, Step, blocks, rows_of
from kernelviz.workloads.gradient_sync.torch_trace import traced
from kernelviz.workloads.ranks.series import (
    RankAnswers,
    RankSeries,
    in_ranks,
    mean_over_ranks,
    measured,
    refusal,
    series_of,
)
from kernelviz.workloads.ranks.torch_group import Meeting

FLOOR, BASELINE = "no_sync", "ddp"
TRACED_STEPS = 10
WARM_UP = 4
"""Steps before the proof: PowerSGD's hook compresses from the third step on, and buckets are made anew after the first."""
BOUNDS = {"bf16_hook": 2e-2, "powersgd_hook": 4.0}
"""The largest relative error of a right exchange. bf16: rounding. PowerSGD delivers in a step what earlier steps left out, so
that its error may exceed 1. Only an error of another size is refused; that both ranks have the same gradients is checked exactly.
"""
_BOUND_OF_FP32 = 1e-3
"""In bf16 products, the order of additions in a step may differ between two calls of the same step."""


def measure(cases: Sequence[WorkloadCase], context: WorkloadContext) -> Iterator[WorkloadMeasurement]:
    """Measure variants at one model."""
    arguments = dict(cases[0].values)
    function = "kernelviz.workloads.gradient_sync.torch_runner:rank"
    for group, answers, together in in_ranks(cases, context, function, arguments):
        for case in group:
            yield _measurement(case, answers, together, context)


def rank(context: RankContext, arguments: Mapping[str, Any]) -> Any:
    """One of the ranks: returns samples and the spans of a step of each variant, and of the floor."""
    device, ranks = torch.device(context.torch_device), context.world_size
    variants = list(arguments["variants"])
    context.progress("preparing")
    rows = rows_of(context.rank, int(arguments["batch"]), int(arguments["width"]), context.seed, device)
    delay, meet = Delay(int(arguments["delay_us"]) / 1e6, device), Meeting(context)

    def step_of(variant: str) -> Step:
        return Step(variant, blocks(int(arguments["blocks"]), int(arguments["width"]), device), rows, ranks, delay)

    steps, checked = {}, {}
    floor = step_of(FLOOR)
    floor()
    mean = floor.gradients().double()
    dist.all_reduce(mean)
    mean /= ranks
    for name in variants:
        context.progress("checking", name)
        before = torch.cuda.memory_allocated(device) if device.type == "cuda" else 0
        steps[name] = step_of(name)
        checked[name] = _checked(name, steps[name], mean, ranks, device, before)

    def sample_of(step: Step) -> Callable[[], float]:
        def sample() -> float:
            meet()
            return context.timed(step)

        return sample

    series = context.rounds(
        {FLOOR: sample_of(floor), **{name: sample_of(step) for name, step in steps.items()}},
        baseline=BASELINE if BASELINE in steps else None,
        warm_up=2,
    )
    answers = RankAnswers(
        variants={
            name: _with_trace(series_of(series[name]), *checked[name], _traces(name, step, meet, context))
            for name, step in steps.items()
        },
        beside={FLOOR: series_of(series[FLOOR])},
    )
    meet()
    return msgspec.to_builtins(answers)


def _checked(
    name: str, step: Step, mean: torch.Tensor, ranks: int, device: torch.device, before: int
) -> tuple[dict[str, float], float]:
    """Counted figures, and the error of the gradients as a share of what right ones may have."""
    for _ in range(WARM_UP):
        step()
    counted = {"sent_bytes": float(step.sent_bytes())}
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        step()
        torch.cuda.synchronize(device)
        counted["peak_bytes"] = float(torch.cuda.max_memory_allocated(device) - before)
    gradients = step.gradients().double()
    error = float(torch.linalg.vector_norm(gradients - mean) / torch.linalg.vector_norm(mean))
    counted["gradient_error"] = error
    share = error / BOUNDS.get(name, _BOUND_OF_FP32)
    return counted, share if share == share and _same_everywhere(gradients) else float("inf")


def _same_everywhere(gradients: torch.Tensor) -> bool:
    """Whether all ranks have the same numbers."""
    ends = torch.stack([gradients, -gradients])
    dist.all_reduce(ends, op=dist.ReduceOp.MAX)
    return bool((ends[0] == -ends[1]).all())


def _traces(name: str, step: Step, meet: Meeting, context: RankContext) -> list[tuple[Span, ...]]:
    """The spans of some steps; the first, in which the profiler starts, is not kept."""
    context.progress("measuring", name)
    traces = []
    for _ in range(TRACED_STEPS + 1):
        meet()
        traces.append(traced(step, torch.device(context.torch_device), step.stamped))
    return traces[1:]


def _with_trace(
    series: RankSeries, counted: dict[str, float], share: float, traces: Sequence[tuple[Span, ...]]
) -> RankSeries:
    samples = dict(series.samples)
    samples["computing_s"] = tuple(covered(of_lane(spans, "compute")) for spans in traces)
    shares = [hidden for spans in traces if (hidden := hidden_share(spans)) is not None]
    if len(shares) == len(traces):  # else the profiler has not seen all exchanges, so that both are unknown
        samples["hidden"] = tuple(shares)
        samples["communicating_s"] = tuple(covered(of_lane(spans, "communication")) for spans in traces)
    return msgspec.structs.replace(
        series,
        samples=samples,
        counted=counted,
        bound_share=share if share < float("inf") else None,
        spans=_typical(traces),
    )


def _typical(traces: Sequence[tuple[Span, ...]]) -> tuple[Span, ...]:
    """The trace whose hidden share is the median, because that is what its picture shows."""
    ordered = sorted(traces, key=lambda spans: hidden_share(spans) or 0.0)
    return ordered[len(ordered) // 2] if ordered else ()


def _measurement(
    case: WorkloadCase, answers: Sequence[RankAnswers], together: bool, context: WorkloadContext
) -> WorkloadMeasurement:
    of_ranks = [answer.variants[case.variant] for answer in answers]
    floors = [answer.beside[FLOOR] for answer in answers]
    clock: Clock = "cupti" if context.device.kind == "cuda" else "host"
    values: dict[str, WorkloadValue] = {
        "step_s": measured(context, of_ranks, "step_s"),
        "floor_s": measured(context, floors, "step_s"),
        "exposed_s": exposed(of_ranks, floors, context),
    }
    for figure in ("hidden", "communicating_s", "computing_s"):
        if all(figure in rank.samples for rank in of_ranks):
            values[figure] = context.measured(mean_over_ranks(of_ranks, figure), clock=clock)
    for figure, value in of_ranks[0].counted.items():
        values[figure] = context.counted(value, "allocator" if figure == "peak_bytes" else "arithmetic")
    return WorkloadMeasurement(
        case=case,
        values=values,
        timeline=Timeline(spans=of_ranks[0].spans, clock=clock) if of_ranks[0].spans else None,
        notes=() if together else (WorkloadNote(kind="not_interleaved"),),
        failure=refusal(of_ranks),
    )


def exposed(of_ranks: Sequence[RankSeries], floors: Sequence[RankSeries], context: WorkloadContext) -> Measured:
    """What a step takes longer than the floor of the same round."""
    floor = dict(zip(floors[0].rounds, mean_over_ranks(floors, "step_s"), strict=True))

    def beyond(*, again: bool) -> list[float]:
        steps = mean_over_ranks(of_ranks, "step_s", again=again)
        return [step - floor[number] for number, step in zip(of_ranks[0].rounds, steps, strict=False)]

    return context.measured(beyond(again=False), rounds=of_ranks[0].rounds, again=beyond(again=True))
