"""Device time on a CPU: the time of one call by the host clock, with a flush of the caches before each call.

The names are those of the GPU's timer. The time includes one Python call of the launch (0.3-2 us).
"""

import random
import time
from collections.abc import Callable, Iterable, Sequence
from statistics import median

import torch
from torch import Tensor

from kernelviz.core import Kernel, LaunchMode, Note, Timer
from kernelviz.measure.gate.check import still_poisoned
from kernelviz.measure.session.inputs import as_tuple
from kernelviz.measure.timing.timer import BlockSamples, BoundLaunch, CallRaised, Calls, DeviceTimer, Timed

BLOCK_S = 0.0125
"""Target length of one block, flushes included."""
MAX_SAMPLES = 10
DEFAULT_CACHE_BYTES = 32 * 2**20
FLUSH_SHARE = 8
"""The flush reads this many times the last-level cache that the machine reports, because a virtual machine may report less than
its host has, and a cache need not evict its oldest line. An add of 12 MB took 178 us after 2 x 32 MB, 281 after 4 x, 300 after
8 x, 311 after 16 x."""
SAMPLED = 1024
"""At most about so many elements of each output of every call are examined for the poison, each time others."""
METHOD = f"host clock round one call, caches flushed before it by a read of {FLUSH_SHARE} times the last level"
WARM_METHOD = "host clock round one call, behind an untimed one"


class HostTimed:
    """A call to be timed by the host clock: after a flush, or (warm) after an untimed call."""

    launch_mode: LaunchMode = "call"
    captured = False
    correction_s = 0.0

    def __init__(self, bound_launch: BoundLaunch, *, warm: bool = False) -> None:
        self.launches, self.warm = [bound_launch], warm
        self.launch = bound_launch.launch
        self.samples = 1
        self.iteration_s = 0.0
        self.kernels: tuple[Kernel, ...] = ()
        self.notes: tuple[Note, ...] = ()
        self.unwritten = 0
        """The number of elements that the worst call behind a flush left unwritten, of those whose outputs were examined."""
        self.outputs = as_tuple(bound_launch.launch())

    def run_once(self) -> tuple[Tensor, ...]:
        self.clear()
        self.outputs = as_tuple(self.launch())
        return self.outputs

    def clear(self) -> None:
        """Examine and poison the outputs of the last call, restore its inputs, and free its outputs, so that the next call
        allocates the same memory."""
        left = sum(unwritten(tensor) for tensor in self.outputs)
        self.unwritten = max(self.unwritten, left)
        for tensor in self.outputs:
            poison(tensor)
        self.launches[0].restore_inputs()
        self.outputs = ()


class HostTimer(DeviceTimer):
    """Times calls on the CPU with torch's current number of threads.

    There is nothing to subtract (reading the clock adds only some 50 ns to a call), and load is not limited to bursts.
    """

    name: Timer = "host"

    def __init__(self, cache_bytes: int | None) -> None:
        self.cache_bytes = cache_bytes or DEFAULT_CACHE_BYTES
        # Written once, because pages that nobody wrote are one page of zeros in the cache. Random numbers took 0.5 s for 256 MB.
        self._lines = torch.arange(FLUSH_SHARE * self.cache_bytes // 8)

    def flush(self) -> None:
        """Read several times the last-level cache; reading leaves clean lines."""
        torch.sum(self._lines)

    def prepare(self, first: BoundLaunch, more: Iterable[BoundLaunch] = (), *, warm: bool = False) -> HostTimed:
        """Make a call ready. `more` is not used, because the host clock's noise hides the effect of the tensors' addresses."""
        timed = HostTimed(first, warm=warm)
        timed.iteration_s = median(self._iteration(timed)[1] for _ in range(3))
        timed.samples = max(1, min(MAX_SAMPLES, round(BLOCK_S / timed.iteration_s)))
        return timed

    def describe(self, timed: Timed) -> str:
        assert isinstance(timed, HostTimed)
        return WARM_METHOD if timed.warm else METHOD

    def block_s(self, timed: Timed) -> float:
        assert isinstance(timed, HostTimed)
        return timed.iteration_s * timed.samples

    def collect(self, rounds: Sequence[Sequence[Timed]]) -> list[list[BlockSamples]]:
        return [[self._block(t) for t in r if isinstance(t, HostTimed)] for r in rounds]

    def sustain(self, timed: Timed, blocks: int, before_s: float, stop: Callable[[], bool]) -> list[BlockSamples]:
        assert isinstance(timed, HostTimed)
        until_s = time.monotonic() + before_s
        while time.monotonic() < until_s:
            if stop():
                return []
            self._iteration(timed)
        return [self._block(timed) for _ in range(blocks)]

    def calls(self, bound_launch: BoundLaunch) -> Calls:
        return Calls(bound_launch.launch, _at_once, bound_launch.restore, None, "a processor has no graphs")

    def _block(self, timed: HostTimed) -> BlockSamples:
        started_s = time.time()
        samples = [self._iteration(timed)[0] for _ in range(timed.samples)]
        return BlockSamples(samples, samples, started_s)

    def _iteration(self, timed: HostTimed) -> tuple[float, float]:
        """The (time of the call, time of the whole iteration) in seconds."""
        begun = time.perf_counter_ns()
        if timed.warm:
            self._warm_up(timed)
        else:
            self._cool_down(timed)
        start = time.perf_counter_ns()
        try:  # costs nothing while nothing is raised
            outputs = timed.launch()
        except Exception as error:
            raise CallRaised(timed.launch) from error
        end = time.perf_counter_ns()
        timed.outputs = as_tuple(outputs)
        return (end - start) / 1e9, (end - begun) / 1e9

    def _cool_down(self, timed: HostTimed) -> None:
        timed.clear()
        self.flush()

    def _warm_up(self, timed: HostTimed) -> None:
        timed.outputs = ()
        timed.launches[0].restore_inputs()
        timed.launches[0].called()
        timed.launches[0].restore_inputs()


def _at_once() -> None:
    """Return at once, because a call on a processor has ended when it returns."""


def poison(tensor: Tensor) -> None:
    """Fill with 0xFF bytes, so that elements that the call does not write can be found."""
    # As one axis of stride 1, because the strides of an axis of one element may be any.
    elements = tensor.contiguous()
    elements.as_strided((elements.numel(),), (1,)).view(torch.uint8).fill_(0xFF)


def unwritten(tensor: Tensor) -> int:
    """The number of elements that still hold the poison; 0 if a random sample of them holds none."""
    flat = tensor.reshape(-1)
    step = max(1, flat.numel() // SAMPLED)
    sample = flat[random.randrange(step) :: step]
    return int(still_poisoned(flat).count_nonzero()) if bool(still_poisoned(sample).any()) else 0
