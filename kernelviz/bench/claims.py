"""Use case: published claims on a device: which of them can be tested there, and the verdict of each by what was measured."""

import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import get_args

from kernelviz.bench import claim_workloads, planning
from kernelviz.bench.bench import Bench
from kernelviz.core import BadField, Device, Roof, Run, UnknownName, UnknownRun, check_name
from kernelviz.core.claim import Claim, ClaimCase, ClaimCollection, DataSheetTest, NoTest, RoofTest, TimeTest
from kernelviz.core.problem import Problem, case_key
from kernelviz.formats import recorded_claims
from kernelviz.formats.claim_files import shipped_claims
from kernelviz.hardware.datasheet import data_sheet_shares, datasheet
from kernelviz.metrics.absences import FIELDS
from kernelviz.metrics.claim_reasons import (
    ClaimVerdict,
    NeedsCapability,
    NeedsCard,
    NeedsGpus,
    NeedsKind,
    NeedsMemory,
    NeedsVariant,
    NeedsWork,
    Obstacle,
    Refused,
    Wrong,
)
from kernelviz.metrics.claim_workloads import WorkloadEvidence
from kernelviz.metrics.claims import Assessment, Evidence, Facts, Scale, assess
from kernelviz.metrics.statistics import Interval
from kernelviz.ops import Op, catalogue

VERDICTS: tuple[ClaimVerdict, ...] = get_args(ClaimVerdict)
_MOST_ASSESSED = 4096
# By bench, because an id of a run says nothing about a run of another store.
_assessed: weakref.WeakKeyDictionary[Bench, dict[tuple[object, ...], Assessment]] = weakref.WeakKeyDictionary()
_assessing = threading.Lock()


@dataclass(frozen=True, slots=True)
class ClaimsOnDevice:
    """All claims with their verdicts on one device. `recorded`: the name of a recorded device; None: a device of this machine."""

    device: Device
    assessments: tuple[Assessment, ...]
    recorded: str | None = None


def recorded_devices() -> dict[str, str]:
    """The devices on which claims were recorded: the name of the device by the name of its folder."""
    return {name: runs[0].environment.device.name for name in recorded_claims.names() if (runs := _recorded_runs(name))}


def claims_on(bench: Bench, device_id: str, collection: ClaimCollection | None = None) -> ClaimsOnDevice:
    """Every claim with its verdict by what was measured on a device of this machine. `collection`: other claims than those that
    come with kernelviz. Errors: UnknownName."""
    device, ops = bench.device(device_id), bench.ops()
    claims = (collection or shipped_claims()).claims
    keys = {case.key: key for claim in claims for case in claim.cases if (key := key_of(ops, case)) is not None}
    stored = bench.history.results_on(device.uuid, list(dict.fromkeys(keys.values())))
    by_key: dict[str, list[tuple[str, int]]] = {}
    for key, run_id, revision in stored:
        by_key.setdefault(key, []).append((run_id, revision))
    roofs = bench.roofs(device_id)
    gpus = sum(d.kind == "cuda" and d.usable for d in bench.devices())
    of_workloads = claim_workloads.evidence_on(bench, device, claims)
    return ClaimsOnDevice(
        device,
        tuple(
            _assessed_here(
                bench,
                claim,
                device,
                roofs,
                obstacle(bench, claim, device, gpus),
                keys,
                by_key,
                of_workloads.get(claim.id),
            )
            for claim in claims
        ),
    )


def opened(bench: Bench, device_id: str | None, recorded: str | None) -> ClaimsOnDevice:
    """The claims on a recorded device, or on one of this machine, by default its own. Errors: UnknownName."""
    if recorded is not None:
        return recorded_claims_on(recorded)
    return claims_on(bench, device_id or bench.default_device())


def recorded_claims_on(name: str) -> ClaimsOnDevice:
    """Every claim with its verdict by the recorded runs of that name. Errors: UnknownName."""
    check_name("recorded device", name, recorded_claims.names())
    return _recorded(name)


