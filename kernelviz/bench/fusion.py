"""Use case: what fusing saves. Which runs show it, how one is measured, and the rows of a run. For page, CLI and Python."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, get_args

import msgspec

from kernelviz.bench import recording, run_files
from kernelviz.bench.bench import Bench
from kernelviz.bench.comparison import opened
from kernelviz.bench.roofline import with_empty_kernel
from kernelviz.bench.summaries import RunSummary
from kernelviz.core import LIVING, BadField, Device, Method, Plan, Problem, Roof, Run, RunRequest, check_name
from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.fusion import FusionFamily
from kernelviz.hardware.last_level_cache import last_level_cache
from kernelviz.metrics.fusion import DeclaredFusion, FusionRow, Payoff, axes_along, fusion_rows, launch_slope_s, payoff
from kernelviz.metrics.fusion_prediction import LaunchCost, LaunchSource, PredictionA, PredictionB
from kernelviz.metrics.roof_checks import is_wide
from kernelviz.ops import Op
from kernelviz.ops.catalog.fusion import Fusion
from kernelviz.text.fusion import describe_reasons

FAMILIES: tuple[FusionFamily, ...] = get_args(FusionFamily)
BUDGET_S = 0.3
"""Largest device time for each case of a measurement that the page starts, in seconds."""
LARGER, SMALLER = (2,), (4, 16, 64, 256, 1024, 4096)
"""The sweep over the intermediate tensors: the default size times and over these."""
_LAUNCHES = "empty_launch"


def fused_ops(bench: Bench) -> dict[FusionFamily, tuple[Op, ...]]:
    """The ops that declare a fusion, by family, both in their own order."""
    collected: dict[FusionFamily, list[Op]] = {family: [] for family in FAMILIES}
    for op in bench.ops().values():
        if op.fusion is not None:
            collected[op.fusion.family].append(op)
    return {family: tuple(ops) for family, ops in collected.items()}


def fusion_of(bench: Bench, op: str) -> tuple[Op, Fusion]:
    """The op and its fusion. Errors: UnknownName with the ops that declare one."""
    known = {one.name: one for ops in fused_ops(bench).values() for one in ops}
    check_name("op", op, known)
    fusion = known[op].fusion
    assert fusion is not None
    return known[op], fusion


def plan_of(
    bench: Bench,
    op: str,
    device_id: str | None = None,
    *,
    sizes: dict[str, str] | None = None,
    dtype: str | None = None,
) -> Plan:
    """The plan that shows the fusion of an op: its compositions and its fused variants that can run there.

    Without `sizes`: the sizes at which each intermediate tensor has at least four times the last-level cache, a sweep of that
    tensor around them, and the sweep of the arithmetic that the op declares. On a CPU the sweeps are around `cpu_sizes`, because
    the large ones would take minutes. Errors: UnknownName; BadField for sizes, and if no composition or no fused variant can run.
    """
    known, fusion = fusion_of(bench, op)
    device = bench.device(device_id or bench.default_device())
    chosen_dtype = dtype or (fusion.dtype if device.kind == "cuda" else fusion.cpu_dtype)
    names = runnable(bench, op, device.id)
    for what, declared in (("composition", fusion.unfused), ("fused variant", fusion.fused)):
        if not set(declared) & set(names):
            raise BadField(
                "op",
                op,
                f"no {what} of it can run on {device.name}: it has {', '.join(declared)}; choose another device",
            )
    every = _sweep(known, fusion, device, chosen_dtype) if sizes is None else [{a: str(s) for a, s in sizes.items()}]
    plans = [
        bench.plan(RunRequest(op=op, sizes=one, dtype=chosen_dtype, variants=names, device=device.id)) for one in every
    ]
    problems = {problem.key: problem for plan in plans for problem in plan.problems}
    return msgspec.structs.replace(plans[0], problems=tuple(problems.values()))


def runnable(bench: Bench, op: str, device_id: str) -> tuple[str, ...]:
    """The variants of compositions and the fused ones that can run on a device, in the order of the ladder."""
    _, fusion = fusion_of(bench, op)
    wanted = {*fusion.unfused, *fusion.fused}
    return tuple(o.variant.name for o in bench.offers(op, device_id) if o.available and o.variant.name in wanted)


def can_run(bench: Bench, op: str, device_id: str) -> bool:
    """Whether a composition and a fused variant of the op can run on a device."""
    _, fusion = fusion_of(bench, op)
    names = set(runnable(bench, op, device_id))
    return bool(names & set(fusion.unfused)) and bool(names & set(fusion.fused))


def first_able(bench: Bench, family: FusionFamily, device_id: str) -> str | None:
    """The first op of a family that can run on a device; None if there is none."""
    return next((op.name for op in fused_ops(bench)[family] if can_run(bench, op.name, device_id)), None)


def default_sizes(fusion: Fusion, device: Device, dtype: str) -> dict[str, int]:
    """The sizes that the page begins with on a device."""
    if device.kind != "cuda":
        return dict(fusion.cpu_sizes)
    cache = last_level_cache(device)
    return fusion.default_sizes(dtype_named(dtype).itemsize_bytes, None if cache is None else cache.size_bytes)


def _sweep(op: Op, fusion: Fusion, device: Device, dtype: str) -> list[dict[str, str]]:
    start = default_sizes(fusion, device, dtype)
    size = start[fusion.grows]
    shares = SMALLER if device.kind == "cuda" else SMALLER[:4]
    grown = {size, *(size * factor for factor in LARGER), *(size // share for share in shares if size >= share)}
    work = fusion.work
    worked = () if work is None else work.sizes if device.kind == "cuda" else work.cpu_sizes
    texts = [{**start, fusion.grows: value} for value in sorted(grown)]
    texts += [{**start, work.axis: value} for value in worked] if work is not None else []
    return [{axis: str(value) for axis, value in one.items()} for one in texts]


def start(
    bench: Bench,
    op: str,
    device_id: str | None = None,
    *,
    sizes: dict[str, str] | None = None,
    dtype: str | None = None,
    budget_s: float = BUDGET_S,
    owner: str = "",
) -> str:
    """Measure the plan of `plan_of`, cold device times only, and return the id of the run at once. Errors: as `plan_of`."""
    plan = plan_of(bench, op, device_id, sizes=sizes, dtype=dtype)
    device = bench.device(plan.device)
    return bench.run(plan, Method(budget_s=budget_s), owner=owner, title=f"fusion of {op}, {device.name}")


def record(bench: Bench, run_id: str, folder: Path) -> Path:
    """Write a run in the compact form to a folder such as docs/runs, and return the file, named by device and op. The indices
    of kernelviz/shipped are derived again. Errors: UnknownRun."""
    run = bench.load(run_id)
    name = recording.name_of(bench, f"fusion-{run.plan.op}", run.plan.device)
    recording.write(run, name, folder)
    if (folder / "index.json").is_file():
        recording.write_indices(folder)
    return folder / f"{name}{recording.ENDING}"


def shows_fusion(bench: Bench, summary: RunSummary) -> bool:
    """Whether the plan of a run has a composition and a fused variant of an op that declares a fusion, at a forward problem. It
    need not have results: a run that was cancelled before the first one can be resumed."""
    op = bench.ops().get(summary.op)
    if op is None or op.fusion is None:
        return False
    plan = bench.history.times(summary.id).plan
    variants = set(plan.variants)
    return _has_forward(plan) and bool(variants & set(op.fusion.unfused)) and bool(variants & set(op.fusion.fused))


def _has_forward(plan: Plan) -> bool:
    """Whether a problem is of the forward pass, which is what the fusion of an op is declared for."""
    return any(problem.direction == "forward" for problem in plan.problems)


def offered(bench: Bench, op: str) -> tuple[RunSummary, ...]:
    """The runs that show the fusion of an op: those of this machine, the newest first, then those that came with the package."""
    own = [run for run in bench.history.find(op, limit=200) if run.op == op]
    shipped = [run for run in bench.history.shipped() if run.op == op]
    return tuple(run for run in (*own, *shipped) if run.status in LIVING or _shows(bench, run))


def newest_of(bench: Bench, family: FusionFamily) -> RunSummary | None:
    """The run that a family begins with: the newest one of this machine that has results, else the one with the most results that
    came with the package."""
    runs = [run for op in fused_ops(bench)[family] for run in offered(bench, op.name)]
    own = [run for run in runs if not run.shipped and run.done]
    if own:
        return max(own, key=lambda run: run.created_at)
    return max((run for run in runs if run.shipped), key=lambda run: run.done, default=None)


def rows_of(bench: Bench, run_id: str) -> tuple[FusionRow, ...]:
    """The rows of a stored run. Errors: UnknownRun; BadField for a run of an op without a fusion."""
    summary = bench.history.openable(run_id)
    return rows_of_run(bench, bench.load(run_id)) if summary.status in LIVING else _rows(bench, summary)


def rows_of_sources(bench: Bench, sources: Sequence[str]) -> tuple[FusionRow, ...]:
    """The rows of runs. Each source is the id of a run, a document, or a backup, of which runs without a fusion are left out.

    Errors: UnknownRun, BadField, DocumentError.
    """
    collected: list[FusionRow] = []
    for source in sources:
        path = Path(source)
        if not path.is_file() and source in bench.ops():
            remedy = f"it is an op; name a run or a file, or measure it: `kernelviz fusion --measure {source}`"
            raise BadField("RUN", source, remedy)
        several = run_files.read(path) if path.is_file() else (opened(bench, source),)
        for run in several:
            if run.plan.op in _names(bench):
                if len(several) == 1 and not _has_forward(run.plan):
                    raise BadField("RUN", source, "it is a run of a backward pass; a fusion is that of a forward pass")
                collected += rows_of_run(bench, run)
            elif len(several) == 1:
                having = ", ".join(sorted(_names(bench)))
                raise BadField(
                    "RUN", source, f"it is a run of {run.plan.op}, which declares no fusion. Ops that do: {having}"
                )
    return tuple(collected)


def rows_of_run(bench: Bench, run: Run) -> tuple[FusionRow, ...]:
    """The rows of a run that may be in no store. Errors: UnknownName for an op without a fusion."""
    op, fusion = fusion_of(bench, run.plan.op)
    basis = basis_of(bench, run)
    return fusion_rows(run, basis.roofs, basis.launch, partial(declared_at, op, fusion))


@dataclass(frozen=True, slots=True)
class Basis:
    """What the predictions of a run are based on. `same_model`: the name of the run whose roofs these are, if they were measured
    on another GPU of the model, because the run itself has none."""

    roofs: tuple[Roof, ...]
    launch: LaunchCost | None
    same_model: str | None = None


def basis_of(bench: Bench, run: Run) -> Basis:
    """The roofs of the run's own machine and time, else of this machine, else of a shipped run of the same model."""
    device = run.environment.device
    roofs, other = bench.roofs_of(run), None
    if not roofs and device.kind == "cuda":
        for summary in bench.history.shipped():
            if summary.device == device.name and (collected := bench.history.times(summary.id).environment.roofs):
                roofs, other = collected, summary.id
                break
    known = with_empty_kernel(roofs, device.name)
    return Basis(known, launch_cost(bench, device, known), other)


