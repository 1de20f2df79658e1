"""The use cases of `kernelviz.bench` for scripts and notebooks. No server is needed.

import kernelviz as kv
report = kv.run("rmsnorm", sizes={"m": 4096, "n": "2^10..2^14"}, dtype="bf16")
report.to_frame()
kv.plots.latency_by_size(report)
"""

from __future__ import annotations

import dataclasses
import html
import json
import operator
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, TypeVar, cast, get_args

import msgspec

from kernelviz import bench as use_cases
from kernelviz import formats
from kernelviz.bench import RunSummary, comparison, regression
from kernelviz.bench import roofline as placing
from kernelviz.bench.history import History
from kernelviz.bench.trends import CaseTrend
from kernelviz.bench.tunings import METHOD as TUNING
from kernelviz.bench.tunings import KeptTuning, TuningReport
from kernelviz.core import (
    USUAL_FIGURES,
    BadField,
    Clock,
    DeviceError,
    Failure,
    FigureName,
    Inspection,
    Method,
    Run,
    RunEnded,
    RunRequest,
    Selftest,
    Tuning,
    UnknownName,
)
from kernelviz.core.configuration import parted
from kernelviz.formats import document
from kernelviz.metrics import samples, winner
from kernelviz.metrics.comparison import Comparison
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.rows import rows
from kernelviz.metrics.summary import summary
from kernelviz.tables.records import records
from kernelviz.text import winners as winners_text
from kernelviz.text.comparison import counts_words, mean_words
from kernelviz.text.failures import describe_failure
from kernelviz.text.times import FIGURES
from kernelviz.text.tuning import reason_words
from kernelviz.text.tuning import record as tuning_record
from kernelviz.text.tuning import records as tuning_records

if TYPE_CHECKING:
    import pandas as pd

    from kernelviz.metrics.library_comparison import ComparisonRow

PathLike = str | os.PathLike[str]
_Named = TypeVar("_Named")
FIELDS = tuple(f.field for f in FIGURES)
"""The figures of a case, as the document names them."""


class Report(Run, frozen=True, kw_only=True):
    """A run with methods for use in Python. It is a `Run`, so every plot accepts it."""

    @classmethod
    def of(cls, run: Run) -> Self:
        return cls(**{name: getattr(run, name) for name in Run.__struct_fields__})

    @property
    def document(self) -> dict[str, object]:
        """The native document (schema ``kernelviz/2``) as plain Python values."""
        decoded: dict[str, object] = json.loads(document.encode(self))
        return decoded

    @property
    def failures(self) -> dict[str, str]:
        """The reason of each case without a valid time."""
        return {
            r.case.key: f"{r.outcome.stage}: {describe_failure(r.outcome)}"
            for r in self.results
            if isinstance(r.outcome, Failure)
        }

    @property
    def fastest(self) -> str | None:
        """The fastest correct variant over all sizes. None if no case has a correct time."""
        found = summary(rows(self, self.environment.roofs))
        return None if found is None else found.fastest

    def to_frame(self) -> pd.DataFrame:
        """One row for each case in the order of the plan, in the SI base units that the column names state. Unknown is NaN or
        None."""
        import pandas as pd

        return pd.DataFrame(records(self))

    def winners(self, l2: str = "cold") -> pd.DataFrame:
        """One row for each size: the fastest correct variant, the second with the ratio of its time to that of the first, and
        `decided`, which is False if the verdict rule cannot distinguish the fastest from those in `tied`. Errors: UnknownName
        for `l2`."""
        import pandas as pd

        if l2 not in get_args(Headline):
            raise UnknownName("l2", l2, get_args(Headline))
        headline = cast(Headline, l2)
        table = rows(self, self.environment.roofs, headline)
        return pd.DataFrame([winners_text.record(one) for one in winner.winners(table, headline)])

    def samples(self, figure: str = "device_cold_s") -> pd.DataFrame:
        """One row for each sample of one figure (a field of `Timing` as in the document, for example ``loop_s``) of every
        correct case, with its block, round, start time and SM clock. Empty if no samples are known. Errors: UnknownName."""
        import pandas as pd

        if figure not in FIELDS:
            raise UnknownName("figure", figure, FIELDS)
        return pd.DataFrame([line for r in self.results for line in samples.records(r, (figure,))])

    def save(self, path: PathLike, to: str | None = None) -> Path:
        """Write the run to a file. `kernelviz.load` reads documents and Parquet on any machine.

        to: json, parquet, csv, md, html, gbench or nvbench. Default: by the ending of the file name, otherwise the native
        document. Errors: UnknownName.
        """
        target = Path(path)
        target.write_bytes(formats.export_named(to or formats.format_of(target.name)).encode(self))
        return target

    def _repr_html_(self) -> str:
        """The table, for a notebook; pandas escapes every text in it."""
        frame = self.to_frame()
        if frame.empty:
            return f"<p>{html.escape(repr(self))}</p>"
        axes = list(self.plan.problems[0].sizes)
        return str(frame[["variant", *axes, *SHOWN]].to_html(index=False, na_rep=""))

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [
            ("id", self.id),
            ("op", self.plan.op),
            ("device", self.environment.device.name),
            ("status", self.status),
            ("cases", len(self.plan.cases())),
            ("failed", len(self.failures)),
        ]

    def __repr__(self) -> str:
        return (
            f"<kernelviz run {self.id}: {self.plan.op}, {len(self.results)} of {len(self.plan.cases())} cases, "
            f"{len(self.failures)} failed, {self.status} on {self.environment.device.name}>"
        )