@lru_cache(maxsize=4)
def _recorded(name: str) -> ClaimsOnDevice:
    runs, ops = _recorded_runs(name), catalogue()
    device = runs[0].environment.device
    roofs = next((run.environment.roofs for run in runs if run.environment.roofs), ())
    results = {run.id: {result.case.key: result for result in run.results} for run in runs}
    of_workloads = claim_workloads.recorded_evidence(device.name, shipped_claims().claims)
    assessments = []
    for claim in shipped_claims().claims:
        keys = {case.key: key for case in claim.cases if (key := key_of(ops, case)) is not None}
        candidates = [
            {case: Evidence(run, results[run.id][key]) for case, key in keys.items() if key in results[run.id]}
            for run in runs
        ]
        evidence = of_workloads.get(claim.id)
        gpus = 1 if evidence is None else len(evidence.run.devices)
        lacks = _obstacle_of_device(claim, device, gpus) or _obstacle_of_catalogue(claim, ops)
        facts = _facts(claim, device, roofs, lacks, _chosen(claim, candidates), evidence)
        assessments.append(_with_caption(assess(claim, facts), ops))
    return ClaimsOnDevice(device, tuple(assessments), name)


def _with_caption(assessment: Assessment, ops: Mapping[str, Op]) -> Assessment:
    """The assessment of a wrong result with the caption of its variant, which names the mistake."""
    wrong, op = assessment.reason, ops.get(assessment.claim.op or "")
    if not isinstance(wrong, Wrong) or op is None:
        return assessment
    caption = next((v.summary for v in op.variants if v.name == wrong.variant), "")
    return replace(assessment, reason=replace(wrong, caption=caption))


@lru_cache(maxsize=4)
def _recorded_runs(name: str) -> tuple[Run, ...]:
    return tuple(sorted(recorded_claims.load(name), key=lambda run: run.created_at, reverse=True))


def named(assessments: Iterable[Assessment], claim_id: str) -> Assessment:
    """The assessment of the claim with that id. Errors: UnknownName with the nearest ones."""
    by_id = {a.claim.id: a for a in assessments}
    check_name("claim", claim_id, by_id)
    return by_id[claim_id]


def selected(
    assessments: Sequence[Assessment], *, source: str | None = None, verdict: str | None = None, op: str | None = None
) -> tuple[Assessment, ...]:
    """Those of a source, with a verdict, or of an op; None: all. Those measured on the device come first, then those that can be
    measured, then data sheets and arithmetic, each in the order of the sources. Errors: UnknownName with the known names."""
    if source is not None:
        check_name("source", source, [s.name for s in shipped_claims().sources])
    if verdict is not None:
        check_name("verdict", verdict, VERDICTS)
    if op is not None:
        check_name("op", op, ops_of(assessments))
    chosen = (
        a
        for a in assessments
        if source in (None, a.claim.source) and verdict in (None, a.verdict) and op in (None, a.claim.op)
    )
    return tuple(sorted(chosen, key=_rank))


def _rank(assessment: Assessment) -> int:
    """Measured cases first, then what can be measured, then data sheets and arithmetic, then the rest."""
    if assessment.measured is not None:
        return 0 if assessment.by_measurement else 2
    return 3 if assessment.verdict == "cannot be tested here" else 1


def ops_of(assessments: Iterable[Assessment]) -> tuple[str, ...]:
    """The ops that claims are about, each once."""
    return tuple(dict.fromkeys(a.claim.op for a in assessments if a.claim.op is not None))


def problem_of(op: Op, case: ClaimCase) -> Problem:
    """The problem of a case. Errors: UnknownName, BadField."""
    return op.problem(case.sizes, case.dtype, compute=case.compute, direction=case.direction, data=case.data)


def key_of(ops: Mapping[str, Op], case: ClaimCase) -> str | None:
    """The key of a case; None if the catalogue has no such op or variant."""
    op = ops.get(case.op)
    if op is None:
        return None
    try:
        return case_key(problem_of(op, case), op.variant_named(case.variant).name)
    except (UnknownName, BadField):
        return None