def launch_cost(bench: Bench, device: Device, roofs: Sequence[Roof]) -> LaunchCost | None:
    """What one more kernel adds to the device time of a call: the slope of the run of `empty_launch` that came with the package
    for this model of GPU, else the time of an empty kernel; on a CPU the time of one call of torch. None if nothing was measured.

    Runs of this machine do not count, so that a run has the same predictions wherever it is opened.
    """
    for summary in bench.history.shipped(_LAUNCHES) if device.kind == "cuda" else ():
        if (summary.op, summary.device) == (_LAUNCHES, device.name):
            slope = launch_slope_s(bench.load(summary.id))
            if slope is not None:
                return LaunchCost(slope, "empty_launch")
    what: LaunchSource = "empty_kernel" if device.kind == "cuda" else "torch_call"
    roof = next((r for r in roofs if r.what == what and r.time_s and not is_wide(r)), None)
    return None if roof is None or roof.time_s is None else LaunchCost(roof.time_s, what)


def declared_at(op: Op, fusion: Fusion, problem: Problem) -> DeclaredFusion:
    """What the op declares about a problem; no steps for a problem with other axes."""
    itemsize = dtype_named(problem.dtype).itemsize_bytes
    whole = set(problem.sizes) == set(op.axis_names)
    steps = {v: fusion.steps_of(v, problem.sizes, itemsize) for v in fusion.unfused} if whole else {}
    return DeclaredFusion(
        family=fusion.family, steps={name: of for name, of in steps.items() if of is not None}, fused=fusion.fused
    )


