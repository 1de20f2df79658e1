"""Untrusted variants on a GPU: all cheats are refused, honest variants are not, and the judge does not move the times."""

import re
import time
from pathlib import Path

import pytest
from figures import record
from parts import part

from kernelviz.bench import Bench
from kernelviz.core import ClockConfirmed, ClockUnverified, Failure, Method, Run, RunRequest
from kernelviz.text import describe_failure

pytestmark = [part("untrusted"), pytest.mark.gpu, pytest.mark.xdist_group("gpu"), pytest.mark.timeout(600)]

CHEATS = Path(__file__).parents[1] / "planted_cheats.py"
N = 2**26
"""Elements of the sums of the cheats: eight of them take 1.5 ms on an H200, so that a time of a twentieth is contradicted."""
ON_PROCESSORS = {"patches_the_flush", "patches_the_clock", "patches_the_clock_later"}
"""What patches the host's clock, or the flush for processors, changes no time of a GPU."""
SHIFT, SHIFT_BELOW_20_US = 0.003, 0.01


def measured(bench: Bench, op: str, sizes: dict[str, str], variants: tuple[str, ...], method: Method) -> Run:
    plugins = (str(CHEATS),) if op == "add" else ()
    request = RunRequest(op=op, sizes=sizes, variants=variants, device="cuda:0", plugins=plugins, baseline=variants[0])
    run_id = bench.run(bench.plan(request), method, owner="test")
    for _ in bench.follow(run_id, timeout_s=500):
        pass
    return bench.load(run_id)


def test_every_cheat_is_refused_or_marked(bench: Bench) -> None:
    names = tuple(re.findall(r"^@cheat\ndef (\w+)", CHEATS.read_text(), re.MULTILINE))
    assert len(names) == CHEATS.read_text().count("@cheat\n") > 20
    begun = time.monotonic()
    run = measured(bench, "add", {"n": str(N)}, ("torch_eager", *names), Method(budget_s=0.1, judge=True))
    found = {}
    for result in run.results:
        if isinstance(result.outcome, Failure):
            found[result.variant] = f"{result.outcome.stage}: {describe_failure(result.outcome)}"
        else:
            notes = result.conditions.notes if result.conditions else ()
            found[result.variant] = ", ".join(type(n).__name__ for n in notes)
    record("cheats", {"found": found, "seconds_a_case": (time.monotonic() - begun) / len(run.results)})
    passed = {r.variant for r in run.results if not isinstance(r.outcome, Failure)}
    assert "torch_eager" in passed
    assert passed - ON_PROCESSORS == {"torch_eager"}


@pytest.mark.parametrize(
    ("op", "sizes"),
    [
        ("add", {"n": "2^14"}),
        ("add", {"n": "2^24"}),
        ("add", {"n": "2^26"}),
        ("matmul", {"m": "2048", "n": "2048", "k": "2048"}),
    ],
)
def test_a_judge_does_not_move_the_times(bench: Bench, op: str, sizes: dict[str, str]) -> None:
    """A/A: the same variant in ordinary runs and judged, in an order in which what rises evenly, such as heat, moves neither."""
    times: dict[bool, list[float]] = {False: [], True: []}
    marks = []
    for judged in (False, True, True, False):
        method = Method(budget_s=0.5, judge=True) if judged else Method(budget_s=0.5)
        (result,) = measured(bench, op, sizes, ("torch_eager",), method).results
        assert result.timing is not None, result.outcome
        assert result.timing.device_cold_s is not None
        times[judged].append(result.timing.device_cold_s.estimate)
        notes = result.conditions.notes if result.conditions else ()
        marks += [type(n).__name__ for n in notes if isinstance(n, ClockConfirmed | ClockUnverified)]
    shift = sum(times[True]) / sum(times[False]) - 1
    case = f"{op} {' '.join(sizes.values())}"
    record(f"judged {case}", {"ordinary_s": times[False], "judged_s": times[True], "shift": shift, "marks": marks})
    assert len(marks) == 2
    limit = SHIFT if min(times[False]) >= 20e-6 else SHIFT_BELOW_20_US
    assert abs(shift) <= limit
