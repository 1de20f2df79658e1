"""Use case: measure what a layer needs on a device, a run for each problem, and the layer as one module."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kernelviz.bench import planning, recording, titled_runs
from kernelviz.bench.bench import Bench
from kernelviz.bench.best import known_card
from kernelviz.bench.model import COMPILED, WORKLOAD, Layer, catalogue_of, truth_values
from kernelviz.bench.model_mix import DECODE_BATCH, PREFILL_TOKENS
from kernelviz.bench.summaries import RunSummary
from kernelviz.bench.workload_plan import WorkloadRequest
from kernelviz.core import LIVING, BadField, Device, Method, Plan, Problem, RunRequest
from kernelviz.core.backends import BACKENDS
from kernelviz.core.units import typed_size
from kernelviz.ops import Op

BUDGET_S = 0.3
"""Largest device time for each case, in seconds."""
USUAL_ROWS = (DECODE_BATCH, PREFILL_TOKENS)
"""Rows of a product in a decoding step of 64 sequences and in a prefill of 4,096 tokens."""
TITLE = "Model:"
"""How the titles of the runs begin."""


@dataclass(frozen=True, slots=True)
class ModelRun:
    """One problem of a layer with the variants that are measured. `parts`: what it is in the layer. `product`: whether it
    contains a matrix product."""

    problem: Problem
    parts: tuple[str, ...]
    product: bool

    @property
    def title(self) -> str:
        """The title of its run."""
        sizes = " ".join(f"{axis}={typed_size(size)}" for axis, size in self.problem.sizes.items())
        return f"{TITLE} {self.problem.op} {self.problem.precision} {sizes}"


@dataclass(frozen=True, slots=True)
class ModelProgress:
    """Where the measurements of a layer are. `current`: a run that is measured now or waits, of any layer on the device; None
    without one. `stopped`: how many runs were cancelled or interrupted and can be continued."""

    runs: int
    runs_done: int
    current: str | None
    waiting: int
    stopped: int
    truth: RunSummary | None = None


def runs_of(layer: Layer) -> tuple[ModelRun, ...]:
    """The problems of the parts and of the fused ops, each once."""
    names: dict[str, tuple[Problem, list[str]]] = {}
    products = {part.name for part in layer.parts if part.part.role == "matmul"}
    products |= {fusion.name for fusion in layer.fusions if products.intersection(fusion.parts)}
    for part in layer.parts:
        if part.part.problem is not None and part.missing is None:
            names.setdefault(part.part.problem.key, (part.part.problem, []))[1].append(part.name)
    for fusion in layer.fusions:
        if fusion.fused.missing is None:
            names.setdefault(fusion.problem.key, (fusion.problem, []))[1].append(fusion.name)
    return tuple(
        ModelRun(problem, tuple(parts), product=not products.isdisjoint(parts)) for problem, parts in names.values()
    )


def missing_runs(bench: Bench, layer: Layer) -> tuple[ModelRun, ...]:
    """Those without a result of the baseline. A run that was cancelled before the others are done is among them, too."""
    known = {part.part.problem.key: part for part in layer.parts if part.part.problem is not None}
    known |= {fusion.problem.key: fusion.fused for fusion in layer.fusions}
    stopped = {
        title
        for title, run in titled_runs.newest_by_title(bench, TITLE, layer.source.device.id).items()
        if run.status != "finished"
    }
    return tuple(
        run
        for run in runs_of(layer)
        if run.title in stopped
        or not any(t.variant == known[run.problem.key].baseline for t in known[run.problem.key].times)
    )


def plan_of(bench: Bench, run: ModelRun, device_id: str) -> Plan:
    """The plan: the baseline, torch.compile, libraries, and the own variants that a user would get in either phase, of which can
    run there; on a CPU, which no rule is about, those that the op puts first. Errors: BadField if the problem does not fit into
    the memory of the device."""
    op, problem = catalogue_of(bench, run.problem.op), run.problem
    device = bench.device(device_id)
    if planning.too_large(op, device, (problem,)):
        raise BadField(
            "context", problem.key, f"it does not fit into the memory of {device.name}; name a smaller batch or context"
        )
    wanted = {op.baseline, COMPILED, *_worth_measuring(op, run, device)}
    names = tuple(
        offer.variant.name
        for offer in bench.offers(op.name, device_id)
        if offer.available and offer.variant.name in wanted and offer.variant.refuses(problem) is None
    )
    sizes = {axis: str(size) for axis, size in problem.sizes.items()}
    return bench.plan(RunRequest(op=op.name, sizes=sizes, dtype=problem.dtype, variants=names, device=device_id))


def _worth_measuring(op: Op, run: ModelRun, device: Device) -> Iterator[str]:
    card = known_card(device)
    if card is None or op.best is None:
        yield from op.first
        return
    # A product has other variants in the other phase; a traffic mix needs the times of each of them in both.
    served = [run.problem]
    if run.product:
        served += [msgspec.structs.replace(run.problem, sizes={**run.problem.sizes, "m": rows}) for rows in USUAL_ROWS]
    for one in served:
        yield from op.best(one, card)
    for variant in op.variants:
        if not BACKENDS[variant.backend].written_here and not variant.slow_compile and not variant.only_when_named:
            yield variant.name


def start(bench: Bench, run: ModelRun, device_id: str, *, owner: str = "") -> str:
    """Measure a run, or the rest of it; returns its id at once. Errors: UnknownName, BadField, StoreError."""
    earlier = titled_runs.newest_by_title(bench, TITLE, device_id).get(run.title)
    return titled_runs.start(
        bench, plan_of(bench, run, device_id), Method(budget_s=BUDGET_S), run.title, earlier, owner
    )


def start_all(bench: Bench, layer: Layer, *, again: bool = False, owner: str = "") -> tuple[str, ...]:
    """Queue everything that has no result yet on the device, or (`again`) everything. Returns the ids of the runs. Errors:
    UnknownName, BadField, StoreError; BadField for a recorded device."""
    if layer.source.recorded:
        raise BadField(
            "device", layer.source.name, "its results were recorded elsewhere; choose a device of this machine"
        )
    device_id = layer.source.device.id
    runs = runs_of(layer) if again else missing_runs(bench, layer)
    for run in runs:  # all are checked before the first one begins
        plan_of(bench, run, device_id)
    return tuple(start(bench, run, device_id, owner=owner) for run in runs)


def cancel_all(bench: Bench, device_id: str) -> None:
    """Cancel every run of layers on the device; results so far stay. Errors: BadField for one that another process measures."""
    titled_runs.cancel(bench, TITLE, device_id)


def progress(bench: Bench, layer: Layer) -> ModelProgress:
    """Where the measurements of a layer are on its device."""
    device_id = layer.source.device.id
    earlier = titled_runs.newest_by_title(bench, TITLE, device_id)
    living = titled_runs.living(bench, TITLE, device_id)
    runs, missing = runs_of(layer), missing_runs(bench, layer)
    stopped = sum(r.title in earlier and earlier[r.title].status in ("cancelled", "interrupted") for r in missing)
    return ModelProgress(
        runs=len(runs),
        runs_done=len(runs) - len(missing),
        current=living[0].id if living else None,
        waiting=max(0, len(living) - 1),
        stopped=stopped,
    )


def start_truth(bench: Bench, layer: Layer, *, owner: str = "", budget_s: float | None = None) -> str:
    """Measure the layer as one module, eager and compiled, and return the id of the run of the workload at once. Errors: as
    `Workloads.plan`; BadField for a recorded device."""
    if layer.source.recorded:
        raise BadField(
            "device", layer.source.name, "its results were recorded elsewhere; choose a device of this machine"
        )
    request = WorkloadRequest(
        workload=WORKLOAD,
        values={axis: str(value) for axis, value in truth_values(layer.call).items()},
        devices=(layer.source.device.id,),
        budget_s=budget_s,
    )
    return bench.workloads.run(bench.workloads.plan(request), owner=owner, title=_truth_title(layer))


def _truth_title(layer: Layer) -> str:
    call = layer.call
    return f"Layer of {layer.preset.title}, {call.phase}, batch {call.batch}, context {call.context}, {call.dtype}"


def living_truth(bench: Bench, layer: Layer) -> str | None:
    """The run of the whole layer that is measured now or waits; None without one."""
    title = _truth_title(layer)
    runs: Sequence[str] = [
        r.id for r in bench.workloads.find(WORKLOAD, limit=50) if r.title == title and r.status in LIVING
    ]
    return runs[0] if runs else None


def record(bench: Bench, layer: Layer, folder: Path) -> tuple[str, ...]:
    """Write the runs of this machine behind the times of a layer to a folder, in the compact form of recorded runs, and return
    their names. `kernelviz/shipped/models/DEVICE` is where the package looks for them."""
    times = [time for part in (*layer.parts, *(fusion.fused for fusion in layer.fusions)) for time in part.times]
    names = []
    for run_id in dict.fromkeys(time.run_id for time in times if not time.recorded):
        run = bench.load(run_id)
        name = re.sub(r"[^a-z0-9]+", "-", run.title.lower()).strip("-")[:70] + f"-{run_id[-6:]}"
        recording.write(run, name, folder)
        names.append(name)
    return tuple(names)
