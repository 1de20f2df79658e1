"""Memory of one GPU shared by several test processes: a large case waits until its estimated need is free."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SLOT_BYTES = 4 * 2**30
SMALL_BYTES = 2**30
"""A case that needs less takes no slot."""
FREE_FOR_SMALL_BYTES = 32 * 2**30
"""Contexts, cached blocks and small cases of all processes: 14 processes of about 2 GiB each."""
POLL_S = 0.01


@contextmanager
def whole_device() -> Iterator[None]:
    """Run a case while no other process runs one: for a case that found too little memory beside others."""
    with _turn(fcntl.LOCK_EX):
        yield


@contextmanager
def _turn(kind: int) -> Iterator[None]:
    """Hold the device together with others (LOCK_SH) or alone (LOCK_EX). Who waits to be alone lets nobody begin meanwhile."""
    folder = Path(tempfile.gettempdir())
    with (
        (folder / "kernelviz-gpu-turn.lock").open("w") as turn,
        (folder / "kernelviz-gpu-cases.lock").open("w") as cases,
    ):
        fcntl.flock(turn, fcntl.LOCK_EX)
        fcntl.flock(cases, kind)
        fcntl.flock(turn, fcntl.LOCK_UN)
        yield  # closing the file releases it


@contextmanager
def device_memory(needed_bytes: int, total_bytes: int) -> Iterator[None]:
    """Hold as many slots of the device's memory as the case needs; other processes wait for them.

    Slots are byte ranges of a lock file, so a process that dies gives them back. One process at a time acquires slots, so
    two that need many cannot wait for each other. A case that needs more than all slots takes all of them.
    """
    with _turn(fcntl.LOCK_SH), _slots(needed_bytes, total_bytes):
        yield


@contextmanager
def _slots(needed_bytes: int, total_bytes: int) -> Iterator[None]:
    count = max(1, (total_bytes - FREE_FOR_SMALL_BYTES) // SLOT_BYTES)
    wanted = 0 if needed_bytes < SMALL_BYTES else min(count, -(-needed_bytes // SLOT_BYTES))
    if not wanted:
        yield
        return
    folder = Path(tempfile.gettempdir())
    with (
        (folder / "kernelviz-gpu-acquire.lock").open("w") as acquire,
        (folder / "kernelviz-gpu-slots.lock").open("w") as slots,
    ):
        fcntl.flock(acquire, fcntl.LOCK_EX)
        held: set[int] = set()
        while len(held) < wanted:
            for slot in range(count):
                if slot not in held and len(held) < wanted and _locked(slots.fileno(), slot):
                    held.add(slot)
            if len(held) < wanted:
                time.sleep(POLL_S)
        fcntl.flock(acquire, fcntl.LOCK_UN)
        yield  # closing the file releases the slots


def _locked(descriptor: int, slot: int) -> bool:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, slot, os.SEEK_SET)
    except OSError:
        return False
    return True
