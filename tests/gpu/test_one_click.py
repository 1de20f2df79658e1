"""Every op as one click on the Bench page measures it: its default plan, by the queue and the worker of the product."""

from collections import Counter

import pytest
from cases import WRONG
from figures import record

from kernelviz.bench import Bench
from kernelviz.core.events import RunEnded
from kernelviz.core.problem import QUICK
from kernelviz.core.result import Failure
from kernelviz.ops import catalogue

pytestmark = [pytest.mark.gpu, pytest.mark.xdist_group("gpu"), pytest.mark.timeout(900)]


def test_no_op_fails_but_in_what_is_published_wrong(bench: Bench) -> None:
    """All that is available and does not compile for seconds; what does is bound and checked in test_kernels."""
    measured: Counter[str] = Counter()
    failed: dict[str, str] = {}
    for name in catalogue():
        offered = [o.variant.name for o in bench.offers(name, "cuda:0") if o.available and not o.variant.late]
        run_id = bench.run(bench.plan(name, device="cuda:0", variants=tuple(offered)), QUICK, owner="test")
        ended = [event for _, event in bench.follow(run_id, timeout_s=300) if isinstance(event, RunEnded)]
        assert [event.status for event in ended] == ["finished"], name
        for result in bench.load(run_id).results:
            measured[name] += 1
            if isinstance(result.outcome, Failure) and (name, result.variant) not in WRONG:
                failed[result.case.key] = f"{result.outcome.stage}: {result.outcome.message}"
    record("one_click", {"ops": len(measured), "cases": measured.total(), "failed": failed})
    assert failed == {}
