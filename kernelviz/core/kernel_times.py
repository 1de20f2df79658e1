"""How long the kernels of one run took, without everything else that a run holds."""

from kernelviz.core.problem import Struct


class RunTimes(Struct, frozen=True, kw_only=True):
    """For each case with a correct time its variant and the durations of its kernels, in seconds; a processor traces no
    kernels: there it is the whole call, device cold, by the host's clock. `variants`: all of the plan."""

    run_id: str
    title: str
    op: str
    created_at: str
    variants: tuple[str, ...] = ()
    times_s: tuple[tuple[str, float], ...] = ()