def obstacle(bench: Bench, claim: Claim, device: Device, gpus: int) -> Obstacle | None:
    """Why a claim cannot be tested on that device; None if it can. `gpus`: how many usable GPUs the machine has."""
    lacks = _obstacle_of_device(claim, device, gpus) or _obstacle_of_catalogue(claim, bench.ops())
    if lacks is not None:
        return lacks
    if claim.workload_cases:
        return claim_workloads.obstacle(claim, device)
    for case in claim.cases:
        op = bench.ops()[case.op]
        variant = op.variant_named(case.variant)
        offer = next(o for o in bench.offers(case.op, device.id) if o.variant.name == variant.name.partition("[")[0])
        if offer.lack is not None:
            return Refused(case.variant, offer.lack)
        large = planning.too_large(op, device, (problem_of(op, case),))
        if large:
            return NeedsMemory(large[0].needed_bytes)
    return None


def _obstacle_of_device(claim: Claim, device: Device, gpus: int) -> Obstacle | None:
    needs = claim.conditions
    if isinstance(claim.test, NoTest):
        return NeedsWork(claim.test.takes)
    if needs.cards and device.name not in needs.cards:
        return NeedsCard(needs.cards)
    if needs.capability is not None and (device.compute_capability or (0, 0)) < needs.capability:
        return NeedsCapability(needs.capability)
    if needs.kind is not None and device.kind != needs.kind:
        return NeedsKind(needs.kind)
    if needs.gpus > 1 and gpus < needs.gpus:
        return NeedsGpus(needs.gpus)
    if needs.memory_bytes is not None and (device.memory_bytes or 0) < needs.memory_bytes:
        return NeedsMemory(needs.memory_bytes)
    return None


def _obstacle_of_catalogue(claim: Claim, ops: Mapping[str, Op]) -> Obstacle | None:
    for case in claim.cases:
        if key_of(ops, case) is None:
            return NeedsVariant(case.op, case.variant)
        op = ops[case.op]
        refusal = op.variant_named(case.variant).refuses(problem_of(op, case))
        if refusal is not None:
            return Refused(case.variant, refusal)
    return None


def _assessed_here(
    bench: Bench,
    claim: Claim,
    device: Device,
    roofs: Sequence[Roof],
    lacks: Obstacle | None,
    keys: Mapping[str, str],
    by_key: Mapping[str, Sequence[tuple[str, int]]],
    of_workload: WorkloadEvidence | None,
) -> Assessment:
    """The assessment, made again only if results of its cases, roofs or the obstacle have changed."""
    stored = {case.key: tuple(by_key.get(keys[case.key], ())) for case in claim.cases if case.key in keys}
    of_roof = tuple(roof.measured_at for roof in roofs) if isinstance(claim.test, RoofTest) else ()
    depends_on = (repr(claim), device.uuid, repr(lacks), of_roof, tuple(stored.values()), _identity(of_workload))
    with _assessing:
        known = _assessed.setdefault(bench, {}).get(depends_on)
    if known is not None:
        return known
    results = {} if lacks is not None else _stored_results(bench, claim, keys, stored)
    assessed = assess(claim, _facts(claim, device, roofs, lacks, results, of_workload))
    assessment = _with_caption(assessed, bench.ops())
    with _assessing:
        of_bench = _assessed.setdefault(bench, {})
        if len(of_bench) >= _MOST_ASSESSED:
            of_bench.clear()
        of_bench[depends_on] = assessment
    return assessment


def _identity(evidence: WorkloadEvidence | None) -> tuple[str, int] | None:
    """What changes when other results of a workload count."""
    return None if evidence is None else (evidence.run_id, len(evidence.run.results))


def _stored_results(
    bench: Bench,
    claim: Claim,
    keys: Mapping[str, str],
    stored: Mapping[str, Sequence[tuple[str, int]]],
) -> dict[str, Evidence]:
    candidates = []
    for run_id in dict.fromkeys(run_id for of_case in stored.values() for run_id, _ in of_case):
        try:
            run = bench.load(run_id)
        except UnknownRun:  # it was deleted in the meantime
            continue
        results = {result.case.key: result for result in run.results}
        candidates.append({case: Evidence(run, results[keys[case]]) for case in stored if keys[case] in results})
        if len(_usable(claim, candidates[-1])) == len(stored):
            break
    return _chosen(claim, candidates)


