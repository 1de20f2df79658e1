"""Every op as one click on the Bench page measures it, by the queue and the worker of the product.

The part `one_click` measures the last size of each default sweep, where memory and time are short; the part `kernels` runs every
variant at small and odd sizes. ``--whole-sweep`` measures all sizes, which takes 10 to 20 minutes for all ops; a new op is
measured so once (``-k "[NAME]"``), for docs/gpu-figures.json.
"""

import os
import time
from dataclasses import replace

import msgspec
import pytest
from figures import record_some
from judged import unsolved, untrue_failures
from parts import part

from kernelviz.bench import Bench
from kernelviz.core.events import RunEnded
from kernelviz.core.problem import QUICK
from kernelviz.core.result import Failure
from kernelviz.ops import catalogue
from kernelviz.text.failures import describe_failure
from kernelviz.ui.bench.form import choices, default_form

pytestmark = [part("one_click"), pytest.mark.gpu, pytest.mark.timeout(300)]


@pytest.mark.parametrize("name", list(catalogue()))
def test_nothing_fails_but_what_cannot_be_solved(bench: Bench, name: str, pytestconfig: pytest.Config) -> None:
    """All that the form lets one pick but what runs only when it is named, and what compiles for seconds: that is measured in
    docs/h200-ladders.jsonl.gz."""
    began_s = time.monotonic()
    form = default_form(bench, name, "cuda:0")
    offered = choices(bench, catalogue()[name], form.device, form.dtype, form.compute, form.direction)
    wanted = tuple(
        c.variant.name for c in offered if c.usable and not c.variant.slow_compile and not c.variant.only_when_named
    )
    plan = replace(form, variants=wanted).plan(bench)
    whole = bool(pytestconfig.getoption("--whole-sweep", default=False))
    if not whole:
        plan = msgspec.structs.replace(plan, problems=plan.problems[-1:])
    run_id = bench.run(plan, QUICK, owner="test")
    ended = [event for _, event in bench.follow(run_id, timeout_s=240) if isinstance(event, RunEnded)]
    results = bench.load(run_id).results
    failed = {
        r.case.key: f"{r.outcome.stage}: {describe_failure(r.outcome)}"
        for r in results
        if isinstance(r.outcome, Failure)
    }
    made = [r.preparation for r in results if r.preparation is not None]
    found = {
        "cases": len(results),
        "seconds": time.monotonic() - began_s,
        "bind_s": sum(p.bind_s or 0.0 for p in made),
        "first_call_s": sum(p.first_call_s or 0.0 for p in made),
        "check_s": sum(p.check_s or 0.0 for p in made),
        "failed": failed,
        "processes": int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")),
    }
    record_some("one_click" if whole else "one_click_last_size", {name: found})
    assert [event.status for event in ended] == ["finished"]
    assert results
    assert untrue_failures(name, failed) == {}
    assert unsolved((r.case.key for r in results), failed) == set()
