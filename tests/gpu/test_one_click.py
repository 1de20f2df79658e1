"""Every op as one click on the Bench page measures it: its default plan, by the queue and the worker of the product."""

import time

import pytest
from cases import WRONG
from figures import record

from kernelviz.bench import Bench
from kernelviz.core.events import RunEnded
from kernelviz.core.problem import QUICK
from kernelviz.core.result import Failure
from kernelviz.ops import catalogue

pytestmark = [pytest.mark.gpu, pytest.mark.xdist_group("gpu"), pytest.mark.timeout(300)]

FOUND: dict[str, dict[str, object]] = {}
"""Of each op that was clicked: cases, seconds, what failed; recorded after each, so that a part of the ops is something, too."""


@pytest.mark.parametrize("name", list(catalogue()))
def test_nothing_fails_but_what_is_published_wrong(bench: Bench, name: str) -> None:
    """All that is available and does not compile for seconds; what does is bound and checked in test_kernels."""
    began_s = time.monotonic()
    offered = [o.variant.name for o in bench.offers(name, "cuda:0") if o.available and not o.variant.late]
    run_id = bench.run(bench.plan(name, device="cuda:0", variants=tuple(offered)), QUICK, owner="test")
    ended = [event for _, event in bench.follow(run_id, timeout_s=120) if isinstance(event, RunEnded)]
    results = bench.load(run_id).results
    failed = {
        r.case.key: f"{r.outcome.stage}: {r.outcome.message}"
        for r in results
        if isinstance(r.outcome, Failure) and (name, r.variant) not in WRONG
    }
    FOUND[name] = {"cases": len(results), "seconds": time.monotonic() - began_s, "failed": failed}
    record("one_click", FOUND)
    assert [event.status for event in ended] == ["finished"]
    assert results
    assert failed == {}
