"""Published claims for scripts and notebooks: the verdicts on a device, and measuring what they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz import bench as use_cases
from kernelviz.api.measurement import owner, wait_for_run
from kernelviz.api.report import Report, frame
from kernelviz.api.workloads import WorkloadReport, wait_for_workload
from kernelviz.bench import claim_runs, claim_workloads
from kernelviz.bench import claims as on_device
from kernelviz.bench.claims_document import markdown
from kernelviz.core import BadField
from kernelviz.tables.claims import record

if TYPE_CHECKING:
    import pandas as pd


def _opened(device: str | None, recorded: str | None) -> on_device.ClaimsOnDevice:
    if recorded is not None and device is not None:
        raise BadField("recorded", recorded, "it has a device of its own; leave out device")
    return on_device.opened(use_cases.current(), device, recorded)


def claims(
    *,
    source: str | None = None,
    verdict: str | None = None,
    op: str | None = None,
    device: str | None = None,
    recorded: str | None = None,
) -> pd.DataFrame:
    """Published numbers with what the device measures: one row for each claim, with its verdict and the reason.

    Numbers are in SI base units. recorded: results that come with kernelviz, by the name of the device. Errors: UnknownName, with
    the known names; BadField for a device beside recorded results.
    """
    of_device = _opened(device, recorded)
    chosen = on_device.selected(of_device.assessments, source=source, verdict=verdict, op=op)
    return frame([record(one) for one in chosen])


def measure_claims(*names: str, device: str | None = None, again: bool = False) -> tuple[Report | WorkloadReport, ...]:
    """Measure what claims need on a device, all that can be tested there or those of these names, and wait for the runs.

    What has results is not measured again unless `again` is set. An interrupt cancels the present run, and the same call goes on.
    Errors: UnknownName, BadField, StoreError.
    """
    bench = use_cases.current()
    where = bench.device(device or bench.default_device()).id
    of_device = on_device.claims_on(bench, where)
    missing = claim_runs.to_measure(bench, of_device, names or None, again=again)
    of_ops = [wait_for_run(bench, claim_runs.start(bench, one, where, owner=owner())) for one in missing]
    workloads = claim_runs.workloads_to_measure(of_device, names or None, again=again)
    starts = (claim_workloads.start(bench, one, where, owner=owner()) for one in workloads)
    return (*of_ops, *(wait_for_workload(run_id) for run_id in starts))


def claims_markdown(*, device: str | None = None, recorded: str | None = None) -> str:
    """The table of claims as a Markdown document, as docs/claims.md is. Errors: as `claims`."""
    return markdown(use_cases.current(), _opened(device, recorded))