def _chosen(claim: Claim, candidates: Sequence[Mapping[str, Evidence]]) -> dict[str, Evidence]:
    """The results of the newest run that has all cases of the claim, because they share rounds, else the newest of each case.
    `candidates`: of each run, the newest first."""
    usable = [_usable(claim, one) for one in candidates]
    together = next((one for one in usable if len(one) == len({case.key for case in claim.cases})), None)
    if together is not None:
        return together
    return {case: one[case] for one in reversed(usable) for case in one}


def _usable(claim: Claim, results: Mapping[str, Evidence]) -> dict[str, Evidence]:
    """Those that have the figure of their case, or failed: measured in bursts, and not by live mode, which ends early."""
    fields = {case.key: FIELDS[case.figure] for case in claim.cases}
    return {
        key: one
        for key, one in results.items()
        if one.run.method.clock == "burst"
        and not one.run.method.decided_is_enough
        and not one.result.given_up
        and (one.result.timing is None or getattr(one.result.timing, fields[key]) is not None)
    }


def _facts(
    claim: Claim,
    device: Device,
    roofs: Sequence[Roof],
    lacks: Obstacle | None,
    results: Mapping[str, Evidence],
    of_workload: WorkloadEvidence | None,
) -> Facts:
    return Facts(
        data_sheet=_data_sheet,
        roof=lambda test: _roof(test, roofs, device),
        scale=scale_of(claim, device),
        obstacle=lacks,
        results=results,
        workload=of_workload,
        device=device.name,
    )


def _data_sheet(test: DataSheetTest) -> float | None:
    sheet = datasheet(test.card)
    if sheet is None:
        return None
    if test.precision is None:
        return sheet.bandwidth_bytes_per_s
    peak = sheet.peaks.get(test.precision)
    return None if peak is None else peak.rate_flop_per_s


def _roof(test: RoofTest, roofs: Sequence[Roof], device: Device) -> Interval | None:
    """The best roof of that kind; of streams, one of which the cache holds next to nothing."""
    of_kind = [
        roof
        for roof in roofs
        if roof.name == test.roof and roof.precision == test.precision and roof.level in (None, "dram")
    ]
    best = next(iter(data_sheet_shares(of_kind, datasheet(device.name), device.last_level_cache_bytes)), None)
    if best is None:
        return None
    roof = best.roof
    value = roof.bandwidth_bytes_per_s or roof.rate_flop_per_s or 0.0
    return Interval(value, value if roof.low is None else roof.low, value if roof.high is None else roof.high)


def scale_of(claim: Claim, device: Device) -> Scale | None:
    """How a number of the source's card becomes one of this device: by the ratio of both data sheets; None as it stands."""
    if claim.scaled_by is None or claim.published_on is None or not isinstance(claim.test, TimeTest | RoofTest):
        return None
    source, here = (_peak(name, claim.scaled_by) for name in (claim.sheet_card or claim.published_on, device.name))
    if source is None or here is None:
        return None
    factor = source / here if claim.published.unit == "s" else here / source
    return Scale(claim.scaled_by, claim.published_on, device.name, factor)


def _peak(card: str, quantity: str) -> float | None:
    return _data_sheet(DataSheetTest(card=card, precision=None if quantity == "bandwidth" else quantity))


def measured_at(bench: Bench, of_device: ClaimsOnDevice) -> str | None:
    """When the newest run behind the verdicts was made (ISO time); None if nothing was measured."""
    used = {run_id for a in of_device.assessments for run_id in a.run_ids}
    if of_device.recorded is not None:
        of_ops = [run.created_at for run in _recorded_runs(of_device.recorded)]
        of_workloads = [created_at(bench, run_id) for run_id in used if bench.workloads.is_known(run_id)]
        return max(of_ops + of_workloads)
    return max((created_at(bench, run_id) for run_id in used), default=None)


def created_at(bench: Bench, run_id: str) -> str:
    """When a run was made, of ops or of a workload (ISO time). Errors: UnknownRun."""
    of_workload = bench.workloads.is_known(run_id)
    return (bench.workloads if of_workload else bench.history).summary(run_id).created_at
