"""Use case: a transformer layer op by op, with the results that a device has, and against the layer as one module.

The results of a part are those of its problem: of this machine's device, or recorded on a device of that name. Of each variant
the newest result counts, one of today's source first.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

from kernelviz.bench.bench import Bench
from kernelviz.bench.fusion import basis_of
from kernelviz.core import Device, Problem, Result, Roof, Run, UnknownName, UnknownRun
from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import case_key
from kernelviz.core.workload import WorkloadResult, WorkloadRun
from kernelviz.formats import recorded_claims, recorded_times, shipped_runs, shipped_workloads
from kernelviz.metrics.claims import Evidence
from kernelviz.metrics.figures import figure_of
from kernelviz.metrics.layer_times import (
    WAYS,
    FusionTimes,
    LayerSum,
    PartTimes,
    VariantTime,
    comparable_sums,
    layer_sum,
)
from kernelviz.metrics.quality import quality
from kernelviz.metrics.roofline import speed_of_light
from kernelviz.metrics.winner import NEVER_WINNING
from kernelviz.models.parts import LayerCall, LayerPart, Role, checked_call, layer_fusions, layer_parts
from kernelviz.models.presets import ModelPreset, preset_named
from kernelviz.ops import Op, catalogue

COMPILED = "torch_compile"
_BY_LIBRARY: tuple[Role, ...] = ("matmul", "attention")
"""Roles for which a compiled layer calls the library of the eager one: a product, and scaled_dot_product_attention. The variant
`torch_compile` of attention compiles its single steps, which no layer contains."""
WORKLOAD = "transformer_layer"


@dataclass(frozen=True, slots=True)
class Source:
    """Whose results are shown: a device of this machine, or one whose results came with the package (`recorded`)."""

    device: Device
    recorded: bool = False

    @property
    def name(self) -> str:
        """How the address and commands name it."""
        return self.device.name if self.recorded else self.device.id


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer on a device. `truth`: the result of each variant of the newest run of the whole layer, and that run."""

    preset: ModelPreset
    call: LayerCall
    source: Source
    parts: tuple[PartTimes, ...]
    fusions: tuple[FusionTimes, ...]
    truth_run: WorkloadRun | None = None
    truth: tuple[WorkloadResult, ...] = ()

    @property
    def sums(self) -> tuple[LayerSum, ...]:
        """The sum of every way over the parts that have a time in that way."""
        return tuple(layer_sum(self.parts, way) for way in WAYS)

    @property
    def comparable(self) -> tuple[LayerSum, ...]:
        """The sums over the parts that have a time in all ways."""
        return comparable_sums(self.parts)


def recorded_sources() -> tuple[Source, ...]:
    """The devices whose results came with the package, the one with the most results of layers first."""
    known = {run.environment.device.name: run.environment.device for run in _recorded_runs()}
    sources = [Source(device, recorded=True) for device in known.values()]
    return tuple(sorted(sources, key=recorded_layers, reverse=True))


def recorded_layers(source: Source) -> int:
    """How many results of whole layers, and of the ops of layers, came with the package for the device."""
    return _recorded_layers()[source.device.name]


def source_named(bench: Bench, name: str | None) -> Source:
    """The source of that name: the id of a device here, or the name of a recorded one. By default this machine's GPU, or without
    one the recorded device with the most results of layers. Errors: UnknownName."""
    usable = {d.id: Source(d) for d in bench.devices() if d.usable}
    recorded = {source.name: source for source in recorded_sources()}
    if name is None:
        own = bench.default_device()
        return usable[own] if bench.device(own).kind == "cuda" or not recorded else next(iter(recorded.values()))
    known = {**usable, **recorded}
    if name not in known:
        raise UnknownName("device", name, known)
    return known[name]


def call_of(preset: str, phase: str, batch: int, context: int, dtype: str) -> tuple[ModelPreset, LayerCall]:
    """The model and its call, checked. Errors: UnknownName, BadField."""
    model = preset_named(preset)
    return model, checked_call(model, phase, batch, context, dtype)


