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
    from kernelviz import plots as plots
    from kernelviz.api import Report as Report
    from kernelviz.api import compare as compare
    from kernelviz.api import history as history
    from kernelviz.api import inspect as inspect
    from kernelviz.api import ladders as ladders
    from kernelviz.api import library_comparison as library_comparison
    from kernelviz.api import load as load
    from kernelviz.api import load_all as load_all
    from kernelviz.api import regress as regress
    from kernelviz.api import resume as resume
    from kernelviz.api import resume_tuning as resume_tuning
    from kernelviz.api import roofline as roofline
    from kernelviz.api import run as run
    from kernelviz.api import runs as runs
    from kernelviz.api import selftest as selftest
    from kernelviz.api import trends as trends
    from kernelviz.api import tune as tune
    from kernelviz.api import tunings as tunings

__version__ = "0.1.0"

_HOMES = {
    "Report": "kernelviz.api",
    "compare": "kernelviz.api",
    "history": "kernelviz.api",
    "inspect": "kernelviz.api",
    "ladders": "kernelviz.api",  # the former name of library_comparison
    "library_comparison": "kernelviz.api",
    "load": "kernelviz.api",
    "load_all": "kernelviz.api",
    "regress": "kernelviz.api",
    "resume": "kernelviz.api",
    "resume_tuning": "kernelviz.api",
    "roofline": "kernelviz.api",
    "run": "kernelviz.api",
    "runs": "kernelviz.api",
    "selftest": "kernelviz.api",
    "trends": "kernelviz.api",
    "tune": "kernelviz.api",
    "tunings": "kernelviz.api",
    "plots": "",
}

__all__ = [
    "Report",
    "compare",
    "history",
    "inspect",
    "ladders",
    "library_comparison",
    "load",
    "load_all",
    "plots",
    "regress",
    "resume",
    "resume_tuning",
    "roofline",
    "run",
    "runs",
    "selftest",
    "trends",
    "tune",
    "tunings",
]


def __getattr__(name: str) -> object:
    """The public name, imported now (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'kernelviz' has no attribute {name!r}")
    home = _HOMES[name]
    public: object = (
        getattr(importlib.import_module(home), name) if home else importlib.import_module(f"kernelviz.{name}")
    )
    globals()[name] = public
    return public


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
