"""Why the hardware counters of a case could not be read: tagged values with their data, never sentences.

`kernelviz.text.counters` turns them into text. The text of the profiler is not a reason: it is the `message`, which is shown and
never interpreted.
"""

from typing import Literal

from kernelviz.core.errors import KernelvizError
from kernelviz.core.problem import Struct


class _Reason(Struct, frozen=True, kw_only=True, tag_field="code"):
    """Base of all reasons. `code` says which one it is."""


class NoCountersHere(_Reason, frozen=True, kw_only=True, tag="no_counters_here"):
    """Counters are read on NVIDIA GPUs only, and `device` is not one that can be used."""

    device: str


class NoBackwardLaunch(_Reason, frozen=True, kw_only=True, tag="no_backward_launch"):
    """The case is a backward pass, which `kernelviz launch` does not offer."""


class NoProfiler(_Reason, frozen=True, kw_only=True, tag="no_profiler"):
    """The profiler is not on the PATH of the process that would start it."""

    tool: Literal["ncu"] = "ncu"


class NotPermitted(_Reason, frozen=True, kw_only=True, tag="not_permitted"):
    """The driver lets only administrators read counters (ERR_NVGPUCTRPERM)."""


class CountersBusy(_Reason, frozen=True, kw_only=True, tag="counters_busy"):
    """Another profiler or monitor uses the counters of the GPU."""


class ProfilerNotLoaded(_Reason, frozen=True, kw_only=True, tag="profiler_not_loaded"):
    """The profiler cannot load its library into the program, as in some sandboxes (LibraryNotLoaded)."""


class ProfilerFailed(_Reason, frozen=True, kw_only=True, tag="profiler_failed"):
    """The profiler, or the program under it, ended with this exit code. The message is the end of its output."""

    exit_code: int


class TookTooLong(_Reason, frozen=True, kw_only=True, tag="took_too_long"):
    """The profiler was stopped because it had not ended after so long. The message is the end of its output."""

    seconds: float


class NothingCounted(_Reason, frozen=True, kw_only=True, tag="nothing_counted"):
    """The profiler saw no kernel of the call. A copy or a memset of the driver is not a kernel."""


class OutputUnreadable(_Reason, frozen=True, kw_only=True, tag="output_unreadable"):
    """The output of the profiler cannot be read. The message says where and why."""


class OtherCode(_Reason, frozen=True, kw_only=True, tag="other_code"):
    """The stored result is of other code, or of another configuration, than a call today would use."""


class CountersCancelled(_Reason, frozen=True, kw_only=True, tag="cancelled"):
    """Reading them was cancelled."""


UncountedReason = (
    NoCountersHere
    | NoBackwardLaunch
    | NoProfiler
    | NotPermitted
    | CountersBusy
    | ProfilerNotLoaded
    | ProfilerFailed
    | TookTooLong
    | NothingCounted
    | OutputUnreadable
    | OtherCode
    | CountersCancelled
)


class Uncounted(Struct, frozen=True, kw_only=True):
    """A reason, and the text of the profiler where there is one."""

    reason: UncountedReason
    message: str = ""


class CountersRefused(KernelvizError):
    """Counters cannot be read. `uncounted` says why; the text is for people."""

    def __init__(self, uncounted: Uncounted, text: str) -> None:
        self.uncounted = uncounted
        super().__init__(text)
