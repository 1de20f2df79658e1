"""Hardware counters of cases, and the commands of profilers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast, get_args

from kernelviz import bench as use_cases
from kernelviz.api.measurement import owner, paths, size_texts, wait_for_end
from kernelviz.api.report import PathLike
from kernelviz.core import BadField, CaseCounters, Run, RunRequest, UnknownRun, check_name
from kernelviz.core import uncounted as u
from kernelviz.core.command import ProfilerCommands
from kernelviz.core.counters import Replay, Scope
from kernelviz.text.counters import describe_uncounted


def counters(
    run: Run | str,
    variant: str,
    *,
    problem: str | None = None,
    sizes: Mapping[str, int | str] | None = None,
    preset: str | None = None,
    dtype: str | None = None,
    compute: str | None = None,
    data: str = "normal",
    device: str | None = None,
    plugins: Sequence[PathLike] = (),
    replay: str = "application",
    traffic: bool = False,
) -> CaseCounters:
    """Read the hardware counters of one call with ncu, and wait for them.

    run: a stored run or its id, with whose case the counters are stored, or an op, whose case is described by the other
    arguments. `kernels` of the result's `counters` are the kernels of the call; `kernelviz.metrics.counters.call_counters` gives
    their sums. replay: application (each pass of ncu starts a process, and finds flushed caches) or kernel.
    traffic: only durations and traffic, which takes fewer passes.

    Errors: UnknownName and BadField for a case that cannot be called here; CountersRefused, whose `uncounted` is the typed
    reason: no NVIDIA GPU, no ncu, no permission (its text has the line that would allow it), or a failure of ncu.
    """
    check_name("replay", replay, get_args(Replay))
    bench, how = use_cases.current(), cast(Replay, replay)
    scope: Scope = "traffic" if traffic else "all"
    stored = _stored(bench, run)
    if stored is not None:
        name = bench.counters.read_of_run(
            stored, (variant,), problem=problem, sizes=size_texts(sizes), owner=owner(), replay=how, scope=scope
        )
    else:
        request = RunRequest(
            op=str(run),
            sizes=size_texts(sizes),
            preset=preset,
            variants=(variant,),
            dtype=dtype,
            compute=compute,
            data=data,
            device=device,
            plugins=paths(plugins),
        )
        if problem is not None:
            raise BadField("problem", problem, f"{run!r} is an op, not a run; give sizes")
        name = bench.counters.read(bench.plan(request), owner=owner(), replay=how, scope=scope)
    message = wait_for_end(bench, name)
    counted, refused = bench.counters.read_cases(name), bench.counters.not_read(name)
    if counted:
        return counted[0]
    reason = next(iter(refused.values()), u.Uncounted(reason=u.CountersCancelled(), message=message))
    raise u.CountersRefused(reason, str(describe_uncounted(reason)))


def profiler_commands(
    run: Run | str, variant: str, *, problem: str | None = None, sizes: Mapping[str, int | str] | None = None
) -> ProfilerCommands | None:
    """The commands that profile one call of a case of a run: `ncu`, `nsys`, and `counters` of kernelviz.

    None for a backward pass and for a run of a processor. Errors: UnknownRun, UnknownName, BadField.
    """
    bench = use_cases.current()
    opened = run if isinstance(run, Run) else bench.load(run)
    check_name("variant", variant, opened.plan.variants, of=f"run {opened.id!r}")
    chosen = bench.counters.problem_of(opened, problem, size_texts(sizes))
    return bench.counters.commands_of_run(opened, chosen, variant)


def _stored(bench: use_cases.Bench, run: Run | str) -> Run | None:
    """The run; None if the text is the name of an op. Errors: UnknownRun."""
    if isinstance(run, Run):
        return run
    try:
        return bench.load(run)
    except UnknownRun:
        if run in bench.ops():
            return None
        raise
