"""The use cases of `kernelviz.bench` for scripts and notebooks. No server is needed.

import kernelviz as kv
report = kv.run("rmsnorm", sizes={"m": 4096, "n": "2^10..2^14"}, dtype="bf16")
report.to_frame()
kv.plots.latency_by_size(report)
"""

from kernelviz.api.artifacts import code, code_diff, code_facts, code_listing, code_page
from kernelviz.api.best_calls import BestCall, best, best_variant
from kernelviz.api.checklists import checklist
from kernelviz.api.comparisons import Compared, compare, fusion, gallery, library_comparison, regress, roofline, trends
from kernelviz.api.devices import data_sheets
from kernelviz.api.further_recordings import fetch_recordings, recordings, remove_recordings
from kernelviz.api.hardware_counters import counters, profiler_commands
from kernelviz.api.ladder_reports import LadderReport, ladder
from kernelviz.api.measurement import Tuned, inspect, resume, resume_tuning, run, selftest, size_text, tune, tunings
from kernelviz.api.models import LayerReport, model
from kernelviz.api.precompilation import precompile
from kernelviz.api.published_claims import claims, claims_markdown, measure_claims
from kernelviz.api.report import Report, history, load, load_all, runs
from kernelviz.api.tuning_analysis import Configurations, TransferMatrix, configurations, transfer
from kernelviz.api.workloads import (
    WorkloadReport,
    compare_workloads,
    load_workload,
    resume_workload,
    workload,
    workload_runs,
)

ladders = library_comparison
"""The former name of `library_comparison`."""

__all__ = [
    "BestCall",
    "Compared",
    "Configurations",
    "LadderReport",
    "LayerReport",
    "Report",
    "TransferMatrix",
    "Tuned",
    "WorkloadReport",
    "best",
    "best_variant",
    "checklist",
    "claims",
    "claims_markdown",
    "code",
    "code_diff",
    "code_facts",
    "code_listing",
    "code_page",
    "compare",
    "compare_workloads",
    "configurations",
    "counters",
    "data_sheets",
    "fetch_recordings",
    "fusion",
    "gallery",
    "history",
    "inspect",
    "ladder",
    "ladders",
    "library_comparison",
    "load",
    "load_all",
    "load_workload",
    "measure_claims",
    "model",
    "precompile",
    "profiler_commands",
    "recordings",
    "regress",
    "remove_recordings",
    "resume",
    "resume_tuning",
    "resume_workload",
    "roofline",
    "run",
    "runs",
    "selftest",
    "size_text",
    "transfer",
    "trends",
    "tune",
    "tunings",
    "workload",
    "workload_runs",
]
