"""The times of this process's threads, as Linux counts them."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from kernelviz.hardware.thread_times import ThreadTimes, thread_times


def test_they_are_summed_over_the_threads_that_live(tmp_path: Path) -> None:
    for name, text in {"1": "1500000000 250000000 7\n", "2": "500000000 0 1\n", "3": "damaged", "4": None}.items():
        (tmp_path / name).mkdir()
        if text is not None:
            (tmp_path / name / "schedstat").write_text(text)
    assert thread_times(tmp_path) == ThreadTimes(2.0, 0.25)


def test_without_a_count_they_are_unknown(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    assert thread_times(tmp_path) is None
    assert thread_times(tmp_path / "nothing") is None


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this system does not count them")
def test_work_is_time_that_ran_and_sleep_is_none() -> None:
    assert sys.platform == "linux"
    before = thread_times()
    time.sleep(0.05)
    asleep = thread_times()
    until_s = time.process_time() + 0.05
    while time.process_time() < until_s:
        pass
    worked = thread_times()
    assert before is not None
    assert asleep is not None
    assert worked is not None
    assert asleep.ran_s - before.ran_s < 0.04
    assert worked.ran_s - asleep.ran_s > 0.04
    assert 0.0 <= worked.waited_fraction(asleep) < 1.0
