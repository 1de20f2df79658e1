"""Measure: a run, a tuning, a selftest, an inspection. Each function waits for its result."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, TypeVar, cast

import msgspec

from kernelviz import bench as use_cases
from kernelviz.api.report import PathLike, Report, frame
from kernelviz.bench.tunings import EARLY_STOP, METHOD, StoredTuning, TuningReport
from kernelviz.core import (
    USUAL_FIGURES,
    BadField,
    Clock,
    DeviceError,
    FigureName,
    Inspection,
    Method,
    RunEnded,
    RunRequest,
    Selftest,
)
from kernelviz.core.configuration import parted
from kernelviz.text import describe_failures
from kernelviz.text import tuning as tuning_text

if TYPE_CHECKING:
    import pandas as pd

_Named = TypeVar("_Named")


def run(
    op: str,
    *,
    sizes: Mapping[str, int | str | Sequence[int]] | None = None,
    preset: str | None = None,
    dtype: str | None = None,
    compute: str | None = None,
    variants: Sequence[str] | None = None,
    baseline: str | None = None,
    direction: str = "forward",
    data: str = "normal",
    device: str | None = None,
    budget_s: float = 1.0,
    clock: Clock = "burst",
    load_s: float | None = None,
    figures: Sequence[FigureName] | None = None,
    untrusted: bool = False,
    compile_ahead: bool = True,
    plugins: Sequence[PathLike] = (),
) -> Report:
    """Measure variants of an op and wait for the results. Parameters that are not given take the defaults of the op.

    sizes: for each axis a number, a text ("2^10..2^14", "2^27/n") or several numbers. variants: by default all that can run
    here, except those that run only when they are named. budget_s: largest device time for each case, in seconds. clock:
    "burst" (short bursts) or "sustained" (steady load). load_s: with sustained load, how many seconds a variant runs before it is
    measured; by default 1. data: what the inputs hold ("normal", "zeros", "small_integers", "outliers", …); outputs are also
    checked with normal data. figures: what is measured; by default all but "energy"
    and "naive" (the first calls of a new process, without warm-up).
    untrusted: each variant is measured in a process of its own, and a judge process checks outputs and times; only "cold" is
    measured then. compile_ahead: on a GPU, Triton and CUDA kernels are compiled ahead in several processes; False: one after the
    other by the process that measures.
    plugins: files with your own variants. An interrupt ends the run after its current block; its results stay in the store, and
    the interrupt is raised again. Errors: UnknownName and BadField, which name the field and the nearest valid value. A case
    that fails is not an error, but a row with its reason.
    """
    bench = use_cases.current()
    request = RunRequest(
        op=op,
        sizes=size_texts(sizes),
        preset=preset,
        variants=None if variants is None else _several(variants),
        dtype=dtype,
        compute=compute,
        direction=direction,
        data=data,
        baseline=baseline,
        device=device,
        plugins=paths(plugins),
    )
    usual: Sequence[FigureName] = ("cold",) if untrusted else USUAL_FIGURES
    method = Method(
        budget_s=budget_s,
        clock=clock,
        load_s=msgspec.UNSET if load_s is None else load_s,
        figures=_several(usual if figures is None else figures),
        judge=True if untrusted else msgspec.UNSET,
        ahead=compile_ahead,
    )
    return wait_for_run(bench, bench.run(bench.plan(request), method, owner=owner()))


def resume(run_id: str) -> Report:
    """Measure those cases of an interrupted or cancelled run that have no result, and wait for them."""
    bench = use_cases.current()
    bench.resume(run_id, owner=owner())
    return wait_for_run(bench, run_id)


@dataclass(frozen=True, repr=False)
class Tuned(TuningReport):
    """The result of a tuning. Later runs use `best`, unless the tuning did not finish.

    `run`: the run whose cases are the configurations. `tuning`: the configuration that later runs use; None if the tuning did
    not finish, or if a newer tuning has replaced it. `seconds`: for which the device was used, over all parts of the run;
    `preparing_s` of it was spent on binding and compiling.
    """

    run: Report

    @classmethod
    def of(cls, report: TuningReport) -> Self:
        return cls(run=Report.of(report.run), tried=report.tried, tuning=report.tuning, seconds=report.seconds)

    @property
    def best(self) -> dict[str, int] | None:
        """The best correct configuration. It is the default if none is measurably faster, and None if none is correct."""
        row = self.tried.best
        return None if row is None else parted(row.result.variant)[1]

    @property
    def failures(self) -> dict[str, tuple[dict[str, int], ...]]:
        """The configurations that failed, by reason."""
        return {
            str(describe_failures(reason)): tuple(parted(name)[1] or {} for name in reason.variants)
            for reason in self.tried.failures
        }

    @property
    def preparing_s(self) -> float:
        return self.tried.preparing_s

    @property
    def record(self) -> dict[str, Any]:
        """The record that `kernelviz tune --json` prints."""
        return tuning_text.record(self.run, self.tried, self.tuning, self.seconds)

    def to_frame(self) -> pd.DataFrame:
        """One row for each correct configuration, best first: values, time with interval, speed-up over the default, verdict."""
        return frame(tuning_text.records(self.tried))

    def __repr__(self) -> str:
        tried = self.tried
        return (
            f"<kernelviz tuning {self.run.id}: {tried.tried} of {tried.planned} configurations of {tried.variant}, "
            f"{tried.failed} failed, best {self.best}, {self.seconds:.1f} s>"
        )


def tune(
    op: str,
    variant: str,
    *,
    sizes: Mapping[str, int | str] | None = None,
    preset: str | None = None,
    dtype: str | None = None,
    compute: str | None = None,
    direction: str = "forward",
    data: str = "normal",
    configurations: int | None = None,
    seed: int = 0,
    budget_s: float = METHOD.budget_s,
    device: str | None = None,
    compile_ahead: bool = True,
    early_stop: bool = True,
    plugins: Sequence[PathLike] = (),
) -> Tuned:
    """Measure the configurations of a variant for one problem, and wait for them. Later runs use the best one.

    configurations: how many, chosen at random with `seed`; None: all of the variant's space. budget_s: largest device time for
    each, in seconds. compile_ahead: as for `run`. early_stop: measure one block only of a configuration that takes more than 1.5
    times as long as the best beside it. An interrupt cancels the tuning and is raised again;
    `kernelviz.resume_tuning` continues it. Errors: UnknownName; BadField for several problems, or for a variant that has nothing
    to tune or cannot run there.
    """
    bench = use_cases.current()
    request = RunRequest(
        op=op,
        variants=(variant,),
        sizes=size_texts(sizes),
        preset=preset,
        dtype=dtype,
        compute=compute,
        direction=direction,
        data=data,
        device=device,
        plugins=paths(plugins),
    )
    run_id = bench.run(
        bench.tuning(request, configurations=configurations, seed=seed),
        msgspec.structs.replace(
            METHOD, budget_s=budget_s, ahead=compile_ahead, early_stop=EARLY_STOP if early_stop else msgspec.UNSET
        ),
        owner=owner(),
    )
    wait_for_run(bench, run_id)
    return Tuned.of(bench.tunings.report(run_id))


def resume_tuning(run_id: str) -> Tuned:
    """Continue a cancelled or interrupted tuning, and wait. Errors: UnknownRun; BadField for a run that is not a tuning."""
    bench = use_cases.current()
    bench.tunings.report(run_id)
    resume(run_id)
    return Tuned.of(bench.tunings.report(run_id))


def tunings(
    op: str | None = None, *, variant: str | None = None, device: str | None = None
) -> tuple[StoredTuning, ...]:
    """The stored tunings: `tuning` has configuration, times, gain and cost; `stale` is the reason why it is not used."""
    return use_cases.current().tunings.find(op, variant=variant, device=device)


def selftest(device: str | None = None) -> Selftest:
    """Check that kernelviz measures correctly on a device, and wait for the result. Default: the first usable GPU, otherwise
    the CPU.

    `failed` of the result holds the checks that did not pass. Errors: DeviceError if no check could be made.
    """
    bench = use_cases.current()
    followed = bench.selftest(device or bench.default_device(), owner=owner())
    message = wait_for_end(bench, followed)
    result = bench.selftest_result(followed)
    if result is None or not result.checks:
        raise DeviceError(message or "no check could be made")
    return result


def inspect(
    op: str,
    variant: str,
    *,
    sizes: Mapping[str, int | str] | None = None,
    preset: str | None = None,
    dtype: str | None = None,
    compute: str | None = None,
    data: str = "normal",
    device: str | None = None,
    plugins: Sequence[PathLike] = (),
) -> Inspection:
    """Inspect one call, and wait for it: facts of its tensors, and where its outputs differ from the reference.

    `passed` of the result says whether the outputs are right, `errors` where they are wrong; `kernelviz.plots.share_by_element`
    draws one of them. sizes: one number for each axis. Errors: UnknownName and BadField for a case that cannot run here, or for
    more than one case; DeviceError with the error of the variant.
    """
    bench = use_cases.current()
    plan = bench.plan(
        RunRequest(
            op=op,
            sizes=size_texts(sizes),
            preset=preset,
            variants=(variant,),
            dtype=dtype,
            compute=compute,
            data=data,
            device=device,
            plugins=paths(plugins),
        )
    )
    if len(plan.problems) != 1:
        raise BadField("sizes", f"{len(plan.problems)} problems", "give one size for each axis")
    followed = bench.inspect(plan.problems[0], variant, plan.device, plugins=plan.plugins, owner=owner())
    message = wait_for_end(bench, followed)
    inspection = bench.inspected(followed)
    if inspection is None:
        raise DeviceError(message or "the case could not be looked at")
    return inspection


def wait_for_run(bench: use_cases.Bench, run_id: str) -> Report:
    """Wait for the end of a run, and return it. An interrupt cancels it and is raised again."""
    wait_for_end(bench, run_id)
    return Report.of(bench.load(run_id))


def wait_for_end(bench: use_cases.Bench, followed: str) -> str:
    """Wait for the end of a run, selftest or inspection, and return its message. An interrupt cancels it and is raised again."""
    message = ""
    try:
        for _, event in bench.follow(followed):
            message = event.message if isinstance(event, RunEnded) else ""
    except KeyboardInterrupt:
        bench.cancel(followed)
        raise
    return message


def owner() -> str:
    """The owner of what this process asks for: the queue of a device alternates between owners."""
    return f"python {os.getpid()}"


def size_text(size: int | str | Sequence[int], axis: str = "") -> str:
    """A size as a person types it. Errors: BadField for a value that is not a whole number.

    >>> size_text(4096), size_text("2^10..2^14"), size_text([64, 128])
    ('4096', '2^10..2^14', '64,128')
    """
    if isinstance(size, str):
        return size
    try:
        if isinstance(size, SupportsIndex):  # numpy's arrays have it too, and refuse where they hold several
            with suppress(TypeError):
                return str(operator.index(size))
        if isinstance(size, bytes | bytearray | int):
            raise TypeError
        return ",".join(s if isinstance(s, str) else str(operator.index(s)) for s in size)
    except TypeError:
        raise BadField(
            f"size {axis}".rstrip(), size, "give a whole number, a text as 2^10..2^14, or several whole numbers"
        ) from None


def size_texts(
    sizes: Mapping[str, int | str | Sequence[int]] | Mapping[str, int | str] | None,
) -> dict[str, str] | None:
    """The sizes of each axis as text. Errors: BadField."""
    return None if sizes is None else {axis: size_text(size, axis) for axis, size in sizes.items()}


def paths(plugins: Sequence[PathLike]) -> tuple[str, ...]:
    """Absolute paths of plug-ins."""
    return tuple(str(Path(p).resolve()) for p in _several(plugins))


def _several(given: Sequence[_Named]) -> tuple[_Named, ...]:
    """The given names or paths as a tuple. A single name or path counts as one item."""
    return (cast(_Named, given),) if isinstance(given, str | os.PathLike) else tuple(given)