SHOWN = (
    "time_s",
    "time_low_s",
    "time_high_s",
    "bandwidth_bytes_per_s",
    "efficiency_fraction",
    "speed_up",
    "verdict",
    "failure",
)
"""Columns of the short table."""


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
    figures: Sequence[FigureName] = USUAL_FIGURES,
    plugins: Sequence[PathLike] = (),
) -> Report:
    """Measure variants of an op and wait for the results. Parameters that are not given take the defaults of the op.

    sizes: for each axis a number, a text ("2^10..2^14", "2^27/n") or several numbers. variants: by default all that can run
    here, except those that run only when they are named. budget_s: largest device time for each case, in seconds. clock:
    "burst" (short bursts) or "sustained" (steady load). figures: what is measured; "energy" is measured only if it is named.
    plugins: files with your own variants. An interrupt ends the run after its current block; its results stay in the store, and
    the interrupt is raised again. Errors: UnknownName and BadField, which name the field and the nearest valid value. A case
    that fails is not an error, but a row with its reason.
    """
    if not budget_s > 0:
        raise BadField("budget_s", budget_s, "give seconds above 0")
    bench = use_cases.current()
    request = RunRequest(
        op=op,
        sizes=_size_texts(sizes),
        preset=preset,
        variants=None if variants is None else _several(variants),
        dtype=dtype,
        compute=compute,
        direction=direction,
        data=data,
        baseline=baseline,
        device=device,
        plugins=_paths(plugins),
    )
    run_id = bench.run(
        bench.plan(request),
        Method(budget_s=budget_s, clock=clock, figures=_several(figures)),
        owner=f"python {os.getpid()}",
    )
    return _waited(bench, run_id)


def _waited(bench: use_cases.Bench, run_id: str) -> Report:
    try:
        for _ in bench.follow(run_id):
            pass
    except KeyboardInterrupt:
        bench.cancel(run_id)
        raise
    return Report.of(bench.load(run_id))


def load(source: PathLike) -> Report:
    """Load a run from a file of any format that can be read (see `load_all`), or by its id from the store of this machine.

    Errors: DocumentError for a file that holds no run or several, UnknownRun for an id that is not in the store.
    """
    path = Path(source)
    if path.is_file():
        return Report.of(formats.one_of(formats.read_file(path)))
    if path.suffix or len(path.parts) != 1:
        raise BadField("file", source, comparison.missing_words(path))
    return Report.of(use_cases.current().load(str(source)))


def load_all(path: PathLike) -> tuple[Report, ...]:
    """Load every run of a file: kernelviz JSON or Parquet, nvbench or google-benchmark JSON, recognised by its content.

    The times of another tool are in `other_times` of each timing, together with how they were measured. Errors: DocumentError
    with the path of the field, BadField for a file that cannot be read.
    """
    return tuple(map(Report.of, formats.read_file(Path(path))))


def runs(search: str = "", *, limit: int = 50) -> tuple[RunSummary, ...]:
    """The stored runs, the newest first. `search`: words that must all occur in title, note, op, device, status or id."""
    return use_cases.current().history.find(search, limit=limit)


def history() -> History:
    """The stored runs: rename, annotate, delete, restore, import and export them, or write a backup of everything."""
    return use_cases.current().history


def resume(run_id: str) -> Report:
    """Measure those cases of an interrupted or cancelled run that have no result, and wait for them."""
    bench = use_cases.current()
    bench.resume(run_id, owner=f"python {os.getpid()}")
    return _waited(bench, run_id)


