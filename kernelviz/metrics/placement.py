"""A case on the roofline: its intensity and rate, the roofs that apply to it, how far below them it is, and what limits it."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from kernelviz.core import Cost, Counters, Figure, Problem, Roof, Run
from kernelviz.core.command import ProfilerCommands, profiler_commands
from kernelviz.core.problem import case_key
from kernelviz.metrics import roofline
from kernelviz.metrics.above_roof import AboveRoof, above_roof
from kernelviz.metrics.compute_ceilings import ComputeCeiling, compute_ceilings
from kernelviz.metrics.counters import traffic_ratio
from kernelviz.metrics.figures import Headline, figure_of
from kernelviz.metrics.limiter import limiter
from kernelviz.metrics.limiter_evidence import Limiter
from kernelviz.metrics.quality import Quality, quality
from kernelviz.metrics.roofline import SpeedOfLight
from kernelviz.metrics.rows import in_plan_order
from kernelviz.metrics.stability import UNKNOWN, Stability, stability


@dataclass(frozen=True, slots=True)
class Placed:
    """One timed, correct case. It holds no samples, so that many runs fit in memory.

    `intensity` is None if nothing is moved and 0 if nothing is computed: neither can be drawn on a logarithmic axis.
    `light`: the least time that the roofs allow, None if they are unknown. `share`: the share of the roof, see
    `roofline.efficiency`. `quality`: the measurement quality of the time. `on_gpu`: whether a profiler can follow it. `counters`:
    hardware counters of one call.
    `above_roof`: why its share is above 1. `levels`: whether the time has one level; without samples, the figure does not say.
    """

    run_id: str
    run_name: str
    device: str
    problem: Problem
    variant: str
    figure: Figure
    cost: Cost | None
    light: SpeedOfLight | None
    share: float | None
    limiter: Limiter
    quality: Quality | None
    on_gpu: bool = False
    counters: Counters | None = None
    above_roof: AboveRoof | None = None
    beside: tuple[str, ...] = ()
    """The variants of its run, from which it must look different."""
    levels: Stability = UNKNOWN
    ceilings: tuple[ComputeCeiling, ...] = ()
    """Of a problem of arithmetic: data sheet, issue rate at the measured clock, and loop of tensor-core instructions."""

    @property
    def key(self) -> str:
        """Equal for equal cases of equal runs; it can be part of a URL."""
        return f"{self.run_id} | {case_key(self.problem, self.variant)}"

    @property
    def group(self) -> str:
        """Its op and variant; cases of one group have the same colour and marker."""
        return f"{self.problem.op}/{self.variant}"

    @property
    def time_s(self) -> float:
        return self.figure.estimate

    @property
    def intensity(self) -> float | None:
        return roofline.arithmetic_intensity(self.cost) if self.cost else None

    @property
    def rate_flop_per_s(self) -> float | None:
        return roofline.rate_flop_per_s(self.cost, self.time_s) if self.cost else None

    @property
    def bandwidth_bytes_per_s(self) -> float | None:
        return roofline.bandwidth_bytes_per_s(self.cost, self.time_s) if self.cost else None

    @property
    def commands(self) -> ProfilerCommands | None:
        """The commands that profile a call of the case; None if no profiler can."""
        return profiler_commands(self.problem, self.variant) if self.on_gpu else None

    @property
    def traffic_ratio(self) -> float | None:
        """The measured traffic of device memory over the least traffic; see `counters.traffic_ratio`."""
        return traffic_ratio(self.cost, self.counters)

    @property
    def drawable(self) -> bool:
        return bool(self.intensity and self.rate_flop_per_s)


def placed(
    run: Run,
    name: str,
    measured: Sequence[Roof],
    against: Sequence[Roof],
    headline: Headline = "cold",
    sheet: Sequence[Roof] = (),
) -> tuple[Placed, ...]:
    """The correct timed cases of a run in plan order, compared with the roofs `against`. `measured`: the roofs from which the
    limiter is derived in any case. `sheet`: those of the data sheet. `name`: the name of the run."""
    device = run.environment.device
    timed = ((result, figure_of(result.timing, headline)) for result in in_plan_order(run))
    return tuple(
        Placed(
            run_id=run.id,
            run_name=name,
            device=device.name,
            problem=result.problem,
            variant=result.variant,
            figure=msgspec.structs.replace(figure, samples=None, blocks=None),
            cost=result.cost,
            light=(light := roofline.speed_of_light(result.problem, result.cost, against, headline)),
            share=roofline.efficiency(light, figure),
            above_roof=above_roof(result.cost, light, figure, headline)
            if light and result.cost and not stability(figure).unstable
            else None,
            limiter=limiter(result, device, measured, headline),
            quality=quality(result, headline, run.method.clock),
            on_gpu=device.kind == "cuda",
            counters=result.hardware_counters,
            beside=run.plan.variants,
            levels=stability(figure),
            ceilings=compute_ceilings(result.problem, result.cost, figure, device, measured, sheet),
        )
        for result, figure in timed
        if figure is not None
    )
