"""The use cases, shared by pages, CLI, notebooks and tests: plan, run, follow, cancel, resume, load, calibrate.

`current()` is the process's one Bench. Nothing here imports torch or triton; measuring happens in another process.
"""

from __future__ import annotations

import threading

from kernelviz.bench.bench import Bench
from kernelviz.bench.summaries import Offer, Progress, RunSummary

__all__ = ["Bench", "Offer", "Progress", "RunSummary", "current"]

_making = threading.Lock()
_made: Bench | None = None


def current() -> Bench:
    """The process's one Bench, made at the first call under a lock.

    It honours KERNELVIZ_HOME or KERNELVIZ_DATABASE_URL (where runs are), KERNELVIZ_PLUGINS (files with variants of one's
    own, separated as in PATH) and KERNELVIZ_RUNTIME_DIR (lock files). Errors: StoreError when the database cannot be used.
    """
    global _made
    with _making:
        if _made is None or _made.closed:
            _made = Bench.open()
        return _made