class Tuned:
    """The result of a tuning. Later runs use `best`, unless the tuning did not finish."""

    def __init__(self, found: TuningReport) -> None:
        self._found = found

    @property
    def run(self) -> Report:
        """The run whose cases are the configurations."""
        return Report.of(self._found.run)

    @property
    def best(self) -> dict[str, int] | None:
        """The best correct configuration. It is the default if none is measurably faster, and None if none is correct."""
        row = self._found.tried.best
        return None if row is None else parted(row.result.variant)[1]

    @property
    def kept(self) -> Tuning | None:
        """The configuration that later runs use. None if the tuning did not finish, or if a newer tuning has replaced it."""
        return self._found.kept

    @property
    def failures(self) -> dict[str, tuple[dict[str, int], ...]]:
        """The configurations that failed, by reason."""
        return {
            reason_words(reason): tuple(parted(name)[1] or {} for name in reason.variants)
            for reason in self._found.tried.failures
        }

    @property
    def seconds(self) -> float:
        """Seconds for which the device was used, over all parts of the run. `preparing_s` of it was spent on binding and
        compiling."""
        return self._found.seconds

    @property
    def preparing_s(self) -> float:
        return self._found.tried.preparing_s

    @property
    def record(self) -> dict[str, Any]:
        """The record that `kernelviz tune --json` prints."""
        return tuning_record(self._found.run, self._found.tried, self._found.kept, self._found.seconds)

    def to_frame(self) -> pd.DataFrame:
        """One row for each correct configuration, best first: values, time with interval, speed-up over the default, verdict."""
        import pandas as pd

        return pd.DataFrame(tuning_records(self._found.tried))

    def __repr__(self) -> str:
        tried = self._found.tried
        return (
            f"<kernelviz tuning {self._found.run.id}: {tried.tried} of {tried.planned} configurations of {tried.variant}, "
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
    budget_s: float = TUNING.budget_s,
    device: str | None = None,
    plugins: Sequence[PathLike] = (),
) -> Tuned:
    """Measure the configurations of a variant for one problem, and wait for them. Later runs use the best one.

    configurations: how many, chosen at random with `seed`; None: all of the variant's space. budget_s: largest device time for
    each, in seconds. An interrupt cancels the tuning and is raised again; `kernelviz.resume_tuning` continues it. Errors:
    UnknownName; BadField for several problems, or for a variant that has nothing to tune or cannot run there.
    """
    if not budget_s > 0:
        raise BadField("budget_s", budget_s, "give seconds above 0")
    bench = use_cases.current()
    request = RunRequest(
        op=op,
        variants=(variant,),
        sizes=_size_texts(sizes),
        preset=preset,
        dtype=dtype,
        compute=compute,
        direction=direction,
        data=data,
        device=device,
        plugins=_paths(plugins),
    )
    plan = bench.tuning(request, configurations=configurations, seed=seed)
    run_id = bench.run(plan, msgspec.structs.replace(TUNING, budget_s=budget_s), owner=f"python {os.getpid()}")
    _waited(bench, run_id)
    return Tuned(bench.tunings.report(run_id))


def resume_tuning(run_id: str) -> Tuned:
    """Continue a cancelled or interrupted tuning, and wait. Errors: UnknownRun; BadField for a run that is not a tuning."""
    bench = use_cases.current()
    bench.tunings.report(run_id)
    resume(run_id)
    return Tuned(bench.tunings.report(run_id))


def tunings(op: str | None = None, *, variant: str | None = None, device: str | None = None) -> tuple[KeptTuning, ...]:
    """The stored tunings: `tuning` has configuration, times, gain and cost; `stale` is the reason why it is not used."""
    return use_cases.current().tunings.find(op, variant=variant, device=device)


def selftest(device: str | None = None) -> Selftest:
    """Check that kernelviz measures correctly on a device, and wait for the result. Default: the first usable GPU, otherwise
    the CPU.

    `failed` of the result holds the checks that did not pass. Errors: DeviceError if no check could be made.
    """
    bench = use_cases.current()
    followed = bench.selftest(device or bench.default_device(), owner=f"python {os.getpid()}")
    message = _ending(bench, followed)
    made = bench.selftest_made(followed)
    if made is None or not made.checks:
        raise DeviceError(message or "no check could be made")
    return made


def _ending(bench: use_cases.Bench, followed: str) -> str:
    """Wait for a calibration, selftest or inspection, and return the message of its end. An interrupt cancels it and is raised
    again."""
    message = ""
    try:
        for _, event in bench.follow(followed):
            message = event.message if isinstance(event, RunEnded) else ""
    except KeyboardInterrupt:
        bench.cancel(followed)
        raise
    return message


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
            sizes=_size_texts(sizes),
            preset=preset,
            variants=(variant,),
            dtype=dtype,
            compute=compute,
            data=data,
            device=device,
            plugins=_paths(plugins),
        )
    )
    if len(plan.problems) != 1:
        raise BadField("sizes", f"{len(plan.problems)} problems", "give one size for each axis")
    followed = bench.inspect(
        plan.problems[0], variant, plan.device, plugins=plan.plugins, owner=f"python {os.getpid()}"
    )
    message = _ending(bench, followed)
    found = bench.inspected(followed)
    if found is None:
        raise DeviceError(message or "the case could not be looked at")
    return found