def _names(bench: Bench) -> set[str]:
    return {op.name for ops in fused_ops(bench).values() for op in ops}


# Reading a run of a hundred cases takes 50 ms, and a page asks again at each redraw.
@lru_cache(maxsize=64)
def _rows(bench: Bench, summary: RunSummary) -> tuple[FusionRow, ...]:
    return rows_of_run(bench, bench.load(summary.id))


@lru_cache(maxsize=256)
def _shows(bench: Bench, summary: RunSummary) -> bool:
    return shows_fusion(bench, summary)


def records(table: Sequence[FusionRow]) -> list[dict[str, Any]]:
    """A record for each row, in the SI base units that the names state. Unknown is None. For JSON and data frames."""
    return [_record(row) for row in table]


def _record(row: FusionRow) -> dict[str, Any]:
    a, b = row.a, row.b
    low, high = (None, None) if row.speed_up is None else (row.speed_up.low, row.speed_up.high)
    return {
        "run": row.run_id,
        "device": row.device,
        "family": row.family,
        "op": row.problem.op,
        **row.problem.sizes,
        "dtype": row.problem.dtype,
        "unfused": row.unfused.variant,
        "fastest_composition": row.fastest,
        "steps": len(row.steps),
        "intermediate_bytes": row.intermediate_bytes,
        "cache_bytes": row.cache_bytes,
        "saved_bytes": row.saved.moved_bytes,
        "saved_launches": row.saved.launches,
        "saved_memsets": row.saved.memsets,
        "unfused_s": row.unfused_figure.estimate,
        "unfused_low_s": row.unfused_figure.low,
        "unfused_high_s": row.unfused_figure.high,
        "fused": row.fused.variant if row.fused else None,
        "fused_s": row.fused_figure.estimate if row.fused_figure else None,
        "fused_low_s": row.fused_figure.low if row.fused_figure else None,
        "fused_high_s": row.fused_figure.high if row.fused_figure else None,
        "verdict": row.verdict.kind if row.verdict else None,
        "speed_up": row.speed_up.estimate if row.speed_up else None,
        "speed_up_low": low,
        "speed_up_high": high,
        "predicted_a": row.predicted_a,
        "missing_a": None if isinstance(a, PredictionA) else a,
        "ln_error_a": row.error_a,
        "reasons_a": [str(text) for text in describe_reasons(row.reasons_a)],
        "predicted_b": row.predicted_b,
        "missing_b": None if isinstance(b, PredictionB) else b,
        "predicted_b_fused_s": b.fused_s if isinstance(b, PredictionB) else None,
        "bandwidth_b_bytes_per_s": b.bandwidth_bytes_per_s if isinstance(b, PredictionB) else None,
        "ln_error_b": row.error_b,
        "reasons_b": [str(text) for text in describe_reasons(row.reasons_b)],
    }


def payoffs_of(bench: Bench, table: Sequence[FusionRow]) -> dict[FusionFamily, tuple[Payoff, ...]]:
    """Where fusing pays along the axes that the ops of the rows declare: the longest line of each axis of each run."""
    collected: dict[FusionFamily, list[Payoff]] = {}
    for run_id, op in dict.fromkeys((row.run_id, row.problem.op) for row in table):
        _, fusion = fusion_of(bench, op)
        mine = [row for row in table if row.run_id == run_id and row.problem.op == op]
        for axis, line in axes_along(mine, fusion.axes).items():
            collected.setdefault(fusion.family, []).append(payoff(line, axis))
    return {family: tuple(of) for family, of in collected.items()}


def as_json(table: Sequence[FusionRow]) -> bytes:
    """The records as JSON with a line for each row."""
    lines = (msgspec.json.encode(record).decode() for record in records(table))
    return ("[\n" + ",\n".join(lines) + "\n]\n").encode()
