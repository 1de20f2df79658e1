"""The use cases of `kernelviz.bench` in Python: a script or a notebook, no server needed.

import kernelviz as kv
report = kv.run("rmsnorm", sizes={"m": 4096, "n": "2^10..2^14"}, dtype="bf16")
report.to_frame()
kv.plots.latency_by_size(report)
"""

from __future__ import annotations

import html
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast, get_args

from kernelviz import bench as use_cases
from kernelviz.bench import RunSummary
from kernelviz.bench import roofline as placing
from kernelviz.bench.history import History
from kernelviz.core.errors import BadField, DeviceError, UnknownName
from kernelviz.core.events import RunEnded
from kernelviz.core.inspection import Inspection
from kernelviz.core.problem import USUAL_FIGURES, Clock, FigureName, Method
from kernelviz.core.result import Failure
from kernelviz.core.run import Run
from kernelviz.core.selftest import Selftest
from kernelviz.formats import document
from kernelviz.metrics import samples, winner
from kernelviz.metrics.figures import FIGURES, host_bound, times_s
from kernelviz.metrics.roofline import Headline
from kernelviz.metrics.statistics import Verdict
from kernelviz.metrics.summary import Row, rows, summary
from kernelviz.metrics.trust import trust_words

if TYPE_CHECKING:
    import pandas as pd

PathLike = str | os.PathLike[str]
FIELDS = tuple(f.field for f in FIGURES)
"""The figures of a case, as the document names them."""


