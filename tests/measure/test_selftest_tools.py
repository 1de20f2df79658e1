"""What the selftest takes from outside: processes, ncu's rows, and the picture of a block from its records."""

from __future__ import annotations

import stat
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import pytest

from kernelviz.core.problem import Case, Problem
from kernelviz.core.run import Device
from kernelviz.measure.selftest import children
from kernelviz.measure.selftest.agreement import ncu_times
from kernelviz.measure.selftest.ncu_probe import TIMES
from kernelviz.measure.selftest.picture import timeline_of
from kernelviz.measure.selftest.verdicts import _whole_waves
from kernelviz.measure.selftest.workbench import NotHere, Stopped, Workbench
from kernelviz.measure.session.device_state import DeviceState
from kernelviz.measure.timing.trace import BEFORE_FLUSH, FLUSH, MARKER, POISON, Record, iterations
from kernelviz.plots.timeline import describe_timeline


def bench(stop: Any = lambda: False) -> Workbench:
    device = Device(id="cuda:0", kind="cuda", name="Test GPU", uuid="GPU-test")
    timer: Any = None
    return Workbench(DeviceState(device, timer, lambda: None), {}, _not_opened, stop)


def _not_opened(ops: Any) -> NoReturn:
    raise AssertionError("nothing is measured here")


