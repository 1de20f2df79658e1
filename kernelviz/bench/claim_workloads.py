"""Use case: claims about workloads: the stored or recorded run that tests each, what hinders it here, and measuring it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernelviz.bench.bench import Bench
from kernelviz.bench.workload_history import WorkloadSummary
from kernelviz.bench.workload_plan import WorkloadRequest, device_choices, offers
from kernelviz.core import LIVING, Device, UnknownRun
from kernelviz.core.claim import Claim, WorkloadClaimCase
from kernelviz.formats import shipped_workloads
from kernelviz.metrics.claim_reasons import NeedsVariant, Obstacle, Refused
from kernelviz.metrics.claim_workloads import WorkloadEvidence
from kernelviz.metrics.claims import Assessment
from kernelviz.workloads.catalog import workloads

TITLE = "Claims:"
MOST_RUNS = 500
"""So many of the newest runs of workloads are looked through."""
JOINT = " + "
"""What is between the names of two devices in a summary."""


@dataclass(frozen=True, slots=True)
class WorkloadClaimRun:
    """A workload at values of its axes, with the variants that claims need. `claims`: their ids."""

    workload: str
    values: Mapping[str, int | str]
    variants: tuple[str, ...]
    claims: tuple[str, ...]

    @property
    def title(self) -> str:
        """The title of its run."""
        values = " ".join(f"{axis}={value}" for axis, value in self.values.items())
        return f"{TITLE} {self.workload} {values}"[:200]


def evidence_on(bench: Bench, device: Device, claims: Iterable[Claim]) -> dict[str, WorkloadEvidence]:
    """By the id of a claim, the newest run on that device that has all of its cases. Of two devices, the first counts."""
    wanted = {claim.id: claim.workload_cases for claim in claims if claim.workload_cases}
    names = {case.workload for cases in wanted.values() for case in cases}
    candidates = (
        evidence
        for summary in (bench.workloads.find(limit=MOST_RUNS) if wanted else ())
        if summary.workload in names and summary.done and device.name in summary.device.split(JOINT)
        if (evidence := _opened(bench, summary.id, device)) is not None
    )
    return _chosen(wanted, candidates)


def recorded_evidence(device_name: str, claims: Iterable[Claim]) -> dict[str, WorkloadEvidence]:
    """By the id of a claim, the run that came with the package and was measured on a device of that name."""
    wanted = {claim.id: claim.workload_cases for claim in claims if claim.workload_cases}
    runs = [(name, shipped_workloads.load(name)) for name in shipped_workloads.names()]
    newest = sorted(runs, key=lambda one: one[1].created_at, reverse=True)
    return _chosen(wanted, (WorkloadEvidence(n, r) for n, r in newest if r.environment.device.name == device_name))


def _opened(bench: Bench, run_id: str, device: Device) -> WorkloadEvidence | None:
    try:
        run = bench.workloads.load(run_id)
    except UnknownRun:  # it was deleted in the meantime
        return None
    return WorkloadEvidence(run_id, run) if any(one.uuid == device.uuid for one in run.devices) else None


def _chosen(
    wanted: Mapping[str, Sequence[WorkloadClaimCase]], candidates: Iterable[WorkloadEvidence]
) -> dict[str, WorkloadEvidence]:
    left, chosen = dict(wanted), {}
    for evidence in candidates:
        for claim_id in [i for i, cases in left.items() if all(evidence.result(case) is not None for case in cases)]:
            chosen[claim_id] = evidence
            del left[claim_id]
        if not left:
            break
    return chosen


def obstacle(claim: Claim, device: Device) -> Obstacle | None:
    """Why the cases of a claim cannot be measured on that device, or anywhere with this catalogue; None if they can."""
    for case in claim.workload_cases:
        declared = workloads().get(case.workload)
        variant = None if declared is None else declared.workload.variant_named(case.variant)
        if declared is None or variant is None:
            return NeedsVariant(case.workload, case.variant)
        lack = next(o.lack for o in offers(declared.workload, device) if o.variant.name == case.variant)
        if lack is not None:
            return Refused(case.variant, lack)
    return None


def workload_runs(
    assessments: Iterable[Assessment], claims: Sequence[str] | None = None
) -> tuple[WorkloadClaimRun, ...]:
    """The runs of workloads that test what can be tested on the device, or only these claims."""
    by_point: dict[str, list[tuple[WorkloadClaimCase, str]]] = {}
    for one in assessments:
        if not one.measurable or (claims is not None and one.claim.id not in claims):
            continue
        for case in one.claim.workload_cases:
            by_point.setdefault(f"{case.workload} {sorted(case.values.items())}", []).append((case, one.claim.id))
    return tuple(
        WorkloadClaimRun(
            needed[0][0].workload,
            needed[0][0].values,
            tuple(dict.fromkeys(case.variant for case, _ in needed)),
            tuple(dict.fromkeys(claim_id for _, claim_id in needed)),
        )
        for needed in by_point.values()
    )


def start(bench: Bench, run: WorkloadClaimRun, device_id: str, *, owner: str = "") -> str:
    """Measure a run, or the rest of it if it was cancelled or interrupted; returns its id at once. Errors: UnknownName, BadField,
    StoreError."""
    known = earlier(bench, device_id).get(run.title)
    if known is not None and known.status in LIVING:
        return known.id
    if known is not None and known.status != "finished":
        bench.workloads.resume(known.id, owner=owner)
        return known.id
    choices = device_choices(workloads()[run.workload].workload, bench.devices())
    of_device = next((choice for choice in choices if device_id in [device.id for device in choice]), None)
    devices = (device_id,) if of_device is None else tuple(device.id for device in of_device)
    values = {axis: str(value) for axis, value in run.values.items()}
    request = WorkloadRequest(workload=run.workload, variants=run.variants, values=values, devices=devices)
    return bench.workloads.run(bench.workloads.plan(request), owner=owner, title=run.title)


def earlier(bench: Bench, device_id: str) -> dict[str, WorkloadSummary]:
    """The newest stored run of claims of each title on that device."""
    device = bench.device(device_id)
    newest: dict[str, WorkloadSummary] = {}
    for run in bench.workloads.find(TITLE, limit=MOST_RUNS):
        if device.name in run.device.split(JOINT) and run.title.startswith(TITLE):
            newest.setdefault(run.title, run)
    return newest