def opened(bench: Bench, preset: ModelPreset, call: LayerCall, source: Source) -> Layer:
    """The layer with everything that is known of it on a device."""
    parts = layer_parts(preset, call)
    fusions = layer_fusions(preset, call)
    problems = {p.key: p for p in (*(p.problem for p in parts if p.problem), *(f.problem for f in fusions))}
    results = _results(bench, source, tuple(problems.values()))
    roofs = _roofs(bench, source, results)
    run, truth = _truth(bench, call, source)
    return Layer(
        preset,
        call,
        source,
        tuple(_part_times(bench, part, results, roofs) for part in parts),
        tuple(
            FusionTimes(f.name, f.parts, f.problem, _part_times(bench, _as_part(f.name, f.problem), results, roofs))
            for f in fusions
        ),
        run,
        truth,
    )


def _as_part(name: str, problem: Problem) -> LayerPart:
    return LayerPart(name=name, role="glue", problem=problem)


def _part_times(
    bench: Bench, part: LayerPart, results: Mapping[str, Sequence[Evidence]], roofs: Sequence[Roof]
) -> PartTimes:
    problem = part.problem
    if problem is None:
        return PartTimes(part, part.cost, missing="no_op")
    op = bench.ops()[problem.op]
    if problem.dtype not in op.dtypes:
        return PartTimes(part, None, missing="number_format")
    cost = op.cost(problem.sizes, dtype_named(problem.dtype).itemsize_bytes)
    light = speed_of_light(problem, cost, roofs)
    names = {variant.name for variant in op.variants if variant.refuses(problem) is None}
    return PartTimes(
        part,
        cost,
        _times(op, results.get(problem.key, ())),
        op.baseline,
        COMPILED if COMPILED in names and part.role not in _BY_LIBRARY else None,
        None,
        None if light is None else light.time_s,
    )


def _times(op: Op, evidence: Sequence[Evidence]) -> tuple[VariantTime, ...]:
    """The newest result of each variant, one of today's source first."""
    today = {variant.name: variant for variant in op.variants}
    by_variant: dict[str, list[tuple[bool, Evidence]]] = {}
    for one in evidence:
        known = today.get(one.result.variant.partition("[")[0])
        same = known is not None and one.result.source_digest == known.source_digest()
        by_variant.setdefault(one.result.variant, []).append((same, one))
    collected = []
    for variant, several in by_variant.items():
        same, one = max(several, key=lambda pair: (pair[0], pair[1].run.created_at))
        result = one.result
        level = quality(result, "cold", one.run.method.clock)
        collected.append(
            VariantTime(
                variant,
                figure_of(result.timing, "cold"),
                None if level is None else level.level,
                _is_wrong(result),
                one.run.id,
                _is_recorded(one.run.id),
                same if result.source_digest is not None else None,
            )
        )
    return tuple(sorted(collected, key=lambda t: t.figure.estimate if t.figure else float("inf")))


def _is_wrong(result: Result) -> bool:
    stage = getattr(result.outcome, "stage", None)
    return stage in NEVER_WINNING


@lru_cache(maxsize=2)
def _recorded_for(of: recorded_claims.Recorded) -> tuple[Run, ...]:
    return tuple(run for name in recorded_claims.names(of) for run in recorded_claims.load(name, of))


@lru_cache(maxsize=1)
def _recorded_layers() -> Counter[str]:
    """How many results of whole layers and of their ops came with the package, by the name of the device. The page asks at each
    redraw."""
    counts: Counter[str] = Counter()
    for whole in map(shipped_workloads.load, shipped_workloads.names()):
        if whole.plan.workload == WORKLOAD:
            counts[whole.devices[0].name] += sum(not result.given_up for result in whole.results)
    for run in _recorded_for("models"):
        counts[run.environment.device.name] += len(run.results)
    return counts


def _is_recorded(run_id: str) -> bool:
    """Whether the run came with the package: one of claims, of layers, or of the gallery."""
    return run_id in _ids_of_claims() or run_id in shipped_runs.lines()


