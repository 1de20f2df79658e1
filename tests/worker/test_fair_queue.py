"""Turns between people."""

from __future__ import annotations

import pytest

from kernelviz.worker.queue import FairQueue
from kernelviz.worker.request import Request
from tests.worker.test_supervisor import Listener

SINK = Listener()


def work(run_id: str, owner: str, number: int = 0, *, later: bool = False) -> Request:
    return Request(run_id=run_id, owner=owner, sink=SINK, variants=(str(number),), later=later)


def queue_of(*items: Request) -> FairQueue:
    made = FairQueue()
    assert made.put(items)
    return made


def drained(queue: FairQueue) -> list[tuple[str, int]]:
    found = []
    while (item := queue.take(timeout_s=0)) is not None:
        found.append((item.run_id, int(item.variants[0])))
    return found


SWEEP = [work("sweep", "ann", i) for i in range(3)]


def test_a_long_sweep_does_not_block_a_single_point() -> None:
    queue = queue_of(*SWEEP, work("point", "bob"))
    assert drained(queue) == [("sweep", 0), ("point", 0), ("sweep", 1), ("sweep", 2)]


def test_who_comes_during_anothers_turn_is_next() -> None:
    queue = queue_of(*SWEEP)
    assert queue.take() == SWEEP[0]
    assert queue.put([work("point", "bob"), work("point", "bob", 1), work("other", "cy")])
    assert [(item.run_id, before) for item, before in queue.waiting()] == [("point", 0), ("other", 1), ("sweep", 2)]
    assert drained(queue) == [("point", 0), ("other", 0), ("sweep", 1), ("point", 1), ("sweep", 2)]


def test_nobody_is_passed_over_by_who_comes_again_and_again() -> None:
    queue, served = queue_of(*SWEEP), []
    for number in range(3):
        served.append(queue.take(timeout_s=0))
        assert queue.put([work("point", "bob", number)])
        served.append(queue.take(timeout_s=0))
    assert [w and w.run_id for w in served] == ["sweep", "point"] * 3


def test_one_person_is_served_in_order() -> None:
    assert drained(queue_of(*SWEEP, work("later", "ann"))) == [*(("sweep", i) for i in range(3)), ("later", 0)]


def test_what_comes_first_is_said_as_it_will_be() -> None:
    queue = queue_of(*SWEEP, work("later", "ann"), work("point", "bob"), work("other", "cy"))
    said = {item.run_id: ahead for item, ahead in queue.waiting()}
    served = [run for run, _ in drained(queue)]
    assert said == {run: served.index(run) for run in said} == {"sweep": 0, "point": 1, "other": 2, "later": 5}


def test_remove_takes_one_run_out_and_close_the_rest() -> None:
    queue = queue_of(*SWEEP, work("later", "ann"), work("point", "bob"))
    assert queue.remove("sweep") == SWEEP
    assert queue.remove("sweep") == []
    assert [w.run_id for w in queue.close()] == ["later", "point"]
    assert queue.take() is None
    assert not queue.put(SWEEP)


def test_what_can_wait_comes_when_nothing_else_is_there_whoever_asked_first() -> None:
    queue = queue_of(work("sweep", "ann", 0), work("sweep", "ann", 9, later=True), work("point", "bob"))
    assert [(item.run_id, before) for item, before in queue.waiting()] == [("sweep", 0), ("point", 1)]
    assert queue.urgent() == 2
    assert queue.put([work("point", "bob", 8, later=True)])
    assert drained(queue) == [("sweep", 0), ("point", 0), ("sweep", 9), ("point", 8)]


def test_what_can_wait_is_removed_with_its_run() -> None:
    queue = queue_of(work("a", "ann", 0), work("a", "ann", 9, later=True), work("b", "bob", 1, later=True))
    assert [int(item.variants[0]) for item in queue.remove("a")] == [0, 9]
    assert drained(queue) == [("b", 1)]


@pytest.mark.parametrize("owner", ["ann", "bob", "cy", "dee"])
@pytest.mark.parametrize("taken", [0, 1, 2, 3])
def test_the_place_that_a_new_run_would_get_is_the_one_that_it_gets(owner: str, taken: int) -> None:
    """The form says the place beforehand, and the strip of the run says it afterwards; the two did not agree."""
    queue = queue_of(*SWEEP, work("later", "ann"), work("point", "bob"), work("other", "cy"))
    for _ in range(taken):
        queue.take(timeout_s=0)
    said = queue.ahead_of(owner)
    assert queue.put([work("new", owner)])
    assert {item.run_id: before for item, before in queue.waiting()}["new"] == said
