"""Two cheats on a processor, where no tracer shows what ran: a call works after it has returned, or it remembers answers."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from kernelviz.core.reasons import Remembered, Unfinished

ATTEMPTS, PAIRS = 3, 5
LONG_S, PAIRS_IF_LONG = 20e-3, 3
"""A long call is watched once, and timed in fewer pairs, because a softmax of 4096 x 4096 would take 3 s more."""
LEAST_WAIT_S, CALLS_WAITED = 2e-3, 3
"""After a call has returned, its output is watched for so long, and for so many times the length of the call."""
MOST_COPIED_BYTES = 512 * 2**20
"""Larger outputs are sampled at STRIDE elements instead of copied, and larger inputs are not changed for `remembered`."""
STRIDE = 509
_END = 4096
FASTER, FASTER_IF_SHORT, SHORT_S, LEAST_S = 2.0, 3.0, 200e-6, 20e-6
"""A call remembers if even its fastest time with new numbers is longer than the median with the same numbers by the first factor
and by the least time. A busy machine can only make calls longer, so the fastest call of five is an honest one. Of short calls the
second factor is asked, because a processor itself remembers: sorting 5 x 131 numbers took 53 us, and 34 us with the same numbers
again, in five of five pairs, because the branches were predicted."""
CONFIRMED = 2
"""So many times in a row, because a busy machine can delay any five calls."""


@dataclass(frozen=True, slots=True)
class HostCall:
    """A call on a processor. `clear` prepares the next call: it poisons the outputs of the last one. `write` writes numbers into
    the inputs and refreshes what the variant derives from them."""

    launch: Callable[[], tuple[Tensor, ...]]
    clear: Callable[[], object]
    inputs: Sequence[Tensor]
    write: Callable[[Sequence[Tensor]], object]


def cheat_of(call: HostCall) -> Unfinished | Remembered | None:
    """What the call does to look fast, or None. Its inputs hold their values again afterwards."""
    originals = [t.clone() for t in call.inputs]
    try:
        return _unfinished(call) or _remembered(call, originals)
    finally:
        call.write(originals)


def _unfinished(call: HostCall) -> Unfinished | None:
    """The finding that outputs change after the call has returned, or None."""
    for _ in range(ATTEMPTS):
        call.clear()
        began_s = time.perf_counter()
        outputs = call.launch()
        # The end first, because another thread that works from the beginning gets there last.
        ends = [_flat(t)[-_END:].clone() for t in outputs]
        copies = [_sampled(t).clone() for t in outputs]
        took_s = time.perf_counter() - began_s
        time.sleep(max(LEAST_WAIT_S, CALLS_WAITED * took_s))
        changed = sum(
            max(_differences(_flat(t)[-_END:], end), _differences(_sampled(t), copy))
            for t, end, copy in zip(outputs, ends, copies, strict=True)
        )
        if changed:
            return Unfinished(elements=changed)
        if took_s > LONG_S:
            break
    return None


def _remembered(call: HostCall, originals: Sequence[Tensor]) -> Remembered | None:
    """The finding that a call is much faster for numbers that it has seen before, or None.

    Each pair of calls gets new numbers: the inputs (floating point) moved along by a different number of elements. Both calls of
    a pair follow a write of the same numbers, so that the caches are in the same state.
    """
    changeable = [t.is_floating_point() and t.numel() > PAIRS for t in originals]
    if not any(changeable) or sum(t.nbytes for t in originals) > MOST_COPIED_BYTES:
        return None
    finding: Remembered | None = None
    for attempt in range(CONFIRMED):
        finding = _faster_again(call, originals, changeable, attempt)
        if finding is None:
            break
    return finding


def _faster_again(
    call: HostCall, originals: Sequence[Tensor], changeable: Sequence[bool], attempt: int
) -> Remembered | None:
    def timed(values: Sequence[Tensor]) -> float:
        call.write(values)
        call.clear()
        began_s = time.perf_counter()
        call.launch()
        return time.perf_counter() - began_s

    new_s, repeated_s = list[float](), list[float]()
    for pair in range(1, PAIRS + 1):
        moved = [
            t.flatten().roll(pair * t.numel() // (PAIRS + 1) + attempt).view(t.shape) if change else t
            for t, change in zip(originals, changeable, strict=True)
        ]
        # So that the memory from which the call allocates is in the same state before both.
        timed(originals)
        new_s.append(timed(moved))
        repeated_s.append(timed(moved))
        if median(new_s) > LONG_S and pair >= PAIRS_IF_LONG:
            break
    fastest_new_s, usual_s = min(new_s), median(repeated_s)
    factor = FASTER if usual_s >= SHORT_S else FASTER_IF_SHORT
    if fastest_new_s < max(factor * usual_s, usual_s + LEAST_S):
        return None
    return Remembered(new_s=median(new_s), repeated_s=median(repeated_s))


def _flat(tensor: Tensor) -> Tensor:
    return tensor.detach().reshape(-1)


def _sampled(tensor: Tensor) -> Tensor:
    flat = _flat(tensor)
    return flat if tensor.nbytes <= MOST_COPIED_BYTES else flat[::STRIDE]


def _differences(now: Tensor, before: Tensor) -> int:
    """How many elements differ in their bytes, so that two NaN are equal."""
    bytes_now, bytes_before = (t.contiguous().view(torch.uint8).view(t.numel(), -1) for t in (now, before))
    return int((bytes_now != bytes_before).any(dim=1).sum()) if now.numel() else 0
