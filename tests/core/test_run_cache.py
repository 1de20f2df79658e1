"""What is derived from runs is computed once for all threads, and never shown for another run."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import msgspec
import pytest
import sample_runs as samples

from kernelviz.core import Run
from kernelviz.core.run_cache import RunCache


@pytest.fixture
def counted() -> tuple[list[int], Callable[[], int]]:
    """The numbers that were computed, and the function that computes the next one."""
    computed: list[int] = []

    def compute() -> int:
        computed.append(len(computed))
        return computed[-1]

    return computed, compute


def test_the_same_run_with_the_same_options_is_computed_once(counted: tuple[list[int], Callable[[], int]]) -> None:
    computed, compute = counted
    cache: RunCache[int] = RunCache(most=10)
    run, problem = samples.run(), samples.problems("rmsnorm", samples.RMSNORM_SWEEP)[0]
    again = samples.problems("rmsnorm", samples.RMSNORM_SWEEP)[0]
    assert cache.get(((run,), problem, {"headline": "cold"}), compute) == 0
    assert cache.get(((run,), again, {"headline": "cold"}), compute) == 0
    assert computed == [0]


def test_each_difference_of_what_it_depends_on_is_another_entry(counted: tuple[list[int], Callable[[], int]]) -> None:
    _, compute = counted
    cache: RunCache[int] = RunCache(most=100)
    run = samples.run()
    retitled = msgspec.structs.replace(run, title="another title")
    shorter = msgspec.structs.replace(run, results=run.results[:-1])
    first, second = samples.problems("rmsnorm", samples.RMSNORM_SWEEP)[:2]
    roofs = samples.H200_ROOFS
    parts = [
        (run, "cold"), (run, "warm"), (run, None), (retitled, "cold"), (shorter, "cold"), ((run, retitled), "cold"),
        ((retitled, run), "cold"), (run, first), (run, second), (run, roofs), (run, roofs[:1]), (run, 1), (run, 1.0), (run, True),
        (run, samples.run), (run, samples.mixed),
    ]  # fmt: skip
    assert len({cache.get(part, compute) for part in parts}) == len(parts)


def test_equal_runs_are_not_the_same_run(counted: tuple[list[int], Callable[[], int]]) -> None:
    """Comparing thousands of samples would take longer than drawing. The store gives the same object while nothing changes."""
    _, compute = counted
    cache: RunCache[int] = RunCache(most=10)
    run = samples.run()
    assert cache.get((run,), compute) != cache.get((msgspec.structs.replace(run),), compute)


def test_a_run_that_is_gone_leaves_nothing(counted: tuple[list[int], Callable[[], int]]) -> None:
    _, compute = counted
    cache: RunCache[int] = RunCache(most=10)
    for _ in range(5):
        cache.get(((samples.run(), "cold"),), compute)
        gc.collect()
    assert len(cache) == 0


def test_what_has_no_key_is_computed_each_time(counted: tuple[list[int], Callable[[], int]]) -> None:
    computed, compute = counted
    cache: RunCache[int] = RunCache(most=10)
    run = samples.run()
    for part in (object(), run.results[0], lambda: 1, partial(int)):
        cache.get((run, part), compute)
        cache.get((run, part), compute)
    assert len(computed) == 8
    assert len(cache) == 0


def test_it_is_bounded_and_drops_what_was_unused_for_longest(counted: tuple[list[int], Callable[[], int]]) -> None:
    computed, compute = counted
    cache: RunCache[int] = RunCache(most=30, size=lambda value: 10)
    run = samples.run()
    for option in ("a", "b", "c", "a", "d"):
        cache.get((run, option), compute)
    assert len(cache) == 3
    cache.get((run, "a"), compute)
    assert computed == [0, 1, 2, 3]
    cache.get((run, "b"), compute)
    assert computed == [0, 1, 2, 3, 4]


def test_threads_that_ask_at_once_wait_for_one_computation() -> None:
    cache: RunCache[int] = RunCache(most=10)
    run, calls = samples.run(), []
    started, go_on = threading.Event(), threading.Event()

    def slow() -> int:
        calls.append(1)
        started.set()
        assert go_on.wait(10)
        return 7

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(cache.get, (run,), slow) for _ in range(8)]
        assert started.wait(10)
        other = pool.submit(lambda: RunCache[int](most=1).get((run,), lambda: 1))  # eight workers: queued or done
        go_on.set()
        assert [future.result(10) for future in asked] == [7] * 8
        assert other.result(10) == 1
    assert calls == [1]


def test_an_error_is_not_kept(counted: tuple[list[int], Callable[[], int]]) -> None:
    _, compute = counted
    cache: RunCache[int] = RunCache(most=10)
    run: Run = samples.run()
    with pytest.raises(ZeroDivisionError):
        cache.get((run,), lambda: 1 // 0)
    assert cache.get((run,), compute) == 0
