"""The use cases, which pages, CLI, notebooks and tests share: plan, run, follow, cancel, resume, load, calibrate.

`current()` is the one Bench of the process. Nothing here imports torch or triton; another process measures.
"""

import threading

from kernelviz.bench.bench import Bench
from kernelviz.bench.summaries import Offer, Progress, RunSummary

__all__ = ["Bench", "Offer", "Progress", "RunSummary", "current", "opened"]

_making = threading.Lock()
_bench: Bench | None = None


def current() -> Bench:
    """The one Bench of the process. It is made at the first call, under a lock.

    It uses KERNELVIZ_HOME or KERNELVIZ_DATABASE_URL (where runs are stored), KERNELVIZ_PLUGINS (files with users' own variants,
    separated as in PATH) and KERNELVIZ_RUNTIME_DIR (lock files). Errors: StoreError if the database cannot be used.
    """
    global _bench
    with _making:
        if _bench is None or _bench.closed:
            _bench = Bench.open()
        return _bench


def opened() -> Bench | None:
    """The Bench of the process, if `current` has made it."""
    return _bench
