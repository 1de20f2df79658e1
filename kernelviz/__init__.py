"""Measure variants of GPU kernels, check their results, and compare their speed.

    import kernelviz as kv
    report = kv.run("rmsnorm", sizes={"m": 4096, "n": "2^10..2^14"}, dtype="bf16")
    report.to_frame()
    kv.plots.latency_by_size(report)

Names are loaded at their first use, because the measuring process imports this package, too, and needs none of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernelviz import plots
    from kernelviz.api import (
        BestCall,
        LayerReport,
        Report,
        WorkloadReport,
        best,
        best_variant,
        checklist,
        claims,
        claims_markdown,
        code,
        code_diff,
        code_facts,
        code_listing,
        code_page,
        compare,
        compare_workloads,
        configurations,
        counters,
        data_sheets,
        fetch_recordings,
        fusion,
        gallery,
        history,
        inspect,
        ladder,
        ladders,
        library_comparison,
        load,
        load_all,
        load_workload,
        measure_claims,
        model,
        precompile,
        profiler_commands,
        recordings,
        regress,
        remove_recordings,
        resume,
        resume_tuning,
        resume_workload,
        roofline,
        run,
        runs,
        selftest,
        transfer,
        trends,
        tune,
        tunings,
        workload,
        workload_runs,
    )

__version__ = "0.1.0"

__all__ = [
    "BestCall",
    "LayerReport",
    "Report",
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
    "plots",
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
    "transfer",
    "trends",
    "tune",
    "tunings",
    "workload",
    "workload_runs",
]


def __getattr__(name: str) -> object:
    """The public name, imported now (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module 'kernelviz' has no attribute {name!r}")
    public: object = (
        importlib.import_module("kernelviz.plots")
        if name == "plots"
        else getattr(importlib.import_module("kernelviz.api"), name)
    )
    globals()[name] = public
    return public


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