@lru_cache(maxsize=1)
def _ids_of_claims() -> frozenset[str]:
    return frozenset(run.id for of in get_args(recorded_claims.Recorded) for run in _recorded_for(of))


def _results(bench: Bench, source: Source, problems: Sequence[Problem]) -> dict[str, list[Evidence]]:
    """The usable results of each problem on the device, by the key of the problem."""
    keys = {problem.key for problem in problems}
    collected: dict[str, list[Evidence]] = {}
    for run in (*_own_runs(bench, source, problems), *_recorded_with(source, keys)):
        if run.plan.search is not None or not _counts(run):
            continue
        for result in run.results:
            if result.problem.key in keys and not result.given_up:
                collected.setdefault(result.problem.key, []).append(Evidence(run, result))
    return collected


def _counts(run: Run) -> bool:
    """Whether its times are those of bursts, measured to the end."""
    return run.method.clock == "burst" and not run.method.decided_is_enough


def _own_runs(bench: Bench, source: Source, problems: Sequence[Problem]) -> Iterable[Run]:
    if source.recorded:
        return
    keys = [
        case_key(problem, variant.name) for problem in problems for variant in catalogue_of(bench, problem.op).variants
    ]
    stored = bench.history.results_on(source.device.uuid, keys)
    for run_id in dict.fromkeys(run_id for _, run_id, _ in stored):
        try:
            yield bench.load(run_id)
        except UnknownRun:  # it was deleted in the meantime
            continue


def catalogue_of(bench: Bench, op: str) -> Op:
    """The op of that name. Errors: UnknownName."""
    known = bench.ops()
    if op not in known:
        raise UnknownName("op", op, catalogue())
    return known[op]


def _recorded_runs() -> tuple[Run, ...]:
    """The recorded runs: of claims, of layers, and of the gallery the times alone (`formats.recorded_times`)."""
    of_claims = (run for of in get_args(recorded_claims.Recorded) for run in _recorded_for(of))
    return (*of_claims, *map(recorded_times.load, shipped_runs.names()))


def _recorded_on(source: Source) -> tuple[Run, ...]:
    return tuple(run for run in _recorded_runs() if run.environment.device.name == source.device.name)


def _recorded_with(source: Source, keys: Set[str]) -> Iterator[Run]:
    """Those that have one of these problems, whole. To read all of the gallery would take seconds."""
    for run in _recorded_on(source):
        if any(problem.key in keys for problem in run.plan.problems):
            yield shipped_runs.load(run.id) if run.id in shipped_runs.lines() else run


def _roofs(bench: Bench, source: Source, results: Mapping[str, Sequence[Evidence]]) -> tuple[Roof, ...]:
    """The roofs of this device, else those of the newest run with results, else of a recorded run of the model."""
    if not source.recorded and (own := bench.roofs(source.device.id)):
        return own
    runs = {one.run.id: one.run for several in results.values() for one in several}
    newest = sorted((*runs.values(), *_recorded_on(source)), key=lambda run: run.created_at, reverse=True)
    with_roofs = next((run for run in newest if run.environment.roofs), None)
    return () if with_roofs is None else basis_of(bench, with_roofs).roofs


def truth_values(call: LayerCall) -> dict[str, int | str]:
    """The values of the axes of the workload for a call."""
    return {
        "model": call.preset,
        "phase": call.phase,
        "batch": call.batch,
        "context": call.context,
        "dtype": call.dtype,
    }


def _truth(bench: Bench, call: LayerCall, source: Source) -> tuple[WorkloadRun | None, tuple[WorkloadResult, ...]]:
    """The newest run of the whole layer on the device with a result of this call, and its results of the call."""
    wanted = truth_values(call)
    here = [] if source.recorded else [r for r in bench.workloads.find(WORKLOAD, limit=200) if r.workload == WORKLOAD]
    for summary in (*here, *bench.workloads.shipped(WORKLOAD)):
        if summary.device != source.device.name:
            continue
        run = bench.workloads.load(summary.id)
        results = tuple(r for r in run.results if r.case.values == wanted and not r.given_up)
        if results:
            return run, results
    return None, ()
