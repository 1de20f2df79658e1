"""Untrusted variants on a GPU: all cheats are refused, honest variants are not, and the judge does not move the times."""

import re
from pathlib import Path

import pytest
from figures import record, record_some
from parts import part

from kernelviz.bench import Bench
from kernelviz.core import ClockConfirmed, ClockUnverified, Failure, Method, Run, RunRequest
from kernelviz.core.reasons import ClockContradicted
from kernelviz.text import describe_failure

pytestmark = [pytest.mark.gpu, pytest.mark.xdist_group("gpu"), pytest.mark.timeout(600)]

CHEATS = Path(__file__).parents[1] / "planted_cheats.py"
N = 2**26
"""Elements of the sums of the cheats: eight of them take 1.5 ms on an H200, so that a time of a twentieth is contradicted."""
ON_PROCESSORS = {"patches_the_flush", "patches_the_clock", "patches_the_clock_later"}
"""What patches the host's clock, or the flush for processors, changes no time of a GPU. tests/test_cheats.py asks whether it is
seen when these functions are replaced."""
BY_THE_CLOCK = {"forges_the_result", "memo_by_content", "reads_the_reference"}
"""Found by the judge's own clock, which needs the GPU for itself."""
GROUPS = 4
"""Each untrusted variant gets a worker of its own, which takes most of its seven seconds; groups run beside each other."""
SHIFT, SHIFT_BELOW_20_US = 0.003, 0.01


def measured(bench: Bench, op: str, sizes: dict[str, str], variants: tuple[str, ...], method: Method) -> Run:
    plugins = (str(CHEATS),) if op == "add" else ()
    request = RunRequest(op=op, sizes=sizes, variants=variants, device="cuda:0", plugins=plugins, baseline=variants[0])
    run_id = bench.run(bench.plan(request), method, owner="test")
    for _ in bench.follow(run_id, timeout_s=500):
        pass
    return bench.load(run_id)


@pytest.fixture
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A time that the judge contradicts is not measured again: that helps honest variants on busy machines only, and each attempt
    starts a worker."""
    monkeypatch.setattr("kernelviz.worker.supervisor.JUDGED_TIMES", 1)


def refusals(bench: Bench, names: tuple[str, ...]) -> dict[str, Failure]:
    """The failures among these cheats and torch's own sum, all judged in one run."""
    run = measured(bench, "add", {"n": str(N)}, ("torch_eager", *names), Method(budget_s=0.1, judge=True))
    found = {}
    failed: dict[str, Failure] = {}
    for result in run.results:
        if isinstance(result.outcome, Failure):
            failed[result.variant] = result.outcome
            found[result.variant] = f"{result.outcome.stage}: {describe_failure(result.outcome)}"
        else:
            notes = result.conditions.notes if result.conditions else ()
            found[result.variant] = ", ".join(type(n).__name__ for n in notes)
    record_some("cheats", found)
    assert found.keys() == {"torch_eager", *names}
    return failed


@part("smoke")
@pytest.mark.usefixtures("once")
@pytest.mark.parametrize("group", range(GROUPS))
def test_each_cheat_is_refused(bench: Bench, group: int) -> None:
    """Beside other tests on the GPU, where the judge's clock may contradict any time: so it must be needed for none of these."""
    every = re.findall(r"^@cheat\ndef (\w+)", CHEATS.read_text(), re.MULTILINE)
    assert len(every) == CHEATS.read_text().count("@cheat\n") > 20
    elsewhere = ON_PROCESSORS | BY_THE_CLOCK
    assert set(every) > elsewhere
    names = tuple(name for name in every if name not in elsewhere)[group::GROUPS]
    failed = refusals(bench, names)
    by_the_clock = {
        name for name, failure in failed.items() if any(isinstance(r, ClockContradicted) for r in failure.reasons)
    }
    assert failed.keys() - by_the_clock == set(names)


@part("untrusted")
@pytest.mark.usefixtures("once")
def test_the_clock_of_the_judge_finds_cheats_and_no_honest_variant(bench: Bench) -> None:
    assert refusals(bench, tuple(sorted(BY_THE_CLOCK))).keys() == BY_THE_CLOCK


MOVED: dict[str, dict[str, str]] = {
    "add": {"n": "2^14,2^24,2^26"},
    "matmul": {"m": "2048", "n": "2048", "k": "2048"},
}


@part("untrusted")
def test_a_judge_moves_no_time(bench: Bench) -> None:
    """A/A: the same variant judged and in ordinary runs, in an order in which what rises evenly, such as heat, moves neither. The
    judge of the test before is still there, and each change from one kind of run to the other costs the start of a worker."""
    times: dict[str, dict[bool, list[float]]] = {}
    marks: dict[str, list[str]] = {}
    for judged in (True, False, False, True):
        method = Method(budget_s=0.5, judge=True) if judged else Method(budget_s=0.5)
        runs = [measured(bench, op, sizes, ("torch_eager",), method) for op, sizes in MOVED.items()]
        for result in (result for run in runs for result in run.results):
            assert result.timing is not None, result.outcome
            assert result.timing.device_cold_s is not None
            key = result.problem.key
            times.setdefault(key, {False: [], True: []})[judged].append(result.timing.device_cold_s.estimate)
            notes = result.conditions.notes if result.conditions else ()
            mine = [type(n).__name__ for n in notes if isinstance(n, ClockConfirmed | ClockUnverified)]
            marks.setdefault(key, []).extend(mine)
    assert len(times) == 4
    shifts = {key: sum(found[True]) / sum(found[False]) - 1 for key, found in times.items()}
    for key, found in times.items():
        told = {"ordinary_s": found[False], "judged_s": found[True], "shift": shifts[key], "marks": marks[key]}
        record(f"judged {key}", told)
    for key, found in times.items():
        assert (len(found[False]), len(found[True]), len(marks[key])) == (2, 2, 2), key
        limit = SHIFT if min(found[False]) >= 20e-6 else SHIFT_BELOW_20_US
        assert abs(shifts[key]) <= limit, (key, shifts)