class Report(Run, frozen=True, kw_only=True):
    """A run with the questions that one asks of it in Python. It is a `Run`, so every plot takes it as it is."""

    @classmethod
    def of(cls, run: Run) -> Self:
        return cls(**{name: getattr(run, name) for name in Run.__struct_fields__})

    @property
    def document(self) -> dict[str, object]:
        """The native document (schema ``kernelviz/1``) as plain Python values."""
        decoded: dict[str, object] = json.loads(document.encode(self))
        return decoded

    @property
    def failures(self) -> dict[str, str]:
        """Why cases have no usable time, by case."""
        return {
            r.case.key: f"{r.outcome.stage}: {r.outcome.message}"
            for r in self.results
            if isinstance(r.outcome, Failure)
        }

    @property
    def fastest(self) -> str | None:
        """The fastest correct variant over all sizes, None when no case has a correct time."""
        found = summary(rows(self, self.environment.roofs))
        return None if found is None else found.fastest

    def to_frame(self) -> pd.DataFrame:
        """A row a case in plan order, quantities in SI base units as the column names say; unknown is NaN or None."""
        import pandas as pd

        return pd.DataFrame([_record(self, row) for row in rows(self, self.environment.roofs)])

    def winners(self, l2: str = "cold") -> pd.DataFrame:
        """A row a size: the fastest correct variant, the second with the ratio of its time to the first's, and `decided`, which
        is False where the verdict rule does not tell the fastest from those in `tied`. Errors: UnknownName for `l2`."""
        import pandas as pd

        if l2 not in get_args(Headline):
            raise UnknownName("l2", l2, get_args(Headline))
        headline = cast(Headline, l2)
        table = rows(self, self.environment.roofs, headline)
        return pd.DataFrame([winner.record(one) for one in winner.winners(table, headline)])

    def samples(self, figure: str = "device_cold_s") -> pd.DataFrame:
        """A row a sample of one figure (a field of `Timing` as in the document, e.g. ``loop_s``) of every correct case, with its
        block, round, wall-clock beginning and SM clock. Empty where no samples are known. Errors: UnknownName."""
        import pandas as pd

        if figure not in FIELDS:
            raise UnknownName("figure", figure, FIELDS)
        return pd.DataFrame([line for r in self.results for line in samples.records(r, (figure,))])

    def save(self, path: PathLike) -> Path:
        """Write the document to a file; `kernelviz.load` reads it on any machine."""
        target = Path(path)
        target.write_bytes(document.encode(self))
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
    """Measure variants of an op and wait for the results; what is not given takes the op's default.

    sizes: by axis a number, a text ("2^10..2^14", "2^27/n") or several numbers. budget_s: most device time for a case.
    clock: in short bursts, or under steady load. figures: what is measured; "energy" is asked for.
    plugins: files with variants of one's own. An interrupt ends the run after its current block; its results stay in
    the store, and the interrupt is raised on. Errors: UnknownName and BadField, which name the field and the nearest
    valid value; a case that fails is no error but a row with its reason.
    """
    if not budget_s > 0:
        raise BadField("budget_s", budget_s, "give seconds above 0")
    bench = use_cases.current()
    plan = bench.plan(
        op,
        sizes=None if sizes is None else {axis: size_text(size) for axis, size in sizes.items()},
        preset=preset,
        variants=None if variants is None else tuple(variants),
        dtype=dtype,
        compute=compute,
        direction=direction,
        data=data,
        baseline=baseline,
        device=device,
        plugins=tuple(str(Path(p).resolve()) for p in plugins),
    )
    run_id = bench.run(
        plan, Method(budget_s=budget_s, clock=clock, figures=tuple(figures)), owner=f"python {os.getpid()}"
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
    """A run from a document file, or by its id from this machine's store.

    Errors: DocumentError for a file that is no document, UnknownRun for an id that is not here.
    """
    path = Path(source)
    if path.is_file():
        return Report.of(document.decode(path.read_bytes()))
    if path.suffix or len(path.parts) != 1:
        raise BadField("file", source, "there is no such file")
    return Report.of(use_cases.current().load(str(source)))


def runs(search: str = "", *, limit: int = 50) -> tuple[RunSummary, ...]:
    """The runs kept here, the newest first; `search` holds words that all occur in title, note, op, device, status or id."""
    return use_cases.current().history.find(search, limit=limit)


def history() -> History:
    """Name, annotate, delete and restore runs, take documents in and give them out."""
    return use_cases.current().history


def resume(run_id: str) -> Report:
    """Measure the cases of an interrupted or cancelled run that have no result, and wait for them."""
    bench = use_cases.current()
    bench.resume(run_id, owner=f"python {os.getpid()}")
    return _waited(bench, run_id)


def selftest(device: str | None = None) -> Selftest:
    """Put the instrument to the test on a device (by default the first usable GPU, else the CPU), and wait for it.

    `failed` of what comes back holds the checks that did not pass. Errors: DeviceError when none could be made.
    """
    bench = use_cases.current()
    followed = bench.selftest(device or bench.default_device(), owner=f"python {os.getpid()}")
    message = _ending(bench, followed)
    made = bench.selftest_made(followed)
    if made is None or not made.checks:
        raise DeviceError(message or "no check could be made")
    return made


def _ending(bench: use_cases.Bench, followed: str) -> str:
    """Wait for a device's own job; the message of its end. An interrupt cancels it and is raised on."""
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
    """Look at one call, and wait for it: what its tensors are and hold, and where its outputs differ from the reference.

    `passed` of what comes back says whether it is right, `errors` where it is not; `kernelviz.plots.share_by_element` draws
    one of them. sizes: one number for each axis. Errors: UnknownName and BadField for what cannot run here or is more than one
    case; DeviceError with what the variant raised.
    """
    bench = use_cases.current()
    plan = bench.plan(
        op,
        sizes=None if sizes is None else {axis: size_text(size) for axis, size in sizes.items()},
        preset=preset,
        variants=(variant,),
        dtype=dtype,
        compute=compute,
        data=data,
        device=device,
        plugins=tuple(str(Path(p).resolve()) for p in plugins),
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
    """The cases of runs (by id; default: the newest, else some shipped ones) under their roofs, a row a case: share of the
    roof, what limits it, and the evidence for that. `kernelviz.plots.rates_by_intensity` draws what
    `kernelviz.bench.roofline.place` gives.

    level: ``dram`` takes the cold times, ``l2`` the warm ones. roofs: ``measured`` or ``datasheet``. Errors: UnknownRun for
    an id that is not here; UnknownName, with the known ones.
    """
    import pandas as pd

    bench = use_cases.current()
    ids = runs or placing.first_shown(bench)
    found = placing.place(bench, ids, level=level, source=roofs, precision=precision, variant=variant)
    return pd.DataFrame(placing.records(found))


def size_text(size: int | str | Sequence[int]) -> str:
    """A size as one would type it.

    >>> size_text(4096), size_text("2^10..2^14"), size_text([64, 128])
    ('4096', '2^10..2^14', '64,128')
    """
    if isinstance(size, str):
        return size
    return str(size) if isinstance(size, int) else ",".join(str(int(s)) for s in size)


def _record(run: Run, row: Row) -> dict[str, object]:
    result, figure, failure = row.result, row.figure, row.failure
    problem, cost, seen, prepared = result.problem, result.cost, result.conditions, result.preparation
    judged: Verdict | None = row.verdict
    return {
        "run": run.id,
        "device": run.environment.device.name,
        "op": problem.op,
        **problem.sizes,
        "dtype": problem.dtype,
        "compute": problem.compute,
        "direction": problem.direction,
        "data": problem.data,
        "variant": result.variant,
        "backend": result.backend,
        "is_baseline": row.is_baseline,
        "time_s": figure.estimate if figure else None,
        "time_low_s": figure.low if figure else None,
        "time_high_s": figure.high if figure else None,
        "samples": len(figure.samples) if figure and figure.samples is not None else None,
        "bandwidth_bytes_per_s": row.bandwidth_bytes_per_s,
        "rate_flop_per_s": row.rate_flop_per_s,
        "efficiency_fraction": row.efficiency,
        "speed_up": row.speed_up,
        "verdict": judged.word if judged else None,
        "correct": None if result.accuracy is None else result.accuracy.passed,
        "error_of_bound_fraction": None if result.accuracy is None else result.accuracy.worst_of_bound,
        "failure": failure.stage if failure else None,
        "failure_message": failure.message if failure else None,
        "wrong_time_s": row.wrong_figure.estimate if row.wrong_figure else None,
        "work_flop": cost.work_flop if cost else None,
        "read_bytes": cost.read_bytes if cost else None,
        "written_bytes": cost.written_bytes if cost else None,
        "bind_s": prepared.bind_s if prepared else None,
        "first_call_s": prepared.first_call_s if prepared else None,
        "sm_clock_hz": seen.sm_clock_hz if seen else None,
        "power_w": seen.power_w if seen else None,
        "temperature_c": seen.temperature_c if seen else None,
        **{name: time_s for name, time_s in times_s(result).items() if name != "cold_s"},  # that is time_s
        "host_bound": host_bound(result.timing),
        "energy_joules": result.timing.energy.joules if result.timing and result.timing.energy else None,
        "trust": trust_words(result, "cold", run.method.clock),
        "source_digest": result.source_digest,
    }