def roofline(
    *runs: str, level: str = "dram", roofs: str = "measured", precision: str | None = None, variant: str | None = None
) -> pd.DataFrame:
    """The cases of runs on the roofline, one row for each case: share of the roof, what limits it, and the evidence for that.

    runs: ids; by default the newest run, or some of those that come with kernelviz. level: ``dram`` uses the cold times, ``l2``
    the warm ones. roofs: ``measured`` or ``datasheet``. `kernelviz.plots.rates_by_intensity` draws the result of
    `kernelviz.bench.roofline.place`. Errors: UnknownRun for an id that is not in the store; UnknownName, with the known names.
    """
    import pandas as pd

    bench = use_cases.current()
    ids = runs or placing.first_shown(bench)
    found = placing.place(bench, ids, level=level, source=roofs, precision=precision, variant=variant)
    return pd.DataFrame(placing.records(found))


class Compared(Comparison):
    """A comparison with methods for use in Python. `pairs`: the largest slow-down first. `slower_than(0.02)`: pairs slower by
    over 2 %."""

    @classmethod
    def of(cls, found: Comparison) -> Self:
        return cls(**{field.name: getattr(found, field.name) for field in dataclasses.fields(found)})

    @property
    def record(self) -> dict[str, Any]:
        """The record that `kernelviz compare --json` prints: the runs, the summary, what differs between them, one row for each
        case."""
        return comparison.record(self)

    def to_frame(self) -> pd.DataFrame:
        """One row for each case, the largest slow-down first: verdict, reason, ratio (time of B over time of A) with its
        interval, both times."""
        import pandas as pd

        return pd.DataFrame(comparison.records(self))

    def __repr__(self) -> str:
        return f"<kernelviz comparison of {self.b.id} with {self.a.id}: {counts_words(self)}; {mean_words(self)}>"


def compare(
    a: Run | PathLike,
    b: Run | PathLike,
    *,
    variant_a: str | None = None,
    variant_b: str | None = None,
    l2: str = "cold",
) -> Compared:
    """Compare run B with run A, the baseline, case by case. Each is a run, the id of a run, or the path of a document.

    With variants, one variant of A is compared with one of B (the same one if only one is named), problem by problem. Errors:
    UnknownRun, UnknownName with the known names, BadField for a run with itself.
    """
    first, second = (
        source if isinstance(source, Run) else comparison.opened(use_cases.current(), os.fspath(source))
        for source in (a, b)
    )
    return Compared.of(comparison.compare(first, second, variant_a=variant_a, variant_b=variant_b, l2=l2))


def regress(run_id: str, *, device: str | None = None, l2: str = "cold") -> Compared:
    """Measure the plan of a stored run again by its method, and compare the new run with it.

    Errors: UnknownRun; BadField for a run that is still in progress or a device that is not here; UnknownName for a variant
    that no longer exists.
    """
    bench = use_cases.current()
    new = _waited(bench, regression.again(bench, run_id, device=device, anywhere=False))
    return Compared.of(comparison.compare(bench.load(run_id), new, l2=l2))


def trends(op: str | None = None, *, device: str | None = None, l2: str = "cold") -> tuple[CaseTrend, ...]:
    """The trends of all cases that were measured on the device: levels, changes, and `trend.regression` if a case is slower
    than at its best level. Errors: UnknownName."""
    bench = use_cases.current()
    if op is not None:
        regression.must_be_op(bench, op)
    return bench.trends.cases(device or bench.default_device(), op=op, l2=l2)


def library_comparison(*sources: str | Path) -> tuple[ComparisonRow, ...]:
    """Compare the fastest correct own variant of each problem with the libraries and the roof. `sources`: run ids or files.

    Errors: UnknownRun, BadField for a file that cannot be read, DocumentError.
    """
    from kernelviz.bench import library_comparison as use_case

    return use_case.library_comparison(use_cases.current(), [str(source) for source in sources])


ladders = library_comparison
"""The former name of `library_comparison`."""


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
        remedy = "give a whole number, a text as 2^10..2^14, or several whole numbers"
        raise BadField(f"size {axis}".rstrip(), size, remedy) from None


def _size_texts(
    sizes: Mapping[str, int | str | Sequence[int]] | Mapping[str, int | str] | None,
) -> dict[str, str] | None:
    """The sizes of each axis as text. Errors: BadField."""
    return None if sizes is None else {axis: size_text(size, axis) for axis, size in sizes.items()}


def _paths(plugins: Sequence[PathLike]) -> tuple[str, ...]:
    """Absolute paths of plug-ins."""
    return tuple(str(Path(p).resolve()) for p in _several(plugins))


def _several(given: Sequence[_Named]) -> tuple[_Named, ...]:
    """The given names or paths as a tuple. A single name or path counts as one item."""
    return (cast(_Named, given),) if isinstance(given, str | os.PathLike) else tuple(given)