@pytest.fixture
def fake_ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An `ncu` on the PATH that prints what the test wants and ends as it wants."""

    def installed(text: str, code: int = 0) -> None:
        (tmp_path / "says").write_text(text)
        program = tmp_path / "ncu"
        program.write_text(f'#!/bin/sh\ncat "{tmp_path}/says"\necho "$@" > "{tmp_path}/asked"\nexit {code}\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return installed


COLUMNS = (
    "ID",
    "Kernel Name",
    "Block Size",
    "Grid Size",
    "gpu__time_duration.sum",
    "launch__registers_per_thread",
    "gpc__cycles_elapsed.avg.per_second",
)
UNITS = ("", "", "", "", "ns", "register/thread", "hz")
HEADER = "==PROF== Connected\n" + "".join(",".join(f'"{n}"' for n in line) + "\n" for line in (COLUMNS, UNITS))


def rows(*kernels: tuple[str, str]) -> str:
    launched = '"(256, 1, 1)","(1,024, 1, 1)"'
    return HEADER + "".join(
        f'"{i}","{name}",{launched},"{time_ns}","32","1,980,000,000"\n' for i, (name, time_ns) in enumerate(kernels)
    )


CASES = [
    Case(problem=Problem(op="add", sizes={"n": n}, dtype="fp32"), variant="torch_eager") for n in (1024, 2048, 4096)
]


def test_calls_are_cut_apart_by_their_markers(fake_ncu: Any, tmp_path: Path) -> None:
    one = [("add", "1,000"), (MARKER, "500")]
    two = [("mul", "1,000"), ("add", "250"), (MARKER, "500")]
    fake_ncu(rows(*one * TIMES, *[(MARKER, "500")] * TIMES, *two * TIMES))
    found = ncu_times(bench(), CASES)
    assert {key: (round(one.seconds, 12), len(one.shapes)) for key, one in found.items()} == {
        CASES[0].key: (1e-6, 1),
        CASES[2].key: (1.25e-6, 2),
    }
    assert found[CASES[0].key].shapes == (((1024, 1, 1), (256, 1, 1), 32),)
    assert found[CASES[2].key].clock_hz == 1.98e9
    asked = (tmp_path / "asked").read_text()
    for words in (
        "--clock-control none",
        "--cache-control none",
        "--profile-from-start off",
        "kernelviz.measure.selftest.ncu_probe",
    ):
        assert words in asked


def test_a_call_that_is_missing_is_an_error(fake_ncu: Any) -> None:
    fake_ncu(rows(*[("add", "1"), (MARKER, "1")] * (3 * TIMES - 1)))
    with pytest.raises(RuntimeError, match=f"saw {3 * TIMES - 1} calls, {3 * TIMES} were made"):
        ncu_times(bench(), CASES)


def test_what_ncu_refuses_cannot_be_checked_here(
    fake_ncu: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_ncu("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n", 1)
    with pytest.raises(NotHere, match="NVreg_RestrictProfilingToAdminUsers=0"):
        ncu_times(bench(), CASES)
    fake_ncu("==ERROR== something else\n", 3)
    with pytest.raises(RuntimeError, match="ended with 3: ==ERROR== something else"):
        ncu_times(bench(), CASES)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(NotHere, match="not on the PATH"):
        ncu_times(bench(), CASES)


def test_units_that_are_not_known_are_no_numbers() -> None:
    assert children.quantity({"t": "2.5", "(t)": "usecond"}, "t") == pytest.approx(2.5e-6)
    with pytest.raises(RuntimeError, match="'furlong'"):
        children.quantity({"t": "1", "(t)": "furlong"}, "t")


def test_a_process_gives_its_code_and_what_it_printed() -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    found, told = children.output(bench(), [sys.executable, "-S", "-c", code])
    assert found == 3
    assert sorted(told.split()) == ["err", "out"]


@pytest.mark.parametrize(
    ("stop", "most_s", "error"), [(lambda: True, 60.0, Stopped), (lambda: False, 0.2, TimeoutError)]
)
def test_a_process_that_is_not_wanted_any_more_is_ended_with_its_children(
    stop: Any, most_s: float, error: type[Exception], tmp_path: Path
) -> None:
    noted = tmp_path / "pid"
    command = ["sh", "-c", f"sleep 60 & echo $! > {noted}.part; mv {noted}.part {noted}; wait"]

    def asked() -> bool:
        return noted.exists() and stop()

    begun = time.monotonic()
    with pytest.raises(error):
        children.output(bench(asked), command, most_s)
    assert time.monotonic() - begun < 20
    child = Path(f"/proc/{noted.read_text().strip()}/stat")
    until_s = time.monotonic() + 10
    while child.exists() and " Z " not in child.read_text():
        assert time.monotonic() < until_s
        time.sleep(0.01)


def test_a_picture_holds_whole_iterations_and_what_was_counted() -> None:
    records: list[Record] = []
    for i in range(5):
        at = 1_000_000 + i * 100_000
        records += [
            Record(POISON, at, at + 2_000),
            Record("copy_kernel", at + 2_500, at + 3_000),
            *(Record(name, at + 3_100 + i, at + 3_200 + i) for i, name in enumerate(BEFORE_FLUSH)),
            Record(FLUSH, at + 4_000, at + 34_000),
            Record("first", at + 33_600, at + 36_000),  # stamped early: its time begins where the flush ends
            Record("second", at + 36_500, at + 38_000),
            Record(MARKER, at + 39_000, at + 40_000),
        ]
    found = timeline_of(records, iterations(records, 5), "cupti")
    assert [m.kind for m in found.marks] == [
        "poison",
        "restore",
        "flush",
        "flush",
        "flush",
        "call",
        "call",
        "marker",
    ] * 3
    assert found.marks[0].start_s == 0.0
    assert found.marks[8].start_s == pytest.approx(1e-4)
    assert found.counted[0] == pytest.approx((34e-6, 38e-6))
    assert len(found.counted) == 3
    alone = timeline_of(records[:8], iterations(records[:8], 1), "cupti")
    assert (len(alone.marks), len(alone.counted)) == (8, 1)
    assert "flush L2 30.9 µs, call 4.40 µs" in describe_timeline(alone)


@pytest.mark.parametrize(("words", "more"), [(95.0, 0.01), (512.3, 0.01), (9.1, 0.02), (51.0, 0.02), (1.0, 0.01)])
def test_a_planted_slow_down_adds_whole_waves_where_it_can(words: float, more: float) -> None:
    wave = 64
    few = _whole_waves(words * wave, wave, more)
    if words > 0.75 / more:
        assert few % wave == 0
        assert round(few * (1 + more)) % wave == 0
    else:
        assert few % wave == wave // 2
    assert few == pytest.approx(words * wave, rel=0.6)
