"""Runs as scripts and notebooks use them: a table, the failures, the fastest variant; loaded from the store or from files."""

from __future__ import annotations

import html
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast, get_args

import msgspec

from kernelviz import bench as use_cases
from kernelviz import formats
from kernelviz.bench import RunSummary, comparison, run_files
from kernelviz.bench.card import card as draw_card
from kernelviz.bench.exported import encoded
from kernelviz.bench.history import History
from kernelviz.core import BadField, Failure, Run, check_name
from kernelviz.formats import document
from kernelviz.metrics import samples, winner
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.rows import rows
from kernelviz.metrics.summary import summary
from kernelviz.tables.records import records
from kernelviz.text import describe_failure
from kernelviz.text import winners as winners_text
from kernelviz.text.times import FIGURES

if TYPE_CHECKING:
    import pandas as pd

PathLike = str | os.PathLike[str]
FIELDS = tuple(f.field for f in FIGURES)
"""The figures of a case, as the document names them."""
SHORT_COLUMNS = (
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


def frame(records: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """The records as a table. pandas is imported here, because most uses of the package need no table."""
    import pandas as pd

    return pd.DataFrame(list(records))


class Report(Run, frozen=True, kw_only=True):
    """A run with methods for use in Python. It is a `Run`, so every plot accepts it."""

    @classmethod
    def of(cls, run: Run) -> Self:
        return cls(**{name: getattr(run, name) for name in Run.__struct_fields__})

    @property
    def document(self) -> dict[str, object]:
        """The native document (schema ``kernelviz/2``) as plain Python values."""
        return msgspec.json.decode(document.encode(self), type=dict[str, object])

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
        """The best correct variant overall: the lowest geometric mean time over the sizes. None if no case has a correct time."""
        totals = summary(rows(self, self.environment.roofs))
        return None if totals is None else totals.fastest

    @property
    def most_wins(self) -> tuple[str, ...]:
        """The variant that is fastest alone at the most sizes by the rule of `winners`; several if their wins and ties are
        equal. Empty if no variant is known to be fastest at any size."""
        totals = summary(rows(self, self.environment.roofs))
        return () if totals is None else tuple(one.variant for one in totals.most_wins)

    def to_frame(self) -> pd.DataFrame:
        """One row for each case in the order of the plan, in the SI base units that the column names state. Unknown is NaN or
        None."""
        return frame(records(self))

    def winners(self, l2: str = "cold") -> pd.DataFrame:
        """One row for each size: the fastest correct variant, the second with the ratio of its time to that of the first, and
        `decided`: whether every other variant is slower. Variants in `tied` are the same as the fastest by the verdict rule;
        those in `unclear` could not be compared with it, because of noise. Errors: UnknownName for `l2`."""
        check_name("l2", l2, get_args(Headline))
        headline = cast(Headline, l2)
        return frame(map(winners_text.record, winner.winners(rows(self, self.environment.roofs, headline), headline)))

    def samples(self, figure: str = "device_cold_s") -> pd.DataFrame:
        """One row for each sample of one figure (a field of `Timing` as in the document, for example ``loop_s``) of every
        correct case, with its block, round, start time and SM clock. Empty if no samples are known. Errors: UnknownName."""
        check_name("figure", figure, FIELDS)
        return frame(line for r in self.results for line in samples.records(r, (figure,)))

    def save(
        self, path: PathLike, to: str | None = None, *, with_code: bool = False, with_plugin_code: bool = False
    ) -> Path:
        """Write the run to a file. `kernelviz.load` reads documents and Parquet on any machine.

        to: json, parquet, csv, md, html, gbench, nvbench, kernel-tuner or t4. Default: by the ending of the file name,
        otherwise the native document. with_code: also the code that compilers made, as far as it is on this machine (json and
        parquet only). with_plugin_code: also that of your own variants' files. Warns with UserWarning if the file is too large
        to be read again. Errors: UnknownName, BadField."""
        target = Path(path)
        form = formats.export_named(to or formats.format_of(target.name))
        if with_code and not form.holds_code:
            raise BadField("with_code", form.name, "this format holds no code; write json or parquet")
        run: Run = msgspec.structs.replace(self, code=msgspec.UNSET)
        if with_code:
            run, _ = use_cases.current().history.code.with_code(self, plugins=with_plugin_code)
        data = encoded(run, form, use_cases.current)
        target.write_bytes(data)
        if unreadable := formats.describe_unreadable(form.name, len(data)):
            warnings.warn(f"{target}: {unreadable}", stacklevel=2)
        return target

    def card(
        self,
        path: PathLike | None = None,
        *,
        variants: Sequence[str] | None = None,
        l2: str = "cold",
        link: str = "",
        scheme: str = "light",
    ) -> str:
        """The card of the run, one SVG image with the answer, a small chart, device, date and link; also written to `path`.

        `link`: where the run can be opened. `scheme`: light or dark. Errors: UnknownName for a variant, `l2` or `scheme`.
        """
        svg = draw_card(use_cases.current(), self, variants=variants, l2=l2, link=link, scheme=scheme)
        if path is not None:
            Path(path).write_text(svg, encoding="utf-8")
        return svg

    def _repr_html_(self) -> str:
        """The table, for a notebook; pandas escapes every text in it."""
        table = self.to_frame()
        if table.empty:
            return f"<p>{html.escape(repr(self))}</p>"
        return str(table[["variant", *self.plan.problems[0].sizes, *SHORT_COLUMNS]].to_html(index=False, na_rep=""))

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


def load(source: PathLike) -> Report:
    """Load a run from a file of any format that can be read (see `load_all`), or by its id from the store of this machine.

    Errors: DocumentError for a file that holds no run or several, UnknownRun for an id that is not in the store.
    """
    path = Path(source)
    if path.is_file():
        return Report.of(run_files.read_one(path))
    if path.suffix or len(path.parts) != 1:
        raise BadField("file", source, comparison.describe_missing_file(path))
    return Report.of(use_cases.current().load(str(source)))


def load_all(path: PathLike) -> tuple[Report, ...]:
    """Load every run of a file: kernelviz JSON, Parquet or ``.kvz``, nvbench or google-benchmark JSON, or a backup (also one that
    ends with ``.gz``). The content decides. Nothing is stored.

    The times of another tool are in `other_times` of each timing, together with how they were measured. Errors: DocumentError
    with the path of the field, BadField for a file that cannot be read.
    """
    return tuple(map(Report.of, run_files.read(Path(path))))


def runs(search: str = "", *, limit: int = 50) -> tuple[RunSummary, ...]:
    """The stored runs, the newest first. `search`: words that must all occur in title, note, op, device, status or id."""
    return use_cases.current().history.find(search, limit=limit)


def history() -> History:
    """The stored runs: rename, annotate, delete, restore, import and export them, or write a backup of everything."""
    return use_cases.current().history
